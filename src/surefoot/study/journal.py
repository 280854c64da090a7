"""The journal: records appended one by one, each on disk before it counts (the format is in ``records``).

**Reading.** Every line is verified: its own hash, that it follows from the line before, its number, its time. What a
crash can leave is a *torn tail*: the last line without its end, or with holes of zero bytes where blocks never reached
the disk. Such a line was never acknowledged; it is cut, and that is said. Anything else that does not verify stops with
its place, because only a fault of the disk or a hand can have made it.

**Writing.** A line is written and synced before :meth:`Journal.append` returns. When the disk is full the line is cut
away again and the call fails; the journal is as before and goes on when there is room. When a sync fails nobody knows
what is on disk, so nothing more is written until the study is opened, and verified, anew.

**Time.** Records are in the order of their numbers. A wall clock that was set back is noted in a record of its own
(:meth:`Journal.note_clock`), and never stops anything.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from surefoot.errors import OutOfOrder, UnreadableFile, UnwritableFile
from surefoot.storage.disk import FileLayer, writing
from surefoot.study import records
from surefoot.study.records import Record, time_seconds, time_text

Clock = Callable[[], float]
"""Seconds since 1970."""

TOLERANCE = 1.0  #: seconds; clocks are corrected by less than this all the time


class Timekeeper:
    """The time of records: the wall clock's, which anybody can set, watched by one of the process, which nobody can.

    Records are in the order of their numbers; times only say when. So a clock that is wrong never holds a study up.
    """

    def __init__(self, wall: Clock, last: str) -> None:
        """``last``: the time of the last record; '' when there is none."""
        self._wall = wall
        # A clock that the caller brings along is compared with itself alone: nobody else knows how fast it should go.
        self._ticks: Clock = time.monotonic if wall is time.time else lambda: 0.0
        self.believe(time_seconds(last) if last else -math.inf)

    def believe(self, now: float) -> None:
        """Count on from here."""
        self._then, self._ticked = now, self._ticks()

    def read(self) -> tuple[float, float]:
        """(now, expected), in seconds since 1970: it cannot be earlier than expected unless the clock was set back."""
        now, expected = self._wall(), self._then + self._ticks() - self._ticked
        time_text(now)  # an error where it is none
        if now > expected:
            self.believe(now)
        return now, expected


NAME = "journal.jsonl"
LONGEST_LINE = 1 << 30


@dataclass(frozen=True)
class Line:
    """A verified line: record n, in bytes offset … end of the file."""

    n: int
    offset: int
    end: int
    text: bytes

    def record(self, path: Path) -> Record:
        try:
            return records.decode(self.text)
        except UnreadableFile as error:
            raise _damaged(path, self.n, self.offset, str(error)) from error


def read_lines(path: Path, layer: FileLayer, *, offset: int = 0, end: int | None = None, n: int = 0) -> Iterator[Line]:
    """Lines that :func:`scan` has verified, from a byte offset on, which is where record n begins."""
    with layer.read(path) as stream:
        stream.seek(offset)
        while end is None or offset < end:
            text = stream.readline()
            if not text:
                return
            yield Line(n, offset, offset + len(text), text)
            n, offset = n + 1, offset + len(text)


@dataclass(frozen=True)
class Scan:
    """What a journal holds, every line verified."""

    records: int
    size: int  # bytes of the verified lines
    hash: str  # of the last record
    time: bytes  # of the last record
    first: Line | None
    snapshots: tuple[Line, ...]
    torn: str  # what stands behind the verified lines, in words; '' when nothing does


def scan(path: Path, layer: FileLayer) -> Scan:
    """Verify a whole journal, as long as it was when it was opened: another process may be writing. None is empty."""
    n, offset, previous, at = 0, 0, records.FIRST, b""
    first: Line | None = None
    snapshots: list[Line] = []
    torn = ""
    try:
        stream = layer.read(path)
    except FileNotFoundError:
        return Scan(0, 0, previous, at, None, (), "")
    except OSError as error:
        raise UnreadableFile("the journal cannot be read", where=str(path), got=str(error)) from error
    with stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        while line := stream.readline(min(LONGEST_LINE, size - offset)):
            fault = records.verify(line, n, previous, at)
            if fault is not None:
                if not _is_torn(line, n) or offset + len(line) < size:
                    raise _damaged(path, n, offset, fault)
                torn = f"record {n} was not written to its end and never acknowledged: {len(line)} bytes"
                break
            found = Line(n, offset, offset + len(line), line)
            if first is None:
                first = found
            if b'"kind":"snapshot"' in line[:80]:
                snapshots.append(found)
            previous, at = records.hash_in(line), records.time_in(line, n)
            n, offset = n + 1, found.end
    return Scan(n, offset, previous, at, first, tuple(snapshots), torn)


def _is_torn(line: bytes, n: int) -> bool:
    """Is this what an interrupted write of record n leaves behind, if it is the last line?"""
    begins = records.prefix(n)
    ours = begins.startswith(line.split(b"\0", 1)[0][: len(begins)])
    return ours and (not line.endswith(b"\n") or b"\0" in line)


def _damaged(path: Path, n: int, offset: int, fault: str) -> UnreadableFile:
    return UnreadableFile(
        "the journal does not verify",
        where=f"{path}, line {n + 1}, byte {offset}",
        got=fault,
        fix="Nothing was changed. Restore the journal from a copy, or begin a new study.",
    )


class End(NamedTuple):
    """Where the next record goes."""

    records: int
    size: int  # bytes
    hash: str  # of the last record
    time: str


class Journal:
    """A verified journal that is open for appending."""

    def __init__(self, path: Path, layer: FileLayer, clock: Clock = time.time) -> None:
        """Verify the journal, or make an empty one; cut a torn tail, which :attr:`recovered` reports."""
        self.path, self._layer = path, layer
        self.scanned = scan(path, layer)
        self._end = End(self.scanned.records, self.scanned.size, self.scanned.hash, self.scanned.time.decode("ascii"))
        self._clock = Timekeeper(clock, self._end.time)
        self.recovered = f"a torn tail was cut: {self.scanned.torn}" if self.scanned.torn else ""
        self._broken = ""
        with writing(path):
            self._file: int | None = layer.open(path)
        try:
            with writing(path):
                if self.scanned.torn:
                    layer.truncate(self._file, self._end.size)
                # What the process before us wrote may be readable and yet not on disk.
                layer.fsync(self._file)
                layer.fsync_dir(path.parent)
        except BaseException:
            self.close()
            raise

    @property
    def records(self) -> int:
        """How many there are; the next one has this number."""
        return self._end.records

    @property
    def hash(self) -> str:
        """Of the last record."""
        return self._end.hash

    @property
    def closed(self) -> bool:
        return self._file is None

    def append(self, kind: str, entries: Record) -> Record:
        """Write a record and return it, as a reader would see it, when it is on disk."""
        now, _ = self._clock.read()
        return self._append(kind, entries, max(records.time_text(now), self._end.time))

    def note_clock(self) -> Record | None:
        """Write down that the wall clock was set back, if it was, and count on from where it is now."""
        now, expected = self._clock.read()
        if expected - now <= TOLERANCE:
            return None
        record = self._append("clock", {"expected": records.time_text(expected)}, records.time_text(now))
        self._clock.believe(now)
        return record

    def _append(self, kind: str, entries: Record, moment: str) -> Record:
        file, end = self._usable(), self._end
        line = records.encode(end.records, moment, kind, entries, end.hash)
        if len(line) > LONGEST_LINE:
            raise UnwritableFile("a record is too long", got=f"{len(line)} bytes, {LONGEST_LINE} at most")
        self._write(file, line)
        self._end = End(end.records + 1, end.size + len(line), records.hash_in(line), moment)  # at one stroke
        return records.decode(line)

    def _usable(self) -> int:
        if self._file is None:
            raise OutOfOrder("the study is closed", where=str(self.path.parent), fix="Open it again.")
        if not self._broken and self._layer.size(self._file) != self._end.size:
            self._broken = "it was changed by other hands, or a call was interrupted; open the study again"
        if self._broken:
            raise UnwritableFile("the journal is not written any more", where=str(self.path), got=self._broken)
        return self._file

    def _write(self, file: int, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._layer.append(file, rest) :]
        except BaseException as error:
            self._cut_back(file, f"a record could not be written ({error!r}) and not be cut away again")
            if not isinstance(error, OSError):
                raise
            raise UnwritableFile(
                "the journal could not be written",
                where=str(self.path),
                got=str(error),
                fix="Nothing was recorded and nothing recorded was lost. Make room and call again.",
            ) from error
        try:
            self._layer.fsync(file)
        except OSError as error:
            self._cut_back(file, "")
            self._broken = f"a sync failed ({error!r}); open the study again to see what is on disk"
            raise UnwritableFile("the journal could not be synced", where=str(self.path), got=self._broken) from error
        except BaseException as error:  # Ctrl-C, most likely: the disk is well
            self._cut_back(file, f"a record was interrupted ({error!r}) and could not be cut away again")
            raise

    def _cut_back(self, file: int, otherwise: str) -> None:
        """The file as it was before the record that failed; when even that fails, nothing more is written."""
        try:
            self._layer.truncate(file, self._end.size)
        except OSError:
            self._broken = otherwise

    def close(self) -> None:
        if self._file is not None:
            self._layer.close(self._file)
            self._file = None
