"""What a study holds between two records: its declaration, agent, monitor, alarms, and what it may promise.

Only :class:`surefoot.study.standing.Standing` changes it, record by record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.agents import registry
from surefoot.agents.blocks.look_ahead import LookAhead
from surefoot.agents.blocks.place import Place
from surefoot.checks import promised
from surefoot.model.arrays import FloatArray
from surefoot.model.problem import Problem
from surefoot.monitor.monitor import Monitor
from surefoot.study.alarms import Raised
from surefoot.study.declaring import Declarations
from surefoot.study.records import Record, share

MonitorFactory = Callable[[Problem, float], Monitor]

#: Overflows are handled where they matter; numpy's warnings about them must change nothing.
unruffled = np.errstate(all="ignore")


class State:
    """The state of a study."""

    @unruffled
    def __init__(self, problem: Problem, opened: Record, monitor: MonitorFactory, declared: Declarations) -> None:
        self.problem = problem  # as declared now
        self._began = problem.first
        self.declared: Record = {key: opened[key] for key in ("problem", "problem_file")}
        self.opened_with: str = opened["problem"]
        self._declarations = declared
        self.kept: Record | None = None  # ridges and their ratios, with the data, when the declaration was widened
        self.restored: Record | None = None  # how the promise came back after an alarm that disproved it
        self.outside = list[str]()  # transitions that a discard has answered
        self.discarded_at = ""  # the time of the last discard
        self.grown: Record = {"expanded": [], "refused": []}  # all pairs of all growths, in order
        self.at_hand: Problem | None = None  # the grown or newly declared problem of the record to be applied next
        self.first_values: tuple[FloatArray, ...] = ()  # targets before any data, for imported rows; of the first graph
        self.failure_probability: float = opened["failure_probability"]
        self.false_alarm: float = opened["false_alarm"]
        self.agent_name: str = opened["agent"]
        self.options: Record = opened["options"]
        self.despite: Record | None = opened["despite"]  # errors of the declaration, and why it is used anyway
        self._monitor_factory = monitor
        self.epoch, self.monitor_number, self.episodes, self.tells = 0, 0, 0, 0  # episodes: those begun
        self.rows, self.rows_at_snapshot = 0, 0  # told or imported, which is what a replay spends its time on
        self.vouched: list[Record] = []  # imports with rows like others; a person vouches that they differ
        self.pending: Record | None = None  # the ask
        self.doubt: Record | None = None  # where a plant was told to be and cannot be, until its ask is told
        self.last_told: tuple[Record, Record] | None = None  # an ask and its tell, since the last snapshot
        self.last_terminal: Record | None = None
        self.alarms: dict[int, Raised] = {}  # by the number of their record; not yet acknowledged
        self.unwritten: list[Raised] = []  # raised, but not yet in the journal
        self.of_plant = opened["plant"] is not None
        self.applied = 1  # records: the opening
        self.drifted = ""  # a remark if rounding differs from the machine that wrote the journal, and plans with it
        self._employ(self._new_agent(problem, 0, None), 0)
        self.monitor = self.new_monitor(self.problem, self.monitor_number)

    def _declared_by(self, record: Record) -> Problem:
        """The problem that a record names, from its file."""
        found = self._declarations(record)
        return found if found.graph.beyond is None else replace(found, began=self._began)

    def _employ(self, agent: LookAhead, n: int) -> None:
        """Continue with an agent whose plan knows no data yet."""
        self.share = share(self.failure_probability, self.epoch)
        self.agent, self.constants = agent, agent.constants
        if not self.first_values or agent.problem.graph.beyond is None:
            self.first_values = agent.plan.targets
        self.made_after = n

    @unruffled
    def _new_agent(self, problem: Problem, epoch: int, kept: Record | None) -> LookAhead:
        options = {**self.options, **(kept or {})}
        p = share(self.failure_probability, epoch)
        agent = registry.make(self.agent_name, problem, failure_probability=p, **options)
        assert isinstance(agent, LookAhead)
        agent.grows_alone = False  # the graph grows by records
        return agent

    def next_agent(self, problem: Problem, discard: bool) -> LookAhead:
        """The agent after an acknowledgement: without data, or with all of them under a wider declaration."""
        if discard:
            return self._new_agent(problem, self.epoch + 1, None if problem.graph.beyond is None else self.fixed)
        agent = self._new_agent(problem, self.epoch, self.fixed)
        agent.inherit(self.agent)
        return agent

    @property
    def fixed(self) -> Record:
        """The constants that are fixed before any data, and stay as long as data are kept (spec 3)."""
        return {name: self.constants[name] for name in ("ridges", "shaped", "ridge_ratios") if name in self.constants}

    def new_monitor(self, problem: Problem, number: int) -> Monitor:
        return self._monitor_factory(problem, share(self.false_alarm, number))

    @unruffled
    def resume(self, values: Record, agent: Mapping[str, NDArray[Any]], monitor: Mapping[str, NDArray[Any]]) -> None:
        """Take over the state of a snapshot; this standing must be fresh."""
        vars(self).update(values)
        self.rows_at_snapshot = self.rows
        if self.declared["problem"] != self.problem.digest:
            self.problem = self._declared_by(self.declared)
            if self.problem.graph.beyond is not None:
                self.agent.problem = self.problem  # the plan is made again below
        if self.epoch or self.kept is not None:
            self._employ(self._new_agent(self.problem, self.epoch, self.kept), self.made_after)
        self.monitor = self.new_monitor(self.problem, self.monitor_number)
        self.agent.restore(agent)
        self.monitor.restore(monitor)
        if self.alarms:
            self.agent.replan_growth = math.inf

    def take_over(self, problem: Problem) -> None:
        """Continue with the same problem in an object that can grow."""
        self.problem = problem
        self.agent.look_over(problem)
        self.monitor.follow(problem)
        if self.place is not None:
            self.place.problem = problem

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
        return [*self.alarms.values(), *self.unwritten]

    def raised_by(self, record: Record) -> str | None:
        """The first alarm that a record has raised, in words."""
        return next((raised.message for raised in self.raised if raised.record == record["n"]), None)

    @property
    def place(self) -> Place | None:
        """Where the episode under way is: the agent's own state machine."""
        return self.agent.place

    @property
    def at_terminal(self) -> bool:
        """True when only the cost of the episode's last state is missing."""
        return self.place is not None and self.place.due == "terminal"

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
        return "" if self.place is None else str(self.place)
