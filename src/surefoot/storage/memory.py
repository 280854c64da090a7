"""How much memory there is for this process: the machine's, or less in a container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TOGETHER = "memory.max", "memory.high"  # of a control group, version 2
_ALONE = ("memory.limit_in_bytes",)  # version 1, where memory has a tree of its own


def own_memory(root: Path = Path("/")) -> int:
    """Bytes: the machine's memory, or the least limit of a control group that this process is in."""
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """The limits of the process's groups and of those around them; what cannot be read, or is "max", is none.

    In a container its own group may be the root of what is mounted, under whatever path it has outside.
    """
    groups, lines = root / "sys/fs/cgroup", list[str]()
    with suppress(OSError, ValueError):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    for line in lines:
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        tree, names = (groups / "memory", _ALONE) if kinds else (groups, _TOGETHER)
        own = Path(path.lstrip("/"))
        for file in (tree / around / name for around in (own, *own.parents) for name in names):
            with suppress(OSError, ValueError):
                yield int(file.read_text())
