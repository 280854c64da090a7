"""Runs on joblib: its own processes, or a backend that someone registered (Ray, Spark, …).

joblib cannot talk to a task under way, and does not say which task a dead worker had. So runs are played in stints, and
after a death each run that was not returned is played alone, to see whose worker dies.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from surefoot.checks import needed
from surefoot.clusters import MOST_DEATHS
from surefoot.runs.progress import Display, Interrupt
from surefoot.sweeps.engines import away
from surefoot.sweeps.engines.away import Files, RemoteRun
from surefoot.sweeps.engines.engine import Lost, Results
from surefoot.sweeps.folder import Folder
from surefoot.sweeps.task import Task, packed
from surefoot.worlds.world import World


@dataclass(frozen=True)
class Joblib:
    """The engine; ``backend``: a name in joblib, by default its own choice."""

    jobs: int
    backend: str = ""

    def __post_init__(self) -> None:
        joblib()  # an error now, before anything is made

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        left = {task.place.key: RemoteRun.of(task) for task in tasks}
        deaths, suspects = Counter[str](), list[str]()
        while left and not stop.requested:
            together = [suspects[0]] if suspects else list(left)
            returned = set[str]()
            try:
                for key, answer in self._played([left[key] for key in together], folder, stop):
                    returned.add(key)
                    found = left[key].take_back(answer)
                    if isinstance(found, Exception) or found.finished:
                        yield left.pop(key).task, found
                    else:
                        display.advance(key, found.done, "")
                    display.refresh()
            except _deadly() as error:
                missing = [key for key in together if key not in returned]
                deaths.update(missing if len(missing) == 1 else ())
                for key in missing:
                    if deaths[key] >= MOST_DEATHS:
                        yield left.pop(key).task, Lost(deaths[key], type(error).__name__)
                suspects += [key for key in missing if key not in suspects]
            suspects = [key for key in suspects if key in left and key not in returned]
        for run in left.values():
            if run.last is not None:
                yield run.task, run.last

    def _played(self, runs: list[RemoteRun], folder: Folder, stop: Interrupt) -> Iterator[tuple[str, Any]]:
        """One stint of each, in the order in which they end; after a stop no further one begins."""
        package = joblib()
        options = {"backend": self.backend} if self.backend else {}
        parallel = package.Parallel(self.jobs, return_as="generator_unordered", batch_size=1, **options)
        manifest, file = json.dumps(folder.manifest), away.world_file(folder)

        def calls() -> Iterator[Any]:
            for run in runs:
                if stop.requested:
                    return
                yield package.delayed(_play)(manifest, file, run.task, run.files)

        yield from parallel(calls())


def _play(manifest: str, file: bytes | None, task: Task, files: Files) -> tuple[str, Any]:
    try:
        world = _world(manifest, file)
    except Exception as error:
        return task.place.key, packed(error)
    return task.place.key, away.play_stint(task, files, world, None, lambda done, headline: None, lambda: False)


@lru_cache(maxsize=1)
def _world(manifest: str, file: bytes | None) -> World:
    """Made once by each process."""
    return away.world_of(json.loads(manifest), file)


def joblib() -> Any:
    """The package, or how to get it."""
    return needed("joblib", "this engine", "joblib")


def _deadly() -> tuple[type[BaseException], ...]:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    return (BrokenProcessPool,)
