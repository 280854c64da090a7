"""Measuring side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(repeats: int, *functions: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """The shortest time of each function in seconds; they take turns, so that a busy spell hits them all."""
    times = [float("inf")] * len(functions)
    for function in functions:
        function()  # compiled, cached, warm
    for _ in range(repeats):
        for i, function in enumerate(functions):
            begin = clock()
            function()
            times[i] = min(times[i], clock() - begin)
    return times


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
