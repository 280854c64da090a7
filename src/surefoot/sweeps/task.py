"""One run of a sweep: resumed where it stopped, saved along the way, finished by one rename."""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from surefoot import errors
from surefoot.agents.agent import Agent
from surefoot.errors import SurefootError, UnreadableFile
from surefoot.exact.contenders import agent_for, plans_on_clusters
from surefoot.runs import checkpoint as checkpoints
from surefoot.runs.plans_kept import Recorder
from surefoot.runs.run import Run
from surefoot.runs.session import Session
from surefoot.storage import disk
from surefoot.storage.disk import writing
from surefoot.sweeps.folder import EXPLOITING, POLICY, RunPlace
from surefoot.sweeps.spec import Contender
from surefoot.worlds.world import World

MOST_MARKS = 120
SAVE_SHARE = 20  # checkpoints take a twentieth of the time at most
TELL_SECONDS = 0.1

ENDED, FAILED = "ended", "failed"  #: what a worker's answer begins with


@dataclass(frozen=True)
class Task:
    """What a process must know, besides the world, to play one run."""

    place: RunPlace
    contender: Contender
    episodes: int
    snapshots: bool
    checkpoint_seconds: float
    plan_on: str | None = None  # where plans are made, for agents that support it


@dataclass(frozen=True)
class Played:
    """How it ended."""

    finished: bool
    done: int  # episodes, of all sessions
    seconds: float  # of this session
    marks: list[tuple[int, float]]


Tell = Callable[[int, str], None]  # episodes done, a line on how it goes
Stop = Callable[[], bool]


def make_agent(contender: Contender, world: World, episodes: int, plan_on: str | None = None) -> Agent:
    """Make the contender; the paper's constants are for the run's number of episodes unless another is given."""
    options: dict[str, Any] = dict(contender.options)
    if contender.agent == "lsvi-new-paper":
        options.setdefault("episodes", episodes)
    if plan_on is not None and plans_on_clusters(contender.agent):
        options["on"] = plan_on
    return agent_for(contender.agent, world, **options)


def play_task(task: Task, world: World, tell: Tell, stop: Stop) -> Played:
    """Play a run to its end or until ``stop()``; either way, what was done is on disk."""
    place = task.place
    with writing(place.folder.parent):
        disk.DISK.mkdir(place.folder.parent)
    with warnings.catch_warnings():  # they were said once, before the sweep began
        warnings.simplefilter("ignore")
        agent = make_agent(task.contender, world, task.episodes, task.plan_on)
    session = _resumed(task, agent, world) if place.begun else Session(agent, world, task.episodes, place.seed)
    recorder = Recorder(place.snapshots) if task.snapshots else None
    if place.begun and recorder is not None:
        recorder.replay(session.plans)
    session.recorder = recorder
    watch = _Watch(session, task, recorder, tell, stop)
    session.watch = watch
    run = session.play(compiled=True, progress=False, checkpoint=None, every=None)
    if run.interrupted:
        watch.keep()
    else:
        try:
            finish_run(run, place, recorder)
        except OSError:
            with contextlib.suppress(OSError):
                watch.keep()
            raise
    return Played(not run.interrupted, session.done, watch.seconds(), watch.marks)


def _resumed(task: Task, agent: Agent, world: World) -> Session:
    try:
        session = Session.resumed(
            checkpoints.load_checkpoint(task.place.checkpoint, agent, world), agent, world, task.episodes
        )
        if session.seed != task.place.seed:
            raise UnreadableFile(
                "the checkpoint is of another seed", where=str(task.place.checkpoint), got=str(session.seed)
            )
        return session
    except UnreadableFile as error:
        fix = "Delete it to play this run anew."
        raise UnreadableFile(error.rule, where=error.where, got=error.got, fix=fix) from error


@dataclass
class _Watch:
    """Called several times a second: reports progress, saves the run from time to time, asks whether to stop."""

    session: Session
    task: Task
    recorder: Recorder | None
    tell: Tell
    stop: Stop
    marks: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._told, self._kept = 0.0, 0.0
        self._pause = self.task.checkpoint_seconds

    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def __call__(self) -> bool:
        now, session = self.seconds(), self.session
        self.marks.append((session.done, round(now, 4)))
        if len(self.marks) > MOST_MARKS:
            del self.marks[1:-1:2]
        if now - self._told >= TELL_SECONDS:
            self.tell(session.done, session.headline())
            self._told = self.seconds()
        if now - self._kept >= self._pause and session.done < self.task.episodes:
            self.keep()
        return self.stop()

    def keep(self) -> None:
        """Write snapshots, then the checkpoint that needs them, then remove those that it does not need."""
        began = self.seconds()
        place = self.task.place
        with writing(place.checkpoint, fix="What was kept before is still there."):
            if self.recorder is not None:
                self.recorder.flush()
            self.session.save(place.checkpoint)
            if self.recorder is not None:
                self.recorder.tidy()
        self._kept = self.seconds()
        self._pause = max(self.task.checkpoint_seconds, SAVE_SHARE * (self._kept - began))


def finish_run(run: Run, place: RunPlace, recorder: Recorder | None) -> None:
    """Write the run's folder next to its place and move it there."""
    with writing(place.folder), place.appearing() as beside:
        run.save(beside)
        run.export(beside / POLICY)
        run.export(beside / EXPLOITING, exploit=True)
        if recorder is not None and run.plan is not None:
            recorder.export(beside / "snapshots", run.plan, run.episodes)


# --- errors that travel --------------------------------------------------------------------------------


def packed(error: BaseException) -> tuple[Any, ...]:
    """An error as parts that can be sent, the traceback as text."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, SurefootError):
        return (FAILED, type(error).__name__, error.rule, error.where, error.got, error.fix, trace)
    return (FAILED, "", type(error).__name__, "", str(error), "", trace)


def unpacked(message: tuple[Any, ...]) -> Exception:
    """The error of a ``FAILED`` message, the worker's traceback as a note."""
    _, name, rule, where, got, fix, trace = message
    kind = getattr(errors, name, None) if name else None
    error: Exception = RuntimeError(f"{rule}: {got}")
    if kind is not None:
        error = kind(rule, where=where, got=got, fix=fix)
    error.add_note(f"In a worker process:\n{trace}")
    return error
