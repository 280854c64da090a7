"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Names and versions; ``load`` is how many processes wanted a core just before."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        **{name: version(name) for name in ("surefoot", "numpy", "scipy", "numba")},
        **{name: version(name) for name in ("stormpy", "quantecon") if find_spec(name)},
    }


def _processor() -> str:
    source = Path("/proc/cpuinfo")
    names = source.read_text().splitlines() if source.is_file() else []
    found = next((line.partition(":")[2].strip() for line in names if line.startswith("model name")), "")
    return found or platform.processor() or platform.machine()
