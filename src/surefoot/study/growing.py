"""A study of a problem that grows (spec 9): what a growth writes, and how a reopened study gets its functions back.

Between two episodes the graph may grow. The whole larger graph is written beside the journal first, then the record
that names it, so that readers of the study, above all the audit, need no functions. Reopened without the functions, a
study continues with the graph as it is; given the problem again, it replays the recorded expansions and grows further.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.growing import replayed
from surefoot.model.problem import Problem
from surefoot.plan.growth import grown
from surefoot.storage.disk import FileLayer
from surefoot.study.comparing import another_graph
from surefoot.study.declaring import keep_problem, on_graph
from surefoot.study.records import Record
from surefoot.study.standing import Standing

_LISTS = ("expanded", "refused")


def grow_entries(standing: Standing, path: Path, layer: FileLayer, n: int) -> Record | None:
    """The entries of record n, whose problem is saved in the study's folder at ``path``; None: nothing to expand."""
    agent, before = standing.agent, standing.problem.growth
    if before is None or standing.safe_mode or not agent.may_grow():
        return None
    larger = grown(agent.plan)
    if larger is None or larger.growth is None:
        return None
    standing.at_hand = larger
    after = larger.growth
    new = {"expanded": after.record[len(before.record) :], "refused": after.refused[len(before.refused) :]}
    return {
        "problem": larger.digest,
        "problem_file": keep_problem(path, larger, layer, f"problem-{n}"),
        **{name: rows.tolist() for name, rows in new.items()},
    }


def attach(standing: Standing, given: Problem) -> None:
    """Give a study that was rebuilt from its files the functions of its problem again."""
    problem = on_graph(regrown(standing, given), standing.problem)
    if problem.digest != standing.problem.digest:
        raise InvalidInput(
            "the functions of this problem are not those that the study has grown by",
            got="another graph from the same expansions",
            fix="Give the problem that the study was begun with, or none: it then continues with the graph as it is.",
        )
    standing.take_over(problem)


def regrown(standing: Standing, given: Problem) -> Problem:
    """A problem that grows, grown as the study has."""
    record, refused = (np.array(standing.grown[name], np.int64).reshape(-1, 2) for name in _LISTS)
    return replayed(given.first, record, refused) if len(record) or len(refused) else given.first


def redeclared(standing: Standing, given: Problem) -> Problem:
    """The study's problem with what another declaration says of limits, norms and anchors; other functions are refused,
    since they would give other graphs."""
    old, new = standing.problem, given if given.growth is None else regrown(standing, given)
    if fault := another_graph(old, new):
        fix = "Give the same functions with other limits; or discard the data; or begin a new study."
        raise InvalidInput("the support of a study whose graph has grown cannot be changed", got=fault, fix=fix)
    return on_graph(old, new)
