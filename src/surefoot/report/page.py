"""The report: one HTML file that opens from disk and needs no network, with every figure and table beside it.

Charts are drawn by matplotlib, once, and put into the page as SVG whose ink and paper follow the reader's light or dark
setting; the page's own script only moves the explorer. ``report.html`` stands in the directory of the runs, and
``report/`` beside it holds each figure as SVG and PNG and its numbers as CSV.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from surefoot.model.limit import Limit
from surefoot.report import figures as drawing
from surefoot.report.chart import Chart
from surefoot.report.classes import classify
from surefoot.report.data import Headline, Report, read_sweep
from surefoot.report.draw import figure_of
from surefoot.report.explorer import explorer
from surefoot.report.figures import pyplot
from surefoot.report.style import LIGHT, Paper
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.plans_kept import Snapshot
from surefoot.storage.atomic import write_text, writing
from surefoot.sweeps.folder import RunPlace

PAGE, BESIDE = "report.html", "report"

# Colours that occur nowhere else: in the page each becomes a variable that light and dark set.
_MARKED = Paper("page", background="#fdfcfb", ink="#010203", faint="#c9c8c7")
_MARKS = {"background": _MARKED.background, "ink": _MARKED.ink, "faint": _MARKED.faint}


def write_page(directory: str | Path) -> Path:
    """Write the report of a directory of runs; an older one is replaced. → the page."""
    report = read_sweep(directory)
    root = report.folder.root
    kept, label, seed = _snapshots(report)
    with writing(root):
        (root / BESIDE).mkdir(exist_ok=True)
        drawn = {chart.name: _write_chart(chart, root / BESIDE) for chart in report.charts}
        world = _write_world(report, kept, root / BESIDE)
        page = _page(report, drawn, world, kept, label, seed)
        write_text(root / PAGE, page)
    return root / PAGE


def _snapshots(report: Report) -> tuple[list[Snapshot], str, int]:
    """The plans to explore: of the first agent with a guarantee, else of the first that kept any."""
    found: list[tuple[bool, int, RunPlace]] = []
    for place in report.folder.finished():
        plans = sorted((place.folder / "snapshots").glob("plan-*.npz"))
        if plans:
            promised = next(h.guaranteed for h in report.headlines if h.label == place.label)
            found.append((not promised, len(found), place))
    if not found:
        return [], "", 0
    place = min(found, key=lambda entry: entry[:2])[2]
    return snapshots.load_all(place.folder / "snapshots", report.world.problem), place.label, place.seed


# --- figures --------------------------------------------------------------------------------------------


def _write_chart(chart: Chart, folder: Path) -> str:
    write_text(folder / f"{chart.name}.csv", chart.csv())
    return _write_figure(lambda plt, paper: drawing.chart_figure(plt, chart, paper), chart.name, folder)


def _write_world(report: Report, kept: list[Snapshot], folder: Path) -> str:
    view = classify(report.world, kept[-1] if kept else None)
    write_text(folder / "world.csv", view.csv())
    return _write_figure(lambda plt, paper: figure_of(plt, view, paper), "world", folder)


def _write_figure(draw: Callable[[Any, Paper], Any], name: str, folder: Path) -> str:
    """Write a figure as SVG and PNG; → the SVG for the page, which is the same but for its colours."""
    plt, context = pyplot(LIGHT)
    with context:
        figure = draw(plt, LIGHT)
        figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(figure)
    svg = _marked(draw)
    write_text(folder / f"{name}.svg", _recoloured(svg, {mark: getattr(LIGHT, part) for part, mark in _MARKS.items()}))
    return inline(svg, name)


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


# --- the page -------------------------------------------------------------------------------------------


def _page(report: Report, drawn: dict[str, str], world: str, kept: list[Snapshot], label: str, seed: int) -> str:
    data: dict[str, Any] = {"headlines": [asdict(each) for each in report.headlines], "explorer": None}
    if kept:
        data["explorer"] = explorer(report.world, kept)
    parts = {
        "headline": _headline(report),
        "world": _world(report, world),
        "explorer": _explorer(report, data["explorer"], label, seed),
        "charts": "\n".join(_figure(chart, drawn[chart.name]) for chart in report.charts if chart.shown),
        "runs": _runs(report),
        "script": shipped("page.js"),
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    allowed = "; script-src 'unsafe-inline'; img-src data:"
    return whole_page("page.html", report.name, "surefoot report", _lead(report), parts, allowed)


def whole_page(body: str, name: str, what: str, lead: str, parts: dict[str, str], allowed: str = "") -> str:
    """A shipped body with its parts, below the head that all pages share; ``allowed``: what it may load, too."""
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
    """A shipped page with its {{parts}} put in; once, so that a part may itself contain braces."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], shipped(name))


def shipped(name: str) -> str:
    return files("surefoot.report").joinpath(name).read_text(encoding="utf-8")


def _lead(report: Report) -> str:
    best = next((each for each in report.headlines if each.guaranteed), report.headlines[0])
    runs = f"{best.runs} run{'s' if best.runs != 1 else ''} of {report.episodes:,} episodes"
    broke = "without a violation" if best.violations == 0 else f"with {best.violations:,} violations"
    text = f"{escape(best.label)} closed {best.gap_closed:.0%} of the gap between the fallback "
    text += f"({report.fallback_value:.3f}) and the best safe policy ({report.best_value:.3f}), {broke}, in {runs}."
    return f"{escape(report.description[:1].upper() + report.description[1:])}. <strong>{text}</strong>"


_HEADS = (
    "agent",
    "runs",
    "value",
    "gap closed",
    "regret",
    "slope",
    "violations",
    "cost bounds held",
    "guarantee",
    "time",
)


def _headline(report: Report) -> str:
    head = "".join(f"<th{' class=left' if name == 'guarantee' else ''}>{name}</th>" for name in _HEADS)
    rows = "\n".join(_row(each) for each in report.headlines)
    notes = "".join(f"<p class=bad>{escape(note)}</p>" for note in report.notes)
    legend = (
        f"Fallback {report.fallback_value:.4f}, best safe policy {report.best_value:.4f}. Gap closed: 0% is the "
        "fallback, 100% the best safe policy; more than that was earned by breaking limits. Slope: of log regret "
        "over the last decade of episodes. Cost bounds held: runs in which every true cost lay within its bounds in "
        "every plan (the confidence event)."
    )
    table = f"<table class=headline><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"{notes}<div class=scroll>{table}</div><p class=quiet>{legend}</p>"


def _row(each: Headline) -> str:
    if each.violations:
        broken = f"<span class=bad>✗ {each.violations:,} in {each.runs_with_violations} of {each.runs}</span>"
    else:
        broken = "<span class=good>✓ 0</span>"
    event = "–" if each.cost_event is None else f"{each.cost_event} of {each.runs}"
    stamp = "good" if each.guaranteed else "bad"
    sign = "✓" if each.guaranteed else "✗"
    cells = [
        escape(each.label),
        str(each.runs),
        f"{each.value:.4f}",
        f"{each.gap_closed:.0%}",
        f"{each.regret:,.0f}".replace("-", "−"),
        "–" if each.slope is None else f"{each.slope:.2f}".replace("-0.00", "0.00").replace("-", "−"),
        broken,
        event,
    ]
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    seconds = "–" if each.seconds is None else f"{each.seconds:,.1f} s"
    promise = f'<td class=left><span class="stamp {stamp}">{sign} {escape(each.promise)}</span></td>'
    return f"<tr data-agent='{escape(each.label)}'>{body}{promise}<td>{seconds}</td></tr>"


def _files(name: str) -> str:
    links = " ".join(f'<a href="{BESIDE}/{escape(name)}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv"))
    return f"<span class=files>{links}</span>"


def _figure(chart: Chart, svg: str) -> str:
    caption = f"<figcaption>{escape(chart.caption)} {_files(chart.name)}</figcaption>"
    return f"<figure id='chart-{escape(chart.name)}'><h3>{escape(chart.title)}</h3>{svg}{caption}</figure>"


def _bound(limit: Limit) -> str:
    if isinstance(limit.bound, tuple):
        return f"{min(limit.bound):g} … {max(limit.bound):g}, by step"
    return f"{limit.bound:g}"


def _world(report: Report, svg: str) -> str:
    problem = report.world.problem
    pairs = sum(layer.n_pairs for layer in problem.graph.layers)
    edges = sum(layer.n_edges for layer in problem.graph.layers)
    limits = ", ".join(f"{escape(limit.name)} ≤ {_bound(limit)}" for limit in problem.limits)
    text = f"{problem.horizon} steps, {pairs:,} actions over all states, {edges:,} triplets. Limits: {limits}."
    narrow = " narrow" if not report.name.startswith(("power", "driving", "figure1")) else ""
    caption = f"<figcaption>At the end of the run. {_files('world')}</figcaption>"
    return f"<p>{text}</p><figure class='world{narrow}'><div class=scroll>{svg}</div>{caption}</figure>"


def _explorer(report: Report, data: Any, label: str, seed: int) -> str:
    if data is None:
        note = str(report.folder.manifest["snapshots"].get("note") or "no finished run kept plans")
        return f"<p class=quiet>Nothing to explore: {escape(note)}.</p>"
    view = data["view"]
    maps = view["kind"] == "map"
    left = f" {data['left_out']} more plans were kept than fit into the page." if data["left_out"] else ""
    axes = f"Across: {view['x_label']}. Down: {view['y_label']}. " if maps else ""
    parts = {
        "columns": "" if maps else ", in columns by step",
        "maps": "" if maps else "hidden",
        "way": "" if len(view["panels"]) == 1 else "hidden",
        "wrong": "" if data["wrong"] else "hidden",
        "forbidden": "" if data["any_forbidden"] else "hidden",
        "note": f"{escape(axes)}Plans of {escape(label)}, seed {seed}.{left}",
    }
    return filled("explorer.html", parts)


def _runs(report: Report) -> str:
    manifest = report.folder.manifest
    rows = "".join(
        f"<tr><td>{escape(each['label'])}</td><td class=left>{escape(each['agent'])}</td>"
        f"<td class=left>{escape(json.dumps(each['options']) if each['options'] else 'default')}</td></tr>"
        for each in manifest["agents"]
    )
    options = json.dumps(manifest["world"]["options"]) if manifest["world"]["options"] else "default"
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    seeds = ", ".join(map(str, report.seeds)) if len(report.seeds) <= 20 else f"{len(report.seeds)} of them"
    head = "<tr><th>label</th><th class=left>agent</th><th class=left>options</th></tr>"
    world = escape(str(manifest["world"]["digest"])[:12])
    return (
        f"<div class=scroll><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
        f"<p class=quiet>Seeds {escape(seeds)}; {report.episodes:,} episodes each; world options: {escape(options)}; "
        f"world {world}…; {escape(versions)}.</p>"
    )
