"""Snapshots: the state after some records, from which a replay can start. They save time and never decide anything.

A snapshot is an archive of plain arrays, ``snapshots/<n>.npz``, written between two episodes and then named in record n
of the journal with the sha256 of its bytes. On opening, the newest one whose bytes match is used; one that is damaged,
missing or of another version is passed over, with a remark. A replay from a snapshot gives the same state as one from
the first record, to the bit.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from pathlib import Path

from surefoot.errors import SurefootError, UnreadableFile
from surefoot.model import checked
from surefoot.storage import archive as npz
from surefoot.storage.disk import FileLayer
from surefoot.study.alarms import Raised
from surefoot.study.journal import Journal
from surefoot.study.records import Record, compact
from surefoot.study.standing import Standing

FOLDER = "snapshots"
KEPT = 3  #: older files are removed
VERSION = 8

_LEAST_ROWS = 1_000  # between two
_BYTES_PER_ROW = 4_096  # of snapshots, at most

_FORMAT = "surefoot-snapshot"
_NAME = re.compile(r"(\d{12,18})\.npz\Z")
_VALUES = (  # of a standing
    *("epoch", "monitor_number", "episodes", "tells", "rows", "made_after", "vouched", "last_terminal", "declared"),
    *("despite", "kept", "restored", "outside", "discarded_at", "grown", "drifted"),
)


def name(n: int) -> str:
    return f"{n:012d}.npz"


def pack(standing: Standing, digest: str) -> bytes:
    """The state between two episodes, as the bytes of an archive; the same state gives the same bytes."""
    groups = {"agent": standing.agent.checkpoint(), "monitor": standing.monitor.arrays()}
    header = {
        "format": _FORMAT,
        "version": VERSION,
        "problem": digest,
        **{key: getattr(standing, key) for key in _VALUES},
        "alarms": [[n, raised.entries()] for n, raised in standing.alarms.items()],
        "shapes": npz.shapes_of(groups),
    }
    stream = io.BytesIO()
    npz.write_archive(stream, compact(header).encode("ascii"), npz.flattened(groups))
    return stream.getvalue()


def resume_from(path: Path, digest: str, standing: Standing) -> None:
    """Put a fresh standing where a snapshot says. The file's bytes were verified before."""
    try:
        with npz.opened(path) as (header, open_members):
            checked.of_format(header, "a snapshot", _FORMAT, VERSION, "It is not needed.")
            if header["problem"] != digest:
                raise UnreadableFile("a snapshot of another problem", where=path.name)
            groups = open_members().groups(header["shapes"], ("agent", "monitor"))
        values = {key: header[key] for key in _VALUES}
        values["alarms"] = {n: Raised.of(entries) for n, entries in header["alarms"]}
        standing.resume(values, **groups)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableFile("the snapshot cannot be read", where=path.name, got=repr(error)[:200]) from error


def matches(folder: Path, record: Record, layer: FileLayer) -> str:
    """'' if the file of a snapshot's record is there, byte for byte; otherwise what is wrong."""
    match = _NAME.match(record["file"]) if type(record["file"]) is str else None
    if match is None or int(match[1]) != record["n"]:
        return "its name is not that of its record"
    try:
        with layer.read(folder / record["file"]) as stream:
            found = hashlib.sha256(stream.read()).hexdigest()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return "" if found == record["sha256"] else "it is not what was written"


def numbers(folder: Path) -> list[int]:
    """The records that have a snapshot file, in order."""
    try:
        return sorted(int(match[1]) for path in folder.iterdir() if (match := _NAME.match(path.name)))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:  # a path that the system does not take is a ValueError
        raise UnreadableFile("the snapshots cannot be listed", where=str(folder), got=str(error)) from error


class Keeper:
    """Writes a snapshot between episodes now and then, so that its cost per row, told or imported, stays small."""

    def __init__(self, folder: Path, layer: FileLayer) -> None:
        self.every: int | None = None  #: rows between two; None: by the size of a snapshot
        self._folder, self._layer = folder, layer
        self._size = 0  # bytes of the last one

    def consider(self, standing: Standing, journal: Journal) -> None:
        """Write one if it is due. A full disk is no error: without a snapshot, replay only takes longer."""
        since = standing.rows - standing.rows_at_snapshot
        if standing.unwritten or since < self._between():
            return
        data = pack(standing, standing.opened_with)
        self._size = len(data)
        if since < self._between():
            return
        standing.rows_at_snapshot = standing.rows  # also when it fails: the next one is as far away
        with contextlib.suppress(OSError, SurefootError):
            file, digest = name(journal.records), hashlib.sha256(data).hexdigest()
            self._layer.mkdir(self._folder)
            self._layer.replace(self._folder / file, data)
            standing.apply(journal.append("snapshot", {"file": file, "sha256": digest}))
            for n in numbers(self._folder)[:-KEPT]:
                self._layer.remove(self._folder / name(n))

    def _between(self) -> int:
        return self.every or max(_LEAST_ROWS, self._size // _BYTES_PER_ROW)
