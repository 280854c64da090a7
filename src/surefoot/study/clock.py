"""The time of records: the wall clock's, which anybody can set, watched by one of the process, which nobody can."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from surefoot.study.records import time_seconds, time_text

Clock = Callable[[], float]
"""Seconds since 1970."""

TOLERANCE = 1.0  #: seconds; clocks are corrected by less than this all the time


class Timekeeper:
    """Tells the time, and by how much the wall clock has gone back since it was last believed.

    Records are in the order of their numbers; times only say when. So a clock that is wrong never holds a study up.
    """

    def __init__(self, wall: Clock, last: str) -> None:
        """``last``: the time of the last record; '' when there is none."""
        self._wall = wall
        # A clock that the caller brings along is compared with itself alone: nobody else knows how fast it should go.
        self._ticks: Clock = time.monotonic if wall is time.time else lambda: 0.0
        self.believe(time_seconds(last) if last else -math.inf)

    def believe(self, now: float) -> None:
        """Count on from here."""
        self._then, self._ticked = now, self._ticks()

    def read(self) -> tuple[float, float]:
        """(now, expected), in seconds since 1970: it cannot be earlier than expected unless the clock was set back."""
        now, expected = self._wall(), self._then + self._ticks() - self._ticked
        time_text(now)  # an error where it is none
        if now > expected:
            self.believe(now)
        return now, expected
