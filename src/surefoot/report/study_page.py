"""The report of a study: its status, how close it came to its limits, what it was told, and what the audit says.

One HTML file beside the journal, ``report.html``, that opens from disk; it is read from the journal alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from surefoot.audits.audit import AuditReport, Unreadable, audit
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.report import figures as drawing
from surefoot.report.chart import Chart, Curve
from surefoot.report.page import svg_of, whole_page
from surefoot.report.style import encodable
from surefoot.storage.atomic import write_text, writing
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study.study import Study

PAGE = "report.html"

_DRAWN = 1e150  # a cost beyond this is in the journal and in the alarm, but no axis can hold it


@dataclass
class History:
    """What the journal says, an entry per episode that was told anything."""

    episodes: list[int] = field(default_factory=list)
    highest: list[list[float]] = field(default_factory=list)  # measured, per limit
    promised: list[list[float]] = field(default_factory=list)  # largest certified upper bound, per limit
    learned: list[float] = field(default_factory=list)  # share of the asks that were not the fallback's
    events: list[tuple[str, str, str]] = field(default_factory=list)  # time, kind, words


def read_history(journal: Path, n_limits: int) -> History:
    """Read the journal as far as it is intact; the audit reports what is wrong with the rest."""
    history = History()
    episode, asks, own = 0, 0, 0
    low = [float("-inf")] * n_limits
    highest, promised = list(low), list(low)

    def close() -> None:
        if asks:
            history.episodes.append(episode)
            history.highest.append(highest)
            history.promised.append(promised)
            history.learned.append(own / asks)

    for line in journals.read_lines(journal, FileLayer(), end=journals.scan(journal, FileLayer()).size):
        record = line.record(journal)
        kind = record["kind"]
        if kind == "begin":
            close()
            episode, asks, own, highest, promised = record["episode"], 0, 0, list(low), list(low)
        elif kind == "ask":
            asks += 1
            certificate = record["certificate"]
            own += not certificate["fallback"]
            for row in certificate["successors"]:
                upper = [float("inf") if value is None else value for value in row["upper"]]
                promised = [max(a, b) for a, b in zip(promised, upper, strict=True)]
        elif kind in ("tell", "terminal") and record["cost"] is not None:
            highest = [max(a, b) for a, b in zip(highest, record["cost"], strict=True)]
        elif kind == "import" and record["repeated"]:
            words = f"{record['repeated']} of {len(record['rows'])} rows are like others, said to be different: "
            history.events.append((record["time"], kind, words + str(record["different"])))
        elif kind in ("alarm", "acknowledge", "abort"):
            words = str(record.get("message") or record.get("reason") or "")
            changed = ", ".join(record.get("changes", ()))
            history.events.append((record["time"], kind, f"{words} ({changed})" if changed else words))
        elif kind == "clock":
            history.events.append((record["time"], kind, f"the clock went back, from {record['expected']}"))
    close()
    return history


def limit_charts(problem: Problem, history: History) -> list[Chart]:
    """Per limit: the highest measured cost and the largest certified bound, episode by episode."""
    at = tuple(history.episodes)

    def line(label: str, look: str, values: list[float]) -> Curve:
        numbers = tuple(value if abs(value) < _DRAWN else float("nan") for value in values)
        return Curve(label, look, at, numbers, numbers, numbers)

    return [
        Chart(
            name=f"limit-{j}",
            title=f"Limit: {limit.name}",
            y=limit.name,
            caption=(
                "The highest measured cost of each episode, and the largest upper bound among the certificates of its "
                "offers. Measurements carry noise, so they may lie above the limit although the cost does not. The "
                "fallback's actions are safe by your assumption, whatever their bound."
            ),
            lines=(
                line("measured", "lsvi-new", [row[j] for row in history.highest]),
                line("certified upper bound", "slucb-qvi", [row[j] for row in history.promised]),
            ),
            levels=_levels(problem.bounds[:, j]),
            log_x=len(at) > 50,
        )
        for j, limit in enumerate(problem.limits)
    ]


def _levels(bounds: FloatArray) -> tuple[tuple[str, float], ...]:
    """The bound of a limit, or the lowest and highest of its steps."""
    low, high = float(bounds.min()), float(bounds.max())
    return (("limit", low),) if low == high else (("lowest limit", low), ("highest limit", high))


def write_study_page(path: str | Path) -> Path:
    """Write the report of a study, also while another process runs it. → the page."""
    folder = Path(path)
    study = Study.open(folder, read_only=True)
    problem, status = study.problem, study.status()
    history = read_history(folder / "journal.jsonl", len(problem.limits))
    figures = []
    if history.episodes:
        for chart in limit_charts(problem, history):
            svg = svg_of(lambda plt, paper, chart=chart: drawing.chart_figure(plt, chart, paper), chart.name)  # type: ignore[misc]
            figures.append(
                f"<figure><h3>{escape(chart.title)}</h3>{svg}<p class='quiet'>{escape(chart.caption)}</p></figure>"
            )
    parts = {
        "standing": _table(_standing(status)),
        "audit": _audit(folder, study.recovered),
        "charts": "\n".join(figures) or "<p>Nothing was told yet.</p>",
        "events": _events(history),
    }
    with writing(folder):
        page = whole_page("study.html", folder.name, "surefoot study", _lead(status), parts)
        write_text(folder / PAGE, encodable(page))
    return folder / PAGE


def _lead(status: dict[str, Any]) -> str:
    if status["safe_mode"]:
        return (
            "<b>Safe mode:</b> nothing is promised, and only the fallback's actions are offered (where it has none, "
            "what the last plan before the alarm certified), until a person acknowledges the alarm below."
        )
    share = status["certified_pairs"] / max(1, status["pairs"])
    return (
        f"{status['episodes']} episodes, {status['tells']} measurements told; {share:.0%} of all actions certified. "
        f"Promise: <b>{escape(status['promise'])}</b>, given what the problem declares."
    )


def _standing(status: dict[str, Any]) -> dict[str, str]:
    return {
        "next call": status["next"],
        "plan in force": f"number {status['plan']}, made after record {status['made_after']}",
        "certified actions": f"{status['certified_pairs']} of {status['pairs']}",
        "failure probability": (
            f"{status['failure_probability']:g}, of which {status['share']:g} in epoch {status['epoch']}"
        ),
        "promise": status["promise"],
        "false-alarm probability": f"{status['false_alarm']:g}",
        "problem": status["problem"],
    }


def _table(rows: dict[str, str]) -> str:
    cells = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<table>{cells}</table>"


def _audit(folder: Path, found: Sequence[str]) -> str:
    """The audit's verdict, and notes from reading: a torn tail, a clock that was set back."""
    try:
        report = audit(folder)
    except Unreadable as error:
        return f"<p><b>Not audited:</b> {escape(str(error))}</p>"
    notes = "".join(f"<li>{escape(note)}</li>" for note in [*found, *report.remarks])
    return _verdict(report) + (f"<p>Notes:</p><ul>{notes}</ul>" if notes else "")


def _verdict(report: AuditReport) -> str:
    if report.clean:
        return (
            f"<p><b>Clean.</b> {report.records} records verify, and every action was certified when it was offered, or "
            f"is the fallback's. Last hash: <code>{escape(report.last_hash)}</code></p>"
        )
    rows = "".join(f"<li>{escape(str(finding))}</li>" for finding in report.exceptions)
    return f"<p><b>{len(report.exceptions)} exceptions:</b></p><ul>{rows}</ul>"


def _events(history: History) -> str:
    if not history.events:
        return "<p>No alarm, no abort, nothing to acknowledge.</p>"
    rows = "".join(
        f"<tr><td>{escape(time)}</td><td>{escape(kind)}</td><td style='text-align:left'>{escape(words)}</td></tr>"
        for time, kind, words in history.events
    )
    return f"<table><tr><th>time</th><th>what</th><th style='text-align:left'>words</th></tr>{rows}</table>"
