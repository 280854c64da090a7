"""One episode of a study, as a ``with`` block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from surefoot.agents.blocks.place import Place
from surefoot.errors import OutOfOrder, SurefootError
from surefoot.model.labels import Label
from surefoot.model.measured import Cost
from surefoot.study.certificate import Offer
from surefoot.study.telling import AS_OFFERED, Receipt

if TYPE_CHECKING:
    from surefoot.study.study import Study


class Episode:
    """Asks and tells from the first step to the last. Leaving the block before the end aborts the episode.

    If the process dies instead, or if the state told last was refused because it cannot have followed, the episode
    stays under way: continue with ``study.resume()``, after reopening the study if need be.
    """

    def __init__(self, study: Study, begin: Callable[[], int]) -> None:
        self._study, self._begin = study, begin
        self.number = 0  #: of the episode, from 1

    def __enter__(self) -> Episode:
        self.number = self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.done or self._study.standing.doubt is not None:
            return
        if error is None:
            self._study.abort("the block was left before the episode's end")
            return
        with contextlib.suppress(SurefootError):  # a disk that fails now must not hide the first error
            self._study.abort(f"{type(error).__name__}: {error}"[:500])

    @property
    def done(self) -> bool:
        """True when nothing is left to ask or tell: it came to its end, an alarm ended it, or it was aborted."""
        place = self._study.standing.place
        return place is None or place.episode != self.number

    @property
    def at_terminal(self) -> bool:
        """True when only the cost of the last state is missing."""
        return not self.done and self._study.standing.at_terminal

    @property
    def step(self) -> int:
        return self._still().step

    @property
    def state(self) -> Label:
        """Where the plant is, as it was told."""
        return self._still().label

    def ask(self) -> Offer:
        self._still()
        return self._study.ask()

    def tell(
        self,
        next_state: Label,
        cost: Cost,
        action_applied: Label = AS_OFFERED,
        intensity: float | None = None,
        sure: bool = False,
    ) -> Receipt:
        """Tell what followed the pending offer; see :meth:`Study.tell`."""
        self._still()
        pending = self._study.standing.pending
        if pending is None:
            raise OutOfOrder("nothing was asked", fix="Call ask first.")
        return self._study.tell(pending["ask"], next_state, cost, action_applied, intensity, sure)

    def tell_terminal(self, cost: Cost) -> Receipt:
        self._still()
        return self._study.tell_terminal(cost)

    def abort(self, reason: str = "") -> None:
        self._still()
        self._study.abort(reason)

    def _still(self) -> Place:
        if self.number == 0:
            raise OutOfOrder(
                "the episode has not begun", fix="Begin it with its block: with study.episode() as episode."
            )
        place = self._study.standing.place
        if self.done or place is None:
            raise OutOfOrder("the episode is over", got=f"episode {self.number}")
        return place
