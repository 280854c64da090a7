"""Progress of long work: a bar once it takes longer than two seconds, and Ctrl-C as a request to stop."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from types import FrameType, TracebackType
from typing import Any

from surefoot.compiling import PATIENCE


def started_bar() -> Any:
    """A bar on the terminal: the name of each task, its progress, the time left and a headline."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[headline]}"),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar


class Display:
    """The progress of some runs, and of all together if there are several; drawn on standard error once the work has
    taken longer than ``PATIENCE``."""

    def __init__(self, runs: int, episodes: int, shown: bool | None) -> None:
        """``shown``: None draws only on a terminal."""
        self._runs, self._episodes = runs, episodes
        self._done = 0  # of ended runs
        self._running: dict[str, tuple[int, str]] = {}
        self._allowed = sys.stderr.isatty() if shown is None else shown
        self._began = time.monotonic()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Display:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, name: str, done: int, headline: str) -> None:
        self._running[name] = (done, headline)
        self.refresh()

    def end(self, name: str, done: int) -> None:
        self._running.pop(name, None)
        self._done += done
        if name in self._tasks:
            self._bar.remove_task(self._tasks.pop(name))
        self.refresh()

    def refresh(self) -> None:
        if self._bar is None:
            if not self._allowed or time.monotonic() - self._began < PATIENCE:
                return
            self._start()
        for name, (done, headline) in self._running.items():
            if name not in self._tasks:
                self._tasks[name] = self._bar.add_task(name, total=self._episodes, headline="")
            self._bar.update(self._tasks[name], completed=done, headline=headline)
        if "" in self._tasks:
            overall = self._done + sum(done for done, _ in self._running.values())
            self._bar.update(self._tasks[""], completed=overall)

    def _start(self) -> None:
        if not self._done and not self._running:  # no process has told of an episode yet
            words = "surefoot: starting; the first time on a machine every process compiles for about a minute …"
            print(words, file=sys.stderr, flush=True)
        self._bar = started_bar()
        if self._runs > 1:
            self._tasks[""] = self._bar.add_task("all episodes", total=self._runs * self._episodes, headline="")


class Interrupt:
    """Ctrl-C as a request: the run stops between two episodes and keeps what is done. A second one stops at once.

    Within the block SIGINT and SIGTERM set ``requested``; outside the main thread it changes nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self.number = 0  # of the signal that asked
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not None:  # one that Python did not set could not be put back
                    self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def warn(self, done: int, episodes: int) -> None:
        """Say that a run is shorter than it should be, since a script would continue with it."""
        if self.requested and self._outer is None:
            warn_interrupted(done, episodes)

    @property
    def _outer(self) -> Interrupt | None:
        """The block that this one is nested in."""
        found = getattr(self._before.get(self.number), "__self__", None)
        return found if isinstance(found, Interrupt) else None

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested, self.number = True, number
        if self._outer is not None:  # it must end, too
            self._outer.requested, self._outer.number = True, number


def warn_interrupted(done: int, episodes: int) -> None:
    """Warn that a run was interrupted, and how much of it there is."""
    warnings.warn(f"interrupted after {done:,} of {episodes:,} episodes; the run has only these", stacklevel=4)
