"""A million steps inside the shield, over worlds, policies and seeds: how many broke a limit?

    python -m tests.rl.million [steps]      # needs no torch; some minutes

The policies are those of tests/shielded.py, none of which cares for limits but the masked one. Each world's share is
split over policies and seeds. What is counted is the truth, and a run counts only as far as its confidence event held,
which is said, too. The last column is the same without the shield, over a twentieth of the steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import surefoot as sf
from tests.shielded import POLICIES, Watched, play

WORLDS = (
    "thermal/testing",
    "driving/testing",
    "rover/testing",
    "power/testing",
    "figure1",
    "toy-text/cliff-walking",
    "toy-text/frozen-lake-4x4",
    "lower-bound/1",
    "ablation/look-ahead",
    "ladder/testing",
)
SEEDS = (0, 1, 2, 3, 4)
RESULTS = Path(__file__).with_name("million.json")


def main(steps: int) -> None:
    each = steps // (len(WORLDS) * len(POLICIES) * len(SEEDS)) + 1
    rows = {}
    for name in WORLDS:
        world, row = sf.worlds.make(name), {"steps": 0, "violations": 0, "events": 0, "runs": 0, "bare": 0}
        for kind in POLICIES.values():
            for seed in SEEDS:
                learner, witness = Watched(world), sf.exact.Witness(world.env())
                play(sf.shield(witness, learner), kind(world, seed), each, seed)
                bare = sf.exact.Witness(world.env())
                play(bare, kind(world, seed), each // 20, seed)
                row["steps"] += witness.steps
                row["violations"] += witness.violations
                row["events"] += learner.event
                row["runs"] += 1
                row["bare"] += bare.violations
        rows[name] = row
        print(name, row, flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print({key: sum(row[key] for row in rows.values()) for key in ("steps", "violations", "events", "runs", "bare")})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
