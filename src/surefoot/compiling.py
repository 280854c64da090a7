"""Prints a line while code is compiled, which takes about a minute the first time on a machine.

Numba caches compiled code on disk, so the next start is quick and prints nothing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

PATIENCE = 2.0  #: seconds before the line is printed
WORDS = "surefoot: compiling; the first time on a machine this takes about a minute …"


@contextlib.contextmanager
def compiling_said(shown: bool | None = None) -> Iterator[None]:
    """In this context, say so once, on standard error, if compiling takes longer than ``PATIENCE``.

    ``shown``: None says it only on a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield
        return
    from numba.core import event

    class _Listener(event.Listener):
        """Numba notifies it of every compilation, but not of code that is cached."""

        def on_start(self, event: Any) -> None:
            under_way.begin()

        def on_end(self, event: Any) -> None:
            under_way.end()

    under_way = _UnderWay()
    with event.install_listener("numba:compile", _Listener()):
        try:
            yield
        finally:
            under_way.done()


class _UnderWay:
    """Adds up the time that compiling takes; functions call each other, so compilations nest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._said = False
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        with self._lock:
            self._depth += 1
            if self._timer is None and not self._said:
                self._timer = threading.Timer(PATIENCE, self._late)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        with self._lock:
            self._depth -= 1

    def _late(self) -> None:
        with self._lock:
            self._timer = None
            if self._depth > 0 and not self._said:  # otherwise it is done; the next compilation starts a new timer
                self._said = True
                print(WORDS, file=sys.stderr, flush=True)

    def done(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
