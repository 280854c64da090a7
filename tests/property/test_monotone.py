"""Less knowledge never certifies more: larger radii, tighter limits, larger supports; and plans repeat to the bit.

All plans compared here are made from the same observations, before every episode. A radius so small that bounds cross
is another matter: then the fallback alone is left, so plans whose bounds contradict each other are left out and
counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import surefoot as sf
from tests.alike import same_plan, same_state
from tests.differential.compare import problem_of
from tests.reference.generate import Episode, random_history, random_tables
from tests.reference.history import feed
from tests.reference.tables import Tables

ROUNDING = 1e-12  # the guard of a bound depends a little on the radius
PROBLEMS = 25
P = 0.05


def histories(seed: int, kind: int, **wanted: Any) -> Iterator[tuple[int, Tables, list[Episode]]]:
    """Problems, each with a history over all its actions, short and long."""
    for number in range(PROBLEMS):
        tables = random_tables(1_000_000 * kind + 1000 * seed + number, **wanted)
        rng = np.random.default_rng([seed, kind, number])
        yield number, tables, list(random_history(tables, rng, int(rng.integers(0, 25)), rng))


def learned(problem: sf.Problem, history: list[Episode], **options: Any) -> Any:
    agent = sf.LsviNew(problem, P, **{"replan_growth": 1e9, **options})
    for episode in history:
        feed(agent, episode)
    agent.replan()
    return agent.plan


def certified(tables: Tables, plan: Any) -> set[Any]:
    return {pair for pair in tables.pairs() if plan.certified(*pair)}


def test_a_larger_radius_never_certifies_more(seed: int) -> None:
    shrunk = left_out = 0
    for _, tables, history in histories(seed, 1):
        problem = problem_of(tables)
        plans = [learned(problem, history, safety_radius_scale=scale) for scale in (1.0, 1.2, 2.0, 10.0)]
        for narrow, wide in pairwise(plans):
            if not narrow.consistent:
                left_out += 1
                continue
            assert wide.consistent
            assert certified(tables, wide) <= certified(tables, narrow)
            shrunk += certified(tables, wide) < certified(tables, narrow)
            for key in tables.triplets():
                assert (wide.upper(*key) >= narrow.upper(*key) - ROUNDING).all()
                assert (wide.lower(*key) <= narrow.lower(*key) + ROUNDING).all()
    assert shrunk >= 5
    assert left_out <= 0.1 * PROBLEMS


def test_a_tighter_limit_never_certifies_more(seed: int) -> None:
    """Without anchors, whose cost must stay below the bound; the fallback stays certified by assumption."""
    shrunk = 0
    for number, tables, history in histories(seed, 2, anchors=False):
        rng = np.random.default_rng([seed, number])
        limits = list(problem_of(tables).limits)
        kappa = sf.LsviNew(problem_of(tables)).options.shaped  # the room below the limits decides the default one
        before = certified(tables, learned(problem_of(tables), history, shaped=kappa))
        for _ in range(4):
            j = int(rng.integers(len(limits)))
            limits[j] = replace(limits[j], bound=limits[j].bound - 0.2 * float(rng.random()))
            problem = sf.Problem.from_functions(**tables.functions(), limits=limits)
            after = certified(tables, learned(problem, history, shaped=kappa))
            assert after <= before
            shrunk += after < before
            before = after
        assert before >= tables.fallback_pairs()
    assert shrunk >= 5


def test_a_larger_support_never_certifies_more(seed: int) -> None:
    """An action may lead to one more of the existing states; states and what the seed reaches stay the same."""
    shrunk = 0
    for number, tables, history in histories(seed, 3):
        rng = np.random.default_rng([seed, number])
        even = [sf.LsviNew(problem_of(tables)).options.ridges[0]]  # what rows are declared decides the default one
        plan = learned(problem_of(tables), history, ridges=even)
        for _ in range(3):
            larger = _with_one_more_successor(tables, plan, rng)
            if larger is None:
                break
            after = learned(problem_of(larger), history, ridges=even)
            assert certified(larger, after) <= certified(tables, plan)
            shrunk += certified(larger, after) < certified(tables, plan)
            tables, plan = larger, after
    assert shrunk >= 5


def _with_one_more_successor(tables: Tables, plan: Any, rng: np.random.Generator) -> Tables | None:
    """Off the seed, at a cost like that of another successor; more often than not where it can hurt."""
    seed = tables.fallback_pairs()
    choices = [
        (pair, s2)
        for pair, support in tables.successors.items()
        for s2 in tables.states(pair[0] + 1)
        if pair not in seed and s2 not in support
    ]
    hurting = [(pair, s2) for pair, s2 in choices if plan.certified(*pair) and not plan.safe(pair[0] + 1, s2)]
    choices = hurting if hurting and rng.random() < 0.7 else choices
    if not choices:
        return None
    (h, s, a), s2 = choices[int(rng.integers(len(choices)))]
    other = tables.successors[h, s, a][0]
    x = {**tables.x, (h, s, a, s2): list(tables.x[h, s, a, other])}
    phi = x if tables.shared_features else {**tables.phi, (h, s, a, s2): list(tables.phi[h, s, a, other])}
    successors = {**tables.successors, (h, s, a): [*tables.successors[h, s, a], s2]}
    return replace(tables, successors=successors, x=x, phi=phi)


def radii(problem: sf.Problem, history: list[Episode]) -> tuple[float, list[float]]:
    """How many times the ridge is taken in the shape of the features; and of every regression the first limit's R."""
    agent = sf.LsviNew(problem, P, replan_growth=1e9)
    for episode in history:
        feed(agent, episode)
    known, noise = agent.cost_confidence, float(problem.noises[0])
    data = [agent.costs.learned(agent.costs.regression(h), known) for h in range(problem.horizon)]
    return known.shaped, [known.radius(each.growth, each.unit, noise, 1.0) for each in data]


def noisier(problem: sf.Problem, times: dict[int, float]) -> sf.Problem:
    """The same with this many times the noise of some limits."""
    limits = tuple(replace(limit, noise=limit.noise * times.get(j, 1.0)) for j, limit in enumerate(problem.limits))
    return replace(problem, limits=limits)


def test_more_noise_has_a_larger_radius_though_it_chooses_a_larger_ridge(seed: int) -> None:
    """So the noise may have been read from rows that are imported: the event of the true one is enough (spec 3)."""
    grown = 0
    for _, tables, history in histories(seed, 7, limits=1):
        found = [radii(noisier(problem_of(tables), {0: times}), history) for times in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]
        for (ridge, less), (larger, more) in pairwise(found):
            assert larger >= ridge
            assert all(a <= b * (1 + ROUNDING) for a, b in zip(less, more, strict=True))
            grown += larger > ridge
    assert grown >= 5


def test_of_several_limits_the_noise_of_one_chooses_the_ridge_of_all(seed: int) -> None:
    """Why that is not so where they are several: more noise of one leaves another a larger ridge and a smaller R."""
    smaller = 0
    for _, tables, history in histories(seed, 8, limits=2):
        still = noisier(problem_of(tables), {0: 0.03, 1: 0.03})
        (ridge, before), (larger, after) = radii(still, history), radii(noisier(still, {1: 10.0}), history)
        assert larger >= ridge
        smaller += any(b < a * (1 - 1e-6) for a, b in zip(before, after, strict=True))
    assert smaller >= 3


def test_a_smaller_failure_probability_never_certifies_more(seed: int) -> None:
    for _, tables, history in histories(seed, 4):
        problem = problem_of(tables)
        sets = []
        for p in (0.5, 0.05, 1e-6):
            agent = sf.LsviNew(problem, p, replan_growth=1e9)
            for episode in history:
                feed(agent, episode)
            agent.replan()
            if agent.plan.consistent:
                sets.append(certified(tables, agent.plan))
        assert all(later <= earlier for earlier, later in pairwise(sets))


def test_exploration_never_touches_what_is_certified(seed: int) -> None:
    """Weights, optimism, slack and value ridge change what is tried, never what is allowed."""
    for number, tables, history in histories(seed, 5):
        rng = np.random.default_rng([seed, number])
        problem = problem_of(tables)
        options = {
            "explore": tuple(rng.uniform(0, 5, 3)),
            "optimism": float(rng.uniform(0, 3)),
            "slack": float(rng.uniform(0.1, 3)),
            "value_ridge": float(rng.uniform(0.1, 10)),
            "literal_future": bool(rng.integers(2)),
        }
        one, two = learned(problem, history), learned(problem, history, **options)
        for first, second in zip(one.bounds.upper, two.bounds.upper, strict=True):
            assert first.tobytes() == second.tobytes()
        for first, second in zip(one.certified_sets.pairs, two.certified_sets.pairs, strict=True):
            assert first.tobytes() == second.tobytes()


def test_the_same_observations_give_the_same_plans_to_the_bit(seed: int) -> None:
    """Two agents, every plan on the way, lazy or not."""
    for number, tables, history in histories(seed, 6):
        options = {"replan_growth": (0.0, 0.1, 0.5)[number % 3]}
        one, two = (sf.LsviNew(problem_of(tables), P, **options) for _ in range(2))
        same_plan(one.plan, two.plan)
        for episode in history:
            feed(one, episode)
            feed(two, episode)
            same_state(one, two)
