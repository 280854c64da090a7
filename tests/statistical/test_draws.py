"""The same noise twice breaks the bounds, and runs that follow each other do not draw it twice."""

from __future__ import annotations

import pytest

import surefoot as sf

TRIALS, CALLS, EPISODES = 8, 60, 10

pytestmark = [pytest.mark.statistical, pytest.mark.slow]


def lost(seed: int, replayed: bool) -> int:
    """In how many of the trials some bound failed."""
    world, count = sf.worlds.make("thermal/testing"), 0
    for trial in range(TRIALS):
        agent = sf.LsviNew(world.problem, replan_growth=0.5)
        held = sf.run(agent, world, EPISODES, TRIALS * seed + trial).cost_event
        for _ in range(CALLS - 1):
            if replayed:
                agent.draws = None  # as if it had never been in a run
                held &= sf.run(agent, world, EPISODES, TRIALS * seed + trial).cost_event
            else:
                held &= sf.run(agent, world, EPISODES).cost_event
        count += not held
    return count


def test_bounds_hold_over_runs_in_a_row(seed: int) -> None:
    assert lost(seed, replayed=False) == 0


def test_replayed_noise_would_break_them(seed: int) -> None:
    assert lost(seed, replayed=True) >= TRIALS // 2
