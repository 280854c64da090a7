"""driving: a lorry follows a car, and soon cannot stop in time although nothing has happened yet.

**State.** (gap, own speed, lead speed) in m, m/s and m/s: the gap on a grid of 10 m up to the radar's range, speeds on
a grid of 5 m/s. A collision ends in the state (0, 0, 0), for good.
**Action.** "brake", "hold" or "speed up": 5 m/s less, the same or more within a step of 2 s. So the loaded lorry brakes
with 2.5 m/s² at most; the car in front can do 5.

**Known.** Speeds change first, then both drive on: gap' = gap + 2 s · (lead' − v'). A gap of 0 or less is a collision;
one beyond the radar's range reads as the range. The driver in front changes speed by −10, −5, 0 or +5 m/s; the
probabilities are known for three types: calm, hurried, nervous. A step pays v' as a share of the top speed. At 5 m/s,
50 m behind and not closing in, the risk is known (the anchor).

**Hidden.** The weights with which the types mix (μ), and how the risk that the warning system reports follows from
headway (γ), which depends on the load, the brakes and the road:

    risk = ⟨γ, (1, v', closing', −gap')⟩    closing' = max(0, v' − lead')    P(s'|s,a) = Σ_i μ_i P_i(lead'|lead)

Neither changes from step to step, and the problem says so.

**Limit.** risk ≤ 0.95, measured with noise of scale 0.05. In truth this asks for a headway: gap' ≥ 4 m + 1 s · v' +
0.5 s · closing'. The last state has no limit of its own. **Fallback.** Fall back and keep far away: drive at 5 m/s, and
stop when the gap is below 40 m.

**Why look-ahead matters.** The headway grows with the speed, the way to a standstill with its square. At 15 m/s and
20 m behind a car that is as fast, the limit is kept. But if the car brakes hard, then after 2 s the lorry does 10, the
car 5, and the gap is 10 m; after 4 s the lorry does 5, the car stands, and the gap is 0. No braking avoids that
(:func:`collision_is_inevitable`). A learner that looks one step ahead goes there immediately, because speed pays.

**Where the numbers come from.** Spacing policies of this form (a distance at standstill, a time headway, more when
closing in) are usual for adaptive cruise control. The types of driver and the scale of the risk are invented. No
triplet is nearer to the limit than 1 m of gap, so what is safe does not depend on rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.checks import one_of
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["ROADS", "Road", "collision_is_inevitable", "driving"]

State = tuple[int, int, int]  # gap in m, own speed and lead speed in m/s

STEP = 2  # s
CELL, GRADE = 10, 5  # m of gap and m/s of speed from one level to the next
CRASH: State = (0, 0, 0)
ACTIONS = {"brake": -GRADE, "hold": 0, "speed up": GRADE}
MANOEUVRES = (-2 * GRADE, -GRADE, 0, GRADE)  # of the car in front
DRIVERS = ((0.0, 0.1, 0.8, 0.1), (0.1, 0.1, 0.3, 0.5), (0.3, 0.3, 0.3, 0.1))  # calm, hurried, nervous: their chances

BOUND = 0.95
STANDSTILL, HEADWAY, REACTION = 4.0, 1.0, 0.5  # m, s and s: the headway that the limit asks for, hidden
NORM = 1.5  # what the user is sure of; γ is 1.4 long


@dataclass(frozen=True)
class Road:
    """What is known of the road and of both drivers."""

    top_speed: int  # m/s
    reach: int  # m, the largest gap that the radar tells from larger ones
    horizon: int
    start: State

    @property
    def range(self) -> float:
        """m of gap over which the risk falls by one."""
        return float(self.reach + CELL)

    def actions(self, state: State) -> list[str]:
        if state == CRASH:
            return ["hold"]
        return [name for name, change in ACTIONS.items() if 0 <= state[1] + change <= self.top_speed]

    def after(self, state: State, action: str, lead: int) -> State:
        """The next state, if the car in front goes over to the speed ``lead``."""
        own = state[1] + ACTIONS[action]
        gap = min(state[0] + STEP * (lead - own), self.reach)
        return (gap, own, lead) if gap > 0 else CRASH

    def drivers(self, state: State, action: str) -> dict[State, list[float]]:
        """Every possible next state, and φ: its P_i under each type of driver."""
        if state == CRASH:
            return {CRASH: [1.0] * len(DRIVERS)}
        found: dict[State, list[float]] = {}
        for number, change in enumerate(MANOEUVRES):
            lead = min(max(state[2] + change, 0), self.top_speed)
            chances = found.setdefault(self.after(state, action, lead), [0.0] * len(DRIVERS))
            for i, driver in enumerate(DRIVERS):
                chances[i] += driver[number]
        return found

    def risk_features(self, after: State) -> list[float]:
        """x = (1, v', closing', −gap'), speeds in 20 m/s and the gap in ranges of the radar."""
        gap, own, lead = after
        return [1.0, own / 20.0, max(0, own - lead) / 20.0, -gap / self.range]

    def risk_parameters(self) -> list[float]:
        """γ, hidden: risk = 0.95 + (4 m + 1 s·v' + 0.5 s·closing' − gap') / range."""
        return [BOUND + STANDSTILL / self.range, 20.0 * HEADWAY / self.range, 20.0 * REACTION / self.range, 1.0]

    def progress(self, state: State, action: str) -> float:
        """v' in parts of the top speed; nothing after a collision."""
        return 0.0 if state == CRASH else (state[1] + ACTIONS[action]) / self.top_speed

    def fallback(self, state: State) -> str:
        """Fall back: at most 5 m/s, and none below a gap of 40 m."""
        gap, own, _ = state
        if own > GRADE or (gap < 40 and own > 0):
            return "brake"
        return "speed up" if own == 0 and gap > 40 else "hold"


ROADS: dict[str, Road] = {
    "testing": Road(top_speed=15, reach=70, horizon=7, start=(50, 5, 10)),
    "small": Road(top_speed=20, reach=90, horizon=10, start=(60, 5, 10)),
    "medium": Road(top_speed=30, reach=150, horizon=13, start=(90, 5, 15)),
}


def driving(
    size: str = "small",
    *,
    bound: float = BOUND,
    noise_scale: float = 0.05,
    noise: str | None = None,
    drivers: tuple[float, float, float] = (0.5, 0.3, 0.2),
) -> World:
    """The driving world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"small"`` or ``"medium"``.
        bound: the highest risk allowed.
        noise_scale: σ of the warning system's risk.
        noise: the kind of its noise, see :class:`~surefoot.World`.
        drivers: the hidden weights of calm, hurried and nervous drivers; they sum to one.
    """
    road = ROADS[one_of("size", ROADS, size, "Choose from")]
    gamma = np.array(road.risk_parameters())
    known = road.risk_features((50, 5, 5))
    problem = Problem.from_functions(
        horizon=road.horizon,
        start=road.start,
        actions=lambda h, s: road.actions(s),
        successors=lambda h, s, a: list(road.drivers(s, a)),
        reward=lambda h, s, a: road.progress(s, a),
        cost_features=lambda h, s, a, after: road.risk_features(after),
        transition_features=lambda h, s, a, after: road.drivers(s, a)[after],
        fallback=lambda h, s: road.fallback(s),
        anchor=lambda h: (known, float(gamma @ known)),
        limits=Limit("risk", bound=bound, noise=noise_scale, norm=NORM),
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=drivers, cost=gamma, noise=noise)


def collision_is_inevitable(state: State) -> bool:
    """Whatever the lorry does, a collision may follow: brake as it may, the car can brake harder."""
    gap, own, lead = state
    while gap > 0 and own > 0:
        own, lead = own - GRADE, max(0, lead + MANOEUVRES[0])
        gap += STEP * (lead - own)
    return gap <= 0
