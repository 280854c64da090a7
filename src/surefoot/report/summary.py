"""What several runs of one agent come to: one line of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Runs of one agent over several seeds."""

    label: str
    agent: str
    runs: int
    value: float  # of the last policy, mean over runs
    gap_closed: float  # from the fallback's value to the best safe one, mean over runs
    regret: float  # total, mean over runs
    violations: int  # steps, all runs together
    runs_with_violations: int
    cost_event: int | None  # runs in which it held; None for an agent without bounds
    guaranteed: bool
    promise: str
    seconds: float | None  # mean over runs; None where times are missing


def summarise(label: str, manifests: Sequence[Mapping[str, Any]], seconds: Sequence[float] = ()) -> Summary:
    """From the manifests of finished runs, and the wall times that are known of them."""
    ends, first = [manifest["summary"] for manifest in manifests], manifests[0]
    return Summary(
        label=label,
        agent=str(first["agent"]),
        runs=len(ends),
        value=float(np.mean([end["last_value"] for end in ends])),
        gap_closed=float(np.mean([end["gap_closed"] for end in ends])),
        regret=float(np.mean([end["total_regret"] for end in ends])),
        violations=sum(int(end["violations"]) for end in ends),
        runs_with_violations=sum(end["violations"] > 0 for end in ends),
        cost_event=sum(bool(end["cost_event"]) for end in ends) if any(end["replans"] for end in ends) else None,
        guaranteed=all(manifest["guaranteed"] for manifest in manifests),
        promise=str(first["promise"]),
        seconds=float(np.mean(seconds)) if seconds else None,
    )
