"""Plants without an edge: cells that are made when they can be used (spec 9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.points import Endless as AuditsEndless
from surefoot.errors import InvalidInput
from surefoot.model.plant.cells import Cells, Endless, make_cells
from tests.forgery import forge
from tests.unit.test_plant import LIMIT, tank, truth
from tests.unit.test_plant_study import played


def endless(**changed: Any) -> sf.Plant:
    """The tank on a grid that ends nowhere."""
    return tank(**{"state": {"level": (None, None, 0.1)}, "longest_row": 10.0, **changed})


@pytest.mark.parametrize("given", [(None, None, 0.3), (0.7, None, 0.1), (None, -2.0, 1e-3)])
def test_cells_of_an_endless_coordinate_tile_the_line_and_the_audit_counts_alike(given: Any, seed: int) -> None:
    cells, rng = make_cells({"x": given, "y": (0.0, 1.0, 3)}), np.random.default_rng(seed)
    (edge,) = (e for e in cells.edges if isinstance(e, Endless))
    theirs = AuditsEndless(**edge.document())
    away = rng.choice([-1.0, 1.0], 400) * 10.0 ** rng.uniform(-6, 5, 400)
    values = np.concatenate([away, edge[edge.along(away)], np.nextafter(edge[edge.along(away)], -np.inf)])
    own = edge.along(values)
    inside = (values >= edge[0]) & (values <= edge[-1])
    assert inside.any()
    assert ((edge[own] <= values) & (values < edge[own + 1]))[inside].all()
    assert [theirs.cell(value) for value in values.tolist()] == own.tolist()
    assert [theirs[i] for i in own.tolist()] == edge[own].tolist()
    points = np.stack([values, np.full(len(values), 0.5)])
    low, high = cells.bounds(cells.of(points)[inside])
    assert ((low <= points[:, inside]) & (points[:, inside] < high)).all()
    assert (cells.of(points)[values < edge[0] - 1e-3] == cells.outside).all()
    first, last, leaves = cells.met(points, points + np.array([[0.25], [0.1]]))
    assert (first[0] <= own)[inside].all()
    assert (last[0][inside] >= edge.along(values + 0.25)[inside]).all()
    assert not leaves[inside & (values + 0.25 < edge[-1])].any()


def arriving(h: int, x: Any, u: float, x_next: Any) -> list[Any]:
    return [1.0, x[0], u, 0.1 * x_next[0]]


@pytest.mark.parametrize("changed", [{}, {"rays": True, "measures": arriving}])
def test_a_study_of_a_plant_without_an_edge_is_audited(tmp_path: Path, seed: int, changed: dict[str, Any]) -> None:
    path = tmp_path / "tank.study"
    played(path, 8, seed, endless(**changed))
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["grow"] > 0
    assert report.counts["offers by estimate"] > 0
    with sf.Study.open(path) as study:
        assert study.problem.growth is None

    def another_cell(records: list[dict[str, Any]]) -> None:
        point = [record for record in records if record["kind"] == "ask"][-1]["point"]
        point["boxes"] = [[[end[0] + 0.5] for end in box] for box in point["boxes"]]

    forge(path, another_cell)
    assert "its boxes meet cells" in str(sf.audit(path))


def test_the_budget_is_kept_and_a_picture_shows_what_is_in_the_graph(tmp_path: Path, seed: int) -> None:
    plant = endless(most_states=18)
    agent = sf.PlantAgent(plant)
    run = sf.run(agent, plant.simulate(truth), 30, seed)
    assert run.violations.sum() == 0
    assert plant.problem.graph.n_all_states < agent.plan.problem.graph.n_all_states <= 18
    assert not agent.plan.problem.graph.beyond.room
    assert agent.plan.n_certified() > plant.problem.expanded_actions[0]
    assert sf.draw(plant, agent.plan, tmp_path / "cells.png", paths=run.paths[-1:]).exists()
    assert not plant.check(500).refuted


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"longest_row": None}, "a cost row is longer than declared"),
        ({"remainder": 0.1, "longest_row": None}, "needs longest_row"),
        ({"state": {"level": (None, None, 0.0)}}, "cells of some width"),
        ({"state": {"level": (None, 1.0)}}, "not the cells of a coordinate"),
        ({"state": dict.fromkeys("abcdef", (None, None, 1.0)), "start": [0.0] * 6}, "without an end"),
        ({"measures": [sf.hat("level"), lambda h, x, u: u]}, "knots of a hat"),
        ({"measures": [sf.hat("level", [0.0, 0.25]), lambda h, x, u: u]}, "knots of a hat"),
    ],
)
def test_what_cannot_grow_is_refused(changed: dict[str, Any], said: str, seed: int) -> None:
    with pytest.raises(InvalidInput, match=said):
        sf.run(sf.PlantAgent(plant := endless(**changed)), plant.simulate(truth), 30, seed)


def test_what_check_cannot_expand_is_told_by_ranges_and_inputs() -> None:
    plant = endless(longest_row=None, limits=[replace(LIMIT, norm=0.5)])  # so short that much is certified without data
    with pytest.raises(InvalidInput, match=r"longer than declared: step 1, .*\(level 0.5 … 0.6\), input 0.2"):
        sf.check(plant)


@pytest.mark.parametrize("rays", [False, True])
def test_a_log_says_the_same_of_a_plant_that_grows_and_of_the_whole_one(rays: bool, seed: int) -> None:
    whole, plant = tank(rays=rays), endless(rays=rays)
    rows = whole.simulate(truth).log(lambda h, x: 0.1 if x[0] < 0.6 else 0.0, 30, seed)
    before = plant.problem.expanded_actions
    assert before[0] < before[1]
    found = sf.calibrate(plant, rows)
    assert found.to_dict() == sf.calibrate(whole, rows).to_dict()
    assert found.support.transitions == len(rows)
    assert plant.problem.expanded_actions == before  # the log was read beside it
    elsewhere = sf.calibrate(plant, [*rows, {**rows[0], "state": [5.0], "next_state": [7.0]}])  # far from the graph
    assert elsewhere.support.outside == 1
    with pytest.raises(InvalidInput, match="outside the box"):
        sf.calibrate(whole, [{**rows[0], "state": [7.0]}])


def test_cells_of_an_endless_grid_have_names() -> None:
    plant = endless()
    assert isinstance(plant.cells, Cells)
    assert plant.cells.said(plant.cell(0.45)) == "level 0.4 … 0.5"
