"""thermal: a machine that earns more when it runs hot, and cannot be cooled once it is too hot.

**State.** The machine's heat, on an even grid from 0 (ambient) to 1.
**Action.** Its power u, on an even grid from 0 (idle) to 1 (full).

**Known.** One step adds 2/7·u of heat and removes 1/7, as far as there is any. From heat 4/7 on, the process heats
itself by 1/7 per step, and cooling can no longer keep up. The weather adds between nothing and 1/7 more; the
probability of each amount is known for three climates. A step pays 0.2 + 0.2·u + 0.6·heat. Idling at ambient heat, the
sensor reads 0.10 (the anchor).

**Hidden.** The weights with which the climates mix (μ), and how the temperature of the hottest part follows from the
heat before, the power, the heat after, and the last two together, since a hot winding resists more (γ):

    temperature = ⟨γ, (1, heat, u, heat', u·heat')⟩    P(heat'|heat,u) = Σ_i μ_i P_i(heat'|heat,u)

Neither changes from step to step, and the problem says so.

**Limit.** temperature ≤ 0.60, measured with noise of scale 0.1. The last state has no limit of its own, since nothing
runs after it. **Fallback.** Idle: the heat stays within 1/7 of ambient.

**Why look-ahead matters.** Full power at heat 2/7, or half power at 3/7, keeps the limit wherever it leads. It may lead
to 4/7. There, idling keeps the limit but no longer cools; bad weather takes the machine on to 5/7 and 6/7, and at 6/7
every action may break the limit. So 4/7 is safe only in the last two decisions, 5/7 only in the last one; and a learner
that looks one step ahead goes there at once, because heat pays.

**Where the numbers come from.** They are invented: a lumped thermal model on a grid that can be followed on paper. At
resolution 1 no triplet lies within 0.028 of the limit, so what is safe does not depend on rounding. ``resolution`` r
refines the grid of the same machine: 7r + 1 heats, 2r + 1 powers, at most r + 1 successors.

**With a mismatch** that is declared, learning starts up to 0.012, since the first step off the fallback has no more
room below the limit; with ``bound=0.65``, up to 0.037.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from surefoot.checks import one_of, whole
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["SIZES", "Machine", "thermal"]

SIZES: dict[str, tuple[int, int]] = {  # size -> (resolution, horizon)
    "testing": (1, 6),
    "small": (1, 8),
    "medium": (3, 13),
}
TEMPERATURE = (0.10, 0.10, 0.10, 0.45, 0.10)  # γ, of length 0.49
NORM = 0.8  # what the user is sure of: loose enough that full power must be learnt


@dataclass(frozen=True)
class Machine:
    """What is known of the machine. Heat is counted in levels of 1/(7r), power in steps of 1/(2r)."""

    resolution: int

    @property
    def hottest(self) -> int:
        return 7 * self.resolution

    @property
    def strongest(self) -> int:
        return 2 * self.resolution

    def coolest_next(self, heat: int, power: int) -> int:
        """The level that follows when the weather adds nothing."""
        feeds_itself = self.resolution if heat >= 4 * self.resolution else 0
        return heat + power - min(heat, self.resolution) + feeds_itself

    def successors(self, heat: int, power: int) -> list[int]:
        first = self.coolest_next(heat, power)
        return sorted({min(first + extra, self.hottest) for extra in range(self.resolution + 1)})

    def climates(self, heat: int, power: int, after: int) -> list[float]:
        """φ: P_i(after|heat, power) of each climate. Levels added: binomial(r, the climate's chance)."""
        u = power / self.strongest
        # A dry climate carries heat away, a humid one does so badly, a still one worse with every watt.
        chances = (0.1, 0.5, 0.3 + 0.6 * u)
        first, r = self.coolest_next(heat, power), self.resolution
        added = [k for k in range(r + 1) if min(first + k, self.hottest) == after]
        return [sum(math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in added) for q in chances]

    def temperature_features(self, heat: int, u: float, after: int) -> list[float]:
        """x = (1, heat, u, heat', u·heat'), u the power in parts of the strongest."""
        later = after / self.hottest
        return [1.0, heat / self.hottest, u, later, u * later]

    def earnings(self, heat: int, power: int) -> float:
        pay = 0.2 + 0.2 * power / self.strongest + 0.6 * heat / self.hottest
        return min(1.0, pay)  # rounding may pass 1


def thermal(
    size: str = "small",
    *,
    resolution: int | None = None,
    horizon: int | None = None,
    bound: float = 0.6,
    noise_scale: float = 0.1,
    noise: str | None = None,
    climate: tuple[float, float, float] = (0.5, 0.3, 0.2),
) -> World:
    """The thermal world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"small"`` or ``"medium"``: the usual resolution and horizon.
        resolution: how fine the grid is, instead of the usual one.
        horizon: number of steps, instead of the usual one.
        bound: the highest temperature allowed.
        noise_scale: σ of the temperature sensor.
        noise: the kind of sensor noise, see :class:`~surefoot.World`.
        climate: the hidden weights of the three climates; they sum to one.
    """
    one_of("size", SIZES, size, "Choose from")
    usual_resolution, usual_horizon = SIZES[size]
    machine = Machine(whole("resolution", usual_resolution if resolution is None else resolution, 1))
    problem = Problem.from_functions(
        horizon=usual_horizon if horizon is None else horizon,
        start=0,
        actions=lambda h, heat: range(machine.strongest + 1),
        successors=lambda h, heat, power: machine.successors(heat, power),
        reward=lambda h, heat, power: machine.earnings(heat, power),
        cost_features=lambda h, heat, power, after: machine.temperature_features(
            heat, power / machine.strongest, after
        ),
        transition_features=lambda h, *triplet: machine.climates(*triplet),
        fallback=lambda h, heat: 0,
        anchor=lambda h: (machine.temperature_features(0, 0.0, 0), TEMPERATURE[0]),
        limits=Limit("temperature", bound=bound, noise=noise_scale, norm=NORM),
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=climate, cost=TEMPERATURE, noise=noise)
