"""The same plan in plain vectorised NumPy: what a careful person would write first. Kept to be beaten, and to check.

One decomposition per step, matrix products for the quadratic forms, ``reduceat`` for the segments, nothing
compiled, nothing shared between layers. Spec 3 to 6, certified profile, without the rounding guard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

import surefoot as sf

Array = NDArray[Any]


@dataclass
class NumpyPlan:
    upper: list[Array]
    lower: list[Array]
    certified: list[Array]
    q: list[Array]
    value: list[Array]
    action: list[Array]


def sums(bank: Any, r: int) -> tuple[Array, Array]:
    """Σ z zᵀ (d, d) and Σ z y (m, d) of a dense regression; the bank keeps lower triangles."""
    dim, m = bank.blocks.dim, bank.state.targets.shape[1]
    lower = bank.state.squares[0].reshape(-1, dim, dim)[r]
    return lower + np.tril(lower, -1).T, bank.state.targets[0].reshape(m, -1, dim)[:, r]


Whitened = tuple[Array, Array, float, float]  # s (d,), y (m, d), the growth of the log-determinant, λ


def even(ridges: list[float], gram: Array, targets: Array) -> tuple[Array, list[Whitened]]:
    """In the eigenbasis of the data, beside λI of every λ."""
    e, basis = np.linalg.eigh(gram)
    e, b = np.maximum(e, 0.0), targets @ basis
    return basis, [(e / np.sqrt(e + x), b / np.sqrt(e + x), float(np.log1p(e / x).sum()), x) for x in ridges]


def shaped(agent: sf.LsviNew, r: int, gram: Array, targets: Array) -> tuple[Array, list[Whitened]]:
    """Beside λN, whose N the agent made before any data."""
    (ridge,), dim = agent.constants["ridges"], len(gram)
    ridge *= agent.constants["shaped"]
    beside = ridge * agent.costs.shapes.reshape(-1, dim, dim)[r]
    root = np.linalg.cholesky(gram + beside)
    left, s, turned = np.linalg.svd(solve_triangular(root, gram, lower=True))
    y = (left.T @ solve_triangular(root, targets.T, lower=True)).T
    growth = 2 * np.log(np.diag(root)).sum() - np.linalg.slogdet(beside)[1]
    return turned.T, [(s, y, float(growth), ridge)]


def numpy_plan(agent: sf.LsviNew) -> NumpyPlan:
    """The plan that ``agent`` would make now, from its data and constants."""
    problem, graph = agent.problem, agent.problem.graph
    H, limits, c = problem.horizon, problem.limits, agent.constants
    m, p = len(limits), c["failure_probability"]
    bound, norms = (np.array([getattr(limit, name) for limit in limits]) for name in ("bound", "norm"))
    slack = np.array(c["slack"])
    w2, w3, w4 = c["explore"]
    n_ridges = len(c["ridges"])

    def interval(h: int, x: Any) -> tuple[Array, Array]:
        r = agent.costs.regression(h)
        gram, targets = sums(agent.costs.bank, r)
        anchor, rho, z = graph.anchors[h], np.zeros(len(x)), x
        if anchor is not None:
            x0 = anchor.features[0]
            rho = x @ x0 / (x0 @ x0)
            z = x - rho[:, None] * x0
        size = np.linalg.norm(z, axis=1)[:, None]
        upper, lower = size * norms, -size * norms
        union = m * (1 if problem.stationary_costs else H) * n_ridges
        basis, whitened = shaped(agent, r, gram, targets) if c["shaped"] else even(c["ridges"], gram, targets)
        w = z @ basis
        for s, told, log_det, ridge in whitened:
            for j, (limit, L) in enumerate(zip(limits, norms, strict=True)):
                y, R = told[j], limit.noise * math.sqrt(log_det + 2 * math.log(union / p))
                R += limit.misspecification * math.sqrt(agent.costs.spread[r, 0])
                R = max(R, 1e-6 * L * math.sqrt(ridge))
                for multiple in c["multipliers"]:
                    k = multiple * (R / L) ** 2
                    D = s * s + k
                    radius = math.sqrt(R * R + k * (L**2 - float((y * y / D).sum())))
                    centre, width = w @ (s * y / D), radius * np.sqrt((w * w) @ (1 / D))
                    upper[:, j] = np.minimum(upper[:, j], centre + width)
                    lower[:, j] = np.maximum(lower[:, j], centre - width)
        error = np.array([limit.misspecification for limit in limits]) * (1 + np.abs(rho))[:, None]
        known = rho[:, None] * (anchor.cost[0] if anchor is not None else np.zeros(m))
        return known + upper + error, known + lower - error

    last = graph.terminal
    safe, future = np.ones(last.n_states, bool), np.zeros(last.n_states)
    if last.cost_features is not None:
        top, low = interval(H - 1, last.cost_features)
        safe = (top <= bound + 1e-12).all(axis=1) | ~last.has_cost | last.fallback_reached
        future = np.where(last.has_cost, (np.maximum(top - low, 0) / slack[-1]).max(axis=1), 0.0)
    value = np.where(safe, last.reward, 0.0)
    plan = NumpyPlan([], [], [], [], [value], [])
    for h in reversed(range(H - 1)):
        layer = graph.layers[h]
        edges, states = layer.pair_ptr[:-1], layer.state_ptr[:-1]
        upper, lower = interval(h, layer.cost_features)
        kept = (upper <= bound + 1e-12).all(axis=1) & safe[layer.successor]
        certified = np.logical_and.reduceat(kept, edges)
        certified[layer.fallback_pairs()] = True
        omega = np.maximum.reduceat((np.maximum(upper - lower, 0) / slack[h]).max(axis=1), edges)
        ahead = np.maximum.reduceat(future[layer.successor], edges)
        following = value[layer.successor]
        phi_v = np.add.reduceat(layer.transition_features * following[:, None], edges, axis=0)
        r = agent.transitions.regression(h)
        ridge = c["value_ridge"]
        gram, (target,) = sums(agent.transitions.bank, r)
        factor = np.linalg.cholesky(ridge * np.eye(len(gram)) + gram)
        log_det = 2 * np.log(np.diag(factor)).sum() - len(gram) * math.log(ridge)
        reach = H - 1 if problem.stationary_transitions else H - 1 - h
        radius = reach / 2 * math.sqrt(log_det + 2 * math.log(H / p)) + math.sqrt(ridge) * problem.transition_norm
        u = np.sqrt((solve_triangular(factor, phi_v.T, lower=True) ** 2).sum(axis=0))
        mean = phi_v @ cho_solve((factor, True), target)
        expected = np.clip(
            mean + c["optimism"] * radius * u,
            np.minimum.reduceat(following, edges),
            np.maximum.reduceat(following, edges),
        )
        most = H - h
        q = layer.reward + expected + most * (w2 * omega + w3 * ahead + (w4 * omega if h == 0 else 0.0))
        clipped = np.where(certified, np.minimum(q, most), -np.inf)
        best = np.maximum.reduceat(clipped, states)
        width = np.diff(layer.state_ptr)
        tied = certified & (clipped == np.repeat(best, width))
        among = np.where(tied, q, -np.inf)
        tied &= among == np.repeat(np.maximum.reduceat(among, states), width)
        number = np.where(tied, np.arange(len(q)), len(q))
        first = np.minimum.reduceat(number, states)
        safe = np.logical_or.reduceat(certified, states)
        future = np.maximum.reduceat(np.where(certified, np.maximum(omega, ahead), 0.0), states)
        value = np.where(safe, best, 0.0)
        for column, entry in (
            (plan.upper, upper),
            (plan.lower, lower),
            (plan.certified, certified),
            (plan.q, q),
            (plan.value, value),
            (plan.action, np.where(first == len(q), -1, first)),
        ):
            column.insert(0, entry)
    return plan
