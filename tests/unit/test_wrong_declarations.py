"""A catalogue of wrong declarations: each is caught by the constructor or by check, and told what to do about it."""

from __future__ import annotations

import random
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.worlds import registry
from tests.docs.test_programs import declared
from tests.forgery import forge
from tests.logged import SPEEDS, features, pump

EXAMPLES = Path(__file__).parents[2] / "examples"
NAN, INF = float("nan"), float("inf")


def strain(**changes: Any) -> sf.Limit:
    return sf.Limit(**({"name": "strain", "bound": 0.68, "noise": 0.05, "norm": 0.6} | changes))


def known(prior: Any = ((0.1, 0.3), (0.2, 0.6), (0.0, 0.2)), **changes: Any) -> sf.Limit:
    """By intervals, that hold the truth."""
    return sf.Limit(**({"name": "strain", "bound": 0.68, "noise": 0.05, "prior": prior} | changes))


def anchored(cost: float, x: tuple[float, ...] = (1.0, 0.0, 0.0), **changes: Any) -> sf.Problem:
    return pump(anchor=lambda h: (x, cost), **changes)


def wild_successors(h: int, level: int, speed: str) -> list[int]:
    return sorted(random.sample(range(9), 3))


def moody_reward(h: int, level: int, speed: str) -> float:
    return random.random()


def scaled(column: int, by: float) -> Callable[..., list[float]]:
    def x(h: int, level: int, speed: str, following: int) -> list[float]:
        row = features(h, level, speed, following)
        row[column] *= by
        return row

    return x


def crowded(h: int, level: int, speed: str) -> list[int]:
    """From everywhere to everywhere."""
    return list(range(9))


# name → (what is declared, words of the message or of the finding, grade: "refused", "error" or "warning")
# What a constructor alone can see is in the tables of test_problem, test_from_arrays, test_priors and test_scale.
WRONG: dict[str, tuple[Callable[[], sf.Problem], str, str]] = {
    "noise is negative": (lambda: pump(limits=strain(noise=-0.05)), "noise is negative", "refused"),
    # --- the graph
    "successors at random": (lambda: pump(successors=wild_successors), "when it is asked again", "refused"),
    "reward at random": (lambda: pump(reward=moody_reward), "when it is asked again", "refused"),
    # --- features
    "features in other units": (
        lambda: pump(cost_features=scaled(1, 1e5), limits=strain(norm=0.6)),
        "orders of magnitude",
        "warning",
    ),
    # --- the fallback
    "the fallback is the only action": (
        lambda: pump(actions=lambda h, s: ["slow"], fallback=lambda h, s: "slow"),
        "Declare other actions",
        "error",
    ),
    "the fallback breaks the limit": (
        lambda: anchored(0.4, cost_features=lambda h, s, a, q: [3.0 if a == "idle" else 1.0, q / 8, SPEEDS[a]]),
        "contradicts the fallback",
        "error",
    ),
    "a support too wide for the fallback": (
        lambda: pump(
            successors=crowded,
            transition_features=lambda *t: [1 / 9],
            cost_features=lambda h, s, a, q: [1.0 + q, SPEEDS[a]],
            anchor=lambda h: ([1.0, 0.0], 0.2),
        ),
        "support may be too wide",
        "error",
    ),
    "no weights let the fallback keep it": (
        lambda: pump(
            cost_features=lambda h, s, a, q: [1.0, 0.0] if q % 2 else [-1.0, SPEEDS[a] / 10],
            limits=strain(bound=-0.2, norm=1.0),
        ),
        "contradicts the fallback: no cost weights",
        "error",
    ),
    # --- the limit
    "the bound in per cent": (lambda: pump(limits=strain(bound=68.0)), "not 70 per cent", "error"),
    "noise and norm swapped": (lambda: pump(limits=strain(noise=0.6, norm=0.05)), "Nothing can break", "error"),
    "noise and norm swapped, with an anchor": (
        lambda: anchored(0.2, limits=strain(noise=0.6, norm=0.05)),
        "impossible under the norm bound",
        "refused",
    ),
    "bound and noise swapped": (lambda: anchored(0.2, limits=strain(bound=0.05, noise=0.68)), "below the", "refused"),
    "bound and norm of another limit": (lambda: pump(limits=strain(bound=1.5, norm=0.6)), "Nothing can break", "error"),
    "a norm of zero": (lambda: pump(limits=strain(norm=0.0)), "Nothing can break", "error"),
    "one limit of two in per cent": (
        lambda: pump(limits=[strain(), strain(name="heat", bound=68.0)]),
        "Nothing can break limit 'heat'",
        "error",
    ),
    "noise larger than any cost": (lambda: pump(limits=strain(noise=2.0)), "larger than any cost", "error"),
    "noise too large for the room": (
        lambda: anchored(0.59, limits=strain(bound=0.6, noise=0.3)),
        "Average several readings",
        "warning",
    ),
    "the bound in another unit, too small": (
        lambda: pump(
            limits=strain(bound=0.1, norm=0.5),
            anchor=lambda h: ([1.0, 0.0, 0.0], 0.09),
            cost_features=lambda h, s, a, q: [1.0 if a != "fast" else 10.0, 0.0, 0.1 * (a == "slow")],
            actions=lambda h, s: ["slow", "fast"],
            fallback=lambda h, s: "slow",
        ),
        "Only the fallback can ever keep",
        "error",
    ),
    "a norm far too large": (
        lambda: anchored(0.2, limits=strain(norm=60.0), fallback=lambda h, s: "idle", stationary_costs=False),
        "norm ≤",
        "error",
    ),
    "a misspecification that eats the room": (
        lambda: anchored(0.2, limits=strain(misspecification=0.5)),
        "bound ≥",
        "warning",
    ),
    # --- anchors
    # --- priors
    "an interval of three numbers": (lambda: pump(limits=known([(0, 1, 2), 0, 0])), "interval or a number", "refused"),
    "a prior that is text": (lambda: pump(limits=known("0.1")), "prior must be a list", "refused"),
    "a prior by name, and no names": (lambda: pump(limits=known({"bias": 0.2})), "no such feature", "refused"),
    "a prior of a feature that does not matter": (
        lambda: pump(limits=known({0: 0.2, 1: 0.4, 2: 0.1}, features=[0, 1])),
        "does not depend on",
        "refused",
    ),
    "a prior that anchor and norm contradict together": (
        lambda: anchored(0.49, limits=known([(0, 0.5), (0.3, 0.5), (0.3, 0.5)], norm=0.6)),
        "contradicts itself",
        "error",
    ),
    "a prior of costs that are too high for the fallback": (
        lambda: pump(limits=known([(0.3, 0.4), (0.9, 1.2), (0.1, 0.2)])),
        "contradicts the fallback",
        "error",
    ),
    "a prior that leaves the fallback no weights": (
        lambda: pump(
            cost_features=lambda h, s, a, q: [1.0, 0.0, 0.0] if q % 2 else [0.0, 1.0, SPEEDS[a]],
            limits=known([(0.1, 0.9), (0.1, 0.9), (0, 0.2)], bound=0.4),
            anchor=lambda h: ([1.0, 1.0, 0.0], 0.9, 0.02),
        ),
        "not below the bound",
        "refused",
    ),
    "the bound in per cent, beside a prior": (lambda: pump(limits=known(bound=68.0)), "Nothing can break", "error"),
    "the prior in per cent": (
        lambda: pump(limits=known([(10, 30), (20, 60), (0, 20)])),
        "contradicts the fallback",
        "error",
    ),
    "noise larger than any cost of the prior": (lambda: pump(limits=known(noise=2.0)), "larger than any", "error"),
    "episode_noise larger than any cost": (lambda: pump(limits=known(episode_noise=2.0)), "larger than any", "error"),
    "episode_noise is negative": (lambda: pump(limits=known(episode_noise=-1.0)), "negative", "refused"),
    "a name twice": (lambda: pump(features=["bias", "bias", "level"]), "share a name", "refused"),
    # --- transitions
    "no probabilities: counts that differ": (
        lambda: pump(transition_features=lambda h, s, a, q: [1.0]),
        "No weights turn the transition features",
        "error",
    ),
    "no probabilities: zero": (
        lambda: pump(transition_features=lambda h, s, a, q: [0.0, 0.0]),
        "No weights turn the transition features",
        "error",
    ),
    "no probabilities: a sign": (
        lambda: pump(transition_features=lambda h, s, a, q: [1.0 if q > s else -1.0, 1.0]),
        "No weights turn the transition features",
        "error",
    ),
    "no probabilities: the cost features": (
        lambda: pump(transition_features=None),
        "give transition_features",
        "error",
    ),
    "transition_norm too small": (
        lambda: pump(transition_norm=0.1),
        "Declare transition_norm=1 or more",
        "warning",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_is_caught_and_told_the_cure(name: str) -> None:
    declare, words, grade = WRONG[name]
    if grade == "refused":
        with pytest.raises(InvalidInput) as caught:
            declare()
        assert words in str(caught.value)
        assert caught.value.fix, str(caught.value)
        return
    found = [each for each in sf.check(declare()).findings if words in str(each)]
    assert [each.grade for each in found] == [grade], str(sf.check(declare()))
    assert found[0].fix


def test_the_right_declaration_of_the_catalogue_is_right() -> None:
    right = [pump(), anchored(0.2), pump(stationary_costs=False, stationary_transitions=False)]
    right += [pump(limits=known()), anchored(0.2, limits=known(norm=0.6)), pump(limits=known([0.2, 0.4, 0.1]))]
    right += [anchored(0.3, limits=known()), pump(limits=known(bound=lambda h: 0.6 + 0.02 * h, episode_noise=0.02))]
    for problem in right:
        assert not sf.check(problem).errors


LARGE = ("/medium", "/large", "/long", "/published", "/case9", "/case30", "-ac", "/1e5", "/1e6")  # declared alike
SMALL = [name for name in registry.names() if not name.endswith(LARGE)]


@pytest.mark.parametrize("name", SMALL)
def test_no_world_has_an_error(name: str) -> None:
    assert sf.check(sf.worlds.make(name).problem).errors == []


@pytest.mark.parametrize("name", ["ask_tell.py", "own_gridworld.py", "other_language/make_problem.py"])
def test_no_example_has_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(declared(runpy.run_path(str(EXAMPLES / name), run_name="example").values()))
    assert found
    assert all(sf.check(problem).errors == [] for problem in found)


# ---------------------------------------------------------------- a study does not begin with an error


def test_a_swapped_argument_never_reaches_the_plant(tmp_path: Any) -> None:
    swapped = WRONG["noise and norm swapped"][0]()
    with pytest.raises(InvalidInput, match=r"declaration has errors.*swapped\?.*despite=") as caught:
        sf.Study.open(tmp_path / "s", swapped)
    assert caught.value.fix
    assert not (tmp_path / "s" / "journal.jsonl").stat().st_size
    with pytest.raises(InvalidInput, match="say why"):
        sf.Study.open(tmp_path / "s", swapped, despite=" ")
    with sf.Study.open(tmp_path / "s", swapped, despite="a bench without a plant") as study:
        study.begin()
        offer = study.ask()
        assert offer.certificate["despite"] == "a bench without a plant"
        status = study.status()["despite"]
        assert status["reason"] == "a bench without a plant"
        assert any("swapped?" in finding for finding in status["findings"])
    with sf.Study.open(tmp_path / "s") as study:  # on reopening nothing need be said
        assert study.standing.despite == status
    report = sf.audit(tmp_path / "s")
    assert report.clean
    assert any("despite errors in its declaration (a bench without a plant)" in remark for remark in report.remarks)


def test_a_declaration_given_after_an_alarm_takes_the_same_check(tmp_path: Any) -> None:
    path = tmp_path / "s"
    with sf.Study.open(path, pump()) as study:
        study.begin()
        study.tell(study.ask().ask_id, 0, 50.0)
        study.abort("a spike")
        with pytest.raises(InvalidInput, match=r"declaration has errors.*noise.*despite="):
            study.acknowledge("a rough sensor", noise=30.0)
        study.acknowledge("a rough sensor", noise=30.0, despite="until it is replaced")
        status = study.status()["despite"]
        assert status["reason"] == "until it is replaced"
    with sf.Study.open(path, snapshot_every=1) as study:
        assert study.status()["despite"] == status
        study.begin()
        assert study.ask().certificate["despite"] == "until it is replaced"
        study.tell(study.standing.pending["ask"], 0, float("nan"))
        study.abort("the wire")
        study.acknowledge("mended")  # declares nothing anew: the reason stays
    with sf.Study.open(path) as study:
        assert study.status()["despite"] == status
    report = sf.audit(path)
    assert report.clean, str(report)
    assert any("despite errors in its declaration (until it is replaced)" in remark for remark in report.remarks)

    forge(path, lambda records: records[-1].update(despite=None))
    assert any("gives another reason" in str(breach) for breach in sf.audit(path).exceptions)


def test_the_audit_finds_a_certificate_that_hides_the_reason(tmp_path: Any) -> None:
    with sf.Study.open(tmp_path / "s", WRONG["a norm of zero"][0](), despite="a bench") as study:
        study.begin()
        study.ask()
    forge(tmp_path / "s", lambda records: records[2]["certificate"].update(despite=None))
    assert any("despite" in str(breach) for breach in sf.audit(tmp_path / "s").exceptions)


def test_a_right_declaration_has_nothing_to_excuse(tmp_path: Any) -> None:
    with sf.Study.open(tmp_path / "s", pump(), despite="not needed") as study:
        assert study.status()["despite"] is None


def test_tighter_noise_of_a_right_problem_changes_no_grade() -> None:
    for noise in (0.0, 1e-6, 0.05):
        assert not sf.check(replace(pump(), limits=(strain(noise=noise),))).errors
