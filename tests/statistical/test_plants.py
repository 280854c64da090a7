"""Zero violations on the continuous truth while the event held; and a control without corners that must fail."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.plant import build
from surefoot.model.plant.reach import grid_points
from surefoot.plan.plan import Plan
from tests.plants import RandomPlant, random_plant

PLANTS, EPISODES = 8, 100


def violations(world: RandomPlant, seed: int, episodes: int, exact: bool = True) -> tuple[int, bool, int]:
    """(true violations, did the event hold, steps played)."""
    held: list[bool] = []

    def watch(plan: Plan, episode: int) -> None:
        held.append(world.event(plan))

    agent = sf.PlantAgent(world.plant, exact=exact)
    run = sf.run(agent, world.plant.simulate(world.step), episodes, seed, recorder=watch)
    return int(run.violations.sum()), all(held), episodes * (world.plant.horizon - 1)


@pytest.mark.statistical
def test_no_violation_on_the_continuous_state_while_the_event_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in range(PLANTS):
        broken, held, _ = violations(random_plant(rng), seed + n, EPISODES)
        assert not (held and broken)


@pytest.mark.statistical
def test_with_centres_in_place_of_corners_limits_are_broken(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a cell judged by its centre is not safe, and this test would notice."""
    rng = np.random.default_rng(seed)
    worlds = [random_plant(rng) for _ in range(PLANTS)]
    rows = build._rows

    def centred(cells, inputs, measures, remainder, h):  # type: ignore[no-untyped-def]
        found, ptr = rows(cells, inputs, measures, remainder, h)
        whole = found[:-1].reshape(cells.number, len(inputs), -1, found.shape[1])
        if whole.shape[2] > 1:
            found[:-1] = np.broadcast_to(whole.mean(axis=2, keepdims=True), whole.shape).reshape(found[:-1].shape)
        return found, ptr

    monkeypatch.setattr(build, "_rows", centred)
    broken = 0
    for n, world in enumerate(worlds):
        careless = RandomPlant(_again(world.plant), world.cost, world.disturbance, world.weights)
        broken += violations(careless, seed + n, EPISODES, exact=False)[0]
    assert broken > 0
    assert grid_points(worlds[0].plant.cells).shape[0] == worlds[0].plant.cells.dim


def _again(plant: sf.Plant) -> sf.Plant:
    """The same declaration, built anew."""
    twin = object.__new__(sf.Plant)
    twin.__dict__.update({k: v for k, v in vars(plant).items() if k not in ("problem", "digest", "forbidden_cells")})
    twin.problem = twin._problem()
    return twin
