"""One live display for all runs of a sweep: the progress of each and of all. On a terminal, after two seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from surefoot.compiling import PATIENCE
from surefoot.runs.progress import started_bar


class Display:
    """Counts quietly; draws on standard error once the work has taken longer than ``PATIENCE``."""

    def __init__(self, runs: int, episodes: int, shown: bool | None) -> None:
        self._total, self._episodes = runs * episodes, episodes
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
        overall = self._done + sum(done for done, _ in self._running.values())
        self._bar.update(self._tasks[""], completed=overall)

    def _start(self) -> None:
        if not self._done and not self._running:  # no process has told of an episode yet
            words = "surefoot: starting; the first time on a machine every process compiles for about a minute …"
            print(words, file=sys.stderr, flush=True)
        self._bar = started_bar()
        self._tasks[""] = self._bar.add_task("all episodes", total=self._total, headline="")
