"""Directed exploration plans what the specification says: compared with a literal transcription of it."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf
from tests.differential import test_priors
from tests.differential.compare import Comparison, compare, problem_of
from tests.differential.test_reference import ridges
from tests.reference.directed import DirectedReference
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed
from tests.reference.priors import DirectedPriorReference, random_declared
from tests.reference.tables import Tables

BATCHES, BATCH, P = 3, 17, 0.05  # of problems; a third of them by default
FAMILIES = 40


def options(number: int) -> dict[str, Any]:
    """Values that are clipped, and that are not; budgets that bind, and that do not."""
    return {
        "optimism": (1.0, 0.1, 0.02)[number % 3],
        "replan_growth": (0.1, 0.5, 0.0)[number // 3 % 3],
        "budget": 1.0 if number % 5 == 0 else 30.0,
        **ridges(number),
    }


def tables_of(number: int, seed: int) -> Tables:
    """Rewards that are no tenths: a tie between hopes is decided by rounding, and decides all that follows."""
    tables, rng = random_tables(number + 100_000 * seed), np.random.default_rng([seed, number, 4])
    for rewards in (tables.reward, tables.terminal_reward):
        for key, reward in rewards.items():
            rewards[key] = 0.9 * reward + 0.1 * float(rng.random())  # type: ignore[index]
    return tables


def play(number: int, seed: int) -> tuple[Comparison, DirectedReference]:
    tables, chosen, tally = tables_of(number, seed), options(number), Comparison()
    agent = sf.LsviNew(problem_of(tables), P, exploration="directed", **chosen)
    reference = DirectedReference(tables, P, **chosen)
    rng = np.random.default_rng([seed, number, 3])
    episodes = 100 if number % 4 == 0 else int(rng.integers(5, 41))  # long enough to learn what seldom comes
    for k, episode in enumerate(random_history(tables, reference, episodes, rng)):
        if reference.doubtful:
            break
        feed(agent, episode)
        if agent.replans != reference.replans + 1:
            tally.faults.append(f"problem {number}, episode {k}: {agent.replans - 1} plans and {reference.replans}")
            break
        if not reference.doubtful and (k % 7 == 0 or k < 3):
            compare(tables, agent.plan, reference, tally)
            tally.number("gap", agent.plan.gap, reference.gap)
            tally.number("targets", agent.plan.targets[0], [reference.sure[0, s] for s in reference.layers[0]])
    return tally, reference


def test_directed_exploration_agrees_with_the_reference(batch: int, seed: int) -> None:
    played = [play(number, seed) for number in range(batch * BATCH, (batch + 1) * BATCH)]
    faults = [fault for tally, _ in played for fault in tally.faults]
    assert not faults, faults[:10]
    # The generator is tested too: it must come to explore, and rounding must seldom decide.
    references = [reference for _, reference in played]
    assert sum(reference.doubtful for reference in references) <= 0.2 * BATCH
    assert sum(reference.directed_plans > 0 for reference in references) >= 0.5 * BATCH
    assert sum(reference.moved_plans > 0 for reference in references) >= 0.2 * BATCH
    assert any(reference.lowered_shares for reference in references)  # by what came
    assert sum(reference.lowered_values > 0 for reference in references) >= 0.2 * BATCH


def test_directed_exploration_in_several_families_agrees_with_the_reference(seed: int) -> None:
    """Limits with priors have rows of their own: a target is narrowed in the space of the limit that it fails most."""
    several = explored = moved = aimed_apart = doubtful = 0
    for number in range(FAMILIES):
        tables, rng = tables_of(5000 + number, seed), np.random.default_rng([seed, number, 6])
        known, chosen, tally = random_declared(tables, rng), {**options(number), "replan_growth": 0.0}, Comparison()
        agent = sf.LsviNew(test_priors.problem_of(tables, known), P, exploration="directed", **chosen)
        if len(agent.costs.families) == 1:
            continue
        several += 1
        agent._departs = lambda *_: False  # type: ignore[method-assign]  # the history is drawn without offsets
        reference = DirectedPriorReference(tables, P, declared=known, **chosen)
        for k, episode in enumerate(random_history(tables, reference, 10, rng)):
            if reference.doubtful:
                break
            feed(agent, episode)
            assert agent.replans == reference.replans + 1, (number, k)
            if not reference.doubtful and k in (0, 1, 4, 9):
                compare(tables, agent.plan, reference, tally)
                tally.number("gap", agent.plan.gap, reference.gap)
                tally.number("targets", agent.plan.targets[0], [reference.sure[0, s] for s in reference.layers[0]])
        assert not tally.faults, (number, tally.faults[:5])
        explored += reference.directed_plans > 0
        moved += reference.moved_plans > 0
        aimed_apart += bool(reference.spaces_aimed_at - {0})
        doubtful += reference.doubtful
    assert doubtful <= 0.2 * several
    assert explored >= 3
    assert moved >= 2
    assert aimed_apart >= 2


class Heavier(DirectedReference):
    """Weighs information by a millionth more."""

    def _weigh(self, *words: Any) -> float:
        return super()._weigh(*words) * (1.0 + 1e-6)


def test_another_weight_would_be_seen(seed: int) -> None:
    """Negative control."""
    tallies = []
    for number in range(8):
        tables, tally = tables_of(number, seed), Comparison()
        agent = sf.LsviNew(problem_of(tables), P, budget=30.0, replan_growth=0.0)
        reference = Heavier(tables, P, 30.0, replan_growth=0.0)
        for episode in random_history(tables, reference, 5, np.random.default_rng(seed)):
            feed(agent, episode)
            compare(tables, agent.plan, reference, tally)
        tallies.append(tally)
    assert any(tally.faults for tally in tallies)
