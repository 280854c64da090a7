"""Random plants whose truth keeps what is declared, with hidden disturbances at the edge of their range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.model.plant import build
from surefoot.model.plant.plant import Plant
from surefoot.plan.plan import Plan

INPUTS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class RandomPlant:
    plant: Plant
    cost: np.ndarray  # (1, dc) γ
    disturbance: np.ndarray
    weights: np.ndarray  # of the models
    make: Callable[..., Plant]  # the same plant with other options

    def growing(self, endless: bool, **options: Any) -> RandomPlant:
        """The same plant, whose cells are made when they can be used; ``endless``: on a grid without an end."""
        cells, longest = self.plant.cells, self.plant.problem.graph.largest_cost_norm() + 1e-9
        if endless:
            pairs = zip(cells.names, cells.shape, strict=True)
            options["state"] = {name: (-1.0, None, 2.0 / number) for name, number in pairs}
        return replace(self, plant=self.make(**{"most_states": 5_000, "longest_row": longest, **options}))

    def step(self, h: int, x: Any, u: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """The worst that was declared: every disturbance at an end of its range."""
        model = self.plant.reach.models[int(rng.choice(len(self.weights), p=self.weights))]
        after = model.one(h, x, u) + self.disturbance * rng.choice([-1.0, 1.0], size=len(x))
        return after, float(self.cost[0] @ self.plant.features(h, x, u, after))

    def event(self, plan: Plan) -> bool:
        """The true cost of every corner lies within the plan's bounds."""
        layers = plan.problem.graph.layers  # rays are there as the plan has them
        for layer, upper, lower in zip(layers, plan.bounds.upper, plan.bounds.lower, strict=True):
            true = layer.cost_features @ self.cost.T
            if not ((lower <= true + 1e-12) & (true <= upper + 1e-12)).all():
                return False
        return True


def random_plant(
    rng: np.random.Generator, dim: int | None = None, of_next: bool = False, start: Any = None, rays: bool = False
) -> RandomPlant:
    """Multi-affine models and features in 1 to 3 dimensions, on few and wide cells; the fallback is u = 0.

    ``of_next``: features of the next state as well, and products of both. ``start``: by default anywhere, so that
    episodes begin near corners, too. ``rays``: all inputs between 0 and 1.
    """
    n = int(rng.integers(1, 4)) if dim is None else dim
    models = [_model(n, rng) for _ in range(int(rng.integers(1, 3)))]
    half = rng.uniform(0.02, 0.06, n)
    names = [f"x{d}" for d in range(n)]

    def measures(h: int, x: Any, u: float) -> list[Any]:
        products = [x[a] * x[b] for a in range(n) for b in range(a)]
        return [1.0, *(x[d] for d in range(n)), u, *(u * x[d] for d in range(n)), *products]

    def arriving(h: int, x: Any, u: float, x_next: Any) -> list[Any]:
        return [*measures(h, x, u), *(x_next[d] for d in range(n)), x[0] * x_next[0]]

    gamma = rng.standard_normal((1, 2 + 2 * n + n * (n - 1) // 2 + of_next * (n + 1)))
    gamma[0, 1 + n] = abs(gamma[0, 1 + n]) + 0.5  # more input, more cost
    gamma /= np.linalg.norm(gamma)

    def make(bound: float, **options: Any) -> Plant:
        cells = {name: (-1.0, 1.0, int(number)) for name, number in zip(names, shape, strict=True)}
        return sf.Plant(
            state=options.pop("state", cells),
            inputs={"u": INPUTS},
            horizon=horizon,
            start=[(-1.0, 1.0)] * n if start is None else [start] * n,
            models=models,
            disturbance=half,
            measures=arriving if of_next else measures,
            reward=lambda h, x, u: u,
            fallback=0.0,
            limits=[sf.Limit("cost", bound=bound, noise=0.02, norm=1.0)],
            same_at_every_step=True,
            rays=rays,
            **options,
        )

    shape, horizon = rng.integers(2, 5, n), int(rng.integers(3, 6))
    worst = -np.inf  # of the fallback, at every corner of every cell that it can reach
    for layer in make(10.0).problem.graph.layers:
        for pair in layer.fallback_pairs():
            worst = max(
                worst, float((layer.cost_features[layer.row_ptr[pair] : layer.row_ptr[pair + 1]] @ gamma[0]).max())
            )
    bound = worst + float(rng.uniform(0.01, 0.1))
    weights = rng.dirichlet(np.ones(len(models)))
    return RandomPlant(make(bound), gamma, half, weights, partial(make, bound))


def centred(world: RandomPlant) -> RandomPlant:
    """The same plant with every cell judged by the mean of its corners: a control that must fail."""
    rows = build._rows

    def means(*declared: Any) -> Any:
        found, ptr = rows(*declared)
        cells, inputs = declared[0].cells, declared[0].inputs
        whole = found[:-1].reshape(cells.number, len(inputs), -1, found.shape[1])
        if whole.shape[2] > 1:
            found[-1] = found[np.linalg.norm(found, axis=1).argmax()]  # of the outside: exact features may be as long
            found[:-1] = np.broadcast_to(whole.mean(axis=2, keepdims=True), whole.shape).reshape(found[:-1].shape)
        return found, ptr

    twin = object.__new__(Plant)
    twin.__dict__.update({k: v for k, v in vars(world.plant).items() if k not in ("problem", "digest")})
    build._rows = means
    try:
        twin.problem = twin._problem()
    finally:
        build._rows = rows
    return replace(world, plant=twin)


def _model(n: int, rng: np.random.Generator) -> Any:
    """Affine in each coordinate, and from the box of ±1 into ±0.9."""
    linear, bilinear, drive = rng.standard_normal((n, n)), rng.standard_normal((n, n)), rng.standard_normal(n)
    total = np.abs(linear).sum(axis=1) + np.abs(np.tril(bilinear, -1)).sum(axis=1) + np.abs(drive)
    scale = 0.9 / total

    def model(h: int, x: Any, u: float) -> list[Any]:
        return [
            scale[k]
            * (
                sum(linear[k, d] * x[d] for d in range(n))
                + sum(bilinear[k, a] * x[k] * x[a] for a in range(k))
                + drive[k] * u
            )
            for k in range(n)
        ]

    return model
