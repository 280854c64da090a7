"""Your own gridworld: a transition table, a cost and a limit. Run: python examples/own_gridworld.py"""

import surefoot as sf

Square = tuple[int, int]

MARSH = ["0012345", "0123689", "0112379", "1011233"]  # how deep the mud is, in tenths of a metre
MOVES = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
GOAL = (3, 6)  # where peat is dug


class Marsh:
    """A move gets stuck with probability 1/5; every step at the goal pays."""

    def __init__(self) -> None:
        squares = [(row, column) for row in range(4) for column in range(7)]
        self.P = {square: {move: self.rows(square, move) for move in MOVES} for square in squares}

    def rows(self, square: Square, move: str) -> list[tuple[float, Square, float, bool]]:
        row, column = (min(max(i + d, 0), most) for i, d, most in zip(square, MOVES[move], GOAL, strict=True))
        return [(chance, to, float(to == GOAL), False) for chance, to in ((0.8, (row, column)), (0.2, square))]


def mud(square: Square, move: str, after: Square, reward: float) -> float:
    return int(MARSH[after[0]][after[1]]) / 10


world = sf.worlds.from_gymnasium(
    Marsh(), horizon=20, start=(0, 0), cost=mud, limit=sf.Limit("mud", bound=0.35, noise=0.1, norm=1.5)
)
run = sf.run(sf.LsviNew(world.problem), world, episodes=5000, seed=0)
print(run.promise)
print(f"peat per day: {run.fallback_value:.2f} at first, {run.last_value:.2f} now, {run.best_value:.2f} at best")
print(f"steps too deep: {run.violations.sum()}")
