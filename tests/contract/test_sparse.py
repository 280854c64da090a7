"""What every agent keeps on sparse problems as on dense ones: the same bits on every path, and no broken limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from tests.alike import AGENTS, assert_same_run, differences, same_state
from tests.sparse_worlds import COSTS, TRANSITIONS, sparse_worlds

KINDS = [*zip(COSTS, TRANSITIONS[:-1] + TRANSITIONS[:1], strict=True), ("state", "dense")]


def drawn(number: int, seed: int, **options: Any) -> sf.World:
    rng = np.random.default_rng([seed, number, 21])
    costs, transitions = KINDS[number % len(KINDS)]
    flags = {name: bool(rng.integers(2)) for name in ("stationary", "template", "anchors", "terminal")}
    flags |= {"limits": int(rng.integers(1, 3)), **options}
    return sparse_worlds(rng, costs=costs, transitions=transitions, **flags)[0]


@pytest.mark.parametrize("name", AGENTS)
def test_compiled_and_step_by_step_are_the_same_bits(name: str, seed: int, thorough: bool) -> None:
    """Every agent on half of the kinds, every kind under several agents; with --thorough, each on each."""
    turn = list(AGENTS).index(name)
    for number in range(0 if thorough else turn % 2, len(KINDS), 1 if thorough else 2):
        world = drawn(number, seed, horizon=5)
        compiled, stepped = (AGENTS[name](world.problem) for _ in range(2))
        one, two = sf.run(compiled, world, 60, seed), sf.run(stepped, world, 60, seed, compiled=False)
        assert_same_run(one, two)
        assert set(differences(compiled.checkpoint(), stepped.checkpoint())) <= {"/start"}


def test_so_they_are_with_the_papers_constants(seed: int) -> None:
    """One triplet per pair: the paper's constants need Δ_φ to be small."""
    rng = np.random.default_rng([seed, 22])
    world, _ = sparse_worlds(rng, costs="pair", transitions="pair", successors=1, anchors=True, stationary=True)
    options = {"episodes": 40, "initial_episodes": 5}
    one, two = (
        sf.run(sf.LsviNewPaper(world.problem, **options), world, 40, seed, compiled=compiled)
        for compiled in (True, False)
    )
    assert_same_run(one, two)


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_a_run_goes_on_from_its_checkpoint(number: int, seed: int, tmp_path: Path) -> None:
    world = drawn(number, seed)
    agents = [sf.LsviNew(world.problem) for _ in range(3)]
    sf.run(agents[0], world, 37, seed, checkpoint=tmp_path / "half.npz")
    resumed = sf.resume(tmp_path / "half.npz", agents[1], world, episodes=90)
    straight = sf.run(agents[2], world, 90, seed)
    assert_same_run(resumed, straight)
    same_state(agents[1], agents[2])


def test_a_checkpoint_of_other_blocks_is_refused(seed: int) -> None:
    one, two = (sf.LsviNew(drawn(number, seed).problem) for number in (0, 1))
    with pytest.raises(sf.errors.InvalidInput, match="another agent"):
        two.restore(one.checkpoint())


def test_a_saved_problem_runs_to_the_same_end(seed: int, tmp_path: Path) -> None:
    world = drawn(2, seed)
    again = sf.Problem.load(world.problem.save(tmp_path / "problem.npz"))
    assert again.digest == world.problem.digest
    one = sf.run(sf.LsviNew(world.problem), world, 60, seed)
    two = sf.run(sf.LsviNew(again), world, 60, seed)
    assert_same_run(one, two)


def test_why_speaks_of_sparse_plans(seed: int) -> None:
    world = drawn(2, seed)
    agent = sf.LsviNew(world.problem)
    sf.run(agent, world, 60, seed)
    told = [agent.plan.why(0, s, a) for s in world.problem.states(0) for a in world.problem.actions(0, s)]
    assert {each.certified for each in told} == {True, False}
    assert all(str(each) for each in told)


# --- a table of ten thousand states ---------------------------------------------------------------------


def factory(states: int = 3400, actions: int = 4) -> sf.World:
    """Every state is a machine with a rate of wear of its own; an action is a speed, and cost = rate × speed.

    One column per state for costs, one per triplet for transitions: dense tables would hold 27200² numbers and more.
    From a machine one comes to one of two others next to it, faster machines earn more.
    """
    rng = np.random.default_rng(7)
    speed = np.linspace(0.2, 1.0, actions)
    pairs, edges = states * actions, 2 * states * actions
    pair = np.arange(edges) // 2
    rate = rng.uniform(0.1, 0.9, states)
    p = rng.dirichlet([2.0, 2.0], pairs).reshape(-1)
    here = np.arange(pairs) // actions
    problem = sf.Problem.from_arrays(
        horizon=4,
        start=0,
        state_ptr=np.arange(states + 1) * actions,
        pair_ptr=2 * np.arange(pairs + 1),
        successors=((here[:, None] + [1, 7]) % states).reshape(-1),
        reward=np.tile(speed, states),
        cost_features=scipy.sparse.csr_array(
            (speed[pair % actions], pair // actions, np.arange(edges + 1)), shape=(edges, states)
        ),
        transition_features=scipy.sparse.eye_array(edges).tocsr(),
        fallback=np.zeros(states, np.int64),
        limits=sf.Limit("wear", bound=0.45, noise=0.002, norm=1.01 * float(np.linalg.norm(rate))),
        transition_norm=1.01 * float(np.linalg.norm(p)),
        stationary_costs=True,
        stationary_transitions=True,
    )
    return sf.World(problem, transition=p, cost=rate[None])


def test_a_table_of_many_columns_is_learned_without_a_violation(seed: int) -> None:
    world = factory()
    assert world.problem.graph.transition_dim == 27_200
    agent = sf.LsviNew(world.problem, replan_growth=1.0)
    run = sf.run(agent, world, 400, seed)
    assert run.violations.sum() == 0
    assert run.cost_event
    first, last = run.regret[:20].mean(), run.regret[-20:].mean()
    assert last < 0.5 * first, "it must learn, not only stay with the fallback"
    assert (run.regret[-20:] >= 0).all()


def test_who_does_not_look_breaks_the_limit_there(seed: int) -> None:
    """Negative control: the world has limits to break."""
    world = factory(states=400)
    run = sf.run(sf.agents.make("ucrl-vtr", world.problem, replan_growth=1.0), world, 40, seed)
    assert run.violations.sum() > 0
