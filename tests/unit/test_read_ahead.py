"""Mapped arrays are read before they are wanted: all of them, not much too early, and the thread ends in every case."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.model import seals
from surefoot.storage import read_ahead
from surefoot.storage.read_ahead import AHEAD, ReadAhead

SIZES = 10_000, 3_001


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[np.memmap[Any, Any]]:
    """Two of different size, the second one not from the first byte of its file."""
    monkeypatch.setattr(read_ahead, "PIECE", 1000)
    monkeypatch.setattr(read_ahead, "_BUFFER", 64)
    files = []
    for i, size in enumerate(SIZES):
        (tmp_path / f"{i}.bin").write_bytes(bytes(size + 8 * i))
        files.append(np.memmap(tmp_path / f"{i}.bin", np.uint8, "r", offset=8 * i))
    return files


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """(file, first, end) of what is read."""
    seen, preadv = list[tuple[str, int, int]](), os.preadv

    def noted(file: int, buffers: Any, at: int) -> int:
        found = preadv(file, buffers, at)
        seen.append((Path(os.readlink(f"/proc/self/fd/{file}")).name, at, at + found))
        return found

    monkeypatch.setattr(os, "preadv", noted)
    return seen


def readers() -> Iterator[threading.Thread]:
    return (thread for thread in threading.enumerate() if thread.name.startswith("read-ahead"))


def test_every_byte_once_and_in_order(arrays: list[Any], reads: list[tuple[str, int, int]]) -> None:
    part = arrays[0][100:]  # of a mapping
    with ReadAhead([part, arrays[1], part, np.ones(5)]) as reader:
        for share in np.linspace(0.0, 1.0, 40):
            reader.come_to(float(share))
    for name, first, end in (("0.bin", 100, SIZES[0]), ("1.bin", 8, SIZES[1] + 8)):
        own = [(begin, stop) for file, begin, stop in reads if file == name]
        assert own[0][0] == first
        assert own[-1][1] == end
        assert all(one[1] == two[0] for one, two in pairwise(own))


def test_no_more_than_some_pieces_early(arrays: list[Any], reads: list[tuple[str, int, int]]) -> None:
    with ReadAhead(arrays) as reader:
        reader.come_to(0.25)  # of ten pieces, the third is wanted
    assert 2500 <= max(end for name, _, end in reads if name == "0.bin") <= 1000 * (3 + AHEAD)


def test_shares_that_are_wanted_and_nothing_else(arrays: list[Any], reads: list[tuple[str, int, int]]) -> None:
    with ReadAhead(arrays, [(0.1, 0.15), (0.15, 0.2), (0.6, 0.9)]) as reader:
        reader.come_to(0.0)
        for end in (0.15, 0.2, 0.9):
            reader.come_to(end)
            assert max(stop for name, _, stop in reads if name == "0.bin") >= end * SIZES[0]
    for name, begin, size in (("0.bin", 0, SIZES[0]), ("1.bin", 8, SIZES[1])):
        found = np.zeros(begin + size, np.int64)
        for file, first, end in reads:
            found[first:end] += file == name
        wanted = np.zeros(begin + size, np.int64)
        for share, to in ((0.1, 0.2), (0.6, 0.9)):
            wanted[begin + int(share * size) : begin + int(to * size)] = 1
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_the_thread_ends_with_the_work(end: type[BaseException], arrays: list[Any]) -> None:
    files = len(os.listdir("/proc/self/fd"))

    def work() -> None:
        with ReadAhead(arrays) as reader:
            reader.come_to(0.1)
            assert len(list(readers())) == 1
            raise end

    with pytest.raises(end):
        work()
    assert not list(readers())
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_plan_whose_file_is_cut_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan before stays in force, the agent says why, and no thread is left."""
    monkeypatch.setattr(seals, "COPIED", 0)
    folder = sf.worlds.make("rover/testing").problem.save(tmp_path / "big.problem")
    agent = sf.LsviNew(sf.Problem.load(folder, mapped=True))
    before, opened = agent.plan, read_ahead._opened
    path = max(folder.glob("*.bin"), key=lambda path: path.stat().st_size)

    def cut(array: Any) -> Any:
        os.truncate(path, 8)
        return opened(array)

    monkeypatch.setattr(read_ahead, "_opened", cut)
    agent.replan()
    assert agent.plan is before
    assert "the file is shorter than it was when it was mapped" in agent.plan_failure
    assert path.name in agent.plan_failure
    assert not list(readers())
