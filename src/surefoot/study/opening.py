"""Making a study, and finding one again: the problem, the options, and the state that follows from the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import surefoot
from surefoot.agents.agent import Agent
from surefoot.agents.blocks.look_ahead import LookAhead
from surefoot.agents.lsvi_new import LsviNew
from surefoot.agents.registry import AGENTS
from surefoot.checks import check_options, probability
from surefoot.errors import InvalidInput, SurefootError, UnreadableFile, UnwritableFile
from surefoot.model import files
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem
from surefoot.storage.disk import FileLayer
from surefoot.storage.lock import Lock
from surefoot.study import journal as journals
from surefoot.study import snapshots
from surefoot.study.comparing import difference, problem_difference
from surefoot.study.declaring import declaration, examined, keep_problem
from surefoot.study.exact import FILE as PLANT_FILE
from surefoot.study.exact import check_plant_file, keep_plant
from surefoot.study.journal import Journal, Line, Scan
from surefoot.study.records import VERSION, Record, share
from surefoot.study.standing import Standing
from surefoot.study.state import MonitorFactory

FAILURE_PROBABILITY = 0.05
FALSE_ALARM = 0.01
AUDITED = ("fallback", "radius", "guard")  # deviations of LsviNewPaper that the audit's bounds have

_TAKEN = ("failure_probability", "false_alarm", "read_only", "snapshot_every", "despite", "progress")  # by Study.open
_OURS = frozenset({journals.NAME, "lock", "problem.json", "problem.npz", PLANT_FILE, snapshots.FOLDER})


@dataclass(frozen=True)
class Wishes:
    """The arguments of ``Study.open``; None and {} mean whatever the study has."""

    path: Path
    files: FileLayer
    monitor: MonitorFactory
    problem: Problem | None
    failure_probability: float | None
    false_alarm: float | None
    agent: str | None
    options: dict[str, Any]
    plant: Plant | None = None
    despite: str | None = None


def agent_name(agent: str | type[Agent] | None) -> str | None:
    """The name of a learner that a study can use: one that plays certified actions only."""
    if agent is None:
        return None
    name = agent if isinstance(agent, str) else getattr(agent, "name", repr(agent))
    kind = AGENTS.kind(name)
    if not issubclass(kind, LookAhead) or (not isinstance(agent, str) and kind is not agent):
        fix = "Use 'lsvi-new' or 'lsvi-new-paper'."
        raise InvalidInput("a study needs a learner that plays certified actions", got=repr(agent), fix=fix)
    return name


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """The agent's options as JSON returns them."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(options, allow_nan=False))
    except (TypeError, ValueError) as error:
        fix = "Use numbers, strings, lists."
        raise InvalidInput("an option of a study must be plain JSON", got=str(error), fix=fix) from None
    return found


def refuse_foreign(path: Path) -> None:
    """Refuse a folder that holds other things."""
    if path.exists() and not path.is_dir():
        raise InvalidInput("a study is a folder", got=f"{path} is a file")
    if path.is_dir() and not (path / journals.NAME).exists():
        strange = sorted(p.name for p in path.iterdir() if p.name not in _OURS and not p.name.startswith("."))
        if strange:
            raise InvalidInput("the folder holds other things", where=str(path), got=", ".join(strange[:5]))


def refuse_missing(path: Path) -> None:
    """Without a problem there must be a study already, so a misspelt name makes no folder."""
    if not (path / journals.NAME).exists():
        raise _no_study(path)


def _no_study(path: Path) -> InvalidInput:
    fix = "Give the problem to begin one (surefoot study new)."
    return InvalidInput("there is no study here yet", where=repr(str(path)), fix=fix)


def study_lock(path: Path) -> Lock:
    fix = "Close it there (study.close()), or open it here with read_only=True."
    return Lock(path / "lock", busy="the study is open already", fix=fix)


def take_lock(path: Path, lock: Lock, layer: FileLayer) -> str:
    """Make the folder if need be and take the lock; a remark when a dead process left it."""
    refuse_foreign(path)
    try:
        layer.mkdir(path)
        return lock.take()
    except (OSError, ValueError) as error:  # a path that the system does not take is a ValueError
        raise UnwritableFile("the study's folder cannot be used", where=str(path), got=str(error)) from error


def begin_or_rebuild(journal: Journal, wishes: Wishes) -> tuple[Standing, list[str]]:
    """Where the study stands, after its first record or after its last, and remarks."""
    scan = journal.scanned
    if scan.first is not None:
        return _stand(scan, snapshots.numbers(wishes.path / snapshots.FOLDER), wishes)
    standing, entries = first_record(wishes)
    journal.append("open", entries)
    return standing, []


def look(wishes: Wishes) -> tuple[Standing, list[str]]:
    """Where a study stands that another process may be writing; an incomplete last line is left alone."""
    path = wishes.path
    there = snapshots.numbers(path / snapshots.FOLDER)  # before the journal is read, which another process may write
    scan = journals.scan(path / journals.NAME, wishes.files)
    if scan.first is None:
        raise InvalidInput("there is no study here", where=str(path))
    standing, remarks = _stand(scan, there, wishes)
    torn = f"what is still being written, or was cut off, is left alone: {scan.torn}" if scan.torn else ""
    return standing, [torn, *remarks]


def _stand(scan: Scan, there: list[int], wishes: Wishes) -> tuple[Standing, list[str]]:
    assert scan.first is not None
    path = wishes.path
    if there and there[-1] > scan.end.records:
        raise UnreadableFile(
            "the journal is shorter than it was: records that were acknowledged are gone",
            where=str(path / journals.NAME),
            got=f"{scan.end.records} records, but there is a snapshot of {there[-1]}",
            fix=f"Restore the journal from a copy; or, to continue without them, remove {path / snapshots.FOLDER}.",
        )
    opened = scan.first.record(path / journals.NAME)
    problem = check_opened(opened, wishes)
    check_plant_file(path, opened, wishes.plant, wishes.files)
    standing, remarks = rebuild(problem, opened, scan, scan.first, wishes)
    refuse_other(wishes, opened, standing)
    return standing, [*remarks, standing.drifted]


# --- a new one ------------------------------------------------------------------------------------------


def first_record(wishes: Wishes) -> tuple[Standing, Record]:
    """Save the problem; returns where a new study stands, and the entries of the record that opens it.

    Everything that a replay of this record makes is made here, so that nothing is written that cannot be replayed.
    """
    problem, path = wishes.problem, wishes.path
    if problem is None:
        raise _no_study(path)
    p, alpha = wishes.failure_probability, wishes.false_alarm
    p = probability("failure_probability", FAILURE_PROBABILITY if p is None else p)
    alpha = probability("false_alarm", FALSE_ALARM if alpha is None else alpha)
    options = plain_options(wishes.options)
    agent = wishes.agent or LsviNew.name
    kind, own = AGENTS.kind(agent), ("problem", "failure_probability")
    check_options(agent, kind, options, own, beside=_TAKEN)
    promised: Record = {"failure_probability": p, "false_alarm": alpha, "agent": agent, "options": options}
    declared: Record = {"problem": problem.digest, "problem_file": files.file_for(problem, "problem")}
    despite = examined(wishes.plant or problem, share(p, 0), wishes.despite)
    given = {**declared, **promised, "plant": wishes.plant, "despite": despite}
    try:
        standing = Standing(problem, given, wishes.monitor, partial(declaration, path))
    except SurefootError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise InvalidInput("not options of the agent", got=str(error), fix=f"See those of {agent}.") from None
    refuse_unaudited(standing.constants)
    keep_problem(path, problem, wishes.files)
    plant = keep_plant(path, wishes.plant, wishes.files) if wishes.plant is not None else None
    return standing, {
        "version": VERSION,
        "surefoot": surefoot.__version__,
        **declared,
        "plant": plant,
        **promised,
        "share": share(p, 0),
        "constants": standing.constants,
        "despite": despite,
    }


def refuse_unaudited(constants: Mapping[str, Any]) -> None:
    """The audit knows the bounds of the paper's learner only with these deviations."""
    missing = [name for name in AUDITED if name not in constants.get("deviations", AUDITED)]
    if missing:
        raise InvalidInput(
            "a study cannot be audited without some deviations of the paper's learner",
            got=f"left out: {', '.join(missing)}",
            fix="Keep them, or use surefoot.run, which needs no audit.",
        )


# --- one that is there ----------------------------------------------------------------------------------


def check_opened(opened: Record, wishes: Wishes) -> Problem:
    """The study's problem; other options than the study's are refused, naming what differs."""
    path = wishes.path
    if opened["kind"] != "open":
        raise UnreadableFile("a journal begins with its opening", where=str(path), got=repr(opened["kind"]))
    if type(opened["version"]) is not int or opened["version"] != VERSION:
        raise UnreadableFile(
            "the journal is of another version",
            where=str(path),
            got=f"version {opened['version']!r}, this surefoot reads {VERSION}",
            fix=f"Use the surefoot that began it, {opened['surefoot']!r}, or begin a new study.",
        )
    problem = declaration(path, opened)
    promised = {"failure_probability": wishes.failure_probability, "false_alarm": wishes.false_alarm}
    asked: Record = {key: float(value) for key, value in promised.items() if value is not None}
    if wishes.agent is not None:
        asked["agent"] = wishes.agent
    had: Record = {key: opened[key] for key in asked}
    if wishes.options:
        asked, had = {**asked, "options": plain_options(wishes.options)}, {**had, "options": opened["options"]}
    if asked != had:
        raise InvalidInput(
            "the study was begun with other options",
            where=str(path),
            got=difference(had, asked),
            fix="Leave them out to continue as before, or begin a new study.",
        )
    return problem


def refuse_other(wishes: Wishes, opened: Record, standing: Standing) -> None:
    """Refuse a problem other than the one that the study was begun with, or the one declared since."""
    given = wishes.problem
    if given is not None and given.digest not in (opened["problem"], standing.problem.digest):
        importing = "" if opened["plant"] else "; logged rows can be imported there"
        raise InvalidInput(
            "the study was begun with another problem",
            where=str(wishes.path),
            got=problem_difference(standing.problem, given) or "their digests differ",
            fix=f"Begin a new study for it{importing}.",
        )


def rebuild(problem: Problem, opened: Record, scan: Scan, first: Line, wishes: Wishes) -> tuple[Standing, list[str]]:
    """The state after the whole journal, and remarks on snapshots that could not be used."""
    path, remarks = wishes.path, list[str]()
    folder = path / snapshots.FOLDER
    for line in reversed(scan.snapshots[-snapshots.KEPT :]):
        record = line.record(path / journals.NAME)
        fault = snapshots.matches(folder, record, wishes.files)
        if not fault:
            standing = _standing(problem, opened, wishes)
            try:
                snapshots.resume_from(folder / record["file"], problem.digest, standing)
            except SurefootError as error:
                fault = str(error)
            else:
                _replay(standing, scan, line, wishes)
                return standing, remarks
        remarks.append(f"snapshot {record['file']} was passed over: {fault}")
    standing = _standing(problem, opened, wishes)
    _replay(standing, scan, first, wishes)
    return standing, remarks


def _standing(problem: Problem, opened: Record, wishes: Wishes) -> Standing:
    path = wishes.path
    try:
        for key in ("failure_probability", "false_alarm"):
            probability(key, opened[key])
        agent_name(opened["agent"])
        standing = Standing(problem, opened, wishes.monitor, partial(declaration, path))
    except (SurefootError, TypeError, ValueError) as error:
        raise UnreadableFile("the journal's first record cannot be used", where=str(path), got=str(error)) from error
    constants = plain_options(standing.constants)
    if constants != opened["constants"]:
        raise InvalidInput(
            "this surefoot computes other constants than the one that began the study",
            where=str(path),
            got=f"{difference(opened['constants'], constants)} (it was version {opened['surefoot']})",
            fix="Continue with that version, or begin a new study.",
        )
    return standing


def _replay(standing: Standing, scan: Scan, after: Line, wishes: Wishes) -> None:
    """Apply every record that comes after a line."""
    name = wishes.path / journals.NAME
    standing.applied = after.n + 1
    for line in journals.read_lines(name, wishes.files, offset=after.end, end=scan.end.size, n=after.n + 1):
        record = line.record(name)
        try:
            standing.apply(record)
        except (SurefootError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise UnreadableFile(
                "a record does not fit the ones before it",
                where=f"{name}, line {line.n + 1}, byte {line.offset}",
                got=str(error)[:300],
                fix="Nothing was changed. Restore the journal from a copy, or begin a new study.",
            ) from error
