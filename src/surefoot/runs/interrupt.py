"""Ctrl-C as a request: the run stops between two episodes and keeps what is done. A second one stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """Within the block SIGINT and SIGTERM set ``requested``; outside the main thread it changes nothing."""

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
