"""A warm start: transitions that were logged before the study, usually of the fallback, enter the estimators.

The columns of a row are listed in ``docs/studies.md``, and so is how copies are told from measurements. All rows are
checked before any is used; if one is bad, nothing is imported. An import is one record, so it is never half there.

**Why partial logs are allowed.** (S3) requires of row i only that its features are known before its noise ξ_i is drawn,
and that given them and the past ξ_i has mean zero and is sub-Gaussian. So these are fine: parts of episodes; missing
rows; a cost that was not measured (the row then counts for transitions alone); actions of any policy that did not know
the noise in advance.

**What is not allowed, and cannot be seen in the rows.** Whether a row or its cost is in the log must not depend on its
noise: with a log of alarms only, or a sensor that is silent when its reading is high, no bound holds. If some limits'
costs of a row are missing, all of that row's are left out, since the limits share one Gram matrix; the same condition
covers that. Nor may these rows have chosen what scales or regularises rows, above all a prior (``sf.calibrate`` may
propose one): (S3) requires that to be fixed before its data.

**No measurement counts twice**, or its noise would count twice and no bound would hold. Every row is compared with the
other rows of the import, with former imports, and with everything told to this study. Two rows with the same episode
and step are one measurement, without exception; ids are compared as a person reads them (``"1"``, ``1``, ``" 01"``).
Two rows are *alike* if they have the same state, action and next state, at any step and intensity, and costs that agree
to twelve digits. They are refused, unless a person gives a reason why they are different measurements; every row then
needs its ``episode``. If no limit has noise, there is nothing to count twice, and contents are not compared.

**After a discard** a row needs its ``time`` of measurement, which must be later.

**Values.** The value regression pairs φ_V with V(s'), for a V that must not depend on s'. Rows that were logged earlier
may share an episode with rows imported before, from which plans were made; so all imports use the V of the epoch's
first plan, which depends on no data at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput, SurefootError
from surefoot.logs.files import MOST_ROWS, Log, Text, log_rows
from surefoot.logs.rows import LAST, Faults, RowReader, episode_in, episode_key
from surefoot.model.labels import Label, shown
from surefoot.model.problem import Problem
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study import records
from surefoot.study.records import Record, compact
from surefoot.study.standing import Standing

_DIGITS = 12  # of costs that are compared
_KINDS = tuple(f'"kind":"{kind}"'.encode() for kind in ("tell", "terminal", "import"))
_plain = json.JSONEncoder(separators=(",", ":")).encode  # a tuple and a JSON array give the same


@dataclass(frozen=True)
class Imported:
    """What an import brought."""

    rows: int
    with_cost: int
    partly_measured: int  # rows whose costs were left out because one was missing
    repeated: int  # rows that are like another one; a person vouches that they are different measurements
    certified_pairs: int  # by the plan that was made from them
    alarm: str | None  # what the monitor says about the rows

    @classmethod
    def of(cls, record: Record, partly: int, standing: Standing) -> Imported:
        rows, certified = record["rows"], standing.agent.plan.n_certified()
        with_cost = sum(row[-1] is not None for row in rows)
        return cls(len(rows), with_cost, partly, record["repeated"], certified, standing.raised_by(record))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def prepare(
    problem: Problem,
    rows: Log,
    source: str,
    different: str | None,
    journal: Path,
    layer: FileLayer,
    discarded_at: str,
) -> tuple[Record, int]:
    """The entries of the import's record, every row checked; and how many rows were measured in part."""
    if problem.graph.several_rows:
        raise InvalidInput("a study of a plant takes no logged rows", fix="Let sf.calibrate read them.")
    if different is not None:
        records.reason_given("say why these are different measurements", different)
    reader, times = _Reader(problem, str(rows) if isinstance(rows, (str, Path)) else ""), list[str]()
    for i, (place, row) in enumerate(log_rows(rows)):
        if i == MOST_ROWS:
            raise InvalidInput("too many rows for one import", got=f"more than {i}", fix="Import them in parts.")
        reader.take(place, row)
        times.append(_time_of(row, place, discarded_at))
    reader.refuse_faults()
    if not reader.rows:
        raise InvalidInput("there are no rows to import")
    if different is not None and reader.episodes is None:
        fix = "Without an id nothing tells a copy from a measurement that is like it."
        raise InvalidInput("different measurements need an episode in every row", where=reader.source, fix=fix)
    known = KnownRows.of(journal, layer, problem.horizon - 1)
    reader.refuse_same_steps(known)
    return {
        "source": source or reader.source or "rows",
        "digest": rows_digest(reader.rows),
        "episodes": reader.episodes,
        "different": different,
        "repeated": reader.repeated(known, refuse=different is None),
        "since": min(times) or None,  # '' if a row does not say
        "rows": reader.rows,
    }, reader.partly


def moment(value: object) -> str | None:
    """When a row was measured, as a record's time; None if that is not a time, or has no time zone."""
    try:
        seconds = float(value) if isinstance(value, (int, float, Text)) and not isinstance(value, bool) else None
    except ValueError:
        seconds = None
    try:
        if seconds is None:
            when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
            if when.tzinfo is None:
                return None
            seconds = when.timestamp()
        return records.time_text(seconds)
    except (ValueError, OverflowError, InvalidInput):
        return None


def _time_of(row: Mapping[str, Any], place: str, discarded_at: str) -> str:
    """When a row was measured, '' if it does not say; after a discard it must, and must be later."""
    given = row.get("time")
    text = (None if given is None else moment(given)) or ""
    if discarded_at and text <= discarded_at:
        raise InvalidInput(
            "data were discarded: rows from before are of another plant, and nothing was imported",
            where=place,
            got=f"time {shown(given)}, data were discarded at {discarded_at}",
            fix="Import rows measured later, each with its time, such as 2026-07-01T08:00:00Z.",
        )
    return text


class _Reader:
    """Checks rows one by one and keeps them as the journal will."""

    def __init__(self, problem: Problem, source: str) -> None:
        self._problem, self.source, self._reader = problem, source, RowReader(problem)
        self.rows: list[list[Any]] = []
        self._places: list[str] = []  # of the rows, in words
        self._ids: list[Label] = []
        self._current = ""  # the last row's episode
        self._finished: set[str] = set()  # episodes whose rows have ended
        self.partly = 0
        self._faults = Faults()

    @property
    def episodes(self) -> list[Any] | None:
        return self._ids or None

    def take(self, place: str, row: Mapping[str, Any]) -> None:
        try:
            taken = self._read(row)
            self._follow(row, taken)
        except SurefootError as error:
            self._faults.add(place, error)
            if self._faults.enough:
                self.refuse_faults()
            return
        self.rows.append(taken)
        self._places.append(place)

    def refuse_faults(self) -> None:
        if self._faults:
            fix = "Correct or remove these rows and try again."
            raise InvalidInput("nothing was imported", where=self.source, got=str(self._faults), fix=fix)

    # --- one after the other ------------------------------------------------------------------------

    def _read(self, row: Mapping[str, Any]) -> list[Any]:
        """A row as the journal keeps it."""
        found, naming = self._reader.read(row, outside=False), self._problem.naming
        self.partly += found.partly
        state = naming.states[found.step][found.state]
        if found.edge == LAST:
            return [found.step, state, found.cost]
        action = naming.action(self._problem.graph.layers[found.step], found.step, found.pair)
        at = [found.intensity] if self._problem.has_rays else []
        return [found.step, state, action, found.following, *at, found.cost]

    def _follow(self, row: Mapping[str, Any], taken: list[Any]) -> None:
        """Check the episode ids: each episode in one piece, steps rising, each state where the row before led."""
        episode = row.get("episode")
        if (episode is None) != (not self._ids) and (self.rows or self._ids):
            raise InvalidInput("give every row its episode, or none")
        if episode is None:
            if self._problem.shared_offsets:
                fix = "Add a column 'episode': rows of one episode share an offset."
                raise InvalidInput("a limit declares episode_noise, so every row needs its episode", fix=fix)
            return
        name = episode_in(episode)
        key, last = episode_key(name), self.rows[-1] if self.rows else None
        if last is None or self._current != key:
            if key in self._finished:
                raise InvalidInput("the rows of an episode must be together", got=f"episode {name!r} had ended before")
            self._finished.add(self._current)
        elif taken[0] <= last[0]:
            raise InvalidInput("steps must rise within an episode", got=f"step {taken[0]} after step {last[0]}")
        elif taken[0] == last[0] + 1 and taken[1] != last[3]:
            got = f"state {taken[1]!r} after a row that led to {last[3]!r}"
            raise InvalidInput("a row does not follow from the one before", got=got)
        self._ids.append(name)
        self._current = key

    # --- against what is there ---------------------------------------------------------------------------

    def refuse_same_steps(self, known: KnownRows) -> None:
        """No step of an episode is imported twice, nor an episode in parts if these share an offset."""
        shared = self._problem.shared_offsets
        word = "shares the offset of" if shared else "is in"
        found = [
            (i, f"episode {self._ids[i]!r}, step {self.rows[i][0]} {word} {where}")
            for i, where in known.same_steps(self._ids, self.rows, shared)
        ]
        if found:
            fix = "Leave them out; if two logs number their episodes alike, give these other ids."
            self._refuse("these episodes were imported before", found, fix)

    def repeated(self, known: KnownRows, *, refuse: bool) -> int:
        """How many rows are like another one; with ``refuse`` there must be none."""
        noisy = any(limit.noise > 0.0 for limit in self._problem.limits)
        found = list(known.alike(self.rows, self._places)) if noisy else []
        if found and refuse:
            self._refuse(
                "these rows cannot be told from others",
                [(i, f"the same state, action, next state and cost as {where}") for i, where in found],
                "Leave copies out: noise that counts twice voids every bound. If they are different measurements, say "
                'of a coarse sensor, give every row its episode, and a reason: different="why".',
            )
        if refuse and rows_digest(self.rows) in known.digests:
            raise InvalidInput("nothing was imported, the same list of rows was imported before", where=self.source)
        return len(found)

    def _refuse(self, rule: str, found: list[tuple[int, str]], fix: str) -> None:
        shown_rows = "; ".join(f"{self._places[i]}: {text}" for i, text in found[: Faults.MOST])
        got = f"{len(found)} of {len(self.rows)} rows: {shown_rows}{'; …' if len(found) > Faults.MOST else ''}"
        raise InvalidInput(f"nothing was imported, {rule}", where=self.source, got=got, fix=fix)


# --- what there is already ------------------------------------------------------------------------------


def rows_digest(rows: list[Any]) -> str:
    return hashlib.sha256(compact(rows).encode("ascii")).hexdigest()


def content(row: Sequence[Any]) -> str | None:
    """What two rows share if they are alike; None without a cost, since that affects values only, never safety."""
    if row[-1] is None:
        return None
    costs = [f"{cost + 0.0:.{_DIGITS}g}" for cost in row[-1]]  # + 0.0: there is no minus zero
    return _plain([*row[1 : min(4, len(row) - 1)], costs])


def _step(episode: Any, row: Sequence[Any]) -> str:
    return f"{row[0]} {episode_key(episode)}"


@dataclass
class KnownRows:
    """All measurements so far, and where each is."""

    digests: set[str] = field(default_factory=set)  # of former imports
    steps: dict[str, str] = field(default_factory=dict)  # (episode, step) of imported rows
    episodes: dict[str, str] = field(default_factory=dict)  # of imported rows
    rows: dict[str, str] = field(default_factory=dict)  # by content

    @classmethod
    def of(cls, path: Path, layer: FileLayer, last: int) -> KnownRows:
        """What a journal holds, of every epoch; ``last`` is the last step, H−1."""
        known = cls()
        for line in journals.read_lines(path, layer):
            if any(kind in line.text[:80] for kind in _KINDS):
                known._enter(line.record(path), last)
        return known

    def _enter(self, record: Record, last: int) -> None:
        n = record["n"]
        if record["kind"] == "tell":
            if record["unused"] is None:
                row = [record[key] for key in ("step", "state", "action", "next_state", "cost")]
                self._enter_row(row, f"the tell of record {n}")
        elif record["kind"] == "terminal":
            self._enter_row([last, record["state"], record["cost"]], f"the last cost of record {n}")
        else:
            self.digests.add(record["digest"])
            where = f"a row of the import of record {n}"
            for row in record["rows"]:
                self._enter_row(row, where)
            for episode, row in zip(record["episodes"] or (), record["rows"], strict=False):
                self.steps.setdefault(_step(episode, row), where)
                self.episodes.setdefault(episode_key(episode), where)

    def _enter_row(self, row: Sequence[Any], where: str) -> None:
        key = content(row)
        if key is not None:
            self.rows.setdefault(key, where)

    def same_steps(self, episodes: Sequence[Any], rows: Sequence[Any], offsets: bool) -> Iterator[tuple[int, str]]:
        """(row, where it is already) for each row whose episode and step were imported before. ``offsets``: the rows of
        an episode share one; the rest of an episode is then refused too, since plans made in between have seen a part
        of it (spec 3)."""
        for i, (episode, row) in enumerate(zip(episodes, rows, strict=False)):  # without ids there are no episodes
            where = self.episodes.get(episode_key(episode)) if offsets else self.steps.get(_step(episode, row))
            if where is not None:
                yield i, where

    def alike(self, rows: Sequence[Any], places: Sequence[str]) -> Iterator[tuple[int, str]]:
        """(row, which one it is like) for each row that is like one before it, here or in the journal."""
        here: dict[str, int] = {}
        for i, row in enumerate(rows):
            key = content(row)
            if key is None:
                continue
            if key in self.rows:
                yield i, self.rows[key]
            elif key in here:
                yield i, places[here[key]]
            else:
                here[key] = i
