"""The exported policy: what it says, and that it needs no surefoot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnreadableFile, UnwritableFile
from surefoot.plan.policy_document import load_policy, save_policy
from surefoot.study.exporting import document
from tests.saved_problems import labelled
from tests.studies import Calm, Plant, Quick, go_on, kettle


@pytest.fixture
def study(tmp_path: Path) -> sf.Study:
    made = sf.Study.open(tmp_path / "plant.study", kettle().problem, files=Quick(), monitor_factory=Calm)
    go_on(made, Plant(kettle(), 0), 100)
    return made


def elsewhere(folder: Path, program: str) -> Any:
    """Run a program where surefoot cannot be imported; it prints JSON."""
    blocked = "import sys; sys.modules['surefoot'] = None; sys.path.insert(0, '.')\n"
    done = subprocess.run([sys.executable, "-I", "-c", blocked + program], cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_json_says_for_every_state_what_the_plan_says(study: sf.Study, tmp_path: Path) -> None:
    assert study.export_policy(tmp_path / "policy.json") == tmp_path / "policy.json"
    policy = json.loads((tmp_path / "policy.json").read_text())
    problem, plan = study.problem, study.standing.agent.plan
    assert (policy["format"], policy["version"], policy["problem"]) == ("surefoot-policy", 3, problem.digest)
    assert (policy["plan"], policy["source"]["epoch"], policy["safe_mode"]) == (plan.number, 0, False)
    assert policy["limits"] == [{"name": "limit 0", "bound": 0.5}]
    assert len(policy["steps"]) == 2
    for h, layer in enumerate(policy["steps"]):
        named = {json.dumps(entry["state"]): entry for entry in layer}
        for state in [problem.states(h)[i] for i in range(len(problem.states(h)))]:
            entry = named.pop(json.dumps(state), None)
            if not plan.safe(h, state):
                assert entry is None
                continue
            assert entry is not None
            assert entry["action"] == plan.action(h, state)
            assert entry["value"] is None  # nobody knows the truth of a plant
            assert entry["value_low"] <= entry["value_high"] <= plan.value(h, state) + 1e-12
            assert entry["certified"] is True
            assert entry["fallback"] == (entry["action"] == problem.fallback_action(h, state))
            uppers = [plan.upper(h, state, entry["action"], t) for t in problem.successors(h, state, entry["action"])]
            assert entry["margin"] == [min(0.5 - float(u[0]) for u in uppers)]
        assert not named


def test_python_needs_nothing(study: sf.Study, tmp_path: Path) -> None:
    study.export_policy(tmp_path / "policy.py")
    plan = study.standing.agent.plan
    found = elsewhere(
        tmp_path,
        """
import json, policy
def ask(*where):
    try:
        return policy.action(*where)
    except KeyError:
        return "KeyError"
print(json.dumps([ask(0, "s"), ask(1, ("warm", 1)), ask(0, "nowhere"), ask(7, "s"), ask(-1, "s"), policy.PROBLEM]))
""",
    )
    assert found[:2] == [plan.action(0, "s"), plan.action(1, ("warm", 1))]
    assert found[2:] == ["KeyError", "KeyError", "KeyError", study.problem.digest]


def test_labels_of_every_kind_survive(tmp_path: Path) -> None:
    study = sf.Study.open(tmp_path / "study", labelled(), files=Quick(), monitor_factory=Calm, despite="labels")
    study.export_policy(tmp_path / "policy.py")
    namespace: dict[str, Any] = {}
    exec((tmp_path / "policy.py").read_text(), namespace)  # our own file, in a test
    plan = study.standing.agent.plan
    for h in range(4):
        names = study.problem.states(h)
        for state in [names[i] for i in range(len(names))]:
            if plan.safe(h, state):
                assert namespace["action"](h, state) == plan.action(h, state)


def test_in_safe_mode_the_fallback_alone_is_exported(study: sf.Study, tmp_path: Path) -> None:
    study.begin("s")
    study.tell(study.ask().ask_id, "nowhere", None)
    study.export_policy(tmp_path / "policy.json")
    policy = json.loads((tmp_path / "policy.json").read_text())
    assert policy["safe_mode"] is True
    assert {entry["action"] for layer in policy["steps"] for entry in layer} == {"wait"}
    assert all(entry["fallback"] for layer in policy["steps"] for entry in layer)


def test_a_policy_that_depends_on_the_start_asks_for_it(tmp_path: Path) -> None:
    from surefoot import worlds

    world = worlds.make("thermal/testing")
    options: dict[str, Any] = {"files": Quick(), "monitor_factory": Calm}
    one = sf.Study.open(tmp_path / "one", world.problem, **options)
    one.export_policy(tmp_path / "a.json", start=0)
    one.export_policy(tmp_path / "b.json")
    a, b = (json.loads((tmp_path / name).read_text())["steps"] for name in ("a.json", "b.json"))
    assert a == b


def test_it_is_the_document_that_a_run_ends_with(study: sf.Study, tmp_path: Path) -> None:
    """One format: what a study exports and what a run writes have the same entries, and one reader takes both."""
    study.export_policy(tmp_path / "policy.json")
    world = kettle()
    sf.run(sf.LsviNew(world.problem), world, 20, 0).export(tmp_path / "run.json")
    ours, theirs = load_policy(tmp_path / "policy.json"), load_policy(tmp_path / "run.json")
    assert ours == document(study.standing)
    assert list(ours) == list(theirs)
    assert (ours["source"]["kind"], theirs["source"]["kind"]) == ("study", "run")
    assert {tuple(entry) for each in (ours, theirs) for step in each["steps"] for entry in step} == {
        ("state", "action", "value", "value_low", "value_high", "margin", "certified", "fallback")
    }
    again = dict(ours)
    save_policy(tmp_path / "again.json", again, again.pop("steps"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "policy.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "written by an older version: .*version 2.*export it again"),
        ({"version": 5}, "written by a newer version: .*version 5.*Upgrade"),
        ({"format": "surefoot-problem"}, "not a policy"),
        ({"layers": []}, "unknown entry.*layers"),
        ({"source": {"kind": "dream"}}, "run or study"),
        ({"guaranteed": "yes"}, "true or false"),
        ({"steps": [[{"state": "s"}]]}, r"steps\[0\]\[0\].*no 'action'"),
    ],
)
def test_what_is_not_such_a_document_is_refused(
    change: dict[str, Any], words: str, study: sf.Study, tmp_path: Path
) -> None:
    (tmp_path / "p.json").write_text(json.dumps({**document(study.standing), **change}))
    with pytest.raises(UnreadableFile, match=words):
        load_policy(tmp_path / "p.json")


def test_two_actions_for_one_state_are_refused(study: sf.Study, tmp_path: Path) -> None:
    found = document(study.standing)
    found["steps"][0].append({**found["steps"][0][0], "action": "heat"})
    (tmp_path / "p.json").write_text(json.dumps(found))
    with pytest.raises(UnreadableFile, match="a state is there twice"):
        load_policy(tmp_path / "p.json")


def test_nothing_that_a_document_says_becomes_code(study: sf.Study, tmp_path: Path) -> None:
    """The texts of a stranger's file stay texts in the Python module that is made of it."""
    bad = '""" + str(1 / 0) #'
    found = {**document(study.standing), "promise": bad, "agent": bad, "problem": bad}
    (tmp_path / "p.json").write_text(json.dumps(found))
    head = load_policy(tmp_path / "p.json")
    save_policy(tmp_path / "policy.py", head, head.pop("steps"))
    namespace: dict[str, Any] = {}
    exec((tmp_path / "policy.py").read_text(), namespace)
    assert (namespace["PROMISE"], namespace["PROBLEM"], namespace["PLAN"]["agent"]) == (bad, bad, bad)
    assert namespace["action"](1, ("warm", 1)) == study.standing.agent.plan.action(1, ("warm", 1))


def test_where_it_cannot_be_written(study: sf.Study, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\.json or \.py"):
        study.export_policy(tmp_path / "policy.xml")
    with pytest.raises(UnwritableFile, match="could not be written"):
        study.export_policy(tmp_path / "missing" / "policy.json")
