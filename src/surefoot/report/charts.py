"""Charts (:mod:`surefoot.report.chart`) as matplotlib figures."""

from __future__ import annotations

from typing import Any

from surefoot.report.chart import Chart, Curve
from surefoot.report.style import Paper, literal, look_of


def chart_figure(plt: Any, chart: Chart, paper: Paper) -> Any:
    """One chart. Made for the width of a phone, so that its text can be read there."""
    result, axes = plt.subplots(figsize=(5.6, 3.7), layout="constrained")
    for n, line in enumerate(chart.lines):
        _draw(axes, line, n, paper)
    for name, level in chart.levels:
        axes.axhline(level, color=paper.ink, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        place = {"ha": "left", "va": "center", "transform": axes.get_yaxis_transform()}
        axes.text(1.01, level, literal(name).replace(" ", "\n"), fontsize=8.5, color=paper.ink, **place)
    _scales(axes, chart)
    axes.set_xlabel("episode")
    axes.set_ylabel(literal(chart.y))
    axes.margins(x=0.02)
    if chart.floor is not None:
        axes.set_ylim(bottom=chart.floor)
        axes.axhline(0, color=paper.ink, linewidth=0.8, zorder=0)
    if chart.lines:
        result.legend(loc="outside lower center", ncols=min(4, len(chart.lines)), fontsize=9.5, columnspacing=1.2)
    else:
        axes.text(0.5, 0.5, "nothing to show", ha="center", transform=axes.transAxes)
    return result


def _scales(axes: Any, chart: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if chart.log_x:
        axes.set_xscale("log")
    if chart.y_scale == "symlog":
        axes.set_yscale("symlog", linthresh=10)
        axes.set_ylim(-2, max(12.0, axes.get_ylim()[1]))
    elif chart.y_scale == "log" and any(value > 0 for line in chart.lines for value in line.high):
        axes.set_yscale("log", nonpositive="mask")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        axis.set_minor_formatter(NullFormatter())


def plain(value: float) -> str:
    """A number on an axis: 0.01, 500, 20k, 3M, 1e+12."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1000 * unit:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def _draw(axes: Any, line: Curve, n: int, paper: Paper) -> None:
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
