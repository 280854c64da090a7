"""The audit's own transcription of spec 3 (rows and ridges): what is left to learn of rows, and what follows from them
before any data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.audits.problem import Knowledge, Problem, norms_alone

MOST_ROWS = 100_000  #: of one table that enter N's mean; a larger one is thinned


@dataclass(frozen=True, eq=False)
class Part:
    """Of some rows and one limit: what is left to learn, what is known, Σ|ρ| and Σ|ρ|t."""

    z: Any  # (E, d)
    known: Any  # (E,)
    rho: Any  # (E, n) the coordinates among the anchors
    size: Any  # (E,)
    blur: Any  # (E,)


def split(problem: Problem, known: Knowledge, h: int, j: int, x: Any) -> Part:
    """z = δ∘x − X⁰ᵀρ, k = ⟨m,x⟩ + Σ ρ (c⁰ − ⟨m,x⁰⟩), ρ the least-squares coordinates of δ∘x among the anchors δ∘x⁰."""
    rows, middle = x * known.width, x @ known.centre
    anchors, nothing = problem.anchors[h], np.zeros(len(x))
    if anchors is None:
        return Part(rows, middle, np.zeros((len(x), 0)), nothing, nothing)
    features, cost, tolerance = anchors
    scaled = features * known.width
    lengths = np.sqrt((scaled * scaled).sum(axis=1))
    units = scaled / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    if len(scaled) == 1:
        rho = (rows @ units.T) / np.where(lengths > 0.0, lengths, 1.0)
    else:
        found = np.linalg.lstsq(units.T, rows.T, rcond=1e-6)[0].T
        rho = found / np.where(lengths > 0.0, lengths, np.inf)
    rest = cost[:, j] - features @ known.centre
    size = np.abs(rho)
    return Part(rows - rho @ scaled, middle + rho @ rest, rho, size.sum(axis=1), size @ tolerance[:, j])


def default_ridge(problem: Problem, paper: bool) -> float:
    """s, the mean ‖z‖² of all cost rows, at least 10⁻⁶ of ‖x‖²; the paper's one ridge is d."""
    if paper:
        return float(problem.dim + problem.transition_dim)
    return _ridge_scale(problem, norms_alone(problem.known[0]))


def default_shaped(problem: Problem) -> float:
    """κ = 100 (d + 10) max σ²/room², between 1/1000 and 10; room is the least |bound − anchor's cost| of a step
    that has costs."""
    most, last = 0.0, problem.horizon - (problem.last_x is None)
    for j in range(len(problem.limits)):
        steps = zip(problem.bounds[:last], problem.anchors[:last], strict=True)
        room = min(abs(row[j] - (0.0 if anchors is None else float(anchors[1][0][j]))) for row, anchors in steps)
        sigma = problem.noise(j, problem.rows_of_an_episode)
        most = max(most, (sigma / room) ** 2 if room > 0.0 else math.inf)
    return min(10.0, max(1e-3, 100.0 * (problem.dim + 10) * most))


def ridge_ratio(problem: Problem, known: Knowledge) -> float:
    """By what ridges are multiplied where rows are scaled: the ratio of the mean squares (spec 3)."""
    if (known.width == 1.0).all() or longest_scaled(problem, known) == 0.0:
        return 1.0
    return _ridge_scale(problem, known) / _ridge_scale(problem, norms_alone(known))


def _tables(problem: Problem) -> list[tuple[int, Any]]:
    """By layer the rows that have a cost; with an intensity, those at 1; of a graph that grows, those it began with."""
    problem = problem.first or problem
    tables = [(h, layer.x) for h, layer in enumerate(problem.layers)]
    if problem.last_x is not None:
        tables.append((problem.horizon - 1, problem.last_x[np.array(problem.has_cost)]))
    return tables


def _ridge_scale(problem: Problem, known: Knowledge) -> float:
    squares = [(split(problem, known, h, 0, x).z ** 2).sum(axis=1) for h, x in _tables(problem)]
    longest = longest_scaled(problem, known) or 1.0
    return max(float(np.concatenate(squares).mean()), 1e-6 * longest**2)


def feature_shapes(problem: Problem, known: Knowledge) -> Any:
    """(n, d, d) N = d·mean(zzᵀ)/s + I/100 of every regression, the mean over its rows."""
    n, dim = 1 if problem.stationary else problem.horizon, problem.dim
    sums, rows = np.zeros((n, dim, dim)), np.zeros(n)
    for h, x in _tables(problem):
        if not len(x):
            continue
        r, every = 0 if problem.stationary else h, -(-len(x) // MOST_ROWS)
        z = split(problem, known, h, 0, x[::every]).z
        sums[r] += (z.T @ z) * (len(x) / len(z))
        rows[r] += len(x)
    shares = dim / _ridge_scale(problem, known) / np.maximum(rows, 1.0)
    return sums * shares[:, None, None] + np.eye(dim) / 100.0


def longest_scaled(problem: Problem, known: Knowledge) -> float:
    """The largest ‖δ∘x‖; of a graph that grows, the most that its longest row leaves (spec 9)."""
    if problem.longest_row is not None:
        return float(known.width.max()) * problem.longest_row
    return max(float(np.sqrt(((x * known.width) ** 2).sum(axis=1)).max()) for x in problem.tables)


def reach(problem: Problem, width: Any) -> float:
    """The largest ‖δ∘x‖ of rows and anchors, or for a graph that grows no less."""
    anchors = [each[0] for each in problem.anchors if each is not None]
    longest = [float(np.sqrt(((x * width) ** 2).sum(axis=1)).max()) for x in [*problem.tables, *anchors]]
    return max([*longest, float(width.max()) * (problem.longest_row or 0.0)])
