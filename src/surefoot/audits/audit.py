"""The audit: was every action that a study offered certified at the time, and has nothing been altered since?

A small, slow program of its own. It shares no code with the study, the agent or the planner: it reads the journal
(``chain``) and the problem (``declaration``) itself, has its own transcription of spec 3, 4 and 9 (``rows``,
``bounds``, ``certified``, ``rays``, ``points``), and goes through the records one by one (``replay``). It detects,
among other things, a record that was changed, removed, inserted or moved; a data row that was changed together with all
later hashes, because the bounds in later certificates can then not be reproduced; an offer that was not certified; a
missing alarm; a plan or an acknowledgement out of turn; and a replaced problem file.

It cannot tell from the journal alone that the newest records were cut off, unless a snapshot names them. Keep the last
hash that a report prints somewhere else, and compare.

The fallback's actions are safe by assumption and are counted separately. If a bound is so close to its limit that
rounding decides, the offer is counted as "within rounding" and is not an exception (spec 3).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.audits.answers import despite_errors
from surefoot.audits.chain import NAME, VERSION, Record, Say, read_journal
from surefoot.audits.declaration import read_problem
from surefoot.audits.points import UNVERIFIED, read_points
from surefoot.audits.problem import Problem, Unreadable
from surefoot.audits.replay import Replay

__all__ = ["AuditReport", "Breach", "Unreadable", "audit"]

_SHOWN = 50  # exceptions in the text
_COUNTS = (  # (as counted, as told)
    ("begin", "episodes"),
    ("abort", "of them aborted"),
    ("tell", "tells"),
    ("doubt", "next states refused that could not have followed, and told again"),
    ("costs measured", "costs measured, logged ones included"),
    ("costs not measured", "costs not measured"),
    ("ask", "offers"),
    ("offers by estimate", "of them certified by estimate"),
    ("offers of the fallback", "of them the fallback's, safe by assumption"),
    ("offers within rounding", "of them within rounding of a limit"),
    ("offers opened to a limit", "of them opened as far as a limit allows, up to rounding"),
    ("offers of a plan before an alarm", "of them certified before an alarm, without a promise"),
    ("offers without a guarantee", "of them without any guarantee"),
    ("overrides", "overridden by an operator"),
    ("overrides that were not certified", "of them with an action that was not certified"),
    ("plans", "plans re-derived"),
    ("plans that failed", "episodes under an older plan, because the one due could not be computed"),
    ("rows imported", "rows imported"),
    ("rows vouched for", "of them like others, and different measurements, as a person has said"),
    ("alarm", "alarms"),
    ("acknowledge", "acknowledgements"),
)
_MISUNDERSTOOD = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
_SNAPSHOT = re.compile(r"(\d{12,18})\.npz\Z")


@dataclass(frozen=True)
class Breach:
    """A record that breaks a rule."""

    record: int  # its number, from 0; the line in the journal is one more
    kind: str  # of the record
    what: str

    def __str__(self) -> str:
        return f"record {self.record} ({self.kind}, line {self.record + 1}): {self.what}"


@dataclass
class AuditReport:
    """What was found."""

    path: str
    exceptions: list[Breach] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    records: int = 0
    problem: str = ""
    failure_probability: float | None = None
    promise: str = ""  # of which steps the study promises anything at its end
    first_time: str = ""
    last_time: str = ""
    last_hash: str = ""

    @property
    def clean(self) -> bool:
        return not self.exceptions

    @property
    def exit_code(self) -> int:
        return 0 if self.clean else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**vars(self), "clean": self.clean, "exceptions": [vars(finding) for finding in self.exceptions]}

    def __str__(self) -> str:
        lines = [
            f"audit of {self.path}: {self.records} records, {self.first_time} to {self.last_time}",
            f"problem {self.problem}",
            f"last hash {self.last_hash}",
            "",
            *(f"{self.counts.get(key, 0):>9,}  {told}" for key, told in _COUNTS),
            "",
            *(f"remark: {remark}" for remark in self.remarks),
        ]
        if self.clean:
            promise = f"failure probability {self.failure_probability:g}, given what was declared then"
            lines.append(f"promise: {self.promise}")
            return "\n".join([*lines, f"CLEAN: every action offered was certified at its time ({promise})."])
        lines += [f"EXCEPTION: {finding}" for finding in self.exceptions[:_SHOWN]]
        if len(self.exceptions) > _SHOWN:
            lines.append(f"… and {len(self.exceptions) - _SHOWN} more")
        return "\n".join([*lines, f"NOT CLEAN: {len(self.exceptions)} exceptions."])


def audit(path: str | Path) -> AuditReport:
    """Audit a study's folder. What is altered or not certified is in the report; raises Unreadable without a study.

    Examples:
        >>> with sf.Study.open("plant.study", sf.worlds.make("thermal/testing").problem) as study:
        ...     number = study.begin()
        ...     offer = study.ask()
        >>> report = sf.audit("plant.study")
        >>> report.clean, report.counts["ask"]
        (True, 1)
    """
    folder = Path(path)
    if folder.is_file():
        raise Unreadable(f"there is no study here: {folder} is a file")
    report, kinds = AuditReport(str(folder)), list[str]()

    def wrong(n: int, what: str) -> None:
        report.exceptions.append(Breach(n, kinds[n] if 0 <= n < len(kinds) else "?", what))

    snapshots = _snapshots(folder)  # before the journal is read: a running study writes more of both
    replay: Replay | None = None
    for n, (record, faults) in enumerate(read_journal(folder / NAME, report.remarks.append)):
        kinds.append("?" if record is None else record["kind"])
        for fault in faults:
            wrong(n, fault)
        if record is None:
            break
        report.records, report.last_time, report.last_hash = n + 1, str(record["time"]), str(record["hash"])
        try:
            if replay is None:
                replay = _opened(folder, record, report, wrong)
            else:
                replay.apply({**record, "n": n})
                if record["kind"] == "snapshot":
                    _check_snapshot(folder, n, record, wrong)
        except _MISUNDERSTOOD as error:
            wrong(n, f"it cannot be understood, and nothing after it was examined: {error!r}"[:300])
            break
    if replay is None:
        raise Unreadable(f"{folder / NAME} holds no study")
    for n in snapshots:
        if n > report.records:
            wrong(report.records - 1, f"it is the last one, but there is a snapshot of record {n}: records are gone")
    report.remarks += replay.measurements.remarks
    if what := replay.unacknowledged:
        report.remarks.append(f"an alarm is not acknowledged yet, and the study is in safe mode: {what}")
    report.counts, report.promise = dict(replay.counts), replay.promise
    return report


def _opened(folder: Path, record: Record, report: AuditReport, wrong: Say) -> Replay:
    if record["kind"] != "open":
        raise Unreadable(f"{folder / NAME} does not begin with the opening of a study")
    if record["version"] != VERSION:
        raise Unreadable(f"the journal is of version {record['version']!r}, this audit reads version {VERSION}")
    if record["problem_file"] not in ("problem.json", "problem.npz"):
        raise Unreadable(f"{record['problem_file']!r} is not the name of a problem's file")
    problem = read_problem(folder / record["problem_file"])
    if problem.digest != record["problem"]:
        wrong(0, f"{record['problem_file']} is another problem, of digest {problem.digest}")
    report.problem, report.failure_probability = record["problem"], record["failure_probability"]
    report.first_time = str(record["time"])
    if record["despite"] is not None:
        report.remarks.append(f"record 0: {despite_errors(record['despite'])}")
    points = read_points(folder, record, problem, wrong)
    if points is not None:
        report.remarks.append(f"not verified: {UNVERIFIED}")
    return Replay(problem, record, wrong, partial(_declaration, folder), points)


def _declaration(folder: Path, name: str) -> Problem:
    """A problem that was declared later on; without it nothing after it can be examined."""
    try:
        return read_problem(folder / name)
    except Unreadable as error:
        raise ValueError(str(error)) from error


def _check_snapshot(folder: Path, n: int, record: Record, wrong: Say) -> None:
    """A snapshot's file may be gone, since older ones are removed; if it is there, it must be what was written."""
    match = _SNAPSHOT.match(record["file"])
    if match is None or int(match[1]) != n:
        wrong(n, f"its file is called {record['file']!r}")
        return
    try:
        found = hashlib.sha256((folder / "snapshots" / record["file"]).read_bytes()).hexdigest()
    except FileNotFoundError:
        return
    except OSError as error:
        wrong(n, f"{record['file']} cannot be read: {error.strerror}")
        return
    if found != record["sha256"]:
        wrong(n, f"{record['file']} is not what was written")


def _snapshots(folder: Path) -> list[int]:
    """The records of which there are snapshots."""
    try:
        names = [file.name for file in (folder / "snapshots").iterdir()]
        return sorted(int(found[1]) for name in names if (found := _SNAPSHOT.match(name)))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:  # a path that the system does not take is a ValueError
        raise Unreadable(f"the snapshots cannot be listed: {error}") from error
