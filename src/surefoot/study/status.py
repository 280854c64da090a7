"""Where a study stands, for people and for programs in other languages."""

from __future__ import annotations

from typing import Any

from surefoot.study.certificate import Offer
from surefoot.study.declaring import DISCARDING, unanswered
from surefoot.study.standing import Standing

_CALLS = {"act": "ask", "terminal": "tell_terminal", "abort": "abort"}  # by what is due; nothing is pending


def status(standing: Standing) -> dict[str, Any]:
    """Plain JSON; ``next`` is the call that is due: begin, ask, tell, tell_terminal or abort."""
    agent = standing.agent
    return {
        "records": standing.applied,
        "episodes": standing.episodes,
        "tells": standing.tells,
        "next": next_call(standing),
        "episode": _episode(standing),
        "pending": None if standing.pending is None else Offer.of(standing.pending).to_dict(),
        "safe_mode": standing.safe_mode,
        "alarms": [item.entries() for item in standing.raised],
        "must_discard": any(item.kind in DISCARDING for item in standing.raised),
        "answers": unanswered(standing.raised, standing.problem, False, standing.outside),
        "promise": standing.promise,
        "restored": standing.restored,
        "despite": standing.despite,
        "agent": standing.agent_name,
        "failure_probability": standing.failure_probability,
        "false_alarm": standing.false_alarm,
        "epoch": standing.epoch,
        "share": standing.share,
        "plan": agent.replans,
        "made_after": standing.made_after,
        "certified_pairs": agent.plan.n_certified(),
        "pairs": sum(layer.n_pairs for layer in standing.problem.graph.layers),
        "cost_rows": agent.costs.bank.rows.tolist(),
        "transition_rows": agent.transitions.bank.rows.tolist(),
        "vouched": list(standing.vouched),
        "problem": standing.problem.digest,
    }


def next_call(standing: Standing) -> str:
    """The call that is due."""
    if standing.place is None:
        return "begin"
    return "tell" if standing.pending is not None else _CALLS[standing.place.due]


def _episode(standing: Standing) -> dict[str, Any] | None:
    place = standing.place
    if place is None:
        return None
    return {"number": place.episode, "step": place.step, "state": place.label}
