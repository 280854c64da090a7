"""A chart as plain numbers: what a figure shows and a table holds."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """A curve over episodes: the median over seeds, and the range from the least to the most."""

    label: str
    agent: str  # whose look it has; "" for a curve that belongs to no agent
    episodes: tuple[int, ...]  # counted from 1
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]


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

    def csv(self) -> str:
        """The numbers as a table."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["line", "episode", "least", "median", "most"])
        for line in self.lines:
            for row in zip(line.episodes, line.low, line.middle, line.high, strict=True):
                rows.writerow([line.label, row[0], *(f"{value:.10g}" for value in row[1:])])
        return text.getvalue()
