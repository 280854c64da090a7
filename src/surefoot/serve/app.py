"""The HTTP application: routes, and one format for every refusal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from surefoot.reports.html import filled, scripted, shipped, whole_page
from surefoot.serve.calls import ALLOWED, Desk
from surefoot.serve.guard import HEADERS, Endpoint, Guard, Refused, body_of
from surefoot.serve.live import Hub
from surefoot.serve.openapi import description
from surefoot.serve.tokens import OPERATOR, ROLES, Tokens
from surefoot.study.protocol import reply_line
from surefoot.study.study import Study

_LIVE = "; script-src 'self'; connect-src 'self'; img-src data:"  # what the page may load, beside its style
_PARTS = ("alarms", "offer", "margins", "limits", "audit", "better", "next", "events", "details", "acknowledge")


class Server:
    """One study, its callers and its listeners."""

    def __init__(self, study: Study, tokens: Tokens, hosts: frozenset[str]) -> None:
        self._guard = Guard(tokens, hosts)
        self.desk = Desk(study, lambda: self.hub.changed())
        self.hub = Hub(self.desk)

    def app(self) -> Starlette:
        calls = [Route(f"/v1/{name}", self._guarded(partial(self._call, name)), methods=["POST"]) for name in ALLOWED]
        reads: dict[str, Endpoint] = {
            "/": self._page,
            "/live.js": partial(self._script, "live.js"),
            "/page.js": partial(self._script, "page.js"),
            "/openapi.json": self._openapi,
            "/v1/status": self._status,
            "/v1/events": self._events,
            "/v1/explorer": self._explorer,
        }
        routes = [Route(path, self._guarded(endpoint), methods=["GET"]) for path, endpoint in reads.items()]
        handlers: Any = {HTTPException: _http_refusal, Exception: _unexpected}
        return Starlette(routes=[*calls, *routes], exception_handlers=handlers, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        sending = asyncio.create_task(self.hub.run())
        try:
            yield
        finally:
            self.hub.closing = True
            sending.cancel()
            self.desk.close()

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def answered(request: Request) -> Response:
            try:
                self._guard.check_place(request)
                return await endpoint(request)
            except Refused as refusal:
                return refusal.response()
            except ClientDisconnect:
                return Response(status_code=400)

        return answered

    # --- calls ------------------------------------------------------------------------------------------

    async def _call(self, name: str, request: Request) -> Response:
        self._guard.role(request, *ALLOWED[name])
        return _json(await self.desk.call(name, await body_of(request)))

    async def _status(self, request: Request) -> Response:
        self._guard.role(request, *ROLES)
        return _json(await self.desk.do(self.desk.study.status))

    async def _openapi(self, request: Request) -> Response:
        self._guard.role(request, *ROLES)
        return _json(description())

    # --- the page ---------------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        """Empty until it gets a token: whoever opens it learns that there is a study, and nothing about it."""
        parts = dict.fromkeys(_PARTS, "") | {
            "explorer": '<div id="part-explorer"></div>',
            "live": _shipped("login.html"),
        }
        script = scripted(None, '<script src="/page.js"></script>\n<script src="/live.js"></script>')
        page = whole_page("Live", "surefoot study", "Not connected.", filled("study.html", parts), script, _LIVE)
        return Response(page, media_type="text/html", headers=HEADERS)

    async def _script(self, name: str, request: Request) -> Response:
        text = shipped(name) if name == "page.js" else _shipped(name)
        return Response(text, media_type="text/javascript", headers=HEADERS)

    async def _events(self, request: Request) -> Response:
        self._guard.role(request, OPERATOR)
        events = self.hub.listen()
        return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)

    async def _explorer(self, request: Request) -> Response:
        self._guard.role(request, OPERATOR)
        await self.desk.do(self.hub.rendering.parts)
        html, data = self.hub.rendering.explorer
        return _json({"html": html, "data": data, "version": self.hub.rendering.version})


def _json(value: dict[str, Any]) -> Response:
    return Response(reply_line(value), media_type="application/json", headers=HEADERS)


def _shipped(name: str) -> str:
    return files("surefoot.serve").joinpath("templates", name).read_text(encoding="utf-8")


async def _http_refusal(request: Request, error: HTTPException) -> Response:
    reasons = {404: "there is no such path; see /openapi.json", 405: "this path takes another method"}
    return Refused(error.status_code, reasons.get(error.status_code, str(error.detail))).response()


async def _unexpected(request: Request, error: Exception) -> Response:
    """A fault of this server; what was answered before is on disk."""
    return JSONResponse({"error": f"internal error: {type(error).__name__}", "kind": "Internal"}, 500, headers=HEADERS)
