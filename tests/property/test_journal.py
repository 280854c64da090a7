"""Any journal that a crash, a disk or a hand can leave: it is a prefix, or it is refused; nothing else happens."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot as sf
from surefoot.errors import SurefootError, UnreadableFile
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study import protocol, records
from surefoot.study.journal import Journal
from tests.studies import Calm, Plant, Quick, fingerprint, go_on, kettle, lines_of, records_of, rewritten

ABORT = {"episode": 1, "step": 0, "state": "s", "ask": None, "reason": ""}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with every kind of record but snapshots and those of plants and growth, in the middle of an episode."""
    path = tmp_path_factory.mktemp("told") / "study"
    now = 2_400_000_000.0
    study = sf.Study.open(path, kettle().problem, files=Quick(), monitor_factory=Calm, clock=lambda: now)
    study.begin("cold")
    study.tell(study.ask().ask_id, ("warm", 1), 0.2, action_applied="heat")
    study.tell(study.ask().ask_id, ("warm", 1), 0.3, action_applied="heat")
    study.tell_terminal(0.125)
    study.import_log([{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.125}])
    study.begin("s")
    study.tell(study.ask().ask_id, "cold", None)
    study.acknowledge("a slip of the pen", discard_data=True)
    study.begin("s")
    study.ask()
    now = 1_700_000_000.0
    study.abort("enough")
    study.begin("cold")
    study.ask()
    study.close()
    assert {record["kind"] for record in records_of(path)} == set(records.FIELDS) - {"snapshot", "grow", "doubt"}
    return path


def opened(path: Path, **options: Any) -> sf.Study:
    return sf.Study.open(path, files=Quick(), monitor_factory=Calm, **options)


def prefix_of(whole: list[bytes], size: int) -> int:
    """How many complete lines lie within the first bytes."""
    ends = np.cumsum([len(line) for line in whole])
    return int(np.searchsorted(ends, size, side="right"))


class Memory(FileLayer):
    """One file, in memory: fast enough to be cut at every byte."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def open(self, path: Path) -> int:
        return 0

    def append(self, file: int, data: bytes | memoryview) -> int:
        self.data += data
        return len(data)

    def size(self, file: int) -> int:
        return len(self.data)

    def truncate(self, file: int, size: int) -> None:
        del self.data[size:]

    def read(self, path: Path) -> Any:
        return io.BytesIO(bytes(self.data))

    def fsync(self, file: int) -> None: ...
    def fsync_dir(self, path: Path) -> None: ...
    def close(self, file: int) -> None: ...


def test_a_journal_cut_at_every_byte_is_a_prefix_and_goes_on(told: Path) -> None:
    whole, path = lines_of(told), Path(journals.NAME)
    data = b"".join(whole)
    for size in range(len(data) + 1):
        disk = Memory(data[:size])
        book = Journal(path, disk, lambda: 4e9)
        kept = prefix_of(whole, size)
        assert book.records == kept
        assert bool(book.recovered) == (size != sum(map(len, whole[:kept])))
        assert disk.data == b"".join(whole[:kept])
        book.append("abort", ABORT)
        assert disk.data.startswith(b"".join(whole[:kept]))
        assert journals.scan(path, disk).end.records == kept + 1


def test_a_study_cut_anywhere_is_as_it_was_then_and_goes_on(told: Path, tmp_path: Path, seed: int) -> None:
    whole = lines_of(told)
    sizes = np.cumsum([len(line) for line in whole])
    rng = random.Random(seed)
    cuts = [int(size) + by for size in sizes for by in (-1, 0, 1)] + rng.sample(range(int(sizes[-1])), 30)
    states = {}
    for n in range(1, len(whole) + 1):  # what each prefix means, by an undamaged journal of that length
        states[n] = fingerprint(opened(_copy(told, tmp_path / f"prefix{n}", b"".join(whole[:n]))))
    for i, size in enumerate(cuts):
        path = _copy(told, tmp_path / f"cut{i}", b"".join(whole)[:size])
        kept = prefix_of(whole, size)
        study = opened(path, problem=kettle().problem)
        if kept:
            assert fingerprint(study) == states[kept], size
        go_on(study, Plant(kettle(), 2), study.standing.episodes + 1)
        study.close()
        shutil.rmtree(path)


def _copy(study: Path, to: Path, journal: bytes) -> Path:
    to.mkdir()
    shutil.copy(study / "problem.json", to / "problem.json")
    (to / journals.NAME).write_bytes(journal)
    return to


def test_a_flipped_bit_at_every_byte_is_seen(told: Path, seed: int) -> None:
    """It is refused, or it is in the last line and makes it look torn."""
    whole = lines_of(told)
    data, rng = b"".join(whole), random.Random(seed)
    last = len(data) - len(whole[-1])
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= rng.randrange(1, 256)
        try:
            scan = journals.scan(Path(journals.NAME), Memory(bytes(flipped)))
        except UnreadableFile:
            continue
        assert scan.torn
        assert at >= last
        assert scan.end.records == len(whole) - 1


@given(st.binary(max_size=300), st.integers(0, 4))
def test_any_bytes_are_read_or_refused(data: bytes, n: int) -> None:
    """The reader on arbitrary bytes, and behind the beginning of a true journal."""

    head, previous = b"", records.FIRST
    for i in range(n):
        line = records.encode(i, "2027-01-15T08:00:00.500000Z", "abort", ABORT, previous)
        head, previous = head + line, records.hash_in(line)
    try:
        scan = journals.scan(Path("nowhere"), Memory(head + data))
    except UnreadableFile:
        return
    assert scan.end.records >= n
    assert bool(scan.torn) == (len(head + data) > scan.end.size)


def mutations(record: records.Record, data: st.DataObject) -> records.Record:
    """A record with something else in one of its entries, at any depth."""
    changed: Any = copy.deepcopy(record)
    keys = [key for key in changed if key not in ("n", "kind", "previous", "hash", "time")]
    if not keys:
        return changed
    node, key = changed, data.draw(st.sampled_from(keys))
    while isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    node[key] = data.draw(JSON.filter(_plain))
    return changed


def _plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@given(st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_forged_records_are_taken_or_refused(told: Path, tmp_path_factory: Any, data: st.DataObject) -> None:
    """Hashes all right, content arbitrary: an error of ours, or a study; no other exception, nothing run."""
    path = tmp_path_factory.mktemp("forged") / "study"
    true = records_of(told)
    n = data.draw(st.integers(0, len(true) - 1))
    what = data.draw(st.sampled_from(["change", "drop", "double", "swap"]))
    forged = list(true)
    if what == "change":
        forged[n] = mutations(true[n], data)
    elif what == "drop":
        del forged[n]
    elif what == "double":
        forged.insert(n, true[n])
    elif n:
        forged[n - 1 : n + 1] = [{**true[n], "time": true[n - 1]["time"]}, {**true[n - 1], "time": true[n]["time"]}]
    _copy(told, path, b"")
    rewritten(path, forged)
    try:
        study = opened(path, read_only=True)
        json.dumps(study.status())
    except SurefootError:
        pass
    finally:
        shutil.rmtree(path)


CALLS = ["begin", "ask", "tell", "tell_terminal", "abort", "acknowledge", "status", "export_policy", "import_log", "x"]
KEYS = ["start", "ask_id", "next_state", "cost", "action_applied", "episode", "reason", "discard_data", "id", "y"]
PLAUSIBLE = st.sampled_from(["s", "cold", "wait", "heat", 0.1, None, [0.1], ["warm", 1], float("nan"), True, 1])


@given(
    st.lists(st.tuples(st.sampled_from(CALLS), st.dictionaries(st.sampled_from(KEYS), PLAUSIBLE | JSON)), max_size=12)
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_requests_are_answered(tmp_path_factory: Any, calls: list[tuple[str, dict[str, Any]]]) -> None:
    """The JSON interface: every line gets one line; whatever was acknowledged is there after reopening."""
    path = tmp_path_factory.mktemp("served") / "study"
    study = sf.Study.open(path, kettle().problem, files=Quick(), monitor_factory=Calm)
    answers: list[dict[str, Any]] = []
    for call, arguments in calls:
        if call in ("export_policy", "import_log"):
            arguments = {**arguments, "path": str(path.parent / "nothing.txt")}
        if call == "tell" and study.standing.pending is not None:
            arguments = {**arguments, "ask_id": study.standing.pending["ask"]}
        out = io.StringIO()
        protocol.answer_all(study, io.BytesIO(json.dumps({"call": call, **arguments}).encode() + b"\n"), out)
        (line,) = out.getvalue().splitlines()
        answers.append(json.loads(line))
        assert "error" in answers[-1] or "next" in answers[-1]
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened(path)) == before
    shutil.rmtree(path)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    try:
        found = protocol.parse_request(data)
    except SurefootError:
        return
    assert isinstance(found, dict)


def test_deep_and_long_requests_are_refused(told: Path) -> None:
    study = opened(told, read_only=True)
    out = io.StringIO()
    deep = b"[" * 200_000 + b"\n"
    long = b'{"call": "' + b"x" * (protocol.LONGEST_REQUEST * 2) + b'"}\n'
    label = b'{"call": "begin", "start": ' + b"[" * 100 + b"]" * 100 + b"}\n"
    number = b'{"call": "begin", "start": ' + b"9" * 10_000 + b"}\n"
    protocol.answer_all(study, io.BytesIO(deep + long + label + number + b'\n{"call": "status"}\n'), out)
    *errors, status = map(json.loads, out.getvalue().splitlines())
    assert [("error" in reply) for reply in errors] == [True] * 4
    assert status["next"] == "tell"
    assert os.path.getsize(told / journals.NAME) == sum(map(len, lines_of(told)))
