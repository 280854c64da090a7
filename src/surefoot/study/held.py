"""A study that this process holds: its journal and lock, and how a record is written and then applied."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import Self

from surefoot.errors import OutOfOrder, UnwritableFile
from surefoot.storage.disk import FileLayer
from surefoot.storage.lock import Lock
from surefoot.study import snapshots
from surefoot.study.changing import grow_entries
from surefoot.study.exact import Exact
from surefoot.study.journal import Journal
from surefoot.study.records import Record
from surefoot.study.standing import Standing


class Held:
    """What :class:`surefoot.study.study.Study` is made of; ``journal`` is None where it is open for reading only."""

    def __init__(self, path: Path, layer: FileLayer, standing: Standing, journal: Journal | None, lock: Lock) -> None:
        """Use :meth:`surefoot.study.study.Study.open`."""
        self.path = path
        self.exact = Exact(None)  #: exact states, in a study of a plant
        self.recovered: tuple[str, ...] = ()  #: what was found and repaired on opening
        self.growth_fault = ""  #: why a graph that could grow does not, since the study was opened
        self._layer, self._standing, self._journal, self._lock = layer, standing, journal, lock
        self._calls, self._process = threading.RLock(), os.getpid()
        self._snapshots = snapshots.Keeper(path / snapshots.FOLDER, layer)

    def close(self) -> None:
        """Close the study. An episode under way continues after the next :meth:`open`."""
        with self._calls:
            if self._journal is not None and os.getpid() == self._process:
                self._journal.close()
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- writing ----------------------------------------------------------------------------------------

    def _ready(self) -> Standing:
        """The standing, if something may be written."""
        if self._journal is None:
            raise OutOfOrder("the study is open for reading only", where=str(self.path))
        if os.getpid() != self._process:
            raise OutOfOrder("the study was opened by another process", got=f"{self._process}, this is {os.getpid()}")
        if self._journal.closed:
            raise OutOfOrder("the study is closed", where=str(self.path), fix="Open it again.")
        if self._standing.applied != self._journal.records:
            raise OutOfOrder("an earlier call was interrupted half-way", fix="Close the study and open it again.")
        with contextlib.suppress(UnwritableFile):  # a full disk: it is noted when there is room
            if (record := self._journal.note_clock()) is not None:
                self._standing.apply(record)
        self._write_alarms()
        return self._standing

    def _do(self, kind: str, entries: Record) -> Record:
        """Write a record, then apply it."""
        assert self._journal is not None
        before = self._standing.place
        record = self._journal.append(kind, entries)
        self._standing.apply(record)
        with contextlib.suppress(UnwritableFile):  # an alarm follows from the record; it is written when there is room
            self._write_alarms()
        if self._standing.place is None and (before is not None or kind == "import"):
            self._snapshots.consider(self._standing, self._journal)
        return record

    def _grow(self) -> None:
        """Let the graph grow before an episode, if it can. If a user's function raises, the study continues with the
        graph as it is."""
        if self.growth_fault:
            return
        try:
            entries = grow_entries(self._standing, self.path, self._layer)
        except UnwritableFile:
            raise
        except Exception as error:
            self.growth_fault = f"the graph does not grow any more: {error}"
            warnings.warn(self.growth_fault, stacklevel=4)
        else:
            if entries is not None:
                self._do("grow", entries)

    def _write_alarms(self) -> None:
        assert self._journal is not None
        while self._standing.unwritten:
            self._standing.apply(self._journal.append("alarm", self._standing.unwritten[0].entries()))
