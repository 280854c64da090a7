"""lower-bound: the two instances in the proof of the paper's Theorem 3 (thm:lowerbound), as worlds.

They differ only in the safety of one action, and the proof (app:thmlowerbound) argues that a learner must try it often
enough to tell them apart.

**State.** The one start; then, until the end, the number of the action that was chosen there.
**Action.** At the first step a(1) … a(n), n ≥ 5; a(i) leads to state i, which is never left. Then there is only "stay".
(The paper gives every state all actions, all with the same effect.)

**Known.** All of that; transitions are certain. In state i, and for choosing it, every step pays

    r = 1/8, 1, 0, 1/2, 1/2, …        for i = 1, 2, 3, 4, 5, …

**Hidden.** The cost of every step, which depends on i:

    i          1     2         3     4                              5, 6, …
    cost       c⁰    2c̄ − c⁰   c⁰    2c̄ − c⁰ − Δ  in instance 1     2c̄ − c⁰
                                     c⁰ + Δ       in instance 2

It is linear in x = (1, [i = 2], [i = 4], [i ≥ 5]), so dc = 4. **Limit.** cost ≤ c̄, measured with noise N(0, 1). The
paper needs costs in [0, 1], which its own numbers break (spec 7.17), so here c̄ = 1/2, c⁰ = 1/10, Δ = 1/5. The last step
has a reward and a cost like all others, so that an episode earns H·r.
**Fallback.** a(3), which pays nothing; its feature and its cost c⁰ are the anchor. a(1) has the same feature, so it is
known to be safe as well.

So a(2) and a(5), … are unsafe in both instances. a(4) is unsafe in instance 1, where a(1) is best with H/8, and safe in
instance 2, where it is best with H/2. Only a(4) and its state show the difference.

**What is claimed, and what holds.** The theorem claims a regret of at least H/(24(c̄ − c⁰ − Δ)²) for any safe learner in
one of the two, since a(4) must be played so often in instance 1 to tell them apart. But there a(4) breaks the limit.
What holds is this:

- A learner that is safe in instance 1 with probability 1 − p never plays a(4) there, and without a(4) the instances
  look the same to it, however small the noise. So with probability 1 − p its regret in instance 2 is at least (3/8)·H
  in every episode: linear in K, whatever 1/(c̄ − c⁰ − Δ)² is. LSVI-NEW does as well as that allows: it plays a(1) from
  the first episode, without regret in instance 1, and closes a quarter of the gap in instance 2. So lower-bound/2 does
  not promise, as other worlds do, that the gap can be closed.
- This does not contradict Theorem 2, since star convexity fails: nothing lies between the features of a(3) and a(4).
  On a ladder of actions between them, instance 2 could be learned (:mod:`surefoot.worlds.named.ladder`).
- Δ stands for the paper's Δ_φ, which by its own definition is 0 here, where every action has one successor.

The bound stays a claim (``surefoot.theory`` labels it so); no test relies on it. Its other term, d·H·√K/(16√2),
comes from problems without a limit and has no instance here.
"""

from __future__ import annotations

from typing import Any

from surefoot.checks import at_least, one_of, whole
from surefoot.errors import InvalidInput
from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["first", "second", "theorem3"]

INSTANCES = ("1", "2")
START, STAY = 0, "stay"


def first(**options: Any) -> World:
    """lower-bound/1: a(4) is unsafe. The options are those of :func:`theorem3`."""
    return theorem3("1", **options)


def second(**options: Any) -> World:
    """lower-bound/2: a(4) is safe, and no safe learner can know. The options are those of :func:`theorem3`."""
    return theorem3("2", **options)


def theorem3(
    instance: str = "1",
    *,
    horizon: int = 6,
    actions: int = 6,
    bound: float = 0.5,
    fallback_cost: float = 0.1,
    gap: float = 0.2,
    noise_scale: float = 1.0,
    noise: str | None = None,
) -> World:
    """One of the two instances; the module docstring describes them.

    Args:
        instance: ``"1"``, where a(4) is unsafe, or ``"2"``, where it is safe.
        horizon: H, the number of steps.
        actions: n, at least 5.
        bound: c̄.
        fallback_cost: c⁰, with 2c̄ − c⁰ ≤ 1.
        gap: Δ, below c̄ − c⁰.
        noise_scale: σ; the paper's is 1.
        noise: the kind of measurement noise, see :class:`~surefoot.World`.
    """
    one_of("instance", INSTANCES, instance, "Choose from")
    n = whole("actions", actions, 5)
    low, delta = at_least("fallback_cost", fallback_cost, 0.0), at_least("gap", gap, 0.0)
    high = 2.0 * bound - low
    if not high <= 1.0:
        raise InvalidInput(
            "costs would leave [0, 1]",
            got=f"2·bound − fallback_cost = {high:g}",
            fix="Lower bound, or raise fallback_cost.",
        )
    if not low + delta < bound:
        raise InvalidInput(
            "gap must be below bound − fallback_cost",
            got=f"{delta:g} and {bound - low:g}",
            fix="Lower gap or fallback_cost.",
        )
    fourth = high - delta if instance == "1" else low + delta
    gamma = (low, high - low, fourth - low, high - low)
    # What is known, whichever instance it is: every cost lies within [0, 1].
    norm = (low**2 + 3.0 * (1.0 - low) ** 2) ** 0.5

    problem = Problem.from_functions(
        horizon=horizon,
        start=START,
        actions=lambda h, i: range(1, n + 1) if h == 0 else [STAY],
        successors=lambda h, i, a: [_number(i, a)],
        reward=lambda h, i, a: _reward(_number(i, a)),
        cost_features=lambda h, i, a, after: _features(after),
        transition_features=lambda h, i, a, after: [1.0],
        terminal_reward=_reward,
        terminal_cost_features=_features,
        fallback=lambda h, i: 3 if h == 0 else STAY,
        anchor=lambda h: (_features(3), low),
        limits=Limit("cost", bound=bound, noise=noise_scale, norm=norm),
    )
    return World(problem, transition=[1.0], cost=gamma, noise=noise)


def _number(state: Label, action: Label) -> int:
    """Which of the numbers 1 … n a step belongs to: that of its action at the start, then that of its state."""
    return int(action if state == START else state)


def _reward(number: Label) -> float:
    return {1: 0.125, 2: 1.0, 3: 0.0}.get(number, 0.5)


def _features(number: Label) -> list[float]:
    """x = (1, [i = 2], [i = 4], [i ≥ 5])."""
    return [1.0, float(number == 2), float(number == 4), float(number >= 5)]
