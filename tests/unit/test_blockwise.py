"""Plans that several processes make together: the bits of one process, also when a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import clusters
from surefoot.errors import InvalidInput, SurefootError
from surefoot.estimate.kernels import chunk_size, cut
from surefoot.model.graph import Layer
from surefoot.plan.blockwise import extent
from surefoot.plan.blockwise.extent import Extent, extents
from surefoot.plan.blockwise.team import Team
from surefoot.plan.plan import Plan
from tests import engines as made
from tests.sparse_worlds import sparse_twin

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

HORIZON, STATES, DIM = 4, 300, 144  # wide rows come in small chunks, of which every block then has several


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with made.cluster(3) as found:
        yield found


def irregular(seed: int, *, per_pair: bool = False, shared: bool = False) -> sf.Problem:
    """Some actions here and some there, that lead to some states each: no chunk begins where a state does."""
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
        transition_features=steps["phi"],
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


@pytest.mark.parametrize("kind", [{}, {"per_pair": True}, {"shared": True}])
def test_the_same_bits(kind: dict[str, bool], cluster: Any, seed: int) -> None:
    problem = irregular(seed, **kind)
    here, there = sf.LsviNew(problem), sf.LsviNew(problem, on=clusters.of_cluster(cluster, 3))
    assert_the_same_bits(here.plan, there.plan)
    plans = [learn(agent, 12, seed) for agent in (here, there)]
    assert 0 < plans[0].n_certified() < sum(layer.n_pairs for layer in problem.graph.layers)
    assert_the_same_bits(plans[0], plans[1])
    assert str(plans[0].why(0, 0, 0)) == str(plans[1].why(0, 0, 0))
    assert there.team is not None
    assert len(there.team.members) == 3
    table = problem.graph.layers[0].cost_features.nbytes
    assert all(cost.received / cost.barriers < table / 50 for cost in there.team.costs.values())  # no rows travel


def test_data_that_contradict_what_was_declared(cluster: Any, seed: int) -> None:
    problem = irregular(seed)
    plans = []
    for on in (None, clusters.of_cluster(cluster, 3)):
        agent = sf.LsviNew(problem, on=on)
        for h, layer in enumerate(problem.graph.layers):
            for _ in range(50):
                agent.costs.add(h, layer.cost_features[3], np.array([5.0, -5.0]))
        agent.replan()
        plans.append(agent.plan)
    assert not plans[0].consistent
    assert_the_same_bits(plans[0], plans[1])


def groups(numbers: Any, x: Any, first: int = 0) -> list[tuple[int, ...]]:
    """Who is computed together, in numbers of the whole step."""
    cuts = cut(numbers, x, first)
    return [tuple((numbers[a:b] + first).tolist()) for a, b in pairwise(cuts)]


def torn(layer: Layer, found: list[Extent], wanted: Any) -> int:
    """Chunks of pairs that hold an own pair of some block, and are not the same there as in the whole step."""
    x = layer.transition_features
    whole = {pair: group for group in groups(wanted, x) for pair in group}
    bad = 0
    for each in found:
        held = wanted[(wanted >= each.pairs.first) & (wanted < each.pairs.end)]
        for group in groups(held - each.pairs.first, x, each.pairs.first):
            own = [pair for pair in group if each.own_pairs.first <= pair < each.own_pairs.end]
            bad += any(whole[pair] != group for pair in own)
    return bad


def test_a_block_holds_the_chunks_of_its_states(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    layers = irregular(seed, per_pair=bool(seed % 2)).graph.layers
    wanted = [np.flatnonzero(rng.random(layer.n_pairs) < 0.6) for layer in layers]
    for layer, some in zip(layers, wanted, strict=True):
        found = extents(layer, 4)
        assert [each.own.end for each in found[:-1]] == [each.own.first for each in found[1:]]
        assert (found[0].own.first, found[-1].own.end) == (0, layer.n_states)
        assert torn(layer, found, some) == 0
        for each in found:
            assert each.table.first % chunk_size(layer.cost_features) == 0
            assert each.table.first <= each.rows.first <= each.rows.end <= each.table.end
    monkeypatch.setattr(extent, "_widened", lambda layer, states: states)  # the control: own states alone
    assert sum(torn(layer, extents(layer, 4), some) for layer, some in zip(layers, wanted, strict=True))


def test_a_worker_dies_during_a_plan(cluster: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: the plan is begun anew on those who are left, to the same bits."""
    problem, real, asked = irregular(seed), Team.ask, list[str]()
    agent = sf.LsviNew(problem, on=clusters.of_cluster(cluster, 3))

    def ask(self: Team, question: str, words: Any) -> Any:
        asked.append(question)
        if question == "backward" and asked.count("backward") in (2, 5):
            os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)
        return real(self, question, words)

    monkeypatch.setattr(Team, "ask", ask)
    many = learn(agent, 5, seed)
    assert asked.count("look") >= 3
    assert_the_same_bits(learn(sf.LsviNew(problem), 5, seed), many)


def test_what_is_refused(seed: int) -> None:
    problem = sf.worlds.make("thermal/testing").problem
    with pytest.raises(InvalidInput, match=r"no such cluster: 'dusk'.*tcp://"):
        sf.LsviNew(problem, on="dusk")
    with pytest.raises(InvalidInput, match="directed exploration only"):
        sf.LsviNew(problem, on="dask", exploration="ideas")
    with pytest.raises(InvalidInput, match="directed exploration only"):
        sf.LsviNew(problem, on="dask", skip_hopeless=True)
    with pytest.raises(InvalidInput, match="dense features"):
        sf.LsviNew(sparse_twin(problem), on="dask")


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with pytest.raises(SurefootError, match=r"the cluster does not answer: tcp://127.0.0.1:9.*leave out on="):
        sf.LsviNew(sf.worlds.make("thermal/testing").problem, on="tcp://127.0.0.1:9")
