"""The price of safety: the regret of a learner that has to find out what is safe, over that of one that knows.

    price = Σ over runs of LSVI-NEW's regret / Σ over the same seeds of the oracle shield's regret

Both learn transitions; the oracle shield (:mod:`surefoot.exact.oracle_shield`) is told which pairs are truly safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEARNERS = ("lsvi-new", "lsvi-new-paper")
ORACLE = "oracle-shield"


@dataclass(frozen=True)
class Price:
    """Of one learner, beside the oracle shield, over the seeds that both have finished."""

    label: str
    seeds: int
    regret: float  # mean over seeds
    oracle: float | None  # likewise, of the oracle shield; None where it was not run
    lowest: float | None = None  # the ratio of the seed where it is least; None where an oracle has no regret
    highest: float | None = None

    @property
    def ratio(self) -> float | None:
        """The price; None without an oracle shield, or where it has no regret at all."""
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
    """Of every LSVI-NEW among the finished runs, given their manifests by label."""
    oracles = [label for label, manifests in runs.items() if manifests and manifests[0]["agent"] == ORACLE]
    known = _regrets(runs[oracles[0]]) if oracles else {}
    found = []
    for label, manifests in runs.items():
        if not manifests or manifests[0]["agent"] not in LEARNERS:
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
