"""The state of a study, for people and for programs in other languages."""

from __future__ import annotations

import math
from typing import Any

from surefoot.model.rays import at_intensity
from surefoot.plan.plan import Plan
from surefoot.plan.rays import opening_in_words
from surefoot.study.alarms import DISCARD, NOISE, REASON, SUPPORT, Raised, unanswered
from surefoot.study.certificate import Offer
from surefoot.study.standing import Standing

_CALLS = {"act": "ask", "terminal": "tell_terminal", "abort": "abort"}  # by what is due; nothing is pending

IN_DOUBT = 'tell the right state, or the same one with "sure": true'  #: what answers a refused state


def status(standing: Standing) -> dict[str, Any]:
    """Plain JSON; ``next`` is the call that is due: begin, ask, tell, tell_terminal or abort."""
    agent, place = standing.agent, standing.place
    return {
        "records": standing.applied,
        "episodes": standing.episodes,
        "tells": standing.tells,
        "next": next_call(standing),
        "episode": None if place is None else {"number": place.episode, "step": place.step, "state": place.said},
        "pending": None if standing.pending is None else Offer.of(standing.pending).to_dict(),
        "doubt": None if standing.doubt is None else standing.went(standing.doubt),
        "safe_mode": standing.safe_mode,
        "alarms": [item.entries() for item in standing.raised],
        "must_discard": any(item.answer == DISCARD for item in standing.raised),
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
        "to_gain": progress_of(agent.plan)["to_gain"],
        "pairs": sum(layer.n_pairs for layer in standing.problem.graph.layers),
        "cost_rows": agent.costs.bank.rows.tolist(),
        "transition_rows": agent.transitions.bank.rows.tolist(),
        "vouched": list(standing.vouched),
        "problem": standing.problem.digest,
    }


def progress_of(plan: Plan) -> dict[str, Any]:
    """How far a plan has come: certified pairs, and how much can still be gained at most (null: not finite)."""
    left = plan.to_gain
    return {"certified": plan.n_certified(), "to_gain": left if math.isfinite(left) else None}


def as_text(found: dict[str, Any]) -> str:
    """A status for a person: is it safe, how far has it come, what is due."""
    lines = [f"{found['path']}: " + ("SAFE MODE, an alarm waits for a person" if found["safe_mode"] else "normal")]
    lines += [f"  alarm ({alarm['alarm']}): {alarm['message']}" for alarm in found["alarms"]]
    if found["safe_mode"]:
        lines += [f"  it takes {in_words(answer)}" for answer in found["answers"]]
        lines.append(f"  acknowledge with: {acknowledging_command(found)}")
    begun, told = _counted(found["episodes"], "episode"), _counted(found["tells"], "measurement")
    share = found["certified_pairs"] / max(1, found["pairs"])
    lines += [
        f"promise: {found['promise']}",
        f"{begun} begun, {told} told, {_counted(found['records'], 'record')}",
        f"certified: {found['certified_pairs']:,} of {found['pairs']:,} actions ({share:.0%}), plan {found['plan']}",
    ]
    if found["to_gain"] is not None:
        lines.append(f"still to be gained: {found['to_gain']:.3g} an episode at most, by the learner's own bounds")
    place = found["episode"]
    if place is not None:
        lines.append(f"under way: episode {place['number']}, step {place['step']}, state {place['state']!r}")
    if found["pending"] is not None:
        offer = found["pending"]
        lines.append(f"offered: {offer['action']!r}{at_intensity(offer['intensity'])} (ask {offer['ask_id']})")
        certificate = offer["certificate"]
        bounds = dict(zip(certificate["limits"], certificate["bounds"], strict=True))
        if words := opening_in_words(certificate["opening"], bounds):
            lines.append(f"  it {words}")
    if found["doubt"] is not None:
        lines.append(f"told, but cannot have followed: {found['doubt']}; {IN_DOUBT}")
    lines.append(f"due: {found['next']}")
    lines += [f"note: {remark}" for remark in found["recovered"]]
    return "\n".join(lines)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def in_words(answer: str) -> str:
    """One of the ``answers``, for people who do not write Python."""
    return answer.replace("discard_data=True", "that all data are discarded")


def acknowledging_command(found: dict[str, Any]) -> str:
    """What a person types to acknowledge the alarms, with the mildest answer that is enough."""
    raised = [Raised.of(entries) for entries in found["alarms"]]
    asked = {alarm.answer for alarm in raised} - {REASON}
    options = " --discard-data" if asked else ""
    if asked == {NOISE}:
        needed = [alarm.details["noise_needed"] for alarm in raised if alarm.answer == NOISE]
        scales = {name: max(each.get(name, 0.0) for each in needed) for each in needed for name in each}
        options = "".join(f" --noise '{name}={scale * (1 + 1e-5):.6g}'" for name, scale in scales.items())
    elif asked == {SUPPORT}:
        options = " --problem WIDER.json"
    return f"surefoot study acknowledge {found['path']} --reason '…'{options}"


def next_call(standing: Standing) -> str:
    """The call that is due."""
    if standing.place is None:
        return "begin"
    return "tell" if standing.pending is not None else _CALLS[standing.place.due]
