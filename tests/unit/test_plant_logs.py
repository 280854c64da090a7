"""Logs of plants: exact states into ``sf.calibrate``, and what they say of a disturbance."""

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
        ({"state": [0.4, 0.5]}, "column 'state' must be 1 finite numbers"),
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
