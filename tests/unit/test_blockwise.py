"""Plans that several processes make together: the bits of one process, also when a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import clusters
from surefoot.errors import InvalidInput, SurefootError
from surefoot.plan.blockwise.block import extents
from surefoot.plan.blockwise.team import Team
from tests import engines as made
from tests.irregular import assert_the_same_bits, irregular, learn
from tests.sparse_worlds import sparse_twin

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with made.cluster(2) as found:
        yield found


@pytest.mark.parametrize("kind", [{}, {"per_pair": True}, {"shared": True}])
def test_the_same_bits(kind: dict[str, bool], cluster: Any, seed: int) -> None:
    problem = irregular(seed, **kind)
    here, there = sf.LsviNew(problem), sf.LsviNew(problem, on=clusters.of_cluster(cluster, 2))
    assert_the_same_bits(here.plan, there.plan)
    plans = [learn(agent, 6, seed) for agent in (here, there)]
    assert 0 < plans[0].n_certified() < sum(layer.n_pairs for layer in problem.graph.layers)
    assert_the_same_bits(plans[0], plans[1])
    assert str(plans[0].why(0, 0, 0)) == str(plans[1].why(0, 0, 0))
    assert there.team is not None
    assert len(there.team.members) == 2
    table = problem.graph.layers[0].cost_features.nbytes
    assert all(cost.received / cost.barriers < table / 50 for cost in there.team.costs.values())  # no rows travel


def test_data_that_contradict_what_was_declared(cluster: Any, seed: int) -> None:
    problem = irregular(seed)
    plans = []
    for on in (None, clusters.of_cluster(cluster, 2)):
        agent = sf.LsviNew(problem, on=on)
        for h, layer in enumerate(problem.graph.layers):
            for _ in range(50):
                agent.costs.add(h, layer.cost_features[3], np.array([5.0, -5.0]))
        agent.replan()
        plans.append(agent.plan)
    assert not plans[0].consistent
    assert_the_same_bits(plans[0], plans[1])


def test_every_state_is_in_one_block(seed: int) -> None:
    for layer in irregular(seed, per_pair=bool(seed % 2)).graph.layers:
        found = extents(layer, 4)
        for field in zip(*found, strict=True):  # states, pairs, edges, rows
            assert [each.end for each in field[:-1]] == [each.first for each in field[1:]]
            assert field[0].first == 0
        assert [field.end for field in found[-1]] == [layer.n_states, layer.n_pairs, layer.n_edges, layer.n_rows]


def test_a_worker_dies_during_a_plan(cluster: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is begun anew on those who are left, to the same bits."""
    problem, real, asked = irregular(seed), Team.ask, list[str]()
    agent = sf.LsviNew(problem, on=clusters.of_cluster(cluster, 2))

    def ask(self: Team, question: str, words: Any) -> Any:
        asked.append(question)
        if question == "backward" and asked.count("backward") == 2:
            os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)
        return real(self, question, words)

    monkeypatch.setattr(Team, "ask", ask)
    many = learn(agent, 5, seed)
    assert asked.count("look") >= 2
    assert_the_same_bits(learn(sf.LsviNew(problem), 5, seed), many)


def test_what_is_refused(seed: int) -> None:
    problem = sf.worlds.make("thermal/testing").problem
    with pytest.raises(InvalidInput, match=r"no such cluster: 'dusk'.*tcp://"):
        sf.LsviNew(problem, on="dusk")
    with pytest.raises(InvalidInput, match="directed exploration only"):
        sf.LsviNew(problem, on="dask", exploration="ideas")
    with pytest.raises(InvalidInput, match="dense features"):
        sf.LsviNew(sparse_twin(problem), on="dask")


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with pytest.raises(SurefootError, match=r"the cluster does not answer: tcp://127.0.0.1:9.*leave out on="):
        sf.LsviNew(sf.worlds.make("thermal/testing").problem, on="tcp://127.0.0.1:9")
