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


def uneven(reach: int) -> sf.Problem:
    """Intervals of other widths: whoever adds rows changes what their ridges would be multiplied by."""
    return sf.Problem.from_functions(
        horizon=2,
        start=0,
        actions=lambda h, s: ["stay", "go"],
        successors=lambda h, s, a: [0] if a == "stay" else list(range(reach)),
        reward=lambda h, s, a: 0.5 if a == "go" else 0.0,
        cost_features=lambda h, s, a, s2: [1.0, s2 / 2],
        transition_features=lambda h, s, a, s2: [1.0 if a == "stay" else 0.5 * (s2 < 2)],
        fallback=lambda h, s: "stay",
        limits=[
            sf.Limit("strain", bound=0.9, noise=0.1, prior=[(0, 0.4), (0, 2.0)]),
            sf.Limit("heat", bound=2.0, noise=0.1, norm=1.0),
        ],
    )
