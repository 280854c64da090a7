"""What surrounds a plant: logs into ``sf.calibrate``, reports, reasons, and the mistakes of newcomers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from tests.unit.test_plant import arrives, arriving, tank, truth
from tests.unit.test_plant_study import played


def test_a_truthful_log_bears_the_declaration_out(seed: int) -> None:
    plant = tank()
    found = sf.calibrate(plant, plant.simulate(truth).log(plant.fallback, 60, seed), level=0.999)
    assert found.errors == []
    assert found.disturbance is not None
    assert 0.009 < found.disturbance["level"] <= 0.01
    assert "off the models by up to level" in found.findings[-1].text
    noise = found.limits[0].noise
    assert noise is not None
    assert 0.045 < noise < 0.09  # 0.05, from above


def test_a_disturbance_that_is_too_small_is_found(seed: int) -> None:
    plant = tank(disturbance=[0.004])
    found = sf.calibrate(plant, plant.simulate(truth).log(plant.fallback, 20, seed))
    assert any("Declare a larger disturbance" in error for error in found.errors)
    assert found.support.outside > 0


def test_features_of_the_next_state_are_exact(seed: int) -> None:
    plant = arriving()
    found = sf.calibrate(plant, plant.simulate(arrives, noise=False).log(lambda h, x: 0.05 * (1 + h % 2), 20, seed))
    assert max(np.abs(found.residuals[0].residual)) < 1e-9


def test_a_csv_file_reads_like_rows(tmp_path: Path) -> None:
    plant = tank()
    rows = plant.simulate(truth).log(plant.fallback, 5, 0)
    with (tmp_path / "log.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {**row, **{key: json.dumps(row[key]) for key in ("state", "next_state", "cost")}} for row in rows
        )
    assert sf.calibrate(plant, tmp_path / "log.csv").to_dict() == sf.calibrate(plant, rows).to_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": [0.4, 0.5]}, "column 'state' must be a finite number: [0.4, 0.5]. Give [level]."),
        ({"action": 0.3}, "input"),
        ({"step": 4}, "no such step"),
        ({"next_state": None}, "next_state is missing"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_their_place(change: dict[str, Any], said: str) -> None:
    plant = tank()
    rows = plant.simulate(truth).log(plant.fallback, 1, 0)
    with pytest.raises(InvalidInput, match=r"row 2") as refused:
        sf.calibrate(plant, [rows[0], {**rows[1], **change}])
    assert said in str(refused.value)


def test_a_simulator_may_choose_the_start_within_what_is_declared() -> None:
    plant = tank(start=[(0.4, 0.5)])
    run = sf.run(plant.fallback, plant.simulate(truth, reset=lambda rng: [0.41]), episodes=3, seed=0)
    assert {float(path[0, 0]) for path in run.paths} == {0.41}
    assert run.to_dict()["steps"] == 3 * 4
    with pytest.raises(InvalidInput, match="not a declared start"):
        sf.run(plant.fallback, plant.simulate(truth, reset=lambda rng: [0.6]), episodes=1, seed=0)


def test_a_report_shows_players_and_cells(tmp_path: Path) -> None:
    plant = tank()
    runs = sf.compare(plant.simulate(truth), {"<full>": lambda h, x: 0.2, "learner": sf.PlantAgent(plant)}, 10)
    page = sf.report(runs, tmp_path / "tank.html").read_text(encoding="utf-8")
    assert "&lt;full&gt;" in page
    assert "✓ safe by assumption: the fallback" in page
    assert "✓ every step safe with probability ≥ 0.95" in page
    assert page.count("<svg") == 3
    assert runs["learner"].report(tmp_path / "one.html").exists()
    other = tank()
    mixed = {**runs, "other": sf.run(other.fallback, other.simulate(truth), 2, 0)}
    with pytest.raises(InvalidInput, match="one plant"):
        sf.report(mixed, tmp_path / "two.html")


def test_the_page_of_a_study_shows_its_cells(tmp_path: Path, seed: int) -> None:
    from surefoot.reports.study_page import write_study_page

    played(tmp_path / "tank.study", 3, seed)
    page = write_study_page(tmp_path / "tank.study").read_text(encoding="utf-8")
    assert "The plan in force: the stronger the blue of a cell" in page


def test_why_an_input_is_certified_is_said_for_the_exact_state(seed: int) -> None:
    plant = tank()
    agent = sf.PlantAgent(plant)
    assert "foam may be" in agent.why(0, [0.45], 0.2)
    assert "or is the fallback's" in agent.why(0, [0.45], 0.1)
    sf.run(agent, plant.simulate(truth), 60, seed)
    said = [agent.why(0, [0.45], u) for u in plant.inputs.values]
    assert any("is proved safe: foam is at most" in each for each in said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": lambda x, u: x}, r"a model must be a function of \(h, x, u\)"),
        ({"reward": lambda x: 0.5}, r"reward must be a function of \(h, x, u\)"),
        ({"fallback": lambda x: 0.1}, r"fallback must be a function of \(h, x\)"),
        ({"measures": lambda x, u: [1.0]}, r"measures must be a function of \(h, x, u\)"),
        ({"disturbance": {"levle": 0.1}}, "Did you mean level"),
        ({"disturbance": 0.3}, "give it room: a wider range, a smaller disturbance, finer cells"),
    ],
)
def test_what_a_newcomer_gets_wrong_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        tank(**changes)


def test_players_of_the_wrong_kind_are_refused_with_the_right_one() -> None:
    plant = tank()
    for play, said in (
        (lambda: sf.run(lambda x: 0.1, plant.simulate(truth), 1, 0), r"function of \(h, x\)"),
        (lambda: sf.run(lambda h, x: "much", plant.simulate(truth), 1, 0), "a controller gives a number"),
        (lambda: plant.simulate(lambda h, x, u: (x, 0.0)), r"function of \(h, x, u, rng\)"),
        (lambda: sf.LsviNew(plant), "sf.PlantAgent"),  # type: ignore[arg-type]
        (lambda: sf.PlantAgent(plant.simulate(truth)), "truth.plant"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match=said):
            play()


def test_the_name_of_a_coordinate_may_hold_its_unit() -> None:
    """On the axis of a picture, in a hat and a forbidden range, and in what is said."""
    level, foam = "level [%_$]", sf.hat("level [%_$]", [0.0, 0.5, 1.0])
    plant = tank(
        state={level: (0.0, 1.0, 10)},
        start={level: 0.45},
        disturbance={level: 0.01},
        forbidden={level: (0.9, None)},
        measures=[foam, lambda h, x, u: u],
    )
    agent = sf.PlantAgent(plant)
    assert sf.draw(plant, agent.plan).axes[0].get_xlabel() == r"level [%_\$]"  # as matplotlib writes a dollar
    assert plant.cells.said(4) == "level [%_$] 0.4 … 0.5"
