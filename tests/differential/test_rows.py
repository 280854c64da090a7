"""Cost rows that belong to pairs, and forbidden states: the engine computes what the specification says (section 9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from tests.differential.compare import Comparison, compare, problem_of
from tests.differential.test_directed import options as directed_options
from tests.differential.test_reference import P, check, options, play
from tests.reference.directed import DirectedReference
from tests.reference.generate import (
    random_history,
    random_paper_settings,
    random_paper_tables,
    random_tables,
    with_forbidden,
    with_pair_rows,
)
from tests.reference.history import feed
from tests.reference.lsvi_new import Reference
from tests.reference.tables import Tables

EVEN = (0.03, 0.3, 3.0)  # ridges that do not depend on the rows
MOST_ROWS = {"rows per triplet": 0, "one row per pair": 1, "several rows": 3}


def tables_of(tables: Tables, rows: str, rng: np.random.Generator, stretch: float = 0.8) -> Tables:
    """With rows of this kind, and some forbidden states."""
    most = MOST_ROWS[rows]
    found = with_forbidden(with_pair_rows(tables, rng, most, stretch) if most else tables, rng)
    assert not found.faults()
    return found


@pytest.mark.parametrize("rows", MOST_ROWS)
def test_certified_learner_agrees_with_the_reference(rows: str, seed: int) -> None:
    tallies, forbidden = [], 0
    for number in range(6):
        rng = np.random.default_rng([seed, number, 5])
        tables, chosen = tables_of(random_tables(number + 100_000 * seed), rows, rng), options(number)
        agent, reference = sf.LsviNew(problem_of(tables), P, **chosen), Reference(tables, P, **chosen)
        tallies.append(play(tables, agent, reference, rng))
        forbidden += len(tables.forbidden)
    check(tallies)
    assert forbidden >= 3, "hardly anything was forbidden"


@pytest.mark.parametrize("rows", MOST_ROWS)
def test_directed_exploration_agrees_with_the_reference(rows: str, seed: int) -> None:
    tally, moved = Comparison(), 0
    for number in range(12):
        if number >= 5 and moved:
            break
        rng, chosen = np.random.default_rng([seed, number, 6]), directed_options(number)
        tables = tables_of(random_tables(number + 100_000 * seed), rows, rng)
        tables = replace(tables, reward={key: 0.9 * r + 0.1 * float(rng.random()) for key, r in tables.reward.items()})
        agent = sf.LsviNew(problem_of(tables), P, exploration="directed", **chosen)
        reference = DirectedReference(tables, P, **chosen)
        for k, episode in enumerate(random_history(tables, reference, 25, rng)):
            if reference.doubtful:
                break
            feed(agent, episode)
            if not reference.doubtful and k % 4 == 0:
                compare(tables, agent.plan, reference, tally)
                tally.number("gap", agent.plan.gap, reference.gap)
        moved += reference.moved_plans > 0
    assert not tally.faults, tally.faults[:10]
    assert moved > 0, "nothing was ever explored"


@pytest.mark.parametrize("rows", MOST_ROWS)
def test_paper_learner_agrees_with_the_reference(rows: str, seed: int) -> None:
    tallies = []
    for number in range(6):
        rng = np.random.default_rng([seed, number, 7])
        tables = tables_of(random_paper_tables(number + 100_000 * seed), rows, rng, stretch=0.0)
        chosen = {**random_paper_settings(number), "initial_episodes": 0}
        chosen["episodes"] = int(chosen["episodes"])
        agent = sf.LsviNewPaper(problem_of(tables), P, **chosen)
        tallies.append(play(tables, agent, Reference(tables, P, profile="paper", **chosen), rng))
    check(tallies)


@pytest.mark.parametrize("change", ["forbidden", "rows"])
def test_a_rule_that_is_left_out_would_be_seen(change: str, seed: int) -> None:
    """Negative control: a reference that forbids nothing, or looks at one row of a pair only, differs somewhere."""
    assert any(differs(number, change, seed) for number in range(12))


def differs(number: int, change: str, seed: int) -> bool:
    rng = np.random.default_rng([seed, number, 8])
    tables = tables_of(random_tables(number + 100_000 * seed), "several rows", rng)
    agent = sf.LsviNew(problem_of(tables), P, exploration="ideas", replan_growth=0.0, ridges=EVEN)
    driver = Reference(tables, P, replan_growth=0.0, ridges=EVEN)
    for episode in random_history(tables, driver, 15, rng):
        feed(agent, episode)
    pair_rows = dict.fromkeys(tables.pairs(), 1) if change == "rows" else tables.pair_rows
    forbidden = set() if change == "forbidden" else tables.forbidden
    other = Reference(replace(tables, pair_rows=pair_rows, forbidden=forbidden), P, ridges=EVEN)
    other.cost_rows, other.value_rows = driver.cost_rows, driver.value_rows
    other._make_plan()
    return any(agent.plan.certified(*pair) != yes for pair, yes in other.plan.certified.items())
