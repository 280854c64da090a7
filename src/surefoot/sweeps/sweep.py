"""Many runs: agents × seeds on one world, in a directory; can be interrupted and resumed at any time.

::

    OUT/
      sweep.json                        the manifest: what is run (below)
      world.json (or .npz)              only for a world of your own: a copy of it
      times.json                        wall times; kept out of the ledgers, which are deterministic (below)
      runs/LABEL/seed-0003/             a finished run; it appears whole, by one rename
        manifest.json                   ┐ the ledger, exactly as ``Run.save`` writes it
        episodes.parquet (or .npz)      │ (surefoot.runs.ledger; read it with ``Ledger.load``)
        plans.parquet (or .npz)         ┘
        policy.json                     the last policy (surefoot.plan.policy_document)
        policy-exploit.json             the same without exploring
        snapshots/plan-000017.npz       some of its plans, for the explorer (surefoot.runs.plans_kept)
      runs/LABEL/seed-0003.checkpoint   a run in progress; removed when it is finished
      runs/LABEL/seed-0003.snapshots/   its snapshots so far; they move into the finished run
      .lock, .workers                   who works here

``sweep.json``::

    {"format": "surefoot-sweep", "version": 2,
     "world": {"name": "thermal/small", "options": {}, "file": null, "digest": "…", "problem": "…"},     sha256, in hex
     "agents": [{"label": "lsvi-new", "agent": "lsvi-new", "options": {}}, …],             label = name of its folder
     "seeds": [0, 1, 2], "episodes": 20000,
     "snapshots": {"seeds": [0], "note": ""},      the seeds whose runs keep snapshots; why none, if none
     "versions": {"python": …, "surefoot": …, "numpy": …, …}}

The world is made again by ``worlds.make(name, **options)``; a world of your own is read from its ``file``, a copy next
to the manifest. Its digest must be the one in the manifest. A label is the agent's own name unless the user chose
another, to compare an agent with itself under different options. Folders are named ``seed-`` and the seed in four
digits or more. A run is finished when its folder exists; see :func:`open_folder`.

``times.json``: for each ``LABEL/seed-0003``, the wall time of the run, over all sessions, and its course::

    {"format": "surefoot-times", "version": 1,
     "runs": {"lsvi-new/seed-0003": {"seconds": 4.1, "marks": [[64, 0.01], [128, 0.02], …]}}}

A mark is (episodes done, seconds so far); there are at most some hundred, in increasing order. Times are optional: an
entry may be missing after a crash, and readers must not need it.

The same sweep gives the same bytes in every finished run's folder, however many processes it used and however often it
was interrupted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.checks import at_least, of_kind
from surefoot.errors import InvalidInput
from surefoot.exact.contenders import plans_on_clusters
from surefoot.model.files import file_for
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.progress import Display, Interrupt
from surefoot.runs.run import versions
from surefoot.storage import disk
from surefoot.storage.disk import writing
from surefoot.sweeps import folder as folders
from surefoot.sweeps.engines.engine import Engine, Lost, engine_of
from surefoot.sweeps.engines.local import Here, Local
from surefoot.sweeps.folder import Folder, open_folder
from surefoot.sweeps.spec import Contender, Spec
from surefoot.sweeps.task import Played, Task, make_agent
from surefoot.worlds.world import World

__all__ = ["Contender", "Folder", "Outcome", "Spec", "open_folder", "resume_sweep", "sweep"]

CHECKPOINT_SECONDS = 10.0  #: between two checkpoints of a run


@dataclass(frozen=True)
class Outcome:
    """How a sweep, or a session of it, ended."""

    folder: Folder
    finished: int  # runs, of all sessions
    total: int
    signal: int  # that stopped it; 0: it ran to its end
    notes: tuple[str, ...]  # what the user should know
    lost: tuple[str, ...] = ()  # runs that were given up, and why: their workers died, one after the other

    @property
    def interrupted(self) -> bool:
        return self.finished < self.total


def sweep(
    spec: Spec,
    out: str | Path,
    *,
    jobs: int | None = None,
    on: str | Engine | None = None,
    plan_on: str | None = None,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool | None = None,
    on_start: Callable[[], object] | None = None,
) -> Outcome:
    """Run every agent with every seed.

    Args:
        spec: what to run.
        out: a new or empty directory; with ``force`` also one that holds runs, which are replaced.
        jobs: processes; by default one per core. The result does not depend on it. A script that uses more than one
            needs ``if __name__ == "__main__":``, as always with spawned processes. A process that dies is replaced.
        on: where to play the runs: "local" (the default), "dask" or "joblib" on this machine, a Dask scheduler's
            address, or a TOML file that describes a cluster (:mod:`surefoot.sweeps.engines.engine`). The result does
            not depend on it, and :func:`resume_sweep` may use another.
        plan_on: for agents that support it, make plans on a Dask cluster: "dask", an address or a file, as above. Runs
            are then played in this process, one after the other. The result does not depend on it either.
        checkpoint_seconds: how often a run in progress is saved.
        progress: show a display; by default on a terminal, if it takes more than two seconds.
        on_start: called before the first run, once nothing is left to be refused.

    Ctrl-C and SIGTERM end it early and keep what is done; :func:`resume_sweep` finishes it with the same result.

    Examples:
        >>> from surefoot.sweeps.sweep import Contender, Spec
        >>> spec = Spec("thermal/testing", [Contender("lsvi-new"), Contender("fallback")], seeds=[0, 1], episodes=20)
        >>> outcome = sf.sweep(spec, "runs", jobs=1)
        >>> outcome.finished, [place.key for place in outcome.folder.places()][:2]
        (4, ['lsvi-new/seed-0000', 'lsvi-new/seed-0001'])
    """
    of_kind(spec, Spec, "a sweep needs a Spec", "Give Spec(world, [Contender(agent)], seeds=[0], episodes=1000).")
    root = Path(out)
    engine = _engine(on, jobs, plan_on, spec)
    pause = at_least("checkpoint_seconds", checkpoint_seconds, 0.0)
    folders.refuse_taken(root, force)
    world = spec.make_world()
    notes = _try_agents(spec, world, plan_on)
    with writing(root):
        disk.DISK.mkdir(root)
    with ExitStack() as stack:
        with writing(root):
            stack.enter_context(folders.alone(root))
        folders.refuse_taken(root, force)  # again, now that nobody else can come between
        manifest, more = _manifest(spec, world)
        found = folders.create(root, manifest, world)
        engine = _without_processes(engine, world, len(found.places()))
        del world  # workers make their own
        if on_start is not None:
            on_start()
        return _play_missing(found, engine, pause, progress, (*notes, *more), plan_on)


def resume_sweep(
    out: str | Path,
    *,
    jobs: int | None = None,
    on: str | Engine | None = None,
    plan_on: str | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool | None = None,
) -> Outcome:
    """Resume an interrupted sweep, to the same bytes; a finished one is left as it is."""
    pause = at_least("checkpoint_seconds", checkpoint_seconds, 0.0)
    found = open_folder(out)
    engine = _engine(on, jobs, plan_on, found.spec)
    with ExitStack() as stack:
        with writing(found.root):
            stack.enter_context(folders.alone(found.root))
        found = open_folder(out)
        spec, world = found.spec, found.world()
        for place in found.finished():
            found.ledger(place)  # a damaged one is found before hours are spent on the others
        notes = tuple(_try_agents(spec, world, plan_on))
        engine = _without_processes(engine, world, len(found.places()) - len(found.finished()))
        del world
        return _play_missing(found, engine, pause, progress, notes, plan_on)


def _engine(on: str | Engine | None, jobs: int | None, plan_on: str | None, spec: Spec) -> Engine:
    """Where runs are played: in this process only, if plans are made on a cluster."""
    if plan_on is None:
        return engine_of(on, jobs)
    if on not in (None, "local") or jobs not in (None, 1):
        rule, fix = "with plans on a cluster runs are played here, one after the other", "Leave out one of the two."
        raise InvalidInput(rule, got=f"jobs={jobs}" if on in (None, "local") else f"on={on!r}", fix=fix)
    if not any(plans_on_clusters(each.agent) for each in spec.agents):
        names = ", ".join(each.name for each in spec.agents)
        raise InvalidInput(
            "none of the agents makes plans on a cluster", got=names, fix="Leave it out, or use lsvi-new."
        )
    return Local(1)


def _without_processes(engine: Engine, world: World, tasks: int) -> Engine:
    """A single run, or a single process, needs only this process."""
    return Here(world) if isinstance(engine, Local) and min(engine.jobs, tasks) <= 1 else engine


def _try_agents(spec: Spec, world: World, plan_on: str | None) -> list[str]:
    """Make every agent once, so that errors come before anything is written. → their warnings"""
    notes = []
    for each in spec.agents:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            agent = make_agent(each, world, spec.episodes, plan_on)
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
    document["versions"] = dict(versions())
    return document, [note] if note and spec.snapshot_seeds else []


def _play_missing(
    found: Folder,
    engine: Engine,
    pause: float,
    progress: bool | None,
    notes: tuple[str, ...],
    plan_on: str | None,
) -> Outcome:
    folders.clean(found)
    spec, keeping = found.spec, found.manifest["snapshots"]["seeds"]
    contenders = {each.name: each for each in spec.agents}
    places = found.places()
    tasks = [
        Task(place, contenders[place.label], spec.episodes, place.seed in keeping, pause, plan_on)
        for place in places
        if not place.finished
    ]
    lost, failure = list[str](), None
    with ExitStack() as stack:
        stack.enter_context(writing(found.root))
        stop = stack.enter_context(Interrupt())
        display = stack.enter_context(Display(len(tasks), spec.episodes, progress))
        results = stack.enter_context(closing(engine.map(tasks, found, display, stop))) if tasks else ()
        for task, result in results:
            display.end(task.place.key, result.done if isinstance(result, Played) else 0)
            if isinstance(result, Played):
                found.add_time(task.place, result.seconds, result.marks)
                stop.requested |= not result.finished  # it was told to stop, maybe alone
            elif isinstance(result, Lost):
                lost.append(f"{task.place.key}: {result}")
            else:
                failure = failure or result
                stop.requested = True
    if failure is not None:
        raise failure
    finished = len(found.finished())
    return Outcome(found, finished, len(places), stop.number if finished < len(places) else 0, notes, tuple(lost))
