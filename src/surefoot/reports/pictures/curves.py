"""Charts (:mod:`surefoot.reports.charts`) as figures. Matplotlib (extra ``plot``) is loaded when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.reports.charts import Chart, Curve, regret_lines, violations_chart
from surefoot.reports.pictures.style import Paper, literal, look_of, pyplot, save_figure
from surefoot.runs.ledger import Ledger


def chart_figure(plt: Any, chart: Chart, paper: Paper) -> Any:
    """One chart, sized so that its text can be read on a phone."""
    result, axes = plt.subplots(figsize=(5.6, 3.7), layout="constrained")
    _draw(axes, chart, paper)
    if chart.lines:
        result.legend(loc="outside lower center", ncols=min(4, len(chart.lines)), fontsize=9.5, columnspacing=1.2)
    else:
        axes.text(0.5, 0.5, "nothing to show", ha="center", transform=axes.transAxes)
    return result


def comparison(runs: Mapping[str, Sequence[Ledger]], title: str, path: Path, paper: Paper) -> Path:
    """Regret and violations over episodes, side by side; never one without the other.

    ``runs``: per agent, its runs over seeds. Lines are means over runs, bands their 95% bootstrap intervals.
    """
    agents, plt, context = dict(zip(runs, runs, strict=True)), *pyplot(paper)
    hint = "lower is better; below 0 only by breaking limits"
    regret = Chart("regret", "Cumulative regret", "regret", hint, regret_lines(runs, agents), y_scale="symlog")
    with context:
        figure, both = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
        for axes, chart in zip(both, (regret, violations_chart(runs, agents)), strict=True):
            _draw(axes, chart, paper)
            axes.axhline(0, color=paper.ink, linewidth=0.8, zorder=0)
            axes.set_title(f"{chart.title}\n", pad=4)
            axes.text(0, 1.02, chart.caption, transform=axes.transAxes, fontsize=9.5, alpha=0.8)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12.5)
        handles, labels = both[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return save_figure(plt, figure, path)


def _draw(axes: Any, chart: Chart, paper: Paper) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, SymmetricalLogLocator

    for n, line in enumerate(chart.lines):
        _draw_line(axes, line, n, paper)
    for name, level in chart.levels:
        axes.axhline(level, color=paper.ink, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        place = {"ha": "left", "va": "center", "transform": axes.get_yaxis_transform()}
        axes.text(1.01, level, literal(name).replace(" ", "\n"), fontsize=8.5, color=paper.ink, **place)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.y_scale == "symlog":
        axes.set_yscale("symlog", linthresh=10)
        least = min((value for line in chart.lines for value in line.low), default=0.0)
        axes.set_ylim(min(-2.0, 1.5 * least), top := max(12.0, axes.get_ylim()[1]))
        if top < 1000:  # between powers of ten a value could not be read off
            axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10, subs=(1, 2, 5)))
    elif chart.y_scale == "log" and any(value > 0 for line in chart.lines for value in line.high):
        axes.set_yscale("log", nonpositive="mask")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: axis_number(value)))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("episode")
    axes.set_ylabel(literal(chart.y))
    axes.margins(x=0.02)
    if chart.floor is not None:
        axes.set_ylim(bottom=chart.floor)
        axes.axhline(0, color=paper.ink, linewidth=0.8, zorder=0)


def axis_number(value: float) -> str:
    """A number on an axis: 0.01, 500, 20k, 3M, 1e+12."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1000 * unit:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def _draw_line(axes: Any, line: Curve, n: int, paper: Paper) -> None:
    colour, dashes, marker = look_of(line.agent, n) if line.agent else (paper.ink, (0, (1, 1)), "")
    if line.label != line.agent and line.agent:  # the same agent twice: its options differ, and so must its look
        colour, dashes, marker = look_of(line.label, n)
    axes.fill_between(line.episodes, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    every = max(1, len(line.episodes) // 6)
    axes.plot(
        line.episodes,
        line.middle,
        color=colour,
        linestyle=dashes,
        marker=marker,
        markevery=(n * every // 4, every),
        markersize=4.5,
        linewidth=1.8,
        label=literal(line.label),
    )
