"""The paper's sketch (fig:sketchsubgraph): what its text says of the subgraphs holds in the world."""

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact

# The paper's subgraphs as policies {(step, square): action}
G_1 = {(h, square): 1 for h in range(5) for square in (1, 2, 3)}
G_3 = {(h, square): 2 for h in range(5) for square in (1, 2, 3)}
G_2 = G_3 | {(1, 3): 1, (2, 3): 1}

STEPS = range(1, 6)  # the paper's; layers are one less


@pytest.fixture(scope="module")
def world() -> sf.World:
    return sf.worlds.make("figure1")


@pytest.fixture(scope="module")
def solution(world: sf.World) -> exact.Solution:
    return exact.solve(world)


def squares(world: sf.World, policy: dict[tuple[int, int], int]) -> list[set[int]]:
    """The squares of steps 1 to 5 that a policy may visit, found by following the declared successors."""
    reached = [{1}]
    for h in range(4):
        reached.append({s2 for s in reached[-1] for s2 in world.problem.successors(h, s, policy[h, s])})
    return reached


def strain(world: sf.World, step: int, square: int, action: int) -> float:
    pair = world.problem.pair_index(step - 1, square, action)
    edge = world.problem.graph.layers[step - 1].pair_ptr[pair]
    return float(world.costs[step - 1][edge, 0])


def test_five_steps_three_squares_two_actions(world: sf.World) -> None:
    problem = world.problem
    assert problem.horizon - 1 == len(STEPS)
    assert [sorted(problem.states(step - 1)) for step in STEPS] == [[1]] + [[1, 2, 3]] * 4
    assert all(problem.actions(step - 1, s) == (1, 2) for step in STEPS for s in problem.states(step - 1))
    assert all((p > 0).all() for p in world.probabilities)  # so the declared successors are the true ones


def test_g_1_is_safe_and_the_best(world: sf.World, solution: exact.Solution) -> None:
    """ "choosing action a=1 at all steps … G_1 is a safe subgraph, since the unsafe state … will not be visited" """
    assert squares(world, G_1) == [{1}, {1, 2}, {1, 2}, {1, 2}, {1, 2}]
    assert exact.violations(world, G_1) == (0.0, 0.0)
    assert exact.evaluate(world, G_1) == pytest.approx(2.5)
    assert solution.value == pytest.approx(2.5)
    assert all(solution.policy(h, s) == 1 for h, reached in enumerate(squares(world, G_1)) for s in reached)


def test_g_2_is_unsafe(world: sf.World) -> None:
    """The policy as the paper words it; "the unsafe state at h=5 could be visited"."""
    chosen = {(1, 1): 2, (2, 3): 1, (3, 2): 2, (3, 3): 1, (4, 2): 2, (4, 3): 2, (5, 2): 2, (5, 3): 2}
    assert squares(world, G_2) == [{1}, {3}, {2, 3}, {2, 3}, {2, 3}]
    visited = {(step, s) for step in STEPS for s in squares(world, G_2)[step - 1]}
    assert {(step, s): G_2[step - 1, s] for step, s in visited} == chosen
    assert exact.violations(world, G_2) == pytest.approx((0.5, 0.5))


def test_the_fallback_is_safe_and_certain(world: sf.World) -> None:
    assert squares(world, G_3) == [{1}, {3}, {3}, {2}, {2}]
    assert all(
        world.problem.fallback_action(h, s) == 2 for h, reached in enumerate(squares(world, G_3)) for s in reached
    )
    assert exact.violations(world, G_3) == (0.0, 0.0)
    assert exact.evaluate(world, G_3) == exact.fallback_value(world) == pytest.approx(1.0)


def test_the_third_square_of_step_5_is_the_unsafe_one(world: sf.World) -> None:
    over = {
        (step, s)
        for step in STEPS
        for s in world.problem.states(step - 1)
        if min(strain(world, step, s, a) for a in (1, 2)) > 1
    }
    assert over == {(5, 3)}


def test_no_way_out_after_action_1_in_the_third_square_of_step_3(world: sf.World, solution: exact.Solution) -> None:
    """ "safe for h=3, by doing so, the unsafe state at h=5 will be visited no matter what action … at h=4" """
    assert strain(world, 3, 3, 1) == pytest.approx(0.15)
    assert world.problem.successors(2, 3, 1) == (3,)
    for action in (1, 2):
        assert strain(world, 4, 3, action) <= 1
        assert world.problem.successors(3, 3, action) == (3,)
        trap = G_2 | {(1, 3): 2, (3, 3): action}  # comes to the third square for certain
        assert exact.violations(world, trap) == pytest.approx((1.0, 1.0))
    unsafe = {(h + 1, world.problem.states(h)[i]) for h in range(5) for i in np.flatnonzero(~solution.safe_states[h])}
    assert unsafe == {(4, 3), (5, 3)}
    assert not solution.safe_actions[2][world.problem.pair_index(2, 3, 1)]
    assert solution.safe_actions[2][world.problem.pair_index(2, 3, 2)]


def test_before_any_data_the_future_bars_the_first_action(world: sf.World) -> None:
    """Idea III's example: the safety at h=1 is precisely known, that of the first two states at h=2 is not."""
    plan = sf.LsviNew(world.problem).plan
    assert all(plan.upper(0, 1, 1, square) == plan.lower(0, 1, 1, square) == 0 for square in (1, 2))
    assert not any(plan.certified(1, square, action) for square in (1, 2) for action in (1, 2))
    assert not plan.certified(0, 1, 1)


def test_learnt_with_look_ahead_and_not_without(world: sf.World, seed: int) -> None:
    """Idea I: with it the learner finds G_1 and breaks nothing; without it it walks into the unsafe square."""
    run = sf.run(sf.LsviNew(world.problem), world, episodes=300, seed=seed)
    assert not run.violations.any()
    assert (run.regret[-100:] == 0).all()
    blind = sf.run(sf.LsviNew(world.problem, ideas=("II", "III", "IV")), world, episodes=300, seed=seed)
    assert (blind.violations > 0).sum() > 50
