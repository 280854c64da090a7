"""Files that are truncated, corrupted, hostile or too new: refused, by name and place, at no cost."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import UnreadableFile
from surefoot.model.problem import Problem
from surefoot.storage import archive as npz
from tests.saved_problems import (
    PROBLEMS,
    Edit,
    document_of,
    edited,
    labelled,
    members_of,
    refused,
    repack,
    template,
)

FORMATS = ("json", "npz")

JSON_DAMAGE: dict[str, tuple[Edit, str]] = {
    "format": (lambda d: d.update(format="other"), r"not a saved problem.*\$\.format.*'other'"),
    "newer": (lambda d: d.update(version=5, new=[]), r"newer version.*version 5.*version 4\. Upgrade"),
    "older": (lambda d: d.update(version=1), r"older version.*version 1.*version 4\. Declare the problem again"),
    "version 0": (lambda d: d.update(version=0), r"older version.*\$\.version.*version 0"),
    "version true": (lambda d: d.update(version=True), r"wrong type.*\$\.version"),
    "missing": (lambda d: d.pop("starts"), r"entry is missing.*\$.*no 'starts'"),
    "extra": (lambda d: d["terminal"].update(bonus=1), r"unknown entry.*\$\.terminal.*'bonus'"),
    "horizon text": (lambda d: d.update(horizon="4"), r"\$\.horizon.*'4' where a whole number"),
    "horizon longer": (lambda d: d.update(horizon=9), r"wrong number of entries.*\$\.layers.*3 where"),
    "horizon huge": (lambda d: d.update(horizon=10**400), "horizon is above 1000000"),
    "horizon 1": (lambda d: d.update(horizon=1, layers=[], anchors=[None]), "horizon is below 2"),
    "layers": (lambda d: d.update(layers={}), r"\$\.layers.*where an array is expected"),
    "layer": (lambda d: d["layers"].__setitem__(1, 5), r"\$\.layers\[1\].*5 where an object"),
    "anchors": (lambda d: d["anchors"].pop(), r"\$\.anchors.*3 where horizon = 4"),
    "anchor": (lambda d: d["anchors"].__setitem__(0, [1]), r"\$\.anchors\[0\].*an object"),
    "anchor length": (
        lambda d: d["anchors"].__setitem__(0, {"features": [[1.0]], "cost": [[0.0]], "tolerance": [[0.0]]}),
        "anchor feature has the wrong length.*anchor of step 0",
    ),
    "last anchor": (
        lambda d: d["anchors"].__setitem__(3, {"features": [[1.0, 0.0]], "cost": [[0.0]], "tolerance": [[0.0]]}),
        r"anchor but no cost.*\$\.anchors\[3\]",
    ),
    "no limits": (lambda d: d.update(limits=[]), "needs a limit"),
    "limit text": (lambda d: d["limits"][0].update(bound="0.5"), r"\$\.limits\[0\]\.bound.*a number"),
    "limit flag": (lambda d: d["limits"][0].update(noise=True), r"\$\.limits\[0\]\.noise.*True where"),
    "limit sign": (lambda d: d["limits"][0].update(noise=-1), "noise is negative.*'level'"),
    "limit huge": (lambda d: d["limits"][0].update(norm=10**400), r"too large.*\$\.limits\[0\]\.norm"),
    "limit name": (lambda d: d["limits"][0].update(name=3), r"\$\.limits\[0\]\.name.*a text"),
    "norm": (lambda d: d.update(transition_norm=0), "transition_norm must be positive"),
    "flag": (lambda d: d.update(stationary_costs=1), r"\$\.stationary_costs.*true or false"),
    "starts": (lambda d: d.update(starts=[17]), "start state does not exist"),
    "starts text": (lambda d: d.update(starts=["0"]), r"\$\.starts\[0\].*'0' where a whole number"),
    "starts float": (lambda d: d.update(starts=[1.0]), r"\$\.starts\[0\].*1\.0 where a whole number"),
    "starts huge": (lambda d: d.update(starts=[2**63]), r"too large.*\$\.starts"),
    "successor huge": (lambda d: d["arrays"].update(a2=[2**31] * 12), r"too large.*a2.*int32"),
    "successor": (lambda d: d["arrays"]["a2"].__setitem__(4, 99), "successor does not exist.*index 99"),
    "successor type": (
        lambda d: d["layers"][0].update(successor_dtype=["int32"]),
        r"\$\.layers\[0\]\.successor_dtype.*'int32' or 'int64'",
    ),
    "two types": (
        lambda d: d["layers"][1].update(successor_dtype="int64"),
        r"wrong kind.*\$\.layers\[1\]\.successors.*int32 with 1 axes where int64",
    ),
    "two uses": (
        lambda d: d["layers"][0].update(reward={"array": "a0"}),
        r"wrong kind.*\$\.layers\[0\]\.reward.*int64.*float64",
    ),
    "pointer": (lambda d: d["arrays"]["a1"].__setitem__(3, -5), "pair_ptr decreases.*step 0"),
    "reward": (lambda d: d["arrays"]["a3"].__setitem__(3, 7), "reward is outside"),
    "reward text": (lambda d: d["arrays"]["a3"].__setitem__(3, "1"), r"\$\.arrays\.a3\[3\].*a number"),
    "ragged": (lambda d: d["arrays"]["a4"][5].pop(), r"\$\.arrays\.a4\[5\].*first row = 2"),
    "flat": (lambda d: d["arrays"].update(a4=[1.0] * 12), r"\$\.arrays\.a4\[0\].*an array"),
    "deep": (lambda d: d["arrays"]["a4"][5].__setitem__(1, [1]), r"\$\.arrays\.a4\[5\]\[1\].*a number"),
    "empty rows": (lambda d: d["arrays"].update(a4=[[]] * 12), "cost_features has the wrong length"),
    "no rows": (lambda d: d["arrays"].update(a4=[]), "cost_features has the wrong shape"),
    "arrays": (lambda d: d.update(arrays=[]), r"\$\.arrays.*an object"),
    "array gone": (lambda d: d["arrays"].pop("a3"), r"array is missing.*layers\[0\]\.reward.*'a3'"),
    "array unused": (lambda d: d["arrays"].update(a9=[1]), "stored but not used.*'a9'"),
    "reference": (lambda d: d.update(starts={"array": 3}), r"\$\.starts\.array.*the name of an array"),
    "reference more": (lambda d: d.update(starts={"array": "a0", "b": 1}), r"unknown entry.*\$\.starts"),
    "path": (lambda d: d.update(starts={"array": "../../etc/passwd"}), r"\$\.starts\.array"),
    "null array": (lambda d: d["layers"][0].update(fallback=None), r"\$\.layers\[0\]\.fallback.*None where"),
    "fallback": (lambda d: d["layers"][1]["fallback"].__setitem__(2, 4), "fallback's action does not exist.*number 4"),
    "fallback gone": (lambda d: d["layers"][0]["fallback"].__setitem__(2, -1), "fallback is missing"),
    "fallback length": (lambda d: d["layers"][0]["fallback"].pop(), "fallback has the wrong shape"),
    "has_cost": (lambda d: d["terminal"].update(has_cost=[True] * 6), r"\$\.terminal\.has_cost.*null"),
    "has_cost numbers": (
        lambda d: d["terminal"].update(has_cost=[1] * 6, cost_features=[[1.0, 1.0]] * 6),
        r"\$\.terminal\.has_cost\[0\].*true or false",
    ),
    "costless": (
        lambda d: d["terminal"].update(has_cost=[False] * 6, cost_features=[[1.0, 1.0]] * 6),
        "without a cost has cost features",
    ),
    "no label": (lambda d: d["layers"][0].update(states=[0] * 6), r"no such label.*states\[0\]"),
    "label": (lambda d: d["labels"]["states"].append({}), r"\$\.labels\.states\[0\].*a text, number"),
    "label huge": (lambda d: d["labels"]["states"].append(2**64), r"label cannot.*states\[0\].*64 bits"),
    "label half": (lambda d: d["labels"]["states"].append("\udc00"), r"half a character.*states\[0\]"),
    "label deep": (lambda d: d["labels"]["states"].append(nested(40)), r"label cannot.*deeper"),
    "labels equal": (
        lambda d: (
            d["labels"]["states"].extend([1, True, 2, 3, 4, 5]),
            d["layers"][0].update(states=[0, 1, 2, 3, 4, 5]),
        ),
        "compare equal but differ",
    ),
}


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("name", JSON_DAMAGE)
def test_a_wrong_document_is_refused_by_its_place(tmp_path: Path, name: str) -> None:
    edit, words = JSON_DAMAGE[name]
    path = template().save(tmp_path / "p.json")
    edited(path, edit)
    refused(path, words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"bound": 0.5', b'"bound": NaN', "not finite.*NaN"),
        (b'"bound": 0.5', b'"bound": -Infinity', "not finite.*-Infinity"),
        (b'"bound": 0.5', b'"bound": 1e999', "bound is not finite.*'level'"),
        (b'"bound": 0.5', b'"bound": 0.5, "bound": 0.9', "occurs twice.*'bound'"),
        (b'"bound": 0.5', b'"bound": 0.6', r"does not match its digest.*remove its digest"),
        (b'"bound": 0.5', b'"bound": ' + b"1" * 5000, "a number is too large"),
        (b'"bound": 0.5', b'"bound": 0x1', "not complete, valid JSON.*line 5, column"),
        (b'"level"', b'"\xff"', "not UTF-8"),
        (b'"level"', b'"\\ud800"', r"half a character.*\$\.limits\[0\]\.name"),
        (b'"states": []', b'"states": ' + b"[" * 10**6 + b"]" * 10**6, "nested too deeply"),
        (b'"a0": [0', b'"a0": [-0.0', r"\$\.arrays\.a0\[0\]"),
    ],
)
def test_wrong_json_is_refused(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    path = template().save(tmp_path / "p.json")
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    refused(path, words)


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{}", b'"x"', b"1", b"PK\x05\x06" + bytes(18)])
@pytest.mark.parametrize("suffix", FORMATS)
def test_another_file_is_refused(tmp_path: Path, data: bytes, suffix: str) -> None:
    path = tmp_path / f"p.{suffix}"
    path.write_bytes(data)
    refused(path, "not complete|not a saved problem|archive is damaged|member is missing")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = template().save(tmp_path / f"p.{suffix}")
    data = path.read_bytes()
    for end in [*range(0, len(data) - 2, 97), len(data) - 3]:
        path.write_bytes(data[:end])
        refused(path, "not complete, valid JSON|not UTF-8|archive is damaged")


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Problem.load(tmp_path / "p.json")


def test_a_pipe_or_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.npz", "folder.json"):
        with pytest.raises(UnreadableFile, match="not a regular file"):
            Problem.load(tmp_path / name)


# --- hostile archives -----------------------------------------------------------------------------------


def npy(array: np.ndarray[Any, Any], **changes: Any) -> bytes:
    stream = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch executed",)


def pickled() -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": (7,)})
    return stream.getvalue() + pickle.dumps([Bomb()] * 7)


POINTER = np.arange(0, 13, 2)  # what template() stores as a1
MEMBER_DAMAGE: dict[str, tuple[bytes, str]] = {
    "pickle": (pickled(), r"not an array that surefoot writes.*a1\.npy.*\|O"),
    "huge": (npy(POINTER, shape=(10**15,)), r"its size disagree.*a1\.npy.*1000000000000000"),
    "overflow": (npy(POINTER, shape=(2**32, 2**32)), "its size disagree"),
    "digits": (npy(POINTER, shape=(10**40,)), "not an array that surefoot writes"),
    "short": (npy(POINTER)[:-1], "its size disagree"),
    "long": (npy(POINTER) + b"\0", "its size disagree"),
    "fortran": (npy(POINTER, fortran_order=True), "not an array that surefoot writes"),
    "endian": (npy(POINTER, descr=">i8"), "not an array that surefoot writes.*>i8"),
    "float": (npy(POINTER, descr="<f8"), r"wrong kind.*\$\.layers\[0\]\.state_ptr.*float64"),
    "axes": (npy(POINTER, shape=(7, 1)), r"wrong kind.*\$\.layers\[0\]\.state_ptr.*2 axes"),
    "scalar": (npy(POINTER[:1], shape=()), "not an array that surefoot writes"),
    "code": (npy(POINTER).replace(b"(7,)", b"f()!"), "not an array that surefoot writes"),
    "version": (npy(POINTER).replace(b"Y\x01", b"Y\x03"), "not an array that surefoot writes"),
    "empty": (b"", "not an array that surefoot writes"),
    "text": (b"hello", "not an array that surefoot writes"),
    "content": (npy(POINTER[::-1].copy()), "state_ptr must run from 0"),
}


@pytest.mark.parametrize("name", MEMBER_DAMAGE)
def test_a_wrong_member_is_refused_before_it_costs_anything(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = template().save(tmp_path / "p.npz")
    members = members_of(path)
    assert members["a1.npy"] == npy(POINTER)
    data, words = MEMBER_DAMAGE[name]
    repack(path, members | {"a1.npy": data})
    tracemalloc.start()
    try:
        refused(path, words)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert os.listdir(tmp_path) == ["p.npz"]


def test_a_flag_that_is_no_flag_is_refused(tmp_path: Path) -> None:
    path = PROBLEMS["partly_costed"]().save(tmp_path / "p.npz")
    name = document_of(path)["terminal"]["has_cost"]["array"] + ".npy"
    members = members_of(path)
    repack(path, members | {name: members[name][:-1] + b"\x02"})
    refused(path, "neither true nor false")


def test_members_that_do_not_belong_are_refused(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    members = members_of(path)
    for extra, words in {
        "evil.txt": "unknown member.*evil",
        "../../a2.npy": "unknown member",
        "a99.npy": "stored but not used.*'a99'",
    }.items():
        repack(path, members | {extra: npy(POINTER)})
        refused(path, words)
    for gone, words in {
        "a1.npy": r"array is missing.*layers\[0\]\.state_ptr.*'a1'",
        "header.json": "member is missing.*'header.json'",
    }.items():
        repack(path, {name: data for name, data in members.items() if name != gone})
        refused(path, words)
    repack(path, members)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a2.npy", members["a2.npy"])
    refused(path, r"occurs twice.*a2\.npy")


def test_an_archive_header_is_checked_like_a_json_file(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    members = members_of(path)
    for old, new, words in (
        (b'"version": 4', b'"version": 5', r"newer version.*Upgrade"),
        (b'"bound": 0.5', b'"bound": NaN', "not finite"),
        (b'"bound": 0.5', b'"bound": 0.75', "does not match its digest"),
        (b'"horizon": 4', b'"arrays": {}, "horizon": 4', "unknown entry.*'arrays'"),
        (b'"horizon": 4', b'"horizon": ', r"not complete, valid JSON.*header\.json, line 4"),
    ):
        repack(path, members | {"header.json": members["header.json"].replace(old, new)})
        refused(path, words)


def test_a_newer_archive_is_called_newer_whatever_else_is_new_in_it(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    members = members_of(path)
    header = members.pop("header.json").replace(b'"version": 4', b'"version": 5')
    repack(path, {name.replace(".npy", ".zst"): data for name, data in members.items()}, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("header.json", header)
    refused(path, "newer version.*Upgrade")


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    members = members_of(path) | {"a1.npy": npy(np.zeros(1 << 22))}
    repack(path, members, zipfile.ZIP_DEFLATED)
    refused(path, "member is compressed")
    repack(path, members | {"header.json": b" " * (1 << 24)}, zipfile.ZIP_DEFLATED)
    refused(path, r"member is compressed.*header\.json.*16777216")


def test_sizes_that_the_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    struct.pack_into("<II", data, entry + 20, 1 << 30, 1 << 30)  # of the last member, stored and not
    path.write_bytes(data)
    refused(path, "larger than the file")


def test_a_directory_beyond_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = labelled().save(tmp_path / "p.npz")
    monkeypatch.setattr(npz, "_DIRECTORY_BYTES", 1000)
    refused(path, "directory is too large")


def test_a_flipped_bit_breaks_the_checksum(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    data = bytearray(path.read_bytes())
    data[data.index(np.linspace(0, 1, 12).tobytes()) + 50] ^= 1
    path.write_bytes(data)
    refused(path, r"archive is damaged.*a4\.npy.*CRC-32")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.npz")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    refused(path, "archive is damaged.*encrypted")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_vast_file_is_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p.{suffix}"
    path.touch()
    os.truncate(path, 17 << 30)  # a hole: no disk is used
    began = time.monotonic()
    refused(path, "too large")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_small_file_cannot_ask_for_much_memory_by_sharing(tmp_path: Path, suffix: str) -> None:
    n, layers = 10_000, 400
    fallback = np.zeros(n, np.int64)
    path = template(
        horizon=2,
        state_ptr=np.arange(n + 1),
        pair_ptr=np.arange(n + 1),
        successors=np.arange(n),
        reward=np.zeros(n),
        cost_features=np.ones((n, 1)),
        fallback=fallback,
        start=list(range(n)),
    ).save(tmp_path / f"p.{suffix}")
    document = document_of(path)
    layer = document["layers"][0]
    if suffix == "json":
        names = [key for key, value in layer.items() if isinstance(value, list)]
        document["arrays"] = {key: layer[key] for key in names}
        layer |= {key: {"array": key} for key in names}
    document |= {"horizon": layers + 1, "layers": [layer] * layers, "anchors": [None] * (layers + 1)}
    del document["digest"]
    if suffix == "json":
        path.write_text(json.dumps(document))
    else:
        repack(path, members_of(path) | {"header.json": json.dumps(document).encode()})
    refused(path, r"shared beyond the size of the file.*\.fallback.*of its own")
