"""ablation/stall and ablation/stall-deep: two worlds in which bonuses for uncertainty stop working (spec 5).

One machine, run at a load v ≥ 0, whose strain is 0.2 + 0.3·v.

**Known.** The graph, the rewards, every load; that strain is linear in x = (1, v) with coefficients of length at most
L = 1; and what idling strains, 0.2 exactly (the anchor). **Hidden.** The slope, 0.3. **Limit.** strain ≤ 0.6, measured
with noise of scale σ = 0.1. **Fallback.** Idles, and so measures nothing: z = 0.

    idle  v = 0, strain 0.20        trial  v = 0.3, strain 0.29        best  v = 0.9, strain 0.47

A trial is certified before any data (0.2 + L·0.3 = 0.5 ≤ 0.6), best is not (0.2 + L·0.9 = 1.1). After n trials the
slope is known to about ± σ√18/(0.3·√n), so some hundred of them certify best. Each costs more than idling, and
tells less than the one before: the bonus w₂·R_h·ω of Idea II outbids the cost of the first few at most. Then nothing
is measured any more, no log-determinant grows, no plan is made again, and each episode loses what best would add:
linear regret. Directed exploration counts what waiting has cost, and finally pays for the trials.
"""

from __future__ import annotations

from surefoot.model.limit import Limit
from surefoot.worlds.named.ablation import Choice, Table, machine
from surefoot.worlds.world import World

__all__ = ["deep", "stall"]

IDLE_STRAIN = 0.2
LIMIT = Limit("strain", bound=0.6, noise=0.1, norm=1.0)
IDLE, TRIAL, BEST = 0.0, 0.3, 0.9  # loads


def _choice(load: float, reward: float, to: str = "end") -> Choice:
    return Choice(load, reward, {to: (1.0,)})


def stall() -> World:
    """ablation/stall: one decision. Idle pays 0.5, a trial 0.2, best 1.0; horizon 2.

    Best safe value 1.0, the fallback's 0.5.
    """
    choices = {"idle": _choice(IDLE, 0.5), "trial": _choice(TRIAL, 0.2), "best": _choice(BEST, 1.0)}
    return _world(2, {(0, "works"): choices})


def deep() -> World:
    """ablation/stall-deep: the trial is two steps off the way, and nothing on the way to it pays; horizon 4::

        step 0   works    idle 0.5, best 1.0 → works      leave 0.0 → yard
        step 1   works    idle 0.5, best 1.0 → works      yard: walk 0.0 → bench
        step 2   works    idle 0.5, best 1.0 → end        bench: rest 0.0, trial 0.0 → end

    The strain follows the same law at every step (stationary costs). Best safe value 3.0, the fallback's 1.5: an
    episode with a trial earns nothing at all, and its information is two steps ahead of the decision to leave.
    """
    works = {"idle": _choice(IDLE, 0.5, "works"), "best": _choice(BEST, 1.0, "works")}
    table = {
        (0, "works"): {**works, "leave": _choice(IDLE, 0.0, "yard")},
        (1, "works"): works,
        (1, "yard"): {"walk": _choice(IDLE, 0.0, "bench")},
        (2, "works"): {"idle": _choice(IDLE, 0.5), "best": _choice(BEST, 1.0)},
        (2, "bench"): {"rest": _choice(IDLE, 0.0), "trial": _choice(TRIAL, 0.0)},
    }
    return _world(4, table)


def _world(horizon: int, table: Table) -> World:
    return machine(
        horizon=horizon,
        start="works",
        table=table,
        limit=LIMIT,
        idle_strain=IDLE_STRAIN,
        kernel_weights=(1.0,),
        stationary_costs=True,
    )
