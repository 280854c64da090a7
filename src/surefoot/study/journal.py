"""The journal: records appended one by one, each on disk before it counts (the format is in ``records``).

**Reading.** Every line is verified: its hash, its link to the line before, its number, its time. A crash can leave a
*torn tail*: the last line without its end, or with holes of zero bytes where blocks never reached the disk. Such a line
was never acknowledged; it is cut, with a remark. Any other damage is an error that names its place, because only a
faulty disk or a person can have caused it.

**Writing.** A line is written and synced before :meth:`Journal.append` returns. If the disk is full, the line is cut
off again and the call fails; the journal is as before and can be continued when there is room. If a sync fails, nobody
knows what is on disk, so nothing more is written until the study is opened again, which verifies it.

**Time.** Records are ordered by their numbers. A wall clock that was set back is noted in a record of its own
(:meth:`Journal.note_clock`) and never stops anything.
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
from surefoot.study.records import FIRST, Record, time_seconds, time_text

Clock = Callable[[], float]
"""Seconds since 1970."""

TOLERANCE = 1.0  #: seconds; clocks are corrected by less than this all the time


class Timekeeper:
    """The time of records: the wall clock's, which anybody can set, checked against the process's, which nobody can."""

    def __init__(self, wall: Clock, last: str) -> None:
        """``last``: the time of the last record; '' if there is none."""
        self._wall = wall
        # A caller's own clock is compared with itself alone: nobody else knows how fast it should run.
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
    """Lines that :func:`scan` has verified, from the byte offset where record n begins."""
    with layer.read(path) as stream:
        stream.seek(offset)
        while end is None or offset < end:
            text = stream.readline()
            if not text:
                return
            yield Line(n, offset, offset + len(text), text)
            n, offset = n + 1, offset + len(text)


class End(NamedTuple):
    """Where the next record goes."""

    records: int = 0
    size: int = 0  # bytes
    hash: str = FIRST  # of the last record
    time: str = ""


@dataclass(frozen=True)
class Scan:
    """What a journal holds, every line verified."""

    end: End
    first: Line | None = None
    snapshots: tuple[Line, ...] = ()
    torn: str = ""  # what follows the verified lines, in words; '' if nothing does


def scan(path: Path, layer: FileLayer) -> Scan:
    """Verify a whole journal, as long as it is when it is opened: another process may be writing. A missing one is
    empty."""
    n, offset, previous, at = 0, 0, FIRST, b""
    first: Line | None = None
    snapshots: list[Line] = []
    torn = ""
    try:
        stream = layer.read(path)
    except FileNotFoundError:
        return Scan(End())
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
            first = first or found
            if b'"kind":"snapshot"' in line[:80]:
                snapshots.append(found)
            previous, at = records.hash_in(line), records.time_in(line, n)
            n, offset = n + 1, found.end
    return Scan(End(n, offset, previous, at.decode("ascii")), first, tuple(snapshots), torn)


def _is_torn(line: bytes, n: int) -> bool:
    """Can an interrupted write of record n have left this as the last line?"""
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


class Journal:
    """A verified journal, open for appending."""

    def __init__(self, path: Path, layer: FileLayer, clock: Clock = time.time) -> None:
        """Verify the journal, or make an empty one; a torn tail is cut, which :attr:`recovered` reports."""
        self.path, self._layer = path, layer
        self.scanned = scan(path, layer)
        self._end = self.scanned.end
        self._clock = Timekeeper(clock, self._end.time)
        self.recovered = f"a torn tail was cut: {self.scanned.torn}" if self.scanned.torn else ""
        self._broken = ""
        with writing(path):
            self._file: int | None = layer.open(path)
        try:
            with writing(path):
                if self.scanned.torn:
                    layer.truncate(self._file, self._end.size)
                # What the last process wrote may be readable and yet not on disk.
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
        """Write a record; when it is on disk, return it as a reader would see it."""
        now, _ = self._clock.read()
        return self._append(kind, entries, max(records.time_text(now), self._end.time))

    def note_clock(self) -> Record | None:
        """Note in a record that the wall clock was set back, if it was, and count on from where it is now."""
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
            self._broken = "it was changed from outside, or a call was interrupted; open the study again"
        if self._broken:
            raise UnwritableFile("the journal is not written any more", where=str(self.path), got=self._broken)
        return self._file

    def _write(self, file: int, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._layer.append(file, rest) :]
        except BaseException as error:
            self._cut_back(file, f"a record could not be written ({error!r}), nor cut off again")
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
            self._cut_back(file, f"a record was interrupted ({error!r}) and could not be cut off again")
            raise

    def _cut_back(self, file: int, otherwise: str) -> None:
        """Restore the file from before the failed record; if even that fails, nothing more is written."""
        try:
            self._layer.truncate(file, self._end.size)
        except OSError:
            self._broken = otherwise

    def close(self) -> None:
        if self._file is not None:
            self._layer.close(self._file)
            self._file = None
