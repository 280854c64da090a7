"""Checks that a truth fits what was declared; an error says where it does not.

Only a deviation from linearity may exceed its declaration, so that one can try what happens then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.naming import feature_name
from surefoot.model.problem import Problem
from surefoot.tolerances import LENGTH, TRUTH
from surefoot.worlds.truth_tables import ranges

NOISES = ("gaussian", "uniform", "rademacher")


def transition_parameters(problem: Problem, given: ArrayLike) -> FloatArray:
    """(H-1, dp) from (H-1, dp) or (dp,), finite, within ``transition_norm``, equal where declared so."""
    n, dim = problem.horizon - 1, problem.graph.transition_dim
    mu = _array("transition parameters", given, ((n, dim), (dim,)), (n, dim))
    _norms("transition parameters", mu[:, None, :], [("", problem.transition_norm)], "transition_norm")
    if problem.stationary_transitions:
        _equal_rows("transition parameters", mu, "stationary_transitions")
    return freeze(mu)


def cost_parameters(problem: Problem, given: ArrayLike) -> FloatArray:
    """(H, m, dc) from (H, m, dc) or (m, dc), or (dc,) with one limit; checked like the above."""
    horizon, m, dim = problem.horizon, len(problem.limits), problem.graph.cost_dim
    shapes: list[tuple[int, ...]] = [(horizon, m, dim), (m, dim)]
    if m == 1:
        shapes.append((dim,))
    gamma = _array("cost parameters", given, shapes, (horizon, m, dim))
    # Without a terminal cost the last entry is not used.
    used = gamma if problem.graph.terminal.cost_features is not None else gamma[:-1]
    norms = [
        (f", limit {limit.name!r}", prior.norm) for limit, prior in zip(problem.limits, problem.priors, strict=True)
    ]
    _within_priors(problem, used)
    _norms("cost parameters", used, norms, "the limit's norm")
    if problem.stationary_costs:
        _equal_rows("cost parameters", used, "stationary_costs")
    return freeze(gamma)


def _array(what: str, given: ArrayLike, shapes: Sequence[tuple[int, ...]], full: tuple[int, ...]) -> FloatArray:
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} must be numbers", got=repr(given)) from None
    if values.shape not in shapes:
        expected = " or ".join(map(str, shapes))
        raise InvalidInput(f"{what} have the wrong shape", got=f"{values.shape} where {expected} is expected")
    if not np.isfinite(values).all():
        raise InvalidInput(f"{what} are not finite", got=repr(values.tolist()))
    return np.broadcast_to(values.reshape(values.shape or (1,)), full).copy()


def _norms(what: str, values: FloatArray, bounds: Sequence[tuple[str, float]], declared: str) -> None:
    """``values`` (steps, parts, d): the length of every vector is within its part's bound."""
    with np.errstate(over="ignore"):  # an infinite length is refused right below
        sizes = np.linalg.norm(values, axis=-1)
    for part, (name, bound) in enumerate(bounds):
        large = np.flatnonzero(sizes[:, part] > bound * (1.0 + LENGTH))
        if len(large):
            h = int(large[0])
            raise InvalidInput(
                f"{what} are longer than declared",
                where=f"step {h}{name}",
                got=f"length {float(sizes[h, part])!r}, declared {bound!r}",
                fix=f"Raise {declared} in the problem, or shrink the parameters.",
            )


def _within_priors(problem: Problem, values: FloatArray) -> None:
    """``values`` (steps, m, dc): every coefficient lies in its limit's prior, and is 0 where the limit has none."""
    for j, (limit, prior) in enumerate(zip(problem.limits, problem.priors, strict=True)):
        if prior.plain:
            continue
        most = np.where(prior.width > 0.0, np.inf, 0.0)
        if prior.boxed:
            most = prior.width + LENGTH * (prior.width + np.abs(prior.centre))
        outside = np.argwhere(np.abs(values[:, j] - prior.centre) > most)
        if len(outside):
            h, i = (int(k) for k in outside[0])
            low, high = float(prior.centre[i] - prior.width[i]), float(prior.centre[i] + prior.width[i])
            raise InvalidInput(
                "cost parameters are outside the prior",
                where=f"step {h}, limit {limit.name!r}, {feature_name(problem.features, i)}",
                got=f"{float(values[h, j, i])!r}, declared {low:.6g} … {high:.6g}"
                if prior.boxed
                else f"{float(values[h, j, i])!r} for a feature that the limit does not depend on",
                fix="Widen the prior in the problem, or change the parameters.",
            )


def _equal_rows(what: str, values: FloatArray, flag: str) -> None:
    for h in range(1, len(values)):
        if not np.array_equal(values[h], values[0]):
            raise InvalidInput(
                f"{what} differ although the problem says {flag}",
                where=f"steps 0 and {h}",
                fix="Give one set of parameters for all steps, or drop the flag.",
            )


def deviations(problem: Problem, given: Sequence[ArrayLike]) -> tuple[FloatArray, ...]:
    """What is added to ⟨γ, x⟩: (R, m) per decision step and, optionally, (S, m) for the last one."""
    m, graph = len(problem.limits), problem.graph
    shapes = [(layer.n_rows, m) for layer in graph.layers]
    if graph.terminal.cost_features is not None:
        shapes.append((graph.terminal.n_states, m))
    if len(given) not in (len(graph.layers), len(shapes)):
        raise InvalidInput(
            "deviation has the wrong number of steps",
            got=f"{len(given)} arrays where {len(graph.layers)} are expected, one per decision step",
        )
    # An object given for several steps stays one object, so that their tables stay shared.
    known: dict[int, FloatArray] = {}
    for h, (values, shape) in enumerate(zip(given, shapes, strict=False)):
        if id(values) not in known:
            known[id(values)] = freeze(_array(f"deviations of step {h}", values, (shape,), shape))
        elif known[id(values)].shape != shape:
            raise InvalidInput(
                f"deviations of step {h} have the wrong shape",
                got=f"{known[id(values)].shape} where {shape} is expected",
            )
    return tuple(known[id(values)] for values in given)


def beyond_declaration(problem: Problem, deviation: Sequence[FloatArray]) -> bool:
    """True if some deviation exceeds its limit's declared misspecification."""
    allowed = np.array([limit.misspecification for limit in problem.limits]) + TRUTH * problem.cost_scales
    return any(bool((np.abs(values) > allowed).any()) for values in deviation)


def check_anchor_costs(problem: Problem, cost: FloatArray) -> None:
    """|⟨γ, x⁰⟩ − c⁰| is at most rounding, tolerance and declared misspecification (spec 3)."""
    for h, anchor in enumerate(problem.graph.anchors):
        if anchor is None:
            continue
        for (i, x), (j, limit) in product(enumerate(anchor.features), enumerate(problem.limits)):
            truth, declared = float(cost[h, j] @ x), float(anchor.cost[i, j])
            rounding = TRUTH * problem.priors[j].norm * float(np.linalg.norm(x))
            if abs(truth - declared) > rounding + limit.misspecification + anchor.tolerance[i, j]:
                raise InvalidInput(
                    "anchor is not true",
                    where=f"anchor of step {h}, limit {limit.name!r}",
                    got=f"declared cost {declared!r}, true cost {truth!r}",
                    fix="Declare the true cost, or change the cost parameters.",
                )


def check_fallback(
    problem: Problem,
    probabilities: Sequence[FloatArray],
    costs: Sequence[FloatArray],
    terminal_costs: FloatArray | None,
) -> None:
    """The fallback keeps every limit in every state it can reach by the declared successors (ass:knownseedsubgraph).

    Declared rather than true successors, since agents take all these pairs as certified (spec 4) and may get to such a
    state in another way.
    """
    for h, layer in enumerate(problem.graph.layers):
        rows = ranges(layer.row_ptr, layer.fallback_pairs())
        if layer.per_triplet:
            rows = rows[probabilities[h][rows] > 0.0]
        over = costs[h][rows] > problem.violation_thresholds[h]
        if over.any():
            at, j = (int(i) for i in np.argwhere(over)[0])
            row = int(rows[at])
            _refuse_fallback(problem, h, problem.naming.at_row(layer, h, row), j, float(costs[h][row, j]))
    if terminal_costs is None:
        return
    over = (terminal_costs > problem.violation_thresholds[-1]) & problem.graph.terminal.fallback_reached[:, None]
    if over.any():
        state, j = (int(i) for i in np.argwhere(over)[0])
        where = problem.naming.at_state(problem.horizon - 1, state)
        _refuse_fallback(problem, problem.horizon - 1, where, j, float(terminal_costs[state, j]))


def _refuse_fallback(problem: Problem, h: int, where: str, j: int, cost: float) -> None:
    limit = problem.limits[j]
    raise InvalidInput(
        "fallback is not safe",
        where=f"{where}, limit {limit.name!r}",
        got=f"true cost {cost!r}, bound {float(problem.bounds[h, j])!r}",
        fix="The fallback must keep every limit: change the fallback, the bound or the cost parameters.",
    )
