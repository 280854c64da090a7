"""What a user waits for the compiler: ``surefoot demo``, the first time ever and every time after.

Both are whole commands, worker processes included, on a cache that is empty at first. Numba says when it compiles what
is not in the cache (``numba:compile``), and when it does that or loads what is (``numba:compiler_lock``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rows import Row, row
from benchmarks.timing import show

WATCH = Path(__file__).parent / "watch_compiler"


@dataclass(frozen=True)
class Watched:
    seconds: float  # of the whole command
    busy: float  # of them, those in which some process compiled or loaded
    compiling: float  # of them, those in which some process compiled
    compiled: list[str]  # functions that were not in the cache


def demo(cache: Path) -> Watched:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "compiler.log"
        known_places = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        path = os.pathsep.join([str(WATCH), *map(os.path.abspath, known_places)])  # it runs elsewhere
        known = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "SUREFOOT_COMPILER_LOG": str(log)}
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "surefoot", "demo"], cwd=folder, env=known, check=True, capture_output=True
        )
        seconds = time.perf_counter() - begin
        lines = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    spells = [(float(since), float(until)) for _, since, until, _ in lines]
    compiled = [(spell, line[3]) for spell, line in zip(spells, lines, strict=True) if line[0] == "numba:compile"]
    return Watched(seconds, covered(spells), covered([spell for spell, _ in compiled]), [what for _, what in compiled])


def covered(spells: list[tuple[float, float]]) -> float:
    """How long at least one of the spells lasted: they nest, and processes overlap."""
    total, reached = 0.0, float("-inf")
    for since, until in sorted(spells):
        total += max(0.0, until - max(since, reached))
        reached = max(reached, until)
    return total


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = demo(Path(cache)), demo(Path(cache))
    if not cold.compiled:
        raise AssertionError("nothing was seen to be compiled with an empty cache: the watch does not work")
    return [
        row(
            "surefoot demo, warm: seconds spent compiling or loading what is compiled",
            warm.busy,
            at_most=1.0,
            compiling_seconds=warm.compiling,
            seconds=warm.seconds,
        ),
        row(
            "surefoot demo, warm: functions that were not in the cache",
            float(len(warm.compiled)),
            at_most=0.0,
            names=warm.compiled,
        ),
        row(
            "surefoot demo, the first time ever: seconds spent compiling",
            cold.busy,
            functions=len(cold.compiled),
            seconds=cold.seconds,
        ),
    ]


if __name__ == "__main__":
    show(run())
