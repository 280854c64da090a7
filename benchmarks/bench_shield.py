"""What a shield adds to a step of our environments, plans aside: microseconds, and beside the environment's own time.

The learner never plans again here; everything else a shield does is in it: following, masks, what it says in ``info``,
and counting the measurement. Both walk the same episodes, and take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show

STEPS = 5_000


def walk(env: Any, steps: int) -> Callable[[], None]:
    """Plays action 0, the fallback's, for so many steps."""

    def episodes() -> None:
        done = 0
        while done < steps:
            env.reset()
            over = False
            while not over:
                over = env.step(0)[2]
                done += 1

    return episodes


def run(steps: int = STEPS) -> list[Row]:
    rows: list[Row] = []
    for name in ("thermal/small", "driving/small"):
        world = sf.worlds.make(name)
        learner = sf.LsviNew(world.problem, replan_growth=1e9)
        bare, inside = best_of(12, walk(world.env(), steps), walk(sf.shield(world.env(), learner), steps))
        added = 1e6 * (inside - bare) / steps
        rows += [
            row(
                f"a shield on {name}: microseconds per step, beside the environment's own and plans aside",
                added,
                at_most=10.0,
            ),
            row(
                f"a shield on {name}: a step with it over one without",
                inside / bare,
                bare_us=1e6 * bare / steps,
                inside_us=1e6 * inside / steps,
            ),
        ]
    return rows


if __name__ == "__main__":
    show(run())
