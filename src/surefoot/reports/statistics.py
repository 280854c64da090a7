"""The only statistics in tables and charts: the mean over runs with a bootstrap interval, and what follows from it.

    mean = (1/n) Σ xᵢ,      interval = the 2.5 % and 97.5 % quantiles of the mean over ``RESAMPLES`` draws of n runs out
                            of the n, with replacement

This is the percentile bootstrap over runs that Agarwal et al. (2021), *Deep Reinforcement Learning at the Edge of the
Statistical Precipice* (rliable), use; runs are independent, since each has its own seed. The draws are fixed, so that
the same runs give the same interval. A single run has no interval.

    price of safety = Σ over runs of LSVI-NEW's regret / Σ over the same seeds of the oracle shield's regret

Both learn transitions; the oracle shield (:mod:`surefoot.exact.oracle_shield`) knows which pairs are truly safe. So the
price is the regret of a learner that has to find out what is safe, divided by that of one that knows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.streams import stream

RESAMPLES = 2000
COVERED = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean over runs."""

    mean: float
    low: float  # of one run: the mean itself
    high: float
    runs: int

    def text(self, digits: int = 3, percent: bool = False) -> str:
        """0.95 [0.93, 0.97]; for one run, or runs that agree, only the number."""

        def one(value: float) -> str:
            shown = f"{value:.0%}" if percent else f"{value:,.{digits}f}"
            return (shown[1:] if shown.strip("-0.,%") == "" and shown.startswith("-") else shown).replace("-", "−")

        middle, low, high = one(self.mean), one(self.low), one(self.high)
        return middle if low == high == middle else f"{middle} [{low}, {high}]"


def mean_over_runs(values: Sequence[float]) -> Mean:
    """Of a number per run."""
    low, mean, high = bands(np.asarray(values, np.float64)[:, None])
    return Mean(float(mean[0]), float(low[0]), float(high[0]), len(values))


def bands(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(low, mean, high), each (T,), of a table (n, T) with a row per run."""
    mean = table.mean(axis=0)
    if len(table) == 1:
        return mean, mean, mean
    tail = 50 * (1 - COVERED)
    low, high = np.percentile(_weights(len(table)) @ table, [tail, 100 - tail], axis=0)
    # A mean of equal numbers may differ from them in its last digit.
    return np.minimum(low, mean), mean, np.maximum(high, mean)


@cache
def _weights(n: int) -> NDArray[np.float64]:
    """(RESAMPLES, n) the share of the draws that each run gets."""
    return stream(0, "bootstrap").multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def csv_text(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, with real numbers to ten digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([f"{each:.10g}" if isinstance(each, float) else each for each in row] for row in rows)
    return text.getvalue()


# --- a line of a table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Runs of one agent over several seeds."""

    label: str
    agent: str
    runs: int
    value: Mean  # of the last policy
    gap_closed: Mean  # from the fallback's value to the best safe one
    regret: Mean  # of a whole run
    violations: Mean  # steps of a whole run
    runs_with_violations: int
    cost_event: int | None  # runs in which it held; None for an agent without bounds
    guaranteed: bool
    promise: str
    seconds: Mean | None  # of a whole run; None where times are missing

    @property
    def broke_a_limit(self) -> bool:
        return self.runs_with_violations > 0


def summarise(label: str, manifests: Sequence[Mapping[str, Any]], seconds: Sequence[float] = ()) -> Summary:
    """Summarise finished runs from their manifests and, if known, their wall times."""
    ends, first = [manifest["summary"] for manifest in manifests], manifests[0]
    return Summary(
        label=label,
        agent=str(first["agent"]),
        runs=len(ends),
        value=mean_over_runs([end["last_value"] for end in ends]),
        gap_closed=mean_over_runs([end["gap_closed"] for end in ends]),
        regret=mean_over_runs([end["total_regret"] for end in ends]),
        violations=mean_over_runs([end["violations"] for end in ends]),
        runs_with_violations=sum(end["violations"] > 0 for end in ends),
        cost_event=sum(bool(end["cost_event"]) for end in ends) if any(end["replans"] for end in ends) else None,
        guaranteed=all(manifest["guaranteed"] for manifest in manifests),
        promise=str(first["promise"]),
        seconds=mean_over_runs(list(seconds)) if seconds else None,
    )


# --- the price of safety --------------------------------------------------------------------------------

_LEARNERS = ("lsvi-new", "lsvi-new-paper")
_ORACLE = "oracle-shield"


@dataclass(frozen=True)
class Price:
    """The price of one learner against the oracle shield, over the seeds that both have finished."""

    label: str
    seeds: int
    regret: float  # mean over seeds
    oracle: float | None  # likewise, of the oracle shield; None where it was not run
    lowest: float | None = None  # the ratio of the seed where it is least; None where an oracle has no regret
    highest: float | None = None

    @property
    def ratio(self) -> float | None:
        """The price; None without an oracle shield, or if it has no regret at all."""
        return None if self.oracle is None or self.oracle <= 0 else self.regret / self.oracle

    def __str__(self) -> str:
        if self.oracle is None:
            return f"{self.label}: not measured; add the agent oracle-shield to the comparison"
        text = f"{self.label}: regret {self.regret:,.4g} where the oracle shield has {self.oracle:,.4g}"
        if self.ratio is None:
            return f"{text}: all of it is the price"
        text += f", {self.ratio:,.3g} times as much"
        if self.lowest is not None and self.seeds > 1:
            text += f" ({self.lowest:,.3g} to {self.highest:,.3g} by seed)"
        return text


def prices(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[Price, ...]:
    """The prices of every LSVI-NEW among the finished runs, given their manifests by label."""
    oracles = [label for label, manifests in runs.items() if manifests and manifests[0]["agent"] == _ORACLE]
    known = _regrets(runs[oracles[0]]) if oracles else {}
    found = []
    for label, manifests in runs.items():
        if not manifests or manifests[0]["agent"] not in _LEARNERS:
            continue
        own = _regrets(manifests)
        both = [seed for seed in own if seed in known]
        if not both:
            found.append(Price(label, len(own), sum(own.values()) / len(own), None))
            continue
        ratios = [own[seed] / known[seed] for seed in both if known[seed] > 0]
        whole = len(ratios) == len(both)
        ends = (min(ratios), max(ratios)) if whole else (None, None)
        means = (sum(table[seed] for seed in both) / len(both) for table in (own, known))
        found.append(Price(label, len(both), *means, *ends))
    return tuple(found)


def _regrets(manifests: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    return {int(each["seed"]): float(each["summary"]["total_regret"]) for each in manifests}
