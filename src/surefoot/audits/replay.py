"""The audit's own replay of a journal: does every record fit the ones before it, was every offer certified?

What each record means is described in :mod:`surefoot.study.records`; ``offers`` checks the certificates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from surefoot.audits.answers import Declared, despite_errors, of_the_fallback
from surefoot.audits.bounds import Confidence, Data
from surefoot.audits.certified import Plan, make_plan
from surefoot.audits.chain import Record, Say, compact
from surefoot.audits.epoch import Epoch, Position, confidence_of
from surefoot.audits.imports import Measurements, is_cost, logged_features
from surefoot.audits.offers import Certificate, counted_as
from surefoot.audits.points import Points, Proof
from surefoot.audits.problem import NONE, Problem, label


class Replay:
    """Takes one record after the other, and reports whatever does not fit."""

    def __init__(
        self, problem: Problem, opened: Record, wrong: Say, load: Callable[[str], Problem], points: Points | None
    ) -> None:
        self._problem, self._say, self._opened, self._points = problem, wrong, opened, points
        self._n = 0  # the record at hand
        self._declared = Declared(problem, opened, load)
        self.counts: Counter[str] = Counter()
        self._episode: Position | None = None
        self._ask: tuple[Record, int] | None = None  # pending, and the pair offered
        self._alarms: list[tuple[int, Record]] = []  # not acknowledged
        self._due: list[tuple[int, tuple[str, ...]]] = []  # (record, kinds): an alarm that must come next
        self._monitor, self._measured = 0, 0
        self.measurements = Measurements(problem, self.counts, self._wrong)
        self._made: tuple[tuple[int, int], Plan] | None = None
        self.guaranteed = True
        self._epoch = self._new_epoch(0, opened)

    # --- epochs and plans -------------------------------------------------------------------------------

    @property
    def promise(self) -> str:
        """Of which steps the study promises anything at its end."""
        return self._declared.promise(self._alarms) if self.guaranteed else "none"

    @property
    def _paper(self) -> bool:
        return bool(self._opened["agent"] == "lsvi-new-paper")

    def _new_epoch(self, number: int, record: Record) -> Epoch:
        data, options = Data(self._problem, self._paper), self._opened["options"]
        if number and self._problem.longest_row is not None:  # the ridges are those of the first graph
            options = {**options, **self._epoch.fixed}
        confidence = self._confidence(number, record, options)
        moments = {self._n}
        return Epoch(number, data, confidence, record["constants"], moments=moments, firm={*moments}, plan=(1, self._n))

    def _confidence(self, number: int, record: Record, options: Record) -> Confidence:
        found, faults = confidence_of(self._problem, self._opened, number, record, options)
        for fault in faults:
            self._wrong(fault)
        ideas = record["constants"]["ideas"]
        if number == 0 and ("I" not in ideas or found.scale < 1.0):
            self.guaranteed = False
            self._wrong(f"its options give up the guarantee: ideas {ideas}, radius scaled by {found.scale}")
        return found

    def _plan(self, made_after: int) -> Plan:
        """Bounds and certified sets from the rows of the epoch up to a record."""
        epoch = self._epoch
        if self._made is not None and self._made[0] == (epoch.number, made_after):
            return self._made[1]
        data = epoch.data_until(made_after, self._problem, self._paper)
        plan = make_plan(self._problem, data, epoch.confidence)
        self.counts["plans"] += 1
        self._made = (epoch.number, made_after), plan
        return plan

    # --- records ----------------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> str:
        """The alarms that no person has answered, in words."""
        return "; ".join(str(alarm["message"]) for _, alarm in self._alarms)

    def apply(self, record: Record) -> None:
        """Take one record into account. One that cannot be understood raises."""
        kind, self._n = record["kind"], record["n"]
        if kind not in ("alarm", "snapshot", "clock"):
            for at, kinds in self._due:
                self._say(at, f"no alarm {' or '.join(kinds)} follows it")
            self._due = []
        self.counts[kind] += 1
        step: dict[str, Callable[[Record], None]] = {
            "begin": self._on_begin,
            "ask": self._on_ask,
            "tell": self._on_tell,
            "doubt": self._on_doubt,
            "terminal": self._on_terminal,
            "abort": self._on_abort,
            "alarm": self._on_alarm,
            "acknowledge": self._on_acknowledge,
            "import": self._on_import,
            "grow": self._on_grow,
            **dict.fromkeys(("snapshot", "clock"), lambda record: None),
            "open": lambda record: self._wrong("a second opening"),
        }
        step[kind](record)

    def _wrong(self, what: str) -> None:
        self._say(self._n, what)

    def _expect(self, condition: bool, otherwise: str) -> None:
        if not condition:
            self._wrong(otherwise)

    def _on_begin(self, record: Record) -> None:
        epoch, (number, made_after) = self._epoch, self._epoch.plan
        self._expect(self._episode is None, "an episode begins while another one is under way")
        self._expect(self._ask is None, "an episode begins while an action is pending: a tell is missing")
        self._ask = None
        self._expect(record["episode"] == self.counts["begin"], f"it is not episode {self.counts['begin']}")
        state = self._problem.state(0, label(record["start"]))
        self._expect(state in self._problem.starts, f"{record['start']!r} is no start state")
        self._expect(record["epoch"] == epoch.number, f"it is in epoch {epoch.number}, not {record['epoch']!r}")
        self._expect(record["safe_mode"] is bool(self._alarms), "its safe mode is not what the alarms say")
        plan, after = record["plan"], record["made_after"]
        in_turn = (plan, after) == (number, made_after) or (plan > number and after > made_after)
        self._expect(in_turn, f"plan {plan}, made after record {after}, comes after plan {number} of {made_after}")
        allowed = after in epoch.moments and after >= max(epoch.firm)
        self._expect(allowed, f"the plan in force cannot be the one of record {after}")
        epoch.plan = plan, after
        self._episode = Position(record["episode"], 0, state or 0)
        self._check_progress(record, after)
        if self._points is not None:
            self._points.begin(record)
        if not self._alarms and not self._plan(after).possible.consistent:
            self._wrong(f"the bounds of the plan of record {after} contradict each other, and no alarm was raised")

    def _check_progress(self, record: Record, after: int) -> None:
        """Check how many pairs were certified, up to rounding. What is still to be gained is not promised."""
        left, count = record["to_gain"], record["certified"]
        self._expect(left is None or type(left) in (int, float), f"to_gain is {left!r}")
        self._expect(type(count) is int and count >= 0, f"certified is {count!r}")
        if self.guaranteed and "I" in self._epoch.constants["ideas"]:
            least, most = (sum(map(sum, sets.pairs)) for sets in self._plan(after).both)
            self._expect(least <= count <= most, f"{count} pairs certified, where {least} to {most} are")

    def _on_ask(self, record: Record) -> None:
        here = self._here(record)
        self._expect(self._ask is None, "an action is offered while another one is pending: a tell is missing")
        self._expect(record["ask"] == f"{self._n}-{record['previous'][:8]}", f"its id is {record['ask']!r}")
        pair = self._problem.pair(here.step, here.state, label(record["action"]))
        if pair is None:
            self._wrong(f"{record['action']!r} is no action of step {here.step}, state {record['state']!r}")
            self._ask = record, NONE
            return
        self._ask = record, pair
        plan = self._plan(self._epoch.plan[1]).with_pair_at(here.step, pair, record["intensity"])
        proof = None if self._points is None else self._points.ask(record, here.state, pair, plan)
        self._judge(here, pair, label(record["action"]), plan, proof)
        certificate = Certificate(plan, self._wrong, record["certificate"])
        certificate.check(here.step, here.state, pair, self._facts(), proof)
        certificate.check_opening(here.step, pair, record["intensity"], proof is not None)

    def _facts(self) -> Record:
        """What a certificate must say of the moment."""
        return {
            "epoch": self._epoch.number,
            "plan": self._epoch.plan[0],
            "failure_probability": self._opened["failure_probability"],
            "share": self._epoch.confidence.failure_probability,
            "safe_mode": bool(self._alarms),
            "why": self.unacknowledged or None,
            "restored": self._declared.restored,
            "despite": None if self._declared.despite is None else self._declared.despite["reason"],
            "guaranteed": self.guaranteed,
            "looks_ahead": "I" in self._epoch.constants["ideas"],
        }

    def _judge(self, here: Position, pair: int, action: Any, plan: Plan, proof: Proof | None) -> None:
        """Was this action certified when it was offered?"""
        h, epoch = here.step, self._epoch
        sure, possible = (sets.pairs[h][pair] for sets in plan.both)
        if proof is not None:
            self.counts["offers at an exact state"] += 1
            sure, possible = proof.sure, proof.possible
        fallback = self._problem.layers[h].fallback[here.state]
        initial = epoch.finished < epoch.constants["initial_episodes"]
        if self._alarms or initial:
            when = "in safe mode" if self._alarms else "in an initial episode"
            self._expect(fallback in (pair, NONE), f"{when} another action than the fallback's is offered")
        of_ray = pair in self._problem.layers[h].rays
        if kind := counted_as(pair == fallback, sure, possible, of_ray, bool(self._alarms), self.guaranteed):
            self.counts[kind] += 1
        else:
            place = f"step {h}, state {self._problem.states[h][here.state]!r}, action {action!r}"
            self._wrong(f"the action offered was not certified: {place}, plan of record {epoch.plan[1]}")

    def _on_doubt(self, record: Record) -> None:
        self._here(record).doubt = record
        fits = self._ask is not None and self._ask[0]["ask"] == record["ask"]
        self._expect(fits, f"it tells of ask {record['ask']!r}, which is not pending")

    def _on_tell(self, record: Record) -> None:
        here = self._here(record)
        ask, offered = self._ask or ({"ask": None}, NONE)
        self._expect(ask["ask"] == record["ask"], f"it tells of ask {record['ask']!r}, pending is {ask['ask']!r}")
        self._ask = here.doubt = None
        h, problem = here.step, self._problem
        ours = self._points is None or record["point"]["boxes"] is not None  # else it is no input of the plant
        pair, played = problem.pair(h, here.state, label(record["action"])) if ours else None, record["intensity"]
        other = pair is None or pair != offered or played != ask.get("intensity")
        self._expect(record["override"] is other, "its override does not match what was offered")
        self.counts["overrides"] += record["override"] is True
        after = problem.state(h + 1, label(record["next_state"]))
        edge = None if pair is None or after is None else problem.edge(h, pair, after)
        x = None if edge is None or self._points else problem.layers[h].measured(pair or 0, edge, played)
        if self._points is not None:
            edge, x = self._points.tell(record, pair, edge, None if other else ask.get("point"))
        known = pair is not None and problem.expanded(h, pair)
        edge = edge if known else None
        unused = "successor" if known and edge is None else None if known else "action"
        self._expect(record["unused"] == unused, f"unused is {record['unused']!r} where it must be {unused!r}")
        ends = unused == "successor" or (
            unused is None and h == problem.horizon - 2 and not problem.has_cost[after or 0]
        )
        self._expect(record["ends"] is ends, "it does not end the episode, or ends it too early")
        sure, possible = self._plan(self._epoch.plan[1]).certified_at(h, pair, played)
        self.counts["overrides that were not certified"] += other and not possible
        self._cost(record, used=edge is not None)
        if edge is not None:
            row = [record[key] for key in ("step", "state", "action", "next_state", "cost")]
            here.strayed |= problem.shared and (record["override"] is True or bool(self._alarms))
            self._count(h, x, record["cost"], row, sure or not other, here.strayed)
            here.step, here.state = h + 1, after or 0
        elif unused == "successor":
            self._due.append((self._n, ("successor",)))
            self._declared.left_support(self._n, record)
        else:
            here.lost = True
        if ends:
            self._finish()

    def _on_terminal(self, record: Record) -> None:
        here, last = self._episode, self._problem.horizon - 1
        fits = here is not None and here.step == last and here.number == record["episode"] and self._ask is None
        self._expect(fits, "no cost of a last state was awaited")
        state = self._problem.state(last, label(record["state"]))
        self._expect(here is not None and state == here.state, f"the episode did not end in {record['state']!r}")
        self._cost(record, used=True)
        if state is not None and self._problem.has_cost[state]:
            row = [last, record["state"], record["cost"]]
            certified = self._plan(self._epoch.plan[1]).sure.states[last][state]
            strayed = self._problem.shared and (here is None or here.strayed or bool(self._alarms))
            self._count(last, self._problem.last_x[state], record["cost"], row, certified, strayed)
        self._finish()

    def _on_abort(self, record: Record) -> None:
        here = self._episode
        fits = here is not None and (record["episode"], record["step"]) == (here.number, here.step)
        self._expect(fits, "no such episode is under way")
        pending = None if self._ask is None else self._ask[0]["ask"]
        self._expect(record["ask"] == pending, f"the pending ask is {pending!r}")
        if here is not None and here.doubt is not None:
            self._due.append((self._n, ("successor",)))
            self._declared.left_support(self._n, here.doubt)
        self._ask = None
        self._finish()

    def _finish(self) -> None:
        self._episode = None
        self._epoch.finished += 1
        if not self._alarms and not self._due:
            self._epoch.moments.add(self._n)

    # --- alarms -----------------------------------------------------------------------------------------

    def _on_alarm(self, record: Record) -> None:
        at, kind = record["record"], record["alarm"]
        self._expect(type(at) is int and 0 <= at < self._n, f"it names record {at!r}")
        self._due = [due for due in self._due if not (due[0] == at and kind in due[1])]
        self._alarms.append((self._n, record))
        if kind == "contradiction":
            self._expect(at in self._epoch.moments, f"no plan is made after record {at}")
            plan = self._plan(at)
            self._expect(not plan.sure.consistent, "the bounds of its plan do not contradict each other")
        self._epoch.never_plans(at)  # from data that are in doubt; the one before stays

    def _on_acknowledge(self, record: Record) -> None:
        self._expect(self._episode is None, "an alarm is acknowledged inside an episode")
        numbers = [at for at, _ in self._alarms]
        self._expect(bool(numbers) and record["alarms"] == numbers, f"the alarms are those of records {numbers}")
        for fault in self._declared.answer(record, self._alarms):
            self._wrong(fault)
        if record["despite"] is not None and record["problem"] != self._problem.digest:
            self.measurements.remarks.append(f"record {self._n}: {despite_errors(record['despite'])}")
        before = self._take_over()
        self._monitor, self._measured = self._monitor + 1, 0
        self._expect(record["monitor"] == self._monitor, f"monitor {self._monitor} begins here")
        self._expect(bool(record["reason"].strip()), "no reason is given")
        self._alarms = []
        if record["discard"]:
            self._epoch = self._new_epoch(self._epoch.number + 1, record)
        else:
            epoch = self._epoch
            if self._problem is not before:  # the ridges stay: the new sets contain those of the true declaration
                epoch.start_over(self._problem, self._paper, epoch.counted_from if before.errs else self._n)
                options = {**self._opened["options"], **epoch.fixed}
                epoch.confidence = self._confidence(epoch.number, record, options)
                epoch.constants = record["constants"]
            self._expect(record["constants"] == epoch.constants, "its constants differ from those before")
            self._epoch.surely_plans(self._n)
        self._expect(record["epoch"] == self._epoch.number, f"epoch {self._epoch.number} begins or continues here")

    def _take_over(self) -> Problem:
        """Put the problem that is declared now in force; returns the one before."""
        before, self._problem, self._made = self._problem, self._declared.problem, None
        if self._points is not None:
            self._points.problem = self._problem
        return before

    # --- logged rows ------------------------------------------------------------------------------------

    def _on_import(self, record: Record) -> None:
        self._expect(self._episode is None and not self._alarms, "rows are imported out of turn")
        rows, since, alike = record["rows"], record["since"], list[int]()
        told = record["episodes"] is not None or not self._problem.shared
        self._expect(told, "its rows share offsets within episodes, which it does not name")
        discarded = self._declared.discarded_at
        late = not discarded or (type(since) is str and since > discarded)
        self._expect(late, "its rows are from before data were discarded, or do not say when they were measured")
        for i, row in enumerate(rows, 1):
            x = logged_features(self._problem, row)
            if x is None:
                self._wrong(f"row {i} is none of the problem: {compact(row).decode()[:120]}")
            elif self._count(row[0], x, row[-1], row, of_the_fallback(self._problem, row)):
                alike.append(i)
        self.measurements.judge_import(record, alike, self._problem.shared)
        self.counts["rows imported"] += len(rows)
        self._epoch.surely_plans(self._n)

    # --- growth -----------------------------------------------------------------------------------------

    def _on_grow(self, record: Record) -> None:
        self._expect(self._episode is None and not self._alarms, "the graph grows out of turn")
        for fault in self._declared.grow(record):
            self._wrong(fault)
        self._take_over()
        self._epoch.surely_plans(self._n)

    # --- measurements -----------------------------------------------------------------------------------

    def _cost(self, record: Record, used: bool) -> None:
        self._expect(is_cost(self._problem, record["cost"]), f"its cost is {record['cost']!r}")
        if record["raw_cost"] is not None:
            self._expect(record["cost"] is None, "a cost that was not finite is used")
            self._due += [(self._n, ("cost",))] if used else []
        elif record["cost"] is None:
            self.counts["costs not measured"] += 1

    def _count(self, h: int, x: Any, cost: Any, row: list[Any], certified: bool, strayed: bool = False) -> bool:
        """Enter a measurement into the data; True if there was one like it before. One that breaks a limit by more than
        noise explains must raise an alarm. ``strayed``: it may depend on an offset that was seen before, and does not
        enter (spec 3)."""
        if cost is None or not is_cost(self._problem, cost):
            return False
        self.counts["costs measured"] += 1
        alike = self.measurements.enter(row)
        if not strayed:
            self._epoch.rows.append((self._n, h, x, cost))
        self._measured += 1
        alpha = math.ldexp(self._opened["false_alarm"], -(self._monitor + 1))
        lost = any(alarm["alarm"] == "computation" for _, alarm in self._alarms)  # then the monitor may be lost, too
        self._declared.measured(self._n, h, cost, self._problem.noise_reach(self._measured, alpha), certified)
        if self._problem.beyond_noise(h, cost, self._measured, alpha) and not self._due and not lost:
            self._due.append((self._n, ("limit", "residual", "computation")))
        return alike

    # --- places -----------------------------------------------------------------------------------------

    def _here(self, record: Record) -> Position:
        """The episode, at the record's step and state; if it was elsewhere, that is reported."""
        h, here = record["step"], self._episode
        state = self._problem.acting_state(h, record["state"])
        if here is None or here.lost or (here.step, here.state) != (h, state):
            states = self._problem.states
            where = "over" if here is None else f"at step {here.step}, state {states[here.step][here.state]!r}"
            self._wrong(f"it is of step {h}, state {record['state']!r}, the episode is {where}: records are missing")
            here = self._episode = Position(self.counts["begin"], h, state)
        if "episode" in record:
            self._expect(record["episode"] == here.number, f"the episode under way is {here.number}")
        return here
