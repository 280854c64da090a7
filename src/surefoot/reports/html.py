"""What all pages share: the shipped templates, figures as part of a page, and data for the page's script."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from surefoot.reports.pictures.style import LIGHT, Paper, pyplot
from surefoot.storage.disk import write_text

REPORT = "report.html"  #: the page of a directory of runs, or of a study
SCRIPTED = "; script-src 'unsafe-inline'; img-src data:"  #: what a page with the explorer may do, too

# Colours that occur nowhere else: in the page each becomes a variable that light and dark set.
_MARKED = Paper("page", background="#fdfcfb", ink="#010203", faint="#c9c8c7")
_MARKS = {"background": _MARKED.background, "ink": _MARKED.ink, "faint": _MARKED.faint}


def whole_page(body: str, name: str, what: str, lead: str, parts: dict[str, str], allowed: str = "") -> str:
    """A shipped body with its parts, below the head that all pages share; ``allowed``: what else it may load."""
    head = {
        "title": escape(f"{name}: {what}"),
        "heading": f"{escape(name)} <small class='quiet'>{what}</small>",
        "lead": lead,
        "style": shipped("page.css"),
        "allowed": allowed,
    }
    footer = f"Made by surefoot {escape(version('surefoot'))}; opens without a network."
    return filled("head.html", head) + filled(body, {**parts, "footer": footer})


def filled(name: str, parts: dict[str, str]) -> str:
    """A shipped page with its {{parts}} filled in, in one pass, so that a part may itself contain braces."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], shipped(name))


def shipped(name: str) -> str:
    return files("surefoot.reports").joinpath("templates", name).read_text(encoding="utf-8")


def encodable(text: str) -> str:
    """Text that UTF-8 can hold; half a character (an unpaired surrogate) becomes its number."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def page_data(value: Any) -> str:
    """JSON for a script element, which no text in it can end."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


# --- figures --------------------------------------------------------------------------------------------


def svg_of(draw: Callable[[Any, Paper], Any], name: str) -> str:
    """A figure as part of a page."""
    return inline(_marked(draw), name)


def _marked(draw: Callable[[Any, Paper], Any]) -> str:
    plt, context = pyplot(_MARKED)
    with context:
        figure = draw(plt, _MARKED)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue()


def inline(svg: str, name: str) -> str:
    """An SVG file as part of a page: no header, no fixed size, ids of its own, colours that follow the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head = rf'<svg viewBox="\1" role="img" aria-label="{escape(name)}">'
    svg = re.sub(r'<svg\b[^>]*?viewBox="([^"]*)"[^>]*>', head, svg, count=1)
    svg = re.sub(r'<g id="[a-zA-Z0-9_.]*_\d+">', "<g>", svg)
    mark = re.sub(r"\W", "", name)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r'(xlink:)?href="#([^"]+)"', rf'href="#{mark}-\2"', svg).replace("xlink:href", "href")
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", svg)
    svg = _recoloured(
        svg, {mark: f"var(--{name})" for name, mark in zip(("paper", "ink", "faint"), _MARKS.values(), strict=True)}
    )
    return re.sub(r"\n\s*", "\n", svg).strip()


def _recoloured(svg: str, colours: dict[str, str]) -> str:
    for mark, colour in colours.items():
        svg = re.sub(re.escape(mark), colour, svg, flags=re.IGNORECASE)
    return svg


def write_figure(draw: Callable[[Any, Paper], Any], name: str, folder: Path) -> str:
    """Write a figure as SVG and PNG; → the SVG for the page, which differs only in its colours."""
    plt, context = pyplot(LIGHT)
    with context:
        figure = draw(plt, LIGHT)
        figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(figure)
    svg = _marked(draw)
    write_text(folder / f"{name}.svg", _recoloured(svg, {mark: getattr(LIGHT, part) for part, mark in _MARKS.items()}))
    return inline(svg, name)
