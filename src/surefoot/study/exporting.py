"""The certified greedy policy of a study; the format is :mod:`surefoot.plan.policy_document`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput, UnwritableFile
from surefoot.model.labels import Label, label_of
from surefoot.plan.policy_document import Exported, save_policy
from surefoot.study.standing import Standing


def write_policy(standing: Standing, path: Path, start: Label, exploit: bool) -> Path:
    """Write the policy in the format of the path's suffix, completely or not at all; returns the path."""
    head = document(standing, start, exploit)
    steps = head.pop("steps")
    try:
        return save_policy(path, head, steps)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:  # a path that the system does not take is a ValueError
        raise UnwritableFile("the policy could not be written", where=str(path), got=str(error)) from error


def document(standing: Standing, start: Label = None, exploit: bool = False) -> dict[str, Any]:
    """What is exported, as plain JSON (labels may be tuples). In safe mode only the fallback's actions."""
    agent, problem = standing.agent, standing.problem
    if agent.plans_by_start and start is None and len(problem.graph.starts) > 1:
        raise InvalidInput("this policy depends on the start state", fix="Name it: export_policy(path, start=…).")
    elsewhere = start is not None and standing.place is None
    if elsewhere:
        agent.foresee(problem.state_index(0, label_of(start)))
    try:
        learned = agent.plan.exploiting if exploit else agent.plan.values.action
        return Exported(
            problem,
            agent.plan,
            chosen=problem.graph.fallback if standing.safe_mode else learned,
            agent=agent.name,
            guaranteed=agent.guaranteed and not standing.safe_mode,
            promise=standing.promise,
            failure_probability=standing.failure_probability,
            start=start,
            source={
                "kind": "study",
                "epoch": standing.epoch,
                "records": standing.applied,
                "episodes": standing.episodes,
            },
            exploring=not (exploit or standing.safe_mode),
            safe_mode=standing.safe_mode,
        ).document()
    finally:
        if elsewhere:
            agent.foresee(int(problem.graph.starts[0]))
