"""Parts of mapped arrays are read before they are wanted: the same numbers, not much too early, and the threads end in
every case."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import UnreadableFile
from surefoot.model import seals
from surefoot.storage import read_ahead
from surefoot.storage.read_ahead import AHEAD, Read, ReadAhead, Room

SIZES = 100_000, 30_001
CUTS = [(first, first + 0.1) for first in np.arange(0.0, 1.0, 0.1)]


@pytest.fixture(params=["through the cache", "past it"])
def arrays(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two of different size and kind, the second one not from the first byte of its file."""
    monkeypatch.setattr(read_ahead, "own_memory", lambda: 0 if request.param == "past it" else 1 << 40)
    monkeypatch.setattr(read_ahead, "_PIECE", 1 << 12)
    files = []
    for i, (size, kind) in enumerate(zip(SIZES, ("f8", "i4"), strict=True)):
        numbers = np.arange(size + 3 * i).astype(kind)
        numbers.tofile(tmp_path / f"{i}.bin")
        files.append(np.memmap(tmp_path / f"{i}.bin", kind, "r", offset=12 * i))
    return files


def of(arrays: list[Any], cut: tuple[float, float], read: Read) -> list[Any]:
    """A part of each."""
    return [read(x[int(cut[0] * len(x)) : int(cut[1] * len(x))]) for x in arrays]


def readers() -> Iterator[threading.Thread]:
    return (thread for thread in threading.enumerate() if thread.name.startswith("read-ahead"))


def test_the_same_numbers_in_order_and_in_the_same_memory(arrays: list[Any]) -> None:
    held, rooms = [arrays[0][100:], arrays[1], np.ones(5)], deque[Room]()
    for _ in range(2):
        with ReadAhead([*held, arrays[0]], rooms) as reading:
            parts = reading.parts(CUTS, lambda cut, read: (cut, of(held, cut, read)))
            for i, part in enumerate(parts):
                with part as (cut, found):
                    assert cut == CUTS[i]
                    for own, x in zip(found, of(held, cut, np.asarray), strict=True):
                        assert own.dtype == x.dtype
                        assert np.array_equal(own, x)
                    assert np.shares_memory(held[2], found[2]) == (len(found[2]) > 0)  # which lies in memory
        assert len(rooms) <= 2 + AHEAD
    assert not any(own.flags.writeable for own in found[:2])


def test_no_more_than_some_parts_early(arrays: list[Any]) -> None:
    made = list[int]()
    with ReadAhead(arrays) as reading:
        parts = reading.parts(range(100), lambda cut, read: made.append(cut))
        for i in range(10):
            next(parts)
            time.sleep(0.01)
            assert i < len(made) <= i + 1 + AHEAD


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_the_threads_end_with_the_work(end: type[BaseException], arrays: list[Any]) -> None:
    files = len(os.listdir("/proc/self/fd"))

    def work() -> None:
        with ReadAhead(arrays) as reading:
            next(reading.parts(CUTS, lambda cut, read: of(arrays, cut, read)))
            assert list(readers())
            raise end

    with pytest.raises(end):
        work()
    assert not list(readers())
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_file_that_is_cut(arrays: list[Any], tmp_path: Path) -> None:
    with ReadAhead(arrays) as reading:
        parts = reading.parts(CUTS, lambda cut, read: of(arrays, cut, read))
        next(parts)
        os.truncate(tmp_path / "0.bin", 400_000)
        with pytest.raises(UnreadableFile, match=r"shorter than it was when it was mapped: .*0\.bin"):
            list(parts)


def test_a_plan_whose_file_is_cut_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan before stays in force, the agent says why, and no thread is left."""
    monkeypatch.setattr(seals, "COPIED", 0)
    folder = sf.worlds.make("rover/testing").problem.save(tmp_path / "big.problem")
    agent = sf.LsviNew(sf.Problem.load(folder, mapped=True))
    before, opened = agent.plan, read_ahead._opened
    path = max(folder.glob("*.bin"), key=lambda path: path.stat().st_size)

    def cut(array: Any, large: bool) -> Any:
        os.truncate(path, 8)
        return opened(array, large)

    monkeypatch.setattr(read_ahead, "_opened", cut)
    agent.replan()
    assert agent.plan is before
    assert "the file is shorter than it was when it was mapped" in agent.plan_failure
    assert path.name in agent.plan_failure
    assert not list(readers())
