"""A chart as plain numbers: what a figure shows and a table holds."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """A curve over episodes, with an interval where it stands for several runs."""

    label: str
    agent: str  # whose look it has; "" for a curve that belongs to no agent
    episodes: tuple[int, ...]  # counted from 1
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]
    runs: int = 1


@dataclass(frozen=True)
class Chart:
    """Everything that a figure shows."""

    name: str  # of its files
    title: str
    y: str
    caption: str
    lines: tuple[Curve, ...]
    levels: tuple[tuple[str, float], ...] = ()  # horizontal lines
    log_x: bool = True
    y_scale: str = "linear"  # "linear", "log" or "symlog"
    floor: float | None = None  # what lies below is cut off, and the caption says so
    shown: bool = True  # on the page; if not, only in files
    statistic: str = "mean"  # over runs, with its interval; or "least", or "value" of a single course of events

    def csv(self) -> str:
        """The numbers as a table."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        columns = ["low", "mean", "high"] if self.statistic == "mean" else [self.statistic]
        rows.writerow(["line", "episode", "runs", *columns])
        for line in self.lines:
            numbers = zip(line.low, line.middle, line.high, strict=True)
            for episode, row in zip(line.episodes, numbers, strict=True):
                shown = row if self.statistic == "mean" else row[1:2]
                rows.writerow([line.label, episode, line.runs, *(f"{value:.10g}" for value in shown)])
        return text.getvalue()
