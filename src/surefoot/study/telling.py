"""Tells: what is written to the journal, what is answered, and how a repeated one is recognised."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.agents.blocks.place import Place
from surefoot.errors import InvalidInput, OutOfOrder, UnknownLabel
from surefoot.model.labels import Label, label_of, same_label
from surefoot.model.measured import Cost, measured
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL, at_intensity
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study.exact import Exact
from surefoot.study.records import Record, ask_number
from surefoot.study.standing import Standing

AS_OFFERED: Any = ...  #: in place of an action that was applied

_SAID = ("action", "intensity", "next_state", "cost", "raw_cost", "point")


@dataclass(frozen=True)
class Receipt:
    """The answer to a tell that is on disk."""

    repeated: bool  # it was on record already; nothing changed
    done: bool  # the episode is over
    at_terminal: bool  # the cost of the last state is awaited
    safe_mode: bool
    alarm: str | None  # what this tell raised

    @classmethod
    def of(cls, standing: Standing, record: Record, repeated: bool = False) -> Receipt:
        done, alarm = standing.place is None, standing.raised_by(record)
        return cls(repeated, done, standing.at_terminal, standing.safe_mode, alarm)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def tell_entries(
    standing: Standing,
    exact: Exact,
    ask: Record,
    next_state: Label,
    cost: Cost,
    applied: Label,
    intensity: float | None,
) -> Record:
    """The entries of a tell that answers an ask; everything that is wrong with it is refused here."""
    point, may, foreign, problem, h = None, True, False, standing.problem, ask["step"]
    if ask["point"] is not None:
        if intensity is not None and problem.has_rays:
            fix = "Give action_applied=, the input itself. Nothing was recorded."
            raise InvalidInput("for a plant, tell the input that was applied, not an intensity", fix=fix)
        found = exact.applied(ask, None if applied is AS_OFFERED else applied)
        foreign = found is None  # no input of the plant, though it may look like the number of one
        number, u, intensity = (applied, None, None) if found is None else found
        next_state, point, may = exact.told(ask, next_state, u)
        applied = AS_OFFERED if found is not None and number == ask["action"] else number
    said = label_of(ask["state"]) if ask["point"] is None else ask["point"]["state"]
    where = f"episode {ask['episode']}, step {h}, state {said!r}"
    numbers, raw = measured(problem, cost, where)
    after, unused, ends = label_of(next_state, where), None, False
    action, played, known = _applied(problem, ask, applied, intensity, foreign, where)
    if not known or not _expanded(problem, h, label_of(ask["state"]), action):
        unused = "action"  # nobody knows where it leads
    else:
        there = _reached(problem, ask, action, after, where)
        if there is None or not may:
            unused, ends = "successor", True
        else:
            after, ends = there.label, there.due == "end"
    return {
        "ask": ask["ask"],
        "step": h,
        "state": ask["state"],
        "action": action,
        "intensity": played,
        "override": not known or not same_label(action, label_of(ask["action"])) or played != ask["intensity"],
        "next_state": after,
        "cost": numbers,
        "raw_cost": raw,
        "unused": unused,
        "ends": ends,
        "point": point,
    }


def _applied(
    problem: Problem, ask: Record, applied: Label, intensity: float | None, foreign: bool, where: str
) -> tuple[Label, float | None, bool]:
    """(action, intensity, is it one of the state's) of what was applied; ``foreign``: no input of the plant."""
    h, action, other = ask["step"], label_of(ask["action"]), False
    if applied is not AS_OFFERED:
        given = label_of(applied, where)
        if foreign:
            return given, None, False
        try:
            pair = problem.pair_index(h, label_of(ask["state"]), given)
        except UnknownLabel as error:
            _refuse_other_spelling(error, "the applied action", where)
            if given is not None:  # None means "as offered", unless it is an action's own name
                return given, None, False
        else:
            known = problem.naming.action(problem.graph.layers[h], h, pair)
            other, action = not same_label(known, action), known
    return action, _played(problem, ask, action, other, intensity, where), True


def _played(problem: Problem, ask: Record, action: Label, other: bool, given: float | None, where: str) -> float | None:
    """The intensity at which an action of the state was applied; None in a problem without rays."""
    h = ask["step"]
    pair = problem.pair_index(h, label_of(ask["state"]), action)
    if given is not None:
        value = problem.intensity(h, pair, given, where)
        return value if problem.has_rays else None
    if other and problem.is_ray(h, pair):
        fix = "Give intensity=, between 0 and 1. Nothing was recorded."
        raise InvalidInput("say at which intensity the other action was applied", where=where, got="none", fix=fix)
    known: float | None = ask["intensity"]
    return FULL if other and problem.has_rays else known


def _reached(problem: Problem, ask: Record, action: Label, after: Label, where: str) -> Place | None:
    """Where a transition leads; None if it is not declared."""
    h = ask["step"]
    try:
        edge = problem.edge_index(h, label_of(ask["state"]), action, after)
    except UnknownLabel:
        _refuse_misspelt(problem, h + 1, after, where)
        return None
    return Place(problem, ask["episode"], h + 1, int(problem.graph.layers[h].successor[edge]))


def _expanded(problem: Problem, h: int, state: Label, action: Label) -> bool:
    return problem.graph.beyond is None or bool(problem.graph.expanded(h)[problem.pair_index(h, state, action)])


def _refuse_misspelt(problem: Problem, h: int, state: Label, where: str) -> None:
    """Refuse ``"0"`` where ``0`` is a state: it is a mistake of the caller, not a new successor."""
    try:
        problem.state_index(h, state)
    except UnknownLabel as error:
        _refuse_other_spelling(error, "the next state", where)


def _refuse_other_spelling(error: UnknownLabel, what: str, where: str) -> None:
    if error.fix:
        rule = f"{what} is told in another spelling than it was declared"
        raise InvalidInput(rule, where=where, got=error.got, fix=f"{error.fix} Nothing was recorded.") from None


def in_doubt(standing: Standing, off: str) -> InvalidInput:
    """The refusal of a state where a plant cannot be; ``off``: why, in words."""
    fix = (
        "Nothing was counted. Tell the right state, or if this is the right one, tell it again with sure=True, which "
        "raises an alarm. To abort the episode raises it as well."
    )
    return InvalidInput("by what is declared, the plant cannot be there", where=standing.where(), got=off, fix=fix)


def still_in_doubt(standing: Standing) -> OutOfOrder:
    """The refusal of an ask until a tell says where the plant is."""
    assert standing.doubt is not None
    got = f"{standing.went(standing.doubt)} (ask {standing.doubt['ask']})"
    fix = "Tell the right state, or the same one with sure=True."
    return OutOfOrder("the state told last cannot have followed, so nothing is offered", got=got, fix=fix)


def same_told(one: Record | None, other: Record) -> bool:
    """Do two tells say the same?"""
    return one is not None and all(_plain(one[key]) == _plain(other[key]) for key in _SAID)


def told_before(
    standing: Standing,
    exact: Exact,
    path: Path,
    layer: FileLayer,
    name: str,
    told: tuple[Label, Cost, Label, float | None],
) -> Receipt:
    """The receipt of a tell that is only repeated; anything else about an ask that is not pending is refused.

    What a caller repeats is nearly always the last tell, which is at hand; the journal is read for older ones.
    """
    known = standing.last_told
    ask, tell = known if known is not None and known[0]["ask"] == name else _find(path, layer, name)
    if tell is None:
        raise OutOfOrder("the episode of this ask was aborted, so nothing can be told", got=name)
    now = tell_entries(standing, exact, ask, *told)
    if not same_told(tell, now):
        raise OutOfOrder(
            "another tell of this ask is on record",
            got=f"next state {tell['next_state'] if tell['point'] is None else tell['point']['state']!r}, "
            f"cost {tell['cost'] or tell['raw_cost']}, action {_played_as(ask, tell)}, at {tell['time']}",
            fix="Nothing was changed.",
        )
    return Receipt.of(standing, tell, repeated=True)


def _played_as(ask: Record, tell: Record) -> str:
    """The action of a tell in words; for a plant the input, if it was the one offered."""
    if ask["point"] is not None and not tell["override"]:
        return repr(label_of(ask["point"]["input"]))
    return f"{tell['action']!r}{at_intensity(tell['intensity'])}"


def _find(path: Path, layer: FileLayer, name: str) -> tuple[Record, Record | None]:
    """An old ask and its tell, from the journal; None if the episode was aborted before it."""
    n, ask = ask_number(name), None
    for line in journals.read_lines(path, layer):
        if line.n < n:
            continue
        record = line.record(path)
        if line.n == n:
            if record["kind"] != "ask" or record["ask"] != name:
                break
            ask = record
        elif ask is not None and record["kind"] in ("tell", "abort") and record["ask"] == name:
            return ask, record if record["kind"] == "tell" else None
    raise OutOfOrder("no such ask was ever made in this study", got=name)


def _plain(value: Any) -> Any:
    """For comparing: labels are lists in a record and tuples from a caller, and 1 is not True."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return type(value), value
