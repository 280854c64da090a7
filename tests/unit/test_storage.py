"""The storage room on its own: what is synced and in which order, who holds a lock, what a container may hold."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from surefoot.errors import OutOfOrder, UnreadableFile, UnwritableFile
from surefoot.storage import archive, disk, documents, lock, raw_arrays
from surefoot.storage.disk import BESIDE, DISK, FileLayer, write_text, writing
from surefoot.storage.lock import Lock

# --- the disk -------------------------------------------------------------------------------------------


class Noted(FileLayer):
    """Notes what is synced: folders by name, files by their content at that moment."""

    def __init__(self) -> None:
        self.synced: list[Any] = []

    def fsync(self, file: int) -> None:
        self.synced.append(os.pread(file, 99, 0))
        super().fsync(file)

    def fsync_dir(self, path: Path) -> None:
        self.synced.append((path, sorted(item.name for item in path.iterdir() if not item.name.startswith("."))))
        super().fsync_dir(path)


def test_a_folder_is_synced_level_by_level(tmp_path: Path) -> None:
    files, path = Noted(), tmp_path / "a" / "b" / "c"
    (tmp_path / "a").mkdir()
    files.mkdir(path)
    assert files.synced == [(tmp_path, ["a"]), (tmp_path / "a", ["b"]), (tmp_path / "a" / "b", ["c"])]
    files.synced.clear()
    files.mkdir(path)  # made before, but maybe not synced
    assert files.synced == [(tmp_path / "a" / "b", ["c"])]


def test_a_new_folder_must_be_new(tmp_path: Path) -> None:
    DISK.mkdir(tmp_path / "a" / "b", new=True)
    with pytest.raises(FileExistsError):
        DISK.mkdir(tmp_path / "a" / "b", new=True)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        DISK.mkdir(tmp_path / "file")
    DISK.mkdir(tmp_path / "a" / "b")


def test_a_file_is_synced_before_it_takes_the_place_of_another_and_its_folder_after(tmp_path: Path) -> None:
    files, path = Noted(), tmp_path / "x"
    path.write_bytes(b"old")
    for content in (b"new", lambda stream: stream.write(b"new")):
        files.replace(path, content)
        assert files.synced == [b"new", (tmp_path, ["x"])]
        assert path.read_bytes() == b"new"
        files.synced.clear()
    files.move(path, tmp_path / "y")
    assert files.synced == [(tmp_path, ["y"])]
    files.remove(tmp_path / "y")
    files.remove(tmp_path / "y")
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_written_to_its_end_leaves_the_old_one_and_nothing_beside(tmp_path: Path) -> None:
    def half(stream: BinaryIO) -> None:
        stream.write(b"ha")
        assert [name[: len(BESIDE)] for name in os.listdir(tmp_path) if name != "x"] == [BESIDE]
        raise KeyboardInterrupt

    write_text(tmp_path / "x", "old")
    with pytest.raises(KeyboardInterrupt):
        DISK.replace(tmp_path / "x", half)
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def test_a_link_stays_and_a_loop_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x")
    DISK.replace(tmp_path / "link", b"1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"1"
    for one, other in ("ab", "ba"):
        (tmp_path / one).symlink_to(tmp_path / other)
    with pytest.raises(OSError, match="symbolic links") as found:
        DISK.replace(tmp_path / "a", b"1")
    assert found.value.errno == errno.ELOOP


def test_a_folder_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passed over where the system has no such thing; an error where the disk fails."""

    def failing(number: int) -> Any:
        def fail(file: int) -> None:
            raise OSError(number, os.strerror(number))

        return fail

    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    DISK.fsync_dir(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        DISK.fsync_dir(tmp_path)
    assert not before or len(os.listdir("/proc/self/fd")) == before
    monkeypatch.setattr(os, "open", lambda *_: failing(errno.EACCES)(0))
    DISK.fsync_dir(tmp_path)
    monkeypatch.setattr(os, "open", lambda *_: failing(errno.ENOENT)(0))
    with pytest.raises(FileNotFoundError):
        DISK.fsync_dir(tmp_path)


def test_a_journal_is_opened_for_appending(tmp_path: Path) -> None:
    for part in (b"one", b"two"):
        file = DISK.open(tmp_path / "j")
        assert DISK.append(file, part) == 3
        assert not os.get_inheritable(file)
        DISK.close(file)
    assert (tmp_path / "j").read_bytes() == b"onetwo"
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EACCES, "no permission to write here"),
        (errno.EIO, "the disk cannot be written"),
    ],
)
def test_what_a_failing_disk_is_called(tmp_path: Path, number: int, words: str) -> None:
    with pytest.raises(UnwritableFile) as found, writing(tmp_path, fix="Try again."):
        raise OSError(number, os.strerror(number), "/elsewhere")
    assert (found.value.rule, found.value.where, found.value.got) == (words, "/elsewhere", os.strerror(number))
    assert found.value.fix == "Try again."
    with pytest.raises(UnwritableFile) as found, writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert found.value.where == str(tmp_path)
    with pytest.raises(UnwritableFile) as found, writing(tmp_path / "p.py"):  # of a file that nobody has named
        raise OSError(number, os.strerror(number), str(tmp_path / ".surefoot-6036d7abda.tmp"))
    assert found.value.where == str(tmp_path / "p.py")
    with pytest.raises(UnwritableFile, match="as it is"), writing(tmp_path):
        raise UnwritableFile("as it is")


# --- the lock -------------------------------------------------------------------------------------------


def lock_at(path: Path, **options: Any) -> Lock:
    return Lock(path / "lock", busy="it is busy", fix="Wait.", **options)


def test_one_holder_at_a_time_who_is_named(tmp_path: Path) -> None:
    first, second = lock_at(tmp_path), lock_at(tmp_path)
    assert first.take() == ""
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644 & ~_umask()
    with pytest.raises(OutOfOrder) as found:
        second.take()
    assert (found.value.rule, found.value.where, found.value.fix) == ("it is busy", str(tmp_path), "Wait.")
    assert found.value.got.startswith(f"this process {os.getpid()} on ")
    first.release()
    assert (tmp_path / "lock").read_bytes() == b""
    with second:
        assert str(os.getpid()).encode() in (tmp_path / "lock").read_bytes()
    assert first.take() == ""
    del first  # whoever is forgotten lets go
    assert second.take() == ""


def test_what_a_dead_process_has_left_is_taken_over(tmp_path: Path) -> None:
    said = {
        b'{"pid": 7, "host": "there"}': "process 7 on there",
        b'{"pid": 7}': "process 7 on this machine",
        b'{"host": "there"}': "a process that did not say which",
        b"[]": "a process that did not say which",
        b"\xff": "a process that did not say which",
    }
    for left, who in said.items():
        (tmp_path / "lock").write_bytes(left)
        found = lock_at(tmp_path)
        assert found.take() == f"the lock was left by {who}, which is gone; it was taken over"
        found.release()


def test_on_a_full_disk_a_lock_holds_and_names_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "lock").write_bytes(b'{"pid": 7}')
    monkeypatch.setattr(lock.os, "write", full)
    held = lock_at(tmp_path)
    assert "process 7" in held.take()
    assert (tmp_path / "lock").read_bytes() == b""  # and not whoever had it before
    with pytest.raises(OutOfOrder, match="a process that did not say which"):
        lock_at(tmp_path).take()


def test_shared_locks_go_together_and_with_no_other(tmp_path: Path) -> None:
    one, two, alone = lock_at(tmp_path, shared=True), lock_at(tmp_path, shared=True), lock_at(tmp_path)
    (tmp_path / "lock").write_bytes(b'{"pid": 7, "host": "there"}')
    assert (one.take(), two.take()) == ("", "")
    with pytest.raises(OutOfOrder):
        alone.take()
    one.release()
    with pytest.raises(OutOfOrder):
        alone.take()
    two.release()
    assert (tmp_path / "lock").read_bytes() == b'{"pid": 7, "host": "there"}'  # whoever shares it writes nothing
    assert "process 7" in alone.take()
    with pytest.raises(OutOfOrder):
        one.take()


def test_a_lock_is_waited_for_as_long_as_one_has_patience(tmp_path: Path) -> None:
    first = lock_at(tmp_path)
    first.take()
    with pytest.raises(OutOfOrder):
        lock_at(tmp_path, patience=0.12).take()
    later = threading.Timer(0.2, first.release)
    later.start()
    second = lock_at(tmp_path, patience=60.0)
    assert second.take() == ""
    later.join()
    second.release()


def test_a_forked_copy_lets_the_note_of_its_parent_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = lock_at(tmp_path)
    held.take()
    monkeypatch.setattr(lock.os, "getpid", lambda: -1)
    held.release()
    assert b"pid" in (tmp_path / "lock").read_bytes()


# --- containers -----------------------------------------------------------------------------------------


def written(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    archive.write_archive(stream, b"{}", arrays)
    return stream.getvalue()


def test_an_archive_depends_on_its_content_alone() -> None:
    content = written(a=np.arange(3), b=np.ones((2, 2)))
    assert content == written(a=np.arange(3), b=np.ones((2, 2)))
    assert content == written(a=np.arange(3).astype(">i8"), b=np.ones((2, 2), ">f8"))
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        assert found.namelist() == ["header.json", "a.npy", "b.npy"]
        for info in found.infolist():
            assert (info.date_time, info.compress_type) == ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        written(a=np.array([None]))


@pytest.mark.parametrize(
    ("how", "stored", "claimed", "refused"),
    [
        (zipfile.ZIP_STORED, 9, 9, False),
        (zipfile.ZIP_STORED, 9, 10, True),
        (zipfile.ZIP_STORED, 10, 9, True),
        (zipfile.ZIP_DEFLATED, 9, 9, True),
    ],
)
def test_a_member_is_as_large_as_it_says_and_not_compressed(how: int, stored: int, claimed: int, refused: bool) -> None:
    info = zipfile.ZipInfo("a.npy")
    info.compress_type, info.compress_size, info.file_size = how, stored, claimed
    with pytest.raises(UnreadableFile, match="compressed") if refused else contextlib.nullcontext():
        archive._refuse_compressed(info)


def test_limits_are_the_largest_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(written(a=np.arange(3), b=np.arange(4)))
    size = path.stat().st_size
    for module, name, value in (
        (archive, "MAX_BYTES", size),
        (archive, "MAX_MEMBERS", 2),
        (documents, "MAX_BYTES", 2),
        (documents, "MAX_BRACKETS", 1),
    ):
        monkeypatch.setattr(module, name, value)
        with archive.opened(path) as (_, members):
            assert {key: array.tolist() for key, array in members().items()} == {"a": [0, 1, 2], "b": [0, 1, 2, 3]}
        monkeypatch.setattr(module, name, value - 1)
        with pytest.raises(UnreadableFile, match=r"too large|too many"), archive.opened(path) as (_, members):
            members()
        monkeypatch.undo()


def test_no_more_of_a_file_is_read_at_once_than_a_directory_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(bytes(100))
    monkeypatch.setattr(archive, "_DIRECTORY_BYTES", 60)
    with archive._Guarded(io.FileIO(tmp_path / "a")) as file:
        for size in (61, -1, None):
            with pytest.raises(UnreadableFile, match="directory is too large"):
                file.read(size)
        assert len(file.read(60)) == 60
        assert len(file.read()) == 40  # of what is left there is no more


def test_json_is_weighed_before_it_is_parsed() -> None:
    """64 MiB and 4 Mi brackets of either kind, which bound what is taken for it near 1 GiB."""
    assert not documents.too_large(b"[{" * (2 << 20))
    assert documents.too_large(b"[{" * (2 << 20) + b"{")
    assert documents.too_large(b"[{" * (2 << 20) + b"[")
    assert not documents.too_large(bytes(64 << 20))
    assert documents.too_large(bytes((64 << 20) + 1))


def test_the_header_is_found_wherever_it_stands(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(written(x=np.arange(3), a=np.arange(2)))) as found:
        parts = {name: found.read(name) for name in ("x.npy", "a.npy", "header.json")}
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as other:
        for name, content in parts.items():
            other.writestr(name, content)
    with archive.opened(tmp_path / "a.npz") as (header, members):
        assert (header, members()["x"].tolist()) == ({}, [0, 1, 2])


def test_arrays_in_groups_come_back_in_their_shapes(tmp_path: Path) -> None:
    groups = {"x": {"a": np.arange(6.0).reshape(1, 2, 3), "none": np.zeros((0, 4))}, "y": {"a": np.array(True)}}
    archive.save_archive(tmp_path / "g.npz", {"shapes": archive.shapes_of(groups)}, archive.flattened(groups))
    with archive.opened(tmp_path / "g.npz") as (header, members):
        assert len(members()) == 3
        found = members().groups(header["shapes"], ("x", "y"))
    for group, arrays in groups.items():
        for name, array in arrays.items():
            assert (found[group][name].dtype, found[group][name].shape) == (array.dtype, array.shape)
            assert found[group][name].tobytes() == array.tobytes()


def test_large_members_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(written(a=np.arange(100)))
    monkeypatch.setattr(archive, "_CHUNK", 7)
    with archive.opened(path) as (_, members):
        assert members()["a"].tolist() == list(range(100))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a":1,"a":2}', "an entry occurs twice"),
        (b'{"a":NaN}', "a number is not finite"),
        (b'{"a":1e999}', "a number is not finite"),
        (b'{"a":-1e999}', "a number is not finite"),
        (b'{"a":' + b"9" * 5000 + b"}", "a number is too large"),
        (b'{"a":"\xff"}', "not UTF-8 text: byte 6"),
        (b'{"a":\n1', "not complete, valid JSON: line 2, column 2"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", r"not a JSON object: \[1\]"),
    ],
    ids=range(9),
)
def test_lines_that_are_not_read(text: bytes, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words):
        documents.parse_line(text)


def test_where_a_document_is_wrong_is_said() -> None:
    with pytest.raises(UnreadableFile) as found:
        documents.parse_json(b"{", "header.json")
    assert found.value.where == "header.json, line 1, column 2"
    assert documents.parse_json(b"1e999") == float("inf")  # whoever knows what it is for looks at it


def test_a_disk_without_a_full_sync_uses_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that has it, as a Mac's, uses that."""
    seen: list[Any] = []
    monkeypatch.setattr(disk.os, "fsync", lambda file: seen.append("fsync"))
    monkeypatch.setattr(disk, "fcntl", lambda file, what: seen.append(what), raising=False)
    for full in (None, 51):
        monkeypatch.setattr(disk, "F_FULLFSYNC", full)
        DISK.fsync(0)
    assert seen == ["fsync", 51]


def test_arrays_of_one_or_two_axes_are_read_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else a header claims of the very same bytes is refused; they are summed up piece by piece."""
    data = np.arange(4.0).tobytes()
    (tmp_path / "a.bin").write_bytes(data)
    (tmp_path / raw_arrays.HEADER).write_text("{}")
    right = {"dtype": "<f8", "shape": [4], "crc32": f"{zlib.crc32(data):08x}"}
    for piece in (1, 16, 24, 1 << 24):
        monkeypatch.setattr(raw_arrays, "_PIECE", piece)
        for shape in ([4], [2, 2], [1, 4]):
            for mapped in (False, True):
                found = raw_arrays.open_arrays(tmp_path, {"a": {**right, "shape": shape}}, mapped)["a"]
                assert found.reshape(-1).tolist() == [0.0, 1.0, 2.0, 3.0]
                assert list(found.shape) == shape
    for wrong in (
        {"shape": [2, 2, 1]},
        {"shape": []},
        {"shape": [-4]},
        {"shape": [True, 4]},
        {"shape": [4.0]},
        {"dtype": ">f8"},
        {"crc32": right["crc32"][:-1]},
        {"crc32": right["crc32"] + "0"},
    ):
        with pytest.raises(UnreadableFile, match="does not describe an array"):
            raw_arrays.open_arrays(tmp_path, {"a": {**right, **wrong}}, False)
    for shape in ([3], [5], [1 << 61]):
        with pytest.raises(UnreadableFile, match="wrong size"):
            raw_arrays.open_arrays(tmp_path, {"a": {**right, "shape": shape}}, False)
    (tmp_path / "a.bin").write_bytes(data[:8])  # one number, which an array without axes would hold
    one = {"dtype": "<f8", "shape": [], "crc32": f"{zlib.crc32(data[:8]):08x}"}
    with pytest.raises(UnreadableFile, match="does not describe an array"):
        raw_arrays.open_arrays(tmp_path, {"a": one}, False)


def test_only_text_of_a_reasonable_size_is_read_as_toml(tmp_path: Path) -> None:
    path, most = tmp_path / "a.toml", 1 << 20
    path.write_text("a = 1\n" + "#" * (most - 6))
    document, text = documents.read_toml(path)
    assert (document, len(text)) == ({"a": 1}, most)
    for content, words in (
        (b"#" * (most + 1), "too large"),
        (b"a = '\xff'", "not UTF-8 text: .*: byte 5"),
        (b"a =", "not valid TOML"),
        (b"a = " + b"[" * 100_000, "not valid TOML"),
    ):
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=words) as found:
            documents.read_toml(path)
        assert found.value.where == str(path)
    path.unlink()
    with pytest.raises(UnreadableFile, match="cannot be read"):
        documents.read_toml(path)


def test_no_more_of_a_document_is_read_than_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 8)
    (tmp_path / "a.json").write_bytes(b'{"a":12}')
    assert documents.read_json(tmp_path / "a.json") == ({"a": 12}, 8)
    (tmp_path / "a.json").write_bytes(b'{"a":12} ')
    with pytest.raises(UnreadableFile, match=r"too large.*8 bytes.*Split it"):
        documents.read_json(tmp_path / "a.json", fix="Split it")
