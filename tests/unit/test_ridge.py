"""The statistics stay exact: a million rows against exact sums and a fresh Cholesky factor."""

from __future__ import annotations

import math
from fractions import Fraction

import numba
import numpy as np
import pytest

from surefoot.estimate.bank import Bank
from surefoot.estimate.update import add_row
from tests import banks
from tests.banks import dense_bank

MILLION = 1_000_000
DRIFT = 1e-9  # relative, after a million rows


@numba.njit
def add_all(bank, shape, z, y):  # type: ignore[no-untyped-def]
    for i in range(len(z)):
        add_row(0, 0, bank, shape, z[i].copy(), y[i])


def filled(z: np.ndarray, y: np.ndarray, ridge: float) -> Bank:
    bank = dense_bank(1, z.shape[1], y.shape[1], ridge)
    add_all(bank.state, bank.blocks.shape, z, y)
    return bank


def exact_gram(z: np.ndarray) -> np.ndarray:
    d = z.shape[1]
    return np.array([[math.fsum(z[:, i] * z[:, k]) for k in range(d)] for i in range(d)])


def exact_targets(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([[math.fsum(y[:, j] * z[:, i]) for i in range(z.shape[1])] for j in range(y.shape[1])])


def relative(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error of an entry, relative to that entry."""
    return float(np.max(np.abs(got - exact) / np.abs(exact)))


def test_a_million_rows_do_not_drift(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, y, ridge = rng.uniform(-0.2, 1.0, (MILLION, 3)), rng.uniform(-0.5, 1.0, (MILLION, 2)), 1e-3
    bank, gram = filled(z, y, ridge), exact_gram(z)
    factor = np.linalg.cholesky(gram + ridge * np.eye(3))
    assert relative(banks.gram(bank)[0], gram) < 1e-15  # far below the drift of a plain sum
    assert relative(banks.targets(bank)[0], exact_targets(z, y)) < 1e-15
    lower = np.tril_indices(3)
    assert relative(banks.factor(bank)[0][lower], factor[lower]) < DRIFT
    assert bank.log_det()[0] == pytest.approx(2 * np.log(np.diag(factor)).sum() - 3 * math.log(ridge), rel=DRIFT)


def test_small_rows_are_not_swallowed_by_large_ones(seed: int) -> None:
    """A plain sum loses every small row between two huge ones that cancel off the diagonal and in the targets."""
    rng = np.random.default_rng(seed)
    z, y = rng.uniform(0.1, 1.0, (MILLION, 2)), rng.uniform(0.1, 1.0, (MILLION, 1))
    z[0], z[-1], y[0], y[-1] = (1e8, 1e8), (1e8, -1e8), 1e8, -1e8
    bank = filled(z, y, 1.0)
    gram, targets = exact_gram(z), exact_targets(z, y)
    rounding = 2 * np.spacing(1e16)  # of the largest term, once, and not once per row
    assert abs(banks.gram(bank)[0] - gram).max() <= rounding
    assert abs(banks.targets(bank)[0] - targets).max() <= rounding
    plain = np.cumsum(z[:, 0] * z[:, 1])[-1], np.cumsum(y[:, 0] * z[:, 1])[-1]  # the rows are hostile indeed
    assert abs(plain[0] - gram[0, 1]) > 10_000 * rounding
    assert abs(plain[1] - targets[0, 1]) > 10_000 * rounding


def test_high_and_low_parts_stand_for_the_exact_sum(seed: int) -> None:
    """gram + gram_low against rational arithmetic, products not rounded."""
    rng = np.random.default_rng(seed)
    z, y = rng.standard_normal((500, 2)), rng.standard_normal((500, 1))
    bank = filled(z, y, 1.0)
    for i in range(2):
        for k in range(2):
            exact = sum(Fraction(float(row[i])) * Fraction(float(row[k])) for row in z)
            size = sum(abs(Fraction(float(row[i])) * Fraction(float(row[k]))) for row in z)
            held = Fraction(float(banks.gram(bank)[0, i, k])) + Fraction(float(banks.gram_low(bank)[0, i, k]))
            assert abs(held - exact) <= Fraction(2) ** -53 * size * 2
            assert abs(banks.gram_low(bank)[0, i, k]) <= np.spacing(abs(banks.gram(bank)[0, i, k]))


@pytest.mark.parametrize("dim", [1, 2, 5, 12])
@pytest.mark.parametrize("ridge", [1e-6, 1.0, 400.0])
def test_factor_is_the_cholesky_factor_after_every_row(dim: int, ridge: float, seed: int) -> None:
    rng = np.random.default_rng([seed, dim])
    bank = dense_bank(1, dim, 1, ridge)
    for _ in range(40):
        z = rng.standard_normal(dim) * 10.0 ** rng.uniform(-3, 1)
        z[rng.random(dim) < 0.3] = 0.0
        bank.add(0, 0, z.copy(), rng.standard_normal(1))
        fresh = np.linalg.cholesky(banks.gram(bank)[0] + ridge * np.eye(dim))
        # A fresh factor is itself uncertain by ε·λmax/λ.
        tolerance = 1e-13 * (1 + np.trace(banks.gram(bank)[0]) / ridge)
        np.testing.assert_allclose(np.tril(banks.factor(bank)[0]), fresh, rtol=1e-12, atol=tolerance * fresh.max())
        growth = np.linalg.slogdet(fresh @ fresh.T)[1] - dim * math.log(ridge)
        assert bank.log_det()[0] == pytest.approx(growth, abs=10 * tolerance + 1e-10)


def test_log_det_never_falls_and_the_factor_stays_positive(seed: int) -> None:
    """Zero, denormal, repeated, nearly dependent and huge rows; the data can only grow."""
    rng = np.random.default_rng(seed)
    bank = dense_bank(1, 3, 1, 1e-6)
    direction = rng.standard_normal(3)
    rows = [np.zeros(3), np.full(3, 5e-324), np.full(3, 1e-160), direction, direction]
    rows += [direction * (1 + 1e-15 * i) for i in range(50)] + [np.full(3, 1e8), np.array([1e8, 1e-8, 0.0])]
    rows += [rng.standard_normal(3) * 10.0 ** rng.uniform(-12, 6) for _ in range(500)]
    before = bank.log_det()[0]
    assert before == 0.0
    for z in rows:
        bank.add(0, 0, z.copy(), np.ones(1))
        now = bank.log_det()[0]
        assert now >= before - 1e-14 * abs(before)
        assert (np.diagonal(banks.factor(bank)[0]) >= math.sqrt(1e-6) * (1 - 1e-12)).all()
        assert (np.diagonal(banks.gram(bank)[0]) >= 0).all()
        before = now


def test_growth_is_noticed_above_the_threshold_only() -> None:
    bank = dense_bank(2, 1, 1, 1.0)
    planned = bank.log_det()
    assert not bank.has_grown(planned, 0.0)  # no growth is not growth
    bank.add(1, 1, np.array([1.0]), np.ones(1))  # log det: 0 → log 2
    assert bank.has_grown(planned, math.log(2) - 1e-9)
    assert not bank.has_grown(planned, math.log(2) + 1e-9)


def test_refresh_ends_the_drift_of_the_factor() -> None:
    bank = dense_bank(1, 2, 1, 1.0)
    bank.add(0, 0, np.array([1.0, 2.0]), np.ones(1))
    exact = banks.factor(bank).copy()
    banks.factor(bank)[:] *= 1.01
    bank.refresh()
    np.testing.assert_allclose(banks.factor(bank), exact, rtol=1e-15)
    again = banks.factor(bank).copy()
    bank.refresh()
    np.testing.assert_array_equal(banks.factor(bank), again)
