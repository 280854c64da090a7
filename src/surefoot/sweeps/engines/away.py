"""A run that is played on a machine that may not see the sweep's folder.

The run's files travel with the task and return with the answer: the checkpoint and snapshots of a run under way, or the
folder of a finished one. A long run is played in stints of ``checkpoint_seconds``, so that its files return from time
to time, and any worker can play the next stint, in a temporary folder (:func:`surefoot.sweeps.task.play_task`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba

from surefoot.errors import InvalidInput, SurefootError
from surefoot.storage import disk
from surefoot.storage.disk import writing
from surefoot.sweeps.folder import Folder, RunPlace
from surefoot.sweeps.task import ENDED, MOST_MARKS, SAVE_SHARE, Played, Stop, Task, Tell, packed, play_task, unpacked
from surefoot.threads import one_blas_thread
from surefoot.worlds.world import World

Files = dict[str, bytes]  # by path below the folder that holds the run's own

SHORTEST = 1.0  # seconds of a stint
NEVER = float("inf")


@dataclass
class RemoteRun:
    """A task, the files of its run, and the result of its stints in this session."""

    task: Task
    files: Files
    last: Played | None = None  # of all stints of this session
    stints: int = 0

    @classmethod
    def of(cls, task: Task) -> RemoteRun:
        return cls(task, files_of(task.place))

    def take_back(self, answer: tuple[Any, ...]) -> Played | Exception:
        """Write what was returned. → the result so far, or the error that ended the run"""
        if answer[0] != ENDED:
            return unpacked(answer)
        played, files = answer[1:]
        try:
            write_back(self.task.place, files, played.finished)
        except SurefootError as error:
            return error
        before = self.last or Played(False, 0, 0.0, [])
        marks = before.marks + [(done, round(before.seconds + at, 4)) for done, at in played.marks]
        while len(marks) > MOST_MARKS:
            del marks[1:-1:2]
        self.stints, self.files = self.stints + 1, files
        self.last = Played(played.finished, played.done, before.seconds + played.seconds, marks)
        return self.last


# --- on the worker ---------------------------------------------------------------------------------------


def play_stint(
    task: Task, files: Mapping[str, bytes], world: World, scratch: str | None, tell: Tell, stop: Stop
) -> Any:
    """Play until the run or the stint ends, or ``stop()``. → (ENDED, Played, files), or a packed error"""
    numba.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="surefoot-", dir=scratch))
    try:
        place = RunPlace(folder, task.place.label, task.place.seed)
        with writing(folder):
            unpack(files, place.folder.parent)
        with one_blas_thread():
            played = play_task(replace(task, place=place, checkpoint_seconds=NEVER), world, tell, _Stint(task, stop))
        return (ENDED, played, files_of(place))
    except Exception as error:
        return packed(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Stint:
    """Stops when its time is over: at least twenty times what it took to begin."""

    def __init__(self, task: Task, stop: Stop) -> None:
        self._stop, self._made, self._begun = stop, time.perf_counter(), 0.0
        self._longest = max(SHORTEST, task.checkpoint_seconds)

    def __call__(self) -> bool:
        now = time.perf_counter()
        if not self._begun:
            self._begun = now
            self._longest = max(self._longest, SAVE_SHARE * (now - self._made))
        return now - self._begun >= self._longest or self._stop()


def world_file(folder: Folder) -> bytes | None:
    """The file of a world that no registry can make, which is sent to every worker once."""
    name = folder.manifest["world"]["file"]
    return None if name is None else (folder.root / name).read_bytes()


def world_of(manifest: dict[str, Any], file: bytes | None) -> World:
    """The sweep's world, made on the worker; refused if it, or this package, is different there."""
    asked, here = manifest["versions"]["surefoot"], version("surefoot")
    if asked != here:
        fix = "Install the same version on every machine of the cluster."
        raise InvalidInput("a worker has another version of surefoot", got=f"{here}, the sweep {asked}", fix=fix)
    if file is None:
        return Folder(Path("the sweep"), manifest).world()
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        (Path(folder) / manifest["world"]["file"]).write_bytes(file)
        return Folder(Path(folder), manifest).world()


# --- files ----------------------------------------------------------------------------------------------


def files_of(place: RunPlace) -> Files:
    """Everything that is kept of a run."""
    parent = place.folder.parent
    found = [place.checkpoint, *place.snapshots.rglob("*"), *place.folder.rglob("*")]
    return {path.relative_to(parent).as_posix(): path.read_bytes() for path in found if path.is_file()}


def unpack(files: Mapping[str, bytes], parent: Path) -> None:
    for name, data in files.items():
        path = parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_back(place: RunPlace, files: Files, finished: bool) -> None:
    """Write what was returned into the sweep's folder: a finished run by one rename, any other file by file.

    Snapshots are written before the checkpoint that needs them, and removed after it if it no longer does.
    """
    parent = place.folder.parent
    with writing(place.folder):
        disk.DISK.mkdir(parent)
        if finished:
            with place.appearing() as beside:
                for name, data in files.items():
                    path = beside / Path(name).relative_to(place.folder.name)
                    disk.DISK.mkdir(path.parent)
                    disk.DISK.replace(path, data)
            return
        last = place.checkpoint.name
        for name in sorted(files, key=lambda name: name == last):
            disk.DISK.mkdir((parent / name).parent)
            if name == last or not (parent / name).exists():
                disk.DISK.replace(parent / name, files[name])
        for path in place.snapshots.glob("*"):
            if path.relative_to(parent).as_posix() not in files:
                path.unlink()
