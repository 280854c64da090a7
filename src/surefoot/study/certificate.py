"""Which action is offered, and why it is allowed: the certificate of an offer.

A certificate is plain JSON, written into the journal before the action is offered:

``epoch``, ``plan``        which plan it rests on, and the epoch of its data
``failure_probability``    p of the whole study; ``share``: the part of it that this epoch's bounds may spend
``promise``                what is promised, in words
``restored``               null while the promise covers the whole study; after an alarm that disproved it, ``record``,
                           since which it holds again, and ``by``, what was changed: see the acknowledge record
``despite``                null, or why a person uses a declaration in which ``surefoot.check`` finds errors
``safe_mode``, ``why``     true, and what was raised, while an alarm is not acknowledged; otherwise false and null
``fallback``               true if it is the fallback's action
``safe_by``                ``"estimate"``: every possible successor keeps every limit by its upper bound and is
                           certified; ``"assumption"``: the fallback's action, or one that can only end where the
                           fallback ends, safe because the user says so; ``"estimate before the alarm"``: in safe mode,
                           if the fallback has no action here, the action certified by the last trusted plan, because
                           stopping here may be worse; nothing is promised then, and ``promise`` says so; ``"nothing"``:
                           only with options that give up the guarantee
``opening``                null without an intensity (spec 9), and at the exact state of a plant; otherwise ``to``, the
                           largest certified intensity, which is offered, and if it is below 1 what may happen a little
                           further: ``beyond``, an intensity at which the ``upper`` bound of this ``limit`` exceeds it
``limits``, ``bounds``     the names and bounds of the limits; every list below is in this order
``successors``             for every possible next state (for a plant, every cell that may follow the exact state):
                           ``state``; ``upper``, the upper bounds of its costs (all the same if costs do not depend on
                           the next state); ``margin``, bound − upper, null if the action is safe by assumption alone;
                           ``certified``, true if the next state has a certified action (or is a last state that keeps
                           its limits); ``next_action``, what would be offered there, null in the last step;
                           ``last_upper``, ``last_margin``, the same for the last state's own costs, or null
``margin``                 the least of all margins, null if one is null; negative only if ``safe_by`` is ``"nothing"``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.agents.blocks.place import under_way
from surefoot.errors import AssumptionBroken
from surefoot.model.arrays import FloatArray
from surefoot.model.labels import Label, label_of
from surefoot.model.layer import NO_ACTION
from surefoot.model.rays import FULL
from surefoot.plan.certify import margins, within_limits
from surefoot.plan.point import Point
from surefoot.plan.rays import opening
from surefoot.study.exact import Exact
from surefoot.study.records import Record
from surefoot.study.standing import Standing

BEFORE_THE_ALARM = "estimate before the alarm"


@dataclass(frozen=True)
class Offer:
    """An action to take now, with its certificate. The same ask always gives the same offer.

    Examples:
        >>> problem = sf.worlds.make("thermal/testing").problem
        >>> with sf.Study.open("plant.study", problem) as study, study.episode() as episode:
        ...     offer = episode.ask()
        >>> offer.step, offer.state, offer.action
        (0, 0, 1)
        >>> [(each["state"], round(each["upper"][0], 2)) for each in offer.certificate["successors"]]
        [(1, 0.52), (2, 0.57)]
    """

    ask_id: str
    episode: int
    step: int
    state: Label  # for a plant the exact one, a tuple
    action: Label  # for a plant the input
    certificate: dict[str, Any]
    intensity: float = FULL  # at which to play the action (spec 9); 1 for a plant, whose input says all

    @classmethod
    def of(cls, record: Record) -> Offer:
        """The offer in an ask's record."""
        point = record["point"] or {"state": record["state"], "input": record["action"]}
        return cls(
            ask_id=record["ask"],
            episode=record["episode"],
            step=record["step"],
            state=label_of(point["state"]),
            action=label_of(point["input"]),
            certificate=record["certificate"],
            intensity=FULL if record["intensity"] is None or record["point"] else record["intensity"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "ask_id": self.ask_id,
            "episode": self.episode,
            "step": self.step,
            "state": self.state,
            "action": self.action,
            "intensity": self.intensity,
            "certificate": self.certificate,
        }


def ask_entries(standing: Standing, exact: Exact, ask_id: str) -> Record:
    """The entries of an ask: the action to offer where the episode is, with its certificate."""
    place, planned = under_way(standing.place), standing.agent.plan.intensities
    place.expect("act")
    h, problem = place.step, standing.problem
    if place.exact is None:
        chosen, pair = None, _choose(standing, h, place.state)
        intensity = None if planned is None else planned[h][pair]
    else:
        point = exact.look(standing)
        chosen = point, exact.choose(standing, point)
        pair = point.pair(chosen[1])
        intensity = None if planned is None else point.choices.intensity[chosen[1]]
    return {
        "ask": ask_id,
        "episode": place.episode,
        "step": h,
        "state": place.label,
        "action": problem.naming.action(problem.graph.layers[h], h, pair),
        "intensity": None if intensity is None else float(intensity),
        "certificate": _certificate(standing, pair, chosen),
        "point": None if chosen is None else exact.offered(*chosen),
    }


def _choose(standing: Standing, h: int, state: int) -> int:
    """The pair to offer in a state. If nothing is certified, that is an error."""
    pair = _pair(standing, h, state)
    if pair == NO_ACTION:
        why = (
            "this state is forbidden"
            if standing.problem.graph.layers[h].forbidden[state]
            else "no certified action here"
        )
        fix = "An override led here. Bring the plant to safety by your own means and abort the episode."
        raise AssumptionBroken(f"{why}, so nothing is offered", where=standing.where(), fix=fix)
    return pair


def _pair(standing: Standing, h: int, state: int) -> int:
    """What would be offered in a state; NO_ACTION where nothing would."""
    agent = standing.agent
    fallback = int(agent.problem.graph.layers[h].fallback[state])
    if standing.safe_mode and fallback != NO_ACTION:
        return fallback
    if agent.plan.values.action[h][state] == NO_ACTION:
        return fallback
    return agent._choose(h, state)


def _certificate(standing: Standing, pair: int, chosen: tuple[Point, int] | None) -> dict[str, Any]:
    """The certificate of a pair where the episode is; for a plant, of a choice at the exact state."""
    place, problem, plan = under_way(standing.place), standing.problem, standing.agent.plan
    h, layer = place.step, problem.graph.layers[place.step]
    own = pair == int(layer.fallback[place.state])
    certified = bool(plan.certified_sets.pairs[h][pair])
    if chosen is None:
        reached = layer.successors_of(pair)
        uppers, safe_by = _uppers(standing, h, pair), _safe_by(standing, h, pair, own)
    else:
        point, choice = chosen
        reached = point.states_ahead[slice(*point.ahead.ptr[choice : choice + 2])]
        uppers = np.repeat(point.upper[choice : choice + 1], len(reached), axis=0)
        certified = bool(point.certified[choice])
        safe_by = _safe_at(standing, bool(point.proved[choice]), own)
    successors = [
        _successor(standing, h, int(state), upper, certified) for state, upper in zip(reached, uppers, strict=True)
    ]
    shown = [m for item in successors for m in item["margin"] + (item["last_margin"] or [])]
    return {
        "epoch": standing.epoch,
        "plan": plan.number,
        "failure_probability": standing.failure_probability,
        "share": standing.share,
        "promise": _promise(standing, safe_by),
        "restored": standing.restored,
        "despite": None if standing.despite is None else standing.despite["reason"],
        "safe_mode": standing.safe_mode,
        "why": standing.why or None,
        "fallback": own,
        "safe_by": safe_by,
        "opening": None if plan.opened is None or chosen is not None else opening(plan.opened, h, pair),
        "limits": [limit.name for limit in problem.limits],
        "bounds": problem.bounds[h].tolist(),
        "successors": successors,
        "margin": None if None in shown else min(shown),
    }


def _uppers(standing: Standing, h: int, pair: int) -> FloatArray:
    """(n, m) for each successor of a pair the upper bounds of its costs."""
    layer, upper = standing.problem.graph.layers[h], standing.agent.plan.bounds.upper[h]
    own: FloatArray = upper[layer.own_rows(pair)]
    return own if layer.per_triplet else np.repeat(own.max(axis=0)[None, :], len(layer.edges_of(pair)), axis=0)


def _promise(standing: Standing, safe_by: str) -> str:
    if safe_by != BEFORE_THE_ALARM:
        return standing.promise
    plan = standing.agent.plan.number
    return f"an alarm has put the declared knowledge in doubt: no promise; plan {plan}, from before it, certified this"


def _safe_by(standing: Standing, h: int, pair: int, own: bool) -> str:
    """What the safety of a pair rests on where the episode is; ``own``: it is the fallback's."""
    agent, plan, graph = standing.agent, standing.agent.plan, standing.problem.graph
    layer = graph.layers[h]
    if standing.safe_mode and own:
        return "assumption"
    if not (agent.guaranteed and plan.certified_sets.pairs[h][pair]):
        return "nothing"
    if standing.safe_mode:
        return BEFORE_THE_ALARM
    kept, reached = within_limits(_uppers(standing, h, pair), agent.problem.bounds[h]), layer.successors_of(pair)
    kept &= plan.certified_sets.states[h + 1][reached]
    if h + 1 == graph.horizon - 1 and plan.bounds.terminal_upper is not None:  # −∞ where there is no cost
        kept &= within_limits(plan.bounds.terminal_upper[reached], agent.problem.bounds[-1])
    return "estimate" if plan.consistent and kept.all() else "assumption"


def _safe_at(standing: Standing, proved: bool, own: bool) -> str:
    """What the safety of a choice at an exact state rests on; ``own``: it is the fallback's."""
    if not standing.agent.guaranteed or not (proved or own):
        return "nothing"
    if standing.safe_mode:
        return "assumption" if own else BEFORE_THE_ALARM
    return "estimate" if proved else "assumption"


def _successor(standing: Standing, h: int, state: int, upper: FloatArray, certified: bool) -> dict[str, Any]:
    problem, plan = standing.problem, standing.agent.plan
    following: Label = None
    last = None
    if h + 1 < problem.horizon - 1:
        pair = _pair(standing, h + 1, state)
        if pair != NO_ACTION:
            following = problem.naming.action(problem.graph.layers[h + 1], h + 1, pair)
    elif plan.bounds.terminal_upper is not None and problem.graph.terminal.has_cost[state]:
        last = plan.bounds.terminal_upper[state]
    return {
        "state": problem.naming.states[h + 1][state],
        "upper": _numbers(upper),
        "margin": margins(upper, problem.bounds[h], certified),
        "certified": bool(plan.certified_sets.states[h + 1][state]),
        "next_action": following,
        "last_upper": None if last is None else _numbers(last),
        "last_margin": None if last is None else margins(last, problem.bounds[-1], certified),
    }


def _numbers(row: FloatArray) -> list[float | None]:
    """JSON has no infinity: null means that nothing is known."""
    return [float(value) if np.isfinite(value) else None for value in row]
