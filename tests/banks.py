"""Banks of dense regressions, and their flat statistics as matrices."""

from __future__ import annotations

import numpy as np

import surefoot as sf
from surefoot.estimate.bank import Bank
from surefoot.estimate.basis import Turned
from surefoot.estimate.blocks import one_block_each
from surefoot.estimate.ellipsoids import Spread
from surefoot.estimate.families import Family
from surefoot.estimate.update import FACTOR, GRAM, GRAM_LOW
from surefoot.model.priors import resolved


def dense_bank(n: int, dim: int, n_targets: int, ridge: float) -> Bank:
    return Bank(one_block_each(dim, n), n_targets, ridge)


def _matrices(bank: Bank, kind: int) -> np.ndarray:
    dim = bank.blocks.dim
    return bank.state.squares[kind].reshape(-1, dim, dim)


def gram(bank: Bank) -> np.ndarray:
    """(R, d, d) of a dense bank; below its diagonal is all that is kept."""
    lower = _matrices(bank, GRAM)
    assert not np.triu(lower, 1).any()
    return lower + np.swapaxes(np.tril(lower, -1), 1, 2)


def gram_low(bank: Bank) -> np.ndarray:
    lower = _matrices(bank, GRAM_LOW)
    return lower + np.swapaxes(np.tril(lower, -1), 1, 2)


def factor(bank: Bank) -> np.ndarray:
    """(R, d, d) in place."""
    return _matrices(bank, FACTOR)


def targets(bank: Bank) -> np.ndarray:
    """(R, m, d)"""
    m = bank.state.targets.shape[1]
    return np.swapaxes(bank.state.targets[0].reshape(m, -1, bank.blocks.dim), 0, 1)


def family_of(limits: tuple[sf.Limit, ...], dim: int, longest: float) -> Family:
    """Limits with norms alone, beside rows that are so long."""
    priors = tuple(resolved(limit, dim, None) for limit in limits)
    noises = np.array([limit.noise for limit in limits])
    return Family(tuple(range(len(limits))), limits, noises, priors, np.ones(dim), longest, longest, longest, 1.0)


def spread_of(rows: float) -> Spread:
    """Of so many rows without an anchor, of up to eight limits."""
    return Spread(rows, np.zeros(8), np.zeros(8), int(rows))


def turned(gram: np.ndarray, targets: np.ndarray) -> Turned:
    """A regression that has these sums, G (d, d) and b (m, d), in the eigenbasis of G."""
    bank = dense_bank(1, len(gram), len(targets), 1.0)
    bank.state.squares[GRAM] = np.tril(gram).reshape(-1)
    bank.state.targets[0] = targets
    return bank.turned(0)
