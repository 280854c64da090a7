"""Summary statistics over several runs of one agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.model.graph import FloatArray, IntArray
from surefoot.runs.run import Run


@dataclass(frozen=True)
class Summary:
    """Runs of one agent over several seeds."""

    agent: str
    runs: int
    episodes: int
    value: float  # of the last policy, mean over runs
    gap_closed: float  # from the fallback's value to the best safe one, mean over runs
    total_regret: float  # mean over runs
    violations: int  # steps, all runs together
    runs_with_violations: int
    cost_event: int | None  # runs in which it held; None for an agent without bounds
    promise: str
    guaranteed: bool
    replans: float  # mean over runs
    seconds: float  # mean over runs


def summarise(runs: Sequence[Run]) -> Summary:
    """One line of a table."""
    first = runs[0]
    with_bounds = bool(first.plans_table.number)
    return Summary(
        agent=first.manifest["agent"],
        runs=len(runs),
        episodes=first.episodes,
        value=float(np.mean([run.value[-1] for run in runs])),
        gap_closed=float(np.mean([run.gap_closed for run in runs])),
        total_regret=float(np.mean([run.regret.sum() for run in runs])),
        violations=int(sum(run.violations.sum() for run in runs)),
        runs_with_violations=sum(bool(run.violations.any()) for run in runs),
        cost_event=sum(run.cost_event for run in runs) if with_bounds else None,
        promise=first.promise,
        guaranteed=first.guaranteed,
        replans=float(np.mean([run.replans for run in runs])),
        seconds=float(np.mean([run.seconds for run in runs])),
    )


def summarise_ledgers(label: str, manifests: Sequence[Mapping[str, Any]], seconds: Sequence[float]) -> Summary:
    """The same from the manifests of ledgers, and the wall time of each run, NaN where it is not known."""
    rows = [manifest["summary"] for manifest in manifests]
    first = manifests[0]
    return Summary(
        agent=label,
        runs=len(rows),
        episodes=int(first["done"]),
        value=float(np.mean([row["last_value"] for row in rows])),
        gap_closed=float(np.mean([row["gap_closed"] for row in rows])),
        total_regret=float(np.mean([row["total_regret"] for row in rows])),
        violations=int(sum(row["violations"] for row in rows)),
        runs_with_violations=sum(row["violations"] > 0 for row in rows),
        cost_event=sum(row["cost_event"] for row in rows) if rows[0]["replans"] else None,
        promise=str(first["promise"]),
        guaranteed=all(manifest["guaranteed"] for manifest in manifests),
        replans=float(np.mean([row["replans"] for row in rows])),
        seconds=float(np.mean(seconds)),
    )


@dataclass(frozen=True, eq=False)
class Band:
    """A curve over episodes: the middle of several runs, and their range."""

    episodes: IntArray  # (n,) 1-based
    low: FloatArray
    middle: FloatArray
    high: FloatArray


def band(columns: Sequence[FloatArray | IntArray], points: int = 400) -> Band:
    """Running totals of a column per run, at evenly spaced points of a log scale: least, median, most."""
    k = len(columns[0])
    at = np.unique(np.geomspace(1, k, min(points, k)).astype(np.int64))
    totals = np.stack([np.cumsum(column, dtype=np.float64)[at - 1] for column in columns])
    return Band(at, totals.min(axis=0), np.median(totals, axis=0), totals.max(axis=0))
