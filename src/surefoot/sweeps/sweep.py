"""Many runs: agents × seeds on one world, in a directory that can be left and taken up again at any time.

::

    OUT/
      sweep.json                        the manifest: what is run (below)
      world.json (or .npz)              only for a world of your own: a copy of it
      times.json                        wall times, apart from the ledgers, which are deterministic (below)
      runs/LABEL/seed-0003/             a finished run; it appears whole, by one rename
        manifest.json                   ┐ the ledger, exactly as ``Run.save`` writes it
        episodes.parquet (or .npz)      │ (surefoot.runs.ledger; read it with ``Ledger.load``)
        plans.parquet (or .npz)         ┘
        policy.json                     the last policy (surefoot.plan.policy_document)
        policy-exploit.json             the same without exploration bonuses
        snapshots/plan-000017.npz       some of its plans, for the explorer (surefoot.runs.plans_kept)
      runs/LABEL/seed-0003.checkpoint   a run under way; gone when it is finished
      runs/LABEL/seed-0003.snapshots/   its snapshots so far; they move into the finished run
      .lock, .workers                   who works here

``sweep.json``::

    {"format": "surefoot-sweep", "version": 2,
     "world": {"name": "thermal/small", "options": {}, "file": null, "digest": "…", "problem": "…"},     sha256, in hex
     "agents": [{"label": "lsvi-new", "agent": "lsvi-new", "options": {}}, …],             label = name of its folder
     "seeds": [0, 1, 2], "episodes": 20000,
     "snapshots": {"seeds": [0], "note": ""},      the seeds whose runs keep snapshots; why none, if none
     "versions": {"python": …, "surefoot": …, "numpy": …, …}}

The world is made again by ``worlds.make(name, **options)``, or, one of your own, read from its ``file``, a copy beside
the manifest; its digest must be the one in the manifest. A label is the
agent's own name unless the user chose another, to compare an agent with itself under other options. Folders are
``seed-`` and the seed in four digits or more. A run is finished when its folder is there; see :func:`open_folder`.

``times.json``: by ``LABEL/seed-0003`` the wall time that the run took, all sessions together, and how it went::

    {"format": "surefoot-times", "version": 1,
     "runs": {"lsvi-new/seed-0003": {"seconds": 4.1, "marks": [[64, 0.01], [128, 0.02], …]}}}

A mark is (episodes done, seconds so far), at most some hundred of them, in growing order. Times are a service: an
entry may be missing after a crash, and readers must not need it.

The same sweep gives the same bytes in every finished run's folder, whatever the number of processes and however often
it was interrupted.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surefoot.checks import at_least, whole
from surefoot.errors import InvalidInput
from surefoot.model.files import file_for
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.interrupt import Interrupt
from surefoot.storage import disk
from surefoot.storage.atomic import writing
from surefoot.sweeps import folder as folders
from surefoot.sweeps import locks, pool
from surefoot.sweeps.display import Display
from surefoot.sweeps.folder import Contender, Folder, Spec, open_folder
from surefoot.sweeps.task import Played, Task, make_agent, play_task
from surefoot.worlds.world import World

__all__ = ["Contender", "Folder", "Outcome", "Spec", "open_folder", "resume", "sweep"]

CHECKPOINT_SECONDS = 10.0  #: between two checkpoints of a run


@dataclass(frozen=True)
class Outcome:
    """How a sweep, or a session of it, ended."""

    folder: Folder
    finished: int  # runs, of all sessions
    total: int
    signal: int  # that stopped it; 0: it ran to its end
    notes: tuple[str, ...]  # what the user should know

    @property
    def interrupted(self) -> bool:
        return self.finished < self.total


def sweep(
    spec: Spec,
    out: str | Path,
    *,
    jobs: int | None = None,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool | None = None,
) -> Outcome:
    """Run every agent with every seed.

    Args:
        spec: what to run.
        out: a directory that is new or empty; one that holds runs only with ``force``, which replaces them.
        jobs: processes; by default one per core. The result does not depend on it. A script that uses more than one
            needs ``if __name__ == "__main__":``, as always with spawned processes.
        checkpoint_seconds: how often a run under way is kept.
        progress: show a display; by default on a terminal, when it takes more than two seconds.

    Ctrl-C and SIGTERM end it early and keep what is done; :func:`resume` finishes it with the same result.

    Examples:
        >>> from surefoot.sweeps.sweep import Contender, Spec
        >>> spec = Spec("thermal/testing", [Contender("lsvi-new"), Contender("fallback")], seeds=[0, 1], episodes=20)
        >>> outcome = sf.sweep(spec, "runs", jobs=1)
        >>> outcome.finished, [place.key for place in outcome.folder.places()][:2]
        (4, ['lsvi-new/seed-0000', 'lsvi-new/seed-0001'])
    """
    root = Path(out)
    workers = _jobs(jobs)
    pause = at_least("checkpoint_seconds", checkpoint_seconds, 0.0)
    folders.refuse_taken(root, force)
    world = spec.make_world()
    notes = _try_agents(spec, world)
    with writing(root):
        disk.DISK.mkdir(root)
    with ExitStack() as stack:
        with writing(root):
            stack.enter_context(locks.alone(root))
        folders.refuse_taken(root, force)  # again, now that nobody else can come between
        manifest, more = _manifest(spec, world)
        found = folders.create(root, manifest, world)
        here = world if workers == 1 else None
        del world  # workers make their own; a copy here would be one too many
        return _play_missing(found, here, workers, pause, progress, (*notes, *more))


def resume(
    out: str | Path,
    *,
    jobs: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool | None = None,
) -> Outcome:
    """Go on with a sweep that was interrupted, to the same bytes; nothing happens to one that is finished."""
    workers = _jobs(jobs)
    pause = at_least("checkpoint_seconds", checkpoint_seconds, 0.0)
    found = open_folder(out)
    with ExitStack() as stack:
        with writing(found.root):
            stack.enter_context(locks.alone(found.root))
        found = open_folder(out)
        spec, world = found.spec, found.world()
        for place in found.finished():
            found.ledger(place)  # a damaged one is found before hours are spent on the others
        notes = tuple(_try_agents(spec, world))
        here = world if workers == 1 else None
        del world
        return _play_missing(found, here, workers, pause, progress, notes)


def _jobs(jobs: int | None) -> int:
    if jobs is not None:
        return whole("jobs", jobs, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _try_agents(spec: Spec, world: World) -> list[str]:
    """Make every agent once: what an agent refuses is said before anything is written. → what they warned of."""
    notes = []
    for each in spec.agents:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            agent = make_agent(each, world, spec.episodes)
        notes += [f"{each.name}: {warning.message}" for warning in caught]
        left = agent.episodes_left()
        if left is not None and left < spec.episodes:
            raise InvalidInput(
                "the paper's constants are for fewer episodes",
                where=each.name,
                got=f"{spec.episodes} to play, {left} in its option 'episodes'",
                fix="Leave that option out.",
            )
    return notes


def _manifest(spec: Spec, world: World) -> tuple[dict[str, Any], list[str]]:
    note = snapshots.why_not_kept(world.problem) if spec.snapshot_seeds else "not asked for"
    kept = [] if note else list(spec.seeds[: spec.snapshot_seeds])
    document = spec.document()
    document["world"] |= {"digest": world.digest, "problem": world.problem.digest}
    if spec.own_world:
        document["world"]["file"] = file_for(world.problem, "world")
    document["snapshots"] = {"seeds": kept, "note": note}
    packages = ("surefoot", "numpy", "scipy", "numba")
    document["versions"] = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    return document, [note] if note and spec.snapshot_seeds else []


def _play_missing(
    found: Folder, world: World | None, jobs: int, pause: float, progress: bool | None, notes: tuple[str, ...]
) -> Outcome:
    folders.clean(found)
    spec, keeping = found.spec, found.manifest["snapshots"]["seeds"]
    contenders = {each.name: each for each in spec.agents}
    places = found.places()
    tasks = [
        Task(place, contenders[place.label], spec.episodes, place.seed in keeping, pause)
        for place in places
        if not place.finished
    ]

    def enter(task: Task, played: Played) -> None:
        with writing(found.root):
            found.add_time(task.place, played.seconds, played.marks)

    with Interrupt() as stop, Display(len(tasks), spec.episodes, progress) as display:
        if min(jobs, len(tasks)) > 1:
            with writing(found.root):
                pool.play_all(tasks, jobs, found.root, enter, display, stop)
        elif tasks:
            _play_here(tasks, world or found.world(), enter, display, stop)
    finished = len(found.finished())
    return Outcome(found, finished, len(places), stop.number if finished < len(places) else 0, notes)


def _play_here(tasks: Sequence[Task], world: World, enter: pool.Entered, display: Display, stop: Interrupt) -> None:
    """One after the other, in this process."""
    for task in tasks:
        if stop.requested:
            return
        played = play_task(task, world, partial(display.advance, task.place.key), lambda: stop.requested)
        display.end(task.place.key, played.done)
        enter(task, played)
        if not played.finished:
            return
