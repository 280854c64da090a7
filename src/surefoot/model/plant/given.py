"""The arguments of a Plant, checked and brought into one form."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.checks import at_least
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.functions import takes
from surefoot.model.labels import shown
from surefoot.model.limit import Feature, Limit
from surefoot.model.naming import FeatureNames, check_features
from surefoot.model.plant.calls import Call
from surefoot.model.plant.cells import Cells
from surefoot.model.plant.reach import Reach
from surefoot.model.priors import canonical
from surefoot.model.reals import plain

Function = Callable[..., Any]
OFF_GRID = "the fallback's input is not on the grid"


def make_box(cells: Cells, what: str, given: Any) -> tuple[FloatArray, FloatArray]:
    """(low, high) of a point or a box, given by name or in order."""
    values = cells.in_order(what, given)
    if cells.dim == 1 and not isinstance(values, (list, tuple, np.ndarray)):
        values = [values]
    try:
        ends = [(v, v) if np.ndim(v) == 0 else tuple(v) for v in values]
        low, high = (cells.point(what, [end[i] for end in ends]) for i in (0, 1))
    except (TypeError, IndexError):
        raise InvalidInput(f"{what} must have a number or a range per coordinate", got=f"{given!r:.100}") from None
    if (low > high).any():
        raise InvalidInput(f"a range of {what} goes from low to high", got=f"{given!r:.100}")
    for end in (low, high):
        if cells.of(end[:, None])[0] == cells.outside:
            raise InvalidInput(f"{what} must lie in the box of states", got=cells.beyond(end))
    return freeze(low), freeze(high)


def make_function(name: str, given: Any, arguments: str) -> Function:
    """A function of the arguments that are named, such as "h, x, u"."""
    if not callable(given):
        raise InvalidInput(f"{name} must be a function of ({arguments})", got=f"{given!r:.80}")
    if not takes(given, arguments.count(",") + 1, unknown=True):
        raise InvalidInput(f"{name} must be a function of ({arguments})", got=f"one of {inspect.signature(given)}")
    function: Function = given
    return function


def make_last(given: Function | None) -> Function:
    if given is None:
        return lambda h, x: 0.0
    function = make_function("terminal_reward", given, "x")
    return lambda h, x: function(x)


def make_fallback(given: Any, index: Callable[[Any], int]) -> Function:
    """The fallback as a function; a single input means a function that always returns it."""
    if callable(given):
        return make_function("fallback", given, "h, x")
    try:
        index(given)
    except InvalidInput as error:
        raise InvalidInput(OFF_GRID, got=error.got, fix=f"{error.fix} Or give a function of (h, x).") from None
    return lambda h, x: given


def make_reach(cells: Cells, models: Any, disturbance: Any, reach: Function | None, slopes: Any, rays: bool) -> Reach:
    """Where the plant may go; ``models`` is one function or several."""
    n, names = cells.dim, cells.names
    functions = list(models) if isinstance(models, (list, tuple)) else [models]
    if not functions:
        raise InvalidInput("a plant needs a model", got="models is empty")
    if reach is not None and slopes is not None:
        raise InvalidInput("give reach or slopes, not both")
    calls = tuple(Call(f"model {i}", make_function("a model", f, "h, x, u"), n) for i, f in enumerate(functions))
    if isinstance(disturbance, Mapping):
        cells.open_box(dict.fromkeys(disturbance, (None, None)))  # names that do not exist are refused
        disturbance = [disturbance.get(name, 0.0) for name in names]
    around = [disturbance] * n if np.ndim(disturbance) == 0 else list(disturbance)
    if len(around) != n:
        raise InvalidInput("disturbance must be a number, or one per coordinate", got=f"{disturbance!r:.80}")
    half = np.array([at_least("disturbance", w, 0.0) for w in around])
    return Reach(calls, freeze(half), _image(reach, n, rays), _slopes(slopes, n, len(calls)), rays)


def _image(reach: Function | None, n: int, rays: bool) -> Call | None:
    """``reach`` as a function of the low and high ends, one below the other."""
    if reach is None:
        return None
    function = make_function("reach", reach, "h, low, high, u, to" if rays else "h, low, high, u")

    def ends(h: int, both: FloatArray, *inputs: Any) -> list[Any]:
        given = function(h, both[:n], both[n:], *inputs)
        try:
            low, high = given
            return [*low, *high]
        except (TypeError, ValueError):
            fix = "Give (low, high), each with a number per coordinate."
            raise InvalidInput("reach must give the ends of a box", got=f"{given!r:.100}", fix=fix) from None

    return Call("reach", ends, 2 * n)


def _slopes(given: Any, n: int, models: int) -> tuple[FloatArray, ...] | None:
    if given is None:
        return None
    table = plain(given)
    if table is not None and table.shape == (n, n):
        table = np.broadcast_to(table, (models, n, n))
    if table is None or table.shape != (models, n, n) or not np.isfinite(table).all() or (table < 0).any():
        got = f"{shown(given)} where ({n}, {n}) numbers that are at least 0 are expected"
        raise InvalidInput("slopes bound the derivatives of each next coordinate by each coordinate", got=got)
    return tuple(table)


def make_remainder(given: Any, limits: int) -> FloatArray:
    """(m,) per limit; empty where there is none."""
    numbers = plain(given)
    if numbers is None or numbers.shape not in ((), (limits,)):
        raise InvalidInput("remainder must be a number, or one per limit", got=shown(given))
    found = np.array([at_least("remainder", value, 0.0) for value in np.broadcast_to(numbers, (limits,))])
    return freeze(found if found.any() else np.empty(0))


def feature_names(given: Sequence[str] | None, limits: tuple[Limit, ...], extra: int, dim: int) -> FeatureNames:
    """The names of all ``dim`` cost features, the last ``extra`` of which are remainders."""
    names = check_features(given, dim - extra)
    return None if names is None else names + tuple(f"remainder of {limit.name}" for limit in limits[:extra])


def with_remainders(
    limits: tuple[Limit, ...], remainder: FloatArray, dim: int, names: FeatureNames
) -> tuple[Limit, ...]:
    """The limits, with a known coefficient for each remainder column (the last of ``dim``): 1 for its own limit or 0.

    So a cell's rows cost more by the remainder, and exact rows do not. A norm bounds the learned coefficients only, so
    the norm of the whole vector is larger.
    """
    if not len(remainder):
        return limits
    columns: Sequence[Feature] = range(dim) if names is None else names
    first, found = dim - len(limits), []
    for j, each in enumerate(limits):
        limit = canonical(each, first, None if names is None else names[:first])
        known = {columns[first + k]: 1.0 if k == j else 0.0 for k in range(len(limits))}
        own = columns[:first] if limit.features is None else limit.features
        learned: dict[Any, Any] = {} if limit.norm is None else dict.fromkeys(own, (-limit.norm, limit.norm))
        norm = None if limit.norm is None else math.nextafter(math.hypot(limit.norm, 1.0), math.inf)
        prior = {**learned, **_by_column(limit, own), **known}
        uses = None if limit.features is None else (*limit.features, *known)
        found.append(replace(limit, norm=norm, prior=prior, features=uses))
    return tuple(found)


def _by_column(limit: Limit, own: Sequence[Feature]) -> dict[Any, Any]:
    if isinstance(limit.prior, tuple):
        return dict(zip(own, limit.prior, strict=True))
    return dict(limit.prior or {})
