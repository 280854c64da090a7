"""Draws from a world, in a fixed order, so that a compiled roll-out can repeat them bit for bit.

Two streams of one seed: ``transitions`` and ``noise`` (:func:`surefoot.streams.stream`). Per step:

1. one ``random()`` from ``transitions``: u; the next edge is the first of the pair with u < cumulative;
2. for each limit j in declaration order one number from ``noise``, and σ the limit's noise scale:

   ============ ===================== ============================
   noise        draw                  measured cost
   ============ ===================== ============================
   gaussian     ``standard_normal()`` cost + σ·draw
   uniform      ``random()``          cost + (2·draw − 1)·√3·σ
   rademacher   ``random()``          cost − σ if draw < ½ else cost + σ
   ============ ===================== ============================

In a terminal state with a cost, step 2 is repeated. Nothing else is drawn, and noise of scale zero is drawn too, so the
order and number of draws do not depend on the world's numbers. All three are sub-Gaussian with scale σ and variance σ².
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.checks import whole
from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.arrays import FloatArray
from surefoot.model.rays import FULL
from surefoot.streams import stream
from surefoot.worlds import truth_tables as tables

if TYPE_CHECKING:
    from surefoot.worlds.world import World

ROOT_3 = math.sqrt(3.0)  # uniform on ±√3·σ has variance σ²


class Sampler:
    """One seeded source of transitions and measurements. Make one with ``world.sampler(seed)``."""

    def __init__(self, world: World, seed: int) -> None:
        if world.problem.graph.several_rows:
            raise InvalidInput(
                "costs cannot be sampled where actions have several cost rows",
                got="some action has several: what is measured lies between them, and the world does not say where",
                fix="Simulate the plant itself, and use agent.observe(…, features=…) to say where a cost was measured.",
            )
        seed = whole("seed", seed, 0)
        self._world = world
        self._transitions = stream(seed, "transitions")
        self._noise = stream(seed, "noise")
        limits = world.problem.limits
        self._scales = [limit.noise for limit in limits]
        self.shared_scales = np.array([limit.episode_noise for limit in limits])  #: (m,) of the offsets of an episode
        self.offsets = np.zeros(len(limits))  #: of the episode under way

    def follow(self, world: World) -> None:
        """Continue with the same world at other intensities, or grown; the streams go on."""
        self._world = world

    def begin_episode(self) -> None:
        """Draw the offsets that all measurements of the next episode share, if any are declared."""
        if self.shared_scales.any():
            self.offsets[:] = [self._draw(scale) for scale in self.shared_scales.tolist()]

    def step(self, h: int, pair: int, intensity: float = FULL) -> int:
        """The edge that follows a pair of step h at an intensity; its state is ``layers[h].successor[edge]``."""
        pointer = self._world.problem.graph.layers[h].pair_ptr
        first, end = int(pointer[pair]), int(pointer[pair + 1])
        u = self._transitions.random()
        within = self._world.cumulative[h][first:end]
        if intensity != FULL:
            within = tables.cumulative_at(self._world.at_zero[h], self._world.probabilities[h], first, end, intensity)
        return first + int(np.searchsorted(within, u, side="right"))

    def measure(self, h: int, edge: int, intensity: float = FULL) -> FloatArray:
        """(m,) the measured cost of an edge of step h, whose action was played at an intensity."""
        row = self._world.problem.graph.layers[h].row_of(edge)
        truth = self._world.costs[h][row]
        if intensity != FULL:
            truth = (1.0 - intensity) * self._world.at_zero[h].costs[row] + intensity * truth
        return self._measured(truth)

    def measure_terminal(self, state: int) -> FloatArray:
        """(m,) the measured cost of a terminal state; it must have a cost."""
        world = self._world
        if world.terminal_costs is None or not world.problem.graph.terminal.has_cost[state]:
            raise UnknownLabel(
                "no terminal cost",
                where=world.problem.naming.at_state(world.problem.horizon - 1, state),
                fix="Measure only terminal states that were declared with cost features.",
            )
        return self._measured(world.terminal_costs[state])

    def _measured(self, truth: FloatArray) -> FloatArray:
        drawn = zip(truth.tolist(), self._scales, self.offsets.tolist(), strict=True)
        return np.array([c + self._draw(scale) + shared for c, scale, shared in drawn])

    def _draw(self, scale: float) -> float:
        if self._world.noise == "gaussian":
            return scale * float(self._noise.standard_normal())
        u = float(self._noise.random())
        if self._world.noise == "uniform":
            return (2.0 * u - 1.0) * ROOT_3 * scale
        return -scale if u < 0.5 else scale

    @property
    def generators(self) -> tuple[np.random.Generator, np.random.Generator]:
        """The streams themselves, transitions and noise, for the compiled roll-out."""
        return self._transitions, self._noise

    def state(self) -> dict[str, Any]:
        """The state of both streams as plain numbers and strings, for a checkpoint in JSON."""
        return {
            "transitions": dict(self._transitions.bit_generator.state),
            "noise": dict(self._noise.bit_generator.state),
            "offsets": self.offsets.tolist(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state from :meth:`state`; a bad one changes nothing."""
        before = self.state()
        try:
            self._transitions.bit_generator.state = state["transitions"]
            self._noise.bit_generator.state = state["noise"]
            self.offsets[:] = state["offsets"]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            self._transitions.bit_generator.state = before["transitions"]
            self._noise.bit_generator.state = before["noise"]
            self.offsets[:] = before["offsets"]
            raise InvalidInput("sampler state cannot be restored", got=repr(error)) from None
