"""Declares what is known about the oven and saves it as oven.json, for ``surefoot study new`` from any language.

    python examples/other_language/make_problem.py

Heat goes from 0 to 4, power from 0 to 2. A step adds the power, loses 1 of the heat if there is any, and sometimes
gains 1 more; how often is unknown. The wall's stress is a weighted sum of 1, heat and power with unknown weights;
when idle and cold it is 0.05. It must not exceed 0.6. Switching the oven off is known to be safe.
"""

from __future__ import annotations

from pathlib import Path

import surefoot as sf


def following(heat: int, power: int) -> list[int]:
    """Without and with the extra gain."""
    return [min(heat + power - min(heat, 1) + extra, 4) for extra in (0, 1)]


oven = sf.Problem.from_functions(
    horizon=6,
    start=0,
    actions=lambda h, heat: [0, 1, 2],
    successors=lambda h, heat, power: sorted(set(following(heat, power))),
    reward=lambda h, heat, power: heat / 4,
    cost_features=lambda h, heat, power, after: [1.0, after / 4, power / 2],
    transition_features=lambda h, heat, power, after: [float(after == each) for each in following(heat, power)],
    fallback=lambda h, heat: 0,
    anchor=lambda h: ([1.0, 0.0, 0.0], 0.05),
    limits=sf.Limit("stress", bound=0.6, noise=0.05, norm=0.6),
    stationary_costs=True,
    stationary_transitions=True,
)

if __name__ == "__main__":
    print(oven.save(Path(__file__).with_name("oven.json")))
