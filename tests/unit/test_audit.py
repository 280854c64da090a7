"""The audit: clean studies of every kind are clean, and every kind of tampering is caught at its place."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import surefoot as sf
from surefoot import worlds
from surefoot.audits import audit as audit_module
from surefoot.audits import bounds as audit_bounds
from surefoot.audits.audit import AuditReport, Unreadable, audit
from surefoot.audits.bounds import Data
from surefoot.audits.certified import make_plan
from surefoot.audits.declaration import read_problem
from surefoot.audits.rows import default_ridge, ridge_ratio
from surefoot.cli.audit import audit_command
from surefoot.estimate import costs as estimated_costs
from tests.drawn_worlds import certified_world, paper_world
from tests.forgery import JOURNAL, Record, forge, records_of, sealed
from tests.hand_made import corridor
from tests.made_worlds import hand_world
from tests.saved_problems import DENSE, PROBLEMS
from tests.studies import Calm, Plant, Quick, confidence_of, go_on, kettle, nervous, off_the_fallback

WARM = ("warm", 1)


def study_at(path: Path, world: sf.World | sf.Problem, **options: Any) -> sf.Study:
    problem = world.problem if isinstance(world, sf.World) else world
    return sf.Study.open(path, problem, **{"files": Quick(), "monitor_factory": Calm, **options})


def clean(path: Path) -> AuditReport:
    report = audit(path)
    assert report.clean, str(report)
    assert report.exit_code == 0
    assert "CLEAN" in str(report)
    return report


def found(path: Path, *words: str, at: int | None = None) -> AuditReport:
    """The report of a study with exceptions, one of which has these words, at this record."""
    report = audit(path)
    assert report.exit_code == 1
    hits = [item for item in report.exceptions if all(word in item.what for word in words)]
    assert hits, str(report)
    if at is not None:
        assert at in [item.record for item in hits], str(report)
        assert f"record {at} " in str(report)
    return report


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of the kettle that has left its fallback; not to be changed."""
    path = tmp_path_factory.mktemp("learnt") / "plant.study"
    world = kettle()
    with study_at(path, world) as study:
        go_on(study, Plant(world, 0), 120)
    return path


@pytest.fixture
def path(learnt: Path, tmp_path: Path) -> Path:
    """A copy of it, to be tampered with."""
    return Path(shutil.copytree(learnt, tmp_path / "plant.study"))


def first(path: Path, kind: str, condition: Callable[[Record], bool] = lambda record: True, skip: int = 0) -> int:
    """The number of the first record of a kind, after some."""
    return next(r["n"] for r in records_of(path) if r["kind"] == kind and r["n"] >= skip and condition(r))


# --- clean studies --------------------------------------------------------------------------------------


def test_a_study_that_learns_is_clean(learnt: Path) -> None:
    report = clean(learnt)
    counts = report.counts
    assert counts["ask"] == counts["tell"] == counts["offers by estimate"] + counts["offers of the fallback"]
    assert counts["offers by estimate"] > 50
    assert counts["begin"] == 120
    assert counts["plans"] > 5
    assert counts["terminal"] > 10
    assert report.last_hash == records_of(learnt)[-1]["hash"]
    assert json.loads(json.dumps(report.to_dict()))["clean"] is True


@pytest.mark.parametrize("name", ["thermal/testing", "figure1", "driving/testing", "toy-text/frozen-lake-4x4"])
def test_named_worlds_are_clean(name: str, tmp_path: Path, seed: int) -> None:
    world = worlds.make(name)
    with study_at(tmp_path / "s", world, monitor_factory=None) as study:
        go_on(study, Plant(world, seed), 30)
    assert clean(tmp_path / "s").counts["begin"] == 30


@pytest.mark.parametrize(("engine", "own"), [(64, 64), (4, 4), (4, 64)])
def test_model_errors_are_counted_as_the_engine_counts_them(
    engine: int, own: int, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row of the data, as many rows as both have room for; an audit that counts other rows does not agree."""
    monkeypatch.setattr(estimated_costs, "MOST_VISITED", engine)
    monkeypatch.setattr(audit_bounds, "MOST_VISITED", own)
    world = worlds.make("driving/testing", mismatch=0.02)
    with study_at(tmp_path / "s", world, monitor_factory=None) as study:
        go_on(study, Plant(world, seed), 40)
    assert audit(tmp_path / "s").clean == (engine == own)


@pytest.mark.parametrize("case", range(8))
def test_drawn_worlds_are_clean(case: int, tmp_path: Path, seed: int) -> None:
    """Several limits, costs of last states, anchors, model errors, pooled or not: whatever is drawn."""
    world = certified_world(100 * seed + case)
    with study_at(tmp_path / "s", world) as study:
        go_on(study, Plant(world, seed), 25)
    clean(tmp_path / "s")


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
        go_on(study, Plant(world, 0), 40)
    report = clean(tmp_path / "s")
    if "initial_episodes" in options:
        assert report.counts["offers of the fallback"] >= 20


@pytest.mark.parametrize("case", range(3))
def test_the_papers_learner_is_clean(case: int, tmp_path: Path, seed: int) -> None:
    world, settings = paper_world(100 * seed + case)
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
        go_on(study, plant, 60)
        plant._measured = lambda truth, rng: [float(c + 0.4 * rng.standard_normal()) for c in truth]  # type: ignore
        while not study.safe_mode:
            go_on(study, plant, study.standing.episodes + 1)
        go_on(study, plant, study.standing.episodes + 2)
        study.acknowledge("the sensor was exchanged", discard_data=True)
        go_on(study, Plant(world, seed + 1), study.standing.episodes + 20)
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


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("name", DENSE)
def test_problems_are_read_alike(name: str, suffix: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]()
    read = read_problem(problem.save(tmp_path / f"problem{suffix}"))
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


@pytest.mark.parametrize("case", range(8))
def test_bounds_and_sets_agree_with_the_engine(case: int, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, case, 5])
    world = certified_world(100 * seed + case)
    problem, agent = world.problem, sf.LsviNew(world.problem, 0.1)
    read = read_problem(problem.save(tmp_path / "problem.npz"))
    data, sampler = Data(read, paper=False), world.sampler(seed)
    for _ in range(40):
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
    assert plan.possibly_consistent
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


# --- tampering without care -----------------------------------------------------------------------------


def replaced(path: Path, n: int, line: bytes) -> None:
    lines = (path / JOURNAL).read_bytes().splitlines(keepends=True)
    lines[n] = line
    (path / JOURNAL).write_bytes(b"".join(lines))


def dearer(line: bytes) -> Record:
    record: Record = json.loads(line)
    record["cost"][0] += 0.001
    return record


def plainly(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


TAMPERED: dict[str, tuple[str, Callable[[list[bytes], int], Any], str, int]] = {
    # what: (kind of the record n, what is done to the lines, what is said, of which record after n)
    "a cost": ("tell", lambda all, n: all.__setitem__(n, plainly(dearer(all[n]))), "does not match its hash", 0),
    "a cost with its hash": ("tell", lambda all, n: all.__setitem__(n, sealed(dearer(all[n]))), "does not follow", 1),
    "swapped": ("tell", lambda all, n: all.insert(n, all.pop(n + 1)), "dropped, added or moved", 0),
    **{f"no {kind}": (kind, lambda all, n: all.pop(n), "dropped", 0) for kind in ("tell", "ask", "begin", "terminal")},
    "one twice": ("tell", lambda all, n: all.insert(n, all[n]), "does not follow", 1),
    "spaces": ("ask", lambda all, n: all.__setitem__(n, json.dumps(json.loads(all[n])).encode() + b"\n"), "written", 0),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_without_care(path: Path, what: str) -> None:
    kind, change, said, after = TAMPERED[what]
    n, lines = first(path, kind, skip=30), (path / JOURNAL).read_bytes().splitlines(keepends=True)
    change(lines, n)
    (path / JOURNAL).write_bytes(b"".join(lines))
    found(path, said, at=n + after)


def test_any_changed_byte(path: Path, seed: int) -> None:
    rng, original = np.random.default_rng(seed), (path / JOURNAL).read_bytes()
    for _ in range(25):
        at = int(rng.integers(len(original) - 1))
        damaged = bytearray(original)
        damaged[at] ^= 1 << int(rng.integers(8))
        (path / JOURNAL).write_bytes(bytes(damaged))
        line = original[:at].count(b"\n")
        try:
            report = audit(path)
        except Unreadable:
            assert line == 0
            continue
        assert not report.clean, (at, line)
        assert min(item.record for item in report.exceptions) in (line, line - 1, line + 1), (at, line)


# --- tampering with care: all hashes, numbers and ids fit ----------------------------------------------


def test_the_forger_alone_changes_nothing(path: Path) -> None:
    forge(path, lambda records: None)
    clean(path)


def test_a_forged_cost_is_not_reproduced_by_later_certificates(path: Path) -> None:
    n = first(path, "tell", skip=100)

    def edit(records: list[Record]) -> None:
        records[n]["cost"][0] += 0.001

    forge(path, edit)
    report = found(path, "its certificate bounds", "'limit 0'")
    assert min(item.record for item in report.exceptions) > n
    assert {item.kind for item in report.exceptions} == {"ask"}


def test_forged_costs_that_were_swapped(path: Path) -> None:
    records = records_of(path)
    layers = {r["step"] for r in records if r["kind"] == "tell"}
    pairs = [[r["n"] for r in records if r["kind"] == "tell" and r["step"] == h][::9] for h in sorted(layers)]

    def edit(records: list[Record]) -> None:
        a, b = pairs[0][2], pairs[1][2]
        records[a]["cost"], records[b]["cost"] = records[b]["cost"], records[a]["cost"]

    forge(path, edit)
    found(path, "its certificate bounds")


def test_an_action_that_was_not_certified(path: Path) -> None:
    """In the first episode nothing but the fallback is certified; the forger offers heat."""
    n = first(path, "ask", lambda r: r["action"] == "wait" and len(r["certificate"]["successors"]) == 1)

    def edit(records: list[Record]) -> None:
        assert records[n]["certificate"]["plan"] == 1
        records[n]["action"] = records[n + 1]["action"] = "heat"

    forge(path, edit)
    found(path, "was not certified", "'heat'", at=n)


def test_an_action_that_does_not_exist(path: Path) -> None:
    n = first(path, "ask", skip=40)
    forge(path, lambda records: records[n].update(action="explode"))
    found(path, "is no action of step", at=n)


@pytest.mark.parametrize("kind", ["tell", "ask"])
def test_a_dropped_tell_or_ask(path: Path, kind: str) -> None:
    n = first(path, kind, skip=40)
    forge(path, lambda records: records.pop(n))
    found(path, "missing" if kind == "tell" else "pending is", at=n)


def test_a_dropped_pair_of_ask_and_tell(path: Path) -> None:
    n = first(path, "ask", skip=40)

    def edit(records: list[Record]) -> None:
        del records[n : n + 2]

    forge(path, edit)
    found(path, at=n)


def test_a_dropped_episode(path: Path) -> None:
    records = records_of(path)
    begins = [r["n"] for r in records if r["kind"] == "begin"]

    def edit(records: list[Record]) -> None:
        del records[begins[10] : begins[11]]
        for record in records:
            if record.get("episode", 0) > 11:
                record["episode"] -= 1

    forge(path, edit)
    found(path, "its certificate bounds")


CERTIFICATES: dict[str, tuple[Callable[[Record], Any], str]] = {
    "a smaller upper bound": (lambda c: _lower(c), "its certificate bounds"),
    "a margin alone": (lambda c: c["successors"][0].update(margin=[9.0]), "not bound - upper"),
    "the least margin": (lambda c: c.update(margin=9.0), "margin"),
    "what it is safe by": (lambda c: c.update(safe_by="hope"), "'hope'"),
    "a successor left out": (lambda c: c["successors"].pop(), "leaves out"),
    "another successor": (lambda c: c["successors"][0].update(state="cold"), "names 'cold'"),
    "a successor not certified": (lambda c: c["successors"][0].update(certified=False), "certified False"),
    "the bounds of limits": (lambda c: c.update(bounds=[0.9]), "bounds"),
    "the names of limits": (lambda c: c.update(limits=["other"]), "limits"),
    "the share": (lambda c: c.update(share=0.01), "share"),
    "the plan": (lambda c: c.update(plan=1), "plan"),
    "the fallback": (lambda c: c.update(fallback=not c["fallback"]), "fallback"),
    "the safe mode": (lambda c: c.update(safe_mode=True), "safe_mode"),
    "a reason": (lambda c: c.update(why="none"), "why"),
    "a last cost": (lambda c: c["successors"][0].update(last_upper=[0.1], last_margin=[0.4]), "last"),
    "what follows": (lambda c: c["successors"][0].update(next_action="explode"), "goes on"),
}


def _lower(certificate: Record) -> None:
    item = certificate["successors"][0]
    item["upper"] = [value - 0.01 for value in item["upper"]]
    item["margin"] = [0.5 - value for value in item["upper"]]
    certificate["margin"] = min(min(each["margin"]) for each in certificate["successors"])


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_forged_certificate(path: Path, name: str) -> None:
    edit, words = CERTIFICATES[name]
    n = first(path, "ask", lambda r: r["step"] == 0 and r["action"] == "heat" and r["state"] == "s", skip=100)
    forge(path, lambda records: edit(records[n]["certificate"]))
    found(path, words, at=n)


RECORDS: dict[str, tuple[str, Callable[[Record], Any], str]] = {
    "a start": ("begin", lambda r: r.update(start="melt"), "no start state"),
    "an episode's number": ("begin", lambda r: r.update(episode=999), "it is not episode"),
    "an epoch": ("begin", lambda r: r.update(epoch=1), "epoch"),
    "the safe mode": ("begin", lambda r: r.update(safe_mode=True), "safe mode"),
    "a plan's number": ("begin", lambda r: r.update(plan=0), "comes after plan"),
    "an earlier plan": ("begin", lambda r: r.update(made_after=1), "record 1"),
    "a later plan": ("begin", lambda r: r.update(made_after=r["n"]), "record"),
    "a step": ("ask", lambda r: r.update(step=1 - r["step"]), "the episode is"),
    "an override": ("tell", lambda r: r.update(override=True), "override"),
    "the end": ("tell", lambda r: r.update(ends=not r["ends"]), "ends"),
    "a successor": ("tell", lambda r: r.update(next_state="elsewhere"), "unused"),
    "a row left out": ("tell", lambda r: r.update(unused="action"), "unused"),
    "a cost of two": ("tell", lambda r: r.update(cost=[0.1, 0.2]), "its cost is"),
    "a raw cost": ("tell", lambda r: r.update(raw_cost=["nan"], cost=None), "no alarm cost"),
    "a last state": ("terminal", lambda r: r.update(state="melt"), "did not end"),
    "another episode": ("terminal", lambda r: r.update(episode=1), "no cost of a last state"),
    "a cost beyond all noise": ("tell", lambda r: r.update(cost=[7.0]), "no alarm limit"),
    "a time": ("tell", lambda r: r.update(time="2999-01-01"), "its time is"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_forged_record(path: Path, name: str) -> None:
    kind, edit, words = RECORDS[name]
    n = first(path, kind, skip=150)
    forge(path, lambda records: edit(records[n]))
    report = found(path, words)
    assert min(abs(item.record - n) for item in report.exceptions) <= 1


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


OPENINGS: dict[str, tuple[Callable[[Record], Any], str]] = {
    "failure probability": (lambda r: r.update(failure_probability=0.5), "share"),
    "share": (lambda r: r.update(share=0.5), "share"),
    "of the bounds": (lambda r: r["constants"].update(failure_probability=0.9), "its bounds work with"),
    "ridges": (lambda r: r["constants"].update(ridges=[1e-3, 1.0, 2.0]), "its ridges"),
    "more ridges": (lambda r: r["constants"].update(ridges=[1e-3, 1.0]), "its ridges"),
    "even ridges": (lambda r: r["constants"].update(shaped=0.0), "taken 0.0 times in the shape of the features"),
    "no shape": (lambda r: r["constants"].pop("shaped"), "taken None times in the shape"),
    "a truth value": (lambda r: r["constants"].update(shaped=True), "taken True times in the shape"),
    "less of a shape": (lambda r: r["constants"].update(shaped=r["constants"]["shaped"] / 2), "times in the shape"),
    "another option": (
        lambda r: r["options"].update(shaped=0.0),
        "times in the shape of the features, 0.0 is declared",
    ),
    "radius": (lambda r: r["constants"].update(safety_radius_scale=0.5), "scaled"),
    "radius and option": (
        lambda r: (r["constants"].update(safety_radius_scale=0.5), r["options"].update(safety_radius_scale=0.5)),
        "give up the guarantee",
    ),
    "problem": (lambda r: r.update(problem="0" * 64), "another problem"),
    "agent": (lambda r: r.update(agent="ucrl-vtr"), "its agent is 'ucrl-vtr'"),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_forged_opening(path: Path, name: str) -> None:
    edit, words = OPENINGS[name]
    forge(path, lambda records: edit(records[0]))
    found(path, words, at=0)


def test_an_exchanged_problem(path: Path) -> None:
    """Half the noise, and a digest that fits: every bound would be tighter."""
    world = kettle()
    known, limit = world.problem, world.problem.limits[0]
    limits = (sf.Limit(limit.name, bound=limit.bound, noise=limit.noise / 2, norm=limit.norm),)
    sf.Problem(known.graph, known.naming, limits, 1.0, False, False).save(path / "problem.json")
    found(path, "another problem", at=0)
    document = json.loads((path / "problem.json").read_bytes())
    document["layers"][0]["reward"][0] = 0.99
    (path / "problem.json").write_text(json.dumps(document))
    found(path, "another problem", at=0)


def test_data_left_out_of_a_plan(path: Path) -> None:
    """A plan that claims to be older than it is: its bounds are not those of its certificates."""
    records = records_of(path)
    plans = [(r["n"], r["made_after"]) for r in records if r["kind"] == "begin"]
    (_, before), (n, after) = plans[10], plans[20]
    assert before < after
    forge(path, lambda records: records[n].update(made_after=before))
    found(path, "comes after plan", at=n)


# --- alarms, acknowledgements, imports, snapshots -------------------------------------------------------


@pytest.fixture
def alarmed(tmp_path: Path) -> Path:
    """An import, episodes, a residual alarm in the middle of one, safe mode, a discard, more episodes."""
    world, path = kettle(), tmp_path / "alarmed.study"
    plant = Plant(world, 1)
    with study_at(path, world, monitor_factory=nervous({60: "residual"})) as study:
        rows = [{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.1 + i / 99} for i in range(5)]
        study.import_log(rows)
        go_on(study, plant, 40)
        assert study.safe_mode
        study.acknowledge("another plant", discard_data=True)
        go_on(study, plant, 60)
    clean(path)
    return path


ALARMS: dict[str, tuple[str, Callable[[list[Record], int], Any], str]] = {
    "dropped alarm": ("alarm", lambda records, n: records.pop(n), "safe mode"),
    "kept data": ("acknowledge", lambda records, n: records[n].update(discard=False), "data in doubt are kept"),
    "another share": ("acknowledge", lambda records, n: records[n].update(share=0.05), "share"),
    "another monitor": ("acknowledge", lambda records, n: records[n].update(monitor=7), "monitor"),
    "other alarms": ("acknowledge", lambda records, n: records[n].update(alarms=[]), "the alarms are those"),
    "no reason": ("acknowledge", lambda records, n: records[n].update(reason=" "), "no reason"),
    "dropped acknowledgement": ("acknowledge", lambda records, n: records.pop(n), "safe mode"),
    "not the fallback's": ("ask", lambda records, n: _offer_heat(records), "in safe mode another action"),
    "an imported cost": ("import", lambda records, n: records[n]["rows"][0].__setitem__(-1, [0.0]), "bounds"),
    "an imported row twice": ("import", lambda records, n: records[n]["rows"].append(records[n]["rows"][0]), "twice"),
    "an import of no row": ("import", lambda records, n: records[n]["rows"][0].__setitem__(1, "moon"), "none of the"),
}


def _offer_heat(records: list[Record]) -> None:
    ask = next(r for r in records if r["kind"] == "ask" and r["certificate"]["safe_mode"] and r["state"] == "s")
    ask["action"] = "heat"


@pytest.mark.parametrize("name", ALARMS)
def test_forged_alarms_acknowledgements_and_imports(alarmed: Path, name: str) -> None:
    kind, edit, words = ALARMS[name]
    n = first(alarmed, kind)
    forge(alarmed, lambda records: edit(records, n))
    found(alarmed, words)


def test_an_import_whose_rows_are_not_its_digest(alarmed: Path) -> None:
    n = first(alarmed, "import")
    record = records_of(alarmed)[n]
    record["rows"][0][-1] = [0.0]
    replaced(alarmed, n, sealed(record))
    found(alarmed, "digest", at=n)


def test_a_dropped_alarm_of_an_undeclared_successor(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with study_at(path, kettle()) as study:
        with study.episode("s") as ep:
            ep.ask()
            ep.tell("cold", 0.1)
        with study.episode("s") as ep:
            ep.ask()
            ep.abort("enough")
    n = first(path, "alarm")
    forge(path, lambda records: records.pop(n))
    found(path, "no alarm successor", at=n - 1)


def test_snapshots_are_looked_at(tmp_path: Path) -> None:
    path, world = tmp_path / "s", kettle()
    with study_at(path, world, snapshot_every=10) as study:
        go_on(study, Plant(world, 0), 30)
    clean(path)
    newest = sorted((path / "snapshots").iterdir())[-1]
    newest.write_bytes(newest.read_bytes() + b"!")
    found(path, "is not what was written", at=int(newest.stem))
    lines = (path / JOURNAL).read_bytes().splitlines(keepends=True)
    (path / JOURNAL).write_bytes(b"".join(lines[: int(newest.stem) - 5]))
    found(path, "records are gone")


def test_a_snapshot_without_its_record_is_what_a_crash_leaves_and_one_of_a_later_record_is_not(path: Path) -> None:
    n = len(records_of(path))
    (path / "snapshots").mkdir()
    crashed = path / "snapshots" / f"{n:012d}.npz"
    crashed.write_bytes(b"")
    clean(path)
    crashed.rename(crashed.with_stem(f"{n + 1:012d}"))
    found(path, f"there is a snapshot of record {n + 1}: records are gone", at=n - 1)


@pytest.mark.parametrize("name", ["{:012d}.npz", "../{:012d}.npz", "problem.json"])
def test_a_snapshot_has_the_name_of_its_record(tmp_path: Path, name: str) -> None:
    path, world = tmp_path / "s", kettle()
    with study_at(path, world, snapshot_every=10) as study:
        go_on(study, Plant(world, 0), 12)
    n = first(path, "snapshot")
    forge(path, lambda records: records[n].update(file=name.format(n - 1)))
    found(path, "its file is called", at=n)


def test_a_second_opening(path: Path) -> None:
    n = len(records_of(path))
    forge(path, lambda records: records.append(dict(records[0])))
    found(path, "a second opening", at=n)


# --- what cannot be read, and the command ---------------------------------------------------------------


def test_a_line_that_is_no_record_stops_the_audit_there(path: Path) -> None:
    for line in (b"what?\n", b"[]\n", b'{"n":50}\n', b'{"n":50,"n":50}\n', b'{"kind":["ask"]}\n', b"[" * 9999 + b"\n"):
        replaced(path, 50, line)
        assert found(path, "is not a record", at=50).records == 50


def test_content_that_makes_no_sense_stops_the_audit_there(path: Path) -> None:
    n = first(path, "ask", skip=60)
    for value in (None, [], "x", {"epoch": 0}):
        forge(path, lambda records, value=value: records[n].update(certificate=value))
        found(path, "cannot be understood", at=n)


@pytest.mark.parametrize(
    "damage", ["no folder", "no path", "no journal", "empty", "version", "no problem", "not a problem"]
)
def test_what_cannot_be_audited(path: Path, damage: str) -> None:
    if damage == "no folder":
        path = path / "nowhere"
    elif damage == "no path":
        path = path / "a\0b"
    elif damage == "no journal":
        (path / JOURNAL).unlink()
    elif damage == "empty":
        (path / JOURNAL).write_bytes(b"")
    elif damage == "version":
        forge(path, lambda records: records[0].update(version=99))
    elif damage == "no problem":
        (path / "problem.json").unlink()
    else:
        (path / "problem.json").write_text('{"format": "surefoot-problem", "version": 1}')
    with pytest.raises(Unreadable):
        audit(path)
    assert run(path).exit_code == 2


app = typer.Typer()
app.command("audit")(audit_command)


def run(path: Path, *more: str) -> Any:
    return CliRunner().invoke(app, [str(path), *more])


def test_the_command(path: Path) -> None:
    done = run(path)
    assert (done.exit_code, "CLEAN" in done.output) == (0, True)
    assert json.loads(run(path, "--json").output)["clean"] is True
    n = first(path, "tell", skip=50)
    forge(path, lambda records: records[n].update(next_state="elsewhere"))
    done = run(path)
    assert (done.exit_code, "NOT CLEAN" in done.output) == (1, True)
    report = json.loads(run(path, "--json").output)
    assert not report["clean"]
    assert report["exceptions"][0]["record"] == n


def test_a_certificate_that_goes_on_with_an_action_that_exists_but_is_not_certified(path: Path) -> None:
    """In the first episode nothing but the fallback's own is certified; the forger would heat next."""
    n = first(path, "ask", lambda r: r["certificate"]["successors"][0]["next_action"] == "wait")

    def edit(records: list[Record]) -> None:
        assert records[n]["certificate"]["plan"] == 1
        records[n]["certificate"]["successors"][0]["next_action"] = "heat"

    forge(path, edit)
    report = found(path, "goes on from successor", "'heat', not certified", at=n)
    assert len(report.exceptions) == 1, str(report)


def test_a_plan_older_than_one_that_was_surely_made(tmp_path: Path) -> None:
    """After an import there is a new plan: an episode that goes on with the old one hides what the rows say."""
    world = kettle()
    with study_at(tmp_path / "s", world) as study:
        go_on(study, Plant(world, 0), 3)
        study.import_log([{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.125}])
        study.begin("s")
    clean(tmp_path / "s")
    begins = [record for record in records_of(tmp_path / "s") if record["kind"] == "begin"]
    before, last = begins[-2], begins[-1]
    assert last["made_after"] == last["n"] - 1
    old = {key: before[key] for key in ("plan", "made_after", "certified")}
    forge(tmp_path / "s", lambda records: records[last["n"]].update(old))
    report = found(tmp_path / "s", f"the plan in force cannot be the one of record {old['made_after']}", at=last["n"])
    assert len(report.exceptions) == 1, str(report)


def test_a_time_that_goes_back_without_a_word(path: Path) -> None:
    """The newest record, so that nothing else changes with it; only a record "clock" may be earlier."""
    lines = (path / JOURNAL).read_bytes().splitlines(keepends=True)
    last = {**json.loads(lines[-1]), "time": records_of(path)[0]["time"]}
    (path / JOURNAL).write_bytes(b"".join([*lines[:-1], sealed(last)]))
    report = found(path, "is earlier than that of the record before", at=last["n"])
    assert len(report.exceptions) == 1, str(report)
    noted = {key: last[key] for key in ("n", "time")} | {"kind": "clock", "expected": "x", "previous": last["previous"]}
    (path / JOURNAL).write_bytes(b"".join([*lines[:-1], sealed(noted)]))
    assert any("the clock went back" in remark for remark in audit(path).remarks)
    assert not [item for item in audit(path).exceptions if "earlier" in item.what]


def test_rows_of_zeros_have_no_visits_to_count(tmp_path: Path) -> None:
    limit = sf.Limit("heat", bound=1.0, noise=0.01, norm=2.0, misspecification=0.2)
    problem = corridor({"rest": [0.0, 0.0], "go": [1.0, 0.5]}, limit)
    with sf.Study.open(tmp_path / "zero.study", problem, files=Quick(), despite="a test", replan_growth=0.0) as study:
        for _ in range(3):
            with study.episode() as episode:
                episode.ask()
                episode.tell("s", 0.1, action_applied="rest")
    assert sf.audit(tmp_path / "zero.study").clean
