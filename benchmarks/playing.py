"""Runs for measuring: one that Ctrl-C ended early must not be taken for a whole one."""

from __future__ import annotations

import surefoot as sf
from surefoot.agents.agent import Agent
from surefoot.runs.run import Run


def played(agent: Agent, world: sf.World, episodes: int, seed: int = 0, *, compiled: bool = True) -> Run:
    """``sf.run``, which keeps what is done on Ctrl-C; here that is no result."""
    run = sf.run(agent, world, episodes, seed, compiled=compiled, progress=False)
    if run.interrupted:
        raise KeyboardInterrupt
    return run
