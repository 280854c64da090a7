"""A study: ask for an action with its certificate, tell what happened. Nothing acknowledged is ever lost.

    with sf.Study.open("plant.study", problem) as study, study.episode(start) as ep:
        while not ep.done:
            offer = ep.ask()                    # the action, and for every successor why it is allowed
            ep.tell(*apply(offer.action))       # the next state and the measured cost

Everything that happens is written to the journal before it counts (``records``), and the state that follows from the
records is computed in one place (``standing``).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.agents.agent import Agent
from surefoot.agents.blocks.place import Place, refuse_inside, start_of, under_way
from surefoot.compiling import compiling_said
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.logs.files import Log
from surefoot.model.labels import Label, label_of, shown
from surefoot.model.measured import Cost, measured
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem
from surefoot.model.rules import check_flag
from surefoot.monitor.monitor import Monitor
from surefoot.storage.disk import FileLayer
from surefoot.study import declaring, exporting, opening, records
from surefoot.study import journal as journals
from surefoot.study.certificate import Offer, ask_entries
from surefoot.study.changing import Answer, acknowledge_entries, attach
from surefoot.study.episode import Episode
from surefoot.study.exact import Exact
from surefoot.study.held import Held
from surefoot.study.importing import Imported, prepare
from surefoot.study.journal import Clock, Journal
from surefoot.study.rehearsal import rehearse
from surefoot.study.standing import Standing
from surefoot.study.state import MonitorFactory
from surefoot.study.status import next_call, progress_of, status
from surefoot.study.telling import AS_OFFERED, Receipt, in_doubt, same_told, still_in_doubt, tell_entries, told_before


class Study(Held):
    """A study on disk, open for writing (one process at a time) or for reading. Make one with :meth:`open`.

    Examples:
        >>> problem = sf.worlds.make("thermal/testing").problem
        >>> with sf.Study.open("plant.study", problem) as study, study.episode() as episode:
        ...     while not episode.done:
        ...         offer = episode.ask()
        ...         following = problem.successors(offer.step, offer.state, offer.action)[0]  # in place of a plant
        ...         receipt = episode.tell(following, cost=0.1)  # in place of a sensor
        >>> study.status()["episodes"]
        1
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        problem: Problem | Plant | None = None,
        *,
        agent: str | type[Agent] | None = None,
        failure_probability: float | None = None,
        false_alarm: float | None = None,
        read_only: bool = False,
        clock: Clock = time.time,
        snapshot_every: int | None = None,
        despite: str | None = None,
        files: FileLayer | None = None,
        monitor_factory: MonitorFactory | None = None,
        progress: bool | None = None,
        **agent_options: Any,
    ) -> Study:
        """Begin a study in a new folder, or continue one exactly where it was, including a pending ask.

        Args:
            path: the folder, such as ``plant.study``.
            problem: what is known about the plant. Leave it out to continue an existing study; a different one is
                refused. With a :class:`surefoot.Plant`, ``begin`` and ``tell`` take exact states, and ``ask`` returns
                an input that is certified at the exact state (spec 9); pass the plant again to continue.
            agent: ``"lsvi-new"``, the default, or ``"lsvi-new-paper"``; or the class.
            failure_probability: p; with probability at least 1 − p, all steps of the whole study are safe, over all
                epochs together. 0.05 by default. Epoch k works with p·2^-(k+1), see ``acknowledge``.
            false_alarm: α; if the plant is as declared, the probability of any alarm ever is at most this. 0.01 by
                default. Monitor i, after i acknowledgements, works with α·2^-(i+1).
            read_only: open without the lock, to read while another process runs the study; nothing can be told.
            clock: seconds since 1970. If it goes back, the journal notes it and the study continues.
            snapshot_every: rows, told or imported, between two snapshots; by default enough to keep their cost small.
            despite: your reason to begin although :func:`surefoot.check` finds errors in the problem; without one, the
                study is refused. The reason is kept in the journal and shown by status, certificates and audit. An
                existing study ignores it.
            files, monitor_factory: replace the disk and the monitor in tests.
            progress: report long compilations on standard error; by default on a terminal. Everything that the study
                needs is compiled here, so no tell has to wait for it.
            agent_options: options of :class:`surefoot.LsviNew` or :class:`surefoot.LsviNewPaper`. For an existing
                study, leave them out or repeat the same.
        """
        if not isinstance(path, (str, Path)):
            raise InvalidInput("a study's path comes first", got=shown(path), fix="Study.open(path, problem).")
        path, layer = Path(path), files or FileLayer()
        plant, problem = (problem, problem.problem) if isinstance(problem, Plant) else (None, problem)
        if problem is not None and not isinstance(problem, Problem):
            raise InvalidInput("a study needs a Problem or a Plant", got=f"a {type(problem).__name__}")
        if problem is not None:
            declaring.refuse_sparse(problem, of_plant=plant is not None)  # before there is a folder
        elif not read_only:
            opening.refuse_missing(path)
        monitor, name = monitor_factory or Monitor, opening.agent_name(agent)
        promised = (failure_probability, false_alarm, name, agent_options)
        wishes = opening.Wishes(path, layer, monitor, problem, *promised, plant, despite)
        lock = opening.study_lock(path)
        if read_only:
            standing, remarks = opening.look(wishes)
            study = cls(path, layer, standing, None, lock)
        else:
            remarks = [opening.take_lock(path, lock, layer)]
            with compiling_said(progress), contextlib.ExitStack() as undo:
                undo.callback(lock.release)
                journal = Journal(path / journals.NAME, layer, clock)
                undo.callback(journal.close)
                standing, found = opening.begin_or_rebuild(journal, wishes)
                remarks += [journal.recovered, *found]
                study = cls(path, layer, standing, journal, lock)
                study._snapshots.every = snapshot_every
                study._write_alarms()
                if problem is not None and problem.growth is not None:
                    attach(standing, problem)
                rehearse(standing.problem, standing.agent_name)
                undo.pop_all()
        study.exact = Exact(plant)
        study.recovered = tuple(filter(None, remarks))
        return study

    def __repr__(self) -> str:
        state = "safe mode" if self.safe_mode else "normal"
        return f"<Study {str(self.path)!r}: {state}, {self._standing.episodes} episodes begun, due: {self.next_call}>"

    # --- reading it -------------------------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        return self._standing.problem

    @property
    def safe_mode(self) -> bool:
        """True from an alarm until it is acknowledged; where the fallback has an action, only that one is offered."""
        return self._standing.safe_mode

    @property
    def standing(self) -> Standing:
        """All state, for reports; do not change it."""
        return self._standing

    @property
    def next_call(self) -> str:
        """The call that is due: "begin", "ask", "tell", "tell_terminal" or "abort"."""
        return next_call(self._standing)

    def status(self) -> dict[str, Any]:
        """The state of the study, as plain JSON."""
        with self._calls:
            return {"path": str(self.path), **status(self._standing), "recovered": list(self.recovered)}

    # --- the episode ------------------------------------------------------------------------------------

    def episode(self, start: Label = None) -> Episode:
        """A new episode for a ``with`` block; leaving the block early aborts it."""
        return Episode(self, partial(self.begin, start))

    def resume(self) -> Episode:
        """The episode that was under way when the study was closed or its process died, for a ``with`` block."""
        number = under_way(self._standing.place).episode
        return Episode(self, lambda: number)

    def begin(self, start: Label = None) -> int:
        """Begin an episode and return its number; ``start`` may be left out when the problem has one start.

        Called again before anything was asked, it returns the same episode, so a caller that died may repeat it.
        """
        with self._calls:
            standing = self._ready()
            point = None
            if standing.of_plant:
                start, point = self.exact.begin(start)
            state, place = start_of(self.problem, label_of(start)), standing.place
            if place == Place(self.problem, standing.episodes, 0, state) and standing.pending is None:
                return place.episode
            refuse_inside(place, "an episode is already under way")
            standing.agent.refuse_beyond()
            self._grow()
            self._do(
                "begin",
                {
                    "episode": standing.episodes + 1,
                    "start": self.problem.naming.states[0][state],
                    "epoch": standing.epoch,
                    "plan": standing.agent.replans,
                    "made_after": standing.made_after,
                    "safe_mode": standing.safe_mode,
                    **progress_of(standing.agent.plan),
                    "point": point,
                },
            )
            return standing.episodes

    def ask(self) -> Offer:
        """The action to take now, with its certificate. Asking again gives the same offer, until it is told or
        aborted."""
        with self._calls:
            standing = self._ready()
            if standing.doubt is not None:
                raise still_in_doubt(standing)
            if standing.pending is not None:
                return Offer.of(standing.pending)
            assert self._journal is not None
            ask_id = records.ask_id(self._journal.records, self._journal.hash)
            return Offer.of(self._do("ask", ask_entries(standing, self.exact, ask_id)))

    def tell(
        self,
        ask_id: str,
        next_state: Label,
        cost: Cost,
        action_applied: Label = AS_OFFERED,
        intensity: float | None = None,
        sure: bool = False,
    ) -> Receipt:
        """Record what the plant did: the next state, and the measured cost of that transition.

        Args:
            ask_id: of the offer. Telling the same again changes nothing; telling something else is refused.
            next_state: the state that followed. One outside the declared support is kept in the journal, raises an
                alarm, and ends the episode. For a plant it must be told as ``sure``.
            cost: a number, or one per limit; None if it was not measured, so that only the transition counts. Whether
                it was measured must not depend on the noise: a sensor that is silent when its reading is high would
                bias every bound. A number that is not finite raises an alarm.
            action_applied: what an operator did instead of the offer. An action of this state counts like any other;
                one that the problem does not know is kept in the journal but not used, and the episode can only be
                aborted, since nobody knows where it leads.
            intensity: at which the action was applied, if not as offered; required for another action that has one
                (spec 9). The data enter with the features there.
            sure: the next state is no typing error, even if it is outside the declared support. Without it, such a
                state of a plant is refused and can be told again; nothing else can be done in the meantime but abort,
                which raises the alarm. A program that reads a sensor passes True.
        """
        with self._calls:
            standing = self._ready()
            pending, told = standing.pending, (next_state, cost, action_applied, intensity)
            check_flag("sure", sure)
            if pending is None or pending["ask"] != ask_id:
                return told_before(standing, self.exact, self.path / journals.NAME, self._layer, ask_id, told)
            entries = tell_entries(standing, self.exact, pending, *told)
            if not sure and (off := self.exact.beyond(entries)):
                if not same_told(standing.doubt, entries):
                    self._do("doubt", entries)
                raise in_doubt(standing, off)
            return Receipt.of(standing, self._do("tell", entries))

    def tell_terminal(self, cost: Cost, episode: int | None = None) -> Receipt:
        """The measured cost of the episode's last state, where the problem declares one; the episode is then over.

        With ``episode`` given, telling the same again changes nothing.
        """
        with self._calls:
            standing = self._ready()
            _whole_or_none(episode)
            numbers, raw = measured(self.problem, cost, standing.where())
            last, place = standing.last_terminal, standing.place
            if last is not None and episode is not None and last["episode"] == episode:
                if (last["cost"], last["raw_cost"]) != (numbers, raw):
                    got = f"{last['cost'] or last['raw_cost']}, at {last['time']}"
                    raise OutOfOrder("another last cost of this episode is on record", got=got)
                return Receipt.of(standing, last, repeated=True)
            if place is None or not standing.at_terminal or episode not in (None, place.episode):
                raise OutOfOrder("no last state's cost is awaited", where=standing.where())
            entries = {"episode": place.episode, "state": place.label, "cost": numbers, "raw_cost": raw}
            return Receipt.of(standing, self._do("terminal", entries))

    def abort(self, reason: str = "", episode: int | None = None) -> None:
        """End the episode early; what was told before counts. A state that was refused (see ``tell``) is an alarm.

        With ``episode`` given, aborting one that is over changes nothing, so a caller that lost the answer may repeat
        it.
        """
        with self._calls:
            standing = self._ready()
            _whole_or_none(episode)
            over = standing.place is None or standing.place.episode != episode
            if episode is not None and over and 1 <= episode <= standing.episodes:
                return
            place = under_way(standing.place)
            if episode not in (None, place.episode):
                raise OutOfOrder("no such episode", got=str(episode), where=standing.where())
            self._do(
                "abort",
                {
                    "episode": place.episode,
                    "step": place.step,
                    "state": place.label,
                    "ask": None if standing.pending is None else standing.pending["ask"],
                    "reason": _text("reason", reason),
                },
            )

    # --- people and logs --------------------------------------------------------------------------------

    def acknowledge(
        self,
        reason: str,
        *,
        discard_data: bool = False,
        noise: float | Mapping[str, float] | None = None,
        problem: Problem | None = None,
        trust_anchors: bool = False,
        despite: str | None = None,
        alarms: list[int] | None = None,
    ) -> None:
        """Acknowledge the alarms and leave safe mode; a person's decision, kept in the journal.

        Most alarms disprove the declaration and require an answer, see :mod:`surefoot.study.alarms` and
        ``status()["answers"]``. The guarantee then holds from this record on.

        Args:
            reason: kept in the journal.
            discard_data: drop everything learned; epoch k+1 begins with the share p·2^-(k+2) of the failure
                probability. Required after "residual" and "contradiction": bounds that mix two plants hold for neither.
                Anchors are dropped as well.
            noise: a larger noise scale, or one for each limit by name; the data are kept.
            problem: a wider declaration in place of the study's: more successors, larger noise, …; the data are kept.
            trust_anchors: keep the anchors when data are discarded; they must hold for the plant as it is now.
            despite: your reason to use ``noise`` or ``problem`` although :func:`surefoot.check` finds errors, as in
                :meth:`open`.
            alarms: the records of the alarms that you have seen, as in the status; refused if there are others by now.
        """
        with self._calls:
            standing = self._ready()
            discard, trust = check_flag("discard_data", discard_data), check_flag("trust_anchors", trust_anchors)
            answer = Answer(_text("reason", reason), discard, noise, problem, trust, despite, alarms)
            self._do("acknowledge", acknowledge_entries(standing, answer, self.path, self._layer))

    def import_log(self, rows: Log, *, source: str = "", different: str | None = None) -> Imported:
        """Import logged rows for a warm start (:mod:`surefoot.study.importing`); ``different``: why none is a copy."""
        with self._calls:
            standing = self._ready()
            refuse_inside(standing.place, "rows are imported between episodes")
            if standing.safe_mode:
                fix = "Acknowledge the alarm first."
                raise OutOfOrder("nothing is imported in safe mode", got=standing.why, fix=fix)
            where = self.path / journals.NAME, self._layer, standing.discarded_at
            found, partly = prepare(self.problem, rows, _text("source", source), different, *where)
            return Imported.of(self._do("import", found), partly, standing)

    def export_policy(self, path: str | Path, *, start: Label = None, exploit: bool = False) -> Path:
        """Write the certified greedy policy to a ``.json`` or ``.py`` file, which needs no surefoot to be used.

        ``exploit``: without exploring, for a plant that must not explore any more; still certified.
        """
        with self._calls:
            return exporting.write_policy(self._standing, Path(path), start, check_flag("exploit", exploit))


def _whole_or_none(episode: object) -> None:
    if episode is not None and type(episode) is not int:
        raise InvalidInput("episode is a whole number", got=shown(episode))


def _text(name: str, value: object) -> str:
    if type(value) is not str:
        raise InvalidInput(f"{name} is text", got=shown(value))
    return value
