"""How plots look: colours that a colour-blind person can tell apart, on light and on dark paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.checks import needed

# Okabe and Ito's palette, with a dash pattern and a marker each, so that no plot relies on colour alone.
LOOKS: dict[str, tuple[str, Any, str]] = {
    "lsvi-new": ("#0072B2", "-", "o"),
    "fallback": ("#8a8a8a", (0, (1, 1.5)), "s"),
    "ucrl-vtr": ("#D55E00", (0, (5, 2)), "^"),
    "slucb-qvi": ("#CC79A7", (0, (6, 2, 1, 2)), "D"),
    "oracle-shield": ("#009E73", (0, (3, 1)), "P"),
    "static-shield": ("#E69F00", (0, (2, 1)), "X"),
}
OTHERS = ("#009E73", "#E69F00", "#56B4E9", "#F0E442")
_THEIRS = (("-", "v"), ((0, (4, 1.5)), "<"), ((0, (6, 1.5, 1, 1.5)), ">"), ((0, (1.5, 1)), "P"))  # dashes and markers


@dataclass(frozen=True)
class Paper:
    """Colours of one background."""

    name: str
    background: str
    ink: str
    faint: str


LIGHT = Paper("light", "#ffffff", "#1f2328", "#d0d7de")
DARK = Paper("dark", "#0d1117", "#e6edf3", "#30363d")


def look_of(agent: str, others: int) -> tuple[str, Any, str]:
    """Colour, dash pattern and marker of an agent; unknown ones take turns."""
    turn = others % len(OTHERS)
    return LOOKS.get(agent, (OTHERS[turn], *_THEIRS[turn]))


def literal(text: str) -> str:
    """A name as matplotlib draws it literally: no formula between dollar signs, no character without a glyph."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text).replace("$", r"\$")


def parameters(paper: Paper) -> dict[str, Any]:
    """Matplotlib settings."""
    return {
        "figure.facecolor": paper.background,
        "axes.facecolor": paper.background,
        "savefig.facecolor": paper.background,
        "axes.edgecolor": paper.ink,
        "axes.labelcolor": paper.ink,
        "axes.titlecolor": paper.ink,
        "text.color": paper.ink,
        "xtick.color": paper.ink,
        "ytick.color": paper.ink,
        "axes.grid": True,
        "grid.color": paper.faint,
        "grid.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "surefoot",
    }


def save_figure(plt: Any, figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None  # the same picture, the same bytes
    figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
    return path


def pyplot(paper: Paper) -> tuple[Any, Any]:
    needed("matplotlib", "drawing", "'surefoot[plot]'").use("Agg")
    import matplotlib.pyplot as plt

    settings: Any = parameters(paper)
    return plt, plt.rc_context(settings)
