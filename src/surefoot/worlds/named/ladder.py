"""ladder: a generated world of any size, star-convex and full of traps, for measuring speed.

**State.** One of S places, the same in every step: most are landings, every eighth is a trap.
**Action.** A rung k = 0 … A−1 of the ladder there, of height α = k/(A−1).

**Known.** Rung k of a landing leads to one of b landings; the highest rung to one of b−1 landings, or to a trap. Four
known kernels give the probabilities. A landing pays 0.1 + 0.5·α·w, w ∈ [1/2, 1] its own, the highest rung 0.4 more;
a trap always pays 0.5. Standing on rung 0 strains by exactly 0.1 (the anchor).

**Hidden.** The weights with which the kernels mix, P(s'|s,k) = Σ_i μ_i P_i(s'|s,k); and γ, d numbers. Each triplet has
a direction y ∈ R^{d−1} of length one, and

    strain = ⟨γ, (1, α·y)⟩ on a landing        ⟨γ, (1, (2+α)·y)⟩ in a trap        γ = (0.1, 0.6·g),  ‖g‖ = 1

where ⟨g, y⟩ differs from triplet to triplet between 0.4 and 0.9. **Limit.** strain ≤ 0.5, measured with noise of scale
0.1; ‖γ‖ ≤ 1 is declared, 0.61 is true. **Fallback.** Rung 0 everywhere: the same feature x⁰ = (1, 0) at every landing,
so it never meets a trap and learns nothing new.

**Star-convex.** All rungs of a landing share their directions: with a feature x there are x⁰ + (j/k)(x − x⁰) for all
j ≤ k, in the same state (ass:starconvexity, spec 7.15). So learning can start: the declared norm alone certifies every
rung with α ≤ 0.4, and measuring it tells about the rungs above. Rungs up to α = 0.667/⟨g, y⟩ keep the limit.

**Why look-ahead matters.** On about half of the landings the highest rung keeps the limit, and it pays most. It may
lead to a trap, where the strain is always at least 0.1 + 2·0.6·0.4 = 0.58, unless the last decision was made before.

**Where the numbers come from.** They are drawn from ``seed``, all at once: 1e6 triplets take seconds, and a quarter
more memory than the arrays themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import one_of, whole
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.streams import stream
from surefoot.worlds.world import World

__all__ = ["SIZES", "ladder"]

SIZES: dict[str, tuple[int, int, int]] = {  # size -> (triplets per step, features, horizon)
    "testing": (1_000, 4, 5),
    "1e4": (10_000, 16, 10),
    "1e5": (100_000, 32, 10),
    "1e6": (1_000_000, 64, 10),
}
FALLBACK_STRAIN, SLOPE = 0.1, 0.6  # γ = (FALLBACK_STRAIN, SLOPE·g)
STEEPNESS = (0.4, 0.8)  # range of ⟨g, y⟩ from state to state; from successor to successor, up to SPREAD more
SPREAD = 0.1
KERNEL_WEIGHTS = (0.4, 0.3, 0.2, 0.1)  # μ
LIMIT = Limit("strain", bound=0.5, noise=0.1, norm=1.0)
TRAP_EVERY = 8
TRAP_HEIGHT = 2.0  # of the lowest rung in a trap


@dataclass(frozen=True)
class _Shape:
    """How large a step is: S states, the traps last; A rungs; b successors of each."""

    states: int
    rungs: int
    branching: int

    @property
    def landings(self) -> int:
        return self.states - self.states // TRAP_EVERY

    @property
    def pairs(self) -> int:
        return self.states * self.rungs

    def heights(self) -> FloatArray:
        """(S, A) by what the directions of a state are multiplied."""
        result = np.tile(np.arange(self.rungs) / (self.rungs - 1), (self.states, 1))
        result[self.landings :] += TRAP_HEIGHT
        return result


def ladder(
    size: str = "testing",
    *,
    triplets: int | None = None,
    features: int | None = None,
    horizon: int | None = None,
    branching: int = 5,
    rungs: int = 8,
    shared: bool = True,
    stationary: bool = False,
    seed: int = 0,
    noise: str | None = None,
) -> World:
    """The ladder; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"1e4"``, ``"1e5"`` or ``"1e6"``: the usual numbers.
        triplets: per step, instead of the usual number, up to a state more or less.
        features: d, the length of the cost features, at least 3.
        horizon: number of steps.
        branching: b, successors of each action.
        rungs: A, actions of each state.
        shared: one set of arrays for all steps; otherwise each step is drawn on its own, and has its own memory.
        stationary: declare that neither γ nor μ changes from step to step, which is true.
        seed: of everything that is drawn.
        noise: the kind of measurement noise, see :class:`~surefoot.World`.
    """
    one_of("size", SIZES, size, "Choose from")
    usual_triplets, usual_features, usual_horizon = SIZES[size]
    horizon = whole("horizon", usual_horizon if horizon is None else horizon, 2)
    dim = whole("features", usual_features if features is None else features, 3)
    rungs, branching = whole("rungs", rungs, 2), whole("branching", branching, 2)
    wanted = whole("triplets", usual_triplets if triplets is None else triplets, 1)
    shape = _Shape(round(wanted / (rungs * branching)), rungs, branching)
    least = max(branching, TRAP_EVERY)  # so many landings to lead to, and a trap
    if shape.states < least + least // (TRAP_EVERY - 1):
        raise InvalidInput(
            "triplets are too few for a ladder",
            got=f"{wanted}, with {rungs} rungs and {branching} successors each: {shape.states} states",
            fix=f"Ask for {rungs * branching * (least + least // (TRAP_EVERY - 1))} or more.",
        )
    seed = whole("seed", seed, 0)
    slope = stream(seed, "ladder slope").standard_normal(dim - 1)
    slope /= np.linalg.norm(slope)
    names = ["ladder"] if shared else [f"ladder {h}" for h in range(horizon - 1)]
    drawn = [_layer(shape, slope, stream(seed, name)) for name in names]
    arrays: dict[str, Any] = drawn[0] if shared else {key: [layer[key] for layer in drawn] for key in drawn[0]}
    problem = Problem.from_arrays(
        horizon=horizon,
        start=0,
        **arrays,
        terminal_reward=np.zeros(shape.states),
        anchor=lambda h: (np.eye(1, dim)[0], FALLBACK_STRAIN),
        limits=LIMIT,
        stationary_costs=stationary,
        stationary_transitions=stationary,
    )
    problem = replace(problem, seals=())
    del drawn, arrays  # nobody else holds them now
    gamma = np.concatenate([[FALLBACK_STRAIN], SLOPE * slope])
    return World(problem, transition=KERNEL_WEIGHTS, cost=gamma, noise=noise)


def _layer(shape: _Shape, slope: FloatArray, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The arrays of one step, as :meth:`~surefoot.Problem.from_arrays` takes them."""
    return {
        "state_ptr": np.arange(shape.states + 1) * shape.rungs,
        "pair_ptr": np.arange(shape.pairs + 1) * shape.branching,
        "successors": _successors(shape, rng).reshape(-1),
        "reward": _rewards(shape, rng).reshape(-1),
        "cost_features": _cost_features(shape, slope, rng).reshape(-1, len(slope) + 1),
        "transition_features": _kernels(shape, rng).reshape(-1, len(KERNEL_WEIGHTS)),
        "fallback": np.where(np.arange(shape.states) < shape.landings, 0, -1),
    }


def _successors(shape: _Shape, rng: np.random.Generator) -> NDArray[np.int32]:
    """(S, A, b) neighbours of a landing drawn at random; the last of the highest rung is a trap."""
    found = np.empty((shape.states, shape.rungs, shape.branching), np.int32)
    found[:] = rng.integers(shape.landings, size=(shape.states, shape.rungs, 1))
    found += np.arange(shape.branching, dtype=np.int32)
    found %= np.int32(shape.landings)
    found[:, -1, -1] = rng.integers(shape.landings, shape.states, size=shape.states)
    return found


def _rewards(shape: _Shape, rng: np.random.Generator) -> FloatArray:
    """(S, A)"""
    richness = rng.uniform(0.5, 1.0, size=(shape.states, 1))
    result: FloatArray = 0.1 + 0.5 * shape.heights() * richness
    result[:, -1] += 0.4
    result[shape.landings :] = 0.5
    return result


def _cost_features(shape: _Shape, slope: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(S, A, b, d) the features (1, height·y), y = cos·g + sin·u with u ⊥ g of length one, its own in each state."""
    steepness = rng.uniform(*STEEPNESS, size=(shape.states, 1, 1))
    steepness = steepness + rng.uniform(0.0, SPREAD, size=(shape.states, shape.branching, 1))
    aside = rng.standard_normal((shape.states, 1, len(slope)))
    aside -= (aside @ slope)[..., None] * slope
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    directions = steepness * slope + np.sqrt(1.0 - steepness**2) * aside
    result = np.empty((shape.states, shape.rungs, shape.branching, len(slope) + 1))
    result[..., 0] = 1.0
    np.multiply(shape.heights()[:, :, None, None], directions[:, None], out=result[..., 1:])
    return result


def _kernels(shape: _Shape, rng: np.random.Generator) -> FloatArray:
    """(S, A, b, 4) the probability of each successor under each kernel."""
    result = rng.standard_exponential((shape.states, shape.rungs, shape.branching, len(KERNEL_WEIGHTS)))
    result /= result.sum(axis=2, keepdims=True)
    return result
