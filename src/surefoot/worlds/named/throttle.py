"""throttle: the machine of :mod:`thermal <surefoot.worlds.named.thermal>` with a continuous throttle.

**State.** The machine's heat, as there. **Action.** Idle, or full power: a ray from idle, whose intensity α in [0, 1]
is how far the throttle is open.

**Known.** With the throttle at α a step is one at full power with probability α, and an idle one otherwise, so that
what follows is affine in α; it pays 0.2 + 0.2·α + 0.6·heat. **Hidden**, as there: the climates' weights (μ), and

    temperature = ⟨γ, (1, heat, α, heat', α·heat')⟩ ≤ 0.60

**Against a grid.** With ``levels=64`` the same machine has 64 fixed openings instead of the ray: actions without an
intensity, the ordinary way. The ray has two actions in every state, and reaches intensities that lie between those.
"""

from __future__ import annotations

import numpy as np

from surefoot.checks import one_of, whole
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.named import thermal
from surefoot.worlds.named.thermal import NORM, TEMPERATURE, Machine
from surefoot.worlds.world import World

__all__ = ["throttle"]

IDLE, FULL = 0.0, 1.0
SIZES = {**thermal.SIZES, "large": (12, 13)}  # size -> (resolution, horizon)


def throttle(
    size: str = "small",
    *,
    levels: int | None = None,
    resolution: int | None = None,
    horizon: int | None = None,
    bound: float = 0.6,
    noise_scale: float = 0.1,
    noise: str | None = None,
    climate: tuple[float, float, float] = (0.5, 0.3, 0.2),
) -> World:
    """The throttle world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"small"`` or ``"medium"``: resolution and horizon of the thermal world of that size; or
            ``"large"``, a grid four times as fine as medium's.
        levels: None for a continuous throttle, a ray; otherwise the number of fixed openings, evenly from idle to full.
        resolution: how fine the grid of heats is, instead of the usual one.
        horizon: number of steps, instead of the usual one.
        bound: the highest temperature allowed.
        noise_scale: σ of the temperature sensor.
        noise: the kind of sensor noise, see :class:`~surefoot.World`.
        climate: the hidden weights of the three climates; they sum to one.
    """
    one_of("size", SIZES, size, "Choose from")
    if levels is not None:
        whole("levels", levels, 2)
    machine = Machine(SIZES[size][0] if resolution is None else resolution)
    openings = [IDLE, FULL] if levels is None else [i / (levels - 1) for i in range(levels)]

    def successors(h: int, heat: int, opening: float) -> list[int]:
        ends = [power for power, used in ((0, opening < FULL), (machine.strongest, opening > IDLE)) if used]
        return sorted({after for power in ends for after in machine.successors(heat, power)})

    def chances(h: int, heat: int, opening: float, after: int) -> list[float]:
        idle, full = (np.array(machine.climates(heat, power, after)) for power in (0, machine.strongest))
        return ((1.0 - opening) * idle + opening * full).tolist()  # type: ignore[no-any-return]

    problem = Problem.from_functions(
        horizon=SIZES[size][1] if horizon is None else horizon,
        start=0,
        actions=lambda h, heat: openings,
        successors=successors,
        reward=lambda h, heat, opening: min(1.0, 0.2 + 0.2 * opening + 0.6 * heat / machine.hottest),
        cost_features=lambda h, *triplet: machine.temperature_features(*triplet),
        transition_features=chances,
        fallback=lambda h, heat: IDLE,
        center=None if levels is not None else (lambda h, heat: IDLE),
        anchor=lambda h: (machine.temperature_features(0, IDLE, 0), TEMPERATURE[0]),
        limits=Limit("temperature", bound=bound, noise=noise_scale, norm=NORM),
        features=["one", "heat", "opening", "heat after", "opening x heat after"],
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=climate, cost=TEMPERATURE, noise=noise)
