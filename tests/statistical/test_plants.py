"""Zero violations on the continuous truth while the event held; and a control without corners that must fail."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot.plan.plan import Plan
from tests.plants import RandomPlant, centred, random_plant

PLANTS, EPISODES = 8, 100


def violations(world: RandomPlant, seed: int, episodes: int, exact: bool = True) -> tuple[int, bool]:
    """(true violations, did the event hold)."""
    held: list[bool] = []

    def watch(plan: Plan, episode: int) -> None:
        held.append(world.event(plan))

    agent = sf.PlantAgent(world.plant, exact=exact)
    run = sf.run(agent, world.plant.simulate(world.step), episodes, seed, on_plan=watch)
    return int(run.violations.sum()), all(held)


@pytest.mark.statistical
def test_no_violation_on_the_continuous_state_while_the_event_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in range(PLANTS):
        rays = n % 3 == 1
        world = random_plant(rng, 1 + n % 2, of_next=True, rays=rays) if n < 2 else random_plant(rng, rays=rays)
        broken, held = violations(world, seed + n, EPISODES)
        assert not (held and broken)


@pytest.mark.statistical
@pytest.mark.parametrize("rays", [False, True], ids=["grid", "rays"])
def test_with_centres_in_place_of_corners_limits_are_broken(rays: bool, seed: int) -> None:
    """The control: a cell judged by its centre is not safe, and this test would notice."""
    rng = np.random.default_rng(seed)
    plants, episodes = (4, 50) if rays else (PLANTS, EPISODES)
    worlds = [centred(random_plant(rng, rays=rays)) for _ in range(plants)]
    assert sum(violations(world, seed + n, episodes, exact=False)[0] for n, world in enumerate(worlds)) > 0
