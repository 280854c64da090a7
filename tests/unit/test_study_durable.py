"""What a study survives: clocks that are set back, computations that fail, calls that are interrupted, readers."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.agents.lsvi_new import LsviNew
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.reports.study_history import History
from surefoot.storage import archive as npz
from surefoot.study.alarms import Raised
from tests.studies import (
    Calm,
    FullDisk,
    Plant,
    Quick,
    fingerprint,
    go_on,
    kettle,
    learnt,
    opener,
    records_of,
)

# --- the clock ------------------------------------------------------------------------------------------


def test_a_record_of_the_year_2046_holds_nothing_up(opened: Any, path: Path, world: sf.World) -> None:
    """A clock that was wrong once is noted when it is right again; the study goes on and its audit is clean."""
    plant = Plant(world, 0)
    study = opened(clock=lambda: 2_400_000_000.0)
    go_on(study, plant, 2)
    study.close()
    now = 1_800_000_000.0
    study = opened(clock=lambda: now, snapshot_every=2)
    go_on(study, plant, 4)
    now -= 3600  # and again, in the middle of an episode with an alarm
    study.begin("s")
    offer = study.ask()
    now -= 3600
    study.tell(offer.ask_id, "s", float("nan"))
    study.abort()
    now -= 3600
    study.acknowledge("a loose wire", discard_data=True)
    go_on(study, plant, 6)
    before = fingerprint(study)
    study.close()
    kinds = [record["kind"] for record in records_of(path)]
    assert kinds.count("clock") == 4
    assert fingerprint(opened()) == before
    report = audit(path)
    assert report.clean, str(report)
    assert sum("the clock went back" in remark for remark in report.remarks) == 4
    assert "from 2046-01-19T18:40:00.000000Z to 2027-01-15T08:00:00.000000Z" in str(report)


def test_a_clock_that_was_set_back_on_a_full_disk_is_noted_when_there_is_room(path: Path, world: sf.World) -> None:
    now = 2_400_000_000.0
    disk = FullDisk(100_000)
    study = sf.Study.open(path, world.problem, files=disk, monitor_factory=Calm, clock=lambda: now)
    study.begin("s")
    offer = study.ask()
    now, disk.room = 1_800_000_000.0, 0
    assert study.ask() == offer
    disk.room = 100_000
    assert study.ask() == offer
    assert [record["kind"] for record in records_of(path)] == ["open", "begin", "ask", "clock"]


# --- computations that fail -----------------------------------------------------------------------------


BAD = 0.2125


class Broken(Calm):
    """A monitor that cannot compute with some numbers."""

    def observe(self, h: int, features: Any, cost: Any) -> Any:
        if cost[0] in (BAD, 1e3):
            raise ZeroDivisionError("division by zero")
        return super().observe(h, features, cost)


def told(study: sf.Study, cost: float) -> sf.Study:
    """An episode with this cost, to its end."""
    with study.episode("s") as ep:
        while not ep.done:
            ep.ask()
            ep.tell("s", cost)
    return study


def test_a_plan_that_cannot_be_made_is_an_alarm_and_the_one_before_stays(
    opened: Any, path: Path, world: sf.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = learnt(opened(replan_growth=0.0), world, 60)
    plan, made_after, n = study.standing.agent.plan, study.standing.made_after, study.standing.applied

    def fail(agent: LsviNew) -> Any:
        raise InvalidInput("log_det_ratio must be finite", got="inf")

    with monkeypatch.context() as patch:
        patch.setattr(LsviNew, "_make_plan", fail)
        told(study, 0.1)
        assert study.safe_mode
        assert study.standing.agent.plan is plan
        assert study.standing.made_after == made_after
        (alarm,) = study.status()["alarms"]
        assert alarm["alarm"] == "plan"
        assert alarm["record"] == n + 4
        assert "log_det_ratio must be finite" in alarm["message"]
        study.acknowledge("try again")
        assert study.safe_mode, "it still cannot be made"
        study.begin("s")
        certificate = study.ask().certificate
        assert certificate["fallback"]
        assert "log_det_ratio must be finite" in certificate["why"]
        before = fingerprint(study)
        study.abort()
        study.close()
        assert audit(path).clean, str(audit(path))
    assert before["agent"][1] == plan.number
    study = opened()  # by a surefoot that can: the alarm stays until someone takes note of it
    assert study.safe_mode
    study.acknowledge("repaired")
    assert not study.safe_mode
    assert study.standing.agent.plan.number > plan.number
    go_on(study, Plant(world, 1), study.standing.episodes + 2)
    assert audit(path).clean, str(audit(path))


def test_a_row_that_cannot_be_entered_is_an_alarm_and_the_data_are_in_doubt(opened: Any, path: Path) -> None:
    study = told(told(opened(monitor_factory=Broken), 0.1), 1e3)
    assert study.status()["alarms"][0]["alarm"] == "computation"
    assert "division by zero" in study.standing.why
    assert study.status()["must_discard"]
    before = fingerprint(study)
    study.close()
    study = opened(monitor_factory=Broken)
    assert fingerprint(study) == before
    study.acknowledge("a loose wire", discard_data=True)
    told(study, 0.1)
    assert not study.safe_mode
    assert audit(path).clean, str(audit(path))


def test_a_replay_that_fails_where_the_study_did_not_opens_in_safe_mode(
    opened: Any, path: Path, world: sf.World
) -> None:
    """The reason is journalled; the rows of an import and an acknowledgement that come after it still count."""
    study = told(opened(), BAD)
    study.import_log([{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.125}])
    study.begin("s")
    study.tell(study.ask().ask_id, "s", float("nan"))
    study.abort()
    study.acknowledge("a dead sensor")
    told(study, 0.1)
    study.begin("s")
    assert not study.safe_mode
    study.close()
    reader = opened(monitor_factory=Broken, read_only=True)
    assert reader.safe_mode
    study = opened(monitor_factory=Broken)
    assert study.safe_mode
    assert "division by zero" in study.status()["alarms"][0]["message"]
    assert records_of(path)[-1]["alarm"] == "computation"
    assert study.standing.made_after == 0, "no plan was made from the data since"
    certificate = study.ask().certificate
    assert certificate["fallback"]
    assert certificate["safe_by"] == "assumption"
    assert "division by zero" in certificate["why"]
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened(monitor_factory=Broken)) == before


def test_what_a_monitor_says_in_numbers_without_end_is_written_as_text(opened: Any, path: Path) -> None:
    class Shouting(Calm):
        def observe(self, h: int, features: Any, cost: Any) -> Any:
            return Raised("limit", 0, "!", {"x": [float("inf"), float("nan")]})

    study = opened(monitor_factory=Shouting)
    study.begin("s")
    study.tell(study.ask().ask_id, "s", 0.1)
    assert records_of(path)[-1]["details"] == {"x": ["Infinity", "NaN"], "certified": True}


def test_a_monitor_that_cannot_begin_is_refused_before_the_acknowledgement_is_written(opened: Any, path: Path) -> None:
    """After so many alarms the share of α is no number any more."""
    study = opened(monitor_factory=None, false_alarm=1e-323)
    study.begin("s")
    study.tell(study.ask().ask_id, "s", float("nan"))
    study.abort()
    lines = len(records_of(path))
    with pytest.raises(InvalidInput, match="false_alarm must be above 0"):
        study.acknowledge("a loose wire")
    assert len(records_of(path)) == lines
    study.close()
    assert opened(monitor_factory=None).safe_mode


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"ridges": [1e-308]}, "ridges too small to compute with: 1e-308"),
        ({"ridges": [1.0, 5e-324]}, "ridges too small to compute with: 5e-324"),
        ({"value_ridge": 1e-308}, "value_ridge too small to compute with: 1e-308"),
        ({"shaped": 5e-324}, "ridges times shaped too small to compute with"),
        ({"ridge_ratios": [1e-320]}, "ridges times ridge_ratios too small to compute with"),
        ({"ridges": "1"}, "ridges of lsvi-new must be a list of numbers"),  # the audit could not read it
        ({"ridge_ratios": ["1"]}, "ridge_ratios of lsvi-new must be a list of numbers"),
        ({"ridges": [10**400]}, "ridges must be a number"),
        ({"false_alarm": 5e-324}, "false_alarm must be above 0"),
        ({"failure_probability": 5e-324}, "failure_probability must be above 0"),
    ],
)
def test_options_that_cannot_be_computed_with_begin_no_study(
    opened: Any, path: Path, options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InvalidInput, match=fault):
        opened(monitor_factory=None, **options)
    assert not (path / "problem.json").exists()
    told(opened(monitor_factory=None), 0.1)


# --- interruptions --------------------------------------------------------------------------------------


def test_a_call_that_is_interrupted_between_the_journal_and_the_state_is_finished_by_reopening(
    opened: Any, path: Path
) -> None:
    """The tell is on disk. Whatever came next would be written for a state that does not know of it."""

    class Interrupted(Calm):
        def observe(self, h: int, features: Any, cost: Any) -> Any:
            raise KeyboardInterrupt

    study = opened(monitor_factory=Interrupted)
    study.begin("s")
    offer = study.ask()
    with pytest.raises(KeyboardInterrupt):
        study.tell(offer.ask_id, "s", 0.1)
    assert records_of(path)[-1]["kind"] == "tell"
    lines = len(records_of(path))
    for call in (study.ask, study.abort, lambda: study.tell(offer.ask_id, "s", 0.2), lambda: study.begin("s")):
        with pytest.raises(OutOfOrder, match="interrupted half-way"):
            call()
    assert len(records_of(path)) == lines
    study.close()
    study = opened()
    assert study.tell(offer.ask_id, "s", 0.1).repeated
    assert study.standing.place is not None
    assert study.standing.place.step == 1


def test_a_snapshot_is_on_disk_before_it_has_its_name(
    opened: Any, path: Path, world: sf.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut leaves a file of zeros under the name that the journal knows."""
    synced: dict[int, bytes] = {}

    class Recording(Quick):
        def fsync(self, file: int) -> None:
            synced[os.fstat(file).st_ino] = os.pread(file, os.fstat(file).st_size, 0)

    moved = 0
    really = os.replace

    def replace(source: Any, target: Any) -> None:
        nonlocal moved
        if str(target).endswith(".npz"):
            moved += 1
            assert synced.get(os.stat(source).st_ino) == Path(source).read_bytes()
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    go_on(opened(files=Recording(), snapshot_every=2), Plant(world, 0), 10)
    assert moved > 3


# --- readers beside a writer ----------------------------------------------------------------------------


class Beside:
    """A writer that goes on at every touch of the disk by a reader: an episode each time, with a snapshot."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.study = opener(path, kettle())(snapshot_every=1)
        self.reads, self._busy, self._patch = 0, False, monkeypatch
        go_on(self.study, Plant(kettle(), 0), 8)
        for module, name in ((io, "open"), (npz, "opened"), (os, "listdir"), (os, "stat")):
            monkeypatch.setattr(module, name, self._watched(getattr(module, name)))

    def _watched(self, call: Any) -> Any:
        def watched(*arguments: Any, **more: Any) -> Any:
            if not self._busy and threading.current_thread() is threading.main_thread():
                self._busy = True
                self.reads += 1
                if self.reads % 3 == 0:
                    go_on(self.study, Plant(kettle(), 0), self.study.standing.episodes + 1)
                self._busy = False
            return call(*arguments, **more)

        return watched


def test_an_auditor_and_a_reporter_read_a_study_that_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots come and go under their hands, and records are added: nothing is missing, nothing is called altered."""
    writer = Beside(path, monkeypatch)
    audited = shown = 0
    while writer.reads < 400:
        report = audit(path)
        assert report.clean, str(report)
        assert report.records > audited
        audited = report.records
        reader = sf.Study.open(path, read_only=True, monitor_factory=Calm)
        assert reader.standing.applied > shown
        shown = reader.standing.applied
        assert History(reader.problem).read(path / "journal.jsonl").courses
    assert len([record for record in records_of(path) if record["kind"] == "snapshot"]) > 50


@pytest.mark.parametrize("part", [1, 40, -1])
def test_a_line_that_is_written_while_it_is_read_is_not_yet_there(
    opened: Any, path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader sees the beginning of a line; by the time it looks further the rest has come."""
    told(opened(), 0.1).close()
    journal = path / "journal.jsonl"
    whole, last = journal.read_bytes(), journal.read_bytes().splitlines(keepends=True)[-1]
    kept = len(whole.splitlines()) - 1

    class Meanwhile(Quick):
        def read(self, path: Path) -> Any:
            return Late(super().read(path))

    class Late(io.BufferedReader):
        def __init__(self, stream: Any) -> None:
            super().__init__(stream.detach())

        def readline(self, *arguments: Any) -> bytes:
            line = super().readline(*arguments)
            if not line.endswith(b"\n"):
                journal.write_bytes(whole)
            return line

    journal.write_bytes(whole[: len(whole) - len(last)] + last[:part])
    assert opened(read_only=True, files=Meanwhile()).standing.applied == kept
    journal.write_bytes(whole[: len(whole) - len(last)] + last[:part])
    really = Path.open

    def late(self: Path, mode: str = "r", **more: Any) -> Any:
        stream = really(self, mode, **more)
        return Late(stream) if (self, mode) == (journal, "rb") else stream

    monkeypatch.setattr(Path, "open", late)
    report = audit(path)
    assert report.clean, str(report)
    assert report.records == kept
