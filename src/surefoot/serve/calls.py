"""The study's calls over HTTP. One thread makes them all, one after the other, as the study requires.

Calls are those of :mod:`surefoot.study.protocol`, with a JSON object as arguments. What was answered is on disk. If an
answer is lost, the request may be sent again: a tell, a last cost and an abort count once, an ask returns the same
offer, and a begin before the first ask the same episode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder, SurefootError, UnwritableFile
from surefoot.model.labels import shown
from surefoot.serve.guard import Refused
from surefoot.serve.tokens import OPERATOR, PLANT
from surefoot.study.protocol import answer, parse_request
from surefoot.study.study import Study

_T = TypeVar("_T")

#: Which role may make which call. Calls that name files on the server are not here.
ALLOWED: dict[str, tuple[str, ...]] = {
    "begin": (PLANT,),
    "ask": (PLANT,),
    "tell": (PLANT,),
    "tell_terminal": (PLANT,),
    "abort": (PLANT, OPERATOR),
    "acknowledge": (OPERATOR,),
}


class Desk:
    """Where calls are made; everything that touches the study goes through here."""

    def __init__(self, study: Study, changed: Callable[[], None]) -> None:
        self.study, self._changed = study, changed
        self._thread = ThreadPoolExecutor(1, "study")

    async def do(self, work: Callable[[], _T]) -> _T:
        """Do something on the study's own thread; a caller that goes away does not stop it."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work))

    async def call(self, name: str, body: bytes) -> dict[str, Any]:
        """Make a call and return its answer; a refusal is raised as :class:`Refused`, and nothing was changed."""
        try:
            request = parse_request(body or b"{}")
            reply = await self.do(lambda: self._answer(name, request))
        except SurefootError as error:
            self._changed()  # a state may be in doubt now
            raise Refused(status_of(error), str(error), type(error).__name__) from None
        self._changed()
        return reply

    def _answer(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        if "call" in request:
            raise InvalidInput("the call is in the path", got=shown(request["call"]), fix="Leave 'call' out.")
        if not isinstance(request.get("problem", {}), dict | None):  # never a path on the server
            fix = "Send the JSON that problem.save writes."
            raise InvalidInput("problem is the document of a problem", got=shown(request["problem"]), fix=fix)
        return answer(self.study, {**request, "call": name})

    def close(self) -> None:
        """Close once the current calls are done."""
        self._thread.shutdown(wait=True)
        self.study.close()


def status_of(error: SurefootError) -> int:
    """The HTTP status of a refusal."""
    if isinstance(error, OutOfOrder | AssumptionBroken):  # the latter: nothing is certified, so a person must act
        return 409
    return 503 if isinstance(error, UnwritableFile) else 422
