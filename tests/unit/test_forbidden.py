"""Forbidden states (spec 9): never certified, never hoped for, truly unsafe, a violation when entered."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.exact import safe_sets
from surefoot.plan.why import Kind
from surefoot.reports.classes import Class, classify
from surefoot.reports.explorer import explorer
from surefoot.reports.pictures.draw import draw
from surefoot.runs.plans_kept import load_snapshot, save_snapshot
from tests.forgery import records_of
from tests.tank import FULL, tank, tank_world

WITHOUT_LOOK_AHEAD = ("II", "III", "IV")


def inside(problem: sf.Problem, h: int) -> Any:
    """(N,) the pairs of forbidden states."""
    layer = problem.graph.layers[h]
    return np.repeat(layer.forbidden, np.diff(layer.state_ptr))


# --- declaring ------------------------------------------------------------------------------------------


def test_functions_and_arrays_declare_them() -> None:
    problem = tank()
    marked = {
        (h, s) for h in range(6) for s, bad in zip(problem.states(h), problem.graph.forbidden(h), strict=True) if bad
    }
    assert marked == {(h, FULL) for h in range(2, 6)}
    loop = {"state_ptr": np.array([0, 2, 3]), "pair_ptr": np.arange(4), "successors": np.array([0, 1, 1])}
    known: dict[str, Any] = {
        **{"reward": np.zeros(3), "cost_features": np.ones((3, 1)), "transition_features": np.ones((3, 1))},
        **{"fallback": np.array([0, 0]), "limits": sf.Limit("load", bound=2.0, noise=0.1, norm=1.0)},
    }
    mask = np.array([False, True])
    for given in (mask, [None, mask, mask], [mask, mask, mask]):
        problem = sf.Problem.from_arrays(horizon=3, start=0, **loop, **known, forbidden=given)
        assert problem.graph.forbidden(2).tolist() == [False, True]
    mask[1] = False  # a copy was taken
    assert problem.graph.forbidden(1).tolist() == [False, True]
    for wrong, said in (
        ([None, None], "must be a numpy array or a list of one for each of 3 steps"),
        (np.array([0, 1]), "forbidden has the wrong dtype"),
        (np.array([False]), "forbidden has the wrong shape"),
        ([None, None, np.array([True])], "forbidden has the wrong shape"),
    ):
        with pytest.raises(InvalidInput, match=said):
            sf.Problem.from_arrays(horizon=3, start=0, **loop, **known, forbidden=wrong)


@pytest.mark.parametrize(
    ("forbidden", "said"),
    [
        (lambda h, s: s == 0, "start is forbidden.*step 0, state 0.*Start elsewhere"),
        (lambda h, s: h == 3 and s == 0, "fallback may enter a forbidden state.*step 2, state 0.*action 0 can reach 0"),
        (lambda h, s: h == 5 and s == 0, "fallback may enter a forbidden state.*step 4"),
        (lambda h, s: 1, "forbidden must return True or False.*step 0, state 0"),
        ("full", "forbidden must be a function"),
    ],
)
def test_a_start_or_a_fallback_in_one_is_refused(forbidden: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        tank(forbidden=forbidden)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_files_and_digests_know_them(suffix: str, tmp_path: Path) -> None:
    problem = tank()
    again = sf.Problem.load(problem.save(tmp_path / f"p{suffix}"))
    assert again.digest == problem.digest != tank(forbidden=False).digest
    assert all(np.array_equal(again.graph.forbidden(h), problem.graph.forbidden(h)) for h in range(6))


# --- plans ----------------------------------------------------------------------------------------------


def test_no_plan_certifies_or_hopes_for_anything_in_one() -> None:
    world = tank_world()
    free = tank_world(forbidden=False)
    learned = [sf.run(sf.LsviNew(each.problem, ridges=(0.1, 1.0)), each, 120, seed=1).plan for each in (world, free)]
    plan, other = learned
    assert plan is not None
    assert other is not None
    for h in range(5):
        banned = world.problem.graph.forbidden(h)
        assert not plan.certified_sets.states[h][banned].any()
        assert not plan.hope.hopeful.states[h][banned].any()
        assert not plan.certified_sets.pairs[h][inside(world.problem, h)].any()
        assert not plan.hope.hopeful.pairs[h][inside(world.problem, h)].any()
    assert not plan.certified_sets.states[5][world.problem.graph.forbidden(5)].any()
    assert plan.certified(4, 1, 2)  # to 2 or 3
    assert not plan.certified(4, 3, 1)  # to 3 or 4
    assert other.certified(4, 3, 1)


def test_a_contradiction_gives_no_hope_there_either() -> None:
    agent = sf.LsviNew(tank(), safety_radius_scale=1e-6)
    for k in range(40):
        agent.costs.add(0, np.array([1.0, 0.0, 0.0]), np.array([float(k % 2)]))
        agent.costs.add(0, np.array([1.0, 0.0, 0.5]), np.array([-5.0]))
    agent.replan()
    assert not agent.plan.consistent
    for h in range(5):
        assert not agent.plan.hope.hopeful.pairs[h][inside(agent.problem, h)].any()
        assert agent.plan.hope.hopeful.pairs[h][~inside(agent.problem, h)].all()


def test_why_says_so() -> None:
    plan = sf.LsviNew(tank()).plan
    found = plan.why(4, 3, 1)
    assert found.kind == Kind.FORBIDDEN
    assert str(found).endswith("may lead to 4, which is forbidden")
    assert plan.why(4, FULL, 0).kind == Kind.INSIDE
    assert str(plan.why(4, FULL, 0)).endswith("the state itself is forbidden")
    # An action that keeps its limit, into a state from which only forbidden ones follow, says that at the end.
    wide = sf.Limit("strain", bound=9.0, noise=0.02, norm=0.7)
    chain = sf.LsviNew(tank(limits=wide, actions=lambda h, s: [2] if s else [0, 2])).plan.why(3, 0, 2)
    assert [link.kind for link in chain.chain] == [Kind.FUTURE, Kind.FORBIDDEN]


def test_check_counts_them_as_never_certified() -> None:
    with_them, without = sf.check(tank()), sf.check(tank(forbidden=False))
    assert with_them.forced.states >= without.forced.states + 4
    problem = tank(actions=lambda h, s: [0, FULL] if s == 0 else [0], reward=lambda h, s, a: 0.5)
    found = sf.check(problem)
    assert not found.cold_start.can_move_later
    assert any("forbidden" in finding.text for finding in found.findings)


# --- the truth, and runs --------------------------------------------------------------------------------


def test_they_are_truly_unsafe() -> None:
    world = tank_world()
    best, (states, pairs) = sf.exact.solve(world), safe_sets(world)
    for h in range(6):
        banned = world.problem.graph.forbidden(h)
        for sets in (best.safe_states, states):
            assert not sets[h][banned].any()
        assert np.array_equal(best.safe_states[h], states[h])
    for h in range(5):
        assert not best.safe_actions[h][inside(world.problem, h)].any()
        assert np.array_equal(best.safe_actions[h], pairs[h])
    assert best.value < sf.exact.solve(tank_world(forbidden=False)).value


def test_entering_one_is_a_violation_counted_once(seed: int) -> None:
    """Filling by one at each step: the level never falls, so the tank overflows at most once, then stays full."""
    world = sf.World(tank(limits=sf.Limit("strain", bound=9.0, noise=0.02, norm=0.7)), [0.7, 0.3], [0.2, 0.25, 0.5])
    expected = sf.exact.violations(world, lambda h, s: 1)
    assert 0 < expected.probability <= expected.expected
    free = sf.World(tank(forbidden=False, limits=world.problem.limits[0]), transition=[0.7, 0.3], cost=[0.2, 0.25, 0.5])
    assert sf.exact.violations(free, lambda h, s: 1).expected == 0.0
    env = world.env()
    entered, episodes = 0, 500
    for k in range(episodes):
        _, info = env.reset(seed=seed) if k == 0 else env.reset()
        assert info["forbidden"] is False
        done = False
        while not done:
            _, _, done, _, info = env.step(1)
            assert info["forbidden"] is (info["state"] == FULL)
            entered += info["forbidden"]
    assert abs(entered / episodes - expected.expected) < 6 * np.sqrt(5 * expected.expected / episodes)


def test_runs_count_what_the_truth_says(seed: int) -> None:
    """An agent without look-ahead enters forbidden states, the same number of times on both paths; LSVI-NEW never."""
    world = tank_world()
    careless = sf.LsviNew(world.problem, ideas=WITHOUT_LOOK_AHEAD, ridges=(0.1, 1.0), exploration="ideas")
    reckless = sf.run(careless, world, 200, seed)
    careful = sf.run(sf.LsviNew(world.problem, ridges=(0.1, 1.0)), world, 200, seed)
    assert careful.violations.sum() == 0 or not careful.cost_event
    assert reckless.violations.sum() > 0
    again = sf.LsviNew(world.problem, ideas=WITHOUT_LOOK_AHEAD, ridges=(0.1, 1.0), exploration="ideas")
    slow = sf.run(again, world, 200, seed, compiled=False)
    assert np.array_equal(slow.violations, reckless.violations)
    assert np.array_equal(slow.regret, reckless.regret)


# --- studies, audits, pictures --------------------------------------------------------------------------


def test_a_study_never_offers_a_way_into_one_and_its_audit_agrees(tmp_path: Path, seed: int) -> None:
    world, path = tank_world(), tmp_path / "tank.study"
    sampler, problem = world.sampler(seed), world.problem
    with sf.Study.open(path, problem) as study:
        for _ in range(40):
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    edge = sampler.step(offer.step, problem.pair_index(offer.step, offer.state, offer.action))
                    after = problem.states(offer.step + 1)[int(problem.graph.layers[offer.step].successor[edge])]
                    assert after != FULL
                    episode.tell(after, sampler.measure(offer.step, edge))
        study.begin()
        for after in (2, 3, 4):  # a person fills it
            offer = study.ask()
            study.tell(offer.ask_id, after, None, action_applied=2 if after == 2 else 1)
        with pytest.raises(sf.errors.AssumptionBroken, match="this state is forbidden"):
            study.ask()
        study.abort("drained by hand")
    report = sf.audit(path)
    assert report.clean
    assert report.counts["overrides that were not certified"] >= 1


def test_an_audit_sees_that_a_forbidden_state_was_struck_out(tmp_path: Path) -> None:
    """Negative control: an offer into a state that is forbidden is no certified one."""
    path = tmp_path / "tank.study"
    wide = sf.Limit("strain", bound=9.0, noise=0.02, norm=0.7)
    with sf.Study.open(
        path, tank(forbidden=False, limits=wide), despite="so wide that everything is certified"
    ) as study:
        study.begin()
        for after in (2, 4):
            study.tell(study.ask().ask_id, after, 0.5)
        study.abort("enough")
    assert sf.audit(path).clean
    assert {record["action"] for record in records_of(path) if record["kind"] == "ask"} == {2}
    banned = tank(limits=wide)
    (path / "problem.json").unlink()
    banned.save(path / "problem.json")
    assert not sf.audit(path).clean


def test_a_declaration_cannot_take_them_back(tmp_path: Path) -> None:
    from surefoot.study.comparing import refuse_narrower

    for old, new in ((tank(), tank(forbidden=False)), (tank(forbidden=False), tank())):
        with pytest.raises(InvalidInput, match="forbidden in one of them only"):
            refuse_narrower(old, new, False)


def test_pictures_and_tables_show_them_as_their_own_class(tmp_path: Path) -> None:
    world = tank_world()
    run = sf.run(sf.LsviNew(world.problem), world, 50, seed=0)
    assert run.plan is not None
    view = classify(world, run.plan)
    for h in range(6):
        assert (view.states[h] == Class.FORBIDDEN).tolist() == world.problem.graph.forbidden(h).tolist()
    assert "forbidden" in view.csv()
    save_snapshot(run.plan, 0, tmp_path / "plan.npz")
    shown = explorer(world, [load_snapshot(tmp_path / "plan.npz", world.problem)])
    marks = np.frombuffer(base64.b64decode(shown["forbidden"]), np.uint8)
    assert marks.tolist() == np.concatenate([world.problem.graph.forbidden(h) for h in range(6)]).tolist()
    kinds = np.frombuffer(base64.b64decode(shown["plans"][0]["kind"]), np.uint8)
    assert {int(Kind.FORBIDDEN), int(Kind.INSIDE)} <= set(kinds.tolist())
    assert shown["any_forbidden"]
    assert shown["by_pair"] == [True] * 5
    assert draw(world, run.plan, tmp_path / "tank.png").stat().st_size > 1000
