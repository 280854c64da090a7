"""Sweeps for tests: small ones, their contents as bytes, and processes that can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from surefoot.sweeps.sweep import Contender, Spec, sweep

WORLD = "thermal/testing"
ROOT = Path(__file__).parents[1]


def small(episodes: int = 60, seeds: Any = (0, 3), **options: Any) -> Spec:
    """An agent twice, under two labels, and one that breaks limits."""
    agents = [
        Contender("lsvi-new"),
        Contender("lsvi-new", {"ideas": ["II", "III", "IV"]}, "blind"),
        Contender("ucrl-vtr"),
    ]
    return Spec(WORLD, options.pop("agents", agents), seeds, episodes, **options)


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the runs, and the manifest; not the wall times, not the locks."""
    files = [root / "sweep.json", *(root / "runs").rglob("*")]
    return {str(path.relative_to(root)): path.read_bytes() for path in files if path.is_file()}


def left_over(root: Path) -> list[str]:
    """What should be gone when all is done."""
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.name.startswith((".old", ".seed", ".surefoot")) or path.suffix in (".checkpoint", ".snapshots")
    ]


def command(*words: object) -> subprocess.Popen[str]:
    """``surefoot …`` in a process of its own, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "surefoot", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen[str], happened: Any, seconds: float = 120) -> None:
    """Until something is so; a process that ends before is an error."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_until(happened: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


EPISODES, SEEDS = 150, (0, 1)


def make_runs(root: Path, world: str = "thermal/testing", agents: tuple[str, ...] = ("lsvi-new", "fallback")) -> Path:
    """A directory of runs: every agent with every seed; the first seed keeps plans."""
    sweep(Spec(world, [Contender(name) for name in agents], SEEDS, EPISODES), root, jobs=1, progress=False)
    return root
