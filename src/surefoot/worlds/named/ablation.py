"""ablation: four worlds, one per idea of the paper, in which a learner without that idea visibly fails; and two in
which the bonuses of all ideas stop working (:func:`stall`, :func:`deep`).

The four are one machine that can be loaded with v ≥ 0, and each is small enough to follow on paper.

**State.** A named place; each world's own docstring lists the places.
**Action.** Named, with a reward and a load v. In all four worlds

    idle  v = 0        trial  v = 3/4        full  v = 2        overload  v = 4

**Known.** The graph, the rewards, every load. **Hidden.** How the strain follows from the load,
strain = g·v with g = 0.3 (features x = (v,), so dc = 1), and where chance decides, the weights of its mixture.
**Limit.** strain ≤ 1, measured with noise of scale σ = 0.01; g ≤ L = 1 is declared; no anchor, so the slack of
spec 5 is 1. **Fallback.** Loads nothing, earns little, and measures nothing: z = 0 adds nothing to G.

So full (true strain 0.6) is safe and overload (1.2) is not, and the learner knows neither. Three facts carry
every argument below; p = 0.05, and the numbers are for horizon 4, where the bounds are widest.

1. *Before any trial* only the prior bound speaks: strain lies in ±L·v. A trial is certified (3/4 ≤ 1), with
   relative uncertainty ω = 2·L·v = 3/2; full is not (2 > 1). As long as only v = 0 is played this stays so to
   the last digit, whatever the noise; and in these worlds no expected next value depends on transition data
   (one successor, or several of equal value). What a learner does then, it does for ever.
2. *One trial certifies full.* Beside the ridge λN = 1.14 (spec 3, at the works of the first world), G = 0.5625,
   log det(A) − log det(λN) = 0.40 and 2·log(4/p) = 8.76 give R = 0.01·√9.16 = 0.030; with c = 0.01 R², g is known to
   ±R·√(1.01·(G + λN))/G = ±0.070, and upper(full) = 2·(ĝ + 0.070) = 0.741 where ĝ = 0.3. It would take noise of 9σ to
   push that above 1. One trial
   also makes log det(A) grow by more than log 1.1, so the next episode has a new plan.
3. *Overload is never certified* while the bounds hold: its upper bound is at least its true strain, 1.2.

Where full is certified it is the best safe action and no bonus is left that could outbid it: regret is zero.
Of the bonuses (spec 5, weights w₂, w₃, w₄ = 0.1, 0.02, 0.02; R_h = H − h) each world needs the sizes only before the
first trial, when ω(trial) = 3/2 and ω(idle) = 0.

The first three worlds need exactly the idea that they are named for; the fourth needs Idea II as well, and cannot
do otherwise (see :func:`past`). ``tests/statistical/test_ablation.py`` drops every idea in every world.
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
    """ablation/look-ahead (Idea I): a road that is harmless for two steps, and then has no way out.

    **State and action**, horizon 4::

        step 0   start    road 0.2 → road          shortcut 1.0 → bridge                 (all v = 0)
        step 1   road     walk 0.0 → works         bridge: left 0.0, right 0.0 → gorge   (all v = 0)
        step 2   works    idle 0.2, trial 0.3, full 0.9, overload 1.0 → end
                  gorge    climb 0.5 (v = 4), swim 0.0 (v = 5) → end

    **Known, hidden, limit.** As for all (see the module docstring); transitions are certain. **Fallback.** road, walk,
    idle.

    **With Idea I.** Nothing is ever certified in the gorge: climb strains by 1.2 and swim by 1.5, and an upper bound
    is no less. So the bridge has no certified action, and the shortcut, which strains by nothing, is not certified
    either. On the road a trial pays more than idling (0.3 > 0.2) and is certified from the first episode; from the
    second, full is. Best safe value 0.2 + 0.9 = 1.1, the fallback's 0.4: the gap is 0.7.

    **Without it.** Shortcut, left and right pass the test of their own step (strain 0 ≤ 1). The shortcut and the
    climb earn 1.5, road and full 1.1. Bonuses do not save it: ω is proportional to v, so the gorge's are at least
    twice the road's (in the first plan ω(climb) = 8 and Q(shortcut) = 4.12, Q(road) = 1.01). So it goes down into
    the gorge, where something must be done and everything breaks the limit: a violation in every episode.
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
    """ablation/transition (Idea II): the trial that would open the door pays less than doing nothing.

    **State and action**, horizon 3::

        step 0   start    walk 0.0 → works (v = 0)
        step 1   works    idle 0.40, trial 0.25, full 0.90, overload 1.00 → end

    **Known, hidden, limit.** As for all (see the module docstring); transitions are certain. **Fallback.** walk, idle.

    The decision is at step 1, where Idea IV adds nothing, and nothing follows it, so that Idea III is zero there.
    The expected next value is exactly 0 after every action (the clip of S7 to a single successor).

    **With Idea II.** Q(trial) = 0.25 + w₂·R_1·ω = 0.25 + 0.1·2·1.5 = 0.55 > 0.40 = Q(idle): the first episode
    tries. From the second, full is certified: 0.9 against 0.4, the gap is 0.5. (Any w₂ > 0.05 does.)

    **Without it.** Q(trial) = 0.25 < 0.40 = Q(idle), in every plan, since idling measures nothing. The learner idles
    for ever, full stays uncertified, and each episode costs 0.5: linear regret.
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
    """ablation/future (Idea III): a test bench that is seldom reached, and whose bonus the clip swallows.

    **State and action**, horizon 3; every last state pays 1::

        step 0   works    idle 0.10 → hall         visit 0.05 → bench or hall            (v = 0)
                           full 0.95, overload 1.00 → hall
        step 1   hall     idle 1.0 → end (v = 0)   bench: trial 1.0 → end

    **Known.** Besides what the module docstring says: g is the same at every step, so that the bench teaches what
    full does at step 0; and a visit finds the bench free with probability 0.1 on a busy day, 0.5 on a quiet one.
    **Hidden.** Besides g: three days in four are busy, so P(bench | visit) = 0.2. **Limit.** As for all.
    **Fallback.** idle, idle.

    From step 1 on, hall and bench both earn 2 = R_1, all that can be earned: V(hall) = V(bench) = 2 exactly, as the
    bonus of the trial, Q(trial) = 2 + 0.1·2·1.5, is clipped. So the expected next value at step 0 is 2 for every
    action, whatever is believed of the transitions, and no v = 0 action has a bonus of its own.

    **With Idea III.** U(bench) = 1.5, U(hall) = 0, and the maximum over successors does not ask how likely each is:
    Q(visit) = 0.05 + 2 + w₃·R_0·1.5 = 2.05 + 0.02·3·1.5 = 2.14 > 2.10 = Q(idle). It visits until the bench is free,
    five times on average, and that one trial certifies full: 2.95 against 2.10, the gap is 0.85.

    **Without it.** Q(visit) = 2.05 < 2.10 = Q(idle) in every plan. The bench is never seen, and each episode costs
    0.85: linear regret. No weight of ideas II and IV, however large, changes that: the clip swallows the one, and the
    other multiplies ω(visit) = 0.

    A small probability alone, without the clip, would not do with the default optimism: until the transitions are
    known well, the expected next value leans to the best successor's, and II's bonus sends the learner there for
    thousands of episodes (10,475 where hall and bench earn 0.3 instead of 2, and the bench is never free).
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
    """ablation/past (Idea IV): the first decision needs a little more push than Idea II gives.

    **State and action**, horizon 2::

        step 0   works    idle 0.40, trial 0.07, full 0.90, overload 1.00 → end

    **Known, hidden, limit.** As for all (see the module docstring); transitions are certain. **Fallback.** idle.

    Idling earns 0.33 more than a trial. Before the first trial Idea II is worth w₂·R_0·ω = 0.1·2·1.5 = 0.30, and
    Idea IV another w₄·R_0·ω = 0.02·2·1.5 = 0.06: the difference lies between 0.30 and 0.36.

    **With Idea IV.** Q(trial) = 0.07 + 0.36 = 0.43 > 0.40 = Q(idle): the first episode tries. From the second,
    full is certified: 0.9 against 0.4, the gap is 0.5.

    **Without it.** Q(trial) = 0.37 < 0.40, in every plan. It idles for ever: 0.5 an episode, linear regret.

    **What this does not show** is that Idea IV does what no other can. In ``LsviNew`` it is added at step 0
    only (spec 5 says why), with the same R_0·ω as Idea II: there the two are one bonus of weight w₂ + w₄, and Idea II
    is needed here just as much (alone, IV's 0.06 is less than 0.33). With
    ``ideas=("I", "II", "III"), explore=(0.12, 0.02, 0)`` the learner plays this world exactly as the full one does,
    and so it is in every world of horizon 2: none can fail without Idea IV and not be cured by more of Idea II. At
    longer horizons, too, only V_1 tells the two apart: w₂ weighs on the later steps as well, w₄ does not.
    """
    return machine(
        horizon=2,
        start="works",
        table={
            (0, "works"): _works(0.40, 0.07, 0.90, 1.00),
        },
    )


def stall() -> World:
    """ablation/stall: one decision. Idle pays 0.5, a trial 0.2, best 1.0; horizon 2.

    Best safe value 1.0, the fallback's 0.5. This world and :func:`deep` show where bonuses for uncertainty stop working
    (spec 5). Their machine strains by 0.2 + 0.3·v.

    **Known.** The graph, the rewards, every load; that strain is linear in x = (1, v) with coefficients of length at
    most L = 1; and what idling strains, 0.2 exactly (the anchor). **Hidden.** The slope, 0.3. **Limit.** strain ≤ 0.6,
    measured with noise of scale σ = 0.1. **Fallback.** Idles, and so measures nothing: z = 0.

        idle  v = 0, strain 0.20        trial  v = 0.3, strain 0.29        best  v = 0.9, strain 0.47

    A trial is certified before any data (0.2 + L·0.3 = 0.5 ≤ 0.6), best is not (0.2 + L·0.9 = 1.1). It is certified
    when the slope is known to ± 0.13/0.9, after some seventy trials. Each costs more than idling, and tells less
    than the one before: the bonus (w₂ + w₄)·R_0·ω of Ideas II and IV outbids the cost of the first ten at most.
    Then nothing is measured any more, no log-determinant grows, no plan is made again, and each episode loses what
    best would add: linear regret. Directed exploration weighs what best would add against what the trials cost, and
    pays for them.
    """
    choices = {"idle": _certain(IDLE, 0.5), "trial": _certain(STALL_TRIAL, 0.2), "best": _certain(BEST, 1.0)}
    return _stalling(2, {(0, "works"): choices})


def deep() -> World:
    """ablation/stall-deep: the trial is two steps off the way, and nothing on the way to it pays; horizon 4::

        step 0   works    idle 0.5, best 1.0 → works      leave 0.0 → yard
        step 1   works    idle 0.5, best 1.0 → works      yard: walk 0.0 → bench
        step 2   works    idle 0.5, best 1.0 → end        bench: rest 0.0, trial 0.0 → end

    The strain follows the same law at every step (stationary costs). Best safe value 3.0, the fallback's 1.5: an
    episode with a trial earns nothing at all, and its information is two steps ahead of the decision to leave.
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
