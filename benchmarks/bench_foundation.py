"""What everything stands on: building a large problem from arrays, and importing the package.

Each figure comes from processes of its own, best of several.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.rows import Row, row
from benchmarks.timing import show

_ARRAYS = """
import json, time, tracemalloc
import numpy as np
import surefoot as sf

states, actions, successors, dim = 50_000, 5, 4, 8
n = states * actions
rng = np.random.default_rng(0)
step = states // successors
arrays = dict(
    state_ptr=np.arange(states + 1) * actions,
    pair_ptr=np.arange(n + 1) * successors,
    successors=(np.arange(successors) * step + rng.integers(0, step, (n, successors))).astype(np.int32).ravel(),
    reward=rng.random(n),
    cost_features=rng.random((n * successors, dim)),
    fallback=np.zeros(states, np.int64),
)
limit = sf.Limit("limit", bound=1.0, noise=0.1, norm=1.0)
sf.Problem  # loaded before the clock starts
size = sum(array.nbytes for array in arrays.values())

def build():
    return sf.Problem.from_arrays(horizon=11, start=0, limits=limit, **arrays)
"""
_SECONDS = _ARRAYS + "begin = time.perf_counter(); build(); print(json.dumps(time.perf_counter() - begin))"
_MEMORY = (
    _ARRAYS + "tracemalloc.start(); problem = build(); kept, peak = tracemalloc.get_traced_memory()\n"
    "print(json.dumps([size, kept, peak]))"
)
_IMPORT = "import time; begin = time.perf_counter(); import {0}; print(time.perf_counter() - begin)"


def run() -> list[Row]:
    return [_build(), _import("surefoot"), _import("surefoot.exact"), _import("numpy")]


def _build() -> Row:
    seconds = min(float(_child(_SECONDS)) for _ in range(5))
    size, kept, peak = _child(_MEMORY)
    return row(
        "building a problem of 1e6 triplets from arrays: peak memory over its arrays",
        (size + peak) / size,
        at_most=2.5,
        ours_seconds=seconds,
        array_bytes=size,
        peak_bytes=peak,
        kept_bytes=kept,
    )


def _import(module: str) -> Row:
    seconds = min(float(_child(_IMPORT.format(module))) for _ in range(5))
    aim = 0.3 if module == "surefoot" else None
    return row(f"import {module}: seconds", seconds, at_most=aim)


def _child(code: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    show(run())
