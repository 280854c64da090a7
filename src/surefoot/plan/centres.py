"""Values at the centres of a plant's cells, which steer at exact states (spec 9).

A certificate must hold in the whole cell, a value need not. Over inputs certified for whole cells, values drop abruptly
wherever an input is lost, and a learner with certificates at the exact state would wait rather than cross a drop that
does not exist. So values are computed again at the centres, over the inputs certified there:

    V_h(cell) = max over u certified at the centre of  min( r(centre, u) + ⟨μ, φ_V⟩ optimistic + exploration , R_h )

over the inputs of the grid and, with rays, some along each. The next value under each model is interpolated between the
centres of the certified cells around its image. These values only choose among certified inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.plant.build import centres
from surefoot.model.plant.cellwise import cells_in, states_of
from surefoot.model.plant.plant import Plant
from surefoot.model.plant.reach import cells_around, successors
from surefoot.model.problem import Problem
from surefoot.plan.certify import within_limits
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come

Around = tuple[tuple[IntArray, FloatArray], ...]
"""Per model the cells, or their states, around the images of P points, (2ⁿ, P), and their weights."""


@dataclass(frozen=True, eq=False)
class _Centres:
    """What is known at the centres of some cells at one step, for N choices, sorted by cell."""

    number: IntArray  # (N,) of the input of the grid
    intensity: FloatArray  # (N,)
    reward: FloatArray  # (N,)
    features: FloatArray  # (N, R, dc) rows, all of which must keep the limits
    ptr: IntArray  # (N+1,)
    following: IntArray  # cells that may follow
    around: Around

    def first(self, n: int) -> _Centres:
        """Only the first n choices."""
        ptr = self.ptr[: n + 1]
        around = tuple((cells[:, :n], weights[:, :n]) for cells, weights in self.around)
        known: dict[str, Any] = {name: getattr(self, name)[:n] for name in _OF_CHOICES}
        return _Centres(**known, ptr=ptr, following=self.following[: ptr[-1]], around=around)

    def and_then(self, more: _Centres) -> _Centres:
        both = zip(self.around, more.around, strict=True)
        known: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in _OF_CHOICES
        }
        return _Centres(
            **known,
            ptr=np.concatenate([self.ptr, self.ptr[-1] + more.ptr[1:]]),
            following=np.concatenate([self.following, more.following]),
            around=tuple((np.concatenate([a, c], axis=1), np.concatenate([b, d], axis=1)) for (a, b), (c, d) in both),
        )

    def in_graph(self, problem: Problem, h: int) -> _Centres:
        """The same with the numbers of states at the next step in place of cells."""
        around = tuple((states_of(problem, h + 1, cells), weights) for cells, weights in self.around)
        return replace(self, following=states_of(problem, h + 1, self.following), around=around)


_OF_CHOICES = ("number", "intensity", "reward", "features")


class CentreValues:
    """The values of plans at the centres of a plant's cells."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self._steps: dict[int, _Centres] = {}
        self._done: tuple[Any, ...] = (None, None)
        self._last: tuple[Plan | None, tuple[FloatArray, ...]] = (None, ())

    def of(self, plan: Plan) -> tuple[FloatArray, ...]:
        """H of (S,): V at the centres, 0 where nothing is certified; kept for the last plan."""
        if self._last[0] is not plan:
            self._last = plan, self._computed(plan)
        return self._last[1]

    def _computed(self, plan: Plan) -> tuple[FloatArray, ...]:
        graph, caps = plan.problem.graph, most_to_come(plan.problem.graph)
        states = plan.certified_sets.states
        value = [np.where(states[-1], graph.terminal.reward, 0.0)]
        for h in reversed(range(len(graph.layers))):
            layer, (cells, own) = graph.layers[h], cells_in(plan.problem, h, self.plant.cells)
            known = self._known(plan.problem, h, cells)
            pairs = np.repeat(layer.state_ptr[own], self.plant.n_choices) + known.number
            planned = np.ones(len(pairs)) if plan.intensities is None else plan.intensities[h][pairs]
            seen = known.in_graph(plan.problem, h)
            allowed = self._allowed(plan, h, seen, pairs, self._upper(known, plan, h))
            allowed |= plan.certified_sets.pairs[h][pairs] & (known.intensity == planned)
            next_states = seen.around, seen.following, seen.ptr
            ahead = expected_at_centres(value[0], states[h + 1], *next_states, plan.ellipsoids[h])
            bonus = plan.values.bonus[h]
            q = known.reward + ahead + bonus[pairs] * share_of_bonus(known.intensity, planned)
            best = np.where(allowed, np.minimum(q, caps[h] + bonus.max()), -np.inf)
            best = best.reshape(len(own), -1).max(axis=1)
            found = np.zeros(layer.n_states)
            found[own] = np.where(np.isfinite(best) & states[h][own], best, 0.0)
            value.insert(0, found)
        return tuple(value)

    def _known(self, problem: Problem, h: int, cells: IntArray) -> _Centres:
        """What is known at the centres of these cells, as far as possible from an earlier plan."""
        grows, many = problem.graph.beyond is not None, self.plant.n_choices
        step = 0 if self.plant.same_at_every_step and not grows else h
        known = self._steps.get(step)
        have = 0 if known is None else len(known.features) // many
        if have < len(cells):
            more = _at_centres(self.plant, h, cells[have:])
            self._steps[step] = known = more if known is None else known.and_then(more)
        assert known is not None
        return known if len(known.features) == many * len(cells) else known.first(many * len(cells))

    def _allowed(self, plan: Plan, h: int, seen: _Centres, pairs: IntArray, upper: FloatArray) -> BoolArray:
        """(N,) choices that are proved safe at the centre."""
        leads = np.logical_and.reduceat(plan.certified_sets.states[h + 1][seen.following], seen.ptr[:-1])
        leads &= plan.problem.graph.expanded(h)[pairs]
        return np.asarray(leads & plan.consistent & within_limits(upper, plan.problem.bounds[h]))

    def _upper(self, known: _Centres, plan: Plan, h: int) -> FloatArray:
        """(N, m) bounds at the centres; steps that share features, data and anchor share the work."""
        key = (known, id(plan.bounds.known[h]), id(plan.bounds.anchors[h]), plan)
        if self._done[0] != key:
            self._done = (key, plan.bounds.worst(h, known.features))
        found: FloatArray = self._done[1]
        return found


def _at_centres(plant: Plant, h: int, those: IntArray) -> _Centres:
    cells, x = plant.cells, centres(plant.cells, those)
    n, many, features = len(those), plant.n_choices, np.empty(0)
    images = [np.empty((cells.dim, n, many)) for _ in plant.reach.models]
    number, intensity, reward = np.empty((n, many), np.int64), np.empty((n, many)), np.empty((n, many))
    for centre, own in plant.centres(h, those):
        choices = plant.choices(centre)
        number[own], intensity[own] = choices.number, choices.intensity
        for i, u in enumerate(choices.inputs):
            rows = plant.rows_at(h, x[:, own], u)  # (R, dc, own)
            if not features.size:
                features = np.empty((n, many, *rows.shape[:2]))
            features[own, i] = rows.transpose(2, 0, 1)
            reward[own, i] = plant.rewards(h, x[:, own], u)
            for image, model in zip(images, plant.reach.models, strict=True):
                image[:, own, i] = model.at(h, x[:, own], u)
    flat = [image.reshape(cells.dim, -1) for image in images]
    half = plant.reach.disturbance[:, None]
    ptr, following = successors(cells, [(image - half, image + half) for image in flat])
    return _Centres(
        number=number.reshape(-1),
        intensity=intensity.reshape(-1),
        reward=reward.reshape(-1),
        features=features.reshape(n * many, *features.shape[2:]),
        ptr=ptr,
        following=following,
        around=tuple(cells_around(cells, image) for image in flat),
    )


def share_of_bonus(intensity: FloatArray, planned: FloatArray) -> FloatArray:
    """The share of a pair's exploration bonus that a choice along its ray gets. It only steers."""
    return np.minimum(1.0, intensity / np.where(planned > 0.0, planned, intensity))


def between(value: FloatArray, certified: BoolArray, parts: Around) -> FloatArray:
    """(P, models) values interpolated between the certified cells around points; NaN where none is certified."""
    found = []
    for cells, weights in parts:
        weight = weights * certified[cells]
        total = weight.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append((weight * value[cells]).sum(axis=0) / total)
    return np.stack(found, axis=1)


def expected_at_centres(
    value: FloatArray,
    certified: BoolArray,
    around: Around,
    following: IntArray,
    ptr: IntArray,
    known: ValueEllipsoid,
) -> FloatArray:
    """(P,) ⟨θ̂, φ_V⟩ + optimism · radius · ‖φ_V‖_{A⁻¹} (spec 6) of P choices, clipped to the range of the next values.

    φ_V is the next value under each model, interpolated between the states ``around`` the model's image. The states
    that may follow choice i are following[ptr[i] : ptr[i+1]]; φ_V is the least of their values if none around the image
    is certified.
    """
    met = value[following]
    low, high = np.minimum.reduceat(met, ptr[:-1]), np.maximum.reduceat(met, ptr[:-1])
    phi = between(value, certified, around)
    phi = np.where(np.isnan(phi), low[:, None], phi)
    low, high = np.minimum(low, phi.min(axis=1)), np.maximum(high, phi.max(axis=1))
    turn = np.stack([known.basis.turn(unit) for unit in np.eye(phi.shape[1])])
    turned = phi @ turn
    reach = known.optimism * known.radius * np.sqrt((known.weights * turned * turned).sum(axis=1))
    found = turned @ known.centre + reach
    return np.asarray(np.clip(found, low, high)) if known.clip else np.asarray(found)
