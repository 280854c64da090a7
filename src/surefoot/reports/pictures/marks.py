"""Shapes that all pictures of worlds share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.reports.classes import Class, View
from surefoot.reports.pictures.style import Paper

# Okabe and Ito's blue, orange, vermilion and purple, and grey for what is forbidden; each with a hatching of its own.
FILLS = {
    Class.CERTIFIED: "#0072B2",
    Class.OPEN: "#E69F00",
    Class.UNSAFE: "#D55E00",
    Class.WRONG: "#CC79A7",
    Class.FORBIDDEN: "#808080",
}
HATCHES = {Class.CERTIFIED: "", Class.OPEN: "////", Class.UNSAFE: "xxxx", Class.WRONG: "oo", Class.FORBIDDEN: "++"}
PATH = "#009E73"  # bluish green


def box(axes: Any, x: float, y: float, width: float, height: float, kind: int, wash: float | None = None) -> Any:
    """A rectangle around (x, y), coloured and hatched by its class; ``wash``: how opaque its colour is.

    Colour and hatching are separate rectangles, because SVG and PNG draw one that has both differently.
    """
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    usual = 1.0 if kind == Class.CERTIFIED else 0.2
    place: dict[str, Any] = {"xy": (x - width / 2, y - height / 2), "width": width, "height": height}
    colour = to_rgba(FILLS[Class(kind)], usual if wash is None else wash)
    axes.add_patch(Rectangle(**place, facecolor=colour, edgecolor="none"))
    frame = Rectangle(**place, **{**looks(kind), "facecolor": "none"})
    axes.add_patch(frame)
    return frame


def looks(kind: int) -> dict[str, Any]:
    """What matplotlib's patches take: plain colour for certified, hatching for the rest."""
    which = Class(kind)
    fill = FILLS[which] if which == Class.CERTIFIED else "none"
    return {"facecolor": fill, "edgecolor": FILLS[which], "hatch": HATCHES[which], "linewidth": 0.9}


def ink_on(kind: int, paper: Paper) -> str:
    """A colour of text that can be read on a box."""
    return "#ffffff" if kind == Class.CERTIFIED else paper.ink


def plate(paper: Paper) -> dict[str, Any]:
    """A background for text that lies on a hatching."""
    return {"facecolor": paper.background, "edgecolor": "none", "pad": 1.2, "alpha": 0.85}


def legend(
    figure: Any,
    view: View,
    more: Iterable[Any] = (),
    columns: int = 4,
    shown: Iterable[int] | None = None,
    names: Mapping[Class, str] | None = None,
) -> None:
    """The classes in the picture, and whatever else it shows. ``shown``: these classes; by default all that occur."""
    from matplotlib.patches import Patch

    present = view.present if shown is None else {int(kind) for kind in shown}
    handles: list[Any] = [
        Patch(label=(names or view.names)[kind], **looks(kind)) for kind in Class if int(kind) in present
    ]
    handles += list(more)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(columns, len(handles)), fontsize=9.5, handlelength=2.2
    )


def path_handle(label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=PATH, marker="o", markersize=5, linewidth=2.2, label=label)


def draw_path(axes: Any, xs: list[float], ys: list[float], paper: Paper) -> None:
    """A line that stands out on every class, with a ring at every step."""
    from matplotlib.patheffects import Normal, Stroke

    line = axes.plot(xs, ys, color=PATH, marker="o", markersize=5, linewidth=2.2, zorder=5)[0]
    line.set_path_effects([Stroke(linewidth=4.6, foreground=paper.background), Normal()])


def title_of(view: View, what: str) -> str:
    """The world's id, what the picture is of, and how much is certified."""
    count = view.count()
    safe = count[Class.CERTIFIED] + count[Class.OPEN]
    whose = "certified" if view.learned else "are the fallback’s"
    share = f"{count[Class.CERTIFIED]:,} of {safe:,} truly safe actions {whose}"
    name = f"{view.world.name}: " if view.world.name else ""
    return f"{name}{what}\n{share}"
