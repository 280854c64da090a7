"""How much memory there is for a process, from a made-up tree of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from surefoot.storage.memory import own_memory

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
NO_LIMIT = 9223372036854771712  # as version 1 writes it

TREES: dict[str, tuple[dict[str, str], int]] = {
    "no groups": ({}, MACHINE),
    "without a limit": ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max\n"}, MACHINE),
    "a container": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20),
    "a group around it": (
        {
            "proc/self/cgroup": "0::/user.slice/job\n",
            "sys/fs/cgroup/user.slice/job/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/memory.max": "2097152\n",
            "sys/fs/cgroup/user.slice/memory.high": "1048576\n",
        },
        1 << 20,
    ),
    "version 1, under its path outside": (
        {
            "proc/self/cgroup": "9:cpu,cpuacct:/docker/ab\n8:hugetlb,memory:/docker/ab\n0::/docker/ab\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n",
            "sys/fs/cgroup/cpu/docker/ab/memory.limit_in_bytes": "4096\n",
        },
        1 << 20,
    ),
    "version 1 without a limit": (
        {"proc/self/cgroup": "8:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{NO_LIMIT}\n"},
        MACHINE,
    ),
    "files of another form": ({"proc/self/cgroup": "?\n0\n::\n", "sys/fs/cgroup/memory.max": "a lot\n"}, MACHINE),
}


@pytest.mark.parametrize("name", TREES)
def test_the_least_limit_around_the_process_counts(name: str, tmp_path: Path) -> None:
    files, expected = TREES[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert own_memory(tmp_path) == expected
