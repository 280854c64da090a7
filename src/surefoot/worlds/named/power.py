"""power: a load pocket whose lines must not be overloaded, with an expensive generator and a storage unit inside.

**State.** (demand level, charge): how far demand is from the usual at this time of day, and for how many periods the
storage can still discharge. A step is a period of the day: three hours (testing), two (case9), one (case30).
**Action.** (level of local generation, storage mode): the local generator runs at one of four levels, the storage
discharges (1), rests (0) or charges (-1).

**Known.** The case and where things stand in it; the usual demand of every period; that its level moves by at most one
per period, and how likely it does so on three types of day: mild, ordinary, harsh. Prices: whatever the pocket does not
make, a cheap generator far away supplies; local generation costs three times as much. A period pays the avoided share
of the bill that can be avoided, and charge left at midnight pays what discharging it would have paid:

    reward = (highest bill − bill) / (highest − lowest bill)    bill = (3 − 1) · local generation − storage output

**Hidden.** The weights with which the day types mix (μ), and how the network spreads power over its lines (γ):

    loading = flow / rating = ⟨γ, x⟩    x = (constant generation, demand, local generation, storage output) / 100 MW
    P(level'|level) = Σ_i μ_i P_i(level'|level)

γ is a line's row of the PTDF matrix (:mod:`surefoot.worlds.named.power_grid`), averaged over the case's generators and
over its loads, times 100 MW / rating. Demand is that of the level after: the dispatch is fixed before it is known.
Neither μ nor γ changes with the hour, and the problem says so.

**Limits.** Two per monitored line, forward and backward: ±loading ≤ 1, measured with noise of scale 0.05. Monitored is
every line that can be overloaded; no other comes above 0.79, without or with losses. ``share`` bounds ‖γ‖: in testing
each line out of bus 1 has two others beside it and takes at most 0.6 of each entry of x, √4 · 0.6 = 1.2; in case9 line
1-4 takes all of it and 0.1 for losses, 2.2; in case30 line 6-8 takes all of what the pocket makes and a third of the
rest, 1.5.
**Fallback.** All local generation, all day; charge at night, discharge at the evening peak.

**Why look-ahead matters.** In testing, at the evening peak and the highest demand, all local generation leaves line 1-5
at 1.065; discharging brings it to 0.886. Discharging in the morning breaks nothing and saves two levels of local
generation. But from 9 to 12 o'clock, and from 15 o'clock on, charging overloads line 1-2 whatever else is done, and
from 12 to 15 unless demand is at its lowest. So an empty storage is unsafe from 9 o'clock on, although nothing is
overloaded before 18. A learner that looks one step ahead empties it.

**Where the numbers come from.** Buses, lines, reactances, ratings, loads, generators and coordinates are those of the
standard cases case6ww (testing), case9 and case30 in pandapower. Local generator, storage, prices, profiles and day
types are invented; demand has grown beyond what the cases were made for. In testing no action's worst loading lies
within 0.011 of the limit, so what is safe does not depend on rounding.

**A second truth** (sizes ``…-ac``, or ``truth="ac"``): pandapower's AC flow, with losses and voltage drops. Loading is
then the active power that enters a line at its first bus / rating. γ is the linear model with the least worst error
over all operating points, and this error is declared as misspecification: up to 0.0397 in testing, 0.0116 in case9,
0.0010 in case30. (The DC rows themselves miss AC flow by up to 0.275, 0.078 and 0.014.) The fallback keeps every limit
under AC flow, too: 0.992 at most.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from surefoot.checks import one_of
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.named.power_grid import PowerGrid, read_grid
from surefoot.worlds.world import World

__all__ = ["LAYOUTS", "SIZES", "Layout", "Picture", "grid", "picture", "power"]

State = tuple[int, int]  # demand level, charge
Action = tuple[int, int]  # level of local generation; storage: 1 discharge, 0 rest, -1 charge

UNIT = 100.0  # MW, of the features
DAY_TYPES = ((0.5, 0.4, 0.1), (0.2, 0.6, 0.2), (0.1, 0.4, 0.5))  # mild, ordinary, harsh: chances of -1, 0, +1 level
TRUTHS = ("dc", "ac")


@dataclass(frozen=True)
class Layout:
    """What is known of one power world: where things stand, and how a day goes."""

    case: str
    local: str  # bus of the local generator
    storage: str  # bus of the storage
    monitored: tuple[str, ...]  # lines with a limit: those that can be overloaded, or the pocket's others
    profile: tuple[float, ...]  # usual demand of each period of the day, in parts of the case's own
    swing: float  # of demand, from one level to the next
    levels: int  # of demand; the middle one is the usual
    generation: tuple[float, ...]  # MW, levels of local generation; the fallback runs the last
    discharge: float  # MW, over one period
    charge: float  # MW, over one period: what is lost on the way is the difference
    capacity: int  # periods of discharge that the storage holds
    night: tuple[int, ...]  # periods in which the fallback charges
    peak: tuple[int, ...]  # periods in which the fallback discharges
    share: float  # the length of a line's four PTDF entries is at most this
    price: float = 3.0  # of local generation, in prices of the remote one

    def factor(self, period: int, level: int) -> float:
        """Demand in a period, in parts of the case's own."""
        return round(self.profile[period] + self.swing * (level - self.levels // 2), 9)

    def output(self, mode: int) -> float:
        """MW out of the storage."""
        return self.discharge * mode if mode > 0 else self.charge * mode

    def actions(self, state: State) -> list[Action]:
        modes = [mode for mode in (-1, 0, 1) if 0 <= state[1] - mode <= self.capacity]
        return [(level, mode) for level in range(len(self.generation)) for mode in modes]

    def successors(self, state: State, action: Action) -> list[State]:
        (demand, charge), (_, mode) = state, action
        reached = range(max(0, demand - 1), min(self.levels - 1, demand + 1) + 1)
        return [(later, charge - mode) for later in reached]

    def day_types(self, demand: int, later: int) -> list[float]:
        """φ: P_i(later|demand) of each day type; a step beyond the last level stays there."""
        steps = [step for step in (-1, 0, 1) if min(max(demand + step, 0), self.levels - 1) == later]
        return [sum(chances[step + 1] for step in steps) for chances in DAY_TYPES]

    def point(self, period: int, action: Action, after: State) -> tuple[float, float, float]:
        """The operating point (:mod:`surefoot.worlds.named.power_grid`): demand is that of the state after."""
        level, mode = action
        return self.factor(period, after[0]), self.generation[level], self.output(mode)

    def points(self) -> list[tuple[float, float, float]]:
        """Every operating point that can occur."""
        factors = {self.factor(h, level) for h in range(len(self.profile)) for level in range(self.levels)}
        outputs = {self.output(mode) for mode in (-1, 0, 1)}
        return sorted(itertools.product(factors, self.generation, outputs))

    def features(self, network: PowerGrid, point: tuple[float, float, float]) -> list[float]:
        """x = (constant generation, demand, local generation, storage output) / 100 MW."""
        factor, generation, output = point
        fixed, demand = float(network.generation.sum()), factor * float(network.demand.sum())
        return [fixed / UNIT, demand / UNIT, generation / UNIT, output / UNIT]

    def bill(self, action: Action) -> float:
        """What an action costs more than buying everything far away and leaving the storage alone, in MW."""
        level, mode = action
        return (self.price - 1.0) * self.generation[level] - self.output(mode)

    @property
    def bills(self) -> tuple[float, float]:
        """The lowest and the highest bill there is."""
        return self.bill((0, 1)), self.bill((len(self.generation) - 1, -1))

    def earnings(self, action: Action) -> float:
        low, high = self.bills
        return (high - self.bill(action)) / (high - low)

    def worth(self, charge: int) -> float:
        """Of what is left at midnight: as much as discharging it would have saved."""
        low, high = self.bills
        return charge * self.discharge / (high - low)

    def fallback(self, period: int, state: State) -> Action:
        charge, all_on = state[1], len(self.generation) - 1
        if period in self.peak and charge > 0:
            return all_on, 1
        if period in self.night and charge < self.capacity:
            return all_on, -1
        return all_on, 0


LAYOUTS: dict[str, Layout] = {
    "testing": Layout(
        case="case6ww",
        local="5",
        storage="6",
        monitored=("1-2", "1-4", "1-5"),
        profile=(0.85, 0.80, 1.05, 1.20, 1.15, 1.20, 1.30, 1.10),
        swing=0.05,
        levels=3,
        generation=(0.0, 10.0, 20.0, 30.0),
        discharge=24.0,
        charge=28.0,
        capacity=2,
        night=(0, 1),
        peak=(6,),
        share=1.2,
    ),
    "case9": Layout(
        case="case9",
        local="5",
        storage="9",
        monitored=("1-4", "9-4"),
        profile=(1.15, 1.10, 1.10, 1.30, 1.55, 1.60, 1.55, 1.55, 1.80, 1.80, 1.60, 1.30),
        swing=0.05,
        levels=3,
        generation=(0.0, 20.0, 40.0, 60.0),
        discharge=40.0,
        charge=48.0,
        capacity=3,
        night=(0, 1, 2),
        peak=(8, 9),
        share=2.2,
    ),
    "case30": Layout(
        case="case30",
        local="8",
        storage="8",
        monitored=("6-8", "8-28"),
        profile=(
            *(0.95, 0.90, 0.90, 0.90, 0.90, 0.95, 1.05, 1.15, 1.25, 1.30, 1.30, 1.30),
            *(1.25, 1.25, 1.20, 1.20, 1.25, 1.30, 1.40, 1.40, 1.40, 1.30, 1.20, 1.05),
        ),
        swing=0.05,
        levels=5,
        generation=(0.0, 2.5, 5.0, 7.5),
        discharge=6.0,
        charge=7.0,
        capacity=4,
        night=(0, 1, 2, 3, 4, 5),
        peak=(18, 19, 20),
        share=1.5,
    ),
}
SIZES: dict[str, tuple[str, str]] = {  # size -> layout, usual truth
    **{name: (name, "dc") for name in LAYOUTS},
    **{f"{name}-ac": (name, "ac") for name in LAYOUTS},
}


@functools.lru_cache(maxsize=16)
def grid(size: str) -> PowerGrid:
    """The grid of a size: buses, coordinates, lines and ratings, and the flows at any operating point."""
    layout = _layout(size)
    return read_grid(layout.case, local=layout.local, storage=layout.storage)


def power(
    size: str = "case9",
    *,
    truth: str | None = None,
    bound: float = 1.0,
    noise_scale: float = 0.05,
    noise: str | None = None,
    day: tuple[float, float, float] = (0.5, 0.3, 0.2),
) -> World:
    """The power world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"case9"``, ``"case30"``, or one of these with ``-ac`` behind it.
        truth: ``"dc"`` or ``"ac"`` flow, instead of the size's usual one.
        bound: the highest loading allowed, in parts of the rating.
        noise_scale: σ of the meters, in parts of the rating.
        noise: the kind of their noise, see :class:`~surefoot.World`.
        day: the hidden weights of mild, ordinary and harsh days; they sum to one.
    """
    layout, network = _layout(size), grid(size)
    truth = SIZES[size][1] if truth is None else truth
    one_of("truth", TRUTHS, truth, "Choose from")
    if truth == "dc":
        gamma = _both_ways(network.sensitivities()[_monitored(layout, network)] * UNIT)
        problem = _problem(layout, network, [0.0] * len(gamma), bound, noise_scale)
        return World(problem, transition=day, cost=gamma, noise=noise)
    fit = _fit(layout, network)
    problem = _problem(layout, network, fit.error.tolist(), bound, noise_scale)
    return World(problem, transition=day, cost=fit.gamma, noise=noise, deviation=fit.deviation(problem))


@dataclass(frozen=True, eq=False)
class Picture:
    """What a drawing of a power world needs besides the world: plain arrays of its grid, and loadings."""

    world: World
    layout: Layout
    grid: PowerGrid
    monitored: tuple[int, ...]  # lines with a limit, in the order of the limits

    def loading(self, h: int, state: State, action: Action, after: State) -> FloatArray:
        """(L,) of every line, positive from its first bus to its second: the truth where there is a limit, else DC."""
        edge = self.world.problem.edge_index(h, state, action, after)
        values: FloatArray = self.grid.dc_loading(np.array([self.layout.point(h, action, after)]))[0]
        values[list(self.monitored)] = self.world.costs[h][edge, ::2]
        return values


def picture(world: World) -> Picture:
    """The grid behind a power world that :func:`power` made."""
    for size, layout in LAYOUTS.items():
        names = [limit.name for limit in world.problem.limits]
        if names == _limit_names(layout) and world.problem.horizon == len(layout.profile) + 1:
            return Picture(world, layout, grid(size), tuple(_monitored(layout, grid(size))))
    raise InvalidInput("not a power world", got=repr(world))


def _layout(size: str) -> Layout:
    one_of("size", SIZES, size, "Choose from")
    return LAYOUTS[SIZES[size][0]]


def _monitored(layout: Layout, network: PowerGrid) -> list[int]:
    return [network.lines.index(name) for name in layout.monitored]


def _limit_names(layout: Layout) -> list[str]:
    return [f"{line} {way}" for line in layout.monitored for way in ("forward", "backward")]


def _problem(layout: Layout, network: PowerGrid, zetas: list[float], bound: float, noise_scale: float) -> Problem:
    """What is known; ``zetas`` are the declared misspecifications, one per limit."""
    ratings = np.repeat(network.rating[_monitored(layout, network)], 2).tolist()
    return Problem.from_functions(
        horizon=len(layout.profile) + 1,
        start=(layout.levels // 2, layout.capacity // 2),
        actions=lambda h, state: layout.actions(state),
        successors=lambda h, state, action: layout.successors(state, action),
        reward=lambda h, state, action: layout.earnings(action),
        cost_features=lambda h, state, action, after: layout.features(network, layout.point(h, action, after)),
        transition_features=lambda h, state, action, after: layout.day_types(state[0], after[0]),
        terminal_reward=lambda state: layout.worth(state[1]),
        fallback=layout.fallback,
        limits=[
            Limit(name, bound=bound, noise=noise_scale, norm=layout.share * UNIT / rating, misspecification=zeta)
            for name, rating, zeta in zip(_limit_names(layout), ratings, zetas, strict=True)
        ],
        stationary_costs=True,
        stationary_transitions=True,
    )


def _both_ways(rows: FloatArray) -> FloatArray:
    """(2k, …) from (k, …): each row, and its negative after it."""
    result: FloatArray = np.stack([rows, -rows], axis=1).reshape(-1, *rows.shape[1:])
    return result


@dataclass(frozen=True, eq=False)
class _Fit:
    """AC loadings as ⟨γ, x⟩ + rest, for m = 2 × monitored lines."""

    gamma: FloatArray  # (m, 4)
    error: FloatArray  # (m,) ζ: no |rest| is larger
    rest: dict[tuple[float, ...], FloatArray]  # features -> (m,)

    def deviation(self, problem: Problem) -> list[FloatArray]:
        """(E, m) for each decision step."""
        tables = (np.asarray(layer.cost_features) for layer in problem.graph.layers)
        return [np.array([self.rest[tuple(x)] for x in table.tolist()]) for table in tables]


def _fit(layout: Layout, network: PowerGrid) -> _Fit:
    """The linear model nearest to AC flow, over all operating points."""
    points = layout.points()
    x = np.array([layout.features(network, point) for point in points])
    loading = network.ac_loading(np.array(points))[:, _monitored(layout, network)]
    gamma = np.array([_nearest(x, column) for column in loading.T])
    rest = _both_ways((loading - x @ gamma.T).T)  # (m, N)
    error = np.ceil(np.abs(rest).max(axis=1) * 1e4) / 1e4  # four digits are what one would write down
    return _Fit(_both_ways(gamma), error, dict(zip(map(tuple, x.tolist()), rest.T, strict=True)))


def _nearest(x: FloatArray, loading: FloatArray) -> FloatArray:
    """(4,) the γ with the least worst error max |loading − ⟨γ, x⟩|: a linear program in γ and the error."""
    from scipy.optimize import linprog

    ones = np.ones((len(x), 1))
    found = linprog(
        c=[0.0] * x.shape[1] + [1.0],
        A_ub=np.block([[x, -ones], [-x, -ones]]),
        b_ub=np.concatenate([loading, -loading]),
        bounds=[(None, None)] * x.shape[1] + [(0.0, None)],
    )
    if found.x is None:
        raise InvalidInput("no linear model of the AC flow was found", got=found.message)
    result: FloatArray = found.x[:-1]
    return result
