"""The state of a study, which follows from its journal and from nothing else.

:meth:`Standing.apply` takes one record after the other. A running study writes a record and then applies it; a reopened
one applies what is written. Both run the same code, so they cannot differ.

**Failure probability.** The agent of epoch k (a new epoch begins when data are discarded) works with the share
p·2^-(k+1). By the union bound all steps of all epochs are safe with probability ≥ 1 − p(½ + ¼ + …) = 1 − p. Widening
the declaration while keeping the data spends nothing (:mod:`surefoot.study.comparing`). Likewise monitor i (each
acknowledgement begins a new one) works at the level α·2^-(i+1): if the plant is as declared, any alarm at all, over the
whole study, has probability at most α.

**Safe mode.** From an alarm until a person acknowledges it, data are still counted, but no plan is made from them: the
alarm says that the declared knowledge, on which all bounds rest, is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from surefoot.agents.blocks.place import Place, start_of, under_way
from surefoot.agents.learner import FAILURES
from surefoot.errors import OutOfOrder, UnknownLabel
from surefoot.model.arrays import FloatArray
from surefoot.model.labels import label_of
from surefoot.model.measured import finite_cost, measured_features
from surefoot.model.problem import Problem
from surefoot.model.rays import at_intensity
from surefoot.monitor.monitor import Alarm
from surefoot.study import alarms, declaring
from surefoot.study.alarms import Raised
from surefoot.study.comparing import other_growth
from surefoot.study.records import Record
from surefoot.study.state import State, unruffled

T = TypeVar("T")
_Heard = tuple[Alarm | None, object]  # what the monitor says, and whether the row was certified


def _rounded(point: list[float]) -> list[float]:
    return [round(value, 9) for value in point]


class Standing(State):
    """The state of a study, and how each record changes it."""

    # --- one record further -----------------------------------------------------------------------------

    @unruffled
    def apply(self, record: Record) -> None:
        """Take one record into account; one that does not fit is an error."""
        steps: dict[str, Callable[[Record], None]] = {
            "begin": self._begin,
            "ask": self._ask,
            "tell": self._tell,
            "doubt": self._doubt,
            "terminal": self._terminal,
            "abort": self._abort,
            "alarm": self._alarm,
            "acknowledge": self._acknowledge,
            "import": self._import,
            "grow": self._grow,
            "snapshot": self._snapshot,
            "clock": lambda record: None,
        }
        _expect(record["n"] == self.applied, "a record was left out")
        steps[record["kind"]](record)
        self.applied += 1

    def _snapshot(self, record: Record) -> None:
        self.rows_at_snapshot = self.rows

    def _begin(self, record: Record) -> None:
        _expect(self.place is None and record["episode"] == self.episodes + 1, "an episode begins out of turn")
        self.agent._begin(start_of(self.problem, label_of(record["start"])))
        self.episodes += 1
        place = under_way(self.place)
        place.episode, place.exact = self.episodes, record["point"]  # agents count from 1 in every epoch
        self.drifted = self.drifted or self._drift(record)

    def _drift(self, record: Record) -> str:
        """A remark if a replay comes to another plan than the one that was in force; '' if it does not."""
        plan, made_after = self.agent.replans, self.made_after
        if (record["epoch"], record["plan"], record["made_after"]) == (self.epoch, plan, made_after):
            return ""
        return (
            f"record {record['n']}: plan {record['plan']}, made after record {record['made_after']}, was in force; "
            f"replayed on this machine it is plan {plan}, made after record {made_after}. "
            "Bounds hold at all times, so no promise is touched"
        )

    def _ask(self, record: Record) -> None:
        place = self._place_of(record)
        _expect(self.pending is None, "an action is offered while another one is pending")
        pair = self.problem.pair_index(place.step, label_of(record["state"]), label_of(record["action"]))
        self._expect_intensity(place.step, pair, record["intensity"])
        self.pending = record

    def _tell(self, record: Record) -> None:
        place = self._place_told(record)
        if record["unused"] is None:
            self._count(place, record)
        elif record["unused"] == "successor":
            self._leave_support(record)
        else:
            place.lost = True
        if self.pending is not None:
            self.last_told = self.pending, record
        self.pending = self.doubt = None
        self.tells += 1
        self.rows += 1
        if record["ends"]:
            self._plan(self.agent._finish)

    def _doubt(self, record: Record) -> None:
        self._place_told(record)
        self.doubt = record

    def _leave_support(self, record: Record) -> None:
        """Raise the alarm about an undeclared next state."""
        seen = {key: record[key] for key in ("step", "state", "action", "next_state")}
        if record["point"] is not None:
            seen["exact"] = record["point"]["state"]
        also = "forbidden, and " if self._forbids(record["step"] + 1, record["next_state"]) else ""
        self._raise("successor", f"{self.went(record)}, which is {also}outside the declared support", seen)

    def went(self, record: Record) -> str:
        """Where a tell says that the plant went, and for a plant where it was expected."""
        action = f"action {record['action']!r}{at_intensity(record['intensity'])}"
        ask, point = self.pending, record["point"]
        if point is None or ask is None:
            return f"{self.where()}, {action}: the plant went to {record['next_state']!r}"
        by = action if record["override"] else f"input {label_of(ask['point']['input'])!r}"
        boxes = " or ".join(f"{_rounded(low)} … {_rounded(high)}" for low, high in point["boxes"])
        return f"{self.where()}, {by}: the plant went to {_rounded(point['state'])}, expected in {boxes}"

    def _forbids(self, h: int, state: Any) -> bool:
        """True if a state of step h, given by its label, is declared as forbidden."""
        try:
            return bool(self.problem.graph.forbidden(h)[self.problem.state_index(h, label_of(state))])
        except UnknownLabel:
            return False

    def _count(self, place: Place, record: Record) -> None:
        """A transition along a declared edge."""
        h, where = place.step, str(place)
        pair, edge = self._transition(h, record["state"], record["action"], record["next_state"])
        cost, played = self._cost(record["cost"]), record["intensity"]
        self._expect_intensity(h, pair, played)
        point, exact = record["point"], None
        if point is not None:
            place.exact, exact = point["state"], np.array([point["features"]])
        place.strayed |= self.problem.shared_offsets and (record["override"] or self.safe_mode)
        self._compute(lambda: self.agent._record(h, pair, edge, cost, exact, played))
        if place.step == h:  # it could not be counted, but it happened
            place.move(edge)
        _expect(record["ends"] == (place.due == "end"), "an episode ends at the wrong step")
        certified, x = self._seen(h, pair, edge, played, exact)
        if exact is not None:  # an offer of a plant is certified at the exact state
            certified = certified or not record["override"]
        self._weigh(record, h, where, x, cost, certified)

    def _seen(self, h: int, pair: int, edge: int, intensity: float | None, x: Any = None) -> tuple[object, Any]:
        """Is a pair certified at the intensity that was played, and the features of a cost measured there. ``x``: those
        at the exact state of a plant."""
        plan = self.agent.plan
        certified = bool(plan.certified_sets.pairs[h][pair])
        if x is None:
            layer, _, along = self.agent.played(h, pair, edge, intensity)
            x = measured_features(self.problem, layer, along, None, self.where())
        if plan.intensities is not None and intensity is not None and intensity != plan.intensities[h][pair]:
            certified = certified and bool(np.all(plan.bounds.at(h, x)[0] <= self.problem.bounds[h]))
        return certified, x[0]

    def _last(self, state: int) -> tuple[object, Any]:
        """The same for the cost of a last state."""
        features = self.problem.graph.terminal.cost_features
        return self.agent.plan.certified_sets.states[-1][state], None if features is None else features[state]

    def _terminal(self, record: Record) -> None:
        place = under_way(self.place)
        place.expect("terminal")
        _expect(record["episode"] == place.episode, "a last cost of another episode")
        cost = self._cost(record["cost"])
        place.strayed |= self.problem.shared_offsets and self.safe_mode
        self._compute(lambda: self.agent._record_terminal(cost))
        certified, x = self._last(place.state)
        self._weigh(record, place.step, str(place), x, cost, certified)
        self.last_terminal = record
        self._plan(self.agent._finish)

    def _abort(self, record: Record) -> None:
        _expect(record["episode"] == under_way(self.place).episode, "no such episode is under way")
        if self.doubt is not None:  # nobody has said that the plant is anywhere else
            self._leave_support(self.doubt)
        self.pending = self.doubt = None
        self._plan(self.agent._finish)

    def _plan(self, make: Callable[[], None]) -> None:
        """Let the agent plan if it is due. A plan that fails or contradicts itself is an alarm; the one before
        stays."""
        before, replans, failed = self.agent.planned(), self.agent.replans, self.agent.failed_replans
        self._compute(make)
        if self.agent.failed_replans > failed:
            self._raise("plan", self.agent.plan_failure[:300], {"epoch": self.epoch})
        if self.agent.replans == replans:
            return
        if self.agent.plan.consistent:
            self.made_after = self.applied
            return
        message = "the measured costs contradict the declared model: some lower bound exceeds its upper bound"
        self._raise("contradiction", message, {"epoch": self.epoch, "plan": self.agent.plan.number})
        self.agent.put_back(before)

    def _compute(self, step: Callable[[], T]) -> T | None:
        """The result of a step; if it fails, None and an alarm. The record is on disk by then: an error would come back
        at every replay, and the study could not be opened."""
        try:
            return step()
        except FAILURES as error:
            details = {"error": f"{type(error).__name__}: {error}"[:300], "epoch": self.epoch}
            self._raise("computation", f"the data cannot be computed with: {error}"[:300], details)
            return None

    # --- alarms -----------------------------------------------------------------------------------------

    def _raise(self, kind: str, message: str, details: Record) -> None:
        details = json.loads(json.dumps(details), parse_constant=str)  # the journal holds no NaN
        self.unwritten.append(Raised(kind, self.applied, message, details))
        self.agent.replan_growth = math.inf  # no plan is made from data that are in doubt

    def _weigh(self, record: Record, h: int, where: str, x: Any, cost: FloatArray | None, certified: object) -> None:
        """Raise an alarm if a cost that was told is not finite, or if the monitor raises one."""
        if record["raw_cost"] is not None:
            told = ", ".join(record["raw_cost"])
            self._raise("cost", f"{where}: the cost told is not finite: {told}", {"cost": told})
        elif cost is not None:
            self._heed(self._watched(h, x, cost), certified)

    def _watched(self, h: int, x: Any, cost: FloatArray) -> Alarm | None:
        """The monitor's alarm about a cost of step h, if any. In safe mode, and where the agent does not learn from the
        cost either, only the limit is tested."""
        doubted = self.safe_mode or (self.place is not None and self.place.strayed)
        return self._compute(lambda: self.monitor.beyond(h, cost) if doubted else self.monitor.observe(h, x, cost))

    def _heed(self, alarm: Alarm | None, certified: object, at: str = "") -> None:
        """``certified``: by the plan in force; the cost of an action that was not may exceed its limit."""
        if alarm is not None:
            self._raise(alarm.kind, at + alarm.message, {**alarm.details, "certified": bool(certified)})

    def _alarm(self, record: Record) -> None:
        raised = Raised.of(record)
        self.unwritten = [item for item in self.unwritten if (item.kind, item.record) != (raised.kind, raised.record)]
        self.alarms[record["n"]] = raised
        self.agent.replan_growth = math.inf

    def _acknowledge(self, record: Record) -> None:
        _expect(self.place is None and self.safe_mode, "an acknowledgement without an alarm")
        old, discard, n = self.problem, record["discard"], record["n"]
        new = old if record["problem"] == old.digest else self._named(record)
        answered = list(self.alarms.values())
        declaring.refuse_unanswered(answered, old, new, discard, self.outside)
        _expect(record["changes"] == declaring.changes(old, new, discard), "its changes do not match the declarations")
        _expect(record["epoch"] == self.epoch + bool(discard), "an epoch out of turn")
        _expect(record["monitor"] == self.monitor_number + 1, "a monitor out of turn")
        if any(raised.disproves for raised in answered):
            self.restored = {"record": n, "by": record["changes"]}
        self.outside += alarms.answered_by_discard(answered, new) if discard else []
        agent = self.next_agent(new, discard) if discard or new is not old else None
        self.alarms = {}  # nobody has seen those that are not yet written, as after a replay that failed
        self.problem, self.declared = new, {key: record[key] for key in ("problem", "problem_file")}
        self.despite = record["despite"]
        self.monitor_number += 1
        self.monitor = self.new_monitor(self.problem, self.monitor_number)
        if discard:
            self.unwritten = []
            self.epoch, self.discarded_at = self.epoch + 1, record["time"]
        if agent is not None:
            self.kept = None if discard and new.graph.beyond is None else self.fixed
            self._employ(agent, n if discard else self.made_after)
        if not discard and not self.unwritten:
            self.agent.replan_growth = self.constants["replan_growth"]
            self._plan(self.agent.replan)

    def _named(self, record: Record) -> Problem:
        """The problem that a record names: the one at hand, which may be able to grow, or the one in its file."""
        near, self.at_hand = self.at_hand, None
        return near if near is not None and near.digest == record["problem"] else self._declared_by(record)

    # --- growth -----------------------------------------------------------------------------------------

    def _grow(self, record: Record) -> None:
        _expect(self.place is None and not self.safe_mode, "the graph grows out of turn")
        new = self._named(record)
        fault = other_growth(self.problem, new)
        _expect(not fault, f"the larger graph is not the one before, grown: {fault}")
        self.problem, self.declared = new, {key: record[key] for key in ("problem", "problem_file")}
        self.grown = {name: [*pairs, *record[name]] for name, pairs in self.grown.items()}
        self.monitor.follow(new)
        self._plan(lambda: self.agent.adopt(new))

    # --- logged rows ------------------------------------------------------------------------------------

    def _import(self, record: Record) -> None:
        _expect(self.place is None and not self.alarms, "rows are imported out of turn")
        _expect(record["different"] is not None or not record["repeated"], "rows were imported twice")
        _expect((record["since"] or "") > self.discarded_at or not self.discarded_at, "rows from before the discard")
        for i, row in enumerate(record["rows"]):
            alarm, certified = self._import_terminal(*row) if len(row) == 3 else self._import_transition(*row)
            if not self.unwritten:
                self._heed(alarm, certified, f"row {i + 1} of the import: ")
            elif alarm is not None:
                alarms.join(self.unwritten[0].details, alarm.details, bool(certified))
        self.rows += len(record["rows"])
        if record["repeated"]:
            self.vouched.append({key: record[key] for key in ("n", "source", "repeated", "different")})
        if not self.safe_mode:
            self._plan(self.agent.replan)

    def _import_transition(self, h: int, state: Any, action: Any, after: Any, *rest: Any) -> _Heard:
        pair, edge = self._transition(h, state, action, after)
        intensity, measured = rest[0] if len(rest) > 1 else None, self._cost(rest[-1])
        self._expect_intensity(h, pair, intensity)
        layer, own, along = self.agent.played(h, pair, edge, intensity)
        known = self.first_values[h + 1]
        before = np.pad(known, (0, self.problem.graph.n_states(h + 1) - len(known)))  # 0 where the graph has grown
        self._compute(lambda: self.agent.transitions.add(h, layer, own, along, before))
        if measured is None:
            return None, True
        certified, x = self._seen(h, pair, edge, intensity)
        self._compute(lambda: self.agent.costs.add(h, x[None], measured))
        return self._watched(h, x, measured), certified

    def _import_terminal(self, h: int, state: Any, cost: Any) -> _Heard:
        last, i = self.problem.graph.terminal, self.problem.state_index(h, label_of(state))
        _expect(h == self.problem.horizon - 1 and last.has_cost[i], "the cost of a state that has none")
        measured, (certified, x) = self._cost(cost), self._last(i)
        if measured is None or x is None:
            return None, True
        self._compute(lambda: self.agent.costs.add(h, x, measured))
        return self._watched(h, x, measured), certified

    # --- checks -----------------------------------------------------------------------------------------

    def _transition(self, h: int, state: Any, action: Any, after: Any) -> tuple[int, int]:
        """(pair, edge) of a record's labels."""
        names = (label_of(state), label_of(action))
        return self.problem.pair_index(h, *names), self.problem.edge_index(h, *names, label_of(after))

    def _expect_intensity(self, h: int, pair: int, intensity: Any) -> None:
        """In a problem with rays one that the action can have, in others null."""
        given = intensity is not None
        _expect(given == self.problem.has_rays, "an action without its intensity, or with one too many")
        if given:
            self.problem.intensity(h, pair, intensity, self.where())

    def _cost(self, cost: Any) -> FloatArray | None:
        return finite_cost(self.problem, cost, self.where())

    def _place_told(self, record: Record) -> Place:
        """The same for what answers the pending ask."""
        place = self._place_of(record)
        _expect(self.pending is not None and self.pending["ask"] == record["ask"], "a tell without its ask")
        return place

    def _place_of(self, record: Record) -> Place:
        """Where the episode is; an ask or a tell of another place is refused."""
        place = under_way(self.place)
        place.expect_at("act", record["step"], label_of(record["state"]))
        return place


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise OutOfOrder(otherwise)
