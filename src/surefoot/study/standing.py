"""Where a study stands: what follows from its journal, and from nothing else.

:meth:`Standing.apply` takes one record after the other. A running study writes a record first and applies it then, a
reopened one applies what is written; both go through the same lines, so that they cannot differ.

**Failure probability.** The agent of epoch k (a new epoch begins when data are discarded after a drift) works with the
share p·2^-(k+1). By the union bound all steps of all epochs are safe with probability ≥ 1 − p(½ + ¼ + …) = 1 − p.
Likewise monitor i (a new one begins with each acknowledgement) works at the level α·2^-(i+1), so that a truthful plant
raises any false alarm at all, over the whole study, with probability at most α.

**Safe mode.** From an alarm on, until a person acknowledges it, data are still counted but no plan is made from them,
and monitor and plan stay as they were: the alarm says that the declared knowledge, on which all bounds rest, is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.lsvi_new import LsviNew
from surefoot.errors import OutOfOrder
from surefoot.model.layered import FloatArray
from surefoot.model.problem import Problem
from surefoot.study.records import Record, label_of

#: After these, what was learnt cannot be trusted any more.
DISCARDING = frozenset({"residual", "contradiction"})


class AlarmLike(Protocol):
    """What a monitor raises."""

    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def details(self) -> dict[str, Any]: ...


class MonitorLike(Protocol):
    """What a study asks of a monitor; :class:`surefoot.study.monitor.Monitor` is the one."""

    def observe(self, h: int, edge_index: int, cost: FloatArray, /) -> AlarmLike | None: ...
    def observe_terminal(self, state_index: int, cost: FloatArray, /) -> AlarmLike | None: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: Mapping[str, NDArray[Any]], /) -> None: ...


MonitorFactory = Callable[[Problem, float], MonitorLike]


def share(total: float, number: int) -> float:
    """The part of a probability that epoch or monitor ``number`` may spend: total·2^-(number+1)."""
    return math.ldexp(total, -(number + 1))


@dataclass(frozen=True)
class Raised:
    """An alarm, before or after it is journalled."""

    kind: str
    record: int  # that raised it
    message: str
    details: dict[str, Any]

    def entries(self) -> Record:
        return {"alarm": self.kind, "record": self.record, "message": self.message, "details": self.details}


@dataclass
class Place:
    """The episode under way."""

    episode: int
    layer: int
    state: int
    lost: bool = False  # an unknown action was applied: where the plant is, is not known


class Standing:
    """The state of a study."""

    def __init__(self, problem: Problem, opened: Record, monitor: MonitorFactory) -> None:
        self.problem = problem
        self.failure_probability: float = opened["failure_probability"]
        self.false_alarm: float = opened["false_alarm"]
        self.options: Record = opened["options"]
        self._new_monitor = monitor
        self.epoch, self.monitor_number = 0, 0
        self.episodes = 0  # begun
        self.tells = 0
        self.rows, self.rows_at_snapshot = 0, 0  # told or imported: what a replay takes its time for
        self.place: Place | None = None
        self.pending: Record | None = None  # the ask
        self.last_ask: Record | None = None
        self.last_tell: Record | None = None
        self.last_terminal: Record | None = None
        self.alarms: list[tuple[int, Raised]] = []  # with their records' numbers, not yet acknowledged
        self.unwritten: list[Raised] = []  # raised, but not yet in the journal
        self.applied = 1  # records: the opening
        self.plan_failure = ""  # why the plan that is due could not be made
        self.drifted = ""  # where rounding differs from the machine that wrote the journal, plans come at other times
        self._start_epoch(0)
        self._start_monitor()

    def _start_epoch(self, n: int) -> None:
        self.share = share(self.failure_probability, self.epoch)
        self.agent = self.new_agent(self.epoch)
        self.constants = self.agent.constants
        self.first_values = self.agent.plan.values.value  # V before any data, for imported rows
        self.made_after = n

    def new_agent(self, epoch: int) -> LsviNew:
        """The agent with which an epoch begins, without data."""
        return LsviNew(self.problem, share(self.failure_probability, epoch), **self.options)

    def _start_monitor(self) -> None:
        self.monitor = self._new_monitor(self.problem, share(self.false_alarm, self.monitor_number))

    def resume(
        self,
        scalars: Record,
        alarms: list[tuple[int, Raised]],
        agent: Mapping[str, NDArray[Any]],
        monitor: Mapping[str, NDArray[Any]],
    ) -> None:
        """Go where a snapshot says; this standing must be fresh."""
        for key, value in scalars.items():
            setattr(self, key, value)
        self.rows_at_snapshot = self.rows
        if self.epoch:
            self._start_epoch(self.made_after)
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
        return self.place is not None and self.place.layer == self.problem.horizon - 1

    @property
    def guarantee(self) -> str:
        if not self.agent.guaranteed:
            return "no safety guarantee"
        if self.safe_mode:
            return "an alarm has put the declared knowledge in doubt: what is left is the seed's own safety"
        return f"every step of the study safe with probability ≥ {1 - self.failure_probability:g}"

    def where(self) -> str:
        if self.place is None:
            return ""
        return f"episode {self.place.episode}, {self.problem.naming.at_state(self.place.layer, self.place.state)}"

    def ends_episode(self, h: int, next_state: int) -> bool:
        """True when nothing is to come after the transition of layer h into this state."""
        return h == self.problem.horizon - 2 and not self.problem.graph.terminal.has_cost[next_state]

    # --- one record further -----------------------------------------------------------------------------

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
                {"next_state": record["next_state"]},
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
        h, n = place.layer, record["n"]
        names = (label_of(record["state"]), label_of(record["action"]))
        pair = self.problem.pair_index(h, *names)
        edge = self.problem.edge_index(h, *names, label_of(record["next_state"]))
        cost = self._cost(record["cost"])
        after = int(self.problem.graph.layers[h].successor[edge])
        _expect(record["ends"] == self.ends_episode(h, after), "an episode ends at the wrong step")
        self.agent.record(h, pair, edge, cost)
        if record["raw_cost"] is not None:
            self._raise_cost(record)
        elif cost is not None and not self.safe_mode:
            self._heed(self.monitor.observe(h, edge, cost), n)
        place.layer, place.state = h + 1, after

    def _terminal(self, record: Record) -> None:
        place, n = self.place, record["n"]
        _expect(place is not None and self.at_terminal and self.pending is None, "a last cost out of turn")
        assert place is not None
        _expect(record["episode"] == place.episode, "a last cost of another episode")
        cost = self._cost(record["cost"])
        self.agent.record_terminal(cost)
        if record["raw_cost"] is not None:
            self._raise_cost(record)
        elif cost is not None and not self.safe_mode:
            self._heed(self.monitor.observe_terminal(place.state, cost), n)
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
        """Let the agent make a plan if it wants to; one that contradicts itself is an alarm.

        One that cannot be computed is not: the plan before holds as it did, and the next ``begin`` says so.
        """
        before = self.agent.replans
        make()
        self.plan_failure = self.agent.plan_failure
        if self.agent.replans == before:
            return
        self.made_after = n
        if not self.agent.plan.consistent:
            message = "the measured costs contradict the declared model: some lower bound exceeds its upper bound"
            self._raise("contradiction", n, message, {"epoch": self.epoch, "plan": self.agent.plan.number})

    # --- alarms -----------------------------------------------------------------------------------------

    def _raise(self, kind: str, n: int, message: str, details: Record) -> None:
        self.unwritten.append(Raised(kind, n, message, details))
        self.agent.replan_growth = math.inf  # no plan is made from data that are in doubt

    def _raise_cost(self, record: Record) -> None:
        told = ", ".join(record["raw_cost"])
        self._raise("cost", record["n"], f"{self.where()}: the cost told is not finite: {told}", {"cost": told})

    def _heed(self, alarm: AlarmLike | None, n: int) -> None:
        if alarm is not None:
            self._raise(alarm.kind, n, alarm.message, alarm.details)

    def _alarm(self, record: Record) -> None:
        raised = Raised(record["alarm"], record["record"], record["message"], record["details"])
        self.unwritten = [
            other for other in self.unwritten if (other.kind, other.record) != (raised.kind, raised.record)
        ]
        self.alarms.append((record["n"], raised))
        self.agent.replan_growth = math.inf

    def _acknowledge(self, record: Record) -> None:
        _expect(self.place is None and self.safe_mode, "an acknowledgement without an alarm")
        discard = record["discard"]
        _expect(discard or not self.must_discard, "data in doubt are kept")
        _expect(record["epoch"] == self.epoch + bool(discard), "an epoch out of turn")
        _expect(record["monitor"] == self.monitor_number + 1, "a monitor out of turn")
        self.alarms, self.unwritten = [], []
        self.monitor_number += 1
        self._start_monitor()
        if discard:
            self.epoch += 1
            self._start_epoch(record["n"])
        else:
            self.agent.replan_growth = self.constants["replan_growth"]
            self._plan(self.agent.replan, record["n"])

    @property
    def must_discard(self) -> bool:
        return any(raised.kind in DISCARDING for raised in self.raised)

    # --- logged rows ------------------------------------------------------------------------------------

    def _import(self, record: Record) -> None:
        _expect(self.place is None and not self.safe_mode, "rows are imported out of turn")
        for i, row in enumerate(record["rows"]):
            alarm = self._import_terminal(*row) if len(row) == 3 else self._import_transition(*row)
            if alarm is not None and not self.unwritten:
                self._raise(alarm.kind, record["n"], f"row {i + 1} of the import: {alarm.message}", alarm.details)
        self.rows += len(record["rows"])
        if not self.safe_mode:
            self._plan(self.agent.replan, record["n"])

    def _import_transition(self, h: int, state: Any, action: Any, after: Any, cost: Any) -> AlarmLike | None:
        names = (label_of(state), label_of(action))
        pair = self.problem.pair_index(h, *names)
        edge = self.problem.edge_index(h, *names, label_of(after))
        layer, measured = self.problem.graph.layers[h], self._cost(cost)
        self.agent.transitions.add(h, layer, pair, edge, self.first_values[h + 1])
        if measured is None:
            return None
        self.agent.costs.add(h, layer.cost_features[edge], measured)
        return None if self.unwritten else self.monitor.observe(h, edge, measured)

    def _import_terminal(self, h: int, state: Any, cost: Any) -> AlarmLike | None:
        last, i = self.problem.graph.terminal, self.problem.state_index(h, label_of(state))
        _expect(h == self.problem.horizon - 1 and last.has_cost[i], "the cost of a state that has none")
        measured = self._cost(cost)
        if measured is None or last.cost_features is None:
            return None
        self.agent.costs.add(h, last.cost_features[i], measured)
        return None if self.unwritten else self.monitor.observe_terminal(i, measured)

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
        here = place.layer, self.problem.naming.states[place.layer][place.state]
        _expect((record["layer"], label_of(record["state"])) == here, "the episode is elsewhere")


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise OutOfOrder(otherwise)
