"""After a transition outside the support: a wider declaration keeps the data, and takes nothing back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput
from tests.answered import anchored, left_support, promise_of_the_next_offer, uneven, waits
from tests.audited import clean
from tests.forgery import forge
from tests.studies import Calm, Plant, Quick, fingerprint, go_on, kettle, lines_of, records_of


def test_a_support_that_holds_the_transition_brings_the_promise_back(opened: Any, path: Path, world: sf.World) -> None:
    study = left_support(opened, world)
    rows = study.status()["cost_rows"]
    wider = kettle(wider=True).problem
    n = len(lines_of(path))
    study.acknowledge("it may stay cold", problem=wider)
    assert records_of(path)[-1]["changes"] == ["wider support"]
    assert study.problem.digest == wider.digest
    assert study.status()["cost_rows"] == rows
    assert promise_of_the_next_offer(study)["restored"] == {"record": n, "by": ["wider support"]}
    study.begin("s")
    offer = study.ask()
    assert offer.action == "heat"  # the data are still there
    assert "cold" in [after["state"] for after in offer.certificate["successors"]]
    assert study.tell(offer.ask_id, "cold", 0.2).alarm is None
    study.abort("enough")
    assert study.status()["cost_rows"][0] == rows[0] + 1
    go_on(study, Plant(kettle(wider=True), 3), study.standing.episodes + 8)
    state = fingerprint(study)
    study.close()
    assert fingerprint(opened()) == state
    assert clean(path).promise == f"every step since record {n} (wider support)"


def test_data_survive_a_wider_support_with_a_prior(path: Path) -> None:
    """Ridges and their ratios are constants of the study: rows that come later choose none anew (spec 3)."""
    narrow, wide = uneven(2), uneven(3)
    first, other = (sf.LsviNew(problem).constants["ridge_ratios"] for problem in (narrow, wide))
    assert first[0] != other[0]
    assert first[1] == other[1] == 1.0
    study = sf.Study.open(path, narrow, files=Quick(), monitor_factory=Calm, snapshot_every=5)

    def play(episodes: int, after: int) -> None:
        for i in range(episodes):
            study.begin()
            offer = study.ask()
            study.tell(offer.ask_id, after * (offer.action == "go"), [0.2 + i / 1000, 0.1])

    play(9, 1)
    study.begin()
    study.tell(study.ask().ask_id, 2, [0.4, 0.1], action_applied="go")
    study.acknowledge("it goes further", problem=wide)
    assert study.status()["cost_rows"] == [9, 0, 9, 0]
    assert records_of(path)[-1]["constants"]["ridge_ratios"] == first
    assert study.standing.agent.costs.families[0].ratio == first[0]
    play(9, 2)
    state = fingerprint(study)
    study.close()
    clean(path)
    for _ in range(2):  # from a snapshot, and from the first record on
        study = sf.Study.open(path, files=Quick(), monitor_factory=Calm)
        assert fingerprint(study) == state
        study.close()
        for file in (path / "snapshots").iterdir():
            file.unlink()
    n = next(record["n"] for record in records_of(path) if record["kind"] == "acknowledge")
    for at, ratios in ((0, other), (n, other), (n, first[:1]), (n, [0.0, 1.0])):
        kept = (path / "journal.jsonl").read_bytes()
        forge(path, lambda found, at=at, ratios=ratios: found[at]["constants"].update(ridge_ratios=ratios))
        assert any("multiplied" in finding.what for finding in audit(path).exceptions), (at, ratios)
        (path / "journal.jsonl").write_bytes(kept)
    study = sf.Study.open(path, files=Quick(), monitor_factory=Calm)
    study.begin()
    study.tell(study.ask().ask_id, 7, [0.4, 0.1], action_applied="go")
    study.acknowledge("mended", discard_data=True)
    assert records_of(path)[-1]["constants"]["ridge_ratios"] == other  # before any data of its own
    study.close()
    clean(path)


def _limit(problem: sf.Problem, **changed: Any) -> sf.Problem:
    return replace(problem, limits=(replace(problem.limits[0], **changed),))


def _other_feature(problem: sf.Problem) -> sf.Problem:
    first = problem.graph.layers[0]
    moved = replace(first, cost_features=first.cost_features * 0.5)
    return replace(problem, graph=replace(problem.graph, layers=(moved, *problem.graph.layers[1:])))


def _other_fallback(problem: sf.Problem) -> sf.Problem:
    first = problem.graph.layers[0]
    other = replace(first, fallback=first.fallback + np.array([1, 0]))
    return replace(problem, graph=replace(problem.graph, layers=(other, *problem.graph.layers[1:])))


NARROWER: dict[str, tuple[Callable[[sf.Problem], sf.Problem], str]] = {
    "a larger bound": (lambda problem: _limit(problem, bound=0.9), "other limits"),
    "smaller noise": (lambda problem: _limit(problem, noise=0.01), "noise 0.01, it was 0.05"),
    "a smaller norm": (lambda problem: _limit(problem, norm=1.0), "norm 1, it was 3"),
    "other features": (_other_feature, "other cost_features of step 0"),
    "another fallback": (_other_fallback, "another action of the fallback"),
    "a start less": (lambda problem: replace(problem, graph=replace(problem.graph, starts=np.array([0]))), "start"),
    "an anchor": (lambda problem: anchored(problem), "another anchor"),
}


@pytest.mark.parametrize("name", NARROWER)
def test_a_declaration_takes_nothing_back(opened: Any, path: Path, world: sf.World, name: str) -> None:
    narrow, words = NARROWER[name]
    study = left_support(opened, world)
    before = lines_of(path)
    with pytest.raises(InvalidInput, match=f"keeps what the study has declared.*{words}"):
        study.acknowledge("other knowledge", problem=narrow(kettle(wider=True).problem))
    with pytest.raises(InvalidInput, match="keeps what the study has declared"):
        study.acknowledge("another plant", problem=sf.worlds.make("thermal/testing").problem, discard_data=True)
    assert lines_of(path) == before
    assert sorted(item.name for item in path.iterdir() if "problem" in item.name) == ["problem.json"]
    study.acknowledge("it may stay cold", problem=kettle(wider=True).problem)
    study.close()
    n = len(before)
    other = narrow(kettle(wider=True).problem)
    other.save(path / f"problem-{n}.json")
    forge(path, lambda found: found[n].update(problem=other.digest))
    said = " ".join(finding.what for finding in audit(path).exceptions)
    assert "takes something back" in said or "the fallback has no action" in said


def test_a_transition_seen_twice_belongs_to_the_support(opened: Any, path: Path, world: sf.World) -> None:
    study = left_support(opened, world)
    study.acknowledge("a slip of the pen", discard_data=True)
    waits(study, 0.1, "cold")  # of another action
    study.acknowledge("a slip as well", discard_data=True)
    waits(study, 0.1, "cold")
    with pytest.raises(InvalidInput, match="does not answer it a second time"):
        study.acknowledge("once more", discard_data=True)
    study.close()
    study = opened()
    with pytest.raises(InvalidInput, match="does not answer it a second time"):
        study.acknowledge("once more", discard_data=True)
    assert clean(path).promise.startswith("none")
