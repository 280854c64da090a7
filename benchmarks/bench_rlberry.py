"""(i) The cost of an episode: rlberry-scool's LSVI-UCB and ours, on the same small grid for as many episodes.

They are different algorithms. LSVI-UCB (Jin et al., 2020) knows of no limit and is free to step anywhere, learns one
weight per state and action from one-hot features, and goes through all its data after every episode, so that an episode
costs more the later it is. Ours keeps a limit, is given what moves can do, and plans again when its data have grown.
Both times hold each side's own simulator. One thread each.
"""

from __future__ import annotations

import numba

import surefoot as sf
from benchmarks import grid
from benchmarks.other_python import Unavailable, answer, python_of
from benchmarks.playing import played
from benchmarks.rows import Row, not_measured, row
from benchmarks.timing import show

EPISODES = (50, 100)


def world() -> sf.World:
    """The grid with a limit on heat. The fallback stays at the start, whose heat is known."""

    def features(state: int) -> list[float]:
        return [1.0, grid.heat(state)]

    weights = [0.1, 0.4]
    known = sum(w * x for w, x in zip(weights, features(grid.START), strict=True))
    problem = sf.Problem.from_functions(
        horizon=grid.STEPS + 1,
        start=grid.START,
        actions=lambda h, s: list(grid.MOVES),
        successors=lambda h, s, a: grid.successors(s, a),
        reward=lambda h, s, a: grid.reward(s, a),
        cost_features=lambda h, s, a, after: features(after),
        transition_features=lambda h, s, a, after: list(grid.kernels(s, a, after)),
        fallback=lambda h, s: 0 if s == grid.START else None,
        anchor=lambda h: (features(grid.START), known),
        limits=[sf.Limit("heat", bound=0.5, noise=0.05, norm=0.5)],
        stationary_costs=True,
        stationary_transitions=True,
    )
    return sf.World(problem, transition=[grid.GOES, grid.STAYS], cost=weights)


def run() -> list[Row]:
    name = (
        f"(i) a {grid.SIDE} × {grid.SIDE} grid, first {EPISODES[-1]} episodes: "
        "time per episode of LSVI-UCB (rlberry-scool; another algorithm, without safety) over ours"
    )
    try:
        theirs = answer(python_of("rlberry"), "rlberry_side.py", *map(str, EPISODES))
    except Unavailable as reason:
        return [not_measured(name, str(reason))]
    place = world()
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        played(sf.LsviNew(place.problem), place, 10)  # compiled, warm
        runs = [played(sf.LsviNew(place.problem), place, episodes) for episodes in EPISODES]
    finally:
        numba.set_num_threads(before)
    ours = [each.seconds / episodes for each, episodes in zip(runs, EPISODES, strict=True)]
    return [
        row(
            name,
            theirs[-1] / ours[-1],
            ours_seconds=ours[-1],
            theirs_seconds=theirs[-1],
            ours_by_episodes=dict(zip(map(str, EPISODES), ours, strict=True)),
            theirs_by_episodes=dict(zip(map(str, EPISODES), theirs, strict=True)),
            violations=int(runs[-1].violations.sum()),
        )
    ]


if __name__ == "__main__":
    show(run())
