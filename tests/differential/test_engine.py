"""The engine's short cuts change nothing: threads, skipping, plain NumPy, sharing between layers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest

import surefoot as sf
from benchmarks.numpy_plan import numpy_plan
from benchmarks.problems import learned, random_problem
from surefoot.estimate import kernels
from surefoot.plan import kernels as sweeps
from tests.differential.compare import problem_of
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed
from tests.reference.lsvi_new import Reference


def everything(plan: Any) -> list[np.ndarray]:
    return [*plan.bounds.upper, *plan.bounds.lower, *plan.certified_sets.pairs, *plan.values.value, *plan.values.action]


@pytest.mark.parametrize("stationary", [False, True])
def test_one_and_two_threads_give_the_same_bits(stationary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = learned(random_problem(20_000, 12, horizon=4, stationary=stationary), rows=300)
    agent.replan()
    plans = [everything(agent.plan)]  # by the kernels for one thread
    for module in (kernels, sweeps):
        monkeypatch.setattr(module, "WORTH_THREADS", 1)  # threads even for a small problem
    before = numba.get_num_threads()
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            agent.replan()
            plans.append(everything(agent.plan))
    finally:
        numba.set_num_threads(before)
    assert all(np.array_equal(one, two) and np.array_equal(one, alone) for alone, one, two in zip(*plans, strict=True))


SMALL_PLAN = """
import surefoot as sf
sf.LsviNew(sf.worlds.make("thermal/small").problem)
from numba.np.ufunc import parallel
print(parallel._is_initialized)
"""


def test_a_small_plan_wakes_no_threads_even_where_those_of_a_large_one_are_stored() -> None:
    """numba stores code by name alone: the two kernels of a pair must not find each other's, where all are stored."""
    threaded = "from surefoot.estimate import kernels\nfrom surefoot.plan import kernels as sweeps\n"
    threaded += "kernels.WORTH_THREADS = sweeps.WORTH_THREADS = 1\n" + SMALL_PLAN
    answers = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        for program in (threaded, SMALL_PLAN)
    ]
    assert answers == ["True", "False"]


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


def test_skipping_changes_nothing_that_is_looked_at(seed: int) -> None:
    """With skip_hopeless every entry that is computed is that of the full plan, and the policy is the same."""
    left_out = compared = 0
    for number in range(25):
        tables = random_tables(number + 100_000 * seed)
        problem, reference = problem_of(tables), Reference(tables, 0.05)
        full, short = sf.LsviNew(problem), sf.LsviNew(problem, skip_hopeless=True)
        for episode in random_history(tables, reference, 40, np.random.default_rng([seed, number])):
            feed(full, episode)
            feed(short, episode)
        for start in tables.starts:  # the same action, or one that is as good to the last digits
            ours, theirs = short.plan.action(0, start), full.plan.action(0, start)
            assert abs(full.plan.q(0, start, ours) - full.plan.q(0, start, theirs)) <= 1e-12
        for h in range(problem.horizon - 1):
            looked = np.isfinite(short.plan.bounds.upper[h]).all(axis=1)
            left_out += int((~looked).sum())
            compared += int(looked.sum())
            # a row's last bit may depend on where it stands in a block
            assert np.allclose(full.plan.bounds.upper[h][looked], short.plan.bounds.upper[h][looked], 0, 1e-12)
            certified = short.plan.certified_sets.pairs[h]
            assert (full.plan.certified_sets.pairs[h] | ~certified).all()
            both = certified & ~np.isnan(short.plan.values.q[h])
            assert np.allclose(full.plan.values.q[h][both], short.plan.values.q[h][both], 0, 1e-11)
    assert left_out > 0.01 * compared, "nothing was ever skipped"


def test_skipping_spares_a_table_that_the_last_layer_shares() -> None:
    """Rows that no decision wants are still the last layer's own."""
    x = np.diag([0.1, 0.9, 0.4, 0.2])
    problem = sf.Problem.from_arrays(
        horizon=3,
        start=0,
        state_ptr=[np.array([0, 4]), np.arange(5)],
        pair_ptr=np.arange(5),
        successors=[np.arange(4), np.array([0, 0, 1, 3])],
        reward=np.array([0.1, 0.9, 0.5, 0.7]),
        cost_features=x,
        terminal_cost_features=x,
        transition_features=np.ones((4, 1)),
        fallback=[np.array([0]), np.array([0, -1, -1, -1])],
        limits=sf.Limit("load", bound=0.5, noise=0.01, norm=2.0),
        stationary_costs=True,
        stationary_transitions=True,
    )
    plans = []
    for skip in (False, True):
        agent = sf.LsviNew(problem, skip_hopeless=skip)
        for edge in 50 * [0, 1, 2, 3]:
            agent.costs.add(0, x[edge], x[edge, edge : edge + 1])
        for _ in range(2):  # the second looks at less
            agent.replan()
        plans.append(agent.plan)
    one, two = plans
    assert one.bounds.terminal_upper is not None
    assert np.array_equal(one.bounds.terminal_upper, two.bounds.terminal_upper)
    assert all(map(np.array_equal, one.certified_sets.pairs, two.certified_sets.pairs))
    assert all(map(np.array_equal, one.values.value, two.values.value))


def test_skipping_runs_to_the_same_end(seed: int) -> None:
    world = sf.worlds.make("thermal/small")
    full = sf.run(sf.LsviNew(world.problem, exploration="ideas"), world, 2000, seed)
    short = sf.run(sf.LsviNew(world.problem, exploration="ideas", skip_hopeless=True), world, 2000, seed)
    assert np.array_equal(full.regret, short.regret)
    with pytest.raises(sf.errors.InvalidInput, match="skip_hopeless"):
        sf.LsviNew(world.problem, skip_hopeless=True, literal_future=True)
