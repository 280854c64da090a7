"""What all pages share: the shipped templates, figures as part of a page, and data for the page's script."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from surefoot.reports.charts import Chart
from surefoot.reports.pictures.curves import chart_figure
from surefoot.reports.pictures.style import LIGHT, Paper, pyplot
from surefoot.storage.disk import write_text

REPORT = "report.html"  #: the page of a directory of runs, or of a study
SCRIPTS = "; script-src 'unsafe-inline'; img-src data:"  #: what a page with the explorer may do, too

# Colours that occur nowhere else: in the page each becomes a variable, set by light or dark mode.
_MARKED = Paper("page", background="#fdfcfb", ink="#010203", faint="#c9c8c7")


class Section(NamedTuple):
    """A part of a page that the navigation leads to."""

    name: str  # its id; capitalised, what the navigation calls it
    heading: str
    body: str


def sectioned(sections: Sequence[Section]) -> str:
    """The body of a page: its navigation, and one section after the other."""
    links = "".join(f'<a href="#{each.name}">{each.name.capitalize()}</a>' for each in sections)
    parts = "".join(
        f'<section id="{each.name}">\n<h2>{each.heading}</h2>\n{each.body}\n</section>\n' for each in sections
    )
    return f'<nav aria-label="Parts of this report">{links}</nav>\n<main>\n{parts}</main>'


def whole_page(name: str, what: str, lead: str, body: str, script: str = "", allowed: str = "") -> str:
    """A page. ``script``: from :func:`scripted`; ``allowed``: what else it may load."""
    parts = {
        "title": escape(f"{name}: {what}"),
        "heading": f"{escape(name)} <small class='quiet'>{what}</small>",
        "lead": lead,
        "style": shipped("page.css"),
        "allowed": allowed,
        "body": body,
        "footer": f"Made by surefoot {escape(version('surefoot'))}; opens without a network.",
        "script": script,
    }
    return filled("page.html", parts)


def scripted(data: Any, code: str = "") -> str:
    """The end of a page with the explorer: its data and its script, which is in the page unless ``code`` loads it."""
    code = code or f"<script>\n{shipped('page.js')}\n</script>"
    tip = '<div id="tip" role="tooltip" hidden></div>'
    return f'{tip}\n<script type="application/json" id="data">{page_data(data)}</script>\n{code}'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[str] = (), name: str = "", more: str = ""
) -> str:
    """A table of HTML cells. ``left``: the columns that are aligned to the left; ``name``: its class; ``more``: rows
    below."""
    looks = [" class=left" if each in left else "" for each in head]

    def line(cells: Sequence[str]) -> str:
        parts = zip(head, looks, cells, strict=True)
        return "".join(f'<td data-name="{column}"{look}>{cell}</td>' for column, look, cell in parts)

    top = "".join(f"<th scope=col{look}>{each}</th>" for each, look in zip(head, looks, strict=True))
    body = "".join(f"<tr>{line(row)}</tr>\n" for row in rows)
    own = f" class={name}" if name else ""
    return f"<div class=scroll><table{own}><thead><tr>{top}</tr></thead><tbody>{body}{more}</tbody></table></div>"


def headline_table(rows: Sequence[Mapping[str, str]], more: str = "") -> str:
    """A line per agent or player; ``more``: rows below."""
    return table(list(rows[0]), [list(row.values()) for row in rows], ("guarantee",), "headline", more)


def figure(chart: Chart, svg: str, more: str = "") -> str:
    """A chart with its title and its caption, which ``more`` follows."""
    title, caption = escape(encodable(chart.title)), escape(encodable(chart.caption))
    name = escape(f"chart-{chart.name}")
    return f'<figure id="{name}"><h3>{title}</h3>{svg}<figcaption>{caption}{more}</figcaption></figure>'


def stamp(guaranteed: bool, promise: str) -> str:
    """What is promised, with a sign that needs no colour."""
    look, sign = ("good", "✓") if guaranteed else ("bad", "✗")
    return f'<span class="stamp {look}">{sign} {escape(promise)}</span>'


def broken_limits(broke: bool, number: str) -> str:
    """How often limits were broken, with a sign that needs no colour."""
    return f"<span class=bad>✗ {number}</span>" if broke else "<span class=good>✓ 0</span>"


def filled(name: str, parts: dict[str, str]) -> str:
    """A shipped page with its {{parts}} filled in, in one pass: a part may itself contain braces."""
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


def chart_svg(chart: Chart) -> str:
    return svg_of(lambda plt, paper: chart_figure(plt, chart, paper), chart.name)


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
    svg = _recoloured(svg, "var(--paper)", "var(--ink)", "var(--faint)")
    return re.sub(r"\n\s*", "\n", svg).strip()


def _recoloured(svg: str, background: str, ink: str, faint: str) -> str:
    for mark, colour in ((_MARKED.background, background), (_MARKED.ink, ink), (_MARKED.faint, faint)):
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
    write_text(folder / f"{name}.svg", _recoloured(svg, LIGHT.background, LIGHT.ink, LIGHT.faint))
    return inline(svg, name)
