"""One process at a time in a sweep's directory.

The process that runs the sweep holds ``.lock`` alone. Its workers share ``.workers``: when the first was killed, they
may live on for a moment, and whoever comes next waits for them to be gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from surefoot.storage.lock import Lock

LOCK, WORKERS = ".lock", ".workers"
PATIENCE = 30.0  # seconds for the workers of a killed process to end


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Work in the folder alone, or refuse and say who is there."""
    fix = "Wait for it to end, or choose another directory."
    with Lock(folder / LOCK, busy="another process works in this directory", fix=fix):
        with _workers(folder, patience=PATIENCE):
            pass
        yield


def working(folder: Path) -> Lock:
    """Held by a worker process as long as it lives."""
    return _workers(folder, shared=True)


def _workers(folder: Path, *, shared: bool = False, patience: float = 0.0) -> Lock:
    busy, fix = "workers of a process that was killed are still running", "End them, or wait for them."
    return Lock(folder / WORKERS, busy=busy, fix=fix, shared=shared, patience=patience)
