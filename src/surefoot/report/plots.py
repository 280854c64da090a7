"""The only drawing. Matplotlib (extra ``plot``) is loaded when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError
from surefoot.report.style import LIGHT, Paper, look_of, parameters
from surefoot.report.summary import band
from surefoot.runs.ledger import Ledger
from surefoot.runs.run import Run


def comparison(runs: Mapping[str, Sequence[Run | Ledger]], title: str, path: Path, paper: Paper = LIGHT) -> Path:
    """Regret and violations over episodes, side by side; never one without the other.

    ``runs``: per agent, its runs over seeds. Lines are medians over seeds, bands go from the least to the most.
    """
    plt, context = pyplot(paper)
    with context:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
        for n, (agent, group) in enumerate(runs.items()):
            for axes, columns in ((left, [r.regret for r in group]), (right, [r.violations for r in group])):
                _draw_band(axes, columns, agent, n)
        for axes, label, best in (
            (left, "cumulative regret", "lower is better; below 0 only by breaking limits"),
            (right, "cumulative violations", "0 is the guarantee"),
        ):
            axes.set_xscale("log")
            axes.set_yscale("symlog", linthresh=10)
            axes.set_xlabel("episode")
            axes.set_title(f"{label.capitalize()}\n", pad=4)
            axes.text(0, 1.02, best, transform=axes.transAxes, fontsize=9.5, alpha=0.8)
            axes.axhline(0, color=paper.ink, linewidth=0.8, zorder=0)
            axes.margins(x=0.02)
        right.set_ylim(bottom=-3)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12.5)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return save_figure(plt, figure, path)


def _draw_band(axes: Any, columns: Sequence[Any], agent: str, n: int) -> None:
    colour, dashes, marker = look_of(agent, n)
    curve = band(columns)
    axes.fill_between(curve.episodes, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    every = max(1, len(curve.episodes) // 7)
    axes.plot(
        curve.episodes,
        curve.middle,
        color=colour,
        linestyle=dashes,
        marker=marker,
        markevery=(n * every // 4, every),
        markersize=5,
        linewidth=2,
        label=agent,
    )


def save_figure(plt: Any, figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None  # the same picture, the same bytes
    figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
    return path


def pyplot(paper: Paper) -> tuple[Any, Any]:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SurefootError("drawing needs matplotlib", fix="Install it with: pip install 'surefoot[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings: Any = parameters(paper)
    return plt, plt.rc_context(settings)
