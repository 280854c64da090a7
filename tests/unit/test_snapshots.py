"""Snapshots: what is read is the plan that was kept; which ones are kept depends on the run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import UnreadableFile
from surefoot.plan.plan import Plan
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.plans_kept import Recorder
from surefoot.runs.record import PlanTable
from tests.drawn_worlds import certified_world


def recorded(world: sf.World, episodes: int, seed: int) -> dict[int, tuple[Plan, int]]:
    """Every plan of a run with its first episode."""
    plans: dict[int, tuple[Plan, int]] = {}
    agent = sf.LsviNew(world.problem)
    sf.run(agent, world, episodes, seed, on_plan=lambda plan, first: plans.update({plan.number: (plan, first)}))
    return plans


def test_the_recorder_of_a_run_sees_every_plan_in_force(seed: int) -> None:
    world = certified_world(60_000 + seed)
    plans = recorded(world, 80, seed)
    run = sf.run(sf.LsviNew(world.problem), world, 80, seed)
    assert list(plans) == run.plans_table.number
    assert [first for _, first in plans.values()] == run.plans_table.first_episode
    assert [plan.n_certified() for plan, _ in plans.values()] == run.plans_table.certified_pairs


@pytest.mark.parametrize("options", [{}, {"limits": 2, "starts": 2}])
def test_round_trip(options: dict[str, Any], seed: int, tmp_path: Path) -> None:
    world = certified_world(61_000 + seed, **options)
    problem = world.problem
    for number, (plan, first) in recorded(world, 30, seed).items():
        path = tmp_path / snapshots.file_name(number)
        snapshots.save_snapshot(plan, first, path)
        found = snapshots.load_snapshot(path, problem)
        assert (found.number, found.first_episode, found.consistent) == (number, first, plan.consistent)
        expected = {
            "certified_pairs": plan.certified_sets.pairs,
            "certified_states": plan.certified_sets.states,
            "upper": plan.bounds.upper,
            "lower": plan.bounds.lower,
            "q": [plan.q_row(h) for h in range(problem.horizon - 1)],
            "value": plan.values.value,
            "action": plan.values.action,
        }
        for name, layers in expected.items():
            kept = getattr(found, name)
            assert len(kept) == len(layers), name
            assert all(np.array_equal(a, b) for a, b in zip(kept, layers, strict=True)), name
        for name in ("terminal_upper", "terminal_lower"):
            there, here = getattr(found, name), getattr(plan.bounds, name)
            assert (there is None) == (here is None)
            assert there is None or np.array_equal(there, here)
    assert [found.number for found in snapshots.load_all(tmp_path, problem)] == list(recorded(world, 30, seed))
    assert snapshots.load_all(tmp_path / "nowhere", problem) == []


def test_the_same_plan_gives_the_same_bytes(seed: int, tmp_path: Path) -> None:
    world = certified_world(62_000 + seed)
    for name in ("a", "b"):
        plan, first = recorded(world, 20, seed)[1]
        snapshots.save_snapshot(plan, first, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_bad_file_is_named(seed: int, tmp_path: Path) -> None:
    world, path = certified_world(63_000 + seed), tmp_path / "plan-000001.npz"
    plan, first = recorded(world, 5, seed)[1]
    snapshots.save_snapshot(plan, first, path)
    with pytest.raises(UnreadableFile, match=r"another problem.*plan-000001.npz"):
        snapshots.load_snapshot(path, certified_world(63_500 + seed).problem)
    whole = path.read_bytes()
    for kept in (0, 10, len(whole) // 2):
        path.write_bytes(whole[:kept])
        with pytest.raises(UnreadableFile, match=r"plan-000001\.npz"):
            snapshots.load_snapshot(path, world.problem)
    path.unlink()
    with pytest.raises(UnreadableFile, match=r"plan-000001\.npz"):
        snapshots.load_snapshot(path, world.problem)


# ---------------------------------------------------------------- which are kept


def table(seed: int, n: int) -> PlanTable:
    """Plans as a run makes them: fast at first, ever more seldom, and certified pairs in jumps."""
    rng = np.random.default_rng(seed)
    first = np.cumsum(np.concatenate([[0], rng.geometric(np.linspace(1.0, 0.01, n - 1))]))
    jumps = np.where(rng.random(n) < 0.05, rng.integers(1, 30, n), 0)
    return PlanTable(
        number=list(range(1, n + 1)), first_episode=first.tolist(), certified_pairs=np.cumsum(jumps).tolist()
    )


def chosen(plans: PlanTable, most: int) -> list[int]:
    recorder = Recorder(Path("nowhere"), most)
    recorder.replay(plans)
    return recorder.numbers


@pytest.mark.parametrize("n", [1, 2, 7, 24, 25, 400])
def test_first_and_last_and_no_more_than_most(n: int, seed: int) -> None:
    kept = chosen(table(seed, n), 24)
    assert kept[0] == 1
    assert kept[-1] == n
    assert len(kept) == min(n, 24)
    assert kept == sorted(set(kept))


def test_they_are_spread_over_the_way(seed: int) -> None:
    """No part of the way, in log episodes or in certified pairs, is left out."""
    plans = table(seed, 400)
    kept = [number - 1 for number in chosen(plans, 24)]
    episodes = np.log1p(plans.first_episode)[kept]
    certified = np.array(plans.certified_pairs)[kept]
    assert np.diff(episodes).max() < 0.35 * np.ptp(episodes)
    largest_jump = np.diff(plans.certified_pairs).max()
    assert np.diff(certified).max() < max(0.35 * np.ptp(certified), largest_jump + 1)


def test_a_part_of_the_table_gives_what_was_kept_then(seed: int) -> None:
    plans = table(seed, 200)
    recorder = Recorder(Path("nowhere"), 10)
    for i in range(200):
        part = PlanTable(plans.number[: i + 1], plans.first_episode[: i + 1], plans.certified_pairs[: i + 1])
        recorder.replay(part)
        if i in (3, 50, 199):
            assert recorder.numbers == chosen(part, 10)


def test_a_large_problem_keeps_none() -> None:
    problem = sf.worlds.make("thermal/testing").problem
    assert snapshots.why_not_kept(problem) == ""
    large = sf.worlds.make("ladder/testing", triplets=6000).problem
    assert snapshots.why_not_kept(large) == "the report's explorer takes up to 20,000 triplets, and there are 24,000"
