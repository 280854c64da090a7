"""A person answers the alarms: the record of an acknowledgement, checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.agents.blocks.place import refuse_inside
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.labels import shown
from surefoot.model.problem import Problem
from surefoot.storage.disk import FileLayer
from surefoot.study import declaring
from surefoot.study.growing import redeclared
from surefoot.study.opening import plain_options
from surefoot.study.records import Record, share
from surefoot.study.standing import Standing


@dataclass(frozen=True)
class Answer:
    """What a person says to the alarms; see :meth:`surefoot.study.study.Study.acknowledge`."""

    reason: str
    discard: bool
    noise: Any
    problem: Problem | None
    trust_anchors: bool
    despite: str | None  # why a declaration with errors is used anyway
    alarms: list[int] | None  # records of those that the person has seen


def acknowledge_entries(standing: Standing, answer: Answer, path: Path, layer: FileLayer, n: int) -> Record:
    """The entries of record n; a declaration that is new is saved in the study's folder at ``path``."""
    _refuse_early(standing, answer)
    old, discard = standing.problem, answer.discard
    given = answer.problem
    if isinstance(given, Problem) and old.graph.beyond is not None:
        given = redeclared(standing, given)
    new = declaring.revised(old, answer.noise, given, discard, answer.trust_anchors)
    declaring.refuse_sparse(new, of_plant=old.graph.several_rows)
    new = old if new.digest == old.digest else new
    declaring.refuse_unanswered(standing.raised, old, new, discard, standing.outside)
    standing.new_monitor(new, standing.monitor_number + 1)  # what cannot be made is refused before it is written
    epoch, name = standing.epoch + bool(discard), standing.declared["problem_file"]
    part, despite = share(standing.failure_probability, epoch), standing.despite
    if answer.noise is not None or answer.problem is not None:
        despite = declaring.examined(new, part, answer.despite)
    constants = standing.constants
    if discard or new is not old:
        constants = _tried(standing, new, discard)
    if new is not old:
        name = declaring.keep_problem(path, new, layer, f"problem-{n}")
        standing.at_hand = new
    return {
        "reason": answer.reason,
        "alarms": [at for at, _ in standing.alarms],
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
    if not answer.reason.strip():
        raise InvalidInput("give the reason", got=repr(answer.reason), fix="It is kept in the journal.")
    waiting = [raised.record for raised in standing.raised]
    if answer.alarms is not None and answer.alarms != waiting:
        got, fix = f"{shown(answer.alarms)}, waiting are {waiting}", "Look again, and acknowledge what is there now."
        raise OutOfOrder("these are not the alarms that wait", got=got, fix=fix)


def _tried(standing: Standing, new: Problem, discard: bool) -> Record:
    """The constants from here on; refused where the data that are kept contradict the new declaration as well."""
    agent = standing.next_agent(new, discard)
    constants = agent.constants
    agent.replan()
    fault = agent.plan_failure or ("" if agent.plan.consistent else "some lower bound exceeds its upper bound")
    if fault:
        fix = "Acknowledge with discard_data=True."
        raise InvalidInput("the data contradict the new declaration too", got=fault, fix=fix)
    return constants
