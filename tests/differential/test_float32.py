"""A problem stored in float32 gives the bits of the same numbers stored in float64: plans, runs, studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import surefoot as sf
from benchmarks.problems import learned, random_problem
from surefoot.audits.audit import audit
from surefoot.estimate import kernels
from surefoot.monitor.monitor import Monitor
from tests.alike import AGENTS, assert_same_run, differences, plan_record
from tests.drawn_worlds import certified_world, paper_world
from tests.monitored import told
from tests.narrow import upcast, upcast_world
from tests.studies import Calm, Plant, Quick, go_on

WORLDS: dict[str, dict[str, Any]] = {
    "anything": {},
    "last states with costs": {"terminal_costs": True, "anchors": False},
    "anchors": {"anchors": True, "stationary_costs": False, "terminal_costs": True},
    "one regression for all steps": {"stationary_costs": True, "stationary_transitions": True, "limits": 2},
    "not quite linear": {"misspecified": True, "terminal_costs": True, "anchors": True},
    "features for both": {"shared_features": True},
}


def drawn(seed: int, turn: int, every: bool) -> list[sf.World]:
    """A named world and some of every kind; unless ``every``, a third of the kinds, other ones at each turn."""
    made = [
        certified_world(1000 * seed + 88_000 + 20 * turn + i, **given)
        for i, given in enumerate(WORLDS.values())
        if every or i % 3 == turn % 3
    ]
    return [world.stored_in_float32() for world in (sf.worlds.make("thermal/testing"), *made)]


@pytest.mark.parametrize("agent", AGENTS)
def test_runs_have_the_same_bits_compiled_or_not(agent: str, seed: int, thorough: bool) -> None:
    """(That both ways are the same in float64: tests/unit/test_run.py.)"""
    for world in drawn(seed, list(AGENTS).index(agent), every=thorough):
        first, *others = (
            (learner, sf.run(learner, truth, 40, seed, compiled=compiled))
            for truth, compiled in ((world, True), (world, False), (upcast_world(world), True))
            for learner in [AGENTS[agent](truth.problem)]
        )
        for learner, run in others:
            assert_same_run(first[1], run)
            assert set(differences(first[0].checkpoint(), learner.checkpoint())) <= {"/start"}


def test_so_have_long_runs(seed: int) -> None:
    world = certified_world(97_000 + seed, anchors=True, terminal_costs=True, horizon=6).stored_in_float32()
    runs = [
        sf.run(sf.LsviNew(truth.problem, replan_growth=0.2), truth, 600, seed, compiled=compiled)
        for truth, compiled in ((world, True), (world, False), (upcast_world(world), True))
    ]
    assert runs[0].replans > 30
    for run in runs[1:]:
        assert_same_run(runs[0], run)


def test_so_has_the_papers_learner(seed: int) -> None:
    for number in range(4):
        world, options = paper_world(1000 * seed + 200 + number)
        world = world.stored_in_float32()
        one, two = (
            sf.run(sf.LsviNewPaper(truth.problem, **options, initial_episodes=3), truth, 30, seed)
            for truth in (world, upcast_world(world))
        )
        assert_same_run(one, two)
        step = sf.LsviNewPaper(world.problem, **options, initial_episodes=3)
        assert_same_run(one, sf.run(step, world, 30, seed, compiled=False))


def test_large_plans_have_the_same_bits_on_one_and_two_threads(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "WORTH_THREADS", 1)  # threads even for a small problem
    narrow = random_problem(20_000, 12, horizon=4, seed=seed).stored_in_float32()
    plans = []
    before = numba.get_num_threads()
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            for problem in (narrow, upcast(narrow)):
                agent = sf.LsviNew(problem)
                for name, array in learned(problem, rows=300, seed=seed)._data().items():
                    agent._data()[name][...] = array
                agent.replan()
                plans.append(agent.plan)
    finally:
        numba.set_num_threads(before)
    share = np.mean(np.concatenate(plans[0].certified_sets.pairs))
    assert 0.02 < share < 0.98, "a plan that certifies all or nothing would prove little"
    for plan in plans[1:]:
        assert not differences(plan_record(plans[0]), plan_record(plan))
    assert all(np.array_equal(plans[0].q_row(h), plan.q_row(h)) for plan in plans[1:] for h in range(3))


def test_a_truth_declared_in_float32_is_that_of_the_same_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a table takes several pieces."""
    monkeypatch.setattr("surefoot.model.features._PIECE", 1000)
    rng = np.random.default_rng(seed)
    narrow = random_problem(4000, 8, horizon=3, seed=seed).graph.layers[0]
    gamma = rng.normal(size=8) / 20
    tables = []
    for kind in (np.float32, np.float64):
        problem = sf.Problem.from_arrays(
            horizon=3,
            start=0,
            state_ptr=narrow.state_ptr,
            pair_ptr=narrow.pair_ptr,
            successors=narrow.successor,
            reward=narrow.reward,
            cost_features=narrow.cost_features.astype(np.float32).astype(kind),
            transition_features=np.full((narrow.n_edges, 1), 0.2, np.float32).astype(kind),
            fallback=np.zeros(narrow.n_states, np.int64),
            limits=sf.Limit("load", bound=1.0, noise=0.1, norm=1.0),
            transition_norm=6.0,
        )
        tables.append(sf.World(problem, transition=[1.0 / float(np.float32(0.2)) / 5], cost=gamma))
    for name in ("costs", "probabilities", "cumulative"):
        assert not differences(getattr(tables[0], name), getattr(tables[1], name))


def test_a_monitor_computes_in_float64(seed: int) -> None:
    world = certified_world(73_500 + seed, anchors=True, terminal_costs=True).stored_in_float32()
    states = []
    for problem in (world.problem, upcast(world.problem)):
        monitor, rng = Monitor(problem, 0.01), np.random.default_rng(seed)
        for _ in range(200):
            edge = int(rng.integers(problem.graph.layers[0].n_edges))
            told(monitor, 0, edge, *(world.costs[0][edge] + 0.01 * rng.normal(size=len(problem.limits))))
        states.append(monitor.arrays())
    assert not differences(*states)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_studies_say_the_same_and_the_audit_agrees(
    suffix: str, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One study with each, and one that begins with float32 and goes on with the same numbers in float64."""
    if suffix == ".npz":
        monkeypatch.setattr("surefoot.model.files._JSON_ENTRIES", 0)
    world = certified_world(73_600 + seed, anchors=True, terminal_costs=True).stored_in_float32()
    narrow, wide = world.problem, upcast(world.problem)
    orders = {"narrow": (narrow, narrow), "wide": (wide, wide), "both": (narrow, wide)}
    offers: dict[str, list[Any]] = {name: [] for name in orders}

    def listen(name: str) -> Any:  # an ask_id counts the times in the journal
        return lambda what, said: what == "ask" and offers[name].append({**said, "ask_id": None})

    for name, order in orders.items():
        for problem, episodes in zip(order, (6, 12), strict=True):
            with sf.Study.open(tmp_path / name, problem, files=Quick(), monitor_factory=Calm) as study:
                go_on(study, Plant(world, seed), episodes, listen(name))
        assert (tmp_path / name / f"problem{suffix}").exists()
        assert audit(tmp_path / name).clean
    assert offers["narrow"] == offers["wide"] == offers["both"]
    assert len(offers["narrow"]) >= 12
