"""The explorer of a study: nobody knows the truth here, so it shows what is proved, what may be, and what is not."""

from __future__ import annotations

from html import escape
from typing import Any

from surefoot.reports.explorer import explorer_of_plan
from surefoot.reports.page import explorer_html
from surefoot.runs.plans_kept import why_not_kept
from surefoot.study.study import Study


def explorer_part(study: Study) -> tuple[str, dict[str, Any] | None]:
    """Its HTML, and the data for its script; a sentence and None where the problem is too large for a page."""
    plan, why = study.standing.agent.plan, why_not_kept(study.problem)
    if why:
        return f"<p class=quiet>Nothing to explore: {escape(why)}.</p>", None
    data = explorer_of_plan(plan, study.standing.episodes)
    return explorer_html(data, "The plan in force."), data
