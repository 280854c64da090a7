"""figure1: the paper's sketch of safe and unsafe subgraphs (fig:sketchsubgraph), as a world that can be played.

The paper's text fixes what is marked (*); its picture is not in the source, and the rest is chosen here. Steps 1 to 5
of the paper are steps 0 to 4; a last step, "end", takes what action is chosen at step 5 (the paper's G_2 chooses
one there).

**State.** The square, counted from the top: 1 at step 1, then 1, 2 or 3. **Action.** 1 or 2 (*)::

    step    1             2                          3                          4                          5
    square  1             1       2        3         1        2        3        1        2        3        1 to 3
    a = 1   1 or 2 (*)    1       1 or 2   2 or 3 *  1        1 or 2   3 (*)    1        1 or 2   3 (*)    end
    a = 2   3             2       3        3         1 or 2   2        2        1 or 2   2        3 (*)    end

**Known.** The graph; the rewards: action 2 earns 0.2, action 1 earns 0.5, and 1.0 in the third square of steps 3 to 5;
and the load v of every action, on which the limit depends:

    third square of step 5: 4    third square of steps 3 and 4: 0.5    squares 1 and 2 of step 2: 2    (both actions)
    elsewhere, action 1: 2, but 0 at step 1    elsewhere, action 2: 0.5

**Hidden.** strain = g·v with g = 0.3 at every step (features x = (v,)); and the weights, 1/2 each, of two known
kernels, in which the first of two possible squares has probability 0.8 and 0.2. **Limit.** strain ≤ 1, measured with
noise of scale 0.05; g ≤ 1 is declared. **Fallback.** Always action 2, the subgraph G_3 (the paper draws three and
describes two): squares 1, 3, 3, 2, 2, which are certain. Its loads of 0.5 are measured at every step, and
teach g.

So the third square of step 5 is unsafe (*): both actions strain by 1.2. Therefore:

- G_1, always action 1, is safe (*): it meets squares 1 and 2 only. It earns 2.5 and is the best safe subgraph, as the
  paper assumes when it explains Idea III: action 1 at step 1 is known to be harmless (v = 0), but it cannot be
  certified as long as squares 1 and 2 of step 2 are not (for all that is known, their v = 2 might strain by 2).
- G_2 is unsafe (*): action 2 at step 1, 1 at step 2, at step 3 action 2 in the second and 1 in the third square,
  then always 2. With probability 1/2 it reaches the unsafe square.
- Action 1 in the third square of step 3 is safe at step 3 (0.15 ≤ 1), and after it the unsafe square is visited,
  whatever is done at step 4 (*): the third square of step 4 is unsafe, too. It pays: 2, 1, 1, 1, 1 earns more than G_1.
"""

from __future__ import annotations

from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["figure1"]

END = "end"
STRAIN = 0.3  # g, hidden
LIMIT = Limit("strain", bound=1.0, noise=0.05, norm=1.0)

# (step, square) -> the squares that action 1 may lead to, and those that action 2 may lead to
SQUARES: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    (1, 1): ((1, 2), (3,)),
    (2, 1): ((1,), (2,)),
    (2, 2): ((1, 2), (3,)),
    (2, 3): ((2, 3), (3,)),
    (3, 1): ((1,), (1, 2)),
    (3, 2): ((1, 2), (2,)),
    (3, 3): ((3,), (2,)),
    (4, 1): ((1,), (1, 2)),
    (4, 2): ((1, 2), (2,)),
    (4, 3): ((3,), (3,)),
}


def figure1() -> World:
    """The sketch as a world of horizon 6; the module docstring describes it."""
    problem = Problem.from_functions(
        horizon=6,
        start=1,
        actions=lambda h, square: [1, 2],
        successors=_successors,
        reward=_reward,
        cost_features=lambda h, square, action, after: [_load(h + 1, square, action)],
        transition_features=_kernels,
        fallback=lambda h, square: 2,
        limits=LIMIT,
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=(0.5, 0.5), cost=[STRAIN])


def _successors(h: int, square: Label, action: Label) -> list[Label]:
    if h == 4:
        return [END]
    return list(SQUARES[h + 1, square][action - 1])


def _reward(h: int, square: Label, action: Label) -> float:
    if action == 2:
        return 0.2
    return 1.0 if square == 3 and h >= 2 else 0.5


def _load(step: int, square: Label, action: Label) -> float:
    if square == 3 and step >= 3:
        return 4.0 if step == 5 else 0.5
    if square < 3 and step == 2:
        return 2.0
    if action == 1:
        return 0.0 if step == 1 else 2.0
    return 0.5


def _kernels(h: int, square: Label, action: Label, after: Label) -> tuple[float, float]:
    """φ: the probability of a successor under either kernel."""
    possible = _successors(h, square, action)
    if len(possible) == 1:
        return (1.0, 1.0)
    return (0.8, 0.2) if after == possible[0] else (0.2, 0.8)
