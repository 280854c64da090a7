"""Studies after an alarm, for tests: what is told, what is promised next, and what disproves a declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.model.graph import Anchors
from tests.studies import learnt


def waits(study: sf.Study, cost: float, after: Any = "s") -> None:
    """One episode that tells this first; the fallback's action, whatever was offered."""
    with study.episode("s") as ep:
        ep.ask()
        ep.tell(after, cost, action_applied="wait")
        while not ep.done:
            ep.ask()
            ep.tell("s", 0.1, action_applied="wait")


def promise_of_the_next_offer(study: sf.Study) -> dict[str, Any]:
    with study.episode("s") as ep:
        certificate = ep.ask().certificate
        ep.abort("enough")
    return certificate


def left_support(opened: Any, world: sf.World) -> sf.Study:
    study = learnt(opened(), world, 25)
    with study.episode("s") as ep:
        assert ep.ask().action == "heat"
        ep.tell("cold", 0.2)
    return study


def anchored(problem: sf.Problem) -> sf.Problem:
    anchor = Anchors(np.array([[0.1]]), np.array([[0.1]]), np.zeros((1, 1)))
    return replace(problem, graph=replace(problem.graph, anchors=(anchor,) * problem.horizon))
