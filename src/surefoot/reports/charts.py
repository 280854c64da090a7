"""The charts of a report as plain numbers, from the ledgers of its runs, for figures and tables alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot import theory
from surefoot.errors import SurefootError
from surefoot.model.problem import Problem
from surefoot.plan.paper import usual_setting
from surefoot.reports.statistics import bands, csv_text
from surefoot.runs.ledger import Ledger

POINTS = 150  #: of a curve, on an even and on a logarithmic scale each
LIMITS_SHOWN = 4  #: charts of margins on the page; the others are written beside it


@dataclass(frozen=True)
class Curve:
    """A curve over episodes, with an interval if it is the mean of several runs."""

    label: str
    agent: str  # which decides its look; "" for a curve of no agent
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
    floor: float | None = None  # what is below is cut off, and the caption says so
    shown: bool = True  # on the page; otherwise only in files
    statistic: str = "mean"  # over runs, with its interval; or "least", or "value" if there is just one

    def csv(self) -> str:
        """The numbers as a table."""
        several = self.statistic == "mean"
        head = ["line", "episode", "runs", *(["low", "mean", "high"] if several else [self.statistic])]
        rows = []
        for line in self.lines:
            for episode, low, middle, high in zip(line.episodes, line.low, line.middle, line.high, strict=True):
                rows.append([line.label, episode, line.runs, *((low, middle, high) if several else (middle,))])
        return csv_text(head, rows)


def mean_curve(label: str, agent: str, at: NDArray[np.int64], rows: Sequence[NDArray[Any]]) -> Curve:
    """The curve of the mean over runs, point by point, with its interval."""
    low, mean, high = bands(np.stack(rows).astype(np.float64))
    points = [tuple(part.tolist()) for part in (low, mean, high)]
    return Curve(label, agent, tuple(at.tolist()), points[0], points[1], points[2], len(rows))


def least_curve(label: str, agent: str, at: NDArray[np.int64], rows: Sequence[NDArray[Any]]) -> Curve:
    """The smallest value over runs, for margins: a mean would hide the one run that breaks a limit."""
    worst = tuple(np.stack(rows).astype(np.float64).min(axis=0).tolist())
    return Curve(label, agent, tuple(at.tolist()), worst, worst, worst, len(rows))


def moments(episodes: int) -> NDArray[np.int64]:
    """Episodes, counted from 1, at which a curve is drawn: even and logarithmic steps together."""
    even, growing = np.linspace(1, episodes, POINTS), np.geomspace(1, episodes, POINTS)
    return np.unique(np.concatenate([even, growing]).round().astype(np.int64))


_Column = Callable[[Ledger, NDArray[np.int64]], NDArray[Any]]
_Groups = Mapping[str, Sequence[Ledger]]  # the runs of each label


def _lines(
    groups: _Groups, agents: Mapping[str, str], column: _Column, joined: Callable[..., Curve] = mean_curve
) -> tuple[Curve, ...]:
    lines = []
    for label, ledgers in groups.items():
        at = moments(min(len(ledger.episodes["regret"]) for ledger in ledgers))
        lines.append(joined(label, agents[label], at, [column(ledger, at) for ledger in ledgers]))
    return tuple(lines)


def _total(name: str) -> _Column:
    return lambda ledger, at: np.cumsum(ledger.episodes[name], dtype=np.float64)[at - 1]


def regret_lines(groups: _Groups, agents: Mapping[str, str]) -> tuple[Curve, ...]:
    return _lines(groups, agents, _total("regret"))


def regret_charts(lines: tuple[Curve, ...], bound: tuple[Curve | None, str]) -> tuple[Chart, Chart]:
    top = max(1e-9, max(max(line.high) for line in lines))
    gone = [line for line in lines if line.middle[-1] < -0.15 * top]
    cut = "".join(f" {line.label} ends at {line.middle[-1]:,.0f}.".replace(" -", " −") for line in gone)
    below = f" Cut off below: regret under 0 is earned by breaking limits.{cut}" if gone else ""
    kept = tuple(line for line in lines if line.middle[-1] > 0)
    slopes = [
        f"{line.label} {abs(round(slope, 2)) if abs(slope) < 0.005 else slope:.2f}"
        for line in kept
        if (slope := fitted_slope(line)) is not None
    ]
    fitted = f" Slope over the last decade: {', '.join(slopes)} (1: does not learn; 0.5: as √K)." if slopes else ""
    curve, reason = bound
    linear = Chart(
        name="regret",
        title="Cumulative regret",
        y="regret, in reward",
        caption=f"Best safe value − value of the policy played, summed over the episodes.{below}",
        lines=lines,
        log_x=False,
        floor=-0.15 * top if gone else None,
    )
    log = Chart(
        name="regret-loglog",
        title="Cumulative regret, log-log",
        y="regret, in reward",
        caption=f"The same on logarithmic scales.{fitted} {reason}",
        lines=kept if curve is None else (*kept, curve),
        y_scale="log",
    )
    return linear, log


def fitted_slope(line: Curve) -> float | None:
    """The slope of log total over log episodes, fitted to the last decade; None if a total is not above 0."""
    at, total = np.array(line.episodes), np.array(line.middle)
    late = at >= at[-1] / 10
    if at[-1] < 20 or (total[late] <= 0).any():
        return None
    return float(np.polyfit(np.log(at[late]), np.log(total[late]), 1)[0])


def value_chart(groups: _Groups, agents: Mapping[str, str], values: tuple[float, float]) -> Chart:
    return Chart(
        name="value",
        title="Value of the policy played",
        y="exact value",
        caption="The exact value of each episode's policy: the best safe value less its regret. Only breaking limits "
        "can exceed the best safe value.",
        lines=_lines(groups, agents, lambda ledger, at: values[1] - ledger.episodes["regret"][at - 1]),
        levels=(("fallback", float(values[0])), ("best safe", float(values[1]))),
    )


def violations_chart(groups: _Groups, agents: Mapping[str, str]) -> Chart:
    return Chart(
        name="violations",
        title="Cumulative violations",
        y="steps that broke a limit",
        caption="0 is the guarantee.",
        lines=_lines(groups, agents, _total("violations")),
        y_scale="symlog",
    )


def certified_chart(groups: _Groups, agents: Mapping[str, str]) -> Chart:
    planning = {label: runs for label, runs in groups.items() if any(len(run.plans["number"]) for run in runs)}
    return Chart(
        name="certified",
        title="Growth of the certified set",
        y="certified actions",
        caption="Actions, over all states and steps, that the plan of each episode allows.",
        lines=_lines(planning, agents, lambda ledger, at: ledger.episodes["certified"][at - 1]),
    )


def margin_charts(groups: _Groups, agents: Mapping[str, str]) -> list[Chart]:
    limits = [limit["name"] for limit in next(iter(groups.values()))[0].manifest["limits"]]
    charts: list[Chart] = []
    for name in limits:
        lines = _lines(groups, agents, lambda run, at: _least_since(run.episodes[f"margin_{name}"], at), least_curve)  # noqa: B023
        caption = "Smallest bound − true cost since the previous point, over all runs. Below 0 a limit is broken."
        title = f"Margin to the limit: {name}"
        levels = (("limit", 0.0),)
        charts.append(Chart(f"margin-{_file(name)}", title, "margin", caption, lines, levels, statistic="least"))
    tightest = sorted(range(len(charts)), key=lambda i: min(min(line.low) for line in charts[i].lines))[:LIMITS_SHOWN]
    return [replace(chart, shown=i in tightest) for i, chart in enumerate(charts)]


def _least_since(column: NDArray[Any], at: NDArray[np.int64]) -> NDArray[Any]:
    """(n,) the smallest value of the column between the previous moment and each moment."""
    least: NDArray[Any] = np.minimum.reduceat(column[: at[-1]], np.concatenate([[0], at[:-1]]))
    return least


def _file(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name).strip("-") or "limit"


def time_charts(marks: Mapping[str, Sequence[Any]], agents: Mapping[str, str]) -> list[Chart]:
    """Milliseconds per episode between two marks; no chart if no times were kept."""
    lines = []
    for label, runs in marks.items():
        if not runs:
            continue
        at = moments(min(int(run[-1][0]) for run in runs))
        at = at[at >= max(int(run[0][0]) for run in runs)]
        if len(at) < 2:
            continue
        edges = np.unique(np.geomspace(at[0], at[-1], 25).astype(np.int64))
        rows = []
        for run in runs:
            done, seconds = np.array(run, np.float64).T
            rows.append(1000 * np.diff(np.interp(edges, done, seconds)) / np.diff(edges))
        lines.append(mean_curve(label, agents[label], edges[1:], rows))
    if not lines:
        return []
    caption = "Wall time, which depends on the machine and is not part of the deterministic ledgers."
    return [Chart("time", "Time per episode", "milliseconds", caption, tuple(lines), y_scale="log")]


def paper_bound(problem: Problem, failure_probability: float, episodes: int) -> tuple[Curve | None, str]:
    """eq:regret as a function of K, with the paper's usual constants; or None and why not."""
    at = np.unique(np.geomspace(max(1, episodes // 1000), episodes, 25).astype(np.int64)).tolist()
    try:
        setting = usual_setting(problem, failure_probability)
        values = [theory.paper_constants(setting, k).regret_bound() for k in at]
    except SurefootError as error:
        return None, f"The paper's bound cannot be drawn here: {error.rule}{f' ({error.got})' if error.got else ''}."
    curve = tuple(values)
    vacuous = values[-1] >= episodes * problem.horizon
    note = "The paper's bound (eq:regret) is drawn" + (
        "; it exceeds what any policy can lose, and says nothing at this size." if vacuous else "."
    )
    return Curve("the paper's bound", "", tuple(at), curve, curve, curve), note
