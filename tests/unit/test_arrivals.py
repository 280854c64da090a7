"""What came, and what can be expected of it (spec 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import lsvi_new
from surefoot.errors import InvalidInput
from surefoot.estimate.arrivals import NOT_PLAYED, Arrivals, Played, at_most
from tests.alike import assert_same_run, differences, plan_record

WORLD = "thermal/testing"


def counted(problem: sf.Problem, *edges: tuple[int, int]) -> Arrivals:
    found = Arrivals(problem.graph)
    for h, edge in edges:
        found.add(h, [edge])
    return found


def test_chances_by_hand() -> None:
    """Two plays of a pair of two triplets: nothing is known yet. A thousand: what never came hardly ever does."""
    problem = sf.worlds.make(WORLD).problem
    graph = problem.graph
    log_term = math.log(sum(layer.n_edges for layer in graph.layers) / 0.05)
    pair = int((np.diff(graph.layers[1].pair_ptr) == 2).argmax())
    first, other = graph.layers[1].edges_of(pair)
    few = counted(problem, (1, first), (1, first)).played(graph, 0.05)
    assert few[0] is NOT_PLAYED
    assert few[1].pairs.tolist() == [pair]
    assert few[1].edges.tolist() == [first, other]
    assert few[1].expected(np.array([0.0, 1.0])).tolist() == [1.0]
    many = counted(problem, *[(1, first)] * 1000).played(graph, 0.05)[1]
    sets = math.log(2.0)  # two sets have one triplet
    never = (log_term + sets + math.log(2.0)) / ((1.0 - math.exp(-1.0)) * 1000)
    assert many.expected(np.array([0.0, 1.0])) == pytest.approx([never])
    assert many.expected(np.array([-2.0, 1.0])) == pytest.approx([3.0 * never - 2.0])
    assert many.expected(np.array([1.0, 0.0])).tolist() == [1.0]
    assert NOT_PLAYED.expected(np.empty(0)).tolist() == []


def test_what_comes_half_the_time_is_expected_half_the_time() -> None:
    """Within 1/√n, so that the steps of an episode do not multiply an error."""
    for n in (100, 1000, 10_000, 1_000_000):
        assert 0.5 < at_most(0.5 * n, n, 10.0) <= 0.5 + 4.0 * math.sqrt(10.0 / n)


@pytest.mark.statistical
@pytest.mark.parametrize(("share_of_bound", "holds"), [(1.0, True), (0.5, False)])
def test_no_set_of_triplets_is_likelier_than_said_at_any_time(share_of_bound: float, holds: bool, seed: int) -> None:
    """At p = 0.5 for each of 400 pairs; negative control: half of the bound."""
    rng, missed = np.random.default_rng(seed), 0
    sets, log_term = [[0], [1], [2], [0, 1], [0, 2], [1, 2]], math.log(3 / 0.5) + math.log(3)
    for _ in range(400):
        chances = rng.dirichlet(np.full(3, 0.3))
        came = np.cumsum(rng.multinomial(1, chances, 300), axis=0)
        missed += any(
            chances[own].sum() > share_of_bound * at_most(float(came[n - 1, own].sum()), float(n), log_term)
            for n in (1, 2, 5, 10, 20, 50, 100, 200, 300)
            for own in sets
        )
    assert (missed <= 0.5 * 400) == holds


def test_the_most_is_the_same_wherever_it_is_computed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ptr = np.concatenate([[0], np.cumsum(rng.integers(1, 6, 40))])
    worth = np.round(rng.normal(size=ptr[-1]), 1)  # with ties
    played = Played(np.arange(40), ptr, np.arange(ptr[-1]), rng.integers(0, 50, ptr[-1]) + 1.0, 8.0)
    whole, parts = played.expected(worth), list[float]()
    for first, end in ((0, 7), (7, 7), (7, 40)):
        triplets = slice(ptr[first], ptr[end])
        parts += played.part(slice(first, end), triplets).expected(worth[triplets]).tolist()
    assert parts == whole.tolist()
    for a, b, found in zip(ptr, ptr[1:], whole, strict=False):
        times, worths = played.times[a:b], worth[a:b]
        assert (times * worths).sum() / times.sum() - 1e-12 <= found <= worths.max() + 1e-12


def test_a_pair_counts_as_new_when_its_plays_have_doubled() -> None:
    problem = sf.worlds.make(WORLD).problem
    edge, *_ = problem.graph.layers[1].edges_of(3)
    for before, since, due in ((0, 16, False), (0, 17, True), (40, 40, False), (40, 41, True)):
        found = counted(problem, *[(1, edge)] * before, *[(0, 0)] * 50)
        then = found.flat()
        found.add(1, [edge] * since)
        assert found.doubled(then, problem.graph) == due


@pytest.mark.slow
def test_a_plan_is_due_when_what_it_waited_for_has_had_its_chances(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty actions almost as good as the fallback, each with an end that never comes and would tell all: they are
    tried one after the other, and none for a tenth of all episodes."""

    def episodes_with_a_gap() -> int:
        world = lures(20)
        return int((sf.run(sf.LsviNew(world.problem), world, 4000, seed).gap > 0).sum())

    ours = episodes_with_a_gap()
    monkeypatch.setattr(lsvi_new, "FIRST_LOOK", 10**9)
    assert ours < 0.85 * episodes_with_a_gap()


def lures(n: int) -> sf.World:
    actions = {"idle": (0.5, 0.0), **{f"lure {i}": (0.49 - 0.001 * i, 0.0) for i in range(n)}}
    actions |= {"trial": (0.1, 0.3), "best": (1.0, 0.9)}

    def chances(h: int, s: str, a: str, after: str) -> list[float]:
        found = [0.0] * (2 * n + 1)
        found[2 * int(a[5:]) + (after == "never") if a.startswith("lure") else -1] = 1.0
        return found

    problem = sf.Problem.from_functions(
        horizon=2,
        start="start",
        actions=lambda h, s: list(actions),
        successors=lambda h, s, a: ["end", "never"] if a.startswith("lure") else ["end"],  # type: ignore[union-attr]
        reward=lambda h, s, a: actions[a][0],  # type: ignore[index]
        cost_features=lambda h, s, a, after: [1.0, 0.3 if after == "never" else actions[a][1]],  # type: ignore[index]
        transition_features=chances,  # type: ignore[arg-type]
        fallback=lambda h, s: "idle",
        anchor=lambda h: ([1.0, 0.0], 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=0.1, norm=1.0),
        transition_norm=math.sqrt(n + 1),
    )
    return sf.World(problem, transition=[1.0, 0.0] * n + [1.0], cost=[0.2, 0.3])


def test_triplets_are_counted_while_there_is_a_gap_and_however_they_are_played(seed: int) -> None:
    world = sf.worlds.make(WORLD)
    whole, stepped = (sf.LsviNew(world.problem) for _ in range(2))
    runs = [sf.run(whole, world, 300, seed), sf.run(stepped, world, 300, seed, compiled=False)]
    assert_same_run(*runs)
    ours, theirs = (agent.checkpoint() for agent in (whole, stepped))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    gap = runs[0].gap
    if gap[-1] == 0.0:  # then the last episodes do not count
        assert ours["came/now/times"].sum() < 300 * (world.problem.horizon - 1)
    assert ours["came/now/times"].sum() >= world.problem.horizon - 1


@pytest.mark.parametrize("name", ["came/now/edge", "came/then/times", "came/now/ptr"])
def test_counts_of_another_agent_are_refused(name: str, seed: int) -> None:
    world = sf.worlds.make(WORLD)
    agent = sf.LsviNew(world.problem)
    sf.run(agent, world, 20, seed)
    saved = agent.checkpoint()
    wrong = {"edge": np.array([10**6]), "times": -saved[name][:1], "ptr": saved[name][:-1]}[name.rsplit("/", 1)[1]]
    with pytest.raises(InvalidInput, match="checkpoint"):
        sf.LsviNew(world.problem).restore({**saved, name: wrong})
    again = sf.LsviNew(world.problem)
    again.restore(saved)
    assert not differences(plan_record(agent.plan), plan_record(again.plan))
