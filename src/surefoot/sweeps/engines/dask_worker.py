"""What runs on a Dask worker: a plugin per sweep, which holds its world, and a function that plays."""

from __future__ import annotations

import threading
import time
from typing import Any

from distributed import WorkerPlugin, get_worker

from surefoot.sweeps.engines.away import Files, play_stint, world_of
from surefoot.sweeps.task import Task, packed
from surefoot.worlds.world import World

TELL_SECONDS = 0.5  # between two progress messages of a run


class Playing(WorkerPlugin):  # type: ignore[misc, unused-ignore]
    """Given to every worker once: the sweep, its world once it is made, and whether to stop."""

    def __init__(self, name: str, manifest: dict[str, Any], file: bytes | None) -> None:
        self.name, self.manifest, self.file, self.stopped = name, manifest, file, False
        self._world: World | None = None

    def setup(self, worker: Any) -> None:
        self._lock = threading.Lock()

    def world(self) -> World:
        with self._lock:  # a worker with several threads makes it once
            if self._world is None:
                self._world = world_of(self.manifest, self.file)
            return self._world


def stop_playing(name: str, dask_worker: Any) -> None:
    """Let runs of this sweep return what they have, and begin no other."""
    if name in dask_worker.plugins:
        dask_worker.plugins[name].stopped = True


def play(name: str, task: Task, files: Files) -> Any:
    """One stint of a run. → what :func:`surefoot.sweeps.engines.away.play_stint` says; None after a stop."""
    here = get_worker()
    plugin: Any = here.plugins[name]
    if plugin.stopped:
        return None
    try:
        world = plugin.world()
    except Exception as error:
        return packed(error)
    told = [time.monotonic()]

    def tell(done: int, headline: str) -> None:
        if time.monotonic() - told[0] >= TELL_SECONDS:
            told[0] = time.monotonic()
            here.log_event(name, {"run": task.place.key, "done": done, "headline": headline})

    return play_stint(task, files, world, here.local_directory, tell, lambda: plugin.stopped)
