"""Where a study stands: what follows from its journal, and from nothing else.

:meth:`Standing.apply` takes one record after the other. A running study writes a record first and applies it then, a
reopened one applies what is written; both go through the same lines, so that they cannot differ.

**Failure probability.** The agent of epoch k (a new epoch begins when data are discarded after a drift) works with the
share p·2^-(k+1). By the union bound all steps of all epochs are safe with probability ≥ 1 − p(½ + ¼ + …) = 1 − p.
A declaration that is widened while the data are kept spends nothing (:mod:`surefoot.study.declaring`).
Likewise monitor i (a new one begins with each acknowledgement) works at the level α·2^-(i+1), so that a truthful plant
raises any false alarm at all, over the whole study, with probability at most α.

**Safe mode.** From an alarm on, until a person acknowledges it, data are still counted but no plan is made from them,
and the plan stays as it was: the alarm says that the declared knowledge, on which all bounds rest, is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents import registry
from surefoot.agents.look_ahead import LookAhead
from surefoot.checks import promised
from surefoot.errors import OutOfOrder, SurefootError
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.monitor.watching import AlarmLike, MonitorFactory, MonitorLike
from surefoot.study import declaring
from surefoot.study.declaring import Declarations, Raised
from surefoot.study.records import Record, label_of

#: What a computation raises that numbers beyond reckoning have led astray.
_FAILURES = (SurefootError, ArithmeticError, ValueError, LookupError, TypeError)

#: Numbers that overflow are dealt with where they lead to; whether numpy warns of them must change nothing.
_unruffled = np.errstate(all="ignore")

T = TypeVar("T")
_Heard = tuple[AlarmLike | None, object]  # what the monitor says, and whether the row was certified


def share(total: float, number: int) -> float:
    """The part of a probability that epoch or monitor ``number`` may spend: total·2^-(number+1)."""
    return math.ldexp(total, -(number + 1))


@dataclass
class Place:
    """The episode under way."""

    episode: int
    step: int
    state: int
    lost: bool = False  # an unknown action was applied: where the plant is, is not known


class Standing:
    """The state of a study."""

    @_unruffled
    def __init__(self, problem: Problem, opened: Record, monitor: MonitorFactory, declared: Declarations) -> None:
        self.problem = problem  # as declared now
        self.declared: Record = {key: opened[key] for key in ("problem", "problem_file")}
        self.opened_with: str = opened["problem"]
        self._declarations = declared
        self.ridges: list[float] | None = None  # kept, with the data, when the declaration was widened
        self.restored: Record | None = None  # how the promise came back after an alarm that disproved it
        self.outside, self.discarded_at = list[str](), ""  # transitions that a discard has answered; when it was
        self.failure_probability: float = opened["failure_probability"]
        self.false_alarm: float = opened["false_alarm"]
        self.agent_name: str = opened["agent"]
        self.options: Record = opened["options"]
        self._monitor_factory = monitor
        self.epoch, self.monitor_number, self.tells = 0, 0, 0
        self.episodes = 0  # begun
        self.rows, self.rows_at_snapshot = 0, 0  # told or imported: what a replay takes its time for
        self.vouched: list[Record] = []  # imports with rows that are like others, by a person's word different ones
        self.place: Place | None = None
        self.pending: Record | None = None  # the ask
        self.last_ask: Record | None = None
        self.last_tell: Record | None = None
        self.last_terminal: Record | None = None
        self.alarms: list[tuple[int, Raised]] = []  # with their records' numbers, not yet acknowledged
        self.unwritten: list[Raised] = []  # raised, but not yet in the journal
        self.applied = 1  # records: the opening
        self.drifted = ""  # where rounding differs from the machine that wrote the journal, plans come at other times
        self._employ(self._new_agent(problem, 0, None), 0)
        self._start_monitor()

    def _employ(self, agent: LookAhead, n: int) -> None:
        """Go on with an agent whose plan knows no data yet."""
        self.share = share(self.failure_probability, self.epoch)
        self.agent, self.constants = agent, agent.constants
        self.first_values = agent.plan.values.value  # V before any data, for imported rows
        self.made_after = n

    @_unruffled
    def _new_agent(self, problem: Problem, epoch: int, ridges: list[float] | None) -> LookAhead:
        kept = {} if ridges is None else {"ridges": ridges}
        p = share(self.failure_probability, epoch)
        agent = registry.make(self.agent_name, problem, failure_probability=p, **{**self.options, **kept})
        assert isinstance(agent, LookAhead)
        return agent

    def next_agent(self, problem: Problem, discard: bool) -> LookAhead:
        """The agent after an acknowledgement: without data, or with all of them under a wider declaration."""
        if discard:
            return self._new_agent(problem, self.epoch + 1, None)
        agent = self._new_agent(problem, self.epoch, list(self.constants["ridges"]))
        agent.inherit(self.agent)
        return agent

    def new_monitor(self, problem: Problem, number: int) -> MonitorLike:
        return self._monitor_factory(problem, share(self.false_alarm, number))

    def _start_monitor(self) -> None:
        self.monitor = self.new_monitor(self.problem, self.monitor_number)

    @_unruffled
    def resume(
        self,
        scalars: Record,
        alarms: list[tuple[int, Raised]],
        agent: Mapping[str, NDArray[Any]],
        monitor: Mapping[str, NDArray[Any]],
    ) -> None:
        """Go where a snapshot says; this standing must be fresh."""
        vars(self).update(scalars)
        self.rows_at_snapshot = self.rows
        if self.declared["problem"] != self.problem.digest:
            self.problem = self._declarations(self.declared)
        if self.epoch or self.ridges is not None:
            self._employ(self._new_agent(self.problem, self.epoch, self.ridges), self.made_after)
        self._start_monitor()
        self.agent.restore(agent)
        self.monitor.restore(monitor)
        self.alarms = alarms
        if alarms:
            self.agent.replan_growth = math.inf

    # --- reading it -------------------------------------------------------------------------------------

    @property
    def safe_mode(self) -> bool:
        return bool(self.alarms or self.unwritten)

    @property
    def why(self) -> str:
        """What was raised and not yet acknowledged, in words."""
        return "; ".join(raised.message for raised in self.raised)

    @property
    def raised(self) -> list[Raised]:
        return [raised for _, raised in self.alarms] + self.unwritten

    @property
    def at_terminal(self) -> bool:
        """True when all that is missing of the episode is the cost of its last state."""
        return self.place is not None and self.place.step == self.problem.horizon - 1

    @property
    def promise(self) -> str:
        if not self.agent.guaranteed:
            return "no safety guarantee"
        if self.safe_mode:
            return "an alarm has put the declared knowledge in doubt: what is left is the fallback's own safety"
        back = self.restored
        steps = "every step of the study" if back is None else f"every step since record {back['record']}"
        by = "" if back is None else f" ({', '.join(back['by'])})"
        return f"{steps} safe with probability {promised(self.failure_probability)}{by}"

    def where(self) -> str:
        if self.place is None:
            return ""
        return f"episode {self.place.episode}, {self.problem.naming.at_state(self.place.step, self.place.state)}"

    def ends_episode(self, h: int, next_state: int) -> bool:
        """True when nothing is to come after the transition of layer h into this state."""
        return h == self.problem.horizon - 2 and not self.problem.graph.terminal.has_cost[next_state]

    # --- one record further -----------------------------------------------------------------------------

    @_unruffled
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
        state = self.problem.state_index(0, label_of(record["start"]))
        _expect(state in self.problem.graph.starts, "an episode begins in no start state")
        self.agent.begin(state)
        self.episodes += 1
        self.place = Place(self.episodes, 0, state)
        if (record["epoch"], record["plan"], record["made_after"]) != (self.epoch, self.agent.replans, self.made_after):
            self.drifted = self.drifted or (
                f"record {record['n']}: plan {record['plan']}, made after record {record['made_after']}, was in force; "
                f"replayed on this machine it is plan {self.agent.replans}, made after record {self.made_after}. "
                "Bounds hold at all times, so no promise is touched"
            )

    def _ask(self, record: Record) -> None:
        self._expect_here(record)
        _expect(self.pending is None, "an action is offered while another one is pending")
        self.pending = self.last_ask = record

    def _tell(self, record: Record) -> None:
        self._expect_here(record)
        place, n = self.place, record["n"]
        _expect(self.pending is not None and self.pending["ask"] == record["ask"], "a tell without its ask")
        assert place is not None
        if record["unused"] is None:
            self._count(place, record)
        elif record["unused"] == "successor":
            self._raise(
                "successor",
                n,
                f"{self.where()}, action {record['action']!r}: the plant went to {record['next_state']!r}, "
                "which is outside the declared support",
                {key: record[key] for key in ("step", "state", "action", "next_state")},
            )
        else:
            place.lost = True
        self.pending, self.last_tell = None, record
        self.tells += 1
        self.rows += 1
        if record["ends"]:
            self._finish(n)

    def _count(self, place: Place, record: Record) -> None:
        """A transition along a declared edge."""
        h, n = place.step, record["n"]
        names = (label_of(record["state"]), label_of(record["action"]))
        pair = self.problem.pair_index(h, *names)
        edge = self.problem.edge_index(h, *names, label_of(record["next_state"]))
        cost = self._cost(record["cost"])
        after = int(self.problem.graph.layers[h].successor[edge])
        _expect(record["ends"] == self.ends_episode(h, after), "an episode ends at the wrong step")
        self._compute(lambda: self.agent.record(h, pair, edge, cost))
        if record["raw_cost"] is not None:
            self._raise_cost(record)
        elif cost is not None:
            watch = self.monitor
            alarm = self._compute(lambda: watch.beyond(cost) if self.safe_mode else watch.observe(h, edge, cost))
            self._heed(alarm, n, self.agent.plan.certified_sets.pairs[h][pair])
        place.step, place.state = h + 1, after

    def _terminal(self, record: Record) -> None:
        place, n = self.place, record["n"]
        _expect(place is not None and self.at_terminal and self.pending is None, "a last cost out of turn")
        assert place is not None
        _expect(record["episode"] == place.episode, "a last cost of another episode")
        cost = self._cost(record["cost"])
        self._compute(lambda: self.agent.record_terminal(cost))
        if record["raw_cost"] is not None:
            self._raise_cost(record)
        elif cost is not None:
            watch, i = self.monitor, place.state
            alarm = self._compute(lambda: watch.beyond(cost) if self.safe_mode else watch.observe_terminal(i, cost))
            self._heed(alarm, n, self.agent.plan.certified_sets.states[-1][i])
        self.last_terminal = record
        self._finish(n)

    def _abort(self, record: Record) -> None:
        _expect(self.place is not None and record["episode"] == self.place.episode, "no such episode is under way")
        self.pending = None
        self._finish(record["n"])

    def _finish(self, n: int) -> None:
        """The episode is over; outside safe mode a new plan is made if the data have grown enough."""
        self.place = None
        self._plan(self.agent.finish, n)

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
        except _FAILURES as error:
            details = {"error": f"{type(error).__name__}: {error}"[:300], "epoch": self.epoch}
            self._raise("computation", self.applied, f"the data cannot be computed with: {error}"[:300], details)
            return None

    # --- alarms -----------------------------------------------------------------------------------------

    def _raise(self, kind: str, n: int, message: str, details: Record) -> None:
        details = json.loads(json.dumps(details), parse_constant=str)  # the journal holds no NaN
        self.unwritten.append(Raised(kind, n, message, details))
        self.agent.replan_growth = math.inf  # no plan is made from data that are in doubt

    def _raise_cost(self, record: Record) -> None:
        told = ", ".join(record["raw_cost"])
        self._raise("cost", record["n"], f"{self.where()}: the cost told is not finite: {told}", {"cost": told})

    def _heed(self, alarm: AlarmLike | None, n: int, certified: object, at: str = "") -> None:
        """``certified``: by the plan in force. A cost of what was not certified may exceed its limit."""
        if alarm is not None:
            self._raise(alarm.kind, n, at + alarm.message, {**alarm.details, "certified": bool(certified)})

    def _alarm(self, record: Record) -> None:
        raised = Raised(record["alarm"], record["record"], record["message"], record["details"])
        self.unwritten = [item for item in self.unwritten if (item.kind, item.record) != (raised.kind, raised.record)]
        self.alarms.append((record["n"], raised))
        self.agent.replan_growth = math.inf

    def _acknowledge(self, record: Record) -> None:
        _expect(self.place is None and self.safe_mode, "an acknowledgement without an alarm")
        old, discard, n = self.problem, record["discard"], record["n"]
        new = old if record["problem"] == old.digest else self._declarations(record)
        answered = [raised for _, raised in self.alarms]
        declaring.check(answered, old, new, discard, self.outside)
        _expect(record["changes"] == declaring.changes(old, new, discard), "the changes are others")
        _expect(record["epoch"] == self.epoch + bool(discard), "an epoch out of turn")
        _expect(record["monitor"] == self.monitor_number + 1, "a monitor out of turn")
        if any(raised.disproves for raised in answered):
            self.restored = {"record": n, "by": record["changes"]}
        self.outside += declaring.answered_by_discard(answered, new) if discard else []
        agent = self.next_agent(new, discard) if discard or new is not old else None
        self.alarms = []  # those that were not yet written, as after a replay that failed, nobody has seen
        self.problem, self.declared = new, {key: record[key] for key in ("problem", "problem_file")}
        self.monitor_number += 1
        self._start_monitor()
        if discard:
            self.unwritten = []
            self.epoch, self.ridges, self.discarded_at = self.epoch + 1, None, record["time"]
        elif agent is not None:
            self.ridges = list(self.constants["ridges"])
        if agent is not None:
            self._employ(agent, n if discard else self.made_after)
        if not discard and not self.unwritten:
            self.agent.replan_growth = self.constants["replan_growth"]
            self._plan(self.agent.replan, n)

    @property
    def must_discard(self) -> bool:
        return any(raised.kind in declaring.DISCARDING for raised in self.raised)

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
                declaring.join(self.unwritten[0].details, alarm.details, bool(certified))
        self.rows += len(record["rows"])
        if record["repeated"]:
            self.vouched.append({key: record[key] for key in ("n", "source", "repeated", "different")})
        if not self.safe_mode:
            self._plan(self.agent.replan, record["n"])

    def _import_transition(self, h: int, state: Any, action: Any, after: Any, cost: Any) -> _Heard:
        names = (label_of(state), label_of(action))
        pair = self.problem.pair_index(h, *names)
        edge = self.problem.edge_index(h, *names, label_of(after))
        layer, measured = self.problem.graph.layers[h], self._cost(cost)
        values = self.first_values[h + 1]
        self._compute(lambda: self.agent.transitions.add(h, layer, pair, edge, values))
        if measured is None:
            return None, True
        self._compute(lambda: self.agent.costs.add(h, layer.cost_features[edge], measured))
        watch = self.monitor
        alarm = self._compute(lambda: watch.beyond(measured) if self.unwritten else watch.observe(h, edge, measured))
        return alarm, self.agent.plan.certified_sets.pairs[h][pair]

    def _import_terminal(self, h: int, state: Any, cost: Any) -> _Heard:
        last, i = self.problem.graph.terminal, self.problem.state_index(h, label_of(state))
        _expect(h == self.problem.horizon - 1 and last.has_cost[i], "the cost of a state that has none")
        measured = self._cost(cost)
        if measured is None or last.cost_features is None:
            return None, True
        features, watch = last.cost_features[i], self.monitor
        self._compute(lambda: self.agent.costs.add(h, features, measured))
        alarm = self._compute(lambda: watch.beyond(measured) if self.unwritten else watch.observe_terminal(i, measured))
        return alarm, self.agent.plan.certified_sets.states[h][i]

    # --- checks -----------------------------------------------------------------------------------------

    def _cost(self, cost: Any) -> FloatArray | None:
        if cost is None:
            return None
        values = np.array(cost, dtype=np.float64)
        fits = values.shape == (len(self.problem.limits),) and bool(np.isfinite(values).all())
        _expect(fits, "a cost is not one finite number per limit")
        return values

    def _expect_here(self, record: Record) -> None:
        place = self.place
        _expect(place is not None and not place.lost and not self.at_terminal, "no action is due")
        assert place is not None
        here = place.step, self.problem.naming.states[place.step][place.state]
        _expect((record["step"], label_of(record["state"])) == here, "the episode is elsewhere")


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise OutOfOrder(otherwise)
