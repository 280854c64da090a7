"""Plants whose inputs are rays (spec 9): supports, certificates at the exact state, refusals, study and audit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.model.rays import mixed
from surefoot.plan import point
from surefoot.plan.centres import CentreValues
from surefoot.plan.point import at_point
from surefoot.plan.rays import open_rows
from surefoot.reports.study_page import write_study_page
from surefoot.study.status import as_text
from tests.forgery import Record, forge
from tests.plants import random_plant
from tests.studies import Quick


def tank(**changed: Any) -> sf.Plant:
    declared: dict[str, Any] = {
        "state": {"level": (0.0, 1.0, 10)},
        "inputs": {"flow": [0.05, 0.1, 0.2]},
        "horizon": 6,
        "start": [0.45],
        "models": [lambda h, x, u: 0.75 * x + u],
        "disturbance": [0.01],
        "measures": lambda h, x, u: [1.0, x[0], u],
        "reward": lambda h, x, u: 5 * u,
        "fallback": 0.1,
        "limits": [sf.Limit("foam", bound=0.5, noise=0.02, norm=1.1)],
        "same_at_every_step": True,
        "rays": True,
    }
    return sf.Plant(**{**declared, **changed})


def step(h: int, x: Any, u: float, rng: np.random.Generator) -> tuple[Any, float]:
    return 0.75 * x + u + rng.uniform(-0.01, 0.01), 0.1 + 0.4 * x[0] + 1.0 * u


def test_between_two_inputs_lie_more_cells_than_both_ends_meet() -> None:
    """From 0.4 … 0.5 with 0.5x + u: u = 0.1 leads to 0.3 … 0.35, u = 0.7 to 0.9 … 0.95; the ray to all between."""
    inputs = {"inputs": {"flow": [0.1, 0.7]}, "models": [lambda h, x, u: 0.5 * x + u], "disturbance": 0.0}
    inputs["reward"] = lambda h, x, u: u
    ray, grid = tank(**inputs), tank(**inputs, rays=False)
    assert ray.problem.successors(0, 4, 1) == (2, 3, 4, 5, 6, 7, 8, 9)  # the end 0.3 is an edge: 2 is met, too
    assert set(grid.problem.successors(0, 4, 0)) | set(grid.problem.successors(0, 4, 1)) == {2, 3, 8, 9}
    assert ray.problem.successors(0, 4, 0) == grid.problem.successors(0, 4, 0)
    assert ray.next_cells(0, [0.45], 0.4).tolist() == [6]
    slopes = tank(**inputs, slopes=[[0.5]])
    assert slopes.problem.successors(0, 4, 1) == (2, 3, 4, 5, 6, 7, 8, 9)


def test_reach_is_asked_for_all_inputs_between_two() -> None:
    bent = [lambda h, x, u: 0.5 * x + u + 4 * (u - 0.1) * (0.2 - u)]  # between 0.1 and 0.2 above the straight line
    assert tank(models=bent, same_at_every_step=False, slopes=[[0.5]]).check(3000).refuted is False
    steep = [lambda h, x, u: 0.5 * x + u + 80 * (u - 0.1) * (0.2 - u) * (u > 0.1)]
    found = tank(models=steep).check(3000)
    assert "or at the ends of a ray" in str(found)
    with pytest.raises(InvalidInput, match=r"reach must be a function of \(h, low, high, u, to\)"):
        tank(models=steep, reach=lambda h, low, high, u: (0.5 * low, high))

    def reach(h: int, low: Any, high: Any, u: float, to: float) -> tuple[Any, Any]:
        return 0.5 * low + min(u, to), 0.5 * high + max(u, to) + 0.2

    assert not tank(models=steep, reach=reach).check(3000).refuted


def test_features_that_bend_along_a_ray_are_refuted() -> None:
    found = tank(measures=lambda h, x, u: [1.0, x[0], u * u]).check(3000)
    assert "a feature is not affine along a ray" in str(found)
    assert not tank().check(3000).refuted


def test_an_input_is_found_on_the_shortest_ray_and_nothing_else_is_an_input() -> None:
    plant = tank(inputs={"flow": [0.05, 0.1, 0.2], "heat": [0.0, 1.0]}, fallback=(0.1, 0.0),
                 models=[lambda h, x, u: 0.75 * x + u[0]], measures=lambda h, x, u: [1.0, x[0], *u],
                 reward=lambda h, x, u: u[0])  # fmt: skip
    assert plant.placed(0, [0.45], (0.1, 0.0)) == (2, 1.0)
    assert plant.placed(0, [0.45], (0.1, 0.25)) == (3, 0.25)
    number, share = plant.placed(0, [0.45], (0.15, 0.5))
    assert plant.inputs.values[number] == (0.2, 1.0)
    assert share == pytest.approx(0.5)
    for wrong in ((0.15, 0.2), (0.3, 0.0), 0.15, "x"):
        with pytest.raises(InvalidInput, match="no such input"):
            plant.placed(0, [0.45], wrong)


@pytest.mark.parametrize("of_next", [False, True])
def test_whatever_is_proved_along_a_ray_is_safe_for_every_possible_truth(of_next: bool, seed: int) -> None:
    """Corner rows at an intensity bound every point of the cell there; boxes of a ray hold every image; and what is
    proved keeps the limit, with certified cells only after it."""
    rng = np.random.default_rng(seed)
    n = 1 if of_next else 2
    world = random_plant(rng, n, of_next=of_next, rays=True)
    plant, agent = world.plant, sf.PlantAgent(world.plant)
    sf.run(agent, plant.simulate(world.step), 15, seed)
    plan, values = agent.plan, CentreValues(plant).of(agent.plan)
    assert world.event(plan)
    layer, rays = plant.problem.graph.layers[0], plant.problem.graph.rays[0]
    between = 0
    for _ in range(30):
        x, number, alpha = rng.uniform(-1.0, 1.0, n), int(rng.integers(1, 3)), float(rng.random())
        u, pair = plant.inputs.between(0, number, alpha), plant.cell(x) * 3 + number
        after, _ = world.step(0, x, u, rng)
        assert plant.cell(after) in plant.problem.successors(0, plant.cell(x), number)
        rows = slice(layer.row_ptr[pair], layer.row_ptr[pair + 1])
        corners = mixed((rays.cost_features[rows], layer.cost_features[rows]), np.full(rows.stop - rows.start, alpha))
        own = plant.features(0, x, u, after)
        assert plan.bounds.at(0, own[None])[0] <= plan.bounds.at(0, corners)[0].max(axis=0) + 1e-12
        assert world.cost[0] @ own <= (corners @ world.cost[0]).max() + 1e-12
        h = int(rng.integers(plant.horizon - 1))
        point = at_point(plant, plan, values, h, x)
        for choice in np.flatnonzero(point.proved):
            after, cost = world.step(h, x, point.choices.inputs[choice], rng)
            assert cost <= plant.limits[0].bound
            assert plan.certified_sets.states[h + 1][plant.cell(after)]
        between += int((point.proved & (point.choices.intensity < 1.0)).sum())
    assert between > 0


def test_rays_within_the_box_of_a_prior_need_no_code_that_is_not_compiled_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in one piece, as everywhere: bounds of others would be compiled anew, in the middle of an ask."""
    whole: list[bool] = []

    def opened(zero: Any, one: Any, *rest: Any) -> Any:
        whole.append(zero.flags.c_contiguous and one.flags.c_contiguous)
        return open_rows(zero, one, *rest)

    monkeypatch.setattr(point, "open_rows", opened)
    plant = tank(limits=[sf.Limit("foam", bound=0.5, noise=0.02, prior=[(0.0, 0.2), (0.2, 0.6), (0.5, 2.0)])])
    run = sf.run(sf.PlantAgent(plant), plant.simulate(step), episodes=2, seed=0)
    assert run.violations.sum() == 0
    assert whole
    assert all(whole)


def test_a_ray_is_opened_as_far_as_the_exact_state_allows() -> None:
    """The largest proved intensity is a boundary: a little further fails, by its costs or by what may follow."""
    plant = tank()
    agent = sf.PlantAgent(plant)
    run = sf.run(agent, plant.simulate(step), 30, 0)
    assert run.violations.sum() == 0
    values = CentreValues(plant).of(agent.plan)
    point = at_point(plant, agent.plan, values, 3, [0.6])
    ray = point.choices.number == 2
    furthest = point.choices.intensity[ray & point.proved].max()
    assert 0.2 < furthest < 1.0
    beyond = plant.inputs.between(1, 2, min(1.0, furthest + 0.005))
    assert "is not certified" in agent.why(3, [0.6], beyond)
    assert "towards 0.2 proved up to 0.1" in agent.why(3, [0.6], beyond)
    assert "proved safe" in agent.why(3, [0.6], plant.inputs.between(1, 2, furthest / 2))
    assert any(u not in plant.inputs.values for u in run.played[-1])
    by_cells = sf.run(sf.PlantAgent(plant, exact=False), plant.simulate(step), 30, 0)
    assert by_cells.violations.sum() == by_cells.by_point.sum() == 0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, plant, rng = tmp_path_factory.mktemp("rays") / "tank.study", tank(), np.random.default_rng(3)
    with sf.Study.open(path, plant, files=Quick()) as study:
        for k in range(12):
            with study.episode([0.45]) as episode:
                while not episode.done:
                    offer = episode.ask()
                    u = 0.07 if (k, offer.step) == (3, 2) else offer.action
                    after, cost = step(offer.step, np.array(offer.state), u, rng)
                    episode.tell(after, cost + 0.02 * rng.standard_normal(), u)
        with study.episode([0.45]) as episode:
            offer = episode.ask()
            with pytest.raises(InvalidInput, match="tell the input that was applied"):
                episode.tell([0.43], 0.3, intensity=0.5)
        before = [row.tobytes() for row in study.standing.agent.plan.intensities or ()]
    with sf.Study.open(path, plant, files=Quick()) as study:
        assert [row.tobytes() for row in study.standing.agent.plan.intensities or ()] == before
    with pytest.raises(InvalidInput):
        sf.Study.open(path, tank(rays=False), files=Quick())
    return path


def test_logs_pictures_and_pages_take_inputs_between_two(path: Path, tmp_path: Path) -> None:
    plant = tank()
    rows = plant.simulate(step).log(lambda h, x: 0.07, 6)
    found = sf.calibrate(plant, rows)
    assert found.disturbance is not None
    assert found.disturbance["level"] <= 0.01
    assert sf.draw(plant, sf.PlantAgent(plant).plan, path=tmp_path / "tank.png").exists()
    shutil.copytree(path, tmp_path / "tank.study")
    assert "Last played" not in write_study_page(tmp_path / "tank.study").read_text()
    with sf.Study.open(tmp_path / "tank.study", plant, files=Quick()) as study:
        study.begin([0.45])
        offer = study.ask()
        assert offer.intensity == 1.0  # the input is what to apply
        assert f"offered: {offer.action!r} (ask" in as_text(study.status())


def between(records: list[Record]) -> list[Record]:
    return [each for each in records if each["kind"] == "ask" and 0.0 < each["intensity"] < 1.0]


def test_the_audit_follows_inputs_between_two_of_the_grid(path: Path) -> None:
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["overrides"] == 1
    assert report.counts["offers at an exact state"] > 50


@pytest.mark.parametrize(
    ("key", "said"), [("input", "its input is"), ("intensity", "its input is"), ("features", "outside those of")]
)
def test_a_forged_input_is_not_clean(path: Path, tmp_path: Path, key: str, said: str) -> None:
    def change(records: list[Record]) -> None:
        ask = between(records)[-1]
        if key == "intensity":
            ask["intensity"] *= 0.9
        elif key == "input":
            ask["point"]["input"] *= 1.01
        else:
            ask["point"]["features"][0][-1] *= 0.9

    copy = Path(shutil.copytree(path, tmp_path / "tank.study"))
    forge(copy, change)
    assert any(said in str(each) for each in sf.audit(copy).exceptions)
