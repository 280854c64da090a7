"""Actions with an intensity, from the declaration to the run (spec 9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.diagnosis.calibration.measurements import read_measurements
from surefoot.errors import InvalidInput
from surefoot.exact.rays import true_intensities
from surefoot.plan.policy_document import load_policy
from surefoot.reports.explorer import explorer
from surefoot.runs.plans_kept import load_snapshot, save_snapshot
from tests.banks import gram


def declared(**changed: Any) -> sf.Problem:
    """A valve: rest keeps the level, opening it in full raises it; strain is 0.2 at rest and grows with the opening."""
    usual: dict[str, Any] = {
        "horizon": 3,
        "start": 0,
        "actions": lambda h, s: ["rest", "open"],
        "successors": lambda h, s, a: [s] if a == "rest" else [min(s + 1, 2)],
        "reward": lambda h, s, a: 0.25 if a == "rest" else 0.75,
        "cost_features": lambda h, s, a: [1.0, 0.0] if a == "rest" else [1.0, 1.0],
        "transition_features": lambda h, s, a, s2: [1.0],
        "fallback": lambda h, s: "rest",
        "center": lambda h, s: "rest",
        "anchor": lambda h: ([1.0, 0.0], 0.2),
        "limits": sf.Limit("strain", bound=0.6, noise=0.1, norm=1.0),
        "stationary_costs": True,
    }
    return sf.Problem.from_functions(**{**usual, **changed})


def test_a_ray_mixes_reward_costs_and_successors_of_both_ends() -> None:
    problem = declared()
    assert problem.successors(0, 0, "open") == (1, 0)  # its own, then its centre's
    layer = problem.at(0.25).graph.layers[0]
    assert layer.reward.tolist() == [0.25, 0.375]
    assert layer.cost_features.tolist() == [[1.0, 0.0], [1.0, 0.25]]  # type: ignore[union-attr]
    assert layer.transition_features.tolist() == [[1.0], [0.25], [0.75]]  # type: ignore[union-attr]
    assert not problem.at(0.25).has_rays
    for end in (0.0, 1.0):  # exact at both ends
        again = problem.at(problem.at(end).has_rays or end).graph.layers[0]
        assert again.reward[1] == (0.75 if end else 0.25)


def test_files_keep_rays(tmp_path: Path) -> None:
    for name in ("dosing/testing", "throttle/testing"):
        problem = sf.worlds.make(name).problem
        for suffix in ("json", "npz", "problem"):
            found = sf.Problem.load(problem.save(tmp_path / f"{name.split('/')[0]}.{suffix}"))
            assert found.digest == problem.digest
            for mine, theirs in zip(found.graph.rays, problem.graph.rays, strict=True):
                assert np.array_equal(mine.center, theirs.center)
                assert np.array_equal(mine.cost_features, theirs.cost_features)
                assert np.array_equal(mine.transition_features, theirs.transition_features)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"center": lambda h, s: "shut"}, "the centre is no action of the state"),
        ({"fallback": lambda h, s: "open"}, "the fallback plays an action with an intensity"),
        ({"center": lambda h, s, a: {"rest": "open", "open": "rest"}[a]}, "a centre has no centre of its own"),
        (
            {"cost_features": lambda h, s, a, s2: [1.0, float(a == "open")], "transition_features": None},
            "need transition features of their own",
        ),
    ],
)
def test_declarations_that_make_no_rays_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        declared(**changed)


def test_arrays_declare_the_same_rays() -> None:
    problem = sf.worlds.make("throttle/testing").problem
    graph, last = problem.graph, problem.graph.terminal
    given: dict[str, Any] = {
        "horizon": problem.horizon,
        "start": 0,
        "state_ptr": [layer.state_ptr for layer in graph.layers],
        "pair_ptr": [layer.pair_ptr for layer in graph.layers],
        "successors": [layer.successor for layer in graph.layers],
        "reward": [layer.reward for layer in graph.layers],
        "cost_features": [layer.cost_features for layer in graph.layers],
        "transition_features": [layer.transition_features for layer in graph.layers],
        "fallback": [np.where(y.fallback < 0, -1, y.fallback - y.state_ptr[:-1]) for y in graph.layers],
        "limits": list(problem.limits),
        "terminal_reward": last.reward,
        "center": [np.tile([-1, 0], layer.n_states) for layer in graph.layers],
    }
    with pytest.raises(InvalidInput, match="the cost features of a centre are missing"):
        sf.Problem.from_arrays(**given)
    made = sf.Problem.from_arrays(**given, center_cost_features=[rays.cost_features.copy() for rays in graph.rays])
    for mine, theirs in zip(made.graph.rays, graph.rays, strict=True):
        assert np.array_equal(mine.center, theirs.center)
        assert np.array_equal(mine.transition_features, theirs.transition_features)
    wrong = [rays.cost_features + 0.5 for rays in graph.rays]
    with pytest.raises(InvalidInput, match="at intensity 0 a ray has the cost features of its centre"):
        sf.Problem.from_arrays(**given, center_cost_features=wrong)


def test_the_first_plan_opens_as_far_as_the_norm_allows() -> None:
    """Before any data strain ≤ 0.2 + α·‖(0, 1)‖: 0.4 by hand; the plan says so, and why no further."""
    plan = sf.LsviNew(declared()).plan
    assert plan.intensity(0, 0, "open") == pytest.approx(0.4, abs=1e-12)
    assert plan.upper(0, 0, "open")[0] <= 0.6
    assert plan.intensity(0, 0, "rest") == 1.0
    text = str(plan.why(0, 0, "open"))
    assert "it may be opened to 0.39: at 0.40 strain may reach 0.6" in text or "to 0.40: at 0.41" in text
    assert plan.q(0, 0, "open") > plan.q(0, 0, "rest")
    assert plan.action(0, 0) == "open"


def test_data_enter_with_the_features_that_were_played(seed: int) -> None:
    """An operator's own intensity is the row that counts, in both regressions, to the last digit."""
    problem = declared(horizon=2, terminal_reward=lambda s: s / 2)
    agent, other = (sf.LsviNew(each, exploration="ideas") for each in (problem, problem.at(0.125)))
    for each, told in ((agent, 0.125), (other, None)):
        each.begin_episode(0)
        each.observe(0, 0, "open", 1, 0.3, **({"intensity": told} if told else {}))
        each.end_episode()
    assert np.array_equal(gram(agent.costs.bank), gram(other.costs.bank))
    assert np.array_equal(gram(agent.transitions.bank), gram(other.transitions.bank))
    assert np.array_equal(agent.costs.bank.state.targets, other.costs.bank.state.targets)
    agent.begin_episode(0)
    for wrong in (-0.1, 1.1, float("nan"), "half"):
        with pytest.raises(InvalidInput):
            agent.observe(0, 0, "open", 1, 0.3, intensity=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="has no intensity"):
        agent.observe(0, 0, "rest", 0, 0.3, intensity=0.5)


@pytest.mark.parametrize("name", ["dosing/testing", "throttle/testing"])
def test_step_by_step_compiled_and_resumed_runs_are_the_same(name: str, seed: int, tmp_path: Path) -> None:
    world = sf.worlds.make(name)
    runs = [sf.run(sf.LsviNew(world.problem), world, 60, seed, compiled=compiled) for compiled in (True, False)]
    sf.run(sf.LsviNew(world.problem), world, 25, seed, checkpoint=tmp_path / "half.npz")
    runs.append(sf.resume(tmp_path / "half.npz", sf.LsviNew(world.problem), world, episodes=60))
    for run in runs:
        assert np.array_equal(run.regret, runs[0].regret)
        assert np.array_equal(run.episodes_table.margin, runs[0].episodes_table.margin)
        assert run.violations.sum() == 0
        assert run.regret.min() >= -1e-12
    assert runs[0].value[-1] > runs[0].value[0] > runs[0].fallback_value


def test_the_best_policy_is_that_of_a_fine_grid_of_intensities() -> None:
    """In closed form along each ray: no worse than 401 fixed openings, and better by less than one is worth."""
    world = sf.worlds.make("throttle/testing")
    best = sf.exact.solve(world)
    grid = sf.exact.solve(sf.worlds.make("throttle/testing", levels=401))
    assert 0.0 <= best.value - grid.value < world.problem.horizon / 400
    assert sf.exact.evaluate(world, best.policy) == best.value
    assert sf.exact.violations(world, best.policy).probability == 0.0
    beyond = tuple(np.where(a < 1.0, np.minimum(1.001 * a, 1.0), a) for a in true_intensities(world))
    assert any((more > kept).any() for more, kept in zip(beyond, true_intensities(world), strict=True))
    broken = world.at(beyond)
    for h, (more, kept) in enumerate(zip(beyond, true_intensities(world), strict=True)):
        layer = world.problem.graph.layers[h]
        rows = broken.costs[h] > world.problem.violation_thresholds[h]
        pairs = np.logical_or.reduceat(rows.any(axis=1), layer.row_ptr[:-1])
        assert pairs[(more > kept) & (more < 1.0)].all()


@pytest.mark.parametrize("name", ["dosing/testing", "throttle/testing"])
def test_looking_one_step_ahead_walks_into_the_trap(name: str, seed: int) -> None:
    """Half as much again is to be gained. Who tests each step alone breaks the limit, nobody with Idea I."""
    world = sf.worlds.make(name)
    best = sf.exact.solve(world)
    assert best.value > 1.5 * sf.exact.fallback_value(world)
    blind = sf.LsviNew(world.problem, ideas=["II", "III", "IV"])
    assert sf.run(blind, world, 700, seed).violations.sum() > 0
    run = sf.run(sf.LsviNew(world.problem), world, 1500, seed)
    assert run.cost_event
    assert run.violations.sum() == 0
    assert best.value - run.value[-1] < 0.1 * (best.value - run.fallback_value)


def test_a_policy_must_say_its_intensities() -> None:
    world = sf.worlds.make("dosing/testing")
    with pytest.raises(InvalidInput, match="at which intensities does the policy play"):
        sf.exact.evaluate(world, lambda h, s: "dose")
    assert sf.exact.evaluate(world.at(0.0), lambda h, s: "dose") == pytest.approx(sf.exact.fallback_value(world))


def test_an_exported_policy_carries_intensities(tmp_path: Path, seed: int) -> None:
    world = sf.worlds.make("dosing/testing")
    run = sf.run(sf.LsviNew(world.problem), world, 60, seed)
    document = load_policy(run.export(tmp_path / "policy.json"))
    assert document["version"] == 4
    assert document["problem"] == world.problem.digest
    first = document["steps"][0][0]
    assert run.plan is not None
    assert first["intensity"] == run.plan.intensity(0, 0, first["action"])
    assert first["value"] == pytest.approx(sf.exact.evaluate(world, run.plan), abs=1e-9)
    code: dict[str, Any] = {}
    exec(run.export(tmp_path / "policy.py").read_text(), code)
    assert code["action"](0, 0) == (first["action"], first["intensity"])


def test_an_environment_plays_any_intensity(seed: int) -> None:
    """What is drawn at an intensity is what the world at that intensity draws."""
    world = sf.worlds.make("dosing/testing")
    env, half = world.env(), world.at(0.5)
    assert env.action_space.contains((1, np.array([0.5])))
    sampler = half.sampler(seed)
    env.reset(seed=seed)
    state = 0
    for h, layer in enumerate(half.problem.graph.layers):
        pair = int(layer.state_ptr[state]) + 1
        edge = sampler.step(h, pair)
        measured = sampler.measure(h, edge)
        state = int(layer.successor[edge])
        _, reward, _, _, info = env.step((1, np.array([0.5])))
        assert info["index"] == state
        assert info["intensity"] == 0.5
        assert np.allclose(info["measured"], measured, rtol=0, atol=1e-12)
        assert reward == pytest.approx(float(layer.reward[pair]), abs=1e-12)
    for wrong in (1, (1, 1.5), (1, "half"), (1,)):
        env.reset(seed=seed)
        with pytest.raises(InvalidInput):
            env.step(wrong)
    env.reset(seed=seed)
    assert env.step((0, 0.3))[4]["intensity"] == 1.0  # rest has none


def test_reports_and_snapshots_show_rays_at_their_intensities(tmp_path: Path, seed: int) -> None:
    world = sf.worlds.make("dosing/testing")
    run = sf.run(sf.LsviNew(world.problem), world, 60, seed)
    assert run.plan is not None
    save_snapshot(run.plan, 60, tmp_path / "plan.npz")
    found = load_snapshot(tmp_path / "plan.npz", world.problem)
    assert found.intensity is not None
    assert run.plan.intensities is not None
    assert all(map(np.array_equal, found.intensity, run.plan.intensities))
    shown = explorer(world, [found, found])
    assert len(shown["plans"]) == 1
    assert not shown["wrong"]
    assert any(name.startswith("dose at 0.") for name in shown["actions"])
    assert sf.draw(world, run.plan, path=tmp_path / "dosing.png").exists()
    assert "dose at 0." in run.report(tmp_path / "run.html").read_text()


def test_check_says_that_rays_can_start() -> None:
    diagnosis = sf.check(sf.worlds.make("dosing/testing").problem)
    assert diagnosis.errors == []
    assert diagnosis.cold_start.can_move is True


def test_a_log_is_calibrated_at_the_intensities_that_were_played(seed: int) -> None:
    """Costs are linear in features between the two ends, and at 0 what may follow is what may follow the centre."""
    world = sf.worlds.make("throttle/testing")
    problem, rng, rows = world.problem, np.random.default_rng(seed), list[dict[str, Any]]()
    gamma, features = world.cost_parameters[0, 0], []
    for _ in range(400):
        alpha = float(rng.choice([0.0, 0.3, 0.7, 1.0]))
        at = problem.at(alpha)
        layer, pair = at.graph.layers[0], at.pair_index(0, 0, 1.0 if alpha > 0.0 else 0.0)
        edge = int(rng.integers(layer.pair_ptr[pair], layer.pair_ptr[pair + 1]))
        after = problem.states(1)[int(layer.successor[edge])]
        features.append(layer.cost_features[edge])
        cost = float(gamma @ features[-1] + 0.1 * rng.standard_normal())
        row = {"step": 0, "state": 0, "action": 1.0, "intensity": alpha, "next_state": after, "cost": cost}
        rows.append(row)
    found = sf.calibrate(problem, rows, level=1 - 1e-6)
    assert not found.limits[0].accused
    assert 0.08 < found.limits[0].noise < 0.15
    assert found.support.outside == 0
    hot = max(row["next_state"] for row in rows)
    assert sf.calibrate(problem, [*rows, {**rows[0], "intensity": 0.5, "next_state": hot}]).support.outside == 0
    assert sf.calibrate(problem, [*rows, {**rows[0], "intensity": 0.0, "next_state": hot}]).support.outside == 1
    assert np.allclose(read_measurements(problem, rows)[1].features, features, rtol=0.0, atol=1e-15)
    with pytest.raises(InvalidInput, match="does not say at which it was played"):
        sf.calibrate(problem, [{key: value for key, value in rows[0].items() if key != "intensity"}])


def test_whatever_does_not_know_intensities_refuses_them() -> None:
    world = sf.worlds.make("dosing/testing")
    problem = world.problem
    for refused in (
        lambda: sf.LsviNewPaper(problem, episodes=10, initial_episodes=0),
        lambda: sf.agents.make("lsvi-ucb", problem),
        lambda: problem.stored_in_float32(),
    ):
        with pytest.raises(InvalidInput, match="does not know intensities"):
            refused()
    assert sf.run(sf.agents.make("fallback", problem), world, 5, 0).violations.sum() == 0
