"""Anchors: features whose costs are known (ass:knownseedsubgraph), exactly or up to a tolerance; and their rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.graph import Anchors, LayeredGraph
from surefoot.model.labels import shown
from surefoot.model.limit import Limit
from surefoot.model.lookup import Lookup
from surefoot.model.naming import FeatureNames, listed, row_entries, told_entries, told_row
from surefoot.model.priors import Prior
from surefoot.model.reals import real, reals, vector
from surefoot.tolerances import ANCHOR, ANCHORS_TOGETHER, SQUARES

Anchor = (
    tuple[ArrayLike | Mapping[str, float], ArrayLike] | tuple[ArrayLike | Mapping[str, float], ArrayLike, ArrayLike]
)
AnchorOf = Callable[[int], Anchor | list[Anchor] | None]

MOST = 64  #: anchors of one step: every row is projected on all of them


def anchors_at(given: object, h: int, dim: int, n_limits: int, features: tuple[str, ...] | None) -> Anchors | None:
    """Checks what ``anchor(h)`` returned: an anchor, a list of them, or None."""
    where = f"anchor of step {h}"
    if given is None:
        return None
    several = isinstance(given, list) and all(isinstance(one, tuple) for one in given)
    each = list(given) if several else [given]  # type: ignore[call-overload]
    if not each:
        return None
    if len(each) > MOST:
        fix = "Every row is projected on all of them: keep those that differ most."
        raise InvalidInput(f"more than {MOST} anchors", where=where, got=f"{len(each)}", fix=fix)
    rows = [
        _anchor(one, dim, n_limits, features, f"{where}, number {i}" if several else where)
        for i, one in enumerate(each)
    ]
    x, cost, tolerance = (freeze(np.array([row[part] for row in rows])) for part in range(3))
    return Anchors(x, cost, tolerance)


def each_once(anchors: Iterable[Anchors | None]) -> tuple[Anchors | None, ...]:
    """The anchors of all steps, equal ones as one object: what is computed from them is computed once."""
    known: dict[tuple[bytes, ...], Anchors] = {}
    return tuple(one and known.setdefault(tuple(part.tobytes() for part in one.parts), one) for one in anchors)


def _anchor(
    given: object, dim: int, n_limits: int, features: tuple[str, ...] | None, where: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        rule = "anchor must be (features, cost), (features, cost, tolerance), a list of these, or None"
        fix = "Features are a list of numbers or a dict by name; cost is a number, or one per limit."
        raise InvalidInput(rule, where=where, got=shown(given), fix=fix)
    x, cost, *rest = given
    row = vector("anchor feature", _by_name(x, features, where), dim, where)
    costs = _per_limit("anchor cost", cost, n_limits, where)
    tolerance = _per_limit("anchor tolerance", rest[0], n_limits, where) if rest else np.zeros(n_limits)
    for what, numbers in (("anchor feature", row), ("anchor cost", costs), ("anchor tolerance", tolerance)):
        if not np.isfinite(numbers).all():
            got = told_row(features, row) if what == "anchor feature" else shown(numbers.tolist())
            fix = "Return None where the cost is not known, or give a tolerance that covers it."
            raise InvalidInput(f"{what} is not finite", where=where, got=got, fix=fix)
    if (tolerance < 0.0).any():
        fix = "It is how far the cost may be off: give its size, or 0."
        raise InvalidInput("anchor tolerance is negative", where=where, got=shown(tolerance.tolist()), fix=fix)
    return row, costs, tolerance


def _by_name(x: object, features: tuple[str, ...] | None, where: str) -> object:
    """A vector of features, which may be given as a dict by name; features left out are zero."""
    if not isinstance(x, Mapping):
        return x
    if features is None:
        fix = "Name the cost features, with features=[…]."
        raise InvalidInput("the cost features have no names", where=where, got=shown(dict(x)), fix=fix)
    for name in x:
        if name not in features:
            got = f"{name!r}, there are {listed(features, range(len(features)))}"
            raise InvalidInput("no such feature", where=where, got=got, fix="Use one of these names.")
    return [real(f"feature {name!r}", x.get(name, 0.0), where) for name in features]


def _per_limit(what: str, value: object, n_limits: int, where: str) -> FloatArray:
    single = (number := reals(value)) is not None and number.ndim == 0
    if single and what == "anchor tolerance":
        return vector(what, [value] * n_limits, n_limits, where)
    return vector(what, [value] if single else value, n_limits, where)


def check_anchors(declared: Lookup) -> None:
    """Each anchor's features are not zero, the first one's cost is below the bound, and some γ explains them all."""
    graph, limits, priors, features = declared.graph, declared.limits, declared.priors, declared.features
    done: set[int] = set()
    for h, anchors in enumerate(graph.anchors):
        if anchors is None:
            continue
        for i, (x, cost, tolerance) in enumerate(zip(*anchors.parts, strict=True)):
            where = f"anchor of step {h}" + (f", number {i}" if len(anchors) > 1 else "")
            length = math.hypot(*x.tolist())
            if not SQUARES[0] <= length * length <= SQUARES[1]:
                size = "zero" if length == 0 else "too small" if length < 1 else "too large"
                raise InvalidInput(
                    f"anchor feature is {size}",
                    where=where,
                    got=told_row(features, x),
                    fix="Its squared length is divided by: choose other features, or measure them in other units.",
                )
            for j, limit in enumerate(limits):
                if i == 0 and not cost[j] < declared.bounds[h, j]:
                    raise InvalidInput(
                        "anchor cost is not below the bound",
                        where=f"{where}, limit {limit.name!r}",
                        got=f"cost {float(cost[j])!r}, bound {float(declared.bounds[h, j])!r}",
                        fix="The first anchor's cost must be safe: correct it, or the bound and its unit.",
                    )
                error = limit.misspecification + float(tolerance[j])
                called = "" if features is None else f" ({told_entries(row_entries(features, x))})"
                _check_possible(x, float(cost[j]), error, limit, priors[j], f"{where}{called}, limit {limit.name!r}")
        if len(anchors) > 1 and id(anchors) not in done:
            done.add(id(anchors))
            _check_together(anchors, limits, priors, f"anchors of step {h}")
    if declared.stationary_costs:
        _check_same_anchors(graph, features)


def _check_possible(x: FloatArray, cost: float, error: float, limit: Limit, prior: Prior, where: str) -> None:
    length = math.hypot(*x.tolist())
    if limit.norm is not None and abs(cost) > (limit.norm * length + error) * (1 + ANCHOR):
        raise InvalidInput(
            "anchor cost is impossible under the norm bound",
            where=where,
            got=f"|{cost!r}| > norm {limit.norm!r} × ‖feature‖ {length!r}",
            fix="Raise the limit's norm, or correct the anchor.",
        )
    middle = float(prior.centre @ x)
    parts = prior.width * np.abs(x)
    reach = float(parts.sum()) if prior.boxed else prior.length * float(np.linalg.norm(parts))
    rounding = ANCHOR * (abs(cost) + float(np.abs(prior.centre) @ np.abs(x)) + reach)
    if not prior.plain and abs(cost - middle) > reach + error + rounding:
        raise InvalidInput(
            "anchor cost is impossible under the prior",
            where=where,
            got=f"cost {cost!r} where the prior allows {middle - reach:.6g} … {middle + reach:.6g}",
            fix="Widen the prior, correct the anchor, or give it a tolerance.",
        )


def _check_together(anchors: Anchors, limits: tuple[Limit, ...], priors: Sequence[Prior], where: str) -> None:
    """Some γ explains all anchors of a step, up to tolerances and misspecification (by a small linear program)."""
    from scipy.optimize import linprog

    x = anchors.features
    for j, (limit, prior) in enumerate(zip(limits, priors, strict=True)):
        size = float(np.abs(anchors.cost[:, j]).max()) + prior.norm * float(np.linalg.norm(x, axis=1).max())
        if size == 0.0:
            continue
        cost, most = anchors.cost[:, j] / size, (anchors.tolerance[:, j] + limit.misspecification) / size
        low, high = (prior.centre - prior.width) / size, (prior.centre + prior.width) / size
        if not prior.boxed:
            low, high = -prior.length * prior.width / size, prior.length * prior.width / size
        above, ones = np.vstack([x, -x]), np.ones((2 * len(x), 1))
        found = linprog(
            np.append(np.zeros(x.shape[1]), 1.0),
            A_ub=np.hstack([above, -ones]),
            b_ub=np.concatenate([cost + most, most - cost]),
            bounds=[*zip(low.tolist(), high.tolist(), strict=True), (0.0, None)],
        )
        if found.status == 0 and (beyond := float(found.fun or 0.0)) > ANCHORS_TOGETHER:
            raise InvalidInput(
                "anchors contradict each other",
                where=f"{where}, limit {limit.name!r}",
                got=f"no γ comes nearer than {beyond * size:.3g} to all of them, beyond tolerance",
                fix="Correct their costs, give them tolerances, or declare a misspecification of the limit.",
            )


def _check_same_anchors(graph: LayeredGraph, features: FeatureNames) -> None:
    costed = graph.anchors if graph.terminal.cost_features is not None else graph.anchors[:-1]
    first = costed[0]
    for h, anchors in enumerate(costed):
        if (anchors is None) != (first is None) or (
            anchors is not None and first is not None and not all(map(np.array_equal, anchors.parts, first.parts))
        ):
            raise InvalidInput(
                "anchors differ although costs are stationary",
                where=f"steps 0 and {h}",
                got=f"{_told(first, features)} and {_told(anchors, features)}",
                fix="Stationary costs share one regression: give all steps the same anchors, or none.",
            )


def _told(anchors: Anchors | None, features: FeatureNames) -> str:
    if anchors is None:
        return "none"
    rows = anchors.features.tolist() if features is None else [dict(row_entries(features, x)) for x in anchors.features]
    each = list(zip(rows, anchors.cost.tolist(), strict=True))
    return shown(each[0] if len(each) == 1 else each)
