"""What the command line takes, and a clear line for every mistake."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import cli
from surefoot.cli import options, run_options
from surefoot.errors import InvalidInput
from surefoot.sweeps import sweep
from surefoot.sweeps.sweep import Contender
from tests.commanded import Surefoot, failing, refused
from tests.sweeps import WORLD

# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("words", [["frobnicate"], ["worlds", "--nope"], ["run", WORLD, "--episodes", "0"], ["show"]])
def test_usage_errors_have_code_2(words: list[str], surefoot: Surefoot) -> None:
    ended = surefoot(*words)
    assert ended.code == 2
    assert "Usage: surefoot" in ended.err


def test_an_unexpected_error_is_one_line(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.worlds.names", failing(ZeroDivisionError("oh")))
    ended = surefoot("worlds")
    refused(ended, "internal error: ZeroDivisionError: oh", "--debug", code=70)


@pytest.mark.parametrize("place", [0, 1])
def test_debug_shows_the_traceback(place: int, surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check", "nowhere/at-all"]
    words.insert(2 * place, "--debug")
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(InvalidInput, match="no such world"):
        cli.main()


def test_an_error_of_the_system_is_one_line(surefoot: Surefoot) -> None:
    refused(surefoot("check", "nowhere.json"), "No such file or directory", "nowhere.json")


@pytest.mark.parametrize(
    "words",
    [
        ["show", "thermal/smll"],
        ["check", "thermal/smll"],
        ["run", "thermal/smll"],
        ["theory", "thermal/smll"],
        ["ablate", "thermal/smll"],
        ["config", "thermal/smll"],
        ["demo", "--world", "thermal/smll"],
    ],
)
def test_an_unknown_world_with_the_nearest_names(words: list[str], surefoot: Surefoot, tmp_path: Path) -> None:
    refused(surefoot(*words), "no such world: 'thermal/smll'", "Did you mean thermal/small")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["run", WORLD, "--agent", "lsvi"], ["config", WORLD, "--agent", "lsvi"]])
def test_an_unknown_agent_with_the_nearest_names(words: list[str], surefoot: Surefoot, tmp_path: Path) -> None:
    refused(surefoot(*words), "no such agent: 'lsvi'", "Did you mean", "lsvi-new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--option", "replan_grow=0.2"], ["lsvi-new has no option 'replan_grow'", "Did you mean replan_growth"]),
        (["--option", "lsvi-new.replan_grow=0.2"], ["lsvi-new has no option 'replan_grow'"]),
        (["--option", "other.replan_growth=0.2"], ["no such agent in this run: 'other.replan_growth'"]),
        (["--option", "replan_growth"], ["--option takes NAME=VALUE: 'replan_growth'"]),
        (["--option", "slack=1", "--option", "slack=2"], ["--option names 'slack' twice"]),
        (["--option", "explore=0.1"], ["explore of lsvi-new must be a list of numbers: 0.1"]),
        (["--option", "explore=[1, 2"], ["explore of lsvi-new must be a list of numbers: '[1, 2'"]),
        (["--option", "literal_future=maybe"], ["literal_future of lsvi-new must be true or false: 'maybe'"]),
        (["--option", "failure_probability=2"], ["failure_probability must be below 1: 2"]),
        (["--agent", "lsvi-new-paper", "--option", "episodes=0"], ["episodes must be a whole number, at least 1: 0"]),
        (["--world-option", "bond=1"], [f"{WORLD} has no option 'bond'", "Did you mean bound"]),
        (["--world-option", "bound=[1]"], [f"bound of {WORLD} must be a number: [1]"]),
        (["--seeds", "5:3"], ["seeds are first:end, a number, or several separated by commas: '5:3'"]),
        (["--seeds", "x"], ["seeds are first:end"]),
        (["--seeds", "0:99999999"], ["too many seeds"]),
        (["--seeds", "1,1"], ["a seed is given twice: 1"]),
        (["--agent", "fallback", "--agent", "fallback"], ["a label is given twice: fallback", "LABEL=AGENT"]),
        (["--agent", "a/b=fallback"], ["a label cannot name a folder: 'a/b'"]),
        (["--config", "nowhere.toml"], ["the file cannot be read: nowhere.toml"]),
    ],
)
def test_bad_options_of_a_run(words: list[str], said: list[str], surefoot: Surefoot, tmp_path: Path) -> None:
    refused(surefoot("run", WORLD, "--out", "out", *words), *said)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_world(surefoot: Surefoot) -> None:
    refused(surefoot("run"), "no world is named")


# ---------------------------------------------------------------- configuration


def test_what_a_shell_completes() -> None:
    assert options.world_names("therm") == ["thermal/testing", "thermal/small", "thermal/medium"]
    assert options.agent_names("sl") == ["slucb-qvi"]
    assert options.agent_names("or") == ["oracle-shield"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("world = ", ["not valid TOML: run.toml", "at end of document"]),
        ("world = \nepisodes = 3", ["not valid TOML: run.toml", "line 1, column 9"]),
        ('world = "x"\n\nworld = "y"\n', ["not valid TOML: run.toml", "line 3"]),
        ("\x00", ["not valid TOML"]),
        (f'world = "{WORLD}"\nepisode = 3\n', ["unknown key: run.toml, line 2: 'episode'", "Did you mean episodes"]),
        (f'world = "{WORLD}"\nepisodes = "many"\n', ["episodes must be a whole number: run.toml, line 2: 'many'"]),
        ("episodes = true", ["episodes must be a whole number: run.toml, line 1: True"]),
        ("seeds = [0, -1]", ["each seed must be a whole number, at least 0: run.toml, line 1"]),
        ('seeds = "3:1"', ["seeds are first:end", "run.toml, line 1"]),
        ("strict = 1", ["strict must be true or false: run.toml, line 1: 1"]),
        ("agents = 3", ["agents must be a table of tables: run.toml, line 1: 3"]),
        ("[agents]\nlsvi-new = 3", ["an agent is a table: run.toml", "Write [agents.lsvi-new]"]),
        ("# a\n[agents.lsvi]\n", ["no such agent: run.toml, line 2: 'lsvi'", "lsvi-new"]),
        ('[agents.mine]\nagent = "lsvi"\n', ["no such agent: run.toml, line 1: 'lsvi'"]),
        ("[agents.mine]\nagent = []\n", ["no such agent: run.toml, line 1: []"]),
        ("[agents.lsvi-new]\n\nridge = 3\n", ["no option 'ridge': run.toml, line 3", "Did you mean ridges"]),
        ("[agents.lsvi-new]\nridges = 3\n", ["ridges of lsvi-new must be a list of numbers: run.toml, line 2: 3"]),
        (f'world = "{WORLD}"\n[world_options]\nbond = 1\n', ["no option 'bond'", "Did you mean bound"]),
    ],
)
def test_a_bad_configuration(text: str, said: list[str], surefoot: Surefoot, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(text)
    refused(surefoot("run", "--config", "run.toml", "--out", "out"), *said)
    assert not (tmp_path / "out").exists()


def test_bytes_that_are_no_text(surefoot: Surefoot, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"world = '\xff'")
    refused(surefoot("run", "--config", "run.toml"), "not UTF-8 text: run.toml")


@pytest.mark.parametrize("agents", [["lsvi-new"], list(sf.agents.names())])
def test_the_template_is_a_configuration(agents: list[str], surefoot: Surefoot, tmp_path: Path) -> None:
    ended = surefoot("config", WORLD, *(word for name in agents for word in ("--agent", name)))
    assert ended.code == 0
    document = tomllib.loads(ended.out)
    assert document["world"] == WORLD
    assert list(document["agents"]) == agents
    assert not re.search(r">>>|# +problem:", ended.out)  # of a docstring, the options alone
    (tmp_path / "run.toml").write_text(ended.out, encoding="utf-8")
    found = run_options.read_config(tmp_path / "run.toml")
    assert found.spec() == sweep.Spec(WORLD, tuple(Contender(a, {}, a) for a in agents), (0, 1, 2), 20_000)
    for line in ("# failure_probability = 0.05", "# replan_growth = 0.1") if "lsvi-new" in agents else ():
        assert line in ended.out
        uncommented = ended.out.replace(line, line.removeprefix("# "), 1)
        tomllib.loads(uncommented)


def test_options_take_precedence_over_the_file(surefoot: Surefoot, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        f'world = "{WORLD}"\nepisodes = 7\nseeds = [2]\nout = "there"\n[world_options]\nbound = 0.62\nhorizon = 5\n'
        '[agents.plain]\nagent = "lsvi-new"\nslack = 0.4\n[agents.fallback]\n'
    )
    ended = surefoot(
        "run",
        "--config",
        "run.toml",
        "--jobs",
        1,
        "--episodes",
        9,
        "--world-option",
        "bound=0.63",
        "--option",
        "slack=0.5",
    )
    assert ended.code == 0, ended
    manifest = json.loads((tmp_path / "there/sweep.json").read_text(encoding="utf-8"))
    assert (manifest["episodes"], manifest["seeds"]) == (9, [2])
    assert manifest["world"]["options"] == {"bound": 0.63, "horizon": 5}
    assert manifest["agents"] == [
        {"label": "plain", "agent": "lsvi-new", "options": {"slack": 0.5}},
        {"label": "fallback", "agent": "fallback", "options": {}},
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("[0.1, 2]", [0.1, 2]),
        ("'a b'", "a b"),
        ("paper", "paper"),
        ("I II", "I II"),
        ("", ""),
        ("1\nx = 2", "1\nx = 2"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_values_are_toml_or_json_or_words(text: str, value: object) -> None:
    assert options.value_of(text) == value


def test_seeds() -> None:
    assert run_options.seeds_of("0:3") == (0, 1, 2)
    assert run_options.seeds_of("7") == (7,)
    assert run_options.seeds_of("0:2, 9") == (0, 1, 9)


def test_settings_go_to_those_who_take_them() -> None:
    found = run_options.contenders_of(["lsvi-new", "b=lsvi-new", "b.c=ucrl-vtr", "fallback"])
    given = {"failure_probability": 0.1, "b.slack": 1.0, "b.c.optimism": 2.0, "explore": [0, 0, 0]}
    assert [dict(each.options) for each in run_options.with_options(found, given)] == [
        {"failure_probability": 0.1, "explore": [0, 0, 0]},
        {"failure_probability": 0.1, "slack": 1.0, "explore": [0, 0, 0]},
        {"failure_probability": 0.1, "optimism": 2.0},
        {},
    ]
