"""``surefoot study``: JSON in and out, a line per error, and a plant in another language."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.audits.audit import Unreadable, audit
from surefoot.cli import main
from surefoot.compiling import WORDS
from surefoot.errors import SurefootError
from surefoot.study import protocol
from tests.studies import Calm, Plant, Quick, go_on, kettle, lines_of, records_of

SUREFOOT = [sys.executable, "-c", "from surefoot.cli import main; main()"]
EXAMPLES = Path(__file__).parents[2] / "examples"


class Cli:
    """Runs commands in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "plant.study"
        self.problem = kettle().problem.save(folder / "kettle.json")
        self._patch, self._out = monkeypatch, capsys

    def __call__(self, command: str, *words: str, stdin: Any = None) -> dict[str, Any]:
        """The object that a command prints."""
        code, out, err = self.run(command, *words, stdin=stdin)
        assert code == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    def refused(self, command: str, *words: str, stdin: Any = None) -> str:
        code, out, err = self.run(command, *words, stdin=stdin)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        return err

    def run(self, command: str, *words: str, stdin: Any = None) -> tuple[int, str, str]:
        text = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        self._patch.setattr(sys, "argv", ["surefoot", "study", command, str(self.path), *words])
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = self._out.readouterr()
        err = err.replace(f"{WORDS}\n", "")  # on a machine where nothing is compiled yet
        return int(left.value.code or 0), out, err


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def test_the_papers_learner_by_command(cli: Cli) -> None:
    words = ("new", "--problem", str(cli.problem), "--agent", "lsvi-new-paper")
    assert "not options of the agent" in cli.refused(*words)
    assert "need an anchor at every step" in cli.refused(*words, "--option", "episodes=10")
    assert "a study needs a learner that plays certified actions" in cli.refused(*words[:-1], "slucb-qvi")


def test_an_episode_by_commands_alone(cli: Cli, tmp_path: Path) -> None:
    made = cli("new", "--problem", str(cli.problem), "--failure-probability", "0.1", "--option", "optimism=0.5")
    assert (made["next"], made["failure_probability"], made["agent"]) == ("begin", 0.1, "lsvi-new")
    assert cli("begin", "--start", '"cold"') == {"episode": 1, "next": "ask"}
    offer = cli("ask")
    assert offer["next"] == "tell"
    assert offer["certificate"]["failure_probability"] == 0.1
    assert cli("ask") == offer
    told = {"ask_id": offer["ask_id"], "next_state": ["warm", 1], "cost": 0.2, "action_applied": "heat"}
    assert cli("tell", stdin=told)["next"] == "ask"
    assert cli("tell", stdin=told)["repeated"] is True
    offer = cli("ask")
    told = {"ask_id": offer["ask_id"], "next_state": ["warm", 1], "cost": [0.3], "action_applied": "heat"}
    assert cli("tell", stdin=told)["next"] == "tell_terminal"
    assert cli("tell-terminal", stdin={"cost": 0.15, "episode": 1})["done"] is True
    assert cli("tell-terminal", stdin={"cost": 0.15, "episode": 1})["repeated"] is True
    cli("begin", "--start", '"s"')
    assert cli("abort", "--reason", "lunch") == {"next": "begin"}
    assert records_of(cli.path)[-1]["reason"] == "lunch"
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.125}\n')
    assert cli("import", str(log))["rows"] == 1
    log.write_text('{"step": 1, "state": "s", "action": "wait", "next_state": "s", "cost": 0.125, "episode": 1}\n')
    assert "cannot be told from others" in cli.refused("import", str(log))
    assert cli("import", str(log), "--different", "a coarse sensor")["repeated"] == 1
    assert cli("status", "--json")["cost_rows"] == [2, 2, 1]
    policy = cli("policy")
    assert policy["format"] == "surefoot-policy"
    assert cli("policy", "--out", str(tmp_path / "policy.py")) == {"path": str(tmp_path / "policy.py")}


def test_an_alarm_by_commands(cli: Cli) -> None:
    cli("new", "--problem", str(cli.problem))
    cli("begin", "--start", '"s"')
    offer = cli("ask")
    receipt = cli("tell", stdin=b'{"ask_id": "%s", "next_state": "s", "cost": NaN}' % offer["ask_id"].encode())
    assert receipt["safe_mode"] is True
    assert "not finite" in receipt["alarm"]
    cli("abort")
    assert "give the reason" in cli.refused("acknowledge", "--reason", " ")
    assert cli("acknowledge", "--reason", "a loose wire", "--discard-data")["next"] == "begin"
    assert cli("status", "--json")["epoch"] == 1


def test_an_alarm_is_answered_by_commands(cli: Cli, tmp_path: Path) -> None:
    cli("new", "--problem", str(cli.problem))

    def raised(after: str, cost: float) -> None:
        cli("begin", "--start", '"s"')
        offer = cli("ask")
        told = {"ask_id": offer["ask_id"], "next_state": after, "cost": cost, "action_applied": "heat"}
        told = told if after == "cold" else {**told, "action_applied": "wait"}
        assert cli("tell", stdin=json.dumps(told).encode())["alarm"]
        if cli("status", "--json")["next"] == "ask":
            cli("abort")

    raised("s", 0.9)
    assert "noise of at least" in cli.refused("acknowledge", "--reason", "seen")
    assert "NAME=NUMBER" in cli.refused("acknowledge", "--reason", "seen", "--noise", "0.5")
    cli("acknowledge", "--reason", "a worse sensor", "--noise", "limit 0=0.5")
    assert cli("status", "--json")["restored"]["by"] == ["larger noise"]
    raised("cold", 0.2)
    wider = kettle(wider=True).problem
    limits = (replace(wider.limits[0], noise=0.5),)
    file = replace(wider, limits=limits).save(tmp_path / "wider.json")
    assert "cannot be read" in cli.refused("acknowledge", "--reason", "x", "--problem", str(tmp_path / "none.json"))
    cli("acknowledge", "--reason", "it may stay cold", "--problem", str(file))
    assert cli("status", "--json")["restored"]["by"] == ["wider support"]
    raised("elsewhere", 0.1)
    assert "only when data are discarded" in cli.refused("acknowledge", "--reason", "x", "--trust-anchors")
    cli("acknowledge", "--reason", "a slip", "--discard-data", "--trust-anchors")
    assert cli("status", "--json")["restored"]["by"] == ["data discarded"]


def test_refusals_are_one_line_and_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    assert "no study here yet" in cli.refused("ask")
    assert "no study here" in cli.refused("status")
    assert "lsvi-new has no option 'wit'" in cli.refused("new", "--problem", str(cli.problem), "--option", "wit=3")
    assert "NAME=VALUE" in cli.refused("new", "--problem", str(cli.problem), "--option", "wit")
    assert "optimism" in cli.refused("new", "--problem", str(cli.problem), "--option", "optimism=high")
    cli("new", "--problem", str(cli.problem))
    assert "the folder already holds a study" in cli.refused("new", "--problem", str(cli.problem))
    assert "no episode is under way" in cli.refused("ask")
    assert "takes JSON" in cli.refused("begin", "--start", "cold")
    assert "no such state" in cli.refused("begin", "--start", '"lukewarm"')
    cli("begin", "--start", '"cold"')
    offer = cli("ask")
    for stdin, fault in (
        (b"", "not JSON"),
        (b"{", "not JSON"),
        ([], "a JSON object"),
        ({}, "tell needs 'ask_id'"),
        ({"ask_id": offer["ask_id"], "next_state": "s"}, "tell needs 'cost'"),
        ({"ask_id": offer["ask_id"], "next_state": "s", "cost": 0.1, "colour": "red"}, "does not take this: 'colour'"),
        ({"ask_id": "?", "next_state": "s", "cost": 0.1}, "not an ask id"),
        ({"ask_id": offer["ask_id"], "next_state": {}, "cost": 0.1}, "label cannot be used"),
        (b'{"cost": 1, "cost": 2}', "an entry occurs twice"),
    ):
        assert fault in cli.refused("tell", stdin=stdin)
    assert cli("ask") == offer


def test_what_was_mended_is_said_on_stderr(cli: Cli) -> None:
    cli("new", "--problem", str(cli.problem))
    with (cli.path / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"n":1,"time":"20')
    code, out, err = cli.run("begin", "--start", '"s"')
    assert (code, json.loads(out)["episode"]) == (0, 1)
    assert "a torn tail was cut: record 1" in err


def test_serve_answers_line_by_line(tmp_path: Path) -> None:
    study = sf.Study.open(tmp_path / "study", kettle().problem, files=Quick(), monitor_factory=Calm)
    requests = [
        {"call": "begin", "start": "s", "id": 7},
        {"call": "ask"},
        {"call": "dance"},
        {"call": "tell", "ask_id": "2-00000000", "next_state": "s", "cost": None},
        {"call": "status"},
        {"call": "abort", "reason": 3},
        {"call": "abort"},
        {"call": "tell_terminal", "cost": 1, "episode": "last"},
        {"call": "acknowledge", "reason": "x", "discard_data": "yes"},
        {"call": "export_policy", "path": str(tmp_path / "policy.json")},
        {"call": "export_policy", "path": 3, "id": float("nan")},
        {"call": "import_log", "path": "a\0b"},
    ]
    out = io.StringIO()
    protocol.answer_all(study, io.BytesIO(b"\n".join(json.dumps(r).encode() for r in requests)), out)
    replies = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(replies) == len(requests)
    assert replies[0] == {"episode": 1, "next": "ask", "id": 7}
    assert [("error" in reply) for reply in replies] == [
        False,
        False,
        True,
        True,
        False,
        True,
        False,
        *[True] * 2,
        False,
        *[True] * 2,
    ]
    assert replies[2]["kind"] == "InvalidInput"
    assert replies[10]["id"] == "NaN"
    assert (tmp_path / "policy.json").exists()


def serving(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*SUREFOOT, "study", "pipe", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def say(server: subprocess.Popen[bytes], **request: Any) -> dict[str, Any]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request).encode() + b"\n")
    server.stdin.flush()
    found: dict[str, Any] = json.loads(server.stdout.readline())
    return found


def test_a_server_that_is_killed_is_started_again_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "study"
    sf.Study.open(path, kettle().problem).close()
    with serving(path) as server:
        say(server, call="begin", start="s")
        offer = say(server, call="ask")
        os.kill(server.pid, signal.SIGKILL)
    with serving(path) as server:
        assert say(server, call="ask") == offer
        assert say(server, call="tell", ask_id=offer["ask_id"], next_state="s", cost=0.1)["next"] == "ask"
        reader = sf.Study.open(path, read_only=True)  # while it runs
        assert reader.status()["tells"] == 1
        with pytest.raises(sf.errors.OutOfOrder, match=f"open already.*: process {server.pid}"):
            sf.Study.open(path)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(60) == 0
    with sf.Study.open(path) as study:
        assert study.recovered == ()
        go_on(study, Plant(kettle(), 0), 1)


if shutil.which("node"):  # a skipped test would be a failure, and not every machine has node

    def test_a_plant_in_another_language_drives_a_study(tmp_path: Path) -> None:
        caller = tmp_path / "surefoot"
        caller.write_text(f"#!{sys.executable}\nfrom surefoot.cli import main\nmain()\n")
        caller.chmod(0o755)
        plant = ["node", str(EXAMPLES / "other_language" / "plant.mjs"), str(tmp_path / "oven.study"), "12", "3"]
        for part in (1, 2):
            done = subprocess.run(plant, env={**os.environ, "SUREFOOT": str(caller)}, capture_output=True, timeout=300)
            assert done.returncode == 0, done.stderr
            assert b"60 steps" in done.stdout
            assert b"limit kept" in done.stdout
            kinds = [r["kind"] for r in records_of(tmp_path / "oven.study")]
            assert (kinds.count("begin"), kinds.count("tell")) == (12 * part, 60 * part)


def test_the_problem_of_the_other_language_is_what_its_maker_makes(tmp_path: Path) -> None:
    import runpy

    made = runpy.run_path(str(EXAMPLES / "other_language" / "make_problem.py"))["oven"]
    assert made.digest == sf.Problem.load(EXAMPLES / "other_language" / "oven.json").digest


def test_the_example_in_python_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    example = runpy.run_path(str(EXAMPLES / "ask_tell.py"))
    folder = tmp_path / "thermal.study"
    example["main"](folder, 2)
    with sf.Study.open(folder) as study:
        study.begin()
        study.ask()
    example["main"](folder, 2)
    assert "5 episodes" in capsys.readouterr().out
    assert len(lines_of(folder)) == 1 + 5 * 15


def test_paths_that_lead_nowhere_are_answered(tmp_path: Path) -> None:
    """Half a character, links in a circle, a file in the way: an error each, and the server goes on."""
    study = sf.Study.open(tmp_path / "study", kettle().problem, files=Quick(), monitor_factory=Calm)
    for suffix in ("csv", "jsonl", "parquet", "json", "py"):
        (tmp_path / f"loop.{suffix}").symlink_to(tmp_path / f"loop.{suffix}")
    (tmp_path / "around").symlink_to(tmp_path / "around")
    (tmp_path / "file").touch()
    places = ["loop.{}", "around/a.{}", "file/a.{}", "half \ud800.{}", "n\0l.{}", "x" * 300 + ".{}", "missing/a.{}"]
    requests = [
        {"call": call, "path": f"{tmp_path}/{place.format(suffix)}"}
        for call, kinds in (("import_log", ("csv", "jsonl", "parquet")), ("export_policy", ("json", "py")))
        for place in places
        for suffix in kinds
    ]
    out = io.StringIO()
    protocol.answer_all(study, io.BytesIO(b"\n".join(json.dumps(r).encode() for r in requests)), out)
    replies = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all("error" in reply for reply in replies)
    assert len(replies) == len(requests)
    assert study.standing.applied == 1


@pytest.mark.parametrize("place", ["around", "around/deeper", "half \ud800", "n\0l", "file/a"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_study_cannot_be_where_no_folder_can_be(tmp_path: Path, place: str, read_only: bool) -> None:
    (tmp_path / "around").symlink_to(tmp_path / "around")
    (tmp_path / "file").touch()
    with pytest.raises(SurefootError):
        sf.Study.open(tmp_path / place, kettle().problem, read_only=read_only)
    with pytest.raises(Unreadable):
        audit(tmp_path / place)
