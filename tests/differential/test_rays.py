"""Rays in closed form against a literal transcription that looks at intensities one after the other (spec 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from tests.differential.compare import Comparison, compare
from tests.differential.test_reference import ridges
from tests.drawn_worlds import center_of, ray_problem, ray_tables
from tests.reference.generate import random_history
from tests.reference.history import feed
from tests.reference.rays import RayReference, right_end, with_rays_at

BATCHES, BATCH = 3, 8  # a third of them by default, all with --thorough
EPISODES, P = 20, 0.05
CLOSE = 1e-6  # of intensities: a bound that touches its limit in passing has an ill-conditioned root


def both(number: int, seed: int) -> tuple[sf.LsviNew, RayReference]:
    tables = ray_tables(number, seed)
    centre = {(h, s): center_of(tables, h, s) for h, s in tables.actions}
    chosen: dict[str, Any] = {"optimism": (1.0, 0.1)[number % 2], "replan_growth": 1e9, "explore": (0.1, 0.02, 0.02)}
    chosen |= ridges(number)
    agent = sf.LsviNew(ray_problem(tables), P, **chosen)
    return agent, RayReference(tables, centre, P, **chosen)


def same_intensities(agent: sf.LsviNew, reference: RayReference, tally: Comparison) -> int:
    """How many rays are opened partly; and the certified sets and values with every ray at its intensity."""
    plan, partly = agent.plan, 0
    assert plan.opened is not None
    close = True
    for pair in reference.rays():
        at = plan.problem.pair_index(*pair)
        mine = plan.opened.intensities[pair[0]][at], plan.opened.hoped_intensities[pair[0]][at]
        theirs = reference.alpha[pair], reference.hoped[pair]
        if not np.allclose(mine, theirs, rtol=0.0, atol=CLOSE):
            tally.faults.append(f"{pair}: opened to {mine} and {theirs}")
        close &= bool(np.allclose(mine, theirs, rtol=0.0, atol=1e-10))
        partly += 0.0 < theirs[0] < 1.0
    if close:  # else rounding in an intensity shows in bounds and values
        compare(reference.t, plan, reference, tally)
    return partly


def test_intensities_certified_sets_and_values_are_those_of_the_reference(batch: int, seed: int) -> None:
    tally, partly = Comparison(), 0
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        agent, reference = both(number, seed)
        rng = np.random.default_rng([seed, number, 9])
        partly += same_intensities(agent, reference, tally)
        for episode in random_history(reference.t, reference, EPISODES, rng):
            feed(agent, episode)  # at the intensities of the first plan
        operator(agent, reference, rng)
        agent.replan()
        reference._make_plan()
        partly += same_intensities(agent, reference, tally)
    assert not tally.faults, (len(tally.faults), tally.faults[:10])
    assert tally.pairs > 100
    assert partly > 10


def operator(agent: sf.LsviNew, reference: RayReference, rng: np.random.Generator) -> None:
    """Someone plays some ray of a start at an intensity of their own."""
    rays = [pair for pair in reference.rays() if pair[0] == 0 and pair[1] in reference.full.starts]
    if not rays:
        return
    h, s, a = rays[int(rng.integers(len(rays)))]
    alpha = float(rng.random())
    there = with_rays_at(reference.full, reference.centre, {(h, s, a): alpha})
    s2, cost = there.successors[h, s, a][0], there.cost((h, s, a, 0))
    agent.begin_episode(s)
    reference.begin_episode(s)
    agent.observe(h, s, a, s2, cost, intensity=alpha)
    reference.observe_at(h, s, a, s2, cost, alpha)
    agent.abort_episode()


def test_the_reference_finds_an_end_that_is_known_by_hand() -> None:
    assert right_end(lambda a: 0.2 + a, 0.6) == pytest.approx(0.4, abs=1e-12)
    assert right_end(lambda a: (a - 0.5) ** 2, 0.01) == pytest.approx(0.6, abs=1e-9)
    assert right_end(lambda a: (a - 0.5) ** 2 + 1.0, 0.01) is None
