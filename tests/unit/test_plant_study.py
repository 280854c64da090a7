"""Studies of plants: exact states in the journal, and an audit that notices when they are altered."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.reports.study_page import write_study_page
from surefoot.study.status import as_text
from tests.forgery import forge
from tests.unit.test_plant import LIMIT, arrives, arriving, tank, truth


def played(path: Path, episodes: int, seed: int, plant: sf.Plant | None = None, truth: Any = truth) -> sf.Plant:
    plant, rng = plant or tank(), np.random.default_rng(seed)
    for _ in range(2):  # closed and opened again
        with sf.Study.open(path, plant) as study:
            for _ in range(episodes):
                with study.episode() as episode:
                    while not episode.done:
                        offer = episode.ask()
                        after, cost = truth(offer.step, np.array(offer.state), offer.action, rng)
                        episode.tell(after, cost + 0.05 * rng.standard_normal())
    return plant


@pytest.mark.parametrize("shared", [0.0, 0.02])
def test_every_offer_is_certified_at_the_exact_state_and_the_audit_agrees(
    shared: float, tmp_path: Path, seed: int
) -> None:
    """Also where an episode's readings share an offset: what is played at an exact state depends on none of them."""
    played(tmp_path / "tank.study", 12, seed, tank(limits=[replace(LIMIT, episode_noise=shared)]))
    report = sf.audit(tmp_path / "tank.study")
    assert report.clean, str(report)
    assert report.counts["offers at an exact state"] == 2 * 12 * 4
    assert report.counts["offers by estimate"] > 0
    assert any("functions cannot be stored" in remark for remark in report.remarks)


def test_rows_around_the_next_state_are_on_record_and_audited(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "tank.study"
    played(path, 12, seed, arriving(), arrives)
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["offers by estimate"] > 0

    def lower(records: list[dict[str, Any]]) -> None:
        rows = next(record for record in records if record["kind"] == "ask")["point"]["features"]
        assert len(rows) == 2
        rows[1][1] -= 0.3

    forge(path, lower)
    assert not sf.audit(path).clean


@pytest.mark.parametrize(
    ("kind", "alter"),
    [
        ("ask", lambda point: point["features"][0].__setitem__(1, point["features"][0][1] - 0.3)),
        ("ask", lambda point: point["state"].__setitem__(0, point["state"][0] + 1e-6)),
        ("ask", lambda point: point["cells"].pop()),
        ("ask", lambda point: point.__setitem__("input", 0.2 if point["input"] != 0.2 else 0.1)),
        ("tell", lambda point: point["features"].__setitem__(0, 2.0)),
        ("tell", lambda point: point["features"].__setitem__(1, point["features"][1] + 0.01)),
        ("tell", lambda point: point["boxes"][0][1].__setitem__(0, point["boxes"][0][1][0] + 0.3)),
        ("tell", lambda point: point["state"].__setitem__(0, point["state"][0] + 0.3)),
    ],
)
def test_the_audit_notices_what_was_altered(
    kind: str, alter: Callable[[dict[str, Any]], Any], tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "tank.study"
    played(path, 2, seed)

    def change(records: list[dict[str, Any]]) -> None:
        chosen = [record for record in records if record["kind"] == kind]
        alter(chosen[1]["point"])

    forge(path, change)
    assert not sf.audit(path).clean


def test_another_plant_file_is_noticed(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "tank.study"
    played(path, 1, seed)
    text = (path / "plant.json").read_text()
    (path / "plant.json").write_text(text.replace("0.45", "0.55"))
    assert not sf.audit(path).clean
    with pytest.raises(sf.errors.UnreadableFile, match="not what was written"):
        sf.Study.open(path, tank())


def test_without_its_functions_a_study_can_be_read_but_not_asked(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "tank.study"
    played(path, 1, seed)
    with sf.Study.open(path) as study:
        assert study.status()["episodes"] == 2
        with pytest.raises(OutOfOrder, match="Open it with its Plant"):
            study.begin([0.45])
    with pytest.raises(InvalidInput, match="another"):
        sf.Study.open(path, tank(disturbance=[0.02]))
    with pytest.raises(InvalidInput, match="several"):
        sf.Study.open(tmp_path / "other.study", tank().problem)


def test_a_next_state_outside_its_box_is_an_alarm(tmp_path: Path) -> None:
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        offer = study.ask()
        after = 0.75 * 0.45 + offer.action + 0.02  # in a declared cell, and twice the disturbance away
        assert study.tell(offer.ask_id, [after], 0.3, sure=True).alarm is not None
        assert [alarm["alarm"] for alarm in study.status()["alarms"]] == ["successor"]
        with pytest.raises(InvalidInput, match="discard_data=True"):  # that the cell was declared does not answer it
            study.acknowledge("seen")
        study.acknowledge("the valve was mended", discard_data=True)
    assert sf.audit(tmp_path / "tank.study").clean

    def keep(records: list[dict[str, Any]]) -> None:
        first = records[0]
        records[-1].update(discard=False, epoch=0, share=first["share"], constants=first["constants"], changes=[])

    forge(tmp_path / "tank.study", keep)
    assert any("outside the support as before" in str(each) for each in sf.audit(tmp_path / "tank.study").exceptions)


@pytest.mark.parametrize("slip", [[4.5], [0.9], [-0.1]])
def test_a_typing_error_of_a_state_costs_nothing(tmp_path: Path, slip: list[float]) -> None:
    """Outside the box of states or in a cell of it: the offer stands, and the right state counts."""
    path = tmp_path / "tank.study"
    with sf.Study.open(path, tank()) as study:
        with contextlib.suppress(InvalidInput), study.episode() as episode:
            offer = episode.ask()
            episode.tell(slip, 0.3)
        with study.resume() as episode:
            expected = 0.75 * 0.45 + offer.action
            low, high = expected - 0.01, expected + 0.01
            said = f"step 0, state [0.45]: level {slip[0]:g} is not within {low:g} … {high:g}. Nothing was counted."
            with pytest.raises(InvalidInput, match=re.escape(said)):
                episode.tell(slip, 0.3)
            with pytest.raises(OutOfOrder, match=r"nothing is offered: .* the plant went to \["):
                episode.ask()
            assert episode.tell([expected], 0.3).alarm is None
        assert [study.status()[key] for key in ("tells", "doubt", "safe_mode", "epoch")] == [1, None, False, 0]
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["doubt"] == 1  # the same one, told twice, stands once


def refused(path: Path) -> None:
    """A study in which the plant was told to be where it cannot be, and the program then died."""
    with sf.Study.open(path, tank()) as study, contextlib.suppress(InvalidInput), study.episode() as episode:
        episode.ask()
        episode.tell([0.9], 0.3)


@pytest.mark.parametrize("again", [False, True])
def test_a_state_that_cannot_follow_and_is_not_told_right_is_an_alarm(tmp_path: Path, again: bool) -> None:
    """Also when the process dies after the refusal, or a program aborts because of it."""
    path = tmp_path / "tank.study"
    refused(path)
    with sf.Study.open(path, tank()) as study:
        assert "the plant went to [0.9], expected in [" in study.status()["doubt"]
        assert "told, but cannot have followed: " in as_text(study.status())
        with pytest.raises(OutOfOrder, match="an episode is already under way"):
            study.begin([0.45])
        pending = study.status()["pending"]["ask_id"]
        if again:
            assert "outside the declared support" in str(study.tell(pending, [0.9], 0.3, sure=True).alarm)
        else:
            study.abort("by a program")
        assert study.safe_mode
        with pytest.raises(InvalidInput, match="discard_data=True"):
            study.acknowledge("seen")
        study.acknowledge("mended", discard_data=True)
    assert sf.audit(path).clean
    forge(path, lambda records: records.pop(-2))
    assert any("no alarm successor follows it" in str(each) for each in sf.audit(path).exceptions)


def test_the_page_shows_a_state_that_was_refused(tmp_path: Path) -> None:
    path = tmp_path / "tank.study"
    refused(path)
    page = write_study_page(path).read_text()
    assert "Told, but cannot have followed: " in page
    assert "<p class=offer>" not in page


def test_what_samples_refute_begins_no_study(tmp_path: Path) -> None:
    bent = tank(measures=lambda h, x, u: [1.0, x[0] * (1.1 - x[0]), u])  # higher inside a cell than at its corners
    assert any("not affine" in error for error in sf.check(bent).errors)
    with pytest.raises(InvalidInput, match="not affine in each coordinate"):
        sf.Study.open(tmp_path / "bent.study", bent)
    with sf.Study.open(tmp_path / "bent.study", bent, despite="0.0025 is nothing") as study:
        assert "not affine" in study.status()["despite"]["findings"][0]


def test_a_declaration_with_other_rows_of_cells_is_refused(tmp_path: Path) -> None:
    """Cells have several cost rows, and none of them may change."""
    noisy = sf.Limit("foam", bound=0.9, noise=30.0, norm=2.0)
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        with study.episode([0.45]) as episode:
            offer = episode.ask()
            episode.tell([0.75 * 0.45 + offer.action], 50.0)
            episode.abort()
        other = tank(limits=[noisy], measures=lambda h, x, u: [1.0, 0.01 * x[0], u])
        with pytest.raises(InvalidInput, match="other cost_features"):
            study.acknowledge("a rougher sensor", problem=other.problem)
        study.acknowledge("a rougher sensor", problem=tank(limits=[noisy]).problem, despite="a bench")
    assert sf.audit(tmp_path / "tank.study").clean


def test_a_forbidden_state_after_an_offer_is_an_alarm(tmp_path: Path) -> None:
    path = tmp_path / "tank.study"
    with sf.Study.open(path, tank(forbidden={"level": (0.8, None)})) as study:
        study.begin([0.45])
        told = study.tell(study.ask().ask_id, [0.85], 0.3, sure=True)
        assert "forbidden, and outside the declared" in str(told.alarm)
        assert [alarm["alarm"] for alarm in study.status()["alarms"]] == ["successor"]
    assert sf.audit(path).clean
    forge(path, lambda records: records.pop())
    with sf.Study.open(path, read_only=True) as study:  # it follows from the tell
        assert study.safe_mode


def test_an_operators_other_input_is_learned_from(tmp_path: Path) -> None:
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        offer = study.ask()
        other = 0.05 if offer.action != 0.05 else 0.1
        receipt = study.tell(offer.ask_id, [0.75 * 0.45 + other], 0.3, action_applied=other)
        assert receipt.alarm is None
        assert study.tell(offer.ask_id, [0.75 * 0.45 + other], 0.3, action_applied=other).repeated
    assert sf.audit(tmp_path / "tank.study").clean


@pytest.mark.parametrize("applied", [0.15, 1.0, 2])
def test_an_input_off_the_grid_is_never_taken_for_the_number_of_one(tmp_path: Path, applied: float) -> None:
    path = tmp_path / "tank.study"
    with sf.Study.open(path, tank()) as study:
        study.begin([0.45])
        offer = study.ask()
        assert not study.tell(offer.ask_id, [0.5], 0.3, action_applied=applied).repeated
        assert study.tell(offer.ask_id, [0.5], 0.3, action_applied=applied).repeated
        assert study.next_call == "abort"
    with sf.Study.open(path, tank()) as study:
        study.abort("by hand")
    report = sf.audit(path)
    assert report.clean
    assert report.counts["overrides"] == report.counts["overrides that were not certified"] == 1


def test_what_a_study_says_of_a_plant_names_exact_states(tmp_path: Path) -> None:
    """Not the numbers of cells and inputs, which a person at the plant has never seen."""
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        assert study.status()["episode"]["state"] == [0.45]
        offer = study.ask()
        assert offer.state == (0.45,)
        with pytest.raises(InvalidInput, match=r"step 0, state \[0.45\]: \[0.3, 0.3\]: 2 where 1 is .* of foam"):
            study.tell(offer.ask_id, [0.4], [0.3, 0.3])
        told = f"input {offer.action!r}: the plant went to [0.9], expected in ["
        alarm = study.tell(offer.ask_id, [0.9], 0.3, sure=True).alarm
        assert alarm is not None
        assert f"step 0, state [0.45], {told}" in alarm
        assert told in as_text(study.status())
        with pytest.raises(OutOfOrder, match=rf"next state \[0.9\], cost \[0.3\], action {offer.action}"):
            study.tell(offer.ask_id, [0.5], 0.3)


def test_the_page_has_ranges_and_inputs_for_the_numbers_of_cells(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "tank.study"
    plant = played(path, 2, seed)
    with sf.Study.open(path, plant) as study:
        study.begin([0.45])
        offer = study.ask()
        after = offer.certificate["successors"][0]
    page = write_study_page(path).read_text()
    assert f"<b>level 0.45</b>: take <b class=act>flow {offer.action:g}</b>" in page
    cell, number = after["state"], after["next_action"]
    assert f"{cell} ({plant.cells.said(cell)})" in page
    assert f"{number} (flow {plant.inputs.values[number]:g})" in page


def test_findings_about_a_plant_have_ranges_for_the_numbers_of_cells() -> None:
    plant = tank(forbidden={"level": (0.55, None)})
    top = plant.cell([0.55])
    assert any(f"state {top} (level 0.5 … 0.6)" in each.text for each in sf.check(plant).findings)
    row = {"step": 0, "state": [0.45], "action": 0.1, "next_state": [0.85], "cost": 0.3}
    found = sf.calibrate(plant, [row])
    assert any("state 4 (level 0.4 … 0.5), input 0.1 led to (0.85,)" in error for error in found.errors)


@pytest.mark.parametrize("applied", [(0.1, 0.2), {"flow": 0.1}])
def test_an_applied_input_that_is_not_a_number_for_each_is_refused(tmp_path: Path, applied: Any) -> None:
    """Recorded, it would be an action that nobody knows, and the episode would be lost."""
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        offer = study.ask()
        told = re.escape(f"for each of the plant's inputs: {applied}. Give flow")
        with pytest.raises(InvalidInput, match=told):
            study.tell(offer.ask_id, [0.44], 0.3, action_applied=applied)
        assert study.next_call == "tell"


@pytest.mark.parametrize("after", [True, [False], np.array([True]), ["0.44"], "0.44", [None], [math.nan], [0.44, 0.1]])
def test_a_next_state_that_is_no_number_is_refused_not_taken_for_one(tmp_path: Path, after: Any) -> None:
    """As 1.0, a true would be an alarm that takes all data."""
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        offer = study.ask()
        with pytest.raises(InvalidInput, match=r"next_state must be .* not measured, abort the episode\. Nothing was"):
            study.tell(offer.ask_id, after, 0.3)
        assert study.next_call == "tell"
        assert not study.safe_mode


def test_another_plant_does_not_answer_an_alarm(tmp_path: Path) -> None:
    with sf.Study.open(tmp_path / "tank.study", tank()) as study:
        study.begin([0.45])
        study.tell(study.ask().ask_id, [0.9], 0.3, sure=True)
        with pytest.raises(InvalidInput, match=r"a declaration is a Problem: a Plant\. A study keeps its plant"):
            study.acknowledge("a burst", problem=tank(disturbance=[0.02]))  # type: ignore[arg-type]
        assert study.safe_mode
