"""Model errors against the worst truths: no γ and no errors of the declared size that the data allow exceed a bound.

Rows are measured very unevenly, where counting them one by one says most. A truth is γ and an error for each distinct
row; it is put where it hurts a row most, and pulled towards the real truth until noise, errors and norm all allow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import surefoot as sf
from tests.hand_made import corridor, tell

P, ZETA, NOISE, NORM = 0.05, 0.04, 0.02, 1.0
DIM, ROWS = 3, 8
MULTIPLES = [10.0 ** (k / 2) for k in range(-6, 7)]


@dataclass(frozen=True, eq=False)
class Seen:
    """What was measured of each distinct row, and the truth behind it."""

    x: np.ndarray  # (ROWS, DIM)
    times: np.ndarray  # (ROWS,)
    sums: np.ndarray  # (DIM,)  b
    gamma: np.ndarray
    errors: np.ndarray  # (ROWS,)
    upper: np.ndarray  # (ROWS,)  the engine's
    counted: bool
    beside: tuple[np.ndarray, ...]  # λN

    @property
    def gram(self) -> np.ndarray:
        return (self.x * self.times[:, None]).T @ self.x


def seen(seed: int, case: int, ridges: tuple[float, ...] | None) -> Seen:
    rng = np.random.default_rng([seed, case])
    x = rng.normal(size=(ROWS, DIM))
    gamma = rng.normal(size=DIM)
    gamma *= 0.8 * NORM / np.linalg.norm(gamma)
    errors = ZETA * rng.choice([-1.0, 1.0], ROWS)
    times = np.array([3000, 30, 20, 10, 5, 0, 0, 0])
    limit = sf.Limit("heat", bound=5.0, noise=NOISE, norm=NORM, misspecification=ZETA)
    names = [f"a{i}" for i in range(ROWS)]
    problem = corridor(dict(zip(names, x.tolist(), strict=True)), limit)
    agent = sf.LsviNew(problem, P, replan_growth=1e9, ridges=ridges)
    s = float((x * x).sum(axis=1).mean())
    kappa = min(10.0, max(1e-3, 100.0 * (DIM + 10) * (NOISE / limit.bound) ** 2))  # type: ignore[operator]
    shaped = kappa * s * (DIM * (x.T @ x) / ROWS / s + np.eye(DIM) / 100.0)
    beside = (shaped,) if ridges is None else tuple(ridge * np.eye(DIM) for ridge in ridges)
    costs = np.repeat(np.arange(ROWS), times)
    measured = (x @ gamma + errors)[costs] + NOISE * rng.normal(size=len(costs))
    tell(agent, *[[(names[i], c)] for i, c in zip(costs.tolist(), measured.tolist(), strict=True)])
    agent.replan()
    upper = np.array([agent.plan.upper(0, "s", name, "s")[0] for name in names])
    counted = agent.costs.ellipsoids(0, agent.cost_confidence).counted is not None
    return Seen(x, times, x[costs].T @ measured, gamma, errors, upper, counted, beside)


def radius_of_noise(each: Seen, beside: np.ndarray) -> float:
    grown = np.linalg.slogdet(beside + each.gram)[1] - np.linalg.slogdet(beside)[1]
    inside = grown + 2 * math.log(2 * len(each.beside) / P)
    return NOISE * math.sqrt(inside)


def worst_cost(each: Seen, row: int, most: float) -> float:
    """The largest cost of a row under any truth tried, with errors up to ``most``, that the data allow."""
    z, gram, found = each.x[row], each.gram, -math.inf
    for beside in each.beside:
        inverse, R = np.linalg.inv(gram + beside), radius_of_noise(each, beside)
        for multiple in MULTIPLES:
            c = multiple * (R / NORM) ** 2
            shape = gram @ inverse @ gram + c * np.eye(DIM)
            errors = -most * np.sign(each.x @ inverse @ gram @ np.linalg.solve(shape, z))
            b = each.sums - (each.x * each.times[:, None]).T @ errors
            centre, step = np.linalg.solve(shape, gram @ inverse @ b), np.linalg.solve(shape, z)
            square = R * R + c * NORM**2 + (gram @ inverse @ b) @ centre - b @ inverse @ b
            gamma = centre + math.sqrt(max(square, 0.0)) * step / math.sqrt(z @ step)
            share = allowed(each, gamma, errors)
            found = max(found, float(z @ (each.gamma + share * (gamma - each.gamma))))
    return found + most


def allowed(each: Seen, gamma: np.ndarray, errors: np.ndarray) -> float:
    """How far one may go from the real truth to this one."""
    share, pull = 1.0, (each.x * each.times[:, None]).T
    start, step = each.sums - each.gram @ each.gamma - pull @ each.errors, gamma - each.gamma
    along = -each.gram @ step - pull @ (errors - each.errors)
    for beside in each.beside:
        inverse = np.linalg.inv(each.gram + beside)
        share = min(share, _until(inverse, start, along, radius_of_noise(each, beside)))
    return min(share, _until(np.eye(DIM), each.gamma, step, NORM))


def _until(A: np.ndarray, start: np.ndarray, step: np.ndarray, radius: float) -> float:
    a, b, c = step @ A @ step, start @ A @ step, start @ A @ start - radius * radius
    assert c <= 0, "the real truth is outside: the event of (S3) has failed"
    return 1.0 if a <= 1e-300 else min(1.0, (-b + math.sqrt(b * b - a * c)) / a)


@pytest.mark.parametrize("ridges", [None, (0.3, 3.0, 30.0)], ids=["shaped", "even"])
@pytest.mark.parametrize("case", range(6))
def test_no_errors_of_the_declared_size_exceed_a_bound_and_larger_ones_do(
    case: int, ridges: tuple[float, ...] | None, seed: int
) -> None:
    each = seen(seed, case, ridges)
    assert each.counted
    excess = [worst_cost(each, row, ZETA) - each.upper[row] for row in range(ROWS)]
    assert max(excess) <= 1e-9
    beyond = [worst_cost(each, row, 1.25 * ZETA) - each.upper[row] for row in range(ROWS)]
    assert max(beyond) > 0.0  # the attack bites
