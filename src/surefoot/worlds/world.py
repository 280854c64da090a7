"""A world: a problem together with the truth, which its learner does not know.

    P_h(s'|s,a) = ⟨μ_h, φ(h,s,a,s')⟩        cost_j(h,s,a,s') = ⟨γ_{h,j}, x(h,s,a,s')⟩ + deviation

(spec 1 and 2), or ⟨γ_{h,j}, x(h,s,a)⟩ if the cost does not depend on s'. If an action has several cost rows, all of
them must keep the limits, and entering a forbidden state is a violation (spec 9). Everything is computed and checked in
the constructor; a World never changes. Agents get ``world.problem`` and nothing else.

**Mismatch.** :func:`mismatched` makes a truth that the linear model misses by ζ, where it hurts most.

    cost = ⟨γ, x⟩ + η,    η = −ζ  where ⟨γ, x⟩ ≤ bound − ζ, and on all triplets of the fallback
                          η = +ζ  elsewhere: all of these truly break the limit
                          η =  0  at the anchor, whose cost was declared

So everything that a learner measures while it is safe reads ζ too low: where ⟨γ, x⟩ lies within ζ of the bound, the
line through it predicts a cost below the bound, but the true one is above it. With ``Limit(misspecification=ζ)`` the
bounds of spec 3 are wide enough for that; without it, no guarantee holds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.checks import of_kind, one_of
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.features import rows_equal_to, table_times
from surefoot.model.problem import Problem
from surefoot.model.rays import refuse_rays
from surefoot.threads import one_blas_thread
from surefoot.worlds import truth_rules as checks
from surefoot.worlds import truth_tables as tables
from surefoot.worlds.sampler import Sampler
from surefoot.worlds.truth_tables import ranges

if TYPE_CHECKING:
    from surefoot.worlds.env import SurefootEnv

__all__ = ["Sampler", "World", "mismatched"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class World:
    """A :class:`~surefoot.Problem` plus hidden parameters; every array is read-only.

    Examples:
        >>> thermal = sf.worlds.make("thermal/testing")
        >>> world = sf.World(thermal.problem, transition=thermal.transition, cost=thermal.cost_parameters)
        >>> world.probabilities[0].round(2)[:3]  # the true probabilities of the first three triplets
        array([0.74, 0.26, 0.68])
        >>> observation, info = world.env().reset(seed=0)  # a Gymnasium environment
        >>> info["state"], info["limits"]
        (0, array([0.6]))
    """

    problem: Problem
    transition: FloatArray  # (H-1, dp) μ
    cost_parameters: FloatArray  # (H, m, dc) γ; the last entry counts only with a terminal cost
    deviation: tuple[FloatArray, ...] | None  # how much true costs differ from ⟨γ, x⟩, as given
    probabilities: tuple[FloatArray, ...]  # H-1 of (E,), ≥ 0, one in sum over each pair
    cumulative: tuple[FloatArray, ...]  # H-1 of (E,), within each pair, see tables.cumulative_tables
    costs: tuple[FloatArray, ...]  # H-1 of (R, m), one per cost row
    terminal_costs: FloatArray | None  # (S, m), -inf in states without a cost; None without any
    noise: str  # "gaussian", "uniform" or "rademacher", with each limit's scale
    misspecified_beyond_declaration: bool  # some deviation exceeds its limit's misspecification
    name: str | None = None  # its id in the registry, or its file's name; used by pictures and titles only
    exact_digest: str | None = None  # of the world with exact features, where those of the problem are rounded
    at_zero: tuple[tables.AtZero, ...] = ()  # H-1: the truth of rays at intensity 0 (spec 9); none without rays

    def __init__(
        self,
        problem: Problem,
        transition: ArrayLike,
        cost: ArrayLike,
        noise: str | None = None,
        deviation: Sequence[ArrayLike] | None = None,
    ) -> None:
        """Compute the truth; refuse one that the problem's declarations rule out.

        Args:
            problem: what is declared.
            transition: μ, (H-1, dp), or (dp,) for all steps.
            cost: γ, (H, m, dc), or (m, dc) for all steps; with one limit also (dc,).
            noise: kind of measurement noise: ``"gaussian"`` (the default), ``"uniform"`` or ``"rademacher"``.
            deviation: how much true costs differ from ⟨γ, x⟩: an (R, m) array per decision step, a row for each row
                of the cost features, and optionally (S, m) for the terminal states. It may exceed the declared
                misspecification; ``misspecified_beyond_declaration`` then says so, and no guarantee holds.
        """
        fix = "For a Plant: plant.simulate(step), or plant.problem for its cells alone."
        of_kind(problem, Problem, "a world needs a Problem", fix)
        if problem.growth is not None and deviation is not None:
            raise InvalidInput(
                "a world that grows must be linear in its features", got="deviation, which has an entry per row"
            )
        mu = checks.transition_parameters(problem, transition)
        gamma = checks.cost_parameters(problem, cost)
        extra = None if deviation is None else checks.deviations(problem, deviation)
        if extra is not None:
            refuse_rays(problem, "a world whose costs deviate from their line")
        with one_blas_thread():  # so that a world has the same bits in every process
            probabilities = tables.probability_tables(problem, mu)
            costs, terminal_costs = tables.cost_tables(problem, gamma, extra)
            at_zero = tables.rays_at_zero(problem, mu, gamma)
        checks.check_anchor_costs(problem, gamma)
        checks.check_fallback(problem, probabilities, costs, terminal_costs)
        self._set(
            problem=problem,
            transition=mu,
            cost_parameters=gamma,
            deviation=extra,
            probabilities=probabilities,
            cumulative=tables.cumulative_tables(problem.graph.layers, probabilities),
            costs=costs,
            terminal_costs=terminal_costs,
            noise=one_of("noise", checks.NOISES, "gaussian" if noise is None else noise, "Choose from"),
            misspecified_beyond_declaration=(extra is not None and checks.beyond_declaration(problem, extra)),
            at_zero=at_zero,
        )

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _twin(self, **changed: Any) -> World:
        """The same world with some fields changed, sharing all others; what was computed from them is not kept."""
        twin = object.__new__(World)
        twin.__dict__.update(self.__dict__)
        twin._set(**changed)
        if set(changed) != {"name"}:
            for computed in ("digest", "arrival_costs"):
                twin.__dict__.pop(computed, None)
        return twin

    def named(self, name: str) -> World:
        """The same world, sharing every array, under another name."""
        return self._twin(name=name)

    def on(self, problem: Problem) -> World:
        """The same truth for a problem that has grown out of this one, or is the whole of it (spec 9)."""
        if problem.first is not self.problem.first:
            raise InvalidInput("a world follows its own problem as it grows", got="another problem")
        return World(problem, self.transition, self.cost_parameters, self.noise)._twin(name=self.name)

    def at(self, intensity: float | Sequence[FloatArray]) -> World:
        """The same truth behind :meth:`surefoot.Problem.at`: an ordinary world, every ray at an intensity (spec 9).

        Examples:
            >>> world = sf.worlds.make("dosing/testing")
            >>> half = world.at(0.5)
            >>> bool(np.allclose(half.costs[0], (world.at(0.0).costs[0] + world.at(1.0).costs[0]) / 2))
            True
        """
        if not self.problem.has_rays:
            return self
        intensities = self.problem.intensities(intensity)
        problem = self.problem.at(intensities)
        probabilities, costs = tables.at_intensities(
            self.problem, self.at_zero, self.probabilities, self.costs, intensities
        )
        return self._twin(
            problem=problem,
            probabilities=probabilities,
            cumulative=tables.cumulative_tables(problem.graph.layers, probabilities),
            costs=costs,
            at_zero=(),
        )

    def stored_in_float32(self) -> World:
        """Exactly the same truth behind :meth:`surefoot.Problem.stored_in_float32`.

        Probabilities and costs are those of the exact features. ``deviation`` is the error of the rounded ones, within
        what the problem now declares.
        """
        problem = self.problem.stored_in_float32()
        if problem is self.problem:
            return self
        deviation = tables.rounding_deviations(self.problem, problem, self.cost_parameters, self.deviation)
        return self._twin(
            problem=problem,
            deviation=deviation,
            misspecified_beyond_declaration=checks.beyond_declaration(problem, deviation),
            exact_digest=self.digest,  # the probabilities follow from the exact features alone
        )

    @cached_property
    def arrival_costs(self) -> tuple[FloatArray, ...]:
        """H-1 arrays (E, m): the costs that decide whether an edge is safe, ∞ into forbidden states (spec 9)."""
        return tables.arrival_costs(self.problem, self.costs)

    @cached_property
    def digest(self) -> str:
        """A sha256, in hex, of the problem and its truth; the same for equal worlds."""
        known = hashlib.sha256(f"{self.problem.first.digest} {self.noise}".encode())
        for array in (self.transition, self.cost_parameters, *(self.deviation or ())):
            known.update(f" {array.shape} ".encode())
            known.update(np.ascontiguousarray(array, "<f8").tobytes())
        if self.exact_digest is not None:
            known.update(f" {self.exact_digest}".encode())
        return known.hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write problem and truth to a file, ``.json`` or ``.npz``, exactly; returns the path.

        Examples:
            >>> world = sf.worlds.make("thermal/testing")
            >>> sf.World.load(world.save("truth.json")).digest == world.digest
            True
        """
        from surefoot.worlds.files import save_world

        return save_world(self, Path(path))

    @staticmethod
    def load(path: str | Path, problem: Problem | None = None) -> World:
        """A world from its file; pass ``problem`` if the file holds only the truth (:mod:`…worlds.files`)."""
        from surefoot.worlds.files import load_world

        return load_world(Path(path), problem)

    def sampler(self, seed: int) -> Sampler:
        """A source of transitions and noisy measurements; the same seed gives the same draws."""
        return Sampler(self, seed)

    def env(self, render_mode: str | None = None, **options: str) -> SurefootEnv:
        """The world as a Gymnasium environment; its options are in :mod:`surefoot.worlds.env`."""
        from surefoot.worlds.env import SurefootEnv

        return SurefootEnv(self, render_mode, **options)

    def __repr__(self) -> str:
        return f"World({self.problem!r}, noise={self.noise!r})"


def check_world(world: object, who: str) -> None:
    """Refuse what is no World, above all a Problem. ``who`` needs one."""
    of_kind(
        world, World, f"{who} needs a World", "A Problem has no truth: sf.World(problem, transition=…, cost=…) has."
    )


def mismatched(world: World, mismatch: float, declared: bool) -> World:
    """The same world with true costs that miss the line by ``mismatch``, as the module docstring explains.

    ``declared``: every limit then declares so much more misspecification; if not, none declares any, and no guarantee
    holds. Terminal costs stay as they are.
    """
    if isinstance(mismatch, bool) or not (isinstance(mismatch, (int, float)) and 0.0 <= mismatch < math.inf):
        raise InvalidInput("mismatch must be a number, zero or more", got=repr(mismatch))
    if mismatch == 0.0 and (declared or world.deviation is None):
        return world
    if mismatch > 0.0 and world.deviation is not None:
        raise InvalidInput("the truth of this world deviates by itself", got=f"mismatch {mismatch!r}")
    limits = (
        replace(each, misspecification=each.misspecification + mismatch if declared else 0.0)
        for each in world.problem.limits
    )
    problem = replace(world.problem, limits=tuple(limits))
    off = _deviation(problem, world.cost_parameters, mismatch) if world.deviation is None else world.deviation
    return World(problem, world.transition, world.cost_parameters, world.noise, off)


def _deviation(problem: Problem, gamma: FloatArray, size: float) -> list[FloatArray]:
    """Per decision step (R, m), η."""
    found = list[FloatArray]()
    for h, (layer, anchor) in enumerate(zip(problem.graph.layers, problem.graph.anchors, strict=False)):
        linear = table_times(layer.cost_features, gamma[h].T)
        found.append(np.where(linear <= problem.bounds[h] - size, -size, size))
        found[-1][ranges(layer.row_ptr, layer.fallback_pairs())] = -size
        for x in () if anchor is None else anchor.features:
            found[-1][rows_equal_to(layer.cost_features, x)] = 0.0
    return found
