"""Every kind of tampering with a study's folder is found by the audit, and at its place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import surefoot as sf
from surefoot.audits.audit import Unreadable, audit
from surefoot.cli.audit import audit_command
from tests.audited import clean, first, found, played, study_at
from tests.forgery import JOURNAL, Record, forge, records_of, sealed
from tests.studies import Plant, go_on, kettle, nervous


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of the kettle that has left its fallback; not to be changed."""
    return played(tmp_path_factory.mktemp("learnt") / "plant.study", 45)


@pytest.fixture
def path(learnt: Path, tmp_path: Path) -> Path:
    """A copy of it, to be tampered with."""
    return Path(shutil.copytree(learnt, tmp_path / "plant.study"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("begun") / "plant.study", 8)


@pytest.fixture
def short(begun: Path, tmp_path: Path) -> Path:
    """A copy of a few episodes, for what does not depend on more."""
    return Path(shutil.copytree(begun, tmp_path / "short.study"))


# --- without care ---------------------------------------------------------------------------------------


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


def test_any_changed_byte(short: Path, seed: int) -> None:
    path = short
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


def test_a_line_that_is_no_record_stops_the_audit_there(short: Path) -> None:
    for line in (b"what?\n", b"[]\n", b'{"n":50}\n', b'{"n":50,"n":50}\n', b'{"kind":["ask"]}\n', b"[" * 9999 + b"\n"):
        replaced(short, 30, line)
        assert found(short, "is not a record", at=30).records == 30


@pytest.mark.parametrize(
    "damage", ["no folder", "no path", "no journal", "empty", "version", "no problem", "not a problem"]
)
def test_what_cannot_be_audited(short: Path, damage: str) -> None:
    path = short
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


def run(path: Path, *more: str) -> Any:
    app = typer.Typer()
    app.command("audit")(audit_command)
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


# --- with care: all hashes, numbers and ids fit ---------------------------------------------------------


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
    "a promise of more": (lambda c: c.update(promise=c["promise"].replace("0.95", "0.99")), "promises"),
    "a promise since then": (lambda c: c.update(promise=c["promise"].replace("of the study", "since")), "promises"),
    "a reason": (lambda c: c.update(why="none"), "why"),
    "a last cost": (lambda c: c["successors"][0].update(last_upper=[0.1], last_margin=[0.4]), "last"),
    "what follows": (lambda c: c["successors"][0].update(next_action="explode"), "continues"),
}


def _lower(certificate: Record) -> None:
    item = certificate["successors"][0]
    item["upper"] = [value - 0.01 for value in item["upper"]]
    item["margin"] = [0.5 - value for value in item["upper"]]
    certificate["margin"] = min(min(each["margin"]) for each in certificate["successors"])


def test_forged_certificates(path: Path) -> None:
    """Each in an offer of its own, of which the audit finds this and no other."""
    asks = [r["n"] for r in records_of(path) if r["kind"] == "ask" and (r["step"], r["action"]) == (0, "heat")]
    forged = dict(zip(asks[-len(CERTIFICATES) :], CERTIFICATES.values(), strict=True))

    def edit(records: list[Record]) -> None:
        for n, (change, _) in forged.items():
            change(records[n]["certificate"])

    forge(path, edit)
    report = audit(path)
    assert {item.record for item in report.exceptions} == set(forged)
    for n, (_, words) in forged.items():
        assert any(words in item.what for item in report.exceptions if item.record == n), (words, str(report))


RECORDS: dict[str, tuple[str, Callable[[Record], Any], str]] = {
    "a start": ("begin", lambda r: r.update(start="melt"), "no start state"),
    "an episode's number": ("begin", lambda r: r.update(episode=999), "it is not episode"),
    "an epoch": ("begin", lambda r: r.update(epoch=1), "epoch"),
    "the safe mode": ("begin", lambda r: r.update(safe_mode=True), "safe mode"),
    "a plan's number": ("begin", lambda r: r.update(plan=0), "comes after plan"),
    "an earlier plan": ("begin", lambda r: r.update(made_after=1), "record 1"),
    "a later plan": ("begin", lambda r: r.update(made_after=r["n"]), "record"),
    "an action": ("ask", lambda r: r.update(action="explode"), "is no action of step"),
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
    n = first(path, kind, lambda r: kind != "ask" or r["state"] == "s", skip=100)  # which is a state of every step
    forge(path, lambda records: edit(records[n]))
    report = found(path, words)
    assert min(abs(item.record - n) for item in report.exceptions) <= 1


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
def test_a_forged_opening(short: Path, name: str) -> None:
    edit, words = OPENINGS[name]
    forge(short, lambda records: edit(records[0]))
    found(short, words, at=0)


def test_a_second_opening(short: Path) -> None:
    n = len(records_of(short))
    forge(short, lambda records: records.append(dict(records[0])))
    found(short, "a second opening", at=n)


def test_an_exchanged_problem(short: Path) -> None:
    """Half the noise, and a digest that fits: every bound would be tighter."""
    path = short
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
    (_, before), (n, after) = plans[10], plans[30]
    assert before < after
    forge(path, lambda records: records[n].update(made_after=before))
    found(path, "comes after plan", at=n)


def test_content_that_makes_no_sense_stops_the_audit_there(path: Path) -> None:
    n = first(path, "ask", skip=60)
    for value in (None, [], "x", {"epoch": 0}):
        forge(path, lambda records, value=value: records[n].update(certificate=value))
        found(path, "cannot be understood", at=n)


def test_a_certificate_that_goes_on_with_an_action_that_exists_but_is_not_certified(path: Path) -> None:
    """In the first episode nothing but the fallback's own is certified; the forger would heat next."""
    n = first(path, "ask", lambda r: r["certificate"]["successors"][0]["next_action"] == "wait")

    def edit(records: list[Record]) -> None:
        assert records[n]["certificate"]["plan"] == 1
        records[n]["certificate"]["successors"][0]["next_action"] = "heat"

    forge(path, edit)
    report = found(path, "continues from successor", "'heat', not certified", at=n)
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


# --- alarms, acknowledgements, imports, snapshots -------------------------------------------------------


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An import, episodes, a residual alarm in the middle of one, safe mode, a discard, more episodes."""
    world, path = kettle(), tmp_path_factory.mktemp("answered") / "alarmed.study"
    plant = Plant(world, 1)
    with study_at(path, world, monitor_factory=nervous({20: "residual"})) as study:
        rows = [{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.1 + i / 99} for i in range(5)]
        study.import_log(rows)
        go_on(study, plant, 14)
        assert study.safe_mode
        study.acknowledge("another plant", discard_data=True)
        go_on(study, plant, 18)
    clean(path)
    return path


@pytest.fixture
def alarmed(answered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(answered, tmp_path / "alarmed.study"))


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
