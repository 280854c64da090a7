"""The journal: what is written, what is refused, and what a failing disk leaves behind."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import InvalidInput, OutOfOrder, UnreadableFile, UnwritableFile
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study import records
from surefoot.study.journal import Journal
from tests.studies import FullDisk, Quick

ABORT = {"episode": 1, "step": 0, "state": "s", "ask": None, "reason": ""}


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def journal(path: Path, layer: FileLayer | None = None, clock: Clock | None = None) -> Journal:
    return Journal(path / journals.NAME, layer or Quick(), clock or Clock())


def filled(path: Path, n: int = 3) -> Journal:
    book = journal(path)
    for i in range(n):
        book.append("abort", {**ABORT, "reason": f"number {i}, é😀\x00"})
    book.close()
    return book


def texts(path: Path) -> list[bytes]:
    return (path / journals.NAME).read_bytes().splitlines(keepends=True)


def put(path: Path, *parts: bytes) -> None:
    (path / journals.NAME).write_bytes(b"".join(parts))


# --- the format -----------------------------------------------------------------------------------------


def test_a_line_is_what_the_format_says(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    first, second = texts(tmp_path)
    body, seal = first.split(b',"hash":"')
    assert hashlib.sha256(body + b"}").hexdigest().encode() == seal[:64]
    assert seal[64:] == b'"}\n'
    record = json.loads(first)
    assert list(record) == ["n", "time", "kind", *ABORT, "previous", "hash"]
    assert record["previous"] == "0" * 64
    assert json.loads(second)["previous"] == record["hash"]
    assert record["time"] == "2027-01-15T08:00:00.500000Z"
    assert first.isascii()
    assert record["reason"] == "number 0, é😀\x00"


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    book = journal(tmp_path)
    number = 0.1 + 0.2
    details = {"x": [number, 5e-324, -0.0, 1e300], "n": 2**62}
    written = book.append("alarm", {"alarm": "cost", "record": 0, "message": "é", "details": details})
    read = next(journals.read_lines(tmp_path / journals.NAME, Quick())).record(tmp_path)
    assert written == read
    assert read["details"] == details
    assert str(read["details"]["x"][2]) == "-0.0"


def test_a_record_with_other_entries_is_a_mistake_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="abort takes"):
        journal(tmp_path).append("abort", {"reason": ""})


def test_numbers_that_json_does_not_know_are_never_written(tmp_path: Path) -> None:
    book = journal(tmp_path)
    with pytest.raises(ValueError, match="Out of range float"):
        book.append("abort", {**ABORT, "step": float("nan")})
    assert book.append("abort", ABORT)["n"] == 0


def test_a_line_of_the_greatest_length_is_written_and_read_and_no_longer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 1)
    (line,) = texts(tmp_path)
    book, entries = journal(tmp_path), {**ABORT, "reason": json.loads(line)["reason"]}
    monkeypatch.setattr(journals, "LONGEST_LINE", len(line))
    assert book.append("abort", entries)["n"] == 1
    with pytest.raises(UnwritableFile, match=rf"too long: {len(line) + 1} bytes, {len(line)} at most"):
        book.append("abort", {**entries, "reason": entries["reason"] + "!"})
    assert book.append("abort", entries)["n"] == 2
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 3


def test_what_a_scan_tells(tmp_path: Path) -> None:
    filled(tmp_path)
    path, lines = tmp_path / journals.NAME, texts(tmp_path)
    with journal_closed(tmp_path) as book:
        assert (book.records, book.hash) == (3, json.loads(lines[-1])["hash"])
        snapshot = book.append("snapshot", {"file": "000000000003.npz", "sha256": "0" * 64})
    found = journals.scan(path, Quick())
    assert found.end == (4, path.stat().st_size, snapshot["hash"], snapshot["time"])
    assert found.torn == ""
    assert found.first is not None
    assert (found.first.n, found.first.offset, found.first.end) == (0, 0, len(lines[0]))
    (line,) = found.snapshots
    assert (line.n, line.offset, line.end) == (3, sum(map(len, lines)), found.end.size)
    assert line.record(path) == snapshot
    rest = list(journals.read_lines(path, Quick(), offset=len(lines[0]), end=line.offset, n=1))
    assert [(part.n, part.text) for part in rest] == [(1, lines[1]), (2, lines[2])]
    assert (rest[0].offset, rest[1].end) == (len(lines[0]), line.offset)


@contextlib.contextmanager
def journal_closed(path: Path) -> Iterator[Journal]:
    book = journal(path)
    yield book
    assert not book.closed
    book.close()
    book.close()
    assert book.closed
    with pytest.raises(OutOfOrder, match="the study is closed"):
        book.append("abort", ABORT)


@pytest.mark.parametrize("text", ["2027-01-15T08:00:00Z", "2027-01-15T08:00:00.500000Z ", 5, None])
def test_a_time_is_written_in_one_way(tmp_path: Path, text: object) -> None:
    filled(tmp_path, 1)
    record = {**json.loads(texts(tmp_path)[0]), "time": text}
    with pytest.raises(UnreadableFile, match="not a time"):
        records.decode(json.dumps(record).encode())


# --- reading --------------------------------------------------------------------------------------------


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 0


def test_a_torn_tail_is_cut_and_reported(tmp_path: Path) -> None:
    filled(tmp_path)
    whole = texts(tmp_path)
    put(tmp_path, *whole[:2], whole[2][:-30])
    book = journal(tmp_path)
    assert "torn tail was cut: record 2" in book.recovered
    assert f"{len(whole[2]) - 30} bytes" in book.recovered
    assert book.records == 2
    assert texts(tmp_path) == whole[:2]
    book.append("abort", ABORT)
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 3


def test_a_complete_line_without_its_end_of_line_was_never_acknowledged(tmp_path: Path) -> None:
    filled(tmp_path)
    put(tmp_path, b"".join(texts(tmp_path))[:-1])
    assert journal(tmp_path).records == 2


@pytest.mark.parametrize("hole", [slice(0, 40), slice(3, 40), slice(30, 200), slice(100, -1), slice(0, -1)])
def test_blocks_that_never_reached_the_disk_are_a_torn_tail(tmp_path: Path, hole: slice) -> None:
    filled(tmp_path)
    *whole, last = texts(tmp_path)
    holed = bytearray(last)
    holed[hole] = bytes(len(last[hole]))
    put(tmp_path, *whole, bytes(holed))
    assert journal(tmp_path).records == 2


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda a, b, c: [a, b.replace(b"number 1", b"number 9"), c], "line 2, byte .*does not match its hash"),
        (lambda a, b, c: [a, b, c.replace(b"number 2", b"number 9")], "line 3, byte .*does not match its hash"),
        (lambda a, b, c: [a, c], "line 2, byte .*record 1 is expected"),
        (lambda a, b, c: [a, c, b], "line 2, byte .*record 1 is expected"),
        (lambda a, b, c: [b, c], "line 1, byte 0.*record 0 is expected"),
        (lambda a, b, c: [a, b, b], "line 3, byte .*record 2 is expected"),
        (lambda a, b, c: [a, b[:-30], c], "line 2, byte .*does not follow"),
        (lambda a, b, c: [a, b"\n", b, c], "line 2, byte .*not the line of a record"),
        (lambda a, b, c: [a, b, c, b"\n"], "line 4, byte .*not the line of a record"),
        (lambda a, b, c: [a, b, c, b"hello"], "line 4, byte .*not the line of a record"),
        (lambda a, b, c: [b"hello"], "line 1, byte 0.*not the line of a record"),
    ],
)
def test_anything_else_that_does_not_verify_stops_with_its_place(tmp_path: Path, change: Any, fault: str) -> None:
    filled(tmp_path)
    put(tmp_path, *change(*texts(tmp_path)))
    before = texts(tmp_path)
    with pytest.raises(UnreadableFile, match=fault):
        journal(tmp_path)
    assert texts(tmp_path) == before


def test_a_line_that_was_dropped_and_the_rest_renumbered_does_not_follow(tmp_path: Path) -> None:
    filled(tmp_path)
    first, _, third = texts(tmp_path)
    body = third.split(b',"hash"')[0].replace(b'{"n":2,', b'{"n":1,') + b"}"
    forged = body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    put(tmp_path, first, forged)
    with pytest.raises(UnreadableFile, match="changed, dropped or swapped"):
        journal(tmp_path)


def test_a_record_of_the_future_is_refused_where_it_is_read(tmp_path: Path) -> None:
    body = b'{"n":0,"time":"2027-01-15T08:00:00.500000Z","kind":"dance","previous":"' + b"0" * 64 + b'"}'
    put(tmp_path, body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n')
    line = next(journals.read_lines(tmp_path / journals.NAME, Quick()))
    with pytest.raises(UnreadableFile, match=r"line 1.*no such kind of record"):
        line.record(tmp_path / journals.NAME)


# --- the clock ------------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back_is_noted_and_times_count_from_there(tmp_path: Path) -> None:
    clock = Clock()
    book = journal(tmp_path, clock=clock)
    book.append("abort", ABORT)
    clock.now -= 60
    assert book.append("abort", ABORT)["time"] == "2027-01-15T08:00:00.500000Z"  # in order, until it is noted
    noted = book.note_clock()
    assert noted is not None
    assert (noted["kind"], noted["n"]) == ("clock", 2)
    assert (noted["time"], noted["expected"]) == ("2027-01-15T07:59:01.500000Z", "2027-01-15T08:00:00.500000Z")
    assert book.note_clock() is None
    assert book.append("abort", ABORT)["time"] == "2027-01-15T07:59:02.500000Z"
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 4


def test_the_clock_of_the_process_sees_steps_back_that_the_records_do_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"wall": 1_800_000_000.0, "ticks": 50.0}
    monkeypatch.setattr(time, "time", lambda: now["wall"])
    monkeypatch.setattr(time, "monotonic", lambda: now["ticks"])
    book = Journal(tmp_path / journals.NAME, Quick(), time.time)
    book.append("abort", ABORT)
    now["wall"], now["ticks"] = now["wall"] + 600, now["ticks"] + 1800  # half an hour, ten minutes by the wall clock
    noted = book.note_clock()
    assert noted is not None
    assert (noted["time"], noted["expected"]) == ("2027-01-15T08:10:00.000000Z", "2027-01-15T08:30:00.000000Z")
    now["wall"], now["ticks"] = now["wall"] + 7200, now["ticks"] + 1  # the machine slept
    assert book.note_clock() is None
    assert book.append("abort", ABORT)["time"] == "2027-01-15T10:10:00.000000Z"


def test_a_small_correction_of_the_clock_keeps_the_records_in_order(tmp_path: Path) -> None:
    clock = Clock()
    book = journal(tmp_path, clock=clock)
    first = book.append("abort", ABORT)
    clock.now -= 1.2
    assert book.note_clock() is None
    clock.now -= 0.5
    assert book.append("abort", ABORT)["time"] == first["time"]


def test_a_step_back_of_more_than_a_second_is_noted(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    book = Journal(tmp_path / journals.NAME, Quick(), lambda: now[0])
    book.append("abort", ABORT)
    now[0] -= 1.0
    assert book.note_clock() is None
    now[0] -= 0.25
    assert book.note_clock() is not None


def test_times_that_go_back_without_a_word_are_the_work_of_a_hand(tmp_path: Path) -> None:
    """Every hash is right: only the clock's own record may be earlier than the one before."""
    times = ["2027-01-15T08:00:02.000000Z", "2027-01-15T08:00:01.999999Z"]
    first = records.encode(0, times[0], "abort", ABORT, records.FIRST)
    put(tmp_path, first, records.encode(1, times[1], "abort", ABORT, records.hash_in(first)))
    with pytest.raises(UnreadableFile, match=r"line 2, byte .*earlier than that of the record before"):
        journal(tmp_path)
    put(tmp_path, first, records.encode(1, times[1], "clock", {"expected": times[0]}, records.hash_in(first)))
    assert journal(tmp_path).records == 2


@pytest.mark.parametrize("seconds", [-6e10, 0.0, 2.5e11])
def test_every_time_that_a_clock_can_give_is_read_again(tmp_path: Path, seconds: float) -> None:
    Journal(tmp_path / journals.NAME, Quick(), lambda: seconds).append("abort", ABORT)
    (line,) = journals.read_lines(tmp_path / journals.NAME, Quick())
    assert records.time_seconds(line.record(tmp_path)["time"]) == seconds


def test_a_clock_without_a_time_is_refused(tmp_path: Path) -> None:
    book = Journal(tmp_path / journals.NAME, Quick(), lambda: float("nan"))
    with pytest.raises(InvalidInput, match="the clock gives no time"):
        book.append("abort", ABORT)


# --- disks that fail ------------------------------------------------------------------------------------


def test_a_full_disk_at_every_byte_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    before = (tmp_path / journals.NAME).read_bytes()
    length = len(records.encode(1, "2027-01-15T08:00:00.500000Z", "abort", ABORT, "0" * 64))
    clock = Clock()
    clock.now += 1000
    for room in range(length):
        disk = FullDisk(room)
        book = journal(tmp_path, disk, clock)
        with pytest.raises(UnwritableFile, match="No space left"):
            book.append("abort", ABORT)
        assert (tmp_path / journals.NAME).read_bytes() == before
        if room % 20 == 0:  # and when there is room again it goes on
            disk.room = 10_000
            assert book.append("abort", ABORT)["n"] == 1
            os.truncate(tmp_path / journals.NAME, len(before))
        book.close()


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Slow(Quick):
        def append(self, file: int, data: bytes | memoryview) -> int:
            return os.write(file, data[:7])

    book = journal(tmp_path, Slow())
    book.append("abort", ABORT)
    book.append("abort", ABORT)
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 2


def test_after_a_failed_sync_nothing_is_written_until_it_is_opened_anew(tmp_path: Path) -> None:
    class Dying(FileLayer):
        well = True

        def fsync(self, file: int) -> None:
            if not self.well:
                raise OSError(5, "Input/output error")

    disk = Dying()
    book = journal(tmp_path, disk)
    book.append("abort", ABORT)
    disk.well = False
    with pytest.raises(UnwritableFile, match="could not be synced"):
        book.append("abort", ABORT)
    disk.well = True
    with pytest.raises(UnwritableFile, match="open the study again"):
        book.append("abort", ABORT)
    book.close()
    again = journal(tmp_path, disk)
    assert again.records == 1
    assert again.append("abort", ABORT)["n"] == 1


def test_an_interrupted_call_leaves_nothing_behind(tmp_path: Path) -> None:
    class Interrupted(Quick):
        armed = False

        def fsync(self, file: int) -> None:
            if self.armed:
                self.armed = False
                raise KeyboardInterrupt

    disk = Interrupted()
    book = journal(tmp_path, disk)
    book.append("abort", ABORT)
    disk.armed = True
    with pytest.raises(KeyboardInterrupt):
        book.append("abort", ABORT)
    assert book.append("abort", ABORT)["n"] == 1
    assert journals.scan(tmp_path / journals.NAME, Quick()).end.records == 2


def test_a_journal_that_other_hands_have_changed_is_not_written(tmp_path: Path) -> None:
    book = journal(tmp_path)
    book.append("abort", ABORT)
    with (tmp_path / journals.NAME).open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(UnwritableFile, match="from outside"):
        book.append("abort", ABORT)
    assert (tmp_path / journals.NAME).read_bytes().endswith(b"}\nx")


def test_every_line_is_synced_before_append_returns(tmp_path: Path) -> None:
    class Recording(FileLayer):
        def __init__(self) -> None:
            self.log: list[str] = []

        def append(self, file: int, data: bytes | memoryview) -> int:
            self.log.append("write")
            return super().append(file, data)

        def fsync(self, file: int) -> None:
            self.log.append("sync")
            super().fsync(file)

        def fsync_dir(self, path: Path) -> None:
            self.log.append("folder")
            super().fsync_dir(path)

    disk = Recording()
    book = journal(tmp_path, disk)
    book.append("abort", ABORT)
    book.append("abort", ABORT)
    assert disk.log == ["sync", "folder", "write", "sync", "write", "sync"]
