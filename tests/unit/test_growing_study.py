"""Studies of problems that grow: what is on disk suffices to go on and to audit, and nothing else passes for growth."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from tests.forgery import forge
from tests.unit.test_growing import walk

GAMMA = (0.2, 0.2, 0.25)


def rays(**changed: Any) -> sf.Problem:
    """The same with every action a ray from waiting, and a cost row per triplet."""
    costs = {"cost_features": lambda h, s, a, s2: [1.0, s / 5, 0.7 * (a == "jump")]}
    return walk(center=lambda h, s: "wait", **{**costs, **changed})


def play(study: sf.Study, episodes: int, rng: np.random.Generator) -> None:
    """Episodes on the true plant; no step breaks the limit."""
    for _ in range(episodes):
        with study.episode() as episode:
            while not episode.done:
                offer = episode.ask()
                after = study.problem.successors(offer.step, offer.state, offer.action)
                x = (1.0, offer.state / 5, 0.7 * offer.intensity * (offer.action == "jump"))
                cost = float(np.dot(GAMMA, x))
                assert cost <= 0.6
                episode.tell(after[rng.integers(len(after))], cost + 0.05 * rng.normal())


def grown_study(folder: Path, seed: int, episodes: int = 12, make: Any = walk) -> Path:
    path = folder / "walk.study"
    with sf.Study.open(path, make(), snapshot_every=30) as study:
        play(study, episodes, np.random.default_rng(seed))
    return path


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (path / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("make", [walk, rays])
def test_a_study_goes_on_from_its_files_alone_and_grows_again_with_its_functions(
    make: Any, tmp_path: Path, seed: int
) -> None:
    path = grown_study(tmp_path, seed, make=make)
    assert kinds(path)[1] == "grow"  # what is certified before any data is expanded before the first episode
    rng = np.random.default_rng([seed, 1])
    with sf.Study.open(path) as study:
        before = study.status()
        play(study, 2, rng)
        assert study.problem.growth is None
    assert kinds(path).count("grow") == kinds(path)[:-30].count("grow")
    for snapshot in (path / "snapshots").iterdir():
        snapshot.unlink()
    with sf.Study.open(path, make()) as study:  # replayed from the first record
        assert study.status()["certified_pairs"] >= before["certified_pairs"]
        assert study.problem.growth is not None
        play(study, 12, rng)
        after = study.status()
    with sf.Study.open(path) as study:
        again = study.status()
        assert {key: again[key] for key in again if key != "recovered"} == {
            key: after[key] for key in after if key != "recovered"
        }
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["grow"] == kinds(path).count("grow") >= 2
    assert report.counts["offers by estimate"] > 0


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        (walk, lambda p: p["layers"][2]["forbidden"].__setitem__(0, False), "not forbidden"),
        (walk, lambda p: p["limits"][0].update(noise=0.01), "other limits"),
        (walk, lambda p: p.update(beyond=None), "does not grow"),
        (walk, lambda p: p["beyond"].update(longest_row=40.0), "longest row"),
        (walk, lambda p: p["layers"][1]["cost_features"][2].__setitem__(0, 0.5), "other cost features"),
        (rays, lambda p: p["rays"][1]["cost_features"][4].__setitem__(2, -0.5), "other cost features"),
        (rays, lambda p: p.pop("rays"), "other rays"),
    ],
    ids=["outside allowed", "less noise", "whole", "longer rows", "other features", "other centre", "no rays"],
)
def test_what_is_not_growth_is_refused_and_found_by_the_audit(
    make: Any, change: Any, said: str, tmp_path: Path, seed: int
) -> None:
    """A forger changes the problem of a growth and seals the journal anew."""
    path = grown_study(tmp_path, seed, 3, make)
    record = json.loads((path / "journal.jsonl").read_text().splitlines()[1])
    file = path / record["problem_file"]
    document = json.loads(file.read_text())
    arrays = document.pop("arrays", {})
    for part in (*document["layers"], *document.get("rays", ())):
        for key, value in part.items():
            if isinstance(value, dict):
                part[key] = json.loads(json.dumps(arrays[value["array"]]))
    document.pop("digest")
    change(document)
    for array in list(arrays):
        if json.dumps({"array": array}) not in json.dumps(document):
            del arrays[array]
    file.write_text(json.dumps({**document, "arrays": arrays}))
    try:
        digest = sf.Problem.load(file).digest
    except sf.errors.SurefootError:
        digest = record["problem"]
    forge(path, lambda records: records[1].update(problem=digest))
    report = sf.audit(path)
    assert not report.clean
    assert said in str(report)
    with pytest.raises(sf.errors.SurefootError):
        sf.Study.open(path)


def test_an_operator_may_apply_what_is_not_expanded_and_the_episode_is_then_lost(tmp_path: Path) -> None:
    problem = walk(limits=sf.Limit("strain", bound=0.6, noise=0.05, norm=0.58))  # a jump may strain 0.606
    with sf.Study.open(tmp_path / "a.study", problem) as study:
        study.begin()
        offer = study.ask()
        study.tell(offer.ask_id, 2, 0.45, "jump")
        assert study.next_call == "abort"
        assert not study.safe_mode
        study.abort("an operator jumped")
        play(study, 2, np.random.default_rng(0))
    assert sf.audit(tmp_path / "a.study").clean


def test_functions_that_fail_stop_the_growth_and_not_the_study(tmp_path: Path) -> None:
    calls = {"broken": False}

    def reward(h: int, s: int, a: str) -> float:
        if calls["broken"]:
            raise RuntimeError("the data base is gone")
        return {"wait": 0.1, "step": 0.5, "jump": 1.0}[a]

    with sf.Study.open(tmp_path / "a.study", walk(reward=reward)) as study:
        calls["broken"] = True
        with pytest.warns(UserWarning, match="the graph does not grow any more: the data base is gone"):
            study.begin()
        study.abort("to see")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            play(study, 1, np.random.default_rng(0))
        assert study.problem.graph.n_all_states == 6


def alarmed(study: sf.Study, state: int = 77) -> None:
    """What follows is no successor of anything."""
    study.begin()
    study.tell(study.ask().ask_id, state, 0.2)
    assert study.safe_mode


@pytest.mark.parametrize("make", [walk, rays])
def test_alarms_of_a_study_that_has_grown_are_answered_and_it_grows_on(make: Any, tmp_path: Path, seed: int) -> None:
    """Data are discarded, noise and norm are larger: all but the support may be declared anew."""
    path, rng = tmp_path / "a.study", np.random.default_rng(seed)
    with sf.Study.open(path, make(), snapshot_every=20) as study:
        play(study, 1, rng)
        alarmed(study)
        with pytest.raises(InvalidInput, match="the support of a study whose graph has grown cannot be changed"):
            study.acknowledge("other functions", problem=make(reward=lambda h, s, a: 0.5))
        before = study.problem.graph.n_all_states
        study.acknowledge("a slip", discard_data=True, trust_anchors=True)
        assert not study.safe_mode
        play(study, 12, rng)
        assert study.problem.graph.n_all_states > before  # it still has its functions
        study.begin()
        offer = study.ask()
        after = study.problem.successors(offer.step, offer.state, offer.action)[0]
        study.tell(offer.ask_id, after, 1.2)
        study.abort("a limit was exceeded")
        wider = make(limits=sf.Limit("strain", bound=0.6, noise=0.3, norm=0.55))
        study.acknowledge("the sensor is worse", problem=wider)
        assert [limit.noise for limit in study.problem.limits] == [0.3]
        play(study, 4, rng)
        now = study.status()
    for given in ([make()], []):
        with sf.Study.open(path, *given) as study:
            again = study.status()
        assert {key: again[key] for key in again if key != "recovered"} == {
            key: now[key] for key in now if key != "recovered"
        }
        for snapshot in (path / "snapshots").iterdir():
            snapshot.unlink()  # then from the first record
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["grow"] > 1

    def less(records: list[dict[str, Any]]) -> None:
        answer = next(record for record in records if record["kind"] == "acknowledge" and not record["discard"])
        answer["problem"], answer["problem_file"] = records[0]["problem"], records[0]["problem_file"]

    forge(path, less)
    assert not sf.audit(path).clean


def test_logged_rows_of_states_that_came_later_are_worth_nothing_before_data(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V before any data is of the first graph, and 0 elsewhere: to read beyond it would be to read anything."""
    with sf.Study.open(tmp_path / "a.study", walk()) as study:
        play(study, 4, np.random.default_rng(seed))
        seen = list[Any]()
        add = type(study.standing.agent.transitions).add
        monkeypatch.setattr(type(study.standing.agent.transitions), "add", lambda *x: (seen.append(x), add(*x)))
        rows = [{"step": h, "state": h, "action": "step", "next_state": h + 1, "cost": 0.2} for h in range(3)]
        study.import_log(rows)
    assert len(seen) == 3
    for _, h, layer, _, edge, values in seen:
        assert len(values) == study.problem.graph.n_states(h + 1)
        assert values[layer.successor[edge]] == 0.0


def test_other_functions_are_noticed_when_they_are_given_again(tmp_path: Path, seed: int) -> None:
    path = grown_study(tmp_path, seed, 2)
    other = walk(reward=lambda h, s, a: {"wait": 0.1, "step": 0.5, "jump": 1.0}[a] if s == 0 else 0.0)
    with pytest.raises(InvalidInput, match="not those that the study has grown by"):
        sf.Study.open(path, other)
