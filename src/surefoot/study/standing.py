"""Where a study stands: what follows from its journal, and from nothing else.

:meth:`Standing.apply` takes one record after the other. A running study writes a record first and applies it then, a
reopened one applies what is written; both go through the same lines, so that they cannot differ.

**Failure probability.** The agent of epoch k (a new epoch begins when data are discarded after a drift) works with the
share p·2^-(k+1). By the union bound all steps of all epochs are safe with probability ≥ 1 − p(½ + ¼ + …) = 1 − p.
A declaration that is widened while the data are kept spends nothing (:mod:`surefoot.study.comparing`).
Likewise monitor i (a new one begins with each acknowledgement) works at the level α·2^-(i+1), so that a truthful plant
raises any false alarm at all, over the whole study, with probability at most α.

**Safe mode.** From an alarm on, until a person acknowledges it, data are still counted but no plan is made from them,
and the plan stays as it was: the alarm says that the declared knowledge, on which all bounds rest, is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from surefoot.agents.blocks.place import Place, start_of, under_way
from surefoot.agents.learner import FAILURES
from surefoot.errors import OutOfOrder, UnknownLabel
from surefoot.model.graph import FloatArray
from surefoot.model.labels import label_of
from surefoot.model.measured import finite_cost, measured_features
from surefoot.model.problem import Problem
from surefoot.model.rays import at_intensity
from surefoot.monitor.monitor import Alarm
from surefoot.study import alarms, declaring
from surefoot.study.alarms import Raised
from surefoot.study.comparing import other_growth
from surefoot.study.records import Record, drift
from surefoot.study.state import State, unruffled

T = TypeVar("T")
_Observe = Callable[[FloatArray], Alarm | None]
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
        place.episode, place.exact = self.episodes, record["point"]  # agents count anew in every epoch
        self.drifted = self.drifted or drift(record, self.epoch, self.agent.replans, self.made_after)

    def _ask(self, record: Record) -> None:
        place = self._place_of(record)
        _expect(self.pending is None, "an action is offered while another one is pending")
        pair = self.problem.pair_index(place.step, label_of(record["state"]), label_of(record["action"]))
        self._expect_intensity(place.step, pair, record["intensity"])
        self.pending = self.last_ask = record

    def _tell(self, record: Record) -> None:
        place, n = self._place_of(record), record["n"]
        _expect(self.pending is not None and self.pending["ask"] == record["ask"], "a tell without its ask")
        seen = {key: record[key] for key in ("step", "state", "action", "next_state")}
        if record["point"] is not None:
            seen["exact"] = record["point"]["state"]
        if record["unused"] is None:
            self._count(place, record)
        elif record["unused"] == "successor":
            also = "forbidden, and " if self._forbids(place.step + 1, record["next_state"]) else ""
            self._raise("successor", n, f"{self._went(record)}, which is {also}outside the declared support", seen)
        else:
            place.lost = True
        self.pending, self.last_tell = None, record
        self.tells += 1
        self.rows += 1
        if record["ends"]:
            self._plan(self.agent._finish, n)

    def _went(self, record: Record) -> str:
        """Where a tell says that the plant went; after an input of a plant, and where it was expected."""
        action = f"action {record['action']!r}{at_intensity(record['intensity'])}"
        ask, point = self.pending, record["point"]
        if point is None or ask is None:
            return f"{self.where()}, {action}: the plant went to {record['next_state']!r}"
        by = action if record["override"] else f"input {label_of(ask['point']['input'])!r}"
        boxes = " or ".join(f"{_rounded(low)} … {_rounded(high)}" for low, high in point["boxes"])
        return f"{self.where()}, {by}: the plant went to {_rounded(point['state'])}, expected in {boxes}"

    def _forbids(self, h: int, state: Any) -> bool:
        """True when a state of step h, by its name, is declared as forbidden."""
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
        if place.step == h:  # a transition that cannot be counted has happened anyway
            place.move(edge)
        _expect(record["ends"] == (place.due == "end"), "an episode ends at the wrong step")
        certified, observe = self._seen(h, pair, edge, played, exact)
        if exact is not None:  # of a plant: certified at the exact state, if it was offered
            certified = certified or not record["override"]
        self._weigh(record, h, where, cost, observe, certified)

    def _seen(self, h: int, pair: int, edge: int, intensity: float | None, x: Any = None) -> tuple[object, _Observe]:
        """Is a pair certified at the intensity that was played; and who looks at the cost that was measured there.
        ``x``: the features at the exact state, of a plant."""
        plan, observe = self.agent.plan, partial(self.monitor.observe, h, edge)
        certified = bool(plan.certified_sets.pairs[h][pair])
        if x is None and intensity is not None and plan.intensities is not None:
            layer, _, along = self.agent.played(h, pair, edge, intensity)
            x = measured_features(self.problem, layer, along, None, self.where())
        if x is not None:
            observe = partial(self.monitor.observe_features, h, x[0])
        if plan.intensities is not None and intensity is not None and intensity != plan.intensities[h][pair]:
            certified = certified and bool(np.all(plan.bounds.at(h, x)[0] <= self.problem.bounds[h]))
        return certified, observe

    def _terminal(self, record: Record) -> None:
        place = under_way(self.place)
        place.expect("terminal")
        _expect(record["episode"] == place.episode, "a last cost of another episode")
        cost = self._cost(record["cost"])
        place.strayed |= self.problem.shared_offsets and self.safe_mode
        self._compute(lambda: self.agent._record_terminal(cost))
        certified = self.agent.plan.certified_sets.states[-1][place.state]
        self._weigh(
            record,
            self.problem.horizon - 1,
            str(place),
            cost,
            partial(self.monitor.observe_terminal, place.state),
            certified,
        )
        self.last_terminal = record
        self._plan(self.agent._finish, record["n"])

    def _abort(self, record: Record) -> None:
        _expect(record["episode"] == under_way(self.place).episode, "no such episode is under way")
        self.pending = None
        self._plan(self.agent._finish, record["n"])

    def _plan(self, make: Callable[[], None], n: int) -> None:
        """Let the agent plan if it wants to. One that fails or contradicts itself is an alarm; the one before stays."""
        before, replans, failed = self.agent.planned(), self.agent.replans, self.agent.failed_replans
        self._compute(make)
        if self.agent.failed_replans > failed:
            self._raise("plan", n, self.agent.plan_failure[:300], {"epoch": self.epoch})
        if self.agent.replans == replans:
            return
        if self.agent.plan.consistent:
            self.made_after = n
            return
        message = "the measured costs contradict the declared model: some lower bound exceeds its upper bound"
        self._raise("contradiction", n, message, {"epoch": self.epoch, "plan": self.agent.plan.number})
        self.agent.put_back(before)

    def _compute(self, step: Callable[[], T]) -> T | None:
        """What a step gives; None, and an alarm, when it fails.

        The record is on disk by then: an error would come back at every replay, and the study could not be opened.
        """
        try:
            return step()
        except FAILURES as error:
            details = {"error": f"{type(error).__name__}: {error}"[:300], "epoch": self.epoch}
            self._raise("computation", self.applied, f"the data cannot be computed with: {error}"[:300], details)
            return None

    # --- alarms -----------------------------------------------------------------------------------------

    def _raise(self, kind: str, n: int, message: str, details: Record) -> None:
        details = json.loads(json.dumps(details), parse_constant=str)  # the journal holds no NaN
        self.unwritten.append(Raised(kind, n, message, details))
        self.agent.replan_growth = math.inf  # no plan is made from data that are in doubt

    def _weigh(
        self, record: Record, h: int, where: str, cost: FloatArray | None, observe: _Observe, certified: object
    ) -> None:
        """A cost that was told is not finite, or gives the monitor something to say."""
        if record["raw_cost"] is not None:
            told = ", ".join(record["raw_cost"])
            self._raise("cost", record["n"], f"{where}: the cost told is not finite: {told}", {"cost": told})
        elif cost is not None:
            self._heed(self._watched(h, cost, observe), record["n"], certified)

    def _watched(self, h: int, cost: FloatArray, observe: _Observe) -> Alarm | None:
        """What the monitor says of a cost of step h; in safe mode, and where the agent does not learn from it either,
        it only looks whether a limit was exceeded."""
        doubted = self.safe_mode or (self.place is not None and self.place.strayed)
        return self._compute(lambda: self.monitor.beyond(h, cost) if doubted else observe(cost))

    def _heed(self, alarm: Alarm | None, n: int, certified: object, at: str = "") -> None:
        """``certified``: by the plan in force. A cost of what was not certified may exceed its limit."""
        if alarm is not None:
            self._raise(alarm.kind, n, at + alarm.message, {**alarm.details, "certified": bool(certified)})

    def _alarm(self, record: Record) -> None:
        raised = Raised.of(record)
        self.unwritten = [item for item in self.unwritten if (item.kind, item.record) != (raised.kind, raised.record)]
        self.alarms.append((record["n"], raised))
        self.agent.replan_growth = math.inf

    def _acknowledge(self, record: Record) -> None:
        _expect(self.place is None and self.safe_mode, "an acknowledgement without an alarm")
        old, discard, n = self.problem, record["discard"], record["n"]
        new = old if record["problem"] == old.digest else self._named(record)
        answered = [raised for _, raised in self.alarms]
        declaring.refuse_unanswered(answered, old, new, discard, self.outside)
        _expect(record["changes"] == declaring.changes(old, new, discard), "the changes are others")
        _expect(record["epoch"] == self.epoch + bool(discard), "an epoch out of turn")
        _expect(record["monitor"] == self.monitor_number + 1, "a monitor out of turn")
        if any(raised.disproves for raised in answered):
            self.restored = {"record": n, "by": record["changes"]}
        self.outside += alarms.answered_by_discard(answered, new) if discard else []
        agent = self.next_agent(new, discard) if discard or new is not old else None
        self.alarms = []  # those that were not yet written, as after a replay that failed, nobody has seen
        self.problem, self.declared = new, {key: record[key] for key in ("problem", "problem_file")}
        self.despite = record["despite"]
        self.monitor_number += 1
        self.monitor = self.new_monitor(self.problem, self.monitor_number)
        if discard:
            self.unwritten = []
            self.epoch, self.discarded_at = self.epoch + 1, record["time"]
            self.kept = None if new.graph.beyond is None else self.fixed
        elif agent is not None:
            self.kept = self.fixed
        if agent is not None:
            self._employ(agent, n if discard else self.made_after)
        if not discard and not self.unwritten:
            self.agent.replan_growth = self.constants["replan_growth"]
            self._plan(self.agent.replan, n)

    def _named(self, record: Record) -> Problem:
        """The problem that a record names: the one at hand, which may be able to grow, or that of its file."""
        near, self.at_hand = self.at_hand, None
        return near if near is not None and near.digest == record["problem"] else self._declared_by(record)

    # --- growth -----------------------------------------------------------------------------------------

    def _grow(self, record: Record) -> None:
        _expect(self.place is None and not self.safe_mode, "the graph grows out of turn")
        new = self._named(record)
        fault = other_growth(self.problem, new)
        _expect(not fault, f"the graph that has grown is another one: {fault}")
        self.problem, self.declared = new, {key: record[key] for key in ("problem", "problem_file")}
        self.grown = {name: [*pairs, *record[name]] for name, pairs in self.grown.items()}
        self.monitor.follow(new)
        self._plan(lambda: self.agent.adopt(new), record["n"])

    # --- logged rows ------------------------------------------------------------------------------------

    def _import(self, record: Record) -> None:
        _expect(self.place is None and not self.alarms, "rows are imported out of turn")
        _expect(record["different"] is not None or not record["repeated"], "rows were imported twice")
        _expect((record["since"] or "") > self.discarded_at or not self.discarded_at, "rows from before the discard")
        for i, row in enumerate(record["rows"]):
            alarm, certified = self._import_terminal(*row) if len(row) == 3 else self._import_transition(*row)
            if not self.unwritten:
                self._heed(alarm, record["n"], certified, f"row {i + 1} of the import: ")
            elif alarm is not None:
                alarms.join(self.unwritten[0].details, alarm.details, bool(certified))
        self.rows += len(record["rows"])
        if record["repeated"]:
            self.vouched.append({key: record[key] for key in ("n", "source", "repeated", "different")})
        if not self.safe_mode:
            self._plan(self.agent.replan, record["n"])

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
        x = measured_features(self.problem, layer, along, None, self.where())
        self._compute(lambda: self.agent.costs.add(h, x, measured))
        certified, observe = self._seen(h, pair, edge, intensity)
        return self._watched(h, measured, observe), certified

    def _import_terminal(self, h: int, state: Any, cost: Any) -> _Heard:
        last, i = self.problem.graph.terminal, self.problem.state_index(h, label_of(state))
        _expect(h == self.problem.horizon - 1 and last.has_cost[i], "the cost of a state that has none")
        measured = self._cost(cost)
        if measured is None or last.cost_features is None:
            return None, True
        features = last.cost_features[i]
        self._compute(lambda: self.agent.costs.add(h, features, measured))
        alarm = self._watched(h, measured, partial(self.monitor.observe_terminal, i))
        return alarm, self.agent.plan.certified_sets.states[h][i]

    # --- checks -----------------------------------------------------------------------------------------

    def _transition(self, h: int, state: Any, action: Any, after: Any) -> tuple[int, int]:
        """(pair, edge) of a record's labels."""
        names = (label_of(state), label_of(action))
        return self.problem.pair_index(h, *names), self.problem.edge_index(h, *names, label_of(after))

    def _expect_intensity(self, h: int, pair: int, intensity: Any) -> None:
        """One that the action can have, in a problem with rays; null in others."""
        _expect(
            (intensity is not None) == self.problem.has_rays, "an action without its intensity, or with one too many"
        )
        if intensity is not None:
            self.problem.intensity(h, pair, intensity, self.where())

    def _cost(self, cost: Any) -> FloatArray | None:
        return finite_cost(self.problem, cost, self.where())

    def _place_of(self, record: Record) -> Place:
        """Where the episode is, which is where an ask or a tell says that it is."""
        place = under_way(self.place)
        place.expect_at("act", record["step"], label_of(record["state"]))
        return place


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise OutOfOrder(otherwise)
