"""Random histories on a problem, recorded so that any implementation can be fed the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from .lsvi_new import Reference
from .tables import Action, State, Tables, TripletKey, dot


@dataclass(frozen=True)
class Step:
    """One observed step."""

    h: int
    s: State
    a: Action
    s2: State
    cost: list[float]
    features: list[float] | None = None  # of the cost, where the pair has several rows


@dataclass(frozen=True)
class Episode:
    """One episode; `terminal` is None when the last state has no cost features."""

    start: State
    steps: list[Step]
    terminal: tuple[State, list[float]] | None


class Agent(Protocol):
    """What an implementation must offer to be fed a history."""

    def begin_episode(self, start: Hashable) -> None: ...

    def observe(
        self, h: int, s: Hashable, a: Hashable, s2: Hashable, cost: list[float], features: Any = None
    ) -> None: ...

    def observe_terminal(self, s: Hashable, cost: list[float]) -> None: ...

    def end_episode(self) -> None: ...


def random_history(tables: Tables, driver: Reference | Generator, episodes: int, rng: Generator) -> Iterator[Episode]:
    """Play episodes against the truth and yield each one after it has ended.

    With a Reference as driver, actions are drawn from those its plan certifies, and it is fed as we go:
    compare plans between two yields. With a Generator, it draws the actions, from all that exist. Lazy.
    """
    for _ in range(episodes):
        start = tables.starts[int(rng.integers(len(tables.starts)))]
        plan = None
        if isinstance(driver, Reference):
            driver.begin_episode(start)
            plan = driver.plan
        steps: list[Step] = []
        s = start
        for h in range(tables.horizon - 1):
            choices = [a for a in tables.actions[h, s] if plan is None or plan.certified[h, s, a]]
            choices = choices or [tables.fallback[h, s]]  # certified by its bounds, the paper's way, it may not be
            chooser = driver if isinstance(driver, Generator) else rng
            a = choices[int(chooser.integers(len(choices)))]
            support = tables.successors[h, s, a]
            chances = np.array([tables.probability((h, s, a, s2)) for s2 in support])
            s2 = support[int(rng.choice(len(support), p=chances / chances.sum()))]
            steps.append(_measured(tables, (h, s, a, s2), rng))
            s = s2
        final = tables.terminal_cost(s)
        episode = Episode(start, steps, None if final is None else (s, _noisy(tables, final, rng)))
        if isinstance(driver, Reference):
            _record(driver, episode)
            driver.end_episode()
        yield episode


def feed(agent: Agent, episode: Episode) -> None:
    """Replay a recorded episode into any implementation."""
    agent.begin_episode(episode.start)
    _record(agent, episode)
    agent.end_episode()


def _record(agent: Agent, episode: Episode) -> None:
    for step in episode.steps:
        more = {} if step.features is None else {"features": step.features}
        agent.observe(step.h, step.s, step.a, step.s2, step.cost, **more)
    if episode.terminal is not None:
        agent.observe_terminal(*episode.terminal)


def _measured(tables: Tables, key: TripletKey, rng: Generator) -> Step:
    """The cost of a triplet; of a pair with several cost rows, of some point between them."""
    own = tables.measured_row(key)
    if own is not None:
        return Step(*key, _noisy(tables, tables.cost(own), rng))
    rows = np.array([tables.x[row] for row in tables.rows(key[:3])])
    x = (rng.dirichlet(np.ones(len(rows))) @ rows).tolist()
    return Step(*key, _noisy(tables, [dot(g, x) for g in tables.gamma[key[0]]], rng), x)


def _noisy(tables: Tables, cost: list[float], rng: Generator) -> list[float]:
    scales = [limit.noise for limit in tables.limits]
    return [c + scale * float(rng.standard_normal()) for c, scale in zip(cost, scales, strict=True)]
