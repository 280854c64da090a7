"""Progress of long work: a bar once it takes longer than two seconds, and Ctrl-C as a request to stop."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
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


class Progress:
    """Counts quietly, and shows a bar on standard error once the work has taken longer than ``PATIENCE``."""

    def __init__(self, total: int, done: int, shown: bool | None, headline: Callable[[], str]) -> None:
        self._total, self._done, self._headline = total, done, headline
        self._allowed = sys.stderr.isatty() if shown is None else shown
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, episodes: int) -> None:
        self._done += episodes
        if self._bar is None and self._allowed and time.monotonic() - self._began > PATIENCE:
            self._start()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, headline=self._headline())

    def _start(self) -> None:
        self._bar = started_bar()
        self._task = self._bar.add_task("episodes", total=self._total, completed=self._done, headline="")


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

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested, self.number = True, number
        outer = getattr(self._before.get(number), "__self__", None)
        if isinstance(outer, Interrupt):  # whatever this block is a part of shall end, too
            outer.requested, outer.number = True, number
