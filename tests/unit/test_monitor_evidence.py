"""The monitor against its definition: every sum written out, by plain linear algebra on all rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.monitor import window_kernels as kernels
from surefoot.monitor.monitor import SHARES, Monitor
from surefoot.monitor.shift_kernels import common_fit, log_shift
from surefoot.monitor.window_kernels import FIRST_LEVEL, UNUSED, ridge_grid
from tests.monitored import ALPHA, chain, told

# --- RSS ------------------------------------------------------------------------------------------------


def test_ridges_go_with_the_scale_of_the_features() -> None:
    """‖x‖² = 10⁻⁶ of the longest, (σ/L)²·{1, 100} of a limit, 10⁻¹⁸ of it without noise, 10¹⁸ without a norm."""
    for longest in (1e-3, 1.0, 1e3):
        both = ridge_grid(np.array([50.0, 0.0]) * longest, np.array([1.0, 3.0]), longest) / longest**2
        assert both == pytest.approx([1e-18, 1e-16, 1.0, 2500.0, 250_000.0], rel=1e-12)
        assert ridge_grid(np.array([0.1]), np.array([0.0]), longest) / longest**2 == pytest.approx([1.0, 1e18, 1e20])


class Definition:
    """Keeps all rows, computes everything anew."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rows = problem, []
        self.limits = problem.limits
        self.longest = max(np.linalg.norm(layer.cost_features, axis=1).max() for layer in problem.graph.layers)
        if problem.graph.terminal.cost_features is not None:
            last = np.linalg.norm(problem.graph.terminal.cost_features, axis=1).max()
            self.longest = max(self.longest, last)
        noises, norms = np.array([x.noise for x in self.limits]), np.array([x.norm for x in self.limits])
        self.ridges = ridge_grid(noises, norms, self.longest)
        self.regressions = 1 if problem.stationary_costs else problem.horizon

    def add(self, h: int, x: np.ndarray, cost: np.ndarray) -> None:
        anchor, rho, z, y = self.problem.graph.anchors[h], 0.0, x, cost
        if anchor is not None:
            x0 = anchor.features[0]
            rho = float(x @ x0 / (x0 @ x0))
            z, y = x - rho * x0, cost - rho * anchor.cost[0]
        self.rows.append((0 if self.problem.stationary_costs else h, z, y, 1 + abs(rho)))

    def windows(self) -> dict[int, float]:
        """start → weight, of all that are alive after the last row."""
        n, alive = len(self.rows), {0: 0.5}
        for start in range(1, n):
            v = (start & -start).bit_length() - 1
            if v >= FIRST_LEVEL and n - start <= 2 ** (v + 1):
                i = (start // 2**v - 1) // 2
                alive[start] = 0.5 / ((v - FIRST_LEVEL + 1) * (v - FIRST_LEVEL + 2)) / ((i + 1) * (i + 2))
        return alive

    def of(self, r: int, first: int, end: int | None = None) -> tuple[Any, Any, Any]:
        rows = [row for row in self.rows[first:end] if row[0] == r]
        dim, m = self.problem.graph.cost_dim, len(self.limits)
        z = np.array([row[1] for row in rows]).reshape(-1, dim)
        return z, np.array([row[2] for row in rows]).reshape(-1, m), np.array([row[3] for row in rows])

    def excess(self, r: int, j: int, first: int) -> float:
        z, y, _ = self.of(r, first)
        found = [0.0]
        for ridge in self.ridges:
            stacked = np.vstack([z, math.sqrt(ridge) * np.eye(z.shape[1])])
            target = np.append(y[:, j], np.zeros(z.shape[1]))
            fit = np.linalg.lstsq(stacked, target, rcond=None)[0]
            found.append(float(((target - stacked @ fit) ** 2).sum()) - ridge * self.limits[j].norm ** 2)
        return max(found)

    def log_scatter(self, r: int, j: int, first: int, s: float) -> float:
        _, y, spread = self.of(r, first)
        limit = self.limits[j]
        allowed = limit.misspecification**2 * float((spread**2).sum()) / (1 - s)
        return len(y) / 2 * math.log(1 - s) + s * (self.excess(r, j, first) - allowed) / (2 * limit.noise**2)

    def log_shift(self, r: int, j: int, start: int) -> float:
        parts = [self.of(r, 0, start), self.of(r, start)]
        if not all(len(z) for z, _, _ in parts):
            return -math.inf
        limit, kappa = self.limits[j], (self.longest / 3) ** 2
        dim = self.problem.graph.cost_dim
        multiplier = 0.01 * self.ridges[0]
        rows, targets, log_det = [math.sqrt(multiplier) * np.eye(dim)], [np.zeros(dim)], 0.0
        for z, y, _ in parts:
            gram = z.T @ z
            factor = np.linalg.cholesky(gram + kappa * np.eye(dim))
            rows.append(np.linalg.solve(factor, gram))
            targets.append(np.linalg.solve(factor, z.T @ y[:, j]))
            log_det += np.linalg.slogdet(np.eye(dim) + gram / kappa)[1]
        stacked, target = np.vstack(rows), np.concatenate(targets)
        fit = np.linalg.lstsq(stacked, target, rcond=None)[0]
        least = max(0.0, float(((target - stacked @ fit) ** 2).sum()) - multiplier * limit.norm**2)
        error = limit.misspecification * math.sqrt(sum(float((spread**2).sum()) for _, _, spread in parts))
        return max(0.0, math.sqrt(least) - error) ** 2 / (2 * limit.noise**2) - log_det / 2

    def log_evidence(self, stride: int = 1) -> float:
        noisy = [j for j, limit in enumerate(self.limits) if limit.noise > 0]
        told, everywhere = self.rows[-1][0], range(self.regressions)
        logs: list[float] = []
        for start, weight in self.windows().items():
            for j in noisy:
                for s in SHARES:
                    each = [self.log_scatter(r, j, start, s) for r in everywhere]
                    prior = math.log(weight / 2 / len(noisy) / len(SHARES))
                    if self.regressions == 1:
                        logs.append(prior + each[0])
                    else:
                        logs.append(prior + math.log(0.5) + sum(each))
                        logs += [prior - math.log(2 * self.regressions) + one for one in each]
                if start and len(self.rows) % stride == 0:
                    logs.append(math.log(weight / len(noisy) / self.regressions) + self.log_shift(told, j, start))
        top = max(logs)
        return top + math.log(sum(math.exp(value - top) for value in logs))


CASES: dict[str, dict[str, Any]] = {
    "pooled": {"limits": Limit("c", bound=9.0, noise=0.1, norm=1.0)},
    "anchored": {"limits": Limit("c", bound=9.0, noise=0.1, norm=1.0), "anchor": ([0.5, 0.0, 1.0], 0.1)},
    "layered": {"limits": Limit("c", bound=9.0, noise=0.1, norm=1.0), "stationary": False, "horizon": 4},
    "misspecified": {
        "limits": Limit("c", bound=9.0, noise=0.1, norm=1.0, misspecification=0.05),
        "anchor": ([0.5, 0.0, 1.0], 0.1),
    },
    "several": {
        "limits": [
            Limit("c", bound=9.0, noise=0.1, norm=1.0),
            Limit("b", bound=9.0, noise=0.02, norm=0.5, misspecification=0.01),
            Limit("exact", bound=9.0, noise=0.0, norm=2.0, misspecification=9.0),
        ]
    },
    "no fit allowed": {"limits": Limit("c", bound=9.0, noise=0.1, norm=0.0)},
    "zeros": {"limits": Limit("c", bound=9.0, noise=0.1, norm=1.0)},  # in features, here and there
}


@pytest.mark.parametrize("name", CASES)
def test_evidence_equals_its_definition(name: str, seed: int) -> None:
    """At every measurement up to and past the first restarts, with a shift in the middle."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (6, 3))
    if name == "zeros":
        features *= np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]])
    terminal = rng.uniform(-1, 1, (6, 3)) if name == "layered" else None
    problem = chain(features, terminal=terminal, **CASES[name])
    m, last = len(problem.limits), problem.horizon - 1
    monitor, definition = Monitor(problem, 1e-9), Definition(problem)
    gamma = rng.uniform(-0.4, 0.4, (m, 3))
    for t in range(150):
        if t == 100:
            gamma = gamma + 0.3
        h = int(rng.integers(last + (terminal is not None)))
        table = terminal if h == last else problem.graph.layers[h].cost_features
        x = table[int(rng.integers(len(table)))]
        cost = gamma @ x + 0.1 * rng.standard_normal(m)
        monitor.observe(h, x, cost)
        definition.add(h, x, cost)
        if t < 3 or t in (31, 32, 33, 63, 64, 65) or t % 10 == 0:
            assert monitor.log_evidence == pytest.approx(definition.log_evidence(), rel=1e-8, abs=1e-7), t


def test_with_many_features_shifts_are_looked_for_less_often(seed: int) -> None:
    """Every (40 // 16)² = 4 measurements; between them the mixture leaves them out."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (60, 40))
    problem = chain(features, Limit("c", bound=99.0, noise=0.1, norm=3.0), horizon=2)
    monitor, definition = Monitor(problem, 1e-200), Definition(problem)
    gamma = rng.uniform(-0.2, 0.2, 40)
    for t in range(1, 201):
        if t == 130:
            gamma = rng.uniform(-0.2, 0.2, 40)
        e = int(rng.integers(60))
        cost = np.array([features[e] @ gamma + 0.1 * rng.standard_normal()])
        monitor.observe(0, features[e], cost)
        definition.add(0, features[e], cost)
        if t in (31, 64, 65, 150, 151, 152, 199, 200):
            expected = definition.log_evidence(stride=4)
            assert monitor.log_evidence == pytest.approx(expected, rel=1e-7, abs=1e-6), t


def test_rounding_of_all_rows_is_taken_off_a_shift() -> None:
    """By the size of all rows that there are, those of the first window; others do not count."""
    monitor = Monitor(chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=0.1, norm=1.0), horizon=2), 1e-200)
    for t in range(100):
        told(monitor, 0, 0, 0.2 if t < 64 else 0.9)
    windows, declared = monitor._windows, monitor._declared
    assert windows.start[2] == 64

    def evidence() -> float:
        return float(log_shift(windows, declared, 2, 0, *common_fit(windows, declared.ridges[0], 0))[0])

    found = evidence()
    assert found > 100.0
    windows.size[1:] *= 1e20
    assert evidence() == found
    windows.size[0] *= 1e20
    assert evidence() < 0.0  # nothing is left but what the search costs


# --- windows --------------------------------------------------------------------------------------------


def test_a_window_that_begins_knows_nothing_of_what_was_before(seed: int) -> None:
    """After 32 measurements, and again after 64 + 32, it is as one that began with the world."""
    rng = np.random.default_rng(seed)
    limits = [
        Limit("c", bound=99.0, noise=0.1, norm=1.0, misspecification=0.1),
        Limit("exact", bound=99.0, noise=0.0, norm=1.0, misspecification=9.0),
    ]
    problem = chain(rng.uniform(-1, 1, (4, 2)), limits, anchor=([0.5, 1.0], [0.1, 0.1]), stationary=False)
    old = Monitor(problem, 1e-9)
    rows = [(1, int(rng.integers(4)), rng.uniform(0, 0.5, 2)) for _ in range(97)]
    for t, row in enumerate(rows, 1):
        told(old, row[0], row[1], *row[2])
        if t in (33, 97):
            new = Monitor(problem, 1e-9)
            told(new, row[0], row[1], *row[2])
            room, fresh = (monitor._windows._asdict() for monitor in (old, new))
            assert (room["start"][1], fresh["start"][0]) == (t - 1, 0)
            for name in set(room) - {"start", "log_weight"}:
                assert room[name][1].tobytes() == fresh[name][0].tobytes(), name
            x = problem.graph.layers[1].cost_features[row[1]]
            rho = x @ [0.5, 1.0] / 1.25
            assert fresh["rows"][0].tolist() == [0, 1, 0]
            assert fresh["size"][0] == pytest.approx([0, x @ x, 0], rel=1e-14)
            errors = np.array([0.1, 9.0]) * (1 + abs(rho))
            assert fresh["spread"][0] == pytest.approx(np.outer([0, 1, 0], errors**2), rel=1e-14)
            assert fresh["squares"][0] == pytest.approx(np.array([[0, 0], row[2] ** 2, [0, 0]]), rel=1e-14)


def test_weights_of_windows_add_up_to_a_half() -> None:
    starts = range(1 << FIRST_LEVEL, 1 << 20, 1 << FIRST_LEVEL)
    weights = [kernels.window_of(t)[1] for t in starts]
    assert 0.4 < math.fsum(weights) < 0.5
    levels = sum(1 / ((k + 1) * (k + 2)) for k in range(10_000))
    assert levels == pytest.approx(1, abs=1e-3)  # of levels, and in the same way of starts within a level


def test_windows_are_few_and_of_every_age() -> None:
    problem = chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=0.1, norm=1.0), horizon=2)
    monitor = Monitor(problem, ALPHA)
    for t in range(1, 3000):
        told(monitor, 0, 0, 0.5)
        starts = monitor.arrays()["start"]
        alive = starts[starts != UNUSED]
        assert len(alive) <= max(1, math.log2(t) - 3)
        a = 32
        while a <= t / 4:
            assert any(a <= t - start < 4 * a for start in alive), (t, a)
            a *= 2
