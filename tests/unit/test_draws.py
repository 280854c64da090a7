"""No agent is ever fed the same draws twice: what it has learned from goes with it, whatever happens."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder, UnreadableFile
from surefoot.runs.runner import resume
from tests.alike import AGENTS, differences
from tests.drawn_worlds import certified_world, paper_world


def thermal(**options: Any) -> sf.World:
    return sf.worlds.make("thermal/testing", **options)


def assert_same_agent(one: Any, two: Any) -> None:
    assert set(differences(one.checkpoint(), two.checkpoint())) <= {"/start"}  # of the last episode


def whole_and_parts(make: Any, world: sf.World, pieces: list[int], seed: int) -> None:
    whole, parts = make(world.problem), make(world.problem)
    one = sf.run(whole, world, sum(pieces), seed)
    runs = [sf.run(parts, world, pieces[0], seed)]
    runs += [sf.run(parts, world, n, compiled=bool(n % 2)) for n in pieces[1:]]
    for name, column in one.episodes_table.columns().items():
        together = np.concatenate([run.episodes_table.columns()[name] for run in runs])
        assert np.array_equal(together, column), name
    assert_same_agent(whole, parts)
    assert [run.manifest["before"]["seed"] for run in runs] == [sum(pieces[:i]) for i in range(len(pieces))]
    assert {run.manifest["seed"] for run in runs} == {seed}


@pytest.mark.parametrize(("turn", "name"), list(enumerate(AGENTS)))
def test_runs_one_after_the_other_are_one_run(turn: int, name: str, seed: int) -> None:
    noise = ("gaussian", "uniform", "rademacher")[turn % 3]
    world = certified_world(1000 * seed + turn, noise, starts=1 + turn % 2)
    whole_and_parts(AGENTS[name], world, [10, 1, 7, 10, 2, 11], seed)


def test_so_they_are_with_the_papers_constants(seed: int) -> None:
    world, options = paper_world(9000 + seed, starts=2)
    whole_and_parts(lambda problem: sf.LsviNewPaper(problem, **options), world, [5, 8, 20], seed)


def test_the_loop_that_everybody_writes(seed: int) -> None:
    """With no seed at all it is the run of the default seed, which is 0."""
    world = thermal()
    agent, whole = sf.LsviNew(world.problem), sf.LsviNew(world.problem)
    for _ in range(4):
        sf.run(agent, world, episodes=10)
    sf.run(whole, world, 40, 0)
    assert_same_agent(agent, whole)


# ---------------------------------------------------------------- refusals, each of which changes nothing


def refused(agent: Any, world: sf.World, words: str, *seed: Any) -> str:
    before = agent.checkpoint()
    with pytest.raises(InvalidInput, match=words) as error:
        sf.run(agent, world, 10, *seed)
    assert not differences(before, agent.checkpoint())
    return str(error.value)


@pytest.mark.parametrize("name", ["lsvi-new", "fallback"])
def test_a_seed_that_was_seen_is_refused(name: str, seed: int) -> None:
    world = thermal()
    agent = AGENTS[name](world.problem)
    sf.run(agent, world, 10, seed)
    sf.run(agent, world, 10, np.int64(seed + 5))
    for seen in (seed, seed + 5, np.int64(seed)):
        text = refused(agent, world, "already learned from this seed", seen)
        assert f"Leave seed out to continue its streams, or pass one that is new, such as {seed + 6}." in text
    assert sf.run(agent, world, 10, seed + 6).manifest["before"] == {"agent": 20, "seed": 0}
    assert sf.run(agent, world, 10).manifest["before"] == {"agent": 30, "seed": 10}


def test_another_world_of_the_problem_is_refused(seed: int) -> None:
    world, other = thermal(), thermal(climate=(0.4, 0.3, 0.3))
    assert world.problem.digest == other.problem.digest
    agent = sf.LsviNew(world.problem)
    sf.run(agent, world, 10, seed)
    for given in ([], [seed + 1]):
        assert "Make a new agent for this world." in refused(agent, other, "learned on another world", *given)
    sf.run(agent, thermal(), 10)  # made again, it is the same one


def by_env(agent: Any, world: sf.World, seed: int) -> None:
    """An episode as with a Gymnasium environment."""
    env = world.env()
    _, info = env.reset(seed=seed)
    agent.begin_episode(info["state"])
    over = False
    while not over:
        h, s = info["step"], info["state"]
        a = agent.act(h, s)
        _, _, over, _, info = env.step(list(world.problem.actions(h, s)).index(a))
        agent.observe(h, s, a, info["state"], info["cost"])
    if "terminal_cost" in info:
        agent.observe_terminal(info["state"], info["terminal_cost"])
    agent.end_episode()


def test_after_episodes_by_hand_a_seed_must_be_given(seed: int) -> None:
    """They may have come from any stream: env.reset(seed=0) draws as a run with seed 0 does."""
    world = thermal()
    agent = sf.LsviNew(world.problem)
    by_env(agent, world, 0)
    assert "Pass a seed" in refused(agent, world, "episodes that no run played: 1 of 1")
    sf.run(agent, world, 10, seed + 1)
    sf.run(agent, world, 10)  # these streams are known again
    by_env(agent, world, 0)
    refused(agent, world, "episodes that no run played: 1 of 22")
    refused(agent, world, "already learned from this seed", seed + 1)


def test_an_episode_under_way_is_refused(seed: int) -> None:
    world = thermal()
    agent = sf.LsviNew(world.problem)
    agent.begin_episode()
    with pytest.raises(OutOfOrder, match=r"already under way. End or abort it first"):
        sf.run(agent, world, 10, seed)
    assert agent.draws is None


# ---------------------------------------------------------------- what carries the record


def test_checkpoints_and_copies_carry_it(seed: int, tmp_path: Path) -> None:
    world = certified_world(2000 + seed, starts=2)
    agent, whole = sf.LsviNew(world.problem), sf.LsviNew(world.problem)
    sf.run(whole, world, 50, seed)
    sf.run(agent, world, 20, seed)
    restored = sf.LsviNew(world.problem)
    restored.restore(agent.checkpoint())
    for twin in (copy.deepcopy(agent), restored):
        refused(twin, world, "already learned from this seed", seed)
        sf.run(twin, world, 30)
        assert_same_agent(whole, twin)
    sf.run(agent, world, 10, checkpoint=tmp_path / "c")  # of a run that is itself a continuation
    later = sf.LsviNew(world.problem)
    run = resume(tmp_path / "c", later, world, episodes=30)
    assert_same_agent(whole, later)
    assert (run.episodes, run.manifest["before"]) == (30, {"agent": 20, "seed": 20})
    refused(later, world, "already learned from this seed", seed)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_that_fails_on_the_way_draws_nothing_twice(compiled: bool, seed: int) -> None:
    world = certified_world(4000 + seed, starts=2)
    agent, whole = sf.LsviNew(world.problem), sf.LsviNew(world.problem)

    def fail(plan: Any, first: int) -> None:
        if first > 5:
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        sf.run(agent, world, 60, seed, compiled=compiled, on_plan=fail)
    assert 5 < agent.episodes < 60
    sf.run(agent, world, 60 - agent.episodes)
    sf.run(whole, world, 60, seed)
    assert_same_agent(agent, whole)


def test_an_agent_is_in_one_run_at_a_time(seed: int) -> None:
    world = thermal()
    agent = sf.LsviNew(world.problem)
    inner: list[int] = []

    def meddle(plan: Any, first: int) -> None:
        if first > 5 and not inner:
            inner.append(first)
            sf.run(agent, world, 3)

    with pytest.raises(OutOfOrder, match="used elsewhere during its run"):
        sf.run(agent, world, 60, seed, on_plan=meddle)
    assert agent.draws is not None
    assert (agent.draws.played, agent.draws.episodes) == (inner[0] + 3, inner[0] + 3)


def test_agents_that_share_a_world_do_not_disturb_each_other(seed: int) -> None:
    world = thermal()
    agents = [sf.LsviNew(world.problem), sf.LsviNew(world.problem, 0.1)]
    for _ in range(3):
        for agent in agents:
            sf.run(agent, world, 10)
    alone = sf.LsviNew(world.problem)
    sf.run(alone, world, 30)
    assert_same_agent(alone, agents[0])


def test_a_sweep_refuses_the_checkpoint_of_another_seed(tmp_path: Path) -> None:
    """It would write one seed's run under the name of another, and pool them as if they were two."""
    from surefoot.sweeps import task as play
    from surefoot.sweeps.folder import RunPlace
    from surefoot.sweeps.spec import Contender

    world, spot = thermal(), RunPlace(tmp_path, "lsvi-new", 3)
    spot.folder.parent.mkdir(parents=True)
    sf.run(sf.LsviNew(world.problem), world, 20, 4, checkpoint=spot.checkpoint)
    task = play.Task(spot, Contender("lsvi-new"), 30, False, 10.0)
    with pytest.raises(UnreadableFile, match=r"the checkpoint is of another seed.*4. Delete it"):
        play.play_task(task, world, lambda done, line: None, lambda: False)
