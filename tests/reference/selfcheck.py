"""How demanding are the random problems? Run `python -m tests.reference.selfcheck` from the repository root.

Draws problems of both kinds, plays histories and prints how often the certified mask is mixed, how many pairs
fail by look-ahead alone, and whether the guarantees held. A differential test on problems where everything,
or nothing, is certified would prove little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .generate import random_history, random_paper_settings, random_paper_tables, random_tables
from .lsvi_new import Plan, Reference
from .scale import VIOLATION, cost_scales
from .tables import Tables

PROBLEMS = 200
FAILURE_PROBABILITY = 0.05


@dataclass
class Tally:
    """Counts over all problems of one kind."""

    problems: int = 0
    faulty: int = 0
    mixed: int = 0
    mixed_at_first: int = 0
    learned: int = 0
    look_ahead_only: int = 0
    inconsistent: int = 0
    event_failed: int = 0
    violating_steps: int = 0
    steps: int = 0
    replans: int = 0
    values: int = 0
    clipped: int = 0


def _is_mixed(tables: Tables, plan: Plan) -> bool:
    seed = tables.fallback_pairs()
    return len({ok for pair, ok in plan.certified.items() if pair not in seed}) == 2


def _event_holds(tables: Tables, plan: Plan) -> bool:
    """Spec 8, the cost event, for the plan at hand, but for rounding."""
    off = [VIOLATION / 2 * scale for scale in cost_scales(tables)]
    held = [
        lo - e <= c <= up + e
        for key in tables.triplets()
        for lo, c, up, e in zip(plan.lower[key], tables.cost(key), plan.upper[key], off, strict=True)
    ]
    for s, upper in plan.terminal_upper.items():
        cost = tables.terminal_cost(s)
        assert cost is not None
        lower = plan.terminal_lower[s]
        held += [lo - e <= c <= up + e for lo, c, up, e in zip(lower, cost, upper, off, strict=True)]
    return all(held)


def _violates(tables: Tables, cost: list[float] | None) -> bool:
    if cost is None:
        return False
    scales = cost_scales(tables)
    return any(c > lim.bound + VIOLATION * s for c, lim, s in zip(cost, tables.limits, scales, strict=True))


def _examine(tally: Tally, tables: Tables, agent: Reference, rng: np.random.Generator) -> None:
    before = sum(agent.plan.certified.values())
    tally.problems += 1
    tally.faulty += bool(tables.faults())
    tally.mixed_at_first += _is_mixed(tables, agent.plan)
    for episode in random_history(tables, agent, int(rng.integers(5, 41)), rng):
        costs = [tables.cost((e.h, e.s, e.a, e.s2)) for e in episode.steps]
        tally.steps += len(costs)
        tally.violating_steps += sum(_violates(tables, cost) for cost in costs)
        tally.violating_steps += _violates(tables, tables.terminal_cost(episode.steps[-1].s2))
    plan = agent.plan
    tally.mixed += _is_mixed(tables, plan)
    tally.learned += sum(plan.certified.values()) > before
    tally.inconsistent += not plan.consistent
    tally.event_failed += not _event_holds(tables, plan)
    tally.replans += agent.replans
    _count_clipped(tally, agent, plan)
    if plan.consistent:
        tally.look_ahead_only += sum(plan.condition1[pair] and not ok for pair, ok in plan.certified.items())


def _count_clipped(tally: Tally, agent: Reference, plan: Plan) -> None:
    """Values that sit at their cap say nothing about the value regression."""
    for (h, s), a in plan.action.items():
        cap = agent.H if agent.paper else agent.H - h
        tally.values += 1
        tally.clipped += plan.q[h, s, a] >= cap


def _survey(name: str, make: Callable[[int], tuple[Tables, Reference]]) -> Tally:
    began = time.perf_counter()
    tally = Tally()
    for seed in range(PROBLEMS):
        tables, agent = make(seed)
        _examine(tally, tables, agent, np.random.default_rng([seed, 3]))
    print(f"{name}: {tally.problems} problems, {tally.faulty} faulty, {time.perf_counter() - began:.1f} s")
    print(f"  mixed mask off the fallback: {tally.mixed} after the history, {tally.mixed_at_first} before")
    print(f"  certified more after the history: {tally.learned} problems")
    print(f"  pairs that fail by condition 2 alone: {tally.look_ahead_only}")
    print(f"  last plan: cost event failed {tally.event_failed} times, inconsistent {tally.inconsistent} times")
    print(f"  violating steps: {tally.violating_steps} of {tally.steps}; replans: {tally.replans}")
    print(f"  values clipped at their cap: {tally.clipped} of {tally.values}")
    return tally


def _certified(seed: int) -> tuple[Tables, Reference]:
    tables = random_tables(seed)
    return tables, Reference(tables, FAILURE_PROBABILITY)


def _paper(seed: int) -> tuple[Tables, Reference]:
    tables = random_paper_tables(seed)
    return tables, Reference(tables, FAILURE_PROBABILITY, profile="paper", **random_paper_settings(seed))


def main() -> int:
    """Print the survey; the exit code says whether the problems are demanding enough."""
    certified = _survey("certified", _certified)
    paper = _survey("paper", _paper)
    mixed = min(certified.mixed, paper.mixed)
    enough = mixed >= 0.3 * PROBLEMS and certified.look_ahead_only >= 50
    sound = certified.faulty == paper.faulty == 0
    print("demanding enough" if enough and sound else "NOT demanding enough")
    return 0 if enough and sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
