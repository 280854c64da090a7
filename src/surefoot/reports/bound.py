"""The paper's bound on regret as a curve, where it can be drawn."""

from __future__ import annotations

import numpy as np

from surefoot import theory
from surefoot.errors import SurefootError
from surefoot.model.problem import Problem
from surefoot.plan.paper import usual_setting
from surefoot.reports.chart import Curve


def paper_bound(problem: Problem, failure_probability: float, episodes: int) -> tuple[Curve | None, str]:
    """eq:regret as a function of K, with the paper's usual constants; or None and why not."""
    at = np.unique(np.geomspace(max(1, episodes // 1000), episodes, 25).astype(np.int64)).tolist()
    try:
        setting = usual_setting(problem, failure_probability)
        values = [theory.paper_constants(setting, k).regret_bound() for k in at]
    except SurefootError as error:
        return None, f"The paper's bound cannot be drawn here: {error.rule}{f' ({error.got})' if error.got else ''}."
    curve = tuple(values)
    vacuous = values[-1] >= episodes * problem.horizon
    note = "The paper's bound (eq:regret) is drawn" + (
        "; it exceeds what any policy can lose, and says nothing at this size." if vacuous else "."
    )
    return Curve("the paper's bound", "", tuple(at), curve, curve, curve), note
