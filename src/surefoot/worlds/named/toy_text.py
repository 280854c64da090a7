"""toy-text: Gymnasium's small grids, with holes, cliffs and wrong stops as limits instead of penalties.

All are made from the environment's own transition table by :func:`surefoot.worlds.from_gymnasium`, which explains what
happens to states, rewards and probabilities. Each has one cost, linear in three features:

======================== ============================================ ================ ============ =======
world                    features x of a step                         γ, hidden        limit, norm  horizon
======================== ============================================ ================ ============ =======
frozen-lake-4x4          sag of the ice: (1, holes nearby, in a hole) (0.1, 0.2, 0.5)  0.60, 1.0    10
frozen-lake-8x8          the same                                     the same         the same     20
cliff-walking            dizziness: (1, cliff nearby, a fall)         (0.1, 0.3, 0.5)  0.45, 1.0    20
cliff-walking-slippery   the same                                     the same         the same     60
taxi                     complaints: (1, a stop / 2, a wrong stop)    (0.1, 0.2, 0.6)  0.50, 0.7    14
======================== ============================================ ================ ============ =======

"Nearby" is Σ 1/(1 + d²) over all holes or all squares of the cliff, d their distance from the square arrived at.

**State, action.** The environment's own. **Known.** The map, and with it every feature, where each action may lead, and
the rewards. **Hidden.** γ; and where moves slip, how likely: a third to either side, as in Gymnasium. The known kernels
are "to the one side", "as meant" and "to the other side". **Limit.** As in the table, measured with noise of scale 0.1.
**Fallback.** The most cautious policy: it stays in the corner of the lake, retreats from the cliff to the far corner,
and stops the taxi nowhere. The costs of staying in the lake's corner and of driving are known exactly (the anchors).

**The lake.** Every hole sags by 0.86 or more, every other square by 0.57 or less. At first only squares with few holes
nearby are certified, and no way across; a few steps along the shore tell how the sag grows. Moves do not slip here.
With ``slippery=True`` no safe policy crosses the 4x4 lake, and with ``start=4``, below the usual start, the world is
refused: most squares are doomed before any ice gives way, so look-ahead matters. (In the worlds of the table the next
step alone decides.)

**The cliff.** It is the textbook's (Sutton and Barto, example 6.6): the shortest way runs along the edge, the safer one
a row above. Along the edge dizziness is 0.476 or more, a row above 0.409 or less. Where moves slip, squares along the
edge have no safe action, the row above cannot be walked along, and the top row can.

**The taxi.** It starts in the middle, fetches the passenger at Y and takes it to R. Picking up or dropping off where
that is not allowed brings complaints of 0.8. ``slippery=True`` is Gymnasium's rain.

**Where the numbers come from.** Tables, maps, rewards and slipping are Gymnasium's. γ, limits and norms are invented,
so that holes, falls and wrong stops break the limit, the fallback does not, and the declared norm allows a first step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.checks import one_of
from surefoot.model.arrays import IntArray
from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.worlds.adapters import from_gymnasium
from surefoot.worlds.world import World

__all__ = ["NAMES", "toy_text"]

Row = tuple[int, int, int, float]  # state, action, next state, reward
Features = tuple[float, float, float]
STOPS = (4, 5)  # the taxi's actions that pick up and drop off
TAXI_START = 248  # taxi in the middle (2, 2), passenger at Y, destination R
FALL, WRONG_STOP = -100.0, -10.0  # Gymnasium's penalties, by which the table tells


@dataclass(frozen=True)
class _Game:
    """One environment and what is watched in it."""

    make: Callable[[bool], Any]  # of whether moves slip: the environment
    features: Callable[[Any], Callable[..., Features]]  # of the environment
    watched: str
    gamma: Features
    bound: float
    norm: float
    horizon: int
    slippery: bool = False
    start: int | None = None
    anchor: Row | None = None  # a row of the table whose cost is known


def toy_text(
    size: str = "cliff-walking",
    *,
    horizon: int | None = None,
    slippery: bool | None = None,
    start: int | list[int] | None = None,
    noise_scale: float = 0.1,
    noise: str | None = None,
) -> World:
    """One of Gymnasium's toy-text environments, turned into a world as the module docstring describes.

    Args:
        size: which: ``"frozen-lake-4x4"``, ``"frozen-lake-8x8"``, ``"cliff-walking"``, ``"cliff-walking-slippery"`` or
            ``"taxi"``.
        horizon: number of steps, instead of the usual one.
        slippery: whether moves can slip to a side, instead of the usual.
        start: a state of the environment or a list of them, instead of the usual one.
        noise_scale: σ of what measures the cost.
        noise: the kind of its noise, see :class:`~surefoot.World`.
    """
    game = NAMES[one_of("environment", NAMES, size, "Choose from")]
    env = game.make(game.slippery if slippery is None else slippery)
    features = game.features(env)

    def cost(*row: Label) -> float:
        return float(np.dot(game.gamma, features(*row)))

    world = from_gymnasium(
        env,
        game.horizon if horizon is None else horizon,
        cost=cost,
        cost_features=features,
        limit=Limit(game.watched, bound=game.bound, noise=noise_scale, norm=game.norm),
        start=game.start if start is None else start,
        anchor=None if game.anchor is None else (features(*game.anchor), cost(*game.anchor)),
        noise=noise,
    )
    return World(world.problem, world.transition, game.gamma, noise)  # γ itself: the adapter's is a fit


def _nearby(square: tuple[int, int], others: IntArray) -> float:
    """Σ 1/(1 + d²) over the others, (n, 2)."""
    return float(np.sum(1.0 / (1.0 + ((others - np.array(square)) ** 2).sum(axis=1))))


def _lake(size: str) -> Callable[[bool], Any]:
    def make(slippery: bool) -> Any:
        from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

        return FrozenLakeEnv(map_name=size, is_slippery=slippery)

    return make


def _sag(env: Any) -> Callable[..., Features]:
    holes = np.argwhere(env.desc == b"H")

    def features(state: int, action: int, after: int, reward: float) -> Features:
        square = divmod(after, env.desc.shape[1])
        return 1.0, _nearby(square, holes), float(env.desc[square] == b"H")

    return features


def _cliff(slippery: bool) -> Any:
    from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv

    return CliffWalkingEnv(is_slippery=slippery) if slippery else CliffWalkingEnv()


def _dizziness(env: Any) -> Callable[..., Features]:
    rows, columns = env.shape
    edge = np.array([(rows - 1, column) for column in range(1, columns - 1)])  # between start and goal

    def features(state: int, action: int, after: int, reward: float) -> Features:
        return 1.0, _nearby(divmod(after, columns), edge), float(reward == FALL)

    return features


def _taxi(slippery: bool) -> Any:
    from gymnasium.envs.toy_text.taxi import TaxiEnv

    return TaxiEnv(is_rainy=True) if slippery else TaxiEnv()


def _complaints(env: Any) -> Callable[..., Features]:
    def features(state: int, action: int, after: int, reward: float) -> Features:
        return 1.0, 0.5 * (action in STOPS), float(reward == WRONG_STOP)

    return features


_LAKE = _Game(
    make=_lake("4x4"),
    features=_sag,
    watched="sag",
    gamma=(0.1, 0.2, 0.5),
    bound=0.6,
    norm=1.0,
    horizon=10,
    anchor=(0, 0, 0, 0.0),  # staying in the corner
)
_CLIFF = _Game(
    make=_cliff, features=_dizziness, watched="dizziness", gamma=(0.1, 0.3, 0.5), bound=0.45, norm=1.0, horizon=20
)

NAMES: dict[str, _Game] = {
    "frozen-lake-4x4": _LAKE,
    "frozen-lake-8x8": replace(_LAKE, make=_lake("8x8"), horizon=20),
    "cliff-walking": _CLIFF,
    "cliff-walking-slippery": replace(_CLIFF, slippery=True, horizon=60),
    "taxi": _Game(
        make=_taxi,
        features=_complaints,
        watched="complaints",
        gamma=(0.1, 0.2, 0.6),
        bound=0.5,
        norm=0.7,
        horizon=14,
        start=TAXI_START,
        anchor=(TAXI_START, 0, TAXI_START, -1.0),  # driving
    ),
}
