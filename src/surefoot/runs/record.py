"""What a run records, as columns: one row per episode, one row per plan, and whether its confidence sets held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.storage import archive as npz
from surefoot.tolerances import EVENT
from surefoot.worlds.world import World


class EpisodeRow(NamedTuple):
    """One episode, as a callback sees it; the entries are those of :class:`EpisodeTable`."""

    episode: int  # from 1
    plan: int  # its number
    value: float
    regret: float
    reward: float
    violations: int
    certified: int
    gap: float
    to_gain: float
    margin: FloatArray  # (m,)
    highest: FloatArray  # (m,)


_EMPTY = {
    **{"start": 0, "plan": 0, "value": np.nan, "regret": np.nan, "reward": 0.0, "violations": 0, "certified": 0},
    **{"gap": np.inf, "to_gain": np.inf, "margin": np.inf, "highest": -np.inf},
}


@dataclass(eq=False)
class EpisodeTable:
    """A row per episode, filled as they are played."""

    start: IntArray  # (K,)   index of the start state
    plan: IntArray  # (K,)   number of the plan in force, 0 for agents that make none
    value: FloatArray  # (K,)   exact value of the policy played
    regret: FloatArray  # (K,)   best safe value − value
    reward: FloatArray  # (K,)   reward collected
    violations: IntArray  # (K,)   steps whose true cost broke a limit, or that entered a forbidden state
    certified: IntArray  # (K,)   certified pairs
    gap: FloatArray  # (K,)   what further certificates may add, by the plan's own bounds; ∞ for agents that make none
    to_gain: FloatArray  # (K,)   what is still to be gained at most, likewise
    margin: FloatArray  # (K, m) smallest bound − true cost over the episode's steps; 0 where rounding alone exceeds it
    highest: FloatArray  # (K, m) largest measured cost

    @classmethod
    def blank(cls, episodes: int, n_limits: int) -> EpisodeTable:
        """An empty table; refused if no file could hold it."""
        most = npz.MAX_BYTES // (8 * (9 + 2 * n_limits))
        if episodes > most:
            raise InvalidInput("too many episodes for one run", got=f"{episodes:.3g}", fix=f"Play {most} at most.")
        sizes = {"margin": (episodes, n_limits), "highest": (episodes, n_limits)}
        return cls(**{name: np.full(sizes.get(name, episodes), empty) for name, empty in _EMPTY.items()})

    def columns(self) -> dict[str, NDArray[Any]]:
        return dict(vars(self))

    def row(self, k: int) -> EpisodeRow:
        """The row of episode k, counted from 0."""
        columns = {name: column[k] for name, column in self.columns().items() if name not in ("start", "plan")}
        scalars = {name: value.item() if value.ndim == 0 else value.copy() for name, value in columns.items()}
        return EpisodeRow(episode=k + 1, plan=int(self.plan[k]), **scalars)

    def first(self, n: int) -> EpisodeTable:
        """The first n rows."""
        return EpisodeTable(**{name: column[:n] for name, column in self.columns().items()})


_KINDS = {"list[int]": np.int64, "list[float]": np.float64, "list[bool]": np.bool_}


@dataclass(eq=False)
class PlanTable:
    """A row per plan that was in force in at least one episode."""

    number: list[int] = field(default_factory=list)
    first_episode: list[int] = field(default_factory=list)
    certified_pairs: list[int] = field(default_factory=list)
    certified_states: list[int] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)  # V̄ − V
    to_gain: list[float] = field(default_factory=list)  # V̄ − (at least the value of the plan's policy)
    value: list[float] = field(default_factory=list)  # exact, from the episode's start
    consistent: list[bool] = field(default_factory=list)
    cost_event: list[bool] = field(default_factory=list)  # all true costs within [lower, upper]
    value_event: list[bool] = field(default_factory=list)  # all true μ within their ellipsoids

    def columns(self) -> dict[str, NDArray[Any]]:
        return {each.name: np.array(getattr(self, each.name), _KINDS[str(each.type)]) for each in fields(self)}

    @classmethod
    def of(cls, columns: dict[str, NDArray[Any]]) -> PlanTable:
        return cls(**{name: column.tolist() for name, column in columns.items()})


# --- did the confidence sets of a plan hold? (spec 8) ---------------------------------------------------


def cost_event(world: World, bounds: CostBounds) -> bool:
    """True if the true cost of every triplet, and of every last state, lies within [lower, upper]."""
    seen, rounding = set[tuple[int, int]](), EVENT * world.problem.cost_scales
    for truth, upper, lower in zip(world.costs, bounds.upper, bounds.lower, strict=True):
        if (id(truth), id(upper)) in seen:  # layers may share both
            continue
        seen.add((id(truth), id(upper)))
        if not _within(truth, upper, lower, rounding):
            return False
    if world.terminal_costs is None or bounds.terminal_upper is None or bounds.terminal_lower is None:
        return True
    has = world.problem.graph.terminal.has_cost
    return _within(world.terminal_costs[has], bounds.terminal_upper[has], bounds.terminal_lower[has], rounding)


def _within(truth: FloatArray, upper: FloatArray, lower: FloatArray, rounding: FloatArray) -> bool:
    return bool((truth <= upper + rounding).all() and (truth >= lower - rounding).all())


def value_event(world: World, ellipsoids: Sequence[ValueEllipsoid]) -> bool:
    """True if every true μ lies in its layer's ellipsoid."""
    return all(known.contains(mu) for known, mu in zip(ellipsoids, world.transition, strict=True))


def by_limit(columns: Mapping[str, NDArray[Any]], limits: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The columns, with each of shape (K, m) split into m named after the limits."""
    flat: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        if column.ndim == 1:
            flat[name] = column
        else:
            flat.update({f"{name}_{limit}": column[:, j] for j, limit in enumerate(limits)})
    return flat
