"""The report: one HTML file that opens from disk and needs no network.

Matplotlib draws the charts; they go into the page as SVG whose colours follow the reader's light or dark setting. The
page's own script only drives the explorer. ``report.html`` is in the directory of the runs, and ``report/`` next to it
holds each figure as SVG and PNG and its numbers as CSV. For runs in memory (:func:`report`) only the page is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any, cast

from surefoot.errors import InvalidInput
from surefoot.model.limit import Limit
from surefoot.reports.charts import Chart
from surefoot.reports.data import Headline, KeptPlans, Report, Runs, read_runs, read_sweep
from surefoot.reports.explorer import explorer, explorer_html
from surefoot.reports.html import (
    REPORT,
    SCRIPTS,
    Section,
    broken_limits,
    chart_svg,
    figure,
    headline_table,
    scripted,
    sectioned,
    stamp,
    svg_of,
    table,
    whole_page,
    write_figure,
)
from surefoot.reports.pictures.curves import chart_figure
from surefoot.reports.pictures.draw import figure_of
from surefoot.reports.plant_page import of_plants, write_plant_page
from surefoot.reports.statistics import Mean
from surefoot.runs.plants import PlantRun
from surefoot.storage.disk import write_text, writing

_BESIDE = "report"  #: the folder of figures and tables beside the page
WIDE = 1.6  #: a picture above this aspect has the page's width to itself
MOST_STEPS = 15  #: in the table beside the picture; of more, all steps together


def write_page(directory: str | Path) -> Path:
    """Write the report of a directory of runs, replacing an older one. → the page."""
    report, root = read_sweep(directory), Path(directory)
    with writing(root):
        (root / _BESIDE).mkdir(exist_ok=True)
        drawn = {chart.name: _write_chart(chart, root / _BESIDE) for chart in report.charts}
        world = _write_world(report, root / _BESIDE)
        write_text(root / REPORT, _page(report, drawn, world, files=True))
    return root / REPORT


def report(runs: Runs | PlantRun | Mapping[str, PlantRun], path: str | Path) -> Path:
    """Write the report of runs on one world to one HTML file, which opens from disk and needs no network.

    Args:
        runs: one, several, or several by label: ``{"careful": [run, …], "bold": [run, …]}``. Without labels, runs of
            one agent with the same options go together. Or the result of :func:`surefoot.compare`, or one run on a
            simulated plant.
        path: a file that ends in ``.html``; an older one is replaced.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> runs = [sf.run(sf.LsviNew(world.problem), world, episodes=100, seed=seed) for seed in range(3)]
        >>> sf.report(runs, "thermal.html").name
        'thermal.html'
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput("a report is an .html file", got=repr(target.name))
    on_plant = of_plants(runs)
    if on_plant is not None:
        return write_plant_page(on_plant, target)
    found = read_runs(cast("Runs", runs))
    shown = [chart for chart in found.charts if chart.shown]
    drawn = {each.name: chart_svg(each) for each in shown}
    world = svg_of(lambda plt, paper: figure_of(plt, found.view, paper), "world")
    with writing(target):
        write_text(target, _page(found, drawn, world, files=False))
    return target


# --- figures --------------------------------------------------------------------------------------------


def _write_chart(chart: Chart, folder: Path) -> str:
    write_text(folder / f"{chart.name}.csv", chart.csv())
    return write_figure(lambda plt, paper: chart_figure(plt, chart, paper), chart.name, folder)


def _write_world(report: Report, folder: Path) -> str:
    write_text(folder / "world.csv", report.view.csv())
    return write_figure(lambda plt, paper: figure_of(plt, report.view, paper), "world", folder)


# --- the page -------------------------------------------------------------------------------------------


def _page(report: Report, drawn: dict[str, str], world: str, files: bool) -> str:
    """``files``: each figure is also in files next to the page."""
    data: dict[str, Any] = {"headlines": [asdict(each) for each in report.headlines], "explorer": None}
    if report.explored.plans:
        data["explorer"] = explorer(report.world, report.explored.plans)
    charts = "\n".join(
        figure(chart, drawn[chart.name], _means(chart) + _files(chart.name, files))
        for chart in report.charts
        if chart.shown
    )
    sections = [
        Section("headline", "Headline", _headline(report)),
        Section("world", "The world", _world(report, world, files)),
        Section("explorer", "Explorer: what is certified, and why", _explorer(report.explored, data["explorer"])),
        Section("charts", "Charts", f'<div class="grid">\n{charts}\n</div>'),
        Section("runs", "The runs", _runs(report)),
    ]
    body, script = sectioned(sections), scripted(data)
    return whole_page(report.name, "surefoot report", _lead(report), body, script, SCRIPTS)


def _lead(report: Report) -> str:
    best = next((each for each in report.headlines if each.guaranteed), report.headlines[0])
    runs = f"{best.runs} run{'s' if best.runs != 1 else ''} of {report.episodes:,} episodes"
    broke = "without a violation" if not best.broke_a_limit else f"with {best.violations.text(1)} violations per run"
    gap = best.gap_closed.text(percent=True)
    text = f"{escape(best.label)} closed {gap} of the gap between the fallback "
    text += f"({report.fallback_value:.3f}) and the best safe policy ({report.best_value:.3f}), {broke}, in {runs}."
    return f"{escape(report.description[:1].upper() + report.description[1:])}. <strong>{text}</strong>"


def _headline(report: Report) -> str:
    rows = [_row(each) for each in report.headlines]
    prices = "".join(_price(str(price), len(rows[0])) for price in report.prices)
    notes = "".join(f"<p class=bad>{escape(note)}</p>" for note in report.notes)
    several = max(each.runs for each in report.headlines) > 1
    legend = (
        f"Fallback {report.fallback_value:.4f}, best safe policy {report.best_value:.4f}. "
        + ("Every number is a mean over the runs; below it, its 95% bootstrap interval. " if several else "")
        + "Violations, regret and time are totals of a run; value is the exact value of its last policy. Gap closed: "
        "0% is the fallback, 100% the best safe policy; more than that was earned by breaking limits. Slope: of log "
        "regret over the last decade of episodes. Bounds held: runs in which every true cost lay within its bounds in "
        "every plan (the confidence event). Price of safety: regret divided by that of the oracle shield, a learner of "
        "the same kind that is told which actions are truly safe and plays only those."
    )
    return f"{notes}{headline_table(rows, prices)}<p class=quiet>{legend}</p>"


def _row(each: Headline) -> dict[str, str]:
    where = f"<small>in {each.runs_with_violations} of {each.runs} runs</small>" if each.broke_a_limit else ""
    return {
        "agent": escape(each.label),
        "guarantee": stamp(each.guaranteed, each.promise),
        "violations": broken_limits(each.broke_a_limit, _number(each.violations, 1)) + where,
        "value": _number(each.value, 4),
        "gap closed": _number(each.gap_closed, percent=True),
        "regret": _number(each.regret, 0),
        "slope": "–" if each.slope is None else f"{each.slope:.2f}".replace("-0.00", "0.00").replace("-", "−"),
        "bounds held": "–" if each.cost_event is None else f"{each.cost_event} of {each.runs}",
        "runs": str(each.runs),
        "time": "–" if each.seconds is None else f"{each.seconds.mean:,.1f} s",
    }


def _number(value: Mean, digits: int = 3, percent: bool = False) -> str:
    """The mean, and below it, in small print, its interval."""
    middle, bracket, rest = value.text(digits, percent).partition(" [")
    return middle + (f"<small>{escape(bracket.strip() + rest)}</small>" if bracket else "")


def _price(text: str, columns: int) -> str:
    across = f"<td class=left colspan={columns - 1}>{escape(text)}</td>"
    return f"<tr class=price><td>price of safety</td>{across}</tr>"


def _files(name: str, files: bool) -> str:
    if not files:
        return ""
    links = " ".join(f'<a href="{_BESIDE}/{escape(name)}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv"))
    return f" <span class=files>{links}</span>"


def _means(chart: Chart) -> str:
    several = chart.statistic == "mean" and any(line.runs > 1 for line in chart.lines)
    return " Means over runs; bands: their 95% bootstrap intervals." if several else ""


def _bound(limit: Limit) -> str:
    if isinstance(limit.bound, tuple):
        return f"{min(limit.bound):g} … {max(limit.bound):g}, by step"
    return f"{limit.bound:g}"


def _world(report: Report, svg: str, files: bool) -> str:
    problem = report.world.problem
    pairs = sum(layer.n_pairs for layer in problem.graph.layers)
    edges = sum(layer.n_edges for layer in problem.graph.layers)
    limits = ", ".join(f"{escape(limit.name)} ≤ {_bound(limit)}" for limit in problem.limits)
    text = f"{problem.horizon} steps, {pairs:,} actions over all states, {edges:,} triplets. Limits: {limits}."
    if problem.graph.beyond is not None:
        done, actions = problem.expanded_actions
        why = "; the others have costs that may break a limit" if problem.graph.beyond.room else ", all it has room for"
        text += f" The graph grows: {done:,} of {actions:,} actions are expanded, with {problem.graph.n_all_states:,} "
        text += f"states{why}."
    caption = f"<figcaption>At the end of the run.{_files('world', files)}</figcaption>"
    if _aspect(svg) > WIDE:
        return f"<p>{text}</p><figure class=world><div class=scroll>{svg}</div>{caption}</figure>"
    figure = f"<figure class='world narrow'>{svg}{caption}</figure>"
    return f"<p>{text}</p><div class=beside>{figure}{_facts(report)}</div>"


def _aspect(svg: str) -> float:
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()  # type: ignore[union-attr]
    return float(width) / float(height)


def _facts(report: Report) -> str:
    """How many actions of each step are certified; nobody has to count them in the picture."""
    view = report.view
    kinds = [kind for kind, number in view.count().items() if number]
    steps = view.pairs if len(view.pairs) <= MOST_STEPS else ()
    rows = [[f"{h}", *(f"{(row == kind).sum():,}" for kind in kinds)] for h, row in enumerate(steps)]
    rows.append(["all", *(f"{view.count()[kind]:,}" for kind in kinds)])
    counts = table(["step", *(escape(view.names[kind]) for kind in kinds)], rows)
    return f"<div class=facts><h3>Actions by step</h3>{counts}</div>"


def _explorer(explored: KeptPlans, data: Any) -> str:
    if data is None:
        return f"<p class=quiet>Nothing to explore: {escape(explored.why_none)}.</p>"
    return explorer_html(data, f"Plans of {explored.label}, seed {explored.seed}.")


def _runs(report: Report) -> str:
    def told(options: Mapping[str, Any]) -> str:
        return escape(json.dumps(dict(options)) if options else "default")

    rows = [[escape(label), escape(agent), told(options)] for label, agent, options in report.agents]
    versions = ", ".join(f"{name} {number}" for name, number in report.versions.items())
    seeds = ", ".join(map(str, report.seeds)) if len(report.seeds) <= 20 else f"{len(report.seeds)} of them"
    return (
        f"{table(['label', 'agent', 'options'], rows, left=('agent', 'options'))}"
        f"<p class=quiet>Seeds {escape(seeds)}; {report.episodes:,} episodes each; world options: "
        f"{told(report.world_options)}; world {escape(report.world.digest[:12])}…; {escape(versions)}.</p>"
    )
