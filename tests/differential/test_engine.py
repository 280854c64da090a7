"""The engine's short cuts change nothing: threads, skipping, plain NumPy, sharing between layers."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import surefoot as sf
from benchmarks.numpy_plan import numpy_plan
from benchmarks.problems import learned, random_problem
from surefoot import threads
from surefoot.estimate import kernels
from surefoot.plan import kernels as sweeps


def everything(plan: Any) -> list[np.ndarray]:
    return [*plan.bounds.upper, *plan.bounds.lower, *plan.certified_sets.pairs, *plan.values.value, *plan.values.action]


@pytest.mark.parametrize("stationary", [False, True])
def test_one_and_two_threads_give_the_same_bits(stationary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = learned(random_problem(20_000, 12, horizon=4, stationary=stationary), rows=300)
    agent.replan()
    plans = [everything(agent.plan)]  # all at once
    for module in (kernels, sweeps):
        monkeypatch.setattr(module, "WORTH_THREADS", 1)  # threads even for a small problem
    before = numba.get_num_threads()
    try:
        for number in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(number)
            agent.replan()
            plans.append(everything(agent.plan))
    finally:
        numba.set_num_threads(before)
    assert all(np.array_equal(one, two) and np.array_equal(one, alone) for alone, one, two in zip(*plans, strict=True))


def test_only_large_plans_wake_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    woken, pool = list[int](), threads._pool
    monkeypatch.setattr(threads, "_pool", lambda number: woken.append(number) or pool(number))
    monkeypatch.setattr(threads, "usable_threads", lambda: 2)
    agent = sf.LsviNew(sf.worlds.make("thermal/small").problem)
    assert not woken
    for module in (kernels, sweeps):
        with monkeypatch.context() as large:
            large.setattr(module, "WORTH_THREADS", 1)
            agent.replan()
        assert set(woken) == {1}
        woken.clear()


@pytest.mark.parametrize("shared", [False, True])
def test_a_large_plan_is_that_of_plain_numpy(shared: bool, seed: int) -> None:
    agent = learned(random_problem(30_000, 10, horizon=4, shared=shared, seed=seed), rows=500, seed=seed)
    agent.replan()
    ours, theirs = agent.plan, numpy_plan(agent)
    bound = agent.problem.limits[0].bound
    for h in range(3):
        assert np.allclose(ours.bounds.upper[h], theirs.upper[h], rtol=0, atol=1e-9)
        assert np.allclose(ours.bounds.lower[h], theirs.lower[h], rtol=0, atol=1e-9)
        near = np.abs(theirs.upper[h] - bound).min()
        assert near <= 1e-9 or np.array_equal(ours.certified_sets.pairs[h], theirs.certified[h])
        assert np.allclose(ours.q_row(h), theirs.q[h], rtol=0, atol=1e-9)
    share = np.mean(np.concatenate(ours.certified_sets.pairs))
    assert 0.02 < share < 0.98, "a plan that certifies all or nothing would prove little"
