"""A million steps with rays, on random worlds: true violations, those while the event of every plan held, and, as a
control, those of the same learner without look-ahead.

``python -m tests.soak.rays [--steps 1000000] [--seed 0] [--episodes 2000]``
"""

from __future__ import annotations

import argparse
import json
import sys

import surefoot as sf
from tests.drawn_worlds import ray_world


def soak(steps: int, seed: int, episodes: int) -> dict[str, int]:
    """The counts; every tenth world is played once more by the control."""
    found = {"steps": 0, "violations": 0, "violations while the event held": 0, "worlds": 0, "events failed": 0}
    opened = {"control steps": 0, "control violations": 0, "steps at an intensity between 0 and 1": 0}
    while found["steps"] < steps:
        number = found["worlds"]
        world = ray_world(number, seed)
        run = sf.run(sf.LsviNew(world.problem), world, episodes, seed + number)
        broken, held, taken = int(run.violations.sum()), run.cost_event, episodes * (world.problem.horizon - 1)
        found["steps"] += taken
        found["violations"] += broken
        found["violations while the event held"] += broken * held
        found["events failed"] += not held
        found["worlds"] += 1
        if number % 10 == 0:
            blind = sf.run(sf.LsviNew(world.problem, ideas=["II", "III", "IV"]), world, episodes, seed + number)
            opened["control steps"] += taken
            opened["control violations"] += int(blind.violations.sum())
            print(json.dumps(found | opened), file=sys.stderr, flush=True)
        opened["steps at an intensity between 0 and 1"] += episodes * _partly(run)
    return found | opened


def _partly(run: sf.Run) -> int:
    """How many steps of the last policy are played at an intensity strictly between 0 and 1, somewhere."""
    assert run.plan is not None
    intensities = run.plan.intensities
    assert intensities is not None
    steps = zip(intensities, run.plan.values.action, strict=True)
    return sum(bool(((a := own[chosen[chosen >= 0]]) * (1.0 - a) > 0.0).any()) for own, chosen in steps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=2000, help="of each world")
    chosen = parser.parse_args()
    counts = soak(chosen.steps, chosen.seed, chosen.episodes)
    print(json.dumps(counts, indent=1))
    sys.exit(counts["violations while the event held"] > 0 or counts["control violations"] == 0)
