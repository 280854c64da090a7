"""A small finished sweep, for the tests of the report and of the page."""

from __future__ import annotations

from pathlib import Path

from surefoot.sweeps.sweep import Contender, Spec, sweep

EPISODES, SEEDS = 300, (0, 1)


def make_runs(root: Path, world: str = "thermal/testing", agents: tuple[str, ...] = ("lsvi-new", "fallback")) -> Path:
    """A directory of runs: every agent with every seed; the first seed keeps plans."""
    sweep(Spec(world, [Contender(name) for name in agents], SEEDS, EPISODES), root, jobs=1, progress=False)
    return root
