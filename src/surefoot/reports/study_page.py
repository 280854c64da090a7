"""The report of a study: is it safe, is it better, what next; its explorer, its alarms, and what the audit says.

One HTML file next to the journal, ``report.html``, that opens from disk; everything in it comes from the journal. The
parts are those of the live page (:mod:`surefoot.serve`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.audits.audit import AuditReport, Unreadable, audit
from surefoot.errors import SurefootError
from surefoot.model.plant.cells import make_cells
from surefoot.reports import study_parts as parts_of
from surefoot.reports.explorer import explorer_html, explorer_of_plan
from surefoot.reports.html import REPORT, SCRIPTS, encodable, filled, scripted, whole_page
from surefoot.reports.pictures.plant import PlantGrid
from surefoot.reports.plant_page import cells_figure
from surefoot.reports.study_history import History
from surefoot.reports.wording import Wording, plant_wording
from surefoot.runs.plans_kept import why_not_kept
from surefoot.storage.disk import write_text, writing
from surefoot.study import journal as journals
from surefoot.study.exact import FILE as PLANT
from surefoot.study.status import acknowledging_command
from surefoot.study.study import Study


def write_study_page(path: str | Path) -> Path:
    """Write the report of a study, even while another process runs it. → the page."""
    folder = Path(path)
    study = Study.open(folder, read_only=True)
    status = study.status()
    history = History(study.problem).read(folder / journals.NAME)
    explorer, data = explorer_part(study)
    parts = {
        **live_parts(study, status, history),
        **plan_parts(study),
        "acknowledge": "",
        "audit": _audit(folder, study.recovered),
        "explorer": explorer,
        "live": "",
    }
    parts["next"] += _plant_picture(study, history)
    if status["safe_mode"]:
        command = escape(acknowledging_command(status))
        parts["acknowledge"] = f"<p>A person acknowledges with: <code>{command}</code></p>"
    body, script = filled("study.html", parts), scripted({"explorer": data})
    with writing(folder):
        page = whole_page(folder.name, "surefoot study", parts["lead"], body, script, SCRIPTS)
        write_text(folder / REPORT, encodable(page))
    return folder / REPORT


def live_parts(study: Study, status: dict[str, Any], history: History) -> dict[str, str]:
    """What changes with every call."""
    problem = study.problem
    figures = parts_of.chart_figures(parts_of.limit_charts(problem, history)) if history.courses else ""
    return {
        "lead": parts_of.lead(status),
        "alarms": parts_of.alarms(status),
        "offer": parts_of.offer(status, problem, history, _wording(study)),
        "margins": parts_of.margin_table(history, problem),
        "limits": figures,
        "better": parts_of.better(history, status),
        "events": parts_of.events(history),
        "details": parts_of.details(status),
    }


def plan_parts(study: Study) -> dict[str, str]:
    """What changes with every plan."""
    return {"next": parts_of.following(study.standing.agent.plan, _wording(study))}


def _plant(study: Study) -> dict[str, Any] | None:
    """The stored document of a plant; None in a study of a problem."""
    path = study.path / PLANT
    return json.loads(path.read_text(encoding="ascii")) if path.exists() else None


def _wording(study: Study) -> Wording:
    known = _plant(study)
    return Wording() if known is None else plant_wording(known)


def _plant_picture(study: Study, history: History) -> str:
    """For a study of a plant: the certified cells of the current plan, and the last episode; not on the live page."""
    known = _plant(study)
    if known is None:
        return ""
    grid = PlantGrid(make_cells(known["state"]), study.problem)
    paths = [np.array(course.exact) for course in history.courses[-1:] if course.exact]
    try:
        return "<h3>What is certified</h3>" + cells_figure("The plan in force", grid, study.standing.agent.plan, paths)
    except SurefootError as error:
        return f"<p class=quiet>No picture of the cells: {escape(str(error))}</p>"


def explorer_part(study: Study) -> tuple[str, dict[str, Any] | None]:
    """The explorer's HTML and the data for its script; a sentence and None if the problem is too large for a page."""
    plan, why = study.standing.agent.plan, why_not_kept(study.problem)
    if why:
        return f"<p class=quiet>Nothing to explore: {escape(why)}.</p>", None
    data = explorer_of_plan(plan, study.standing.episodes, _wording(study))
    return explorer_html(data, "The plan in force."), data


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
            f"<p><b class=good>✓ Clean.</b> {report.records} records verify, and every action was certified when it "
            f"was offered, or is the fallback's. Last hash: <code>{escape(report.last_hash)}</code></p>"
        )
    rows = "".join(f"<li>{escape(str(finding))}</li>" for finding in report.exceptions)
    return f"<p><b class=bad>{len(report.exceptions)} exceptions:</b></p><ul>{rows}</ul>"
