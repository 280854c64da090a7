"""``surefoot study serve``: one process that owns the study and serves it on one port until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from surefoot.checks import needed
from surefoot.errors import InvalidInput
from surefoot.study.study import Study

LOCAL = ("127.0.0.1", "localhost", "[::1]")
_GRACE = 2  #: seconds for open connections when the server stops
MOST_CONNECTIONS = 128


def serve(
    path: str | Path,
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    allow_hosts: Sequence[str] = (),
    new_tokens: bool = False,
    say: Callable[[str], object] = print,
    **options: Any,
) -> None:
    """Serve a study until SIGINT or SIGTERM.

    Args:
        path: the study's folder; it must exist.
        host, port: where to listen; port 0 takes a free one.
        allow_hosts: other names of this machine, as in the ``Host`` header, without the port.
        new_tokens: replace the tokens, if they were lost or others know them.
        say: called with the address and, the first time, the tokens.
        options: options of :meth:`surefoot.Study.open`.
    """
    needed("starlette", "serving", "'surefoot[serve]'")
    uvicorn = needed("uvicorn", "serving", "'surefoot[serve]'")
    from surefoot.serve.app import Server
    from surefoot.serve.tokens import tokens_of

    listening = _listening(host, port)
    with listening:
        port = int(listening.getsockname()[1])
        study = Study.open(path, **options)
        try:
            for remark in study.recovered:
                say(f"surefoot: {remark}")
            tokens, made = tokens_of(study.path, new_tokens)
            names = {name.lower() for name in (*LOCAL, host, *allow_hosts)}
            hosts = frozenset({f"{name}:{port}" for name in names} | (names if port in (80, 443) else set()))
            _announce(say, study, f"http://{_shown(host)}:{port}", made)
            config = uvicorn.Config(
                Server(study, tokens, hosts).app(),
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=MOST_CONNECTIONS,
                h11_max_incomplete_event_size=1 << 16,
                timeout_graceful_shutdown=_GRACE,
                lifespan="on",
            )
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            study.close()


def _announce(say: Callable[[str], object], study: Study, address: str, made: dict[str, str]) -> None:
    for role, token in made.items():
        say(f"token of the {role}: {token}")
    if made:
        say("Keep them: they are not shown again, and the study's folder holds only their hashes.")
    else:
        say("The tokens are those that were printed when this study was first served (--new-tokens makes new ones).")
    say(f"serving {study.path} at {address}")


def _shown(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, or asyncio does not know that it is TCP and delays answers until their headers are acknowledged.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        found.close()
        fix = "Choose another --host or --port."
        raise InvalidInput("cannot listen there", where=f"{host}:{port}", got=str(error), fix=fix) from None
    return found
