"""What everything stands on: building a large problem from arrays, and importing the package.

Each figure comes from processes of its own, best of several.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

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


def run() -> list[dict[str, Any]]:
    return [_build(), _import("surefoot"), _import("surefoot.exact"), _import("numpy")]


def _build() -> dict[str, Any]:
    seconds = min(float(_child(_SECONDS)) for _ in range(5))
    size, kept, peak = _child(_MEMORY)
    return {
        "name": "building a problem of 1e6 triplets from arrays: peak memory over its arrays",
        "ours_seconds": seconds,
        "array_bytes": size,
        "peak_bytes": peak,  # on top of the arrays themselves
        "kept_bytes": kept,
        "value": (size + peak) / size,  # peak memory, in units of the arrays
        "target": 2.5,
        "better": "lower",
    }


def _import(module: str) -> dict[str, Any]:
    seconds = min(float(_child(_IMPORT.format(module))) for _ in range(5))
    aim = {"target": 0.3, "better": "lower"} if module == "surefoot" else {}
    return {"name": f"import {module}: seconds", "value": seconds, **aim}


def _child(code: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    show(run())
