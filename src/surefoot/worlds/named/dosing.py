"""dosing: one continuous dose per step, an unmeasured response, and a trap two steps later.

**State.** How much of the drug the patient carries, the burden, on an even grid from 0 to 1.
**Action.** Rest, or a dose: a ray from rest, whose intensity α in [0, 1] is the dose.

**Known.** At rest the burden falls by a level, or stays; a full dose adds one level or two. A dose α acts like a full
one with probability α and like rest otherwise, so the transitions are affine in α. From two levels below the highest
on, the body no longer clears the drug: the burden rises by itself, whatever is done. The probabilities are known
for fast and for slow patients. A step pays 0.2 + 0.6·α + 0.2·burden. At rest without a burden the marker reads
0.10 (the anchor).

**Hidden.** The mixture of fast and slow (μ), and how the toxicity marker follows from burden and dose (γ):

    toxicity = ⟨γ, (1, burden, α, α·burden)⟩

It does not depend on the burden after the step: one row per action. Neither changes from step to step.

**Limit.** toxicity ≤ 0.60, measured with noise of scale 0.1. **Fallback.** Rest.

**Why look-ahead matters.** Doses that keep the limit now may lead to two levels below the highest, where rest still
keeps it. From there the burden rises to the highest within two steps, and there every action breaks the limit. A
learner that looks one step ahead walks into it.

**Where the numbers come from.** They are invented, on a grid that can be followed on paper.
"""

from __future__ import annotations

from surefoot.checks import one_of, whole
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["SIZES", "dosing"]

SIZES: dict[str, tuple[int, int]] = {  # size -> (highest level, horizon)
    "testing": (5, 5),
    "small": (8, 10),
    "medium": (10, 14),
}
TOXICITY = (0.10, 0.55, 0.30, 0.10)  # γ, of length 0.64
NORM = 0.9  # what the user is sure of
REST, DOSE = "rest", "dose"


def dosing(
    size: str = "small",
    *,
    levels: int | None = None,
    horizon: int | None = None,
    bound: float = 0.6,
    noise_scale: float = 0.1,
    noise: str | None = None,
    patient: tuple[float, float] = (0.6, 0.4),
) -> World:
    """The dosing world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"small"`` or ``"medium"``: the usual grid and horizon.
        levels: the number of the highest level, instead of the usual one.
        horizon: number of steps, instead of the usual one.
        bound: the highest toxicity allowed.
        noise_scale: σ of the marker.
        noise: the kind of its noise, see :class:`~surefoot.World`.
        patient: the hidden weights of fast and slow; they sum to one.
    """
    one_of("size", SIZES, size, "Choose from")
    top = whole("levels", SIZES[size][0] if levels is None else levels, 4)

    def successors(h: int, burden: int, action: str) -> list[int]:
        return sorted(set(_after(burden, action, top)))

    def chances(h: int, burden: int, action: str, after: int) -> list[float]:
        """P(after) of a fast and of a slow patient: the lower level with 0.8 and with 0.3."""
        low, high = _after(burden, action, top)
        if low == high:
            return [1.0, 1.0]
        return [0.8, 0.3] if after == low else [0.2, 0.7]

    problem = Problem.from_functions(
        horizon=SIZES[size][1] if horizon is None else horizon,
        start=0,
        actions=lambda h, burden: [REST, DOSE],
        successors=successors,
        reward=lambda h, burden, action: 0.2 + 0.6 * (action == DOSE) + 0.2 * burden / top,
        cost_features=lambda h, burden, action: _features(burden / top, float(action == DOSE)),
        transition_features=chances,
        fallback=lambda h, burden: REST,
        center=lambda h, burden: REST,
        anchor=lambda h: (_features(0.0, 0.0), TOXICITY[0]),
        limits=Limit("toxicity", bound=bound, noise=noise_scale, norm=NORM),
        features=["one", "burden", "dose", "dose x burden"],
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=patient, cost=TOXICITY, noise=noise)


def _after(burden: int, action: str, top: int) -> tuple[int, int]:
    """The lower and the higher level that may follow."""
    if burden >= top - 2:  # no longer cleared
        burden += 1
    elif action == REST:
        burden -= 1
    low = burden + (1 if action == DOSE else 0)
    return max(0, min(low, top)), max(0, min(low + 1, top))


def _features(burden: float, dose: float) -> list[float]:
    return [1.0, burden, dose, dose * burden]
