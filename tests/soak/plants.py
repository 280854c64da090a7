"""A million steps on random plants, on the continuous truth, with disturbances at the edge of their range.

``python -m tests.soak.plants`` counts true violations, those in runs in which the event of every plan held,
and, as a control, those of the same learner when cells are judged by their centres.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

import surefoot as sf
from surefoot.plan.plan import Plan
from tests.plants import centred, random_plant


def soak(steps: int, seed: int, episodes: int, share_of_rays: float) -> dict[str, int]:
    """The counts; every twentieth plant is played once more by the control."""
    rng, plants = np.random.default_rng(seed), 0
    found = {"steps": 0, "violations": 0, "violations while the event held": 0, "plants": 0, "events failed": 0}
    control = {"control steps": 0, "control violations": 0}
    while found["steps"] < steps:
        of_next, rays = bool(rng.random() < 0.3), bool(rng.random() < share_of_rays)
        world, held = random_plant(rng, of_next=of_next, rays=rays), list[bool]()

        def watch(plan: Plan, episode: int, world=world, held=held) -> None:  # type: ignore[no-untyped-def]
            held.append(world.event(plan))

        run = sf.run(
            sf.PlantAgent(world.plant), world.plant.simulate(world.step), episodes, seed + plants, on_plan=watch
        )
        broken = int(run.violations.sum())
        found["steps"] += episodes * (world.plant.horizon - 1)
        found["violations"] += broken
        found["violations while the event held"] += broken * all(held)
        found["events failed"] += not all(held)
        plants += 1
        found["plants"] = plants
        if plants % 20 == 0:
            careless = centred(world)
            truth = careless.plant.simulate(careless.step)
            other = sf.run(sf.PlantAgent(careless.plant, exact=False), truth, episodes, seed + plants)
            control["control steps"] += episodes * (world.plant.horizon - 1)
            control["control violations"] += int(other.violations.sum())
            print(json.dumps(found | control), file=sys.stderr, flush=True)
    return found | control


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=1000, help="of each plant")
    parser.add_argument("--rays", type=float, default=0.3, help="the share of plants whose inputs are rays")
    chosen = parser.parse_args()
    counts = soak(chosen.steps, chosen.seed, chosen.episodes, chosen.rays)
    print(json.dumps(counts, indent=1))
    sys.exit(counts["violations while the event held"] > 0 or counts["control violations"] == 0)
