"""The paper's bound on regret as a curve, where it can be drawn."""

from __future__ import annotations

import numpy as np

from surefoot.errors import SurefootError
from surefoot.model.problem import Problem
from surefoot.plan.paper_constants import usual_paper_constants
from surefoot.report.chart import Curve


def paper_bound(problem: Problem, failure_probability: float, episodes: int) -> tuple[Curve | None, str]:
    """eq:regret as a function of K, with the paper profile's usual constants; or None and why not."""
    at = np.unique(np.geomspace(max(1, episodes // 1000), episodes, 25).astype(np.int64)).tolist()
    values = []
    try:
        for k in at:
            values.append(usual_paper_constants(problem, failure_probability, k).regret_bound())
    except SurefootError as error:
        return None, f"The paper's bound cannot be drawn here: {error.rule}{f' ({error.got})' if error.got else ''}."
    curve = tuple(values)
    vacuous = values[-1] >= episodes * problem.horizon
    note = "The paper's bound (eq:regret) is drawn" + (
        "; it exceeds what any policy can lose, and says nothing at this size." if vacuous else "."
    )
    return Curve("the paper's bound", "", tuple(at), curve, curve, curve), note
