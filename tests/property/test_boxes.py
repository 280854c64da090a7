"""The box of a prior cuts the noise ellipsoid (spec 3): against the exact worst truths of the intersection.

The largest ⟨γ, z⟩ over {γ : |γ_i| ≤ 1, noise within R} lies inside some face of the box, and there it is the worst
point of the slice of an ellipsoid, in closed form. All faces are tried, in 50 digits where digits are the question.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np

import surefoot as sf
from surefoot.estimate.costs import bound_rows
from surefoot.estimate.ellipsoids import CostConfidence, cost_ellipsoids
from tests.banks import family_of, spread_of, turned

LOG_TERM = 5.0


def confidence(ridges: tuple[float, ...], *, guard: bool = True, scale: float = 1.0) -> CostConfidence:
    def rule(ratio: float, ridge: float, noise: float, norm: float) -> float:
        return noise * math.sqrt(ratio + 2 * LOG_TERM)

    return CostConfidence(ridges, (0.1, 1.0, 10.0), rule, shaped=0.0, dual=True, prior=True, scale=scale, guard=guard)


def upper_of(gram: Any, target: Any, z: Any, noise: float, known: CostConfidence) -> np.ndarray:
    """(rows,) the engine's bound of rows z; the prior is |γ_i| ≤ 1."""
    limit = sf.Limit("heat", bound=1.0, noise=noise, prior=[(-1.0, 1.0)] * z.shape[1])
    family = family_of((limit,), z.shape[1], float(np.linalg.norm(z, axis=1).max()))
    family = replace(family, priors=tuple(replace(one, width=np.ones(z.shape[1])) for one in family.priors))
    ellipsoids = cost_ellipsoids(turned(gram, target[None]), spread_of(1.0), family, known)
    return bound_rows(z, None, ellipsoids)[0][:, 0]


def quadratic(gram: Any, target: Any, ridge: float, noise: float, inflate: float = 1.0) -> tuple[Any, Any, Any]:
    """M, q, s: the noise is within R where γᵀMγ − 2qᵀγ + s ≤ 0."""
    gram, target = mpmath.matrix(gram.tolist()), mpmath.matrix(target.tolist())
    d, ridge = gram.rows, mpmath.mpf(ridge)
    inverse = (gram + ridge * mpmath.eye(d)) ** -1
    ratio = mpmath.log(mpmath.det(gram / ridge + mpmath.eye(d)))
    R = max(noise * mpmath.sqrt(ratio + 2 * LOG_TERM), mpmath.mpf("1e-6") * mpmath.sqrt(d * ridge)) * inflate
    return gram * inverse * gram, gram * inverse * target, (target.T * inverse * target)[0] - R * R


def worst_truth(M: Any, q: Any, s: Any, z: Any) -> Any:
    """The γ with the largest ⟨γ, z⟩ of the intersection."""
    best, found = mpmath.mpf("-inf"), None
    d = M.rows
    for face in itertools.product((-1, 0, 1), repeat=d):
        free, fixed = [i for i in range(d) if face[i] == 0], [i for i in range(d) if face[i] != 0]
        rest = s + sum(face[i] * (sum(M[i, k] * face[k] for k in fixed) - 2 * q[i]) for i in fixed)
        gamma = mpmath.matrix([mpmath.mpf(f) for f in face])
        if free:
            slice_ = mpmath.matrix([[M[i, k] for k in free] for i in free])
            slice_ += mpmath.mpf("1e-35") * (1 + mpmath.mnorm(M)) * mpmath.eye(len(free))
            own = mpmath.matrix([q[i] - sum(M[i, k] * face[k] for k in fixed) for i in free])
            centre = mpmath.lu_solve(slice_, own)
            square = (own.T * centre)[0] - rest
            along = mpmath.matrix([z[i] for i in free])
            step = mpmath.lu_solve(slice_, along)
            if square < 0 or not (along.T * step)[0] > 0:
                continue
            point = centre + mpmath.sqrt(square / (along.T * step)[0]) * step
            if max(abs(p) for p in point) > 1:
                continue
            for i, p in zip(free, point, strict=True):
                gamma[i] = p
        elif rest > 0:
            continue
        cost = sum(g * zi for g, zi in zip(gamma, z, strict=True))
        if cost > best:
            best, found = cost, gamma
    return found


def drawn(rng: np.random.Generator, *, extreme: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """G, b, some z, the ridge and the noise: data of a truth in the box, along some directions more than others."""
    d, ridge = int(rng.integers(2, 5)), 10.0 ** rng.uniform(-6, 1) if extreme else 1.0
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    top = 10.0 ** rng.uniform(3, 9) if extreme else 10.0 ** rng.uniform(0, 2.5)
    values = ridge * top * 10.0 ** rng.uniform(-9 if extreme else -3, 0, d)
    gram = (basis * values) @ basis.T
    gram = (gram + gram.T) / 2
    noise = 10.0 ** rng.uniform(-2, 0) * math.sqrt(ridge)
    gamma = rng.uniform(-1.0, 1.0, d)
    target = gram @ gamma + 0.3 * noise * (basis * np.sqrt(values)) @ rng.standard_normal(d)
    return gram, target, rng.standard_normal((2, d)), ridge, noise


def cost_of(gamma: Any, z: np.ndarray) -> float:
    return float(sum(g * mpmath.mpf(float(zi)) for g, zi in zip(gamma, z, strict=True)))


def test_no_truth_of_the_intersection_costs_more_and_the_worst_comes_close(seed: int) -> None:
    """An attack: with the radius 5 % smaller than the noise's the very same truths break the bound (the control)."""
    rng, gaps, broken, tried = np.random.default_rng([seed, 31]), [], 0, 0
    for _ in range(40):
        gram, target, rows, ridge, noise = drawn(rng, extreme=False)
        upper, small = (upper_of(gram, target, rows, noise, confidence((ridge,), scale=s)) for s in (1.0, 1 / 1.05))
        for i, z in enumerate(rows):
            gamma = worst_truth(*quadratic(gram, target, ridge, noise), mpmath.matrix(z.tolist()))
            cost, free = cost_of(gamma, z), float(np.abs(z).sum())
            assert cost <= upper[i] + 1e-12
            gaps.append((upper[i] - cost) / free)
            tried += cost < 0.99 * free  # else the box decides alone
            broken += cost > small[i] + 1e-9
    assert np.mean(gaps) < 0.03
    assert broken >= 0.2 * tried > 5


def test_rounding_never_lowers_a_bound_that_the_box_cuts(seed: int) -> None:
    """Against 50 digits, where G is up to 10⁹ times λ; without the guard some bounds would be too low."""
    rng, low, bare = np.random.default_rng([seed, 32]), 0, 0
    with mpmath.workdps(50):
        for _ in range(40):
            gram, target, rows, ridge, noise = drawn(rng, extreme=True)
            rows[0] = np.linalg.eigh(gram)[1][:, -1]  # where the data leave least room
            guarded, plain = (
                upper_of(gram, target, rows, noise, confidence((ridge,), guard=guard)) for guard in (True, False)
            )
            for i, z in enumerate(rows):
                exact = mpmath.matrix(z.tolist())
                cost = (worst_truth(*quadratic(gram, target, ridge, noise), exact).T * exact)[0]
                low += mpmath.mpf(float(guarded[i])) < cost
                bare += mpmath.mpf(float(plain[i])) < cost
    assert low == 0
    assert bare >= 1


def test_what_the_box_adds_is_never_wider_and_often_narrower(seed: int) -> None:
    rng, ratios = np.random.default_rng([seed, 33]), []
    for _ in range(40):
        gram, target, rows, ridge, noise = drawn(rng, extreme=False)
        known, free = confidence((ridge,)), np.abs(rows).sum(axis=1)
        limit = sf.Limit("heat", bound=1.0, noise=noise, norm=math.sqrt(rows.shape[1]))
        family = family_of((limit,), rows.shape[1], float(np.linalg.norm(rows, axis=1).max()))
        ball = bound_rows(rows, None, cost_ellipsoids(turned(gram, target[None]), spread_of(1.0), family, known))[0]
        cut = upper_of(gram, target, rows, noise, known)
        assert np.all(cut <= np.minimum(ball[:, 0], free) + 1e-9)
        ratios.extend((np.minimum(ball[:, 0], free) - cut) / free)
    assert np.mean(np.array(ratios) > 0.01) > 0.2
