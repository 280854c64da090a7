"""The server side of the live page: renders what has changed and sends it to every page that listens.

Parts are rendered on the study's own thread, only while somebody listens, and at most ten times a second, so that an
operator's screen hardly slows a plant down. The HTML comes from :mod:`surefoot.reports.study_parts`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from surefoot.reports.html import encodable
from surefoot.reports.study_history import History
from surefoot.reports.study_page import explorer_part, live_parts, plan_parts
from surefoot.serve.calls import Desk
from surefoot.serve.guard import Refused
from surefoot.study import journal as journals

MOST_LISTENERS = 32
PAUSE = 0.1  #: seconds between two renderings, at least
REST = 5  #: and this many times what one takes
HEARTBEAT = 3.0  #: seconds; a page that hears nothing for longer says that it is not live


class Rendering:
    """What the page shows, kept so that only changes are rendered and sent."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._history: History | None = None
        self._plan: tuple[str, int, int] | None = None
        self._of_plan: dict[str, str] = {}
        self.explorer: tuple[str, dict[str, Any] | None] = ("", None)
        self.version = 0  # of the explorer

    def parts(self) -> dict[str, Any]:
        """All parts, and the state that the page's forms need. Call it on the study's thread."""
        study = self._desk.study
        problem, standing = study.problem, study.standing
        plan = (problem.digest, standing.epoch, standing.agent.plan.number)
        if self._history is None or self._plan is None or self._plan[0] != problem.digest:
            self._history = History(problem)
        self._history.read(study.path / journals.NAME)
        if plan != self._plan:
            self._plan, self._of_plan = plan, plan_parts(study)
            self.explorer, self.version = explorer_part(study), self.version + 1
        status = study.status()
        state = {
            "name": encodable(study.path.name),
            "safe_mode": status["safe_mode"],
            "alarms": [item["record"] for item in status["alarms"]],
            "limits": [limit.name for limit in problem.limits],
            "episode": None if status["episode"] is None else status["episode"]["number"],
            "explorer": self.version,
        }
        return {"parts": {**live_parts(study, status, self._history), **self._of_plan}, "state": state}


class Hub:
    """Knows who listens. Each page gets only what has changed since the last time."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self.rendering = desk, Rendering(desk)
        self._listeners: set[asyncio.Event] = set()
        self._changed = asyncio.Event()
        self._now: dict[str, Any] = {}
        self.closing = False

    def changed(self) -> None:
        """A call was made."""
        self._changed.set()

    async def run(self) -> None:
        """Render what changes while somebody listens, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not self._listeners:
                continue
            began = time.monotonic()
            self._now = await self._desk.do(self.rendering.parts)
            for news in self._listeners:
                news.set()
            await asyncio.sleep(max(PAUSE, REST * (time.monotonic() - began)))

    def listen(self) -> AsyncIterator[str]:
        """The events of one page: everything first, then what changes; a heartbeat when nothing does."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise Refused(429, f"at most {MOST_LISTENERS} pages may listen")
        news = asyncio.Event()
        self._listeners.add(news)
        self._changed.set()
        return self._events(news)

    async def _events(self, news: asyncio.Event) -> AsyncIterator[str]:
        sent: dict[str, str] = {}
        try:
            while not self.closing:
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                news.clear()
                parts = self._now["parts"]
                yield _event({name: text for name, text in parts.items() if sent.get(name) != text}, self._now["state"])
                sent = parts
        finally:
            self._listeners.discard(news)


def _event(parts: dict[str, str], state: dict[str, Any]) -> str:
    text = json.dumps({"parts": parts, "state": state})  # ASCII, on one line
    return f"data: {text}\n\n"
