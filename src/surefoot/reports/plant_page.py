"""The report of runs on a simulated plant: what each player earned and broke, and the cells that are certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.plan.plan import Plan
from surefoot.reports.charts import Chart, Curve
from surefoot.reports.html import (
    Section,
    broken_limits,
    chart_svg,
    encodable,
    figure,
    headline_table,
    sectioned,
    stamp,
    svg_of,
    whole_page,
)
from surefoot.reports.pictures.plant import PlantGrid, plant_figure
from surefoot.runs.plants import PlantRun
from surefoot.storage.disk import write_text, writing

SMOOTH = 50  #: points of a curve, about, each the mean of the episodes since the one before


def of_plants(runs: Any) -> dict[str, PlantRun] | None:
    """The runs by name if they are on a plant; None if none is."""
    if isinstance(runs, PlantRun):
        runs = {"learner" if runs.plan is not None else "controller": runs}
    if not isinstance(runs, Mapping) or not any(isinstance(run, PlantRun) for run in runs.values()):
        return None
    if not all(isinstance(run, PlantRun) for run in runs.values()):
        raise InvalidInput("a report is about plants or about worlds, not both", got=repr(list(runs)))
    if len({id(run.plant) for run in runs.values()}) > 1:
        raise InvalidInput("a report is about one plant", got=repr(list(runs)), fix="Write one for each plant.")
    return {str(name): run for name, run in runs.items()}


def write_plant_page(runs: Mapping[str, PlantRun], target: Path) -> Path:
    """One HTML file that opens from disk; an older one is replaced."""
    cells = "".join(_cells(name, run) for name, run in runs.items() if run.plan is not None)
    charts = "".join(figure(chart, chart_svg(chart)) for chart in (_reward(runs), _violations(runs)))
    sections = [
        Section("headline", "Headline", _headline(runs)),
        Section("certified", "What is certified", cells or "<p>None of these is a learner.</p>"),
        Section("charts", "Charts", f'<div class="grid">\n{charts}\n</div>'),
    ]
    plant = next(iter(runs.values())).plant
    with writing(target):
        lead = escape(f"{plant!r}. Limits: {', '.join(limit.name for limit in plant.limits)}.")
        write_text(target, encodable(whole_page(target.stem, "surefoot report", lead, sectioned(sections))))
    return target


def _headline(runs: Mapping[str, PlantRun]) -> str:
    legend = (
        "Reward: the mean of all episodes; at the end: of the last hundred. Violations are true ones, on the "
        "continuous state. All players met the same disturbances."
    )
    table = headline_table([_row(name, run) for name, run in runs.items()])
    return f"{table}<p class=quiet>{legend}</p>"


def _row(name: str, run: PlantRun) -> dict[str, str]:
    broke = int(run.violations.sum())
    return {
        "player": escape(name),
        "guarantee": stamp(not run.promise.startswith("no safety"), run.promise),
        "violations": broken_limits(broke > 0, f"{broke:,}") + f" <small>of {int(run.steps.sum()):,} steps</small>",
        "reward": f"{run.reward.mean():.4g}",
        "at the end": f"{run.last_reward():.4g}",
        "nearest to a limit": f"{float(run.margin.min()):.3g}",
        "episodes": f"{run.episodes:,}",
    }


def _cells(name: str, run: PlantRun) -> str:
    assert run.plan is not None
    return cells_figure(name, PlantGrid(run.plant.cells, run.plant.problem), run.plan, run.paths[-1:])


def cells_figure(name: str, grid: PlantGrid, plan: Plan, paths: Sequence[FloatArray]) -> str:
    """The certified cells of a plan with the last episode, as part of a page."""
    svg = svg_of(lambda plt, paper: plant_figure(plt, grid, plan, paper, None, None, paths), f"cells {escape(name)}")
    caption = (
        f"{escape(name)}: the stronger the blue of a cell, the more inputs are certified in all of it. "
        "The line is the last episode."
    )
    return f"<figure class=world><div class=scroll>{svg}</div><figcaption>{caption}</figcaption></figure>"


def _reward(runs: Mapping[str, PlantRun]) -> Chart:
    lines = tuple(_curve(name, run, run.reward, mean=True) for name, run in runs.items())
    most = max(-(-run.episodes // SMOOTH) for run in runs.values())
    caption = "One point per episode." if most == 1 else f"Each point is the mean of up to {most:,} episodes."
    return Chart("reward", "Reward of an episode", "reward", caption, lines, log_x=False)


def _violations(runs: Mapping[str, PlantRun]) -> Chart:
    lines = tuple(_curve(name, run, np.cumsum(run.violations), mean=False) for name, run in runs.items())
    caption = "Steps whose true cost broke a limit, or that ended in a forbidden state, so far."
    return Chart("violations", "Violations", "violations so far", caption, lines, log_x=False, y_scale="symlog")


def _curve(name: str, run: PlantRun, values: Any, *, mean: bool) -> Curve:
    """At most ``SMOOTH`` points: the mean of the episodes since the point before, or the value there."""
    parts = np.array_split(np.arange(run.episodes), min(SMOOTH, run.episodes))
    numbers: FloatArray = np.asarray(values, np.float64)
    middle = tuple(float(numbers[part].mean() if mean else numbers[part[-1]]) for part in parts)
    return Curve(name, name, tuple(int(part[-1]) + 1 for part in parts), middle, middle, middle)
