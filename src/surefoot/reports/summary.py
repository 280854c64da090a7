"""What several runs of one agent come to: one line of a table. Every number is a mean over the same runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.reports.statistics import Interval, interval


@dataclass(frozen=True)
class Summary:
    """Runs of one agent over several seeds."""

    label: str
    agent: str
    runs: int
    value: Interval  # of the last policy
    gap_closed: Interval  # from the fallback's value to the best safe one
    regret: Interval  # of a whole run
    violations: Interval  # steps of a whole run
    runs_with_violations: int
    cost_event: int | None  # runs in which it held; None for an agent without bounds
    guaranteed: bool
    promise: str
    seconds: Interval | None  # of a whole run; None where times are missing

    @property
    def broke_a_limit(self) -> bool:
        return self.runs_with_violations > 0


def summarise(label: str, manifests: Sequence[Mapping[str, Any]], seconds: Sequence[float] = ()) -> Summary:
    """From the manifests of finished runs, and the wall times that are known of them."""
    ends, first = [manifest["summary"] for manifest in manifests], manifests[0]
    return Summary(
        label=label,
        agent=str(first["agent"]),
        runs=len(ends),
        value=interval([end["last_value"] for end in ends]),
        gap_closed=interval([end["gap_closed"] for end in ends]),
        regret=interval([end["total_regret"] for end in ends]),
        violations=interval([end["violations"] for end in ends]),
        runs_with_violations=sum(end["violations"] > 0 for end in ends),
        cost_event=sum(bool(end["cost_event"]) for end in ends) if any(end["replans"] for end in ends) else None,
        guaranteed=all(manifest["guaranteed"] for manifest in manifests),
        promise=str(first["promise"]),
        seconds=interval(list(seconds)) if seconds else None,
    )
