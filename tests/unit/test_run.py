"""sf.run: what it records is what happened, and both ways of playing are the same to the bit."""

from __future__ import annotations

import dataclasses
import io
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.estimate.costs import CostData
from surefoot.estimate.families import families
from surefoot.reports import data
from surefoot.runs import progress, runner
from surefoot.runs.record import cost_event, value_event
from surefoot.runs.run import Run
from tests.alike import AGENTS, assert_same_run, differences, record
from tests.differential.compare import problem_of
from tests.drawn_worlds import certified_world, paper_world, world_of
from tests.made_worlds import BOUND, hand_world
from tests.reference.generate import random_tables
from tests.reference.tables import Tables
from tests.shielded import Fixed

NOISES = ("gaussian", "uniform", "rademacher")


# ---------------------------------------------------------------- by hand


def trail() -> sf.World:
    """Two limits of 0.5. One safe road, and one that breaks limits in ways that are easy to miscount."""
    return hand_world(
        {
            (0, "s"): {"safe": (0.25, {"s": (1.0, [0.0, 0.1])}), "bold": (1.0, {"hot": (1.0, [0.9, 0.8])})},
            (1, "s"): {"safe": (0.25, {"s": (1.0, [0.0, 0.2])})},
            (1, "hot"): {"graze": (0.5, {"hot": (1.0, [BOUND + 5e-10, 0.0])})},
            (2, "s"): {"safe": (0.25, {"fine": (1.0, [0.3, 0.0])})},
            (2, "hot"): {"touch": (0.5, {"burnt": (1.0, [-0.5, BOUND + 2e-9])})},
        },
        {"fine": (0.25, [0.4, 0.0]), "burnt": (0.75, [0.1, 0.7])},
        bounds=(BOUND, BOUND),
    )


BOLD = {(0, "s"): "bold", (1, "hot"): "graze", (2, "hot"): "touch"}


@pytest.mark.parametrize("compiled", [True, False])
def test_the_record_of_a_known_episode(compiled: bool, seed: int) -> None:
    world = trail()
    run = sf.run(Fixed(world.problem, BOLD), world, 70, seed, compiled=compiled)
    # Both limits at once are one step; half a billionth is none; two are; arriving in 'burnt' is a step too.
    assert run.violations.tolist() == [3] * 70
    assert run.value.tolist() == [2.75] * 70
    assert run.regret.tolist() == [1.0 - 2.75] * 70  # more than any safe policy earns
    assert run.best_value == run.fallback_value == 1.0
    assert run.episodes_table.reward.tolist() == [2.75] * 70
    assert run.margin.tolist() == [[BOUND - 0.9, BOUND - 0.8]] * 70
    assert run.certified.tolist() == [0] * 70
    assert run.episodes_table.plan.tolist() == [0] * 70
    assert (run.replans, run.plan, run.cost_event, run.guaranteed) == (0, None, True, False)

    safe = sf.run(sf.agents.make("fallback", world.problem), world, 70, seed, compiled=compiled)
    assert safe.violations.tolist() == [0] * 70
    assert safe.regret.tolist() == [0.0] * 70
    assert np.allclose(safe.margin, [BOUND - 0.4, BOUND - 0.2])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_terminal_cost_alone_is_a_violation(compiled: bool, seed: int) -> None:
    world = hand_world(
        {(0, "s"): {"a": (0.0, {"good": (1.0, 0.1)}), "b": (0.5, {"bad": (0.5, 0.1), "good": (0.5, 0.1)})}},
        {"good": (0.0, None), "bad": (0.25, 0.75)},
    )
    run = sf.run(Fixed(world.problem, {(0, "s"): "b"}), world, 400, seed, compiled=compiled)
    ended_badly = run.episodes_table.reward == 0.75
    assert np.array_equal(run.violations, ended_badly)
    assert 100 < ended_badly.sum() < 300
    assert np.allclose(run.margin[:, 0], np.where(ended_badly, BOUND - 0.75, BOUND - 0.1))


def test_a_run_says_so_when_its_agent_is_lost(seed: int) -> None:
    world = trail()
    for compiled in (True, False):
        agent = Fixed(world.problem, {(0, "s"): "bold"})
        with pytest.raises(AssumptionBroken, match="lost: step 1, state 'hot'"):
            sf.run(agent, world, 5, seed, compiled=compiled)


# ---------------------------------------------------------------- by the label calls, one by one


def replay(tables: Tables, world: sf.World, agent: Any, run: Run, seed: int) -> dict[str, Any]:
    """The run's episodes once more as on a real plant, judged by the reference's truth."""
    problem, sampler = world.problem, world.sampler(seed)
    bounds = np.array([limit.bound for limit in tables.limits])
    found: dict[str, list[Any]] = {
        name: [] for name in ("value", "reward", "violations", "margin", "highest", "plan", "certified")
    }
    plans: dict[int, tuple[bool, int]] = {}
    for start in run.episodes_table.start.tolist():
        s = problem.naming.states[0][start]
        agent.begin_episode(s)
        plan = agent.plan
        plans.setdefault(agent.replans, (event_held(tables, plan), int(plan.consistent)))
        found["value"].append(sf.exact.evaluate(world, plan.action, s))
        found["plan"].append(agent.replans)
        found["certified"].append(sum(plan.certified(*pair) for pair in tables.pairs()))
        total, steps, measured = 0.0, [], []
        for h in range(tables.horizon - 1):
            a = agent.act(h, s)
            edge = sampler.step(h, problem.pair_index(h, s, a))
            s2 = problem.naming.states[h + 1][problem.graph.layers[h].successor[edge]]
            steps.append(tables.cost((h, s, a, s2)))
            measured.append(sampler.measure(h, edge))
            total += tables.reward[h, s, a]
            agent.observe(h, s, a, s2, measured[-1])
            s = s2
        last = tables.terminal_cost(s)
        if last is not None:
            steps.append(last)
            measured.append(sampler.measure_terminal(problem.state_index(tables.horizon - 1, s)))
            agent.observe_terminal(s, measured[-1])
        agent.end_episode()
        found["reward"].append(total + tables.terminal_reward[s])
        found["violations"].append(sum(any(c > bounds + 1e-9) for c in steps))
        found["margin"].append(bounds - np.max(steps, axis=0))
        found["highest"].append(np.max(measured, axis=0))
    return {name: np.array(column) for name, column in found.items()} | {"plans": plans}


def event_held(tables: Tables, plan: Any) -> bool:
    """Spec 8, spelled out: the true cost of every triplet and last state within its bounds."""
    for h, s, a, s2 in tables.triplets():
        truth = np.array(tables.cost((h, s, a, s2)))
        if (truth > plan.upper(h, s, a, s2) + 5e-10).any() or (truth < plan.lower(h, s, a, s2) - 5e-10).any():
            return False
    for s in tables.states(tables.horizon - 1):
        last = tables.terminal_cost(s)
        if last is not None and (
            (np.array(last) > plan.terminal_upper(s) + 5e-10).any()
            or (np.array(last) < plan.terminal_lower(s) - 5e-10).any()
        ):
            return False
    return True


REPLAYED = {
    "lsvi-new": sf.LsviNew,
    "a radius too small": lambda problem: sf.LsviNew(problem, safety_radius_scale=0.1),
    "every episode a plan": lambda problem: sf.LsviNew(problem, replan_growth=0.0),
    "ucrl-vtr": AGENTS["ucrl-vtr"],
    "slucb-qvi": AGENTS["slucb-qvi"],
}


@pytest.mark.parametrize("name", REPLAYED)
def test_the_record_agrees_with_a_replay_by_labels(name: str, seed: int) -> None:
    held: list[bool] = []
    broken = 0
    for number in range(1, 4):
        tables = random_tables(60_000 + 100 * seed + number, starts=1 + number % 2, misspecified=number == 3)
        world = world_of(tables, NOISES[number % 3])
        run = sf.run(REPLAYED[name](world.problem), world, 25, seed)
        found = replay(tables, world, REPLAYED[name](world.problem), run, seed)
        table = run.episodes_table
        for column in ("value", "violations", "plan", "certified", "highest"):
            assert np.array_equal(getattr(table, column), found[column]), column
        assert np.allclose(table.margin, found["margin"], rtol=0, atol=1e-9)
        assert np.allclose(table.reward, found["reward"], rtol=0, atol=1e-12)
        best = dict(zip(world.problem.graph.starts.tolist(), sf.exact.solve(world).start_values, strict=True))
        assert np.array_equal(run.regret, [best[start] for start in table.start.tolist()] - found["value"])
        assert run.plans_table.number == list(found["plans"])
        assert run.plans_table.cost_event == [held for held, _ in found["plans"].values()]
        assert run.plans_table.consistent == [bool(consistent) for _, consistent in found["plans"].values()]
        first = [int(np.flatnonzero(found["plan"] == plan)[0]) for plan in found["plans"]]
        assert run.plans_table.first_episode == first
        assert run.plans_table.certified_pairs == found["certified"][first].tolist()
        assert run.plans_table.value == found["value"][first].tolist()
        held += run.plans_table.cost_event
        broken += int(run.violations.sum())
    assert all(held) == (name != "a radius too small")  # both answers occur
    if name == "ucrl-vtr":
        assert broken > 0


# ---------------------------------------------------------------- compiled or not


WORLDS: dict[str, dict[str, Any]] = {
    "anything": {},
    "last states with costs": {"terminal_costs": True, "anchors": False},
    "three limits": {"limits": 3, "terminal_costs": True},
    "two starts": {"starts": 2, "limits": 2},
    "anchors": {"anchors": True, "stationary_costs": False, "terminal_costs": True},
    "one regression for all steps": {"stationary_costs": True, "stationary_transitions": True, "anchors": True},
    "a regression for each step": {"stationary_costs": False, "stationary_transitions": False, "anchors": False},
    "not quite linear": {"misspecified": True, "terminal_costs": True, "anchors": True},
    "features for both": {"shared_features": True},
}


@pytest.mark.parametrize("agent", AGENTS)
def test_compiled_and_step_by_step_are_the_same_to_the_bit(agent: str, seed: int, thorough: bool) -> None:
    """Every agent on a third of the kinds of worlds, every kind under three agents; with --thorough, each on each."""
    turn = list(AGENTS).index(agent)
    worlds = [sf.worlds.make("thermal/testing", noise=NOISES[turn % 3])] if thorough or turn < 3 else []
    for number, options in enumerate(WORLDS.values()):
        if thorough or number % 3 == turn % 3:
            worlds.append(certified_world(1000 * seed + 100 * turn + number, NOISES[(turn + number) % 3], **options))
    for world in worlds:
        compiled, stepped = (AGENTS[agent](world.problem) for _ in range(2))
        one = sf.run(compiled, world, 30, seed)
        two = sf.run(stepped, world, 30, seed, compiled=False)
        assert_same_run(one, two)
        assert one.manifest == two.manifest
        assert set(differences(compiled.checkpoint(), stepped.checkpoint())) <= {"/start"}  # of the last episode


@pytest.mark.parametrize(("noise", "starts"), [("gaussian", 1), ("uniform", 2), ("rademacher", 1)])
def test_so_they_are_with_the_papers_constants(starts: int, noise: str, seed: int) -> None:
    for number in range(2):
        world, options = paper_world(1000 * seed + 10 * NOISES.index(noise) + number, noise, starts)
        options["initial_episodes"] = 7 * (number % 2)
        one = sf.run(sf.LsviNewPaper(world.problem, **options), world, 40, seed)
        two = sf.run(sf.LsviNewPaper(world.problem, **options), world, 40, seed, compiled=False)
        assert_same_run(one, two)


def test_long_runs_too(seed: int) -> None:
    """Many chunks, many plans, rotations that drift, sums of thousands of terms: still the same bits."""
    off = {"misspecified": True, "anchors": True, "stationary_costs": False, "terminal_costs": True, "horizon": 6}
    world = certified_world(96_000 + seed, **off)
    compiled, stepped = (sf.LsviNew(world.problem, replan_growth=0.2) for _ in range(2))
    one = sf.run(compiled, world, 1000, seed)
    assert one.replans > 50
    assert_same_run(one, sf.run(stepped, world, 1000, seed, compiled=False))
    assert set(differences(compiled.checkpoint(), stepped.checkpoint())) <= {"/start"}


def test_squares_round_alike(seed: int) -> None:
    """Python's power and the compiled product differ in one square of a thousand: (1 + |ρ|)² must be the product."""
    tables = random_tables(97_000 + seed, anchors=True, stationary_costs=True)
    problem = problem_of(tables)
    data = CostData(problem, 1.0, families(problem), shaped=0.0)
    directions = data.state.frames.directions[0, 0]
    rng, cost = np.random.default_rng(seed), np.zeros(len(tables.limits))
    for x in rng.normal(size=(20_000, len(directions))):
        data.spread[:] = 0.0
        data.add(0, x, cost)
        rho = 0.0
        for i in range(len(x)):
            rho += float(x[i]) * float(directions[i])
        assert data.spread[0, 0] == (1.0 + abs(rho)) * (1.0 + abs(rho))


# ---------------------------------------------------------------- seeds and arguments


@pytest.mark.parametrize("name", AGENTS)
def test_the_seed_decides_everything(name: str, seed: int) -> None:
    world = certified_world(70_000 + seed, starts=2)
    same, again = (sf.run(AGENTS[name](world.problem), world, 20, seed) for _ in range(2))
    assert_same_run(same, again)
    assert same.manifest == again.manifest
    other = sf.run(AGENTS[name](world.problem), world, 20, seed + 1)
    assert "/episodes/highest" in differences(record(same)["episodes"], record(other)["episodes"], "/episodes")
    assert not np.array_equal(same.episodes_table.start, other.episodes_table.start)


def test_shapes(seed: int) -> None:
    world = certified_world(seed, limits=3)
    run = sf.run(sf.LsviNew(world.problem), world, 17, seed)
    for column in (run.regret, run.violations, run.certified, run.value):
        assert column.shape == (17,)
    assert run.margin.shape == run.episodes_table.highest.shape == (17, 3)
    assert run.episodes == 17
    assert (run.regret >= 0).all()  # by construction, not by tolerance
    assert run.interrupted is False
    assert {len(column) for column in run.plans_table.columns().values()} == {len(run.plans_table.number)}
    assert repr(run).startswith("Run(lsvi-new, episodes=17, regret=")


def test_several_starts_are_drawn_evenly_and_judged_apart(seed: int) -> None:
    world = certified_world(80_000 + seed, starts=2)
    run = sf.run(sf.agents.make("fallback", world.problem), world, 1000, seed)
    start = run.episodes_table.start
    assert set(start.tolist()) == set(world.problem.graph.starts.tolist())
    assert 400 < (start == start[0]).sum() < 600
    for index, label in zip(world.problem.graph.starts.tolist(), world.problem.starts, strict=True):
        rows = start == index
        assert (run.value[rows] == sf.exact.fallback_value(world, label)).all()
        assert (run.regret[rows] == run.best_values[index] - sf.exact.fallback_value(world, label)).all()
    assert run.fallback_value == np.mean([sf.exact.fallback_value(world, label) for label in world.problem.starts])
    assert run.best_value == sf.exact.solve(world).start_values.mean()
    assert run.last_value == np.mean([run.value[start == index][-1] for index in np.unique(start)])


@pytest.mark.parametrize(("action", "closed"), [("safe", 0.0), ("best", 1.0)])
def test_with_several_starts_a_run_is_summed_up_by_means(action: str, closed: float, seed: int) -> None:
    starts: dict[Any, Any] = {
        (0, name): {"safe": (low, {"t": (1.0, 0.0)}), "best": (high, {"t": (1.0, 0.0)})}
        for name, low, high in [("poor", 0.1, 0.2), ("rich", 0.5, 1.0)]
    }
    world = hand_world(starts, {"t": (0.0, None)}, start=["poor", "rich"])
    run = sf.run(Fixed(world.problem, dict.fromkeys(starts, action)), world, 50, seed)
    assert (run.fallback_value, run.best_value) == pytest.approx((0.3, 0.6))
    assert run.gap_closed == pytest.approx(closed)  # wherever the last episode began
    (line,) = next(chart.lines for chart in data.read_runs([run]).charts if chart.name == "value")
    assert max(line.high) <= run.best_value + 1e-9  # as its caption says: nothing was broken


def test_a_problem_is_no_world() -> None:
    problem = certified_world(0).problem
    with pytest.raises(InvalidInput, match="a run needs a World: a Problem"):
        sf.run(sf.LsviNew(problem), problem, 1, 0)  # type: ignore[call-overload]


@pytest.mark.parametrize("given", ["a world", "a name", "a class", "something else"])
def test_what_is_no_agent_is_told_how_to_become_one(given: str) -> None:
    world = sf.worlds.make("thermal/testing")
    what, cure = {
        "a world": (world, r"a World\. The agent comes first"),
        "a name": ("fallback", r"'fallback'\. sf\.agents\.make\('fallback', world\.problem\)"),
        "a class": (sf.LsviNew, r"the class LsviNew\. Make one: LsviNew\(world\.problem\)"),
        "something else": (world.problem, r"a Problem\. .*a subclass of surefoot\.agents\.agent\.Agent"),
    }[given]
    with pytest.raises(InvalidInput, match=f"a world is played by an agent: {cure}"):
        sf.run(what, world, episodes=1)  # type: ignore[call-overload]


def test_an_exact_value_needs_a_truth() -> None:
    problem = sf.worlds.make("thermal/testing").problem
    asked = [sf.exact.solve, sf.exact.fallback_value, lambda p: sf.exact.evaluate(p, lambda h, s: 0)]
    for ask in asked:
        with pytest.raises(InvalidInput, match=r"an exact value needs a World: a Problem\. A Problem has no truth"):
            ask(problem)


def test_a_start_may_be_called_none(seed: int) -> None:
    world = hand_world(
        {(0, "s"): {"a": (0.5, {"t": (1.0, 0.0)})}, (0, None): {"a": (1.0, {"t": (1.0, 0.0)})}},
        {"t": (0.0, None)},
        start=["s", None],
    )
    run = sf.run(sf.LsviNew(world.problem), world, 50, seed)
    assert set(run.value.tolist()) == {0.5, 1.0}
    assert (run.regret == 0).all()
    assert run.fallback_value == run.best_value == 0.75


@pytest.mark.parametrize("episodes", [0, -3, True, False, 2.0, "7", None])
def test_episodes_are_a_whole_number(episodes: Any) -> None:
    world = trail()
    with pytest.raises(InvalidInput, match="episodes must be a whole number, at least 1") as error:
        sf.run(sf.LsviNew(world.problem), world, episodes)
    assert repr(episodes) in str(error.value)
    assert sf.run(sf.LsviNew(world.problem), world, np.int64(2)).episodes == 2


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "1"])
def test_so_is_the_seed(wrong: Any) -> None:
    world = trail()
    with pytest.raises(InvalidInput, match="seed must be a whole number"):
        sf.run(sf.LsviNew(world.problem), world, 3, wrong)


def test_agent_and_world_must_share_a_problem(seed: int) -> None:
    world, other = sf.worlds.make("thermal/testing"), sf.worlds.make("thermal/testing", bound=0.61)
    with pytest.raises(InvalidInput, match=r"different problems. Make the agent from world\.problem"):
        sf.run(sf.LsviNew(other.problem), world, 3, seed)
    equal = sf.worlds.make("thermal/testing")
    assert equal.problem is not world.problem
    one = sf.run(sf.LsviNew(equal.problem), world, 30, seed)
    assert_same_run(one, sf.run(sf.LsviNew(world.problem), world, 30, seed))


@pytest.mark.parametrize("compiled", [True, False])
def test_the_papers_constants_end_with_their_episodes(compiled: bool, seed: int) -> None:
    world, options = paper_world(seed)
    agent = sf.LsviNewPaper(world.problem, **{**options, "initial_episodes": 0})
    agent.episodes = options["episodes"] - 10  # as if so many had been played
    with pytest.raises(InvalidInput, match="for fewer episodes: 11 to play, 10 left"):
        sf.run(agent, world, 11, seed, compiled=compiled)
    assert sf.run(agent, world, 10, seed, compiled=compiled).episodes == 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checkpoint_every": 5}, "checkpoint_every has no effect without checkpoint"),
        ({"checkpoint": "there", "checkpoint_every": 0}, "checkpoint_every must be a whole number"),
        ({"checkpoint": "there", "checkpoint_every": True}, "checkpoint_every must be a whole number"),
        ({"checkpoint": "missing/there"}, "checkpoint must be a file in a directory that exists"),
        ({"checkpoint": "."}, "checkpoint must be a file in a directory that exists"),
    ],
)
def test_a_bad_checkpoint_is_refused_before_the_run(
    options: dict[str, Any], words: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    world = trail()
    agent = sf.LsviNew(world.problem)
    with pytest.raises(InvalidInput, match=words):
        sf.run(agent, world, 5, **options)
    assert agent.episodes == 0
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- plans, events, promises


def test_plans_are_recorded(seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    agent = sf.LsviNew(world.problem, replan_growth=0.0)
    run = sf.run(agent, world, 40, seed)
    assert run.plans_table.number == list(range(1, 41))
    assert run.plans_table.first_episode == list(range(40))
    assert run.episodes_table.plan.tolist() == run.plans_table.number
    assert run.certified.tolist() == run.plans_table.certified_pairs
    assert run.replans == agent.replans == 41  # one more was made after the last episode
    assert run.plan is agent.plan
    lazy = sf.run(sf.LsviNew(world.problem, replan_growth=1.0), world, 40, seed)
    assert 1 < lazy.replans < 41
    assert lazy.certified[0] == run.certified[0]


def test_a_run_may_follow_another(seed: int) -> None:
    """An agent that has learned is taken on as it is."""
    world = sf.worlds.make("thermal/testing")
    agent = sf.LsviNew(world.problem)
    first = sf.run(agent, world, 300, seed)
    second = sf.run(agent, world, 300, seed + 1)
    assert second.plans_table.number[0] == second.episodes_table.plan[0] == first.replans
    assert second.value[0] > first.value[0]
    assert agent.episodes == 600


def test_a_radius_too_small_is_seen_and_stamped(seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    run = sf.run(sf.LsviNew(world.problem, safety_radius_scale=0.01), world, 200, seed)
    assert run.cost_event is False
    assert run.promise == "no safety guarantee"
    assert run.guaranteed is run.manifest["guaranteed"] is False
    whole = sf.run(sf.LsviNew(world.problem, failure_probability=0.1), world, 200, seed)
    assert whole.cost_event is True
    assert whole.promise == "every step safe with probability ≥ 0.9"
    assert whole.guaranteed is True
    assert whole.manifest["constants"]["failure_probability"] == 0.1


def test_a_world_beyond_its_declaration_is_stamped(seed: int) -> None:
    linear = sf.worlds.make("thermal/testing")
    off = [np.full((layer.n_edges, 1), 0.01) for layer in linear.problem.graph.layers]
    world = sf.World(linear.problem, linear.transition, linear.cost_parameters, deviation=off)
    run = sf.run(sf.LsviNew(world.problem), world, 20, seed)
    assert "no safety guarantee: the world deviates" in run.promise
    assert run.guaranteed is False


@pytest.mark.parametrize(("beyond", "held", "broken"), [(0.4e-9, True, 0), (0.9e-9, False, 0), (1.1e-9, False, 5)])
def test_an_event_that_held_excludes_a_violation_to_the_last_digit(
    beyond: float, held: bool, broken: int, seed: int
) -> None:
    """A cost of 2 is certified against a bound of 2, but for rounding; the truth lies beyond it by a share of 4."""
    problem = sf.Problem.from_functions(
        horizon=2,
        start="s",
        actions=lambda h, s: ["stay", "go"],
        successors=lambda h, s, a: ["s"],
        reward=lambda h, s, a: float(a == "go"),
        cost_features=lambda h, s, a, s2: [2.0 * (a == "go")],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: "stay",
        limits=sf.Limit("limit", bound=2.0 + 1e-13, noise=0.1, norm=1.0),
    )
    world = sf.World(problem, transition=[1.0], cost=[1.0], deviation=[np.array([[0.0], [4.0 * beyond]])])
    run = sf.run(sf.LsviNew(problem, replan_growth=100.0), world, 5, seed)
    assert run.violations.sum() == broken
    assert run.cost_event is held


def test_the_cost_event_asks_every_entry(seed: int) -> None:
    """One bound of one limit of one triplet or last state on the wrong side of the truth is a miss."""
    tables = random_tables(95_000 + seed, limits=2, terminal_costs=True)
    world = world_of(tables)
    bounds = sf.LsviNew(world.problem).plan.bounds
    assert bounds.terminal_upper is not None
    assert bounds.terminal_lower is not None
    assert world.terminal_costs is not None
    assert cost_event(world, bounds)
    rng, has_cost = np.random.default_rng(seed), world.problem.graph.terminal.has_cost
    for side, beyond in (("upper", -1e-9 * world.problem.cost_scales), ("lower", 1e-9 * world.problem.cost_scales)):
        for h, truth in enumerate(world.costs):
            place = (int(rng.integers(len(truth))), int(rng.integers(2)))
            for factor in (0.4, 1.0):
                rows = [row.copy() for row in getattr(bounds, side)]
                rows[h][place] = truth[place] + factor * beyond[place[1]]
                changed = dataclasses.replace(bounds, **{side: tuple(rows)})
                assert cost_event(world, changed) is (factor < 0.5), (side, h)
        for state in range(len(has_cost)):
            last = getattr(bounds, f"terminal_{side}").copy()
            last[state, 1] = world.terminal_costs[state, 1] + beyond[1] if has_cost[state] else 7.0
            changed = dataclasses.replace(bounds, **{f"terminal_{side}": last})
            assert cost_event(world, changed) == (not has_cost[state]), (side, state)


def test_the_value_event_asks_whether_mu_lies_within(seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    agent = sf.LsviNew(world.problem)
    run = sf.run(agent, world, 100, seed)
    assert run.value_event is True
    ellipsoids = agent.plan.ellipsoids
    assert value_event(world, ellipsoids)
    known = ellipsoids[0]
    distance = np.sqrt(((known.basis.turn(world.transition[0]) - known.centre) ** 2 / known.weights).sum())
    for factor, held in ((1.0 + 1e-9, True), (1.0 - 1e-9, False)):
        around = dataclasses.replace(known, radius=distance * factor)
        assert value_event(world, (around, *ellipsoids[1:])) is held


@pytest.mark.parametrize("compiled", [True, False])
def test_initial_episodes_play_the_fallback(compiled: bool, seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    run = sf.run(sf.LsviNew(world.problem, initial_episodes=150), world, 400, seed, compiled=compiled)
    assert (run.value[:150] == run.fallback_value).all()
    assert (run.value[150:] > run.fallback_value).all()
    assert run.replans > 5  # planned all the while
    alone = sf.run(sf.agents.make("fallback", world.problem), world, 150, seed)
    assert np.array_equal(run.episodes_table.highest[:150], alone.episodes_table.highest)
    assert run.gap_closed == (run.value[-1] - run.fallback_value) / (run.best_value - run.fallback_value)


def test_an_agent_outside_the_main_thread(seed: int) -> None:
    world = trail()
    runs: list[Run] = []
    worker = threading.Thread(target=lambda: runs.append(sf.run(sf.LsviNew(world.problem), world, 20, seed)))
    worker.start()
    worker.join()
    assert_same_run(runs[0], sf.run(sf.LsviNew(world.problem), world, 20, seed))


# ---------------------------------------------------------------- progress


class Clock:
    """Seconds pass only between two looks."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def bars(monkeypatch: pytest.MonkeyPatch, shown: bool | None, step: float, stderr: Any = None) -> str:
    """What a run writes to standard error when a look at the clock takes `step` seconds."""
    world, stream = trail(), io.StringIO() if stderr is None else stderr
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=Clock(step).monotonic))
    monkeypatch.setattr(sys, "stderr", stream)
    sf.run(sf.agents.make("fallback", world.problem), world, 200, progress=shown, compiled=False)
    text: str = stream.getvalue()
    return text


def test_a_bar_appears_when_it_takes_longer_than_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.PATIENCE == 2.0
    assert bars(monkeypatch, True, step=0.009, stderr=Terminal()) == ""  # 1.8 s
    assert "episodes" in bars(monkeypatch, True, step=0.02, stderr=Terminal())  # 4 s


def test_a_bar_appears_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bars(monkeypatch, None, step=5.0) == ""
    assert bars(monkeypatch, False, step=5.0, stderr=Terminal()) == ""
    assert "episodes" in bars(monkeypatch, None, step=5.0, stderr=Terminal())


def test_a_plants_run_has_a_bar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, streams = sf.worlds.tank(), [Terminal(), Terminal(), io.StringIO()]
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=Clock(5.0).monotonic))
    for stream, shown in zip(streams, (None, False, None), strict=True):
        monkeypatch.setattr(sys, "stderr", stream)
        sf.compare(truth, {"open": lambda h, x: 0.2}, episodes=20, progress=shown)
    said = [stream.getvalue() for stream in streams]
    assert all(word in said[0] for word in ("fallback", "open", "20/20", "violations"))
    assert said[1] == said[2] == ""


def test_the_bar_tells_regret_and_violations(monkeypatch: pytest.MonkeyPatch) -> None:
    world = trail()
    session = runner.Session(Fixed(world.problem, BOLD), world, 4, 0)
    session.play(True, False, None, None)
    assert session.headline() == "regret -1.75, violations 12"
