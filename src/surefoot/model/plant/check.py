"""Tries to refute a plant's declaration by samples (spec 9).

Samples cannot prove what safety rests on, but they usually find a wrong declaration: next states outside the boxes of
their cells, features outside the hull of their corners, functions that depend on the step although they must not, a
fallback that leaves its cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.layer import NO_ACTION
from surefoot.model.naming import feature_name
from surefoot.model.plant.calls import said
from surefoot.model.plant.cellwise import cells_in
from surefoot.model.plant.reach import successors
from surefoot.streams import stream
from surefoot.tolerances import FEATURE

if TYPE_CHECKING:
    from surefoot.model.plant.plant import Plant


@dataclass(frozen=True)
class Refutation:
    """A sample that contradicts what was declared."""

    rule: str
    where: str  # the step, the exact state and the input
    got: str
    fix: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.got}. {self.fix}"


@dataclass(frozen=True)
class PlantCheck:
    """What samples say about a plant's declaration. If nothing is refuted, that proves nothing."""

    samples: int
    refutations: tuple[Refutation, ...]

    @property
    def refuted(self) -> bool:
        return bool(self.refutations)

    def __str__(self) -> str:
        if not self.refutations:
            return f"{self.samples} samples refute nothing that was declared"
        return "\n".join(f"refuted: {each}" for each in self.refutations)


def check_plant(plant: Plant, samples: int, seed: int) -> PlantCheck:
    """The first refutation of each rule, from at most this many samples per rule."""
    rng = stream(seed, "plant check")
    rules = (_models, _features, _along_rays, _steps, _fallback)
    return PlantCheck(samples, tuple(found for rule in rules for found in rule(plant, samples, rng)))


@dataclass(frozen=True)
class _Drawn:
    """An input that was drawn; along a ray, one between the centre and an input of the grid."""

    u: Any
    ends: tuple[tuple[Any, float], ...]  # the inputs of the grid that it lies between, with their shares


def _drawn(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[tuple[int, _Drawn, IntArray, FloatArray]]:
    """(step, input, cells, states in them): one batch per step and input drawn."""
    cells, inputs, steps = plant.cells, plant.inputs, plant.horizon - 1
    batches = min(samples, 32 * len(inputs) if plant.rays else min(8, steps) * len(inputs))
    each = max(1, samples // batches)
    for n in range(batches):
        h, number = (n // len(inputs)) % steps, n % len(inputs)
        held = cells_in(plant.problem, h, cells)[0]  # of a growing graph, the cells that it begins with
        own = held[rng.integers(len(held), size=each)]
        drawn = _Drawn(inputs.values[number], ((inputs.values[number], 1.0),))
        centre = plant.centre(h, int(own[0]))
        if centre is not None and centre != number:
            own = own[[plant.centre(h, cell) == centre for cell in own.tolist()]]
            at = float(rng.choice([rng.random(), 0.5, 1.0]))
            ends = (inputs.values[centre], 1.0 - at), (inputs.values[number], at)
            drawn = _Drawn(inputs.between(centre, number, at), ends)
        low, high = cells.bounds(own)
        x = low + rng.random(low.shape) * (high - low)
        # A function that is not affine in a coordinate is most visible in the middle of an edge.
        x = np.where(rng.random(x.shape) < 0.3, np.where(rng.random(x.shape) < 0.5, low, 0.5 * (low + high)), x)
        yield h, drawn, own, x


def _models(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[Refutation]:
    """A next state of a sampled state must lie in a declared successor of its cell."""
    refuted: set[int] = set()
    for h, drawn, own, x in _drawn(plant, samples, rng):
        u, ends = drawn.u, [end for end, _ in drawn.ends]
        declared = successors(plant.cells, plant.reach.over(h, *plant.cells.bounds(own), ends[0], ends[-1]))
        for i, (low, high) in enumerate(plant.reach.at_points(h, x, u)):
            y = low + rng.random(low.shape) * (high - low)
            y = np.where(rng.random(y.shape) < 0.5, np.where(rng.random(y.shape) < 0.5, low, high), y)
            reached = plant.cells.of(y)
            for p in _undeclared(*declared, reached)[:1]:
                if i not in refuted:
                    refuted.add(i)
                    yield Refutation(
                        f"model {i} leads outside the successors of its cell",
                        f"{said(h, x[:, p])}, input {u!r}",
                        f"next state {np.round(y[:, p], 9).tolist()}, in cell {plant.cells.said(int(reached[p]))}",
                        "Its extremes are not at the corners of a cell"
                        + (", or at the ends of a ray" if plant.rays else "")
                        + ": give reach= or slopes=, or correct them.",
                    )


def _undeclared(ptr: IntArray, declared: IntArray, reached: IntArray) -> IntArray:
    """Which of the reached cells are not declared as successors."""
    among = np.logical_or.reduceat(declared == np.repeat(reached, np.diff(ptr)), ptr[:-1])
    return np.flatnonzero(~among)


def _features(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[Refutation]:
    """Features must interpolate those at the corners, as a function does that is affine in each coordinate."""
    if len(plant.remainder):  # then they need not
        return
    n, measures = plant.cells.dim, plant.measures
    for h, drawn, own, x in _drawn(plant, samples, rng):
        u = drawn.u
        low, high = plant.cells.bounds(own)
        if measures.of_next:  # then x holds states over next states, drawn anywhere in the boxes of their cells
            least, most = plant.reach.over(h, low, high, u)[0]
            low, high = np.concatenate([low, least]), np.concatenate([high, most])
            x = np.concatenate([x, least + rng.random(least.shape) * (most - least)])
        inside = measures.at(h, x[:n], u, x[n:])
        between, size = np.zeros(inside.shape), np.zeros(len(inside))
        share = (x - low) / np.where(high > low, high - low, 1.0)
        for corner in np.ndindex(*[2] * len(x)):
            up = np.array(corner)[:, None]
            z = np.where(up == 1, high, low)
            there = measures.at(h, z[:n], u, z[n:])
            between += there * np.where(up == 1, share, 1.0 - share).prod(axis=0)
            size = np.maximum(size, np.abs(there).max(axis=1))
        if (at := _apart(inside, between, size[:, None])) is not None:
            (k, p), names = at, plant.problem.features
            yield Refutation(
                "a feature is not affine in each coordinate",
                f"{said(h, x[:, p])}, input {u!r}",
                f"{feature_name(names, k)} is {inside[k, p]:.9g}, between its corners it would be {between[k, p]:.9g}",
                "Use hats of the coordinates in which it is not affine, or declare remainder=.",
            )
            return


def _apart(inside: FloatArray, between: FloatArray, size: FloatArray) -> tuple[int, int] | None:
    """(feature, point) where features (dc, P) differ most from what they should be; None if they agree."""
    off = np.abs(inside - between) - FEATURE * np.maximum(size, 1e-300)
    if not (off > 0).any():
        return None
    k, p = np.unravel_index(int(off.argmax()), off.shape)
    return int(k), int(p)


def _along_rays(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[Refutation]:
    """Along a ray, features must interpolate between those at its ends."""
    if not plant.rays:
        return
    for h, drawn, _, x in _drawn(plant, samples, rng):
        after = x[:, rng.permutation(x.shape[1])]  # any next state, where that matters
        inside = plant.measures.at(h, x, drawn.u, after)
        ends = np.stack([share * plant.measures.at(h, x, end, after) for end, share in drawn.ends])
        between = ends.sum(axis=0)
        if (at := _apart(inside, between, np.abs(ends).sum(axis=0))) is not None:
            (k, p), names = at, plant.problem.features
            yield Refutation(
                "a feature is not affine along a ray",
                f"{said(h, x[:, p])}, input {drawn.u!r}",
                f"{feature_name(names, k)} is {inside[k, p]:.9g}, between its ends it would be {between[k, p]:.9g}",
                "Leave out rays=, or take an input in which it is affine, its square or its power.",
            )
            return


def _steps(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[Refutation]:
    """Functions that are called for step 0 only must give the same at every step."""
    if not plant.same_at_every_step:
        return
    refuted: set[str] = set()
    for h, drawn, own, x in _drawn(plant, samples, rng):
        here, first = (dict(_given(plant, step, x, drawn.u, own)) for step in (h, 0))
        for name in [name for name in here if name not in refuted]:
            at = _apart(here[name], first[name], np.abs(first[name]).max(axis=1)[:, None])
            if at is not None:
                refuted.add(name)
                yield Refutation(
                    f"{name} is not the same at every step",
                    f"{said(h, x[:, at[1]])}, input {drawn.u!r}",
                    f"{here[name][at]:.9g}, at step 0 {first[name][at]:.9g}",
                    "Leave out same_at_every_step.",
                )


def _given(plant: Plant, h: int, x: FloatArray, u: Any, own: IntArray) -> Iterator[tuple[str, FloatArray]]:
    """What the plant's functions give at states (n, P) in their cells, by name."""
    for model in plant.reach.models:
        yield model.name, model.at(h, x, u)
    yield "a measure", plant.measures.at(h, x, u, x)
    yield "the reward", plant.rewards(h, x, u)[None]
    middles = 0.5 * np.add(*plant.cells.bounds(own))  # where it is asked
    played = [plant.inputs.values[number] for number in plant.fallback_numbers(h, middles)]
    yield "the fallback", np.array(played, np.float64).reshape(len(own), -1).T


def _fallback(plant: Plant, samples: int, rng: np.random.Generator) -> Iterator[Refutation]:
    """From sampled starts, the fallback must stay in the cells that the problem says it can reach and out of forbidden
    states."""
    cells = plant.cells
    episodes = max(1, samples // (plant.horizon - 1))
    low, high = (end[:, None] for end in plant.start)
    x = low + rng.random((cells.dim, episodes)) * (high - low)
    for h in range(plant.horizon - 1):
        own = cells.of(x)
        chosen = np.full(len(own), NO_ACTION)
        for cell in np.unique(own).tolist():
            if plant.problem.states(h).find(cell) is not None:
                number = plant.problem.fallback_action(h, cell)
                chosen[own == cell] = NO_ACTION if number is None else number
        for p in np.flatnonzero(chosen == NO_ACTION)[:1]:
            yield Refutation(
                "the fallback leaves the cells declared for it",
                said(h, x[:, p]),
                f"it is in {cells.said(int(own[p]))}",
                "A next state lies outside its box: check the models.",
            )
            return
        follow = np.empty_like(x)
        for number in np.unique(chosen):
            mask = chosen == number
            boxes = plant.reach.at_points(h, x[:, mask], plant.inputs.values[number])
            least, most = boxes[int(rng.integers(len(boxes)))]
            follow[:, mask] = least + rng.choice([0.0, 0.5, 1.0], size=least.shape) * (most - least)
        x = follow
