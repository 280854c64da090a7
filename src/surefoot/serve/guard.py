"""The checks that every request passes first: which host it is for, where it comes from, whose it is.

* ``Host`` must be one of this server's names, so that no other site's name can be pointed at it.
* ``Origin``, which browsers send, must be this server's own, so that no other site's page can call it.
* A query string is refused, because a token in a URL would end up in a log.
* ``Authorization: Bearer …`` must hold a token, except for the page itself, which is empty until it gets one.
* A body is read up to ``LONGEST_BODY``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from surefoot.serve.tokens import Tokens
from surefoot.study.protocol import LONGEST_REQUEST

LONGEST_BODY = LONGEST_REQUEST
SECONDS = 10.0  #: that a body may take to arrive

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(Exception):
    """A refused request, with its status and the reason."""

    def __init__(self, status: int, reason: str, kind: str = "Refused") -> None:
        super().__init__(reason)
        self.status, self.reason, self.kind = status, reason, kind

    def response(self) -> Response:
        more = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        body = {"error": self.reason, "kind": self.kind}
        return JSONResponse(body, self.status, headers={**HEADERS, **more})


class Guard:
    """Asked by every endpoint."""

    def __init__(self, tokens: Tokens, hosts: frozenset[str]) -> None:
        self._tokens, self._hosts = tokens, hosts

    def check_place(self, request: Request) -> None:
        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            raise Refused(421, "this server does not answer to that Host; name it with --allow-host")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise Refused(403, "the request comes from another site's page")
        if request.url.query:
            where = "put arguments into the body and the token into the Authorization header"
            raise Refused(400, f"query strings are refused; {where}")

    def role(self, request: Request, *allowed: str) -> str:
        """Whose request it is."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Refused(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        role = self._tokens.role_of(token.strip())
        if role is None:
            raise Refused(401, "this token is not known; tokens were printed when the study was first served")
        if role not in allowed:
            raise Refused(403, f"the {role}'s token may not do this; it takes the {' or '.join(allowed)}'s")
        return role


async def body_of(request: Request) -> bytes:
    """The body, if it is not too long and comes in time."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > LONGEST_BODY:
        raise Refused(413, f"a body has at most {LONGEST_BODY} bytes")
    found = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > LONGEST_BODY:
                    raise Refused(413, f"a body has at most {LONGEST_BODY} bytes")
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {SECONDS:g} seconds") from None
    return bytes(found)


Endpoint = Callable[[Request], Awaitable[Response]]
