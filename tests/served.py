"""A study behind HTTP for tests: a server in a process of its own, and a plant that tries again."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import surefoot as sf
from surefoot.model.labels import Label, label_of
from surefoot.serve.server import serve
from surefoot.serve.tokens import tokens_of
from tests.studies import Plant

PATIENCE = 60.0  # seconds for a server to answer, on a machine that does much else


def _child(path: str, port: int, heard: str) -> None:
    with open(heard, "a", encoding="utf-8") as file:

        def say(line: str) -> None:
            file.write(line + "\n")
            file.flush()

        serve(path, port=port, say=say, snapshot_every=25)


class Served:
    """A server on a port that stays the same, with tokens that stay the same."""

    def __init__(self, path: Path, problem: sf.Problem | None = None, **options: Any) -> None:
        if problem is not None:
            sf.Study.open(path, problem, **options).close()
        self.path, self.heard = path, path.with_suffix(".heard")
        _, self.tokens = tokens_of(path, new=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.base = f"http://127.0.0.1:{self.port}"
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.soak.warm", "tests.served"])
        self.process: Any = None

    def start(self, wait: bool = True) -> Served:
        self.process = self._context.Process(target=_child, args=(str(self.path), self.port, str(self.heard)))
        self.process.start()
        if wait:
            self.caller("plant").get("/v1/status")
        return self

    def kill(self) -> None:
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> None:
        if self.process is not None and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGTERM)
            self.process.join(15)
            self.kill()

    def caller(self, role: str) -> Caller:
        return Caller(self.base, self.tokens[role])

    def memory(self) -> float:
        """Resident megabytes of the server."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def served(path: Path, problem: sf.Problem | None = None, **options: Any) -> Iterator[Served]:
    server = Served(path, problem, **options)
    try:
        yield server.start()
    finally:
        server.stop()


class Caller:
    """Calls until it is answered, as a gateway does that must not lose a measurement."""

    def __init__(self, base: str, token: str) -> None:
        self._make: Callable[[], httpx.Client] = lambda: httpx.Client(
            base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE, trust_env=False
        )
        self._client = self._make()
        self.tries = 0

    def __del__(self) -> None:
        self._client.close()

    def _until_answered(self, method: str, path: str, **options: Any) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.tries += 1
            try:
                return self._client.request(method, path, **options)
            except httpx.TransportError:
                self._client.close()
                self._client = self._make()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def get(self, path: str) -> httpx.Response:
        return self._until_answered("GET", path)

    def post(self, call: str, **arguments: Any) -> httpx.Response:
        return self._until_answered("POST", f"/v1/{call}", content=json.dumps(arguments).encode())

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        response = self.post(name, **arguments)
        assert response.status_code == 200, (name, arguments, response.status_code, response.text)
        found: dict[str, Any] = response.json()
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/v1/status").json()
        return found


def go_on(caller: Caller, plant: Plant, episodes: int, seen: Callable[[str, Any], object] | None = None) -> None:
    """Whatever call is due, until so many episodes are over; every call is repeated until it is answered."""
    seen = seen or (lambda what, content: None)
    while True:
        status = caller.status()
        due, place = status["next"], status["episode"]
        if due == "begin":
            if status["episodes"] >= episodes:
                return
            caller.call("begin", start=plant.start(status["episodes"] + 1))
        elif due in ("ask", "tell"):
            offer = caller.call("ask")
            seen("ask", offer | {"next": None})
            state, action = label_of(offer["state"]), label_of(offer["action"])
            after, cost = plant.answer(offer["episode"], offer["step"], state, action, offer["intensity"])
            caller.call("tell", ask_id=offer["ask_id"], next_state=after, cost=cost)
            seen("tell", [offer["ask_id"], _plain(after), cost])
        else:
            cost = plant.last_cost(place["number"], label_of(place["state"]))
            caller.call("tell_terminal", cost=cost, episode=place["number"])
            seen("tell_terminal", [place["number"], cost])


def _plain(label: Label) -> Any:
    return json.loads(json.dumps(label))
