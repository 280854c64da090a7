"""The audit: studies of every kind are clean, and it agrees with the engine that it shares no code with."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import worlds
from surefoot.audits import audit as audit_module
from surefoot.audits import bounds as audit_bounds
from surefoot.audits.audit import audit
from surefoot.audits.bounds import Data
from surefoot.audits.certified import make_plan
from surefoot.audits.declaration import read_problem
from surefoot.audits.rows import default_ridge, ridge_ratio
from surefoot.estimate import costs as estimated_costs
from tests.audited import clean, played, study_at
from tests.drawn_worlds import certified_world, paper_world
from tests.forgery import JOURNAL, records_of
from tests.hand_made import corridor
from tests.made_worlds import hand_world
from tests.saved_problems import DENSE, PROBLEMS
from tests.studies import Plant, Quick, confidence_of, go_on, kettle, nervous, off_the_fallback

WARM = ("warm", 1)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of the kettle that has left its fallback; not to be changed."""
    return played(tmp_path_factory.mktemp("learnt") / "plant.study", 60)


# --- clean studies --------------------------------------------------------------------------------------


def test_a_study_that_learns_is_clean(learnt: Path) -> None:
    report = clean(learnt)
    counts = report.counts
    assert counts["ask"] == counts["tell"] == counts["offers by estimate"] + counts["offers of the fallback"]
    assert counts["offers by estimate"] > 50
    assert counts["begin"] == 60
    assert counts["plans"] > 5
    assert counts["terminal"] > 10
    assert report.last_hash == records_of(learnt)[-1]["hash"]
    assert json.loads(json.dumps(report.to_dict()))["clean"] is True


@pytest.mark.parametrize("name", ["thermal/testing", "toy-text/frozen-lake-4x4"])
def test_named_worlds_are_clean(name: str, tmp_path: Path, seed: int) -> None:
    world = worlds.make(name)
    with study_at(tmp_path / "s", world, monitor_factory=None) as study:
        go_on(study, Plant(world, seed), 15)
    assert clean(tmp_path / "s").counts["begin"] == 15


@pytest.mark.parametrize(("engine", "own"), [(64, 64), (4, 4), (4, 64)])
def test_model_errors_are_counted_as_the_engine_counts_them(
    engine: int, own: int, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row of the data, as many rows as both have room for; an audit that counts other rows does not agree."""
    monkeypatch.setattr(estimated_costs, "MOST_VISITED", engine)
    monkeypatch.setattr(audit_bounds, "MOST_VISITED", own)
    world = worlds.make("driving/testing", mismatch=0.02)
    with study_at(tmp_path / "s", world, monitor_factory=None) as study:
        go_on(study, Plant(world, seed), 20)
    assert audit(tmp_path / "s").clean == (engine == own)


def test_drawn_worlds_are_clean(tmp_path: Path, seed: int, thorough: bool) -> None:
    """Several limits, costs of last states, anchors, model errors, pooled or not: whatever is drawn."""
    for case in range(8 if thorough else 4):
        world, path = certified_world(100 * seed + case), tmp_path / str(case)
        with study_at(path, world) as study:
            go_on(study, Plant(world, seed), 15)
        clean(path)


OPTIONS: list[dict[str, Any]] = [
    {"replan_growth": 0.0},
    {"initial_episodes": 10},
    {"ridges": [0.01, 1.0]},
    {"ridges": [0.3], "shaped": 2.0},
    {"shaped": 0.0},
    {"failure_probability": 0.2, "false_alarm": 0.3},
    {"snapshot_every": 20},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_are_clean(options: dict[str, Any], tmp_path: Path) -> None:
    world = kettle()
    with study_at(tmp_path / "s", world, **options) as study:
        go_on(study, Plant(world, 0), 20)
    report = clean(tmp_path / "s")
    if "initial_episodes" in options:
        assert report.counts["offers of the fallback"] >= 20


def test_the_papers_learner_is_clean(tmp_path: Path, seed: int) -> None:
    world, settings = paper_world(100 * seed)
    with study_at(tmp_path / "s", world, agent="lsvi-new-paper", **settings, initial_episodes=3) as study:
        go_on(study, Plant(world, seed), min(10, settings["episodes"]))
    clean(tmp_path / "s")


def test_all_that_can_happen_in_one_study_is_clean(tmp_path: Path) -> None:
    """Imports, overrides, missing costs, aborts, alarms, safe mode, acknowledgements, a discard, a torn tail."""
    world, path = kettle(), tmp_path / "s"
    plant = Plant(world, 3)
    with study_at(path, world, snapshot_every=7, monitor_factory=nervous({90: "residual"})) as study:
        log = [
            {"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.1, "episode": 1},
            {"step": 1, "state": "s", "action": "heat", "next_state": WARM, "cost": None, "episode": 1},
            {"step": 2, "state": WARM, "cost": 0.16, "episode": 1},
            {"step": 1, "state": "s", "action": "heat", "next_state": "s", "cost": 0.21, "episode": 2},
        ]
        study.import_log(log, source="a log")
        go_on(study, plant, 8)
        study.begin("s")  # nothing but a beginning
        study.abort("no reason")
        with study.episode("s") as ep:  # an override, then an abort with a pending ask
            ep.ask()
            ep.tell(WARM, 0.2, action_applied="heat")
            ep.ask()
            ep.abort("enough")
        with study.episode("s") as ep:  # costs that were not measured
            ep.ask()
            ep.tell("s", None, action_applied="wait")
            ep.ask()
            ep.tell(WARM, None, action_applied="heat")
            ep.tell_terminal(None)
        study.begin("s")  # an action that nobody knows
        study.tell(study.ask().ask_id, "s", 0.1, action_applied="kick")
        study.abort("lost")
        go_on(study, plant, 14)
        with study.episode("s") as ep:  # a successor that was not declared
            ep.ask()
            ep.tell("cold", 0.1, action_applied="heat")
        with study.episode("s") as ep:  # safe mode
            while not ep.done:
                ep.tell(*plant.answer(1, (offer := ep.ask()).step, offer.state, offer.action))
        study.acknowledge("it may stay cold", problem=kettle(wider=True).problem)
        with study.episode("s") as ep:  # a cost that is none
            ep.ask()
            ep.tell("s", float("nan"), action_applied="wait")
            ep.ask()
            ep.abort("the sensor is dead")
        study.acknowledge("a new sensor", discard_data=True)
        go_on(study, plant, 80)
        assert study.standing.epoch == 1
        assert study.safe_mode  # the monitor's alarm
        study.acknowledge("another plant", discard_data=True)
        later = {"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.11, "time": time.time() + 9}
        study.import_log([later])
        go_on(study, plant, 100)
    with open(path / JOURNAL, "ab") as stream:
        stream.write(b'{"n":99')
    report = clean(path)
    assert report.promise.startswith("every step since record ")
    assert report.promise.endswith("(data discarded)")
    assert report.counts["acknowledge"] == 3
    assert report.counts["rows imported"] == 5
    assert report.counts["overrides"] >= 3
    assert report.counts["overrides that were not certified"] >= 1
    assert any("never acknowledged" in remark for remark in report.remarks)


def test_the_safe_mode_off_the_fallback_is_clean(tmp_path: Path) -> None:
    """Where the fallback has no action, the certified one from before the alarm is offered."""
    world = off_the_fallback()
    with study_at(tmp_path / "s", world, monitor_factory=nervous({7: "limit"}), despite="a small case") as study:
        go_on(study, Plant(world, 0), 6)
        assert study.safe_mode
    report = clean(tmp_path / "s")
    asks = [r["certificate"]["safe_by"] for r in records_of(tmp_path / "s") if r["kind"] == "ask"]
    assert "estimate before the alarm" in asks
    assert report.counts["alarm"] == 1
    assert report.counts["offers of a plan before an alarm"] == asks.count("estimate before the alarm")
    assert report.promise.startswith("none")


def test_a_real_drift_is_clean(tmp_path: Path, seed: int) -> None:
    """With the monitor itself: the plant changes, the alarm comes, the data are dropped."""
    world, path = kettle(), tmp_path / "s"
    plant = Plant(world, seed)
    with study_at(path, world, monitor_factory=None) as study:
        go_on(study, plant, 30)
        plant._measured = lambda truth, rng: [float(c + 0.4 * rng.standard_normal()) for c in truth]  # type: ignore
        while not study.safe_mode:
            go_on(study, plant, study.standing.episodes + 1)
        go_on(study, plant, study.standing.episodes + 2)
        study.acknowledge("the sensor was exchanged", discard_data=True)
        go_on(study, Plant(world, seed + 1), study.standing.episodes + 8)
    assert clean(path).counts["alarm"] >= 1


def test_bounds_that_contradict_each_other_are_clean_when_an_alarm_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with study_at(path, kettle(), replan_growth=0.0) as study:
        while not study.safe_mode:
            with study.episode("s") as ep:
                ep.ask()
                ep.tell("s", 40.0 * (-1) ** study.standing.episodes, action_applied="wait")
                ep.abort("on")
    assert any(r["kind"] == "alarm" and r["alarm"] == "contradiction" for r in records_of(path))
    report = audit(path)
    assert not [item for item in report.exceptions if "limit" not in item.what]  # 40 is beyond all noise as well


def test_a_bound_on_the_limit_itself_is_within_rounding(tmp_path: Path) -> None:
    """What is known before any data, L‖x‖ = 1·0.5, is the limit but for the last digits: certified by the engine."""
    edge = 0.5 - 1e-13
    world = hand_world(
        {(0, "s"): {"idle": (0.1, {"s": (1.0, 0.1)}), "edge": (0.9, {"s": (1.0, edge)})}}, {"s": (0.0, None)}
    )
    with study_at(tmp_path / "s", world, despite="a small case") as study:
        go_on(study, Plant(world, 0), 3)
    assert clean(tmp_path / "s").counts["offers within rounding"] > 0


# --- the transcription ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DENSE)
def test_problems_are_read_alike(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]()
    assert read_problem(problem.save(tmp_path / "problem.json")).digest == problem.digest
    read = read_problem(problem.save(tmp_path / "problem.npz"))
    assert read.digest == problem.digest
    assert read.fallback_ends == problem.graph.terminal.fallback_reached.tolist()
    for h, layer in enumerate(problem.graph.layers):
        assert read.layers[h].fallback == layer.fallback.tolist()
        assert read.layers[h].x.tobytes() == layer.cost_features.tobytes()
        for i in range(layer.n_states):
            state = problem.naming.states[h][i]
            assert read.state(h, state) == i
            for action in problem.actions(h, state):
                assert read.pair(h, i, action) == problem.pair_index(h, state, action)
    assert read.state(0, "no such state") is None


@pytest.mark.parametrize("case", range(4))
def test_bounds_and_sets_agree_with_the_engine(case: int, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, case, 5])
    world = certified_world(100 * seed + case)
    problem, agent = world.problem, sf.LsviNew(world.problem, 0.1)
    read = read_problem(problem.save(tmp_path / "problem.npz"))
    data, sampler = Data(read, paper=False), world.sampler(seed)
    for _ in range(25):
        start = int(rng.choice(problem.graph.starts))
        agent._begin(start)
        state = start
        for h, layer in enumerate(problem.graph.layers):
            pair = int(rng.integers(layer.state_ptr[state], layer.state_ptr[state + 1]))
            edge = sampler.step(h, pair)
            cost = sampler.measure(h, edge)
            agent._record(h, pair, edge, cost)
            data.add(h, layer.cost_features[edge], cost, True)
            state = int(layer.successor[edge])
        agent._finish()
    agent.replan()
    plan = make_plan(read, data, confidence_of(agent))
    assert plan.possible.consistent
    for h in range(problem.horizon - 1):
        gap = agent.plan.bounds.upper[h] - plan.rows[h].upper
        assert (np.abs(gap) <= plan.rows[h].slop).all()
        engine = agent.plan.certified_sets.pairs[h]
        assert (np.array(plan.sure.pairs[h]) <= engine).all()
        assert (engine <= np.array(plan.possible.pairs[h])).all()


READERS = {"surefoot.storage.archive", "surefoot.storage.documents"}  # of containers; they know nothing of problems


def imported_by(source: Path) -> set[str]:
    """What a file imports of surefoot; ``from a import b`` as a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith("surefoot")}


def test_the_audit_shares_no_code_and_needs_no_compiler(learnt: Path) -> None:
    folder = Path(audit_module.__file__).parent
    parts = sorted(folder.glob("*.py"))
    assert len(parts) >= 5
    for part in parts:
        for name in imported_by(part) - READERS:
            assert name.startswith("surefoot.audits."), f"{part.name} imports {name}"
    for reader in READERS:
        source = folder.parent / "storage" / f"{reader.rpartition('.')[2]}.py"
        below = {name for name in imported_by(source) if not name.startswith("surefoot.storage.")}
        assert {name.rpartition(".")[0] for name in below} == {"surefoot.errors"}, reader
    code = (
        "import sys; from surefoot.audits.audit import audit; print(audit(sys.argv[1]).clean, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(learnt)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_ridges_beside_anchors_that_are_nearly_parallel(tmp_path: Path, seed: int) -> None:
    """Two programs sum them in different ways: what is left beside such anchors must not be their rounding."""
    rng = np.random.default_rng(seed)
    for near in (1e-1, 1e-3, 3e-5):
        one, step, truth = rng.normal(size=4), rng.normal(size=4), np.array([0.1, 0.2, 0.3, 0.4])
        anchors = [(x.tolist(), float(x @ truth)) for x in (one, one + near * step)]
        rows = [one, one + step * 0.7 + 0.01 * rng.normal(size=4)]
        problem = corridor(
            {"stay": rows[0].tolist(), "go": rows[1].tolist()},
            sf.Limit("load", bound=9.0, noise=0.1, prior=[(0, 0.5), (0, 1), (-1, 1), (0, 2)]),
            anchor=anchors,
        )
        read, own = read_problem(problem.save(tmp_path / "p.json")), sf.LsviNew(problem).constants
        assert [default_ridge(read, paper=False)] == pytest.approx(own["ridges"], rel=1e-7)
        assert ridge_ratio(read, read.known[0]) == pytest.approx(own["ridge_ratios"][0], rel=1e-7)


def test_rows_of_zeros_have_no_visits_to_count(tmp_path: Path) -> None:
    limit = sf.Limit("heat", bound=1.0, noise=0.01, norm=2.0, misspecification=0.2)
    problem = corridor({"rest": [0.0, 0.0], "go": [1.0, 0.5]}, limit)
    with sf.Study.open(tmp_path / "zero.study", problem, files=Quick(), despite="a test", replan_growth=0.0) as study:
        for _ in range(3):
            with study.episode() as episode:
                episode.ask()
                episode.tell("s", 0.1, action_applied="rest")
    assert sf.audit(tmp_path / "zero.study").clean
