"""What a report says, before any drawing: a headline per agent and charts as plain numbers.

The page, the figures (SVG, PNG) and the tables (CSV) are all made from these, so that they cannot disagree.
:func:`read_sweep` takes the directory of a sweep (:mod:`surefoot.sweeps.sweep`) and reads its finished runs only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import SurefootError
from surefoot.report.bound import paper_bound
from surefoot.report.chart import Chart, Curve
from surefoot.report.price import Price, prices
from surefoot.report.summary import Summary, summarise
from surefoot.runs.ledger import Ledger
from surefoot.sweeps.folder import Folder, open_folder
from surefoot.worlds import registry as worlds
from surefoot.worlds.world import World

POINTS = 150  #: of a curve, on an even and on a logarithmic scale each
LIMITS_SHOWN = 4  #: charts of margins on the page; the others are written beside it


@dataclass(frozen=True)
class Headline(Summary):
    """One agent, all its finished runs together."""

    slope: float | None  # of log regret over log episodes, in the last decade; None where that has no meaning


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page says about a directory of runs."""

    folder: Folder
    world: World
    episodes: int
    seeds: tuple[int, ...]
    fallback_value: float
    best_value: float
    headlines: tuple[Headline, ...]
    charts: tuple[Chart, ...]
    prices: tuple[Price, ...]  # of safety
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        return str(self.folder.manifest["world"]["name"])

    @property
    def description(self) -> str:
        return worlds.family_of(self.name).description


def read_sweep(directory: str | Path) -> Report:
    """The finished runs of a directory, summed up."""
    folder = open_folder(directory)
    done: dict[str, list[tuple[str, Ledger]]] = {}
    for place in folder.finished():
        done.setdefault(place.label, []).append((place.key, folder.ledger(place)))
    if not done:
        fix = f"Go on with: surefoot resume {folder.root}"
        raise SurefootError("no run is finished yet", where=str(folder.root), fix=fix)
    world = folder.world()
    groups = {label: [ledger for _, ledger in runs] for label, runs in done.items()}
    agents = {each["label"]: each["agent"] for each in folder.manifest["agents"]}
    times = folder.times()
    seconds = {label: [times[key]["seconds"] for key, _ in runs if key in times] for label, runs in done.items()}
    summary = next(iter(groups.values()))[0].manifest["summary"]
    missing = len(folder.places()) - sum(map(len, groups.values()))
    regret = _regret(groups, agents)
    bound = paper_bound(world.problem, _failure_probability(groups), folder.manifest["episodes"])
    marks = {
        label: [times[key]["marks"] for key, _ in runs if key in times and times[key]["marks"]]
        for label, runs in done.items()
    }
    values = summary["fallback_value"], summary["best_value"]
    return Report(
        folder=folder,
        world=world,
        episodes=int(folder.manifest["episodes"]),
        seeds=tuple(folder.manifest["seeds"]),
        fallback_value=float(values[0]),
        best_value=float(values[1]),
        headlines=tuple(_headline(line, groups[line.label], seconds[line.label]) for line in regret),
        charts=(
            *_regret_charts(regret, bound),
            _value_chart(groups, agents, values),
            _violations_chart(groups, agents),
            _certified_chart(groups, agents),
            *_margin_charts(groups, agents),
            *_time_charts(marks, agents),
        ),
        prices=prices({label: [ledger.manifest for ledger in ledgers] for label, ledgers in groups.items()}),
        notes=(f"{missing} of {len(folder.places())} runs are not finished and are left out.",) if missing else (),
    )


def _failure_probability(groups: Mapping[str, Sequence[Ledger]]) -> float:
    for ledgers in groups.values():
        value = ledgers[0].manifest["constants"].get("failure_probability")
        if ledgers[0].manifest["guaranteed"] and isinstance(value, float):
            return value
    return 0.05


# --- headlines ------------------------------------------------------------------------------------------


def _headline(line: Curve, ledgers: Sequence[Ledger], seconds: Sequence[float]) -> Headline:
    summary = summarise(line.label, [ledger.manifest for ledger in ledgers], seconds)
    return Headline(**vars(summary), slope=fitted_slope(line))


# --- charts ---------------------------------------------------------------------------------------------


def moments(episodes: int) -> NDArray[np.int64]:
    """Episodes, counted from 1, at which a curve is drawn: even and logarithmic steps together."""
    even, growing = np.linspace(1, episodes, POINTS), np.geomspace(1, episodes, POINTS)
    return np.unique(np.concatenate([even, growing]).round().astype(np.int64))


def band(label: str, agent: str, at: NDArray[np.int64], rows: Sequence[NDArray[Any]]) -> Curve:
    table = np.stack(rows).astype(np.float64)
    low, middle, high = table.min(axis=0), np.median(table, axis=0), table.max(axis=0)
    return Curve(label, agent, tuple(at.tolist()), tuple(low.tolist()), tuple(middle.tolist()), tuple(high.tolist()))


Column = Callable[[Ledger, NDArray[np.int64]], NDArray[Any]]


def _lines(groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str], column: Column) -> tuple[Curve, ...]:
    lines = []
    for label, ledgers in groups.items():
        at = moments(min(len(ledger.episodes["regret"]) for ledger in ledgers))
        lines.append(band(label, agents[label], at, [column(ledger, at) for ledger in ledgers]))
    return tuple(lines)


def _total(name: str) -> Column:
    return lambda ledger, at: np.cumsum(ledger.episodes[name], dtype=np.float64)[at - 1]


def _regret(groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str]) -> tuple[Curve, ...]:
    return _lines(groups, agents, _total("regret"))


def _regret_charts(lines: tuple[Curve, ...], bound: tuple[Curve | None, str]) -> tuple[Chart, Chart]:
    top = max(1e-9, max(max(line.high) for line in lines))
    gone = [line for line in lines if line.low[-1] < -0.15 * top]
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
        caption=f"Best safe value − value of the policy played, summed. Medians over seeds; bands: the range.{below}",
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
    """Of log total over log episodes, by least squares over the last decade; None where a total is not above 0."""
    at, total = np.array(line.episodes), np.array(line.middle)
    late = at >= at[-1] / 10
    if at[-1] < 20 or (total[late] <= 0).any():
        return None
    return float(np.polyfit(np.log(at[late]), np.log(total[late]), 1)[0])


def _value_chart(
    groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str], values: tuple[float, float]
) -> Chart:
    return Chart(
        name="value",
        title="Value of the policy played",
        y="exact value",
        caption="What each episode's policy is worth. Above the best safe value only by breaking limits.",
        lines=_lines(groups, agents, lambda ledger, at: ledger.episodes["value"][at - 1]),
        levels=(("fallback", float(values[0])), ("best safe", float(values[1]))),
    )


def _violations_chart(groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str]) -> Chart:
    return Chart(
        name="violations",
        title="Cumulative violations",
        y="steps that broke a limit",
        caption="0 is the guarantee.",
        lines=_lines(groups, agents, _total("violations")),
        y_scale="symlog",
    )


def _certified_chart(groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str]) -> Chart:
    planning = {label: runs for label, runs in groups.items() if any(len(run.plans["number"]) for run in runs)}
    return Chart(
        name="certified",
        title="Growth of the certified set",
        y="certified actions",
        caption="Actions, over all states and steps, that the plan of each episode allows.",
        lines=_lines(planning, agents, lambda ledger, at: ledger.episodes["certified"][at - 1]),
    )


def _margin_charts(groups: Mapping[str, Sequence[Ledger]], agents: Mapping[str, str]) -> list[Chart]:
    limits = [limit["name"] for limit in next(iter(groups.values()))[0].manifest["limits"]]
    charts: list[Chart] = []
    for name in limits:
        lines = _lines(groups, agents, lambda ledger, at: _least_since(ledger.episodes[f"margin_{name}"], at))  # noqa: B023
        caption = "Smallest bound − true cost since the point before. Below 0 the limit is broken."
        title = f"Margin to the limit: {name}"
        charts.append(Chart(f"margin-{_file(name)}", title, "margin", caption, lines, levels=(("limit", 0.0),)))
    tightest = sorted(range(len(charts)), key=lambda i: min(min(line.low) for line in charts[i].lines))[:LIMITS_SHOWN]
    return [
        chart if i in tightest else Chart(**{**vars(chart), "shown": False}) for i, chart in enumerate(charts)
    ]  # fmt: skip


def _least_since(column: NDArray[Any], at: NDArray[np.int64]) -> NDArray[Any]:
    """(n,) the least of the column between the moment before and each moment."""
    least: NDArray[Any] = np.minimum.reduceat(column[: at[-1]], np.concatenate([[0], at[:-1]]))
    return least


def _file(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name).strip("-") or "limit"


def _time_charts(marks: Mapping[str, Sequence[Any]], agents: Mapping[str, str]) -> list[Chart]:
    """Milliseconds per episode between two marks; none where no times were kept."""
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
        lines.append(band(label, agents[label], edges[1:], rows))
    if not lines:
        return []
    caption = "Wall time, kept apart from the ledgers, which are deterministic; it depends on the machine."
    return [Chart("time", "Time per episode", "milliseconds", caption, tuple(lines), y_scale="log")]
