"""The engine computes what the specification says: compared with a literal transcription of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.estimate import costs
from tests.differential.compare import Comparison, compare, problem_of
from tests.reference import lsvi_new
from tests.reference.generate import (
    random_history,
    random_paper_settings,
    random_paper_tables,
    random_tables,
)
from tests.reference.history import feed
from tests.reference.lsvi_new import DEVIATIONS, Reference
from tests.reference.tables import Tables

BATCHES = 6  # a third of them by default, all with --thorough
BATCH = 17
P = 0.05


def options(number: int) -> dict[str, Any]:
    """Every constant is exercised; at optimism 1 the clip would hide errors of the value regression."""
    return {
        "optimism": (1.0, 0.1, 0.02)[number % 3],
        "replan_growth": (0.0, 0.1, 0.5)[number // 3 % 3],
        "explore": ((0.1, 0.02, 0.02), (0.0, 0.3, 0.0), (0.0, 0.0, 0.2))[number // 9 % 3],
        "literal_future": number % 5 == 0,
        "slack": None if number % 4 else 0.7,
        **ridges(number),
    }


def ridges(number: int) -> dict[str, Any]:
    """By default one with the shape of the features; on every fourth problem a grid of even ones, else some given."""
    if number % 4 == 3:
        return {"ridges": (0.03, 0.3, 3.0)}
    return {"ridges": (0.4,), "shaped": 3.0} if number % 12 == 5 else {}


def play(tables: Tables, agent: sf.LsviNew, reference: Reference, rng: np.random.Generator) -> Comparison:
    """Feed both the same history; compare the first plan, some in between, and the last."""
    tally = Comparison()
    compare(tables, agent.plan, reference, tally)
    for k, episode in enumerate(random_history(tables, reference, int(rng.integers(5, 41)), rng)):
        feed(agent, episode)
        if agent.replans != reference.replans + 1:
            tally.faults.append(f"episode {k}: {agent.replans - 1} replans and {reference.replans}")
            break
        if k % 10 == 0:
            agent.begin_episode(episode.start)  # the paper's plan depends on the start
            compare(tables, agent.plan, reference, tally)
            agent.abort_episode()
            agent.episodes -= 1
    agent.begin_episode(tables.starts[0])
    reference.begin_episode(tables.starts[0])
    compare(tables, agent.plan, reference, tally)
    seed = tables.fallback_pairs()
    masks = {ok for pair, ok in reference.plan.certified.items() if pair not in seed}
    tally.mixed += len(masks) == 2
    return tally


def check(tallies: list[Comparison]) -> None:
    faults = [fault for tally in tallies for fault in tally.faults]
    assert not faults, faults[:10]
    pairs, excluded = sum(t.pairs for t in tallies), sum(t.excluded for t in tallies)
    assert excluded <= 0.001 * pairs, f"{excluded} of {pairs} pairs lie within rounding of a limit"
    # The generator is tested too: problems where all or nothing is certified would prove little.
    assert sum(t.mixed for t in tallies) >= 0.3 * len(tallies)


def test_certified_learner_agrees_with_the_reference(batch: int, seed: int) -> None:
    tallies = []
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        tables = random_tables(number + 100_000 * seed)
        chosen = options(number)
        agent = sf.LsviNew(problem_of(tables), P, **chosen)
        reference = Reference(tables, P, **chosen)
        tallies.append(play(tables, agent, reference, np.random.default_rng([seed, number])))
    check(tallies)
    # 50 over all problems; each batch carries its share
    assert sum(t.condition_2_only for t in tallies) >= 5


def test_paper_learner_agrees_with_the_reference(batch: int, seed: int) -> None:
    tallies = []
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        tables = random_paper_tables(number + 100_000 * seed)
        chosen = {**random_paper_settings(number), "initial_episodes": 0}
        chosen["episodes"] = int(chosen["episodes"])
        agent = sf.LsviNewPaper(problem_of(tables), P, **chosen)
        reference = Reference(tables, P, profile="paper", **chosen)
        tallies.append(play(tables, agent, reference, np.random.default_rng([seed, number, 1])))
    check(tallies)


def departures(tables: Tables, number: int) -> tuple[str, ...]:
    """The paper verbatim, or all deviations but one; joint features where the problem has them."""
    left = (DEVIATIONS, *((name,) for name in DEVIATIONS if name != "features"))[number % len(DEVIATIONS)]
    return tuple(name for name in DEVIATIONS if name not in left or (name == "features" and not tables.shared_features))


def paper_case(number: int, seed: int, ours: tuple[str, ...] | None, theirs: tuple[str, ...] | None) -> Comparison:
    tables = random_paper_tables(number + 100_000 * seed)
    chosen = {**random_paper_settings(number // len(DEVIATIONS)), "initial_episodes": 0}
    chosen["episodes"] = int(chosen["episodes"])
    usual = departures(tables, number)
    agent = sf.LsviNewPaper(problem_of(tables), P, deviations=usual if ours is None else ours, **chosen)
    reference = Reference(tables, P, profile="paper", deviations=usual if theirs is None else theirs, **chosen)
    return play(tables, agent, reference, np.random.default_rng([seed, number, 3]))


def test_verbatim_paper_learner_agrees_with_the_reference(seed: int) -> None:
    check([paper_case(number, seed, None, None) for number in range(3 * len(DEVIATIONS))])


@pytest.mark.parametrize("name", ["clip", "fallback", "lazy", "radius"])
def test_a_deviation_that_is_not_left_out_would_be_seen(name: str, seed: int) -> None:
    """Negative control: without it, the learner differs from a reference that has it, on some problem."""
    without = tuple(each for each in DEVIATIONS if each != name)
    assert any(paper_case(number, seed, without, DEVIATIONS).faults for number in range(2 * BATCH))


def test_contradicting_data_leave_the_fallback_alone(seed: int) -> None:
    """A radius far too small makes bounds cross; then both certify exactly the fallback."""
    crossed = 0
    for number in range(6):
        tables = random_tables(number + 100_000 * seed)
        chosen = {"safety_radius_scale": 0.002, "replan_growth": 0.0}
        agent = sf.LsviNew(problem_of(tables), P, exploration="ideas", **chosen)  # type: ignore[arg-type]
        agent.cost_confidence = replace(agent.cost_confidence, guard=False)  # nearly crossing bounds magnify it
        reference = Reference(tables, P, **chosen)
        check_ = play(tables, agent, reference, np.random.default_rng([seed, number, 2]))
        assert not check_.faults, check_.faults[:5]
        if not agent.plan.consistent:
            crossed += 1
            fallback_pairs = tables.fallback_pairs()
            assert {pair for pair in tables.successors if agent.plan.certified(*pair)} == set(fallback_pairs)
    assert crossed


def test_a_wrong_radius_would_be_seen(seed: int) -> None:
    """Negative control: the comparison notices a radius that is off by a millionth."""
    tables = random_tables(1 + 100_000 * seed)
    agent = sf.LsviNew(problem_of(tables), P, exploration="ideas", safety_radius_scale=1 + 1e-6, replan_growth=0.0)
    reference = Reference(tables, P, replan_growth=0.0)
    tally = play(tables, agent, reference, np.random.default_rng(seed))
    assert any("upper" in fault for fault in tally.faults)


@pytest.mark.parametrize("room", [3, 64])
def test_visits_are_counted_alike(room: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model errors row by row of the data: all rows, and where there is room for a few only."""
    monkeypatch.setattr(costs, "MOST_VISITED", room)
    monkeypatch.setattr(lsvi_new, "MOST_VISITED", room)
    tallies, counted, full = [], 0, 0
    for number in range(4):
        tables = random_tables(number + 500 + 100_000 * seed, misspecified=True)
        agent, reference = sf.LsviNew(problem_of(tables), P, **options(number)), Reference(tables, P, **options(number))
        tallies.append(play(tables, agent, reference, np.random.default_rng([seed, number])))
        made = [agent.costs.ellipsoids(h, agent.cost_confidence) for h in range(tables.horizon)]
        counted += sum(each.counted is not None for each in made)
        full += int((agent.costs.state.visits.rest > 0.0).sum())
    check(tallies)
    assert counted >= 6
    assert (full > 0) == (room == 3)
