"""What a mistake in the safety code must not survive: each of these was made by hand or by ``make mutants``."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.audit import Unreadable, audit
from surefoot.audits.declaration import read_problem
from surefoot.audits.problem import Limit, knowledge
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.estimate.bank import factored
from surefoot.estimate.basis import isotropic
from surefoot.estimate.costs import split
from surefoot.estimate.ellipsoids import CostConfidence, _radii, prior_guard
from surefoot.estimate.families import LOST
from surefoot.model.graph import Anchors
from surefoot.model.priors import largest_costs, resolved
from surefoot.plan.confidence import value_confidence
from surefoot.storage.documents import parse_line
from tests.banks import family_of, spread_of, turned
from tests.hand_made import corridor
from tests.monitored import chain
from tests.studies import Calm, Quick, kettle, records_of, rewritten


def exact(problem: sf.Problem) -> sf.Problem:
    """The same without noise, and with a norm that costs just reach."""
    limit = dataclasses.replace(problem.limits[0], noise=0.0, norm=1.0)
    return dataclasses.replace(problem, limits=(limit,))


@pytest.mark.parametrize("off", [1e-7, 1e-5, 1e-3])
def test_the_audit_knows_a_contradiction_to_its_last_digits(tmp_path: Path, off: float) -> None:
    """L‖x‖ = 0.1 and a cost that is larger by so little exclude each other; the audit finds the alarm right."""
    options: Any = {"files": Quick(), "monitor_factory": Calm, "ridges": [1e-6], "replan_growth": 0.0}
    with sf.Study.open(tmp_path / "s", exact(kettle().problem), **options) as study:
        with study.episode("s") as ep:
            ep.ask()
            ep.tell("s", 0.1 + off, action_applied="wait")
            ep.abort("on")
        assert [alarm["alarm"] for alarm in study.status()["alarms"]] == ["contradiction"]
    report = audit(tmp_path / "s")
    assert report.clean, str(report)


def test_the_audit_reads_features_by_number_and_by_name() -> None:
    one = Limit("x", 1.0, 0.1, 1.0, None, 0.0, 0.0, [1])
    assert knowledge(one, None, 2).width.tolist() == [0.0, 1.0]
    assert knowledge(dataclasses.replace(one, features=["b"]), ["a", "b"], 2).width.tolist() == [0.0, 1.0]


def test_model_errors_have_two_sums_per_limit() -> None:
    limits = [sf.Limit(name, bound=1.0, noise=0.1, norm=1.0) for name in "abc"]
    assert sf.LsviNew(corridor({"stay": [1.0]}, limits)).costs.spread.shape == (2, 1 + 2 * 3)


# --- the bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"safety_radius_scale": -0.5},
        {"optimism": -0.5},
        {"ridges": [0.0]},
        {"ridges": [-0.5]},
        {"value_ridge": 0.0},
        {"value_ridge": -0.5},
    ],
    ids=str,
)
def test_sets_of_no_or_negative_size_are_refused(options: Any) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        sf.LsviNew(kettle().problem, **options)


def test_what_an_anchor_leaves_to_be_learnt_by_hand() -> None:
    """ρ = ⟨x,x⁰⟩/‖x⁰‖² and z = x − ρx⁰ (spec 3)."""
    anchors = Anchors(np.array([[2.0, 0.0]]), np.array([[0.3]]), np.zeros((1, 1)))
    family = family_of((sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0),), 2, 5.0)
    rho, z = split(np.array([[1.0, 1.0], [-3.0, 4.0], [0.0, 2.0]]), family, family.known(anchors))
    assert rho[:, 0].tolist() == [0.5, -1.5, 0.0]
    assert z.tolist() == [[0.0, 1.0], [0.0, 4.0], [0.0, 2.0]]


@pytest.mark.parametrize("stationary", [False, True])
def test_the_radius_of_values_knows_how_many_steps_are_left(stationary: bool) -> None:
    """(S6): half of H−1−h stands for the noise; of H−1 where one regression serves all steps. √λ₂·L_μ is added."""
    problem = dataclasses.replace(kettle().problem, stationary_transitions=stationary)
    known = value_confidence(problem, failure_probability=0.1, value_ridge=4.0, optimism=1.0)
    for h in (0, 1):
        left = 2 if stationary else 2 - h
        expected = left / 2 * math.sqrt(0.5 + 2 * math.log(3 / 0.1)) + 2.0 * problem.transition_norm
        assert known.radius(h, 0.5) == pytest.approx(expected)


@pytest.mark.parametrize("dim", [1, 4, 64])
def test_what_rounding_takes_grows_with_the_dimension(dim: int) -> None:
    """Without noise, model error and rows, all that is left of a radius is η·L/√λ with η = LOST·√d·tr G."""
    family = family_of((sf.Limit("load", bound=1.0, noise=0.0, norm=3.0),), dim, 1.0)
    confidence = CostConfidence(
        (4.0,), (0.1, 1.0, 10.0), lambda *_: 0.0, shaped=0.0, dual=True, prior=True, scale=1.0, guard=True
    )
    found = sum(_radii(isotropic(turned(np.eye(dim), np.zeros((1, dim))), 4.0), 0, spread_of(0.0), family, confidence))
    assert found == pytest.approx(LOST * math.sqrt(dim) * dim * 3.0 / 2.0, rel=1e-12)
    assert prior_guard(dim) == pytest.approx(LOST * math.sqrt(dim) * (1.0 + math.sqrt(11.0)), rel=1e-8)


def test_factors_of_several_blocks_at_once() -> None:
    """Lower triangles with a positive diagonal whose squares are λI + G, and each block's own growth."""
    rows = np.random.default_rng(5).normal(size=(3, 7, 2))
    for gram in (np.swapaxes(rows, 1, 2) @ rows, np.swapaxes(rows, 1, 2)[:, :1] @ rows[:, :, :1]):
        eye = np.eye(gram.shape[1])
        lower, growth = factored(gram, 0.3)
        assert np.swapaxes(lower, 1, 2) == pytest.approx(np.linalg.cholesky(gram + 0.3 * eye).swapaxes(1, 2))
        assert growth == pytest.approx(np.linalg.slogdet(eye + gram / 0.3)[1])


def test_without_features_no_cost_is_possible() -> None:
    """… nor a negative one, which would be a tolerance below zero."""
    limit = sf.Limit("load", bound=1.0, noise=0.1, prior=[(-1.0, 1.0)])
    graph = chain(np.zeros((2, 1)), limit).graph
    assert largest_costs(graph, [resolved(limit, 1, None)]).tolist() == [0.0]


# --- the journal ----------------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "s" / "journal.jsonl").mkdir(parents=True)
    with pytest.raises(UnreadableFile, match=r"the journal cannot be read: .*journal\.jsonl"):
        sf.Study.open(tmp_path / "s", kettle().problem)


@pytest.fixture
def study(tmp_path: Path) -> sf.Study:
    return sf.Study.open(tmp_path / "s", kettle().problem, files=Quick(), monitor_factory=Calm)


def test_an_object_with_many_entries_has_none_twice() -> None:
    many = {str(i): i for i in range(300)}
    assert parse_line(json.dumps(many).encode()) == many


def test_what_is_no_id_is_shown_whole_when_it_is_short(study: sf.Study) -> None:
    with pytest.raises(InvalidInput) as short:
        study.tell("nonsense", "s", 0.1)
    assert short.value.got == "'nonsense'"
    with pytest.raises(InvalidInput) as long:
        study.tell("n" * 100, "s", 0.1)
    assert len(long.value.got) == 80
    assert long.value.got.endswith("n...")


@pytest.mark.parametrize("horizon", [2, 4, 5])
def test_a_last_cost_has_the_bound_of_the_last_step(tmp_path: Path, horizon: int) -> None:
    """Also in safe mode, where nothing is looked at but the limits."""
    bound = [1.0] * (horizon - 1) + [0.2]
    limit = sf.Limit("a", bound=bound, noise=0.01, norm=10.0)
    problem = corridor({"stay": [0.1], "go": [0.1]}, limit, horizon=horizon, terminal=[0.1])
    with sf.Study.open(tmp_path / "s", problem, files=Quick(), despite="The fallback is safe.") as study:
        for last in (0.19, 0.5, 0.19, 0.5):
            before = len(study.status()["alarms"])
            study.begin("s")
            for _ in range(horizon - 1):
                study.tell(study.ask().ask_id, "s", 0.1)
            study.tell_terminal(last)
            assert [alarm["alarm"] for alarm in study.status()["alarms"][before:]] == ["limit"] * (last > 0.2)
        assert study.safe_mode


def test_a_label_without_end_is_none(study: sf.Study) -> None:
    label: Any = "s"
    for _ in range(100_000):
        label = [label]
    with pytest.raises(InvalidInput):
        study.begin(label)
    assert study.next_call == "begin"


@pytest.mark.parametrize("value", [2.0, -0.1, "0.1", None])
@pytest.mark.parametrize("key", ["failure_probability", "false_alarm"])
def test_an_opening_that_promises_what_is_no_probability_is_refused(study: sf.Study, key: str, value: object) -> None:
    study.close()
    opening = records_of(study.path)[0]
    rewritten(study.path, [{**opening, key: value}])
    with pytest.raises(UnreadableFile, match="first record cannot be used"):
        sf.Study.open(study.path, files=Quick(), monitor_factory=Calm)


# --- the audit ------------------------------------------------------------------------------------------


def test_a_problem_with_a_choice_too_many_is_not_read(tmp_path: Path) -> None:
    """A fallback's choice of a state that does not exist."""
    path = kettle().problem.save(tmp_path / "problem.json")
    document = json.loads(path.read_text())
    document["layers"][1]["fallback"].append(0)
    path.write_text(json.dumps(document))
    with pytest.raises(Unreadable):
        read_problem(path)
