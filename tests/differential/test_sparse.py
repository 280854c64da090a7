"""Sparse features give what the same features give when dense, and what the specification says."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import surefoot as sf
from surefoot.estimate import blocks, kernels
from tests.alike import plan_arrays
from tests.differential.compare import problem_of
from tests.differential.test_reference import P, check, options, play
from tests.reference.generate import random_paper_settings, random_paper_tables, random_tables
from tests.reference.lsvi_new import Reference
from tests.sparse_worlds import COSTS, TRANSITIONS, csr, lifted, sparse_twin, sparse_worlds

CLOSE = 1e-9
SELDOM = 1e9  # growth that never comes: plans are made where they are looked at
KINDS = [(x, phi) for x in COSTS for phi in TRANSITIONS if (x, phi) != ("dense", "dense")]
NUMBERS = len(KINDS)


def drawn(number: int, seed: int) -> tuple[sf.World, sf.World]:
    """Every kind of features, with and without everything else that touches them."""
    rng = np.random.default_rng([seed, number, 11])
    costs, transitions = KINDS[number]
    flags = {name: bool(rng.integers(2)) for name in ("stationary", "template", "anchors", "terminal")}
    return sparse_worlds(rng, costs=costs, transitions=transitions, limits=int(rng.integers(1, 4)), **flags)


def agents_of(one: sf.World, two: sf.World, number: int) -> list[Any]:
    chosen = {"replan_growth": SELDOM, "explore": (0.1, 0.02, 0.02), "optimism": (1.0, 0.1, 0.02)[number % 3]}
    return [sf.LsviNew(world.problem, **chosen) for world in (one, two)]


def episode(agents: list[Any], world: sf.World, sampler: Any, rng: np.random.Generator) -> None:
    """All agents see the same random walk, which pays no heed to limits."""
    graph = world.problem.graph
    state = int(graph.starts[0])
    for agent in agents:
        agent._begin(state)
    for h, layer in enumerate(graph.layers):
        pair = int(rng.integers(layer.state_ptr[state], layer.state_ptr[state + 1]))
        edge = sampler.step(h, pair)
        cost = sampler.measure(h, edge)
        for agent in agents:
            agent._record(h, pair, edge, cost)
        state = int(layer.successor[edge])
    if graph.terminal.has_cost[state]:
        cost = sampler.measure_terminal(state)
        for agent in agents:
            agent._record_terminal(cost)
    for agent in agents:
        agent._finish()


def faults(sparse: Any, dense: Any) -> list[str]:
    """Where two plans differ: masks and actions at all, numbers by more than rounding."""
    found = []
    for h in range(len(sparse.values.q)):
        if not np.array_equal(sparse.certified_sets.pairs[h], dense.certified_sets.pairs[h]):
            found.append(f"pairs {h}")
        if not np.array_equal(sparse.values.action[h], dense.values.action[h]):
            found.append(f"actions {h}")
        for name, one, two in (
            ("upper", sparse.bounds.upper[h], dense.bounds.upper[h]),
            ("lower", sparse.bounds.lower[h], dense.bounds.lower[h]),
            ("q", sparse.q_row(h), dense.q_row(h)),
            ("value", sparse.values.value[h], dense.values.value[h]),
        ):
            if not np.allclose(one, two, rtol=CLOSE, atol=CLOSE):
                found.append(f"{name} {h}: {np.abs(one - two).max()}")
    for name in ("terminal_upper", "terminal_lower"):
        one, two = getattr(sparse.bounds, name), getattr(dense.bounds, name)
        if (one is None) != (two is None) or (one is not None and not np.allclose(one, two, CLOSE, CLOSE)):
            found.append(name)
    return found


def test_a_sparse_plan_is_the_dense_plan(seed: int) -> None:
    mixed = 0
    for number in range(NUMBERS):
        one, two = drawn(number, seed)
        sparse, dense = agents_of(one, two, number)
        rng, sampler = np.random.default_rng([seed, number, 12]), one.sampler(seed)
        assert faults(sparse.plan, dense.plan) == []
        for k in range(40):
            episode([sparse, dense], one, sampler, rng)
            if k in (0, 5, 39):
                sparse.replan()
                dense.replan()
                assert faults(sparse.plan, dense.plan) == [], (number, k)
        for mu in (*one.transition, *(3.0 * one.transition)):
            inside = [[known.contains(mu) for known in agent.plan.ellipsoids] for agent in (sparse, dense)]
            assert inside[0] == inside[1]
        masks = np.concatenate(sparse.plan.certified_sets.pairs)
        mixed += 0.35 < masks.mean() < 0.999  # a third is the fallback's
    assert mixed >= 0.3 * NUMBERS, "plans that certify all or nothing would prove little"


@pytest.mark.parametrize("name", ["ucrl-vtr", "slucb-qvi", "lsvi-new"])
def test_every_learner_plays_the_same_on_both(name: str, seed: int) -> None:
    for number in range(0, NUMBERS, 9):
        runs = [sf.run(sf.agents.make(name, world.problem), world, 60, seed) for world in drawn(number, seed)]
        # the worlds' chances differ in last bits
        assert np.allclose(runs[0].regret, runs[1].regret, rtol=0, atol=CLOSE)
        assert runs[0].replans == runs[1].replans
        assert runs[0].violations.sum() == runs[1].violations.sum()
        assert np.array_equal(runs[0].plans_table.value_event, runs[1].plans_table.value_event)


def test_the_certified_learner_agrees_with_the_reference(seed: int) -> None:
    tallies = []
    for number in range(12):
        rng = np.random.default_rng([seed, number, 13])
        tables = lifted(random_tables(number + 100_000 * seed), rng, groups=1 + number % 4)
        assert tables.faults() == []
        chosen = options(number)
        agent, reference = sf.LsviNew(sparse_twin(problem_of(tables)), P, **chosen), Reference(tables, P, **chosen)
        tallies.append(play(tables, agent, reference, rng))
    check(tallies)


def test_the_paper_learner_agrees_with_the_reference(seed: int) -> None:
    tallies = []
    for number in range(8):
        rng = np.random.default_rng([seed, number, 14])
        drawn_tables = random_paper_tables(number + 100_000 * seed)
        tables = lifted(drawn_tables, rng, groups=1)  # more columns, and the paper's constants need not exist
        chosen = {**random_paper_settings(number), "initial_episodes": 0}
        chosen["episodes"] = int(chosen["episodes"])
        agent = sf.LsviNewPaper(sparse_twin(problem_of(tables)), P, **chosen)
        tallies.append(play(tables, agent, Reference(tables, P, profile="paper", **chosen), rng))
    check(tallies)


def test_columns_left_apart_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: z = x − ρ x⁰ mixes the anchor's columns; blocks that do not know it give other bounds."""

    def agent(kind: Any) -> sf.LsviNew:
        problem = sf.Problem.from_arrays(
            horizon=2,
            start=0,
            state_ptr=np.array([0, 3]),
            pair_ptr=np.arange(4),
            successors=np.zeros(3, np.int64),
            reward=np.array([0.1, 0.5, 0.9]),
            cost_features=kind(np.eye(3)),
            fallback=np.array([0]),
            limits=sf.Limit("load", bound=0.5, noise=0.1, norm=1.0),
            anchor=lambda h: ([1.0, 1.0, 0.0], 0.2),  # two columns that no triplet has together
        )
        made = sf.LsviNew(problem, replan_growth=0.0)
        for _ in range(5):
            made.begin_episode(0)
            made.observe(0, 0, 1, 0, 0.3)
            made.end_episode()
        return made

    dense, right = agent(np.array), agent(csr)
    assert faults(right.plan, dense.plan) == []
    whole = blocks._cost_sources
    monkeypatch.setattr(blocks, "_cost_sources", lambda graph, layers: whole(graph, layers)[:1])
    assert any("upper" in fault for fault in faults(agent(csr).plan, dense.plan))


def test_one_and_two_threads_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([seed, 16])
    before = numba.get_num_threads()
    agents = []
    for costs, transitions in (("state", "triplet"), ("general", "mixture"), ("triplet", "pair")):
        world, _ = sparse_worlds(rng, costs=costs, transitions=transitions, states=300, anchors=True, terminal=True)
        agent, sampler = sf.LsviNew(world.problem, replan_growth=SELDOM), world.sampler(seed)
        for _ in range(40):
            episode([agent], world, sampler, rng)
        agents.append(agent)
    monkeypatch.setattr(kernels, "WORTH_THREADS", 1)  # threads even for a small problem
    for agent in agents:
        plans = []
        try:
            for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
                numba.set_num_threads(threads)
                agent.replan()
                plans.append(plan_arrays(agent.plan))
        finally:
            numba.set_num_threads(before)
        assert all(one.tobytes() == two.tobytes() for one, two in zip(*plans, strict=True))


def test_the_diagnosis_is_that_of_the_dense_problem(seed: int) -> None:
    for number in range(NUMBERS):
        one, two = (sf.check(world.problem).to_dict() for world in drawn(number, seed))
        assert list(unlike(one, two, "")) == []


def unlike(one: Any, two: Any, at: str) -> Any:
    if isinstance(one, dict):
        for key in {**one, **two}:
            yield from unlike(one[key], two[key], f"{at}.{key}")
    elif isinstance(one, (list, tuple)) and at.endswith("redundant"):
        if len(one) != len(two):  # which of several dependent columns is called redundant is a matter of taste
            yield at
    elif isinstance(one, (list, tuple)):
        if len(one) != len(two):
            yield at
        for i, (a, b) in enumerate(zip(one, two, strict=False)):
            yield from unlike(a, b, f"{at}[{i}]")
    elif isinstance(one, float) and isinstance(two, float):
        if not (one == two or abs(one - two) <= CLOSE * max(1.0, abs(one))):
            yield f"{at}: {one} {two}"
    elif isinstance(one, str) and at.startswith(".findings"):
        if one.split("for example")[0] != two.split("for example")[0]:
            yield f"{at}: {one} {two}"
    elif one != two:
        yield f"{at}: {one} {two}"
