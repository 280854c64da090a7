"""ablation: four worlds, one for each idea of the paper, in which a learner without that idea visibly fails; and two in
which the bonuses of all ideas stop working (:func:`stall`, :func:`deep`).

The four are one machine that can be loaded with v ≥ 0, small enough to follow on paper.

**State.** A named place. **Action.** Named, with a reward and a load v:

    idle  v = 0        trial  v = 3/4        full  v = 2        overload  v = 4

**Known.** The graph, the rewards, every load. **Hidden.** strain = g·v with g = 0.3 (features x = (v,)), and where
chance decides, the weights of its mixture. **Limit.** strain ≤ 1, measured with noise of scale σ = 0.01; g ≤ L = 1 is
declared, without an anchor. **Fallback.** Loads nothing, earns little, and measures nothing: z = 0.

So full (true strain 0.6) is safe and overload (1.2) is not, and the learner knows neither. Three facts carry the
arguments below (p = 0.05; the numbers are for horizon 4, where the bounds are widest):

1. *Before any trial* strain lies in ±L·v. A trial is certified (3/4 ≤ 1), with relative uncertainty ω = 2·L·v = 3/2;
   full is not (2 > 1). As long as only v = 0 is played, nothing changes: no expected next value depends on transition
   data here (one successor, or several of equal value). What a learner does then, it does forever.
2. *One trial certifies full.* Beside the ridge λN = 1.14 (spec 3, at the works of the first world), G = 0.5625,
   log det(A) − log det(λN) = 0.40 and 2·log(4/p) = 8.76 give R = 0.01·√9.16 = 0.030; with c = 0.01 R², g is known to
   ±R·√(1.01·(G + λN))/G = ±0.070, and upper(full) = 2·(ĝ + 0.070) = 0.741 where ĝ = 0.3. It would take noise of 9σ to
   push that above 1. Also, log det(A) grows by more than log 1.1, so the next episode has a new plan.
3. *Overload is never certified* while the bounds hold: its upper bound is at least its true strain, 1.2.

Where full is certified, it is the best safe action, no bonus can outbid it, and regret is zero. The bonuses (spec 5,
weights w₂, w₃, w₄ = 0.1, 0.02, 0.02; R_h = H − h) matter only before the first trial, when ω(trial) = 3/2 and
ω(idle) = 0. ``tests/statistical/test_ablation.py`` drops every idea in every world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["Choice", "deep", "future", "look_ahead", "machine", "past", "stall", "transition"]

STRAIN = 0.3  # g, hidden
LIMIT = Limit("strain", bound=1.0, noise=0.01, norm=1.0)
IDLE, TRIAL, FULL, OVERLOAD = 0.0, 0.75, 2.0, 4.0  # loads
STALL_LIMIT = Limit("strain", bound=0.6, noise=0.1, norm=1.0)
STALL_TRIAL, BEST, IDLE_STRAIN = 0.3, 0.9, 0.2  # of the two worlds in which bonuses stall


class Choice(NamedTuple):
    """What an action does: its load v, its reward, and where it leads."""

    load: float
    reward: float
    to: Mapping[str, tuple[float, ...]]  # state -> its probability under each known kernel


Table = Mapping[tuple[int, str], Mapping[str, Choice]]  # (step, state) -> action -> choice


def _choice(load: float, reward: float, to: str = "end") -> Choice:
    """One that leads to a single state, whichever kernel holds."""
    return Choice(load, reward, {to: (1.0, 1.0)})


def _works(idle: float, trial: float, full: float, overload: float) -> dict[str, Choice]:
    """Where the machine stands: the rewards of its four loads."""
    loads = {"idle": (IDLE, idle), "trial": (TRIAL, trial), "full": (FULL, full), "overload": (OVERLOAD, overload)}
    return {name: _choice(*each) for name, each in loads.items()}


def look_ahead() -> World:
    """ablation/look-ahead (Idea I): a road that is harmless for two steps, and then has no way out. Horizon 4::

        step 0   start    road 0.2 → road          shortcut 1.0 → bridge                 (all v = 0)
        step 1   road     walk 0.0 → works         bridge: left 0.0, right 0.0 → gorge   (all v = 0)
        step 2   works    idle 0.2, trial 0.3, full 0.9, overload 1.0 → end
                  gorge    climb 0.5 (v = 4), swim 0.0 (v = 5) → end

    Transitions are certain. **Fallback.** road, walk, idle.

    **With Idea I.** Nothing is ever certified in the gorge, where climb strains by 1.2 and swim by 1.5. So the bridge
    has no certified action, and neither is the shortcut certified. On the road a trial pays more than idling and is
    certified from the first episode, full from the second. Best safe value 0.2 + 0.9 = 1.1, the fallback's 0.4.

    **Without it.** Shortcut, left and right pass the test of their own step, and shortcut and climb earn 1.5. Bonuses
    do not help: ω is proportional to v, so the gorge's are at least twice the road's (in the first plan ω(climb) = 8
    and Q(shortcut) = 4.12, Q(road) = 1.01). So it breaks the limit in every episode.
    """
    return machine(
        horizon=4,
        start="start",
        table={
            (0, "start"): {"road": _choice(IDLE, 0.2, "road"), "shortcut": _choice(IDLE, 1.0, "bridge")},
            (1, "road"): {"walk": _choice(IDLE, 0.0, "works")},
            (1, "bridge"): {"left": _choice(IDLE, 0.0, "gorge"), "right": _choice(IDLE, 0.0, "gorge")},
            (2, "works"): _works(0.2, 0.3, 0.9, 1.0),
            (2, "gorge"): {"climb": _choice(OVERLOAD, 0.5), "swim": _choice(5.0, 0.0)},
        },
    )


def transition() -> World:
    """ablation/transition (Idea II): the trial that would open the door pays less than doing nothing. Horizon 3::

        step 0   start    walk 0.0 → works (v = 0)
        step 1   works    idle 0.40, trial 0.25, full 0.90, overload 1.00 → end

    Transitions are certain. **Fallback.** walk, idle. Nothing follows step 1, so Ideas III and IV add nothing there.

    **With Idea II.** Q(trial) = 0.25 + w₂·R_1·ω = 0.25 + 0.1·2·1.5 = 0.55 > 0.40 = Q(idle): the first episode tries,
    and from the second full is certified: 0.9 against 0.4. (Any w₂ > 0.05 does.)

    **Without it.** Q(trial) = 0.25 < 0.40 = Q(idle) in every plan. It idles forever: regret 0.5 per episode.
    """
    return machine(
        horizon=3,
        start="start",
        table={
            (0, "start"): {"walk": _choice(IDLE, 0.0, "works")},
            (1, "works"): _works(0.40, 0.25, 0.90, 1.00),
        },
    )


def future() -> World:
    """ablation/future (Idea III): a test bench that is seldom reached, and whose bonus is lost to clipping.

    Horizon 3; every last state pays 1::

        step 0   works    idle 0.10 → hall         visit 0.05 → bench or hall            (v = 0)
                           full 0.95, overload 1.00 → hall
        step 1   hall     idle 1.0 → end (v = 0)   bench: trial 1.0 → end

    **Known.** Also that g is the same at every step, so the bench teaches what full does at step 0; and that a visit
    finds the bench free with probability 0.1 on a busy day, 0.5 on a quiet one. **Hidden.** Three days in four are
    busy, so P(bench | visit) = 0.2. **Fallback.** idle, idle.

    From step 1 on, hall and bench both earn 2 = R_1, the most possible: V(hall) = V(bench) = 2, as the bonus of the
    trial, Q(trial) = 2 + 0.1·2·1.5, is clipped. So the expected next value at step 0 is 2 for every action.

    **With Idea III.** U(bench) = 1.5, U(hall) = 0, and the maximum over successors ignores how likely each is:
    Q(visit) = 0.05 + 2 + w₃·R_0·1.5 = 2.05 + 0.02·3·1.5 = 2.14 > 2.10 = Q(idle). It visits until the bench is free,
    five times on average, and that one trial certifies full: 2.95 against 2.10.

    **Without it.** Q(visit) = 2.05 < 2.10 = Q(idle) in every plan, with any weights of Ideas II and IV: regret 0.85
    per episode.

    Without the clipping, a small probability would not be enough: until transitions are known well, the expected next
    value leans to the best successor's, and Idea II sends the learner there for thousands of episodes (10,475 where
    hall and bench earn 0.3 instead of 2, and the bench is never free).
    """
    return machine(
        horizon=3,
        start="works",
        table={
            (0, "works"): {
                "idle": _choice(IDLE, 0.10, "hall"),
                "visit": Choice(IDLE, 0.05, {"bench": (0.1, 0.5), "hall": (0.9, 0.5)}),
                "full": _choice(FULL, 0.95, "hall"),
                "overload": _choice(OVERLOAD, 1.00, "hall"),
            },
            (1, "hall"): {"idle": _choice(IDLE, 1.0)},
            (1, "bench"): {"trial": _choice(TRIAL, 1.0)},
        },
        last_reward=1.0,
        kernel_weights=(0.75, 0.25),
        stationary_costs=True,
    )


def past() -> World:
    """ablation/past (Idea IV): the first decision needs a little more push than Idea II gives. Horizon 2::

        step 0   works    idle 0.40, trial 0.07, full 0.90, overload 1.00 → end

    Transitions are certain. **Fallback.** idle. Idling earns 0.33 more than a trial. Before the first trial Idea II is
    worth w₂·R_0·ω = 0.1·2·1.5 = 0.30, and Idea IV w₄·R_0·ω = 0.02·2·1.5 = 0.06 more.

    **With Idea IV.** Q(trial) = 0.07 + 0.36 = 0.43 > 0.40 = Q(idle): the first episode tries, and from the second full
    is certified: 0.9 against 0.4.

    **Without it.** Q(trial) = 0.37 < 0.40 in every plan. It idles forever: regret 0.5 per episode.

    **What this does not show** is that Idea IV does what no other can. ``LsviNew`` adds it at step 0 only (spec 5),
    with the same R_0·ω as Idea II, so there the two are one bonus of weight w₂ + w₄, and with
    ``ideas=("I", "II", "III"), explore=(0.12, 0.02, 0)`` the learner plays this world in the same way. At longer
    horizons, too, only V_1 tells the two apart: w₂ weighs on later steps as well, w₄ does not.
    """
    return machine(
        horizon=2,
        start="works",
        table={
            (0, "works"): _works(0.40, 0.07, 0.90, 1.00),
        },
    )


def stall() -> World:
    """ablation/stall: where bonuses for uncertainty stop working (spec 5). One decision, horizon 2: idle pays 0.5, a
    trial 0.2, best 1.0.

    **Known.** strain is linear in x = (1, v) with coefficients of length at most L = 1, and idling strains by 0.2 (the
    anchor). **Hidden.** The slope, 0.3. **Limit.** strain ≤ 0.6, measured with noise of scale σ = 0.1. **Fallback.**
    Idles, and so measures nothing.

        idle  v = 0, strain 0.20        trial  v = 0.3, strain 0.29        best  v = 0.9, strain 0.47

    A trial is certified before any data (0.2 + L·0.3 = 0.5 ≤ 0.6), best is not (0.2 + L·0.9 = 1.1). It will be when the
    slope is known to ± 0.13/0.9, after some seventy trials. Each trial costs more than idling and tells less than the
    one before: the bonus (w₂ + w₄)·R_0·ω of Ideas II and IV pays for the first ten at most. Then no log-determinant
    grows, no new plan is made, and every episode loses what best would add. Directed exploration weighs what best would
    add against what the trials cost, and pays for them.
    """
    choices = {"idle": _certain(IDLE, 0.5), "trial": _certain(STALL_TRIAL, 0.2), "best": _certain(BEST, 1.0)}
    return _stalling(2, {(0, "works"): choices})


def deep() -> World:
    """ablation/stall-deep: the trial is two steps off the way, and nothing on the way to it pays; horizon 4::

        step 0   works    idle 0.5, best 1.0 → works      leave 0.0 → yard
        step 1   works    idle 0.5, best 1.0 → works      yard: walk 0.0 → bench
        step 2   works    idle 0.5, best 1.0 → end        bench: rest 0.0, trial 0.0 → end

    Costs are stationary. Best safe value 3.0, the fallback's 1.5. An episode with a trial earns nothing, and the
    decision to leave is two steps ahead of what it teaches.
    """
    works = {"idle": _certain(IDLE, 0.5, "works"), "best": _certain(BEST, 1.0, "works")}
    table = {
        (0, "works"): {**works, "leave": _certain(IDLE, 0.0, "yard")},
        (1, "works"): works,
        (1, "yard"): {"walk": _certain(IDLE, 0.0, "bench")},
        (2, "works"): {"idle": _certain(IDLE, 0.5), "best": _certain(BEST, 1.0)},
        (2, "bench"): {"rest": _certain(IDLE, 0.0), "trial": _certain(STALL_TRIAL, 0.0)},
    }
    return _stalling(4, table)


def _certain(load: float, reward: float, to: str = "end") -> Choice:
    """The same as :func:`_choice`, in a world with one kernel."""
    return Choice(load, reward, {to: (1.0,)})


def _stalling(horizon: int, table: Table) -> World:
    return machine(
        horizon=horizon,
        start="works",
        table=table,
        limit=STALL_LIMIT,
        idle_strain=IDLE_STRAIN,
        kernel_weights=(1.0,),
        stationary_costs=True,
    )


def machine(
    *,
    horizon: int,
    start: str,
    table: Table,
    limit: Limit = LIMIT,
    idle_strain: float | None = None,
    last_reward: float = 0.0,
    kernel_weights: tuple[float, ...] = (0.5, 0.5),
    stationary_costs: bool = False,
) -> World:
    """The machine of a table, whose fallback is the first action everywhere; ``idle_strain``: what it strains without a
    load, which is known exactly (the anchor), and nothing unless it is given."""
    constant = [] if idle_strain is None else [1.0]

    def choice(h: int, state: Label, action: Label) -> Choice:
        return table[h, str(state)][str(action)]

    problem = Problem.from_functions(
        horizon=horizon,
        start=start,
        actions=lambda h, s: list(table[h, str(s)]),
        successors=lambda h, s, a: list(choice(h, s, a).to),
        reward=lambda h, s, a: choice(h, s, a).reward,
        cost_features=lambda h, s, a, s2: [*constant, choice(h, s, a).load],
        transition_features=lambda h, s, a, s2: choice(h, s, a).to[str(s2)],
        terminal_reward=lambda s: last_reward,
        fallback=lambda h, s: next(iter(table[h, str(s)])),
        anchor=None if idle_strain is None else (lambda h: ([1.0, 0.0], idle_strain)),
        limits=limit,
        stationary_costs=stationary_costs,
    )
    cost = [STRAIN] if idle_strain is None else [idle_strain, STRAIN]
    return World(problem, transition=kernel_weights, cost=cost)
