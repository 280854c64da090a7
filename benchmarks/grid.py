"""A small grid as plain tables, for two programs that cannot live in one environment: nothing but Python is needed.

Four by four squares, four moves. A move goes where it is meant to with probability 0.8, else one stays; one also stays
at a wall. Being in the far corner earns 1 per step. Two squares are hot, and arriving near them costs.
"""

from __future__ import annotations

SIDE = 4
STEPS = 8  # decisions per episode
START, GOAL = 0, SIDE * SIDE - 1
HOT = (5, 11)
STATES = range(SIDE * SIDE)
MOVES = {0: (-1, 0), 1: (0, -1), 2: (1, 0), 3: (0, 1)}  # up, left, down, right; up at the start bumps into the wall
GOES, STAYS = 0.8, 0.2


def meant(state: int, action: int) -> int:
    """Where a move leads if it succeeds."""
    (row, column), (down, right) = divmod(state, SIDE), MOVES[action]
    row, column = min(max(row + down, 0), SIDE - 1), min(max(column + right, 0), SIDE - 1)
    return row * SIDE + column


def kernels(state: int, action: int, after: int) -> tuple[float, float]:
    """The probability of arriving there if moves always succeeded, and if they never did."""
    return float(after == meant(state, action)), float(after == state)


def probability(state: int, action: int, after: int) -> float:
    goes, stays = kernels(state, action, after)
    return GOES * goes + STAYS * stays


def successors(state: int, action: int) -> list[int]:
    return sorted({state, meant(state, action)})


def reward(state: int, action: int) -> float:
    return float(state == GOAL)


def heat(state: int) -> float:
    """Σ 1/(1 + d²) over the hot squares, d their distance."""
    row, column = divmod(state, SIDE)
    return sum(1 / (1 + (row - hot // SIDE) ** 2 + (column - hot % SIDE) ** 2) for hot in HOT)
