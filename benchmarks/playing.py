"""Runs for measuring: one that Ctrl-C ended early must not be taken for a whole one. Seeds run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

import surefoot as sf
from surefoot.agents.agent import Agent
from surefoot.runs.run import Run
from surefoot.threads import usable_threads

T = TypeVar("T")


def played(agent: Agent, world: sf.World, episodes: int, seed: int = 0, *, compiled: bool = True) -> Run:
    """``sf.run``, which keeps what is done on Ctrl-C; here that is no result."""
    run = sf.run(agent, world, episodes, seed, compiled=compiled, progress=False)
    if run.interrupted:
        raise KeyboardInterrupt
    return run


def by_seed(work: Callable[[int], T], seeds: Iterable[int]) -> list[T]:
    """What ``work`` finds with each seed, one process per core; not for anything that is timed."""
    with ProcessPoolExecutor(usable_threads(), get_context("spawn")) as pool:
        return list(pool.map(work, seeds))
