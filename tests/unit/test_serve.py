"""A study over HTTP: who may call, what is refused, that kills lose nothing and rubbish changes nothing."""

from __future__ import annotations

import contextlib
import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder, UnreadableFile
from surefoot.serve.guard import LONGEST_BODY
from surefoot.serve.openapi import description
from surefoot.serve.tokens import TOKENS, tokens_of
from tests.served import Served, go_on, served
from tests.soak.kill_server import kill_server_often
from tests.studies import Plant, fingerprint, kettle, records_of
from tests.studies import go_on as go_on_in_python


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "kettle.study", kettle().problem) as found:
        yield found


def raw(server: Served, data: bytes) -> bytes:
    """What comes back to bytes that no client would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=3) as connection:
        found = b""
        with contextlib.suppress(OSError):  # it may answer, and close, before it has read everything
            connection.sendall(data)
        with contextlib.suppress(TimeoutError):
            while part := connection.recv(65536):
                found += part
    return found


def test_the_same_study_comes_of_the_same_calls(tmp_path: Path, seed: int) -> None:
    """Over HTTP and in Python: the same journal but for its times, and so the same state to the bit."""
    plant = Plant(kettle(), seed)
    with served(tmp_path / "http", kettle().problem) as server:
        go_on(server.caller("plant"), plant, 6)
    with sf.Study.open(tmp_path / "python", kettle().problem) as study:
        go_on_in_python(study, plant, 6)
        mine = fingerprint(study)
    with sf.Study.open(tmp_path / "http") as study:
        assert fingerprint(study) == mine
    assert sf.audit(tmp_path / "http").clean


def test_roles_and_tokens(server: Served) -> None:
    plant, operator = server.caller("plant"), server.caller("operator")
    assert plant.post("acknowledge", reason="x").status_code == 403
    assert operator.post("ask").status_code == 403
    assert plant.get("/v1/events").status_code == 403
    assert plant.get("/v1/explorer").status_code == 403
    assert operator.get("/v1/explorer").json()["data"]["truth"] is False
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic eDp5"},
    ):
        with httpx.Client(base_url=server.base, trust_env=False, timeout=30) as nobody:
            for path in ("/v1/status", "/v1/events", "/openapi.json"):
                refused = nobody.get(path, headers=headers)
                assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
                assert "token" in refused.json()["error"]
            assert nobody.get("/").status_code == 200  # empty until it is given a token
    kept = server.path / TOKENS
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for token in server.tokens.values():
        assert token not in kept.read_text()
        assert token not in server.heard.read_text()  # made before; never printed again


def test_place_and_origin(server: Served) -> None:
    token = {"Authorization": f"Bearer {server.tokens['plant']}"}
    with httpx.Client(base_url=server.base, headers=token, trust_env=False, timeout=30) as client:
        assert client.get("/v1/status", headers={"Host": "evil.example"}).status_code == 421
        assert client.get("/v1/status", headers={"Host": "127.0.0.1"}).status_code == 421
        assert client.get("/v1/status", headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.get("/v1/status", headers={"Origin": "null"}).status_code == 403
        assert client.get("/v1/status", headers={"Origin": server.base}).status_code == 200
        assert client.get(f"/v1/status?token={server.tokens['plant']}").status_code == 400
        headers = client.get("/").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"


def test_calls_are_repeated_without_harm(tmp_path: Path) -> None:
    with served(tmp_path / "s", kettle().problem) as server:
        plant = server.caller("plant")
        assert plant.call("begin", start="s") == plant.call("begin", start="s")
        offer = plant.call("ask")
        assert plant.call("ask") == offer
        told = {"ask_id": offer["ask_id"], "next_state": "s", "cost": 0.1}
        assert plant.call("tell", **told)["repeated"] is False
        assert plant.call("tell", **told)["repeated"] is True
        other = plant.post("tell", **told | {"cost": 0.2})
        assert (other.status_code, other.json()["kind"]) == (409, "OutOfOrder")
        plant.call("abort", reason="the shift ends", episode=1)
        plant.call("abort", reason="the shift ends", episode=1)
        assert [record["kind"] for record in records_of(tmp_path / "s")] == ["open", "begin", "ask", "tell", "abort"]


def test_an_operator_answers_the_alarms_that_he_saw(tmp_path: Path) -> None:
    with served(tmp_path / "s", kettle().problem) as server:
        plant, operator = server.caller("plant"), server.caller("operator")
        plant.call("begin", start="s")
        alarm = plant.call("tell", ask_id=plant.call("ask")["ask_id"], next_state="s", cost=float("nan"))
        assert alarm["safe_mode"] is True
        early = operator.post("acknowledge", reason="cable")
        assert early.status_code == 409
        operator.call("abort", reason="at rest")
        (waiting,) = [item["record"] for item in operator.status()["alarms"]]
        assert operator.post("acknowledge", reason="cable", alarms=[waiting + 1]).status_code == 409
        assert operator.post("acknowledge", reason="cable", alarms=[]).status_code == 409
        assert operator.post("acknowledge", reason=3).status_code == 422
        assert operator.post("acknowledge", reason="cable", problem="/etc/passwd").status_code == 422
        assert operator.post("acknowledge", reason="cable", colour="red").status_code == 422
        operator.call("acknowledge", reason="cable", alarms=[waiting])
        assert operator.status()["safe_mode"] is False
        assert operator.post("acknowledge", reason="cable", alarms=[waiting]).status_code == 409


def test_a_wider_problem_is_sent_as_its_document(tmp_path: Path) -> None:
    wider = json.loads(kettle(wider=True).problem.save(tmp_path / "wider.json").read_text())
    with served(tmp_path / "s", kettle().problem) as server:
        plant, operator = server.caller("plant"), server.caller("operator")
        plant.call("begin", start="s")
        ask = plant.call("ask")
        plant.call("tell", ask_id=ask["ask_id"], next_state="cold", cost=0.1, action_applied="heat")
        assert operator.post("acknowledge", reason="seen").status_code == 422
        operator.call("acknowledge", reason="it may stay cold", problem=wider)
        assert operator.status()["problem"] == kettle(wider=True).problem.digest
    assert sf.audit(tmp_path / "s").clean


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, seed: int) -> None:
    """A few of the 200 of ``make soak``."""
    found = kill_server_often(tmp_path, 3, seed)
    assert found.kills == 3
    assert found.finished >= 1  # how many fit between the kills depends on the machine
    assert found.answering >= 1


# --- rubbish --------------------------------------------------------------------------------------------

CALLS = ("begin", "ask", "tell", "tell_terminal", "abort", "acknowledge")


def rubbish(rng: np.random.Generator, server: Served) -> bytes:
    """A request with something wrong in it."""
    role = "operator" if rng.random() < 0.3 else "plant"
    token, host, length = server.tokens[role], f"127.0.0.1:{server.port}", None
    method, path, body = b"POST", f"/v1/{CALLS[int(rng.integers(len(CALLS)))]}".encode(), b'{"ask_id": "0-00000000"}'
    wrong = int(rng.integers(13))
    if wrong == 0:
        body = bytes(rng.integers(0, 256, int(rng.integers(1, 400)), np.uint8))
    elif wrong == 1:
        body = [b"[", b"{", b"null", b"3", b'"x"', b'{"a":1,"a":2}', b"{" * 5000, b"[" * 90_000][int(rng.integers(8))]
    elif wrong == 2:
        values = [None, 3, -1, "x", [], {}, True, 1e308, ["y"] * 50]
        keys = ["ask_id", "next_state", "cost", "reason", "episode", "start", "call", "id", "</script>", "noise"]
        body = json.dumps({k: values[int(rng.integers(len(values)))] for k in rng.choice(keys, 4)}).encode()
        path = b"/v1/tell"  # without an ask pending, so that nothing can be right
    elif wrong == 3:
        token = "x" * int(rng.integers(0, 3000))
    elif wrong == 4:
        host = ["evil.example", "", "127.0.0.1", f"localhost:{server.port}x"][int(rng.integers(4))]
    elif wrong == 5:
        method = [b"PUT", b"DELETE", b"PATCH", b"TRACE", b"BREW"][int(rng.integers(5))]
    elif wrong == 6:
        path = [
            b"/v1/",
            b"/v2/ask",
            b"/../../etc/passwd",
            b"/v1/ask?x=1",
            b"/%00",
            b"/v1/export_policy",
            b"/v1/import_log",
        ][int(rng.integers(7))]
    elif wrong == 7:
        length = [b"-1", b"99999999999", b"abc", str(LONGEST_BODY + 1).encode()][int(rng.integers(4))]
    elif wrong == 8:
        return bytes(rng.integers(0, 256, int(rng.integers(1, 300)), np.uint8)) + b"\r\n\r\n"
    elif wrong == 9:
        return b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n"
    elif wrong == 10:
        body = b'{"cost": ' + b"9" * 6000 + b"}"
    elif wrong == 11:
        body = b"x" * (LONGEST_BODY + 1)
    else:
        body = json.dumps({"ask_id": "12-abcdef01", "next_state": "\ud800", "cost": 0.1}).encode()
        path = b"/v1/tell"
        if rng.random() < 0.5:
            path, body, token = b"/v1/abort", b"{}", server.tokens["plant"]  # no episode is under way
    head = b"%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n" % (method, path, host.encode(), token.encode())
    if path == b"/v1/begin" and body.startswith(b'{"ask_id"'):
        body = b'{"start": "nowhere"}'
    elif path == b"/v1/ask" and body == b"{}":
        body = b"[]"
    return head + b"Connection: close\r\nContent-Length: %s\r\n\r\n%s" % (length or str(len(body)).encode(), body)


def test_hundreds_of_malformed_requests(server: Served, seed: int) -> None:
    """4xx with a reason, never a 500; the study is as it was, and the server's memory too."""
    rng, before = np.random.default_rng(seed), records_of(server.path)
    counts: dict[int, int] = {}
    memory = 0.0
    for n in range(400):
        if n == 120:
            memory = server.memory()
        request = rubbish(rng, server)
        try:
            reply = raw(server, request)
        except ConnectionResetError:  # it would not read on, and had answered
            continue
        if not reply:
            continue
        status = int(reply.split(b" ", 2)[1])
        counts[status] = counts.get(status, 0) + 1
        assert 400 <= status < 500, (request[:300], reply[:300])
        body = reply.partition(b"\r\n\r\n")[2]
        assert body.strip(), (request[:300], reply[:300])
    assert {400, 401, 404, 405, 409, 413, 421, 422} <= set(counts)
    assert sum(counts.values()) > 280
    assert records_of(server.path) == before
    assert server.memory() < memory + 30
    assert server.caller("plant").status()["next"] == "begin"


# --- the description and the rest -----------------------------------------------------------------------


def test_the_description_has_every_call_and_no_other(server: Served) -> None:
    found = server.caller("plant").get("/openapi.json").json()
    assert found == json.loads(json.dumps(description()))
    assert {path for path in found["paths"] if "post" in found["paths"][path]} == {f"/v1/{name}" for name in CALLS}
    for path, methods in found["paths"].items():  # each argument of the description is taken
        for name in (
            methods.get("post", {})
            .get("requestBody", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema", {})
            .get("properties", {})
        ):
            role = "operator" if path.endswith("acknowledge") else "plant"
            reply = server.caller(role).post(path.removeprefix("/v1/"), **{name: None, "no such argument": 1})
            assert "no such argument" in reply.json()["error"], (path, name, reply.text)


def test_tokens_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / TOKENS).write_text(
        '{"format": "surefoot-tokens", "version": 1, "sha256": {"plant": "x", "operator": "y"}}'
    )
    with pytest.raises(UnreadableFile, match="new-tokens"):
        tokens_of(tmp_path)
    known, made = tokens_of(tmp_path, new=True)
    assert [known.role_of(made[role]) for role in ("plant", "operator")] == ["plant", "operator"]
    assert known.role_of(made["plant"][:-1]) is None
    again, nothing = tokens_of(tmp_path)
    assert (again.role_of(made["operator"]), nothing) == ("operator", {})


def test_a_port_or_a_study_that_is_taken(server: Served, tmp_path: Path) -> None:
    from surefoot.serve.server import serve

    with pytest.raises(InvalidInput, match="cannot listen there"):
        serve(tmp_path, port=server.port)
    with pytest.raises(OutOfOrder, match="the study is open already"):
        serve(server.path, port=0)
    with pytest.raises(InvalidInput, match="no study here"):
        serve(tmp_path / "nothing", port=0)


def test_labels_stay_text(tmp_path: Path) -> None:
    """In every part of the page, whatever a problem, a plant or an operator is called."""
    from surefoot.reports.study_page import write_study_page

    hostile = "</script><img src=x onerror=alert(1)>"

    def name(label: Any) -> Any:
        return f"{label}{hostile}"

    problem = sf.Problem.from_functions(
        horizon=3,
        start=name("s"),
        actions=lambda h, s: [name("stay"), name("go")],
        successors=lambda h, s, a: [name("s")] if a == name("stay") else [name("s"), name("t")],
        reward=lambda h, s, a: 0.1,
        cost_features=lambda h, s, a, s2: [1.0, float(s2 == name("t"))],
        transition_features=lambda h, s, a, s2: [1.0 if a == name("stay") else 0.5],
        fallback=lambda h, s: name("stay"),
        limits=[sf.Limit(name("heat"), bound=0.6, noise=0.05, norm=0.8)],
    )
    with sf.Study.open(tmp_path / "s", problem) as study:
        study.begin()
        offer = study.ask()
        study.tell(offer.ask_id, name("elsewhere"), 0.1)
        page = write_study_page(tmp_path / "s").read_text("utf-8")
        study.acknowledge(name("mended"), discard_data=True)
        study.begin()
        study.ask()
        study.abort(name("enough"))
        later = write_study_page(tmp_path / "s").read_text("utf-8")
    for text in (page, later):
        assert "<img" not in text
        assert text.count("</script>") == 2  # the page's own
