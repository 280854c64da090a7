"""Cost features of a plant, and the ready-made ones: hat functions of a coordinate (spec 9).

A hat of an edge of the grid is 1 there, 0 at all other edges and linear between: the hats of a coordinate sum to one,
are affine in it on every cell, and add up to any function that is linear between the edges. Products of hats of
different coordinates are affine in each coordinate, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.functions import takes
from surefoot.model.plant.calls import Call
from surefoot.model.plant.cells import Cells, Endless
from surefoot.model.plant.given import make_function
from surefoot.tolerances import CELL

Measure = Callable[..., Any]
"""(h, x, u) → features, or (h, x, u, x_next) → features."""


@dataclass(frozen=True, eq=False)
class Measures:
    """The cost features of a plant, as one function of states, or of states and next states."""

    call: Call  # of states (n, P), or of states over next states (2n, P)
    of_next: bool  # some feature depends on the next state

    def at(self, h: int, x: FloatArray, u: Any, after: FloatArray | None) -> FloatArray:
        """(dc, P) at points (n, P), followed by points ``after`` (n, P), which only some features need."""
        if self.of_next and after is None:
            raise InvalidInput("the features depend on the next state", where=f"step {h}", fix="Give it, too.")
        return self.call.at(h, np.concatenate([x, after]) if self.of_next and after is not None else x, u)


@dataclass(frozen=True, eq=False)
class Hat:
    """Hat functions, which may be multiplied with each other and with functions of (h, x, u). Made by :func:`hat`."""

    factors: tuple[Any, ...]  # (name, knots) of a coordinate, or a function

    def __mul__(self, other: Hat | Measure) -> Hat:
        if not isinstance(other, Hat) and not callable(other):
            raise InvalidInput("a hat is multiplied with a hat or a function of (h, x, u)", got=f"{other!r:.80}")
        return Hat((*self.factors, *(other.factors if isinstance(other, Hat) else (other,))))

    __rmul__ = __mul__

    def at(self, cells: Cells, h: int, x: FloatArray, u: Any) -> list[FloatArray]:
        """The features of points (n, P) or of one (n,)."""
        found: list[Any] = [np.ones_like(x[0])]
        for factor in self.factors:
            if callable(factor):
                parts = factor(h, x, u)
                parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
            else:
                name, knots = factor
                parts = _hats(cells, name, knots, x)
            found = [one * other for one in found for other in parts]
        return found


def hat(coordinate: str, knots: Sequence[float] | None = None) -> Hat:
    """The hat functions of a coordinate of a plant, one for each knot, as entries of ``measures`` (spec 9).

    Args:
        coordinate: its name.
        knots: where they sit, among the edges of the plant's cells, the first and the last included; by default at all
            edges. Fewer knots are fewer features, and faster learning.

    Examples:
        >>> plant = sf.Plant(
        ...     state={"level": (0.0, 1.0, 4)}, inputs={"flow": [0.0, 0.1]}, horizon=3, start=[0.5],
        ...     models=[lambda h, x, u: x + u], measures=[sf.hat("level", [0, 0.5, 1]), lambda h, x, u: u],
        ...     reward=lambda h, x, u: u, fallback=0.0,
        ...     limits=[sf.Limit("spill", bound=0.9, noise=0.01, norm=2.0)])
        >>> plant.features(0, [0.75], 0.1).tolist()
        [0.0, 0.5, 0.5, 0.1]
    """
    return Hat(((str(coordinate), None if knots is None else tuple(float(k) for k in knots)),))


def _hats(cells: Cells, name: str, knots: tuple[float, ...] | None, x: FloatArray) -> list[FloatArray]:
    d = coordinate(cells, name)
    at = np.asarray(cells.edges[d]) if knots is None else np.array(knots)
    value = np.clip(x[d], at[0], at[-1])
    eye = np.eye(len(at))
    return [np.interp(value, at, eye[i]) for i in range(len(at))]


def coordinate(cells: Cells, name: str) -> int:
    """The index of a coordinate; an unknown name is refused."""
    cells.open_box({name: (None, None)})
    return cells.names.index(name)


def make_measures(given: Any, cells: Cells) -> Measures:
    """The features as one function; hats are checked against the grid."""
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    for item in items:
        if isinstance(item, Hat):
            _check_hat(item, cells)
        elif not callable(item):
            fix = "Give a function of (h, x, u) or (h, x, u, x_next), or a list of such functions and hats."
            raise InvalidInput("measures must be functions or hats", got=f"{item!r:.80}", fix=fix)
        elif not takes(item, 4):
            make_function("measures", item, "h, x, u")
    later = [not isinstance(item, Hat) and takes(item, 4) for item in items]

    def together(h: int, both: FloatArray, u: Any) -> Any:
        x, after, found = both[: cells.dim], both[cells.dim :], list[Any]()
        for item, of_next in zip(items, later, strict=True):
            parts = item.at(cells, h, x, u) if isinstance(item, Hat) else item(h, x, u, *([after] if of_next else []))
            if len(items) == 1:
                return parts
            found += list(parts) if isinstance(parts, (list, tuple)) else [parts]
        return found

    return Measures(Call("measures", together, None), any(later))


def _check_hat(item: Hat, cells: Cells) -> None:
    used: set[str] = set()
    for factor in item.factors:
        if callable(factor):
            continue
        name, knots = factor
        edges = cells.edges[coordinate(cells, name)]
        if name in used:
            rule = "hats of one coordinate cannot be multiplied: the product is not affine in it"
            raise InvalidInput(rule, got=repr(name))
        used.add(name)
        if isinstance(edges, Endless):  # beyond the last knot a hat is constant
            at = np.array(knots or ())
            edges = edges[np.unique(edges.along(at)[:, None] + np.arange(2))]
            knots = () if knots is None else knots
        if knots is None:
            continue
        strange = [k for k in knots if not np.isclose(edges, k, rtol=CELL, atol=CELL * np.ptp(edges)).any()]
        if strange or len(knots) < 2 or list(knots) != sorted(set(knots)):
            fix = (
                f"Choose from {np.round(edges, 9).tolist()[:12]}, in increasing order." if knots else "Give some knots."
            )
            raise InvalidInput("the knots of a hat are edges of cells", where=name, got=repr(strange or knots), fix=fix)
