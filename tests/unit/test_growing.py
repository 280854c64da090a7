"""Problems that grow: what is expanded when, budgets, arrays that are appended to, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.graph import OUTSIDE
from surefoot.model.growing import fully_grown, grower_of, replayed
from surefoot.plan.why import Kind


def walk(**changed: Any) -> sf.Problem:
    """A counter without end. Waiting is free, a step may fail, and strain rises by 0.04 for every unit of height."""
    declared: dict[str, Any] = {
        "horizon": 6,
        "start": 0,
        "actions": lambda h, s: ["wait", "step", "jump"],
        "successors": lambda h, s, a: {"wait": [s], "step": [s, s + 1], "jump": [s + 2, s - 2]}[a],
        "reward": lambda h, s, a: {"wait": 0.1, "step": 0.5, "jump": 1.0}[a],
        "cost_features": lambda h, s, a: [1.0, s / 5, 0.7 * (a == "jump")],
        "transition_features": lambda h, s, a, s2: [1.0] if a == "wait" else [0.5],
        "fallback": lambda h, s: "wait",
        "anchor": lambda h: ([1.0, 0.0, 0.0], 0.2),
        "limits": sf.Limit("strain", bound=0.6, noise=0.05, norm=0.5),
        "stationary_costs": True,
        "stationary_transitions": True,
        "longest_row": 4.0,
    }
    return sf.Problem.growing(**{**declared, **changed})


def walk_whole() -> sf.Problem:
    """All of it, as far as six steps go."""
    given = vars(walk().growth.explorer.given)  # type: ignore[union-attr]
    declared = {name: given[name] for name in ("actions", "successors", "reward", "cost_features", "fallback")}
    return sf.Problem.from_functions(
        horizon=6,
        start=0,
        transition_features=given["transition_features"],
        anchor=lambda h: ([1.0, 0.0, 0.0], 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=0.05, norm=0.5),
        stationary_costs=True,
        stationary_transitions=True,
        **declared,
    )


def world_of(problem: sf.Problem) -> sf.World:
    return sf.World(problem, transition=[1.0], cost=[[0.2, 0.2, 0.25]])


def test_begins_with_what_the_fallback_reaches() -> None:
    problem = walk()
    assert problem.graph.n_all_states == 6
    assert problem.expanded_actions == (5, 15)
    assert problem.states(1)[1:] == (0,)
    layer = problem.graph.layers[0]
    assert layer.successor.tolist() == [1, OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE]
    assert all(problem.graph.forbidden(h)[OUTSIDE] for h in range(1, 6))


def test_is_expanded_once_its_own_costs_keep_the_limit_and_not_before() -> None:
    """Before any data a step strains 0.2 + 0.1·s at most, so that steps are expanded up to s = 3, waiting likewise; a
    jump 0.2 + 0.5·√(0.49 + s²/25), so that only those from s = 0 and 1 are."""
    agent = sf.LsviNew(walk())
    first = agent.plan
    assert not first.certified(0, 0, "step")
    assert first.why(0, 0, "step").kind == Kind.OUTSIDE
    agent.replan()
    plan, problem = agent.plan, agent.problem
    assert plan.certified(0, 0, "step")
    assert plan.why(2, 2, "jump").kind == Kind.COST
    for h in range(5):
        for s in problem.states(h)[h > 0 :]:
            found = [bool(problem.graph.expanded(h)[problem.pair_index(h, s, a)]) for a in ("wait", "step", "jump")]
            assert found == [abs(s) < 4, abs(s) < 4, abs(s) < 2]


def test_nothing_is_learned_from_a_transition_to_what_is_not_expanded() -> None:
    """Several successors stand behind that one name, each with features of its own."""
    problem = walk(cost_features=lambda h, s, a, s2: [1.0, s2 / 5, 0.7 * (a == "jump")])
    (name, *_) = problem.successors(0, problem.starts[0], "jump")
    agent = sf.LsviNew(problem)
    agent.begin_episode()
    with pytest.raises(UnknownLabel, match="outside the declared support"):
        agent.observe(0, problem.starts[0], "jump", name, 0.1)


def test_indices_stay_and_arrays_are_appended_to() -> None:
    agent = sf.LsviNew(walk())
    agent.replan()
    small = agent.problem
    large = fully_grown(small, 10_000)
    assert large is not None
    for one, other in zip(small.graph.layers, large.graph.layers, strict=True):
        n = one.n_rows
        assert np.array_equal(one.cost_features, other.cost_features[:n])
        led = one.successor != OUTSIDE
        assert np.array_equal(one.successor[led], other.successor[: one.n_edges][led])
    for h in range(6):
        assert small.states(h)[:] == large.states(h)[: len(small.states(h))]


def test_two_agents_grow_one_problem_apart() -> None:
    problem = walk()
    world = world_of(problem)
    runs = [sf.run(sf.LsviNew(problem), world, episodes, 0) for episodes in (200, 1)]
    again = sf.run(sf.LsviNew(problem), world, 200, 0)
    assert problem.graph.n_all_states == 6
    assert again.plan.problem.digest == runs[0].plan.problem.digest != runs[1].plan.problem.digest


def test_a_budget_of_states_is_kept_and_then_nothing_is_hoped_of_the_rest(seed: int) -> None:
    problem = walk(most_states=20)
    run = sf.run(sf.LsviNew(problem), world_of(problem), 400, seed)
    graph = run.plan.problem.graph
    assert graph.n_all_states <= 20
    assert not graph.beyond.room
    assert not run.plan.hope.hopeful.states[1][OUTSIDE]
    assert run.violations.sum() == 0


def test_a_replayed_record_gives_the_same_problem(seed: int) -> None:
    for most in (20, 1_000):
        problem = walk(most_states=most)
        grown = sf.run(sf.LsviNew(problem), world_of(problem), 300, seed).plan.problem
        again = replayed(problem, grown.growth.record, grown.growth.refused)
        assert again.digest == grown.digest


def test_where_the_whole_graph_is_too_large_the_best_value_is_of_what_has_grown(seed: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("surefoot.exact.best.solve_whole.__defaults__", (30,))
    problem = walk()
    run = sf.run(sf.LsviNew(problem), world_of(problem), 300, seed)
    assert run.manifest["best_value_of"] == "the graph as it has grown"
    assert run.best_value == sf.exact.solve(run.world).value
    assert (run.regret >= 0).all()


def test_files_hold_the_graph_as_it_has_grown(tmp_path: Any) -> None:
    agent = sf.LsviNew(walk())
    agent.replan()
    for name in ("p.json", "p.npz"):
        again = sf.Problem.load(agent.problem.save(tmp_path / name))
        assert again.digest == agent.problem.digest
        assert again.expanded_actions == agent.problem.expanded_actions
        plans = [sf.LsviNew(problem, ridges=(1.0,)).plan for problem in (again, agent.problem)]
        assert plans[0].hope.gap == plans[1].hope.gap


def test_check_says_what_is_expanded() -> None:
    found = sf.check(walk())
    assert found.cold_start.can_move is True
    done, actions, states = found.expanded
    assert 5 < done < actions
    assert any(f"{done} of {actions} actions are expanded, with {states} states" in note for note in found.notes)
    assert found.errors == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"longest_row": 1.0}, "a cost row is longer than declared"),
        ({"most_states": 0}, "most_states must be a whole number"),
        ({"successors": lambda h, s, a: [s, s]}, "duplicate successors"),
        ({"successors": lambda h, s, a: []}, "empty support"),
        ({"actions": lambda h, s: []}, "state without actions"),
        ({"successors": lambda h, s, a: ["(not expanded)"]}, "a state's name is taken"),
        ({"fallback": lambda h, s: None}, "fallback is missing"),
        ({"forbidden": lambda h, s: h == 2}, "fallback may enter a forbidden state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_declarations_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        walk(**changed)


def test_what_is_wrong_with_a_state_to_come_is_said_when_it_comes() -> None:
    """And leaves the agent as it was."""
    for changed, message in (
        (
            {"longest_row": 1.5, "cost_features": lambda h, s, a: [1.0, s / 2, 0.0]},
            "a cost row is longer than declared",
        ),
        ({"reward": lambda h, s, a: 1.0 + s}, r"reward is outside \[0, 1\]"),
    ):
        agent = sf.LsviNew(walk(**changed, limits=sf.Limit("strain", bound=9.0, noise=0.1, norm=1.0)))
        before = agent.problem, agent.plan
        with pytest.raises(InvalidInput, match=message):
            agent.replan()
        assert (agent.problem, agent.plan) == before


def test_a_log_is_judged_by_what_the_functions_say_of_its_states(seed: int) -> None:
    """Also where the graph has not grown to, and just as with the whole graph."""
    grows, rng, rows = walk(), np.random.default_rng(seed), list[dict[str, Any]]()
    declared = grows.growth.explorer.given  # type: ignore[union-attr]
    whole = walk_whole()
    for episode in range(20):
        s = 0
        for h in range(5):
            a = ["wait", "step", "jump"][int(rng.integers(3))]
            after = declared.successors(h, s, a)[int(rng.integers(len(declared.successors(h, s, a))))]
            cost = float(np.dot([0.2, 0.2, 0.25], declared.cost_features(h, s, a)) + 0.05 * rng.standard_normal())
            rows.append({"episode": episode, "step": h, "state": s, "action": a, "next_state": after, "cost": cost})
            s = after
    before = grows.expanded_actions
    found, expected = sf.calibrate(grows, rows), sf.calibrate(whole, rows)
    assert (found.support, found.limits[0].accused) == (expected.support, expected.limits[0].accused)
    ends = [[(each.low, each.high) for each in one.limits[0].intervals] for one in (found, expected)]
    assert np.allclose(*ends, rtol=1e-9, atol=0.0)
    assert found.support.outside == 0
    assert grows.expanded_actions == before
    astray = sf.calibrate(grows, [*rows, {**rows[-1], "state": 12, "action": "step", "next_state": 15}])
    assert astray.support.examples == ("row 101: step 4, state 12, action 'step' led to 15",)
    with pytest.raises(InvalidInput, match="no such action"):
        sf.calibrate(grows, [{**rows[0], "action": "fly"}])
    with pytest.raises(InvalidInput, match="no such state"):
        sf.calibrate(grows, [{**rows[0], "state": "7"}])


def test_what_needs_the_whole_graph_refuses_one_that_grows(tmp_path: Any) -> None:
    problem = walk()
    world = world_of(problem)
    for call in (
        world.env,
        problem.stored_in_float32,
        lambda: world.save(tmp_path / "world.json"),
        lambda: sf.LsviNewPaper(problem, episodes=10),
    ):
        with pytest.raises(InvalidInput, match="needs the whole graph"):
            call()
    with pytest.raises(InvalidInput, match="does not grow"):
        grower_of(sf.worlds.make("thermal/testing").problem)


def test_walk_grows_to_what_a_safe_sled_needs_and_earns_as_much_as_can_be_earned(seed: int) -> None:
    world = sf.worlds.make("walk/small", horizon=8)
    run = sf.run(sf.LsviNew(world.problem), world, 800, seed)
    states, all_states = run.plan.problem.graph.n_all_states, fully_grown(world.problem, 20_000).graph.n_all_states
    assert run.violations.sum() == 0
    assert run.gap_closed > 0.95
    assert 8 < states < 0.5 * all_states
    assert {place for place, _ in run.plan.problem.states(7)[1:]} > set(range(10))


def test_plans_of_a_run_that_grew_are_kept_and_shown_on_its_last_graph(tmp_path: Any, seed: int) -> None:
    """In memory and on disk: what came later is certified in none of the plans before."""
    from surefoot.reports.data import read_runs, read_sweep
    from surefoot.sweeps.sweep import Contender, Spec, sweep

    world = sf.worlds.make("walk/small", horizon=6)
    run = sf.run(sf.LsviNew(world.problem), world, 60, seed)
    sizes = [plan.problem.graph.n_all_states for plan, _ in run.kept]
    assert len(sizes) > 2
    assert sizes[0] < sizes[-1]
    spec = Spec("walk/small", [Contender("lsvi-new")], seeds=[seed], episodes=60, world_options={"horizon": 6})
    sweep(spec, tmp_path / "sweep", jobs=1, progress=False)
    for report in (read_runs(run), read_sweep(tmp_path / "sweep")):
        graph = report.world.problem.graph
        assert graph.n_all_states == sizes[-1]
        for kept, (plan, before) in zip(report.explored.plans, run.kept, strict=True):
            assert (kept.number, kept.first_episode) == (plan.number, before)
            for h, mine in enumerate(plan.certified_sets.pairs):
                assert np.array_equal(
                    kept.certified_pairs[h], [*mine, *[False] * (graph.layers[h].n_pairs - len(mine))]
                )
                rows = plan.bounds.upper[h]
                assert np.array_equal(kept.upper[h][: len(rows)], rows)
                assert (kept.upper[h][len(rows) :] == world.problem.largest_costs).all()
    assert sf.report(run, tmp_path / "walk.html").stat().st_size > 10_000
