"""Problems in which no chunk begins where a state does, and plans of them that must agree to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf
from surefoot.plan.plan import Plan

HORIZON, STATES, DIM = 4, 300, 144  # wide rows come in small chunks, of which every block then has several


def irregular(seed: int, *, per_pair: bool = False, shared: bool = False, one_table: bool = False) -> sf.Problem:
    """Some actions here and some there, that lead to some states each: no chunk begins where a state does. ``shared``:
    by all steps; ``one_table``: of costs and transitions."""
    rng = np.random.default_rng(seed)
    steps: dict[str, list[Any]] = {name: [] for name in ("state_ptr", "pair_ptr", "successors", "reward", "x", "phi")}
    for h in range(HORIZON - 1):
        if shared and h:
            for column in steps.values():
                column.append(column[0])
            continue
        state_ptr = np.concatenate([[0], np.cumsum(rng.integers(1, 5, STATES))])
        pair_ptr = np.concatenate([[0], np.cumsum(rng.integers(1, 5, state_ptr[-1]))])
        rows = int(state_ptr[-1] if per_pair else pair_ptr[-1])
        x = rng.random((rows, DIM)) - 0.5
        x[:, 0] = 2.0
        x *= (rng.uniform(0.3, 1.0, rows) / np.linalg.norm(x, axis=1))[:, None]
        following = np.concatenate([rng.choice(STATES, n, replace=False) for n in np.diff(pair_ptr)])
        phi = rng.random((int(pair_ptr[-1]), 7)) / 9.0
        for name, value in zip(steps, (state_ptr, pair_ptr, following, rng.random(state_ptr[-1]), x, phi), strict=True):
            steps[name].append(value)
    return sf.Problem.from_arrays(
        horizon=HORIZON,
        start=[0, 7],
        state_ptr=steps["state_ptr"],
        pair_ptr=steps["pair_ptr"],
        successors=steps["successors"],
        reward=steps["reward"],
        cost_features=steps["x"],
        transition_features=None if one_table else steps["phi"],
        row_ptr=[np.arange(len(p)) for p in steps["pair_ptr"]] if per_pair else None,
        terminal_reward=rng.random(STATES),
        terminal_cost_features=rng.random((STATES, DIM)) / DIM,
        fallback=np.zeros(STATES, np.int64),
        limits=[sf.Limit("load", bound=0.45, noise=0.05, norm=0.8), sf.Limit("heat", bound=0.6, noise=0.1, norm=1.0)],
        stationary_costs=shared,
    )


def learn(agent: sf.LsviNew, episodes: int, seed: int) -> Plan:
    """Costs and transitions of no world in particular; a plan must be computed from whatever comes."""
    rng, problem = np.random.default_rng(seed), agent.problem
    for _ in range(episodes):
        agent.begin_episode(0)
        state = 0
        for h in range(HORIZON - 1):
            action = agent.act(h, state)
            following = rng.choice(problem.successors(h, state, action)).item()
            agent.observe(h, state, action, following, [0.2 + 0.05 * rng.normal(), 0.25])
            state = following
        agent.observe_terminal(state, [0.1, 0.1])
        agent.end_episode()
    for h in range(HORIZON - 1):  # as if what came had come often: other successors of these pairs are hardly likely
        agent._arrivals.add(h, np.repeat(agent._arrivals.of(h)[0], 500).tolist())
    agent.replan()
    return agent.plan


def assert_the_same_bits(one: Plan, many: Plan) -> None:
    graph = one.problem.graph
    for h, layer in enumerate(graph.layers):
        for this, other in (
            (one.certified_sets.pairs[h], many.certified_sets.pairs[h]),
            (one.hope.hopeful.pairs[h], many.hope.hopeful.pairs[h]),
            (one.values.action[h], many.values.action[h]),
            (one.values.bonus[h], many.values.bonus[h]),
            (one.hope.best.action[h], many.hope.best.action[h]),
            (one.bounds.upper[h], np.asarray(many.bounds.upper[h])),
        ):
            assert np.array_equal(this, other, equal_nan=this.dtype.kind == "f")
        pairs = np.flatnonzero(one.certified_sets.pairs[h])[:5]
        assert np.allclose(one.q_row(h)[pairs], many.q_row(h)[pairs], rtol=1e-13)
        assert layer.n_pairs == len(many.values.q[h])
    for h in range(graph.horizon):
        assert np.array_equal(one.values.value[h], many.values.value[h])
        assert np.array_equal(one.hope.best.value[h], many.hope.best.value[h])
        assert np.array_equal(one.certified_sets.states[h], many.certified_sets.states[h])
    assert (one.consistent, one.gap, one.to_gain) == (many.consistent, many.gap, many.to_gain)
    assert (one.directed is None) == (many.directed is None)
    if one.directed is not None and many.directed is not None:
        assert one.directed.shares.targets == many.directed.shares.targets
        assert all(map(np.array_equal, one.directed.shares.share, many.directed.shares.share))
        for this, other in zip(one.directed.told.of_played, many.directed.told.of_played, strict=True):
            assert all(map(np.array_equal, this, other))
