"""Draws results.json for docs/benchmarks.md, on light and dark paper: ``python -m benchmarks.picture [results.json]``.

Above, how far plans of each size are from their floors; below, every aim and how far it is met.
"""

from __future__ import annotations

import math
import sys
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.page import read
from benchmarks.rows import Row, aim, duration, falls_short, has_aim, measured, plans
from surefoot.reports.pictures.style import DARK, LIGHT, Paper, pyplot, save_figure

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Okabe and Ito's colours, each with a marker of its own
OURS, NUMPY, BYTES, FLOPS = ("#0072B2", "o"), ("#8a8a8a", "s"), ("#009E73", "|"), ("#E69F00", "|")
HARD = ("#CC79A7", "|")
MET, MISSED = ("#0072B2", "o"), ("#D55E00", "X")
EDGES = (0.2, 50.0)  # of the lower panel: what lies beyond is drawn as an arrow at its edge


def write(found: dict[str, Any], folder: Path = IMAGES) -> list[Path]:
    pictures = ((LIGHT, "benchmarks.png"), (DARK, "benchmarks-dark.png"))
    return [draw(found, folder / name, paper) for paper, name in pictures]


def draw(found: dict[str, Any], path: Path, paper: Paper = LIGHT) -> Path:
    sizes, aims = plans(found["rows"]), [row for row in found["rows"] if has_aim(row) and row["value"] is not None]
    plt, context = pyplot(paper)
    heights = [0.72 * len(sizes) + 1.6, 0.31 * len(aims) + 0.9]
    with context:
        figure = plt.figure(figsize=(11, sum(heights)), layout="constrained")
        upper, lower = figure.subfigures(
            2, 1, height_ratios=heights
        )  # the long names below leave the width above alone
        _sizes(upper.subplots(), sizes)
        _aims(lower.subplots(), aims, paper)
        return save_figure(plt, figure, path)


# --- plans against their floors --------------------------------------------------------------------


def _sizes(axes: Any, rows: list[Row]) -> None:
    """A line per size: what its floors are made of, our time, plain NumPy's."""
    for y, row in enumerate(rows):
        floor, ours, plain = _floor(row), row["seconds"], row.get("numpy_seconds")
        axes.plot([floor, ours], [y, y], color=OURS[0], linewidth=6, alpha=0.25, solid_capstyle="butt", zorder=1)
        marks = [(HARD, row.get("hard_seconds")), (BYTES, row["bytes_seconds"]), (FLOPS, row["flops_seconds"])]
        for (colour, marker), seconds in marks:
            if seconds:  # the hard floor is often that of the bytes: it stands out above them
                length = 27 if colour == HARD[0] else 19
                axes.plot(seconds, y, marker, color=colour, markersize=length, markeredgewidth=3, zorder=2)
        axes.plot(ours, y, OURS[1], color=OURS[0], markersize=9, zorder=3)
        said = f"{duration(ours)} = {ours / floor:.2g} × its floor"
        axes.annotate(said, (ours, y), (0, -20), textcoords="offset points", ha="center", va="center", fontsize=9.5)
        if plain:
            axes.plot(plain, y, NUMPY[1], color=NUMPY[0], markersize=8, zorder=3)
            axes.annotate(duration(plain), (plain, y), (9, 0), textcoords="offset points", va="center", fontsize=9.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda seconds, _: duration(seconds))
    axes.margins(x=0.1)
    axes.set_ylim(len(rows) - 0.35, -0.5)
    axes.set_yticks(range(len(rows)), [row["size"] for row in rows])
    axes.set_ylabel("triplets per step\n× features")
    axes.grid(axis="y", visible=False)
    axes.set_title("Time of one plan, and of its bytes and operations alone at this machine's own rates\n\n\n")
    axes.legend(handles=_legend(), loc="lower left", bbox_to_anchor=(0, 1), fontsize=10, ncols=3, borderaxespad=0.3)


def _floor(row: Row) -> float:
    return float(max(row["bytes_seconds"], row["flops_seconds"]))


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    shown = (
        (BYTES, "its bytes, read from memory"),
        (FLOPS, "its operations, as one streamed product"),
        (HARD, "hard floor: in blocks that stay in the cache"),
        (OURS, "surefoot"),
        (NUMPY, "plain NumPy"),
    )
    return [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linestyle="",
            markersize=10 if marker == "|" else 8,
            markeredgewidth=3 if marker == "|" else 1,
            label=label,
        )
        for (colour, marker), label in shown
    ]


# --- aims -------------------------------------------------------------------------------------------------


def margin(row: Row) -> float:
    """How many times better than its aim a value is: 1 is just met, below 1 missed."""
    value, target, better = row["value"], row["target"], row["better"]
    if better == "within":
        return min(_ratio(value, target[0]), _ratio(target[1], value))
    return _ratio(target, value) if better == "lower" else _ratio(value, target)


def _ratio(over: float, under: float) -> float:
    if over == under:
        return 1.0
    return over / under if under > 0 else math.inf


def _aims(axes: Any, rows: list[Row], paper: Paper) -> None:
    """A line per aim: right of the middle line it is met."""
    low, high = EDGES
    axes.axvline(1, color=paper.ink, linewidth=1.2, zorder=1)
    axes.axvspan(low, 1, color=MISSED[0], alpha=0.08, linewidth=0, zorder=0)
    for y, row in enumerate(rows):
        missed = falls_short(row)
        colour, marker = MISSED if missed else MET
        at = margin(row)
        inside = min(max(at, low), high)
        axes.plot([1, inside], [y, y], color=colour, linewidth=2, alpha=0.8, zorder=2)
        marker = marker if inside == at else ">" if at > high else "<"
        axes.plot(inside, y, marker, color=colour, markersize=9, zorder=3, clip_on=False)
        said = f"{measured(row)}  (aim {aim(row)})" + ("  missed" if missed else "")
        axes.text(
            1.03, y, said, transform=axes.get_yaxis_transform(), va="center", fontsize=9,
            color=MISSED[0] if missed else paper.ink, weight="bold" if missed else "normal",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [textwrap.fill(row["name"], 90) for row in rows], fontsize=8.5)
    axes.set_xticks([0.2, 1, 5, 50], ["5 × worse", "the aim", "5 × better", "50 ×"])
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    short = sum(map(falls_short, rows))
    axes.set_title(f"Aims: {len(rows) - short} of {len(rows)} met")


if __name__ == "__main__":
    print(*write(read(*sys.argv[1:2])), sep="\n")
