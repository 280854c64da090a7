"""What changes the declaration of a study: a person who acknowledges alarms, and a graph that grows (spec 9).

What is wrong with an acknowledgement is refused before anything is written. The graph may grow between two episodes.
The larger graph is written beside the journal, then the record that names it, so that readers of the study, above all
the audit, need no functions. Reopened without its functions, a study continues with the graph as it is; given the
problem again, it replays the recorded expansions and can grow further.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.agents.blocks.place import refuse_inside
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.growing import replayed
from surefoot.model.labels import shown
from surefoot.model.problem import Problem
from surefoot.plan.growth import grown
from surefoot.storage.disk import FileLayer
from surefoot.study import declaring
from surefoot.study.comparing import another_graph
from surefoot.study.opening import plain_options
from surefoot.study.records import Record, reason_given, share
from surefoot.study.standing import Standing

_LISTS = ("expanded", "refused")


@dataclass(frozen=True)
class Answer:
    """The arguments of :meth:`surefoot.study.study.Study.acknowledge`."""

    reason: str
    discard: bool
    noise: Any
    problem: Problem | None
    trust_anchors: bool
    despite: str | None
    alarms: list[int] | None


def acknowledge_entries(standing: Standing, answer: Answer, path: Path, layer: FileLayer) -> Record:
    """The entries of the next record; a new declaration is saved in the study's folder at ``path``."""
    _refuse_early(standing, answer)
    old, discard, given = standing.problem, answer.discard, answer.problem
    if isinstance(given, Problem) and old.graph.beyond is not None:
        given = _redeclared(standing, given)
    new = declaring.revised(old, answer.noise, given, discard, answer.trust_anchors)
    declaring.refuse_sparse(new, of_plant=old.graph.several_rows)
    new = old if new.digest == old.digest else new
    declaring.refuse_unanswered(standing.raised, old, new, discard, standing.outside)
    standing.new_monitor(new, standing.monitor_number + 1)  # what cannot be made is refused before it is written
    epoch, name, despite = standing.epoch + discard, standing.declared["problem_file"], standing.despite
    part = share(standing.failure_probability, epoch)
    if answer.noise is not None or answer.problem is not None:
        despite = declaring.examined(new, part, answer.despite)
    constants = _tried(standing, new, discard) if discard or new is not old else standing.constants
    if new is not old:
        name = declaring.keep_problem(path, new, layer, f"problem-{standing.applied}")
        standing.at_hand = new
    return {
        "reason": answer.reason,
        "alarms": list(standing.alarms),
        "discard": discard,
        "epoch": epoch,
        "share": part,
        "monitor": standing.monitor_number + 1,
        "constants": plain_options(constants),
        "problem": new.digest,
        "problem_file": name,
        "changes": declaring.changes(old, new, discard),
        "despite": despite,
    }


def _refuse_early(standing: Standing, answer: Answer) -> None:
    if not standing.safe_mode:
        raise OutOfOrder("there is no alarm to acknowledge")
    refuse_inside(standing.place, "an alarm is acknowledged between episodes")
    reason_given("give the reason", answer.reason)
    waiting = [raised.record for raised in standing.raised]
    if answer.alarms is not None and answer.alarms != waiting:
        got, fix = (
            f"{shown(answer.alarms)}, those waiting are {waiting}",
            "Look again, and acknowledge what is there now.",
        )
        raise OutOfOrder("these are not the alarms that are waiting", got=got, fix=fix)


def _tried(standing: Standing, new: Problem, discard: bool) -> Record:
    """The constants from here on; refused if the data that are kept contradict the new declaration, too."""
    agent = standing.next_agent(new, discard)
    constants = agent.constants
    agent.replan()
    fault = agent.plan_failure or ("" if agent.plan.consistent else "some lower bound exceeds its upper bound")
    if fault:
        fix = "Acknowledge with discard_data=True."
        raise InvalidInput("the data contradict the new declaration too", got=fault, fix=fix)
    return constants


# --- growth --------------------------------------------------------------------------------------------


def grow_entries(standing: Standing, path: Path, layer: FileLayer) -> Record | None:
    """The entries of the next record, whose problem is saved in the study's folder at ``path``; None if there is
    nothing to expand."""
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
        "problem_file": declaring.keep_problem(path, larger, layer, f"problem-{standing.applied}"),
        **{name: rows.tolist() for name, rows in new.items()},
    }


def attach(standing: Standing, given: Problem) -> None:
    """Give a study that was rebuilt from its files its problem's functions back."""
    problem = declaring.on_graph(_regrown(standing, given), standing.problem)
    if problem.digest != standing.problem.digest:
        raise InvalidInput(
            "the functions of this problem are not those that the study has grown by",
            got="another graph from the same expansions",
            fix="Give the problem that the study was begun with, or none: it then continues with the graph as it is.",
        )
    standing.take_over(problem)


def _regrown(standing: Standing, given: Problem) -> Problem:
    """A problem that grows, grown as the study has."""
    record, refused = (np.array(standing.grown[name], np.int64).reshape(-1, 2) for name in _LISTS)
    return replayed(given.first, record, refused) if len(record) or len(refused) else given.first


def _redeclared(standing: Standing, given: Problem) -> Problem:
    """The study's problem with the limits, norms and anchors of another declaration. One with other functions is
    refused, since these would give other graphs."""
    old, new = standing.problem, given if given.growth is None else _regrown(standing, given)
    if fault := another_graph(old, new):
        fix = "Give the same functions with other limits; or discard the data; or begin a new study."
        raise InvalidInput("the support of a study whose graph has grown cannot be changed", got=fault, fix=fix)
    return declaring.on_graph(old, new)
