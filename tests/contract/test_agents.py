"""What every agent of the registry keeps: the order of calls, refusals that change nothing, exact continuation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder, SurefootError, UnknownLabel
from surefoot.estimate.update import FACTOR
from surefoot.model.layer import NO_ACTION
from tests.alike import same_state
from tests.differential.compare import problem_of
from tests.reference.generate import random_paper_tables, random_tables
from tests.reference.tables import Tables

RING = ["s", "z", "w"]
SAFE_BY_PROMISE = {"lsvi-new", "lsvi-new-paper", "fallback", "static-shield"}

# Every name with its defaults, and what else deserves the whole suite.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in sf.agents.names()}
KINDS["lsvi-new without laziness"] = ("lsvi-new", {"replan_growth": 0.0})
KINDS["lsvi-new, very lazy"] = ("lsvi-new", {"replan_growth": 20.0})
KINDS["lsvi-new-paper"] = ("lsvi-new-paper", {"episodes": 10**6, "initial_episodes": 2})

every_agent = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, problem: sf.Problem) -> Any:
    name, options = KINDS[kind]
    return sf.agents.make(name, problem, **options)


def ring() -> sf.Problem:
    """Three states in a ring, two starts, two limits, anchors; "keep" stays, "move" may go on. "w" ends freely."""

    def features(s: str, a: str) -> list[float]:
        return [1.0, 0.2 * RING.index(s), 0.3 * (a == "move")]

    return sf.Problem.from_functions(
        horizon=4,
        start=["s", "z"],
        actions=lambda h, s: ["keep", "move"],
        successors=lambda h, s, a: [s] if a == "keep" else [s, RING[(RING.index(s) + 1) % 3]],
        reward=lambda h, s, a: 0.5 if a == "move" else 0.25,
        cost_features=lambda h, s, a, s2: features(s, a),
        transition_features=lambda h, s, a, s2: [1.0, 0.0] if a == "keep" else [0.5, 0.3 if s2 == s else -0.3],
        terminal_cost_features=lambda s: None if s == "w" else features(s, "keep"),
        fallback=lambda h, s: "keep",
        limits=[sf.Limit("heat", bound=2.0, noise=0.05, norm=1.0), sf.Limit("load", bound=2.0, noise=0.05, norm=1.0)],
        anchor=lambda h: (features("s", "keep"), [0.3, 0.2]),
        transition_norm=1.5,
    )


COST = [0.3, 0.2]


# ---------------------------------------------------------------- moments of an episode


def begin(agent: Any, moment: str) -> None:
    """Bring an agent, between episodes, to a moment."""
    if moment == "between":
        return
    first = "z" if moment == "free end" else "s"
    agent.begin_episode(first)
    if moment == "start":
        return
    agent.observe(0, first, "move", "w" if first == "z" else "z", COST)
    if moment == "middle":
        return
    here = "w" if first == "z" else "z"
    for h in (1, 2):
        agent.observe(h, here, "keep", here, COST)
    if moment == "told":
        agent.observe_terminal(here, COST)


def end(agent: Any, moment: str) -> None:
    """Finish the episode that :func:`begin` began."""
    if moment == "between":
        return
    if moment == "start":
        agent.observe(0, "s", "keep", "s", COST)
        agent.observe(1, "s", "keep", "s", COST)
        agent.observe(2, "s", "keep", "s", COST)
        agent.observe_terminal("s", COST)
    if moment == "middle":
        agent.observe(1, "z", "keep", "z", COST)
        agent.observe(2, "z", "keep", "z", COST)
    if moment in ("middle", "end"):
        agent.observe_terminal("z", COST)
    agent.end_episode()


def practise(agent: Any, episodes: int, seed: int) -> list[str]:
    """The agent's own actions on the ring, nature by dice; returns what it did."""
    rng = np.random.default_rng(seed)
    done = []
    for _ in range(episodes):
        s = ["s", "z"][rng.integers(2)]
        agent.begin_episode(s)
        for h in range(3):
            a = agent.act(h, s)
            support = agent.problem.successors(h, s, a)
            s2 = support[rng.integers(len(support))]
            agent.observe(h, s, a, s2, [0.3 + 0.05 * rng.standard_normal(), 0.2 + 0.05 * rng.standard_normal()])
            done.append((s, a))
            s = s2
        if s != "w":
            agent.observe_terminal(s, [0.3, 0.2])
        agent.end_episode()
    return done


# ---------------------------------------------------------------- misuse


@dataclass(frozen=True)
class Misuse:
    moment: str
    call: Callable[[Any], Any]
    error: type[SurefootError]
    words: str


MISUSES = {
    # the order of calls
    "act before begin": Misuse("between", lambda a: a.act(0, "s"), OutOfOrder, "no episode is under way.*Begin one"),
    "observe before begin": Misuse(
        "between", lambda a: a.observe(0, "s", "keep", "s", COST), OutOfOrder, "no episode is under way.*Begin one"
    ),
    "terminal before begin": Misuse(
        "between", lambda a: a.observe_terminal("s", COST), OutOfOrder, "no episode is under way.*Begin one"
    ),
    "end before begin": Misuse("between", lambda a: a.end_episode(), OutOfOrder, "no episode is under way"),
    "abort before begin": Misuse("between", lambda a: a.abort_episode(), OutOfOrder, "no episode is under way"),
    "unknown start": Misuse("between", lambda a: a.begin_episode("x"), UnknownLabel, "no such state.*step 0.*'x'"),
    "a later state as start": Misuse("between", lambda a: a.begin_episode("w"), UnknownLabel, "no such state.*'w'"),
    "start not named": Misuse("between", lambda a: a.begin_episode(), InvalidInput, "name the start state.*2"),
    "unhashable start": Misuse("between", lambda a: a.begin_episode(["s"]), UnknownLabel, "no such state"),
    "begin twice": Misuse("start", lambda a: a.begin_episode("s"), OutOfOrder, "already under way.*step 0.*'s'"),
    "begin twice, later": Misuse("middle", lambda a: a.begin_episode("z"), OutOfOrder, "already under way.*step 1"),
    "begin at the end": Misuse("told", lambda a: a.begin_episode("z"), OutOfOrder, "already under way.*step 3"),
    "act ahead": Misuse(
        "start", lambda a: a.act(1, "s"), OutOfOrder, "elsewhere: episode EPISODE, step 0, state 's'.*step 1"
    ),
    "act behind": Misuse(
        "middle", lambda a: a.act(0, "z"), OutOfOrder, "elsewhere: episode EPISODE, step 1, state 'z'.*step 0"
    ),
    "act in another state": Misuse("middle", lambda a: a.act(1, "s"), OutOfOrder, "elsewhere.*'z'.*'s'"),
    "act in an unknown state": Misuse("middle", lambda a: a.act(1, "x"), UnknownLabel, "no such state.*step 1.*'x'"),
    "act in no step": Misuse("middle", lambda a: a.act(9, "z"), UnknownLabel, "no such step.*9"),
    "act in step -1": Misuse("middle", lambda a: a.act(-1, "z"), UnknownLabel, "no such step.*-1"),
    "act in half a step": Misuse("middle", lambda a: a.act(1.0, "z"), UnknownLabel, "no such step.*1.0"),
    "act in the last step": Misuse(
        "end", lambda a: a.act(3, "z"), OutOfOrder, "cost of the last state is awaited.*step 3"
    ),
    "observe ahead": Misuse("start", lambda a: a.observe(1, "s", "keep", "s", COST), OutOfOrder, "elsewhere"),
    "observe twice": Misuse("middle", lambda a: a.observe(0, "s", "move", "z", COST), OutOfOrder, "elsewhere"),
    "observe in the last step": Misuse(
        "end", lambda a: a.observe(3, "z", "keep", "z", COST), OutOfOrder, "cost of the last state is awaited.*Tell it"
    ),
    "terminal too early": Misuse("middle", lambda a: a.observe_terminal("z", COST), OutOfOrder, "elsewhere"),
    "terminal of another state": Misuse("end", lambda a: a.observe_terminal("s", COST), OutOfOrder, "elsewhere"),
    "terminal of an unknown state": Misuse(
        "end", lambda a: a.observe_terminal("x", COST), UnknownLabel, "no such state.*'x'"
    ),
    "terminal without a cost": Misuse(
        "free end", lambda a: a.observe_terminal("w", COST), OutOfOrder, "nothing is left to tell.*step 3, state 'w'"
    ),
    "terminal twice": Misuse("told", lambda a: a.observe_terminal("z", COST), OutOfOrder, "nothing is left to tell"),
    "end too early": Misuse("start", lambda a: a.end_episode(), OutOfOrder, "an action is due.*step 0.*abort"),
    "end in the middle": Misuse("middle", lambda a: a.end_episode(), OutOfOrder, "an action is due.*step 1.*abort"),
    "end without the terminal cost": Misuse(
        "end", lambda a: a.end_episode(), OutOfOrder, "cost of the last state is awaited"
    ),
    # labels
    "unknown action": Misuse(
        "middle", lambda a: a.observe(1, "z", "fly", "z", COST), UnknownLabel, "no such action.*step 1.*'z'.*'fly'"
    ),
    "unknown successor": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "x", COST), UnknownLabel, "no such state.*step 2.*'x'"
    ),
    "successor outside the support": Misuse(
        "middle",
        lambda a: a.observe(1, "z", "keep", "w", COST),
        UnknownLabel,
        "outside the declared support.*'keep'.*'w'",
    ),
    # costs
    "NaN": Misuse("middle", lambda a: a.observe(1, "z", "keep", "z", [0.1, math.nan]), InvalidInput, "not finite.*nan"),
    "infinite": Misuse("middle", lambda a: a.observe(1, "z", "keep", "z", [math.inf, 0.1]), InvalidInput, "not finite"),
    "-infinite": Misuse("middle", lambda a: a.observe(1, "z", "keep", "z", [-math.inf, 0]), InvalidInput, "not finite"),
    "None inside": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [None, 0.1]), InvalidInput, "must be a num"
    ),
    "too few costs": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [0.1]), InvalidInput, "wrong number of costs.*1 where 2"
    ),
    "too many costs": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [0.1] * 3), InvalidInput, "wrong number of costs.*3 where 2"
    ),
    "no costs": Misuse("middle", lambda a: a.observe(1, "z", "keep", "z", []), InvalidInput, "0 where 2|must be a num"),
    "one number for two limits": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", 0.1), InvalidInput, "wrong number of costs.*1 where 2"
    ),
    "nested costs": Misuse("middle", lambda a: a.observe(1, "z", "keep", "z", [[0.1, 0.2]]), InvalidInput, "number"),
    "string cost": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", "warm"), InvalidInput, "must be a num.*warm"
    ),
    "strings of digits": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", ["0.1", "0.2"]), InvalidInput, "must be a number.*'0.1'"
    ),
    "half a string": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [0.1, "0.2"]), InvalidInput, "must be a num"
    ),
    "complex cost": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [0.1j, 0.2]), InvalidInput, "must be a num"
    ),
    "truth as cost": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [True, 0.2]), InvalidInput, "must be a num.*True"
    ),
    "a cost beyond numbers": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", [10**400, 0.2]), InvalidInput, "too large"
    ),
    "dict as cost": Misuse(
        "middle", lambda a: a.observe(1, "z", "keep", "z", {"heat": 1}), InvalidInput, "must be a num"
    ),
    "NaN at the end": Misuse("end", lambda a: a.observe_terminal("z", [math.nan, 0.1]), InvalidInput, "not finite"),
    "string at the end": Misuse("end", lambda a: a.observe_terminal("z", "0.1"), InvalidInput, "must be a number"),
    # checkpoints
    "checkpoint inside": Misuse("middle", lambda a: a.checkpoint(), OutOfOrder, "between episodes.*step 1"),
    "restore inside": Misuse("middle", lambda a: a.restore({}), OutOfOrder, "between episodes.*step 1"),
    "restore nothing": Misuse("between", lambda a: a.restore({}), InvalidInput, "another agent"),
}


@every_agent
def test_misuse_is_refused_in_words_and_changes_nothing(kind: str) -> None:
    """Every misuse of every moment in turn, beside a twin that was never misused; then both are equal to the bit."""
    problem = ring()
    agent, twin = make(kind, problem), make(kind, problem)
    for one in (agent, twin):
        practise(one, 3, seed=7)

    def seen() -> Any:
        return agent.episodes, agent.replans, str(agent.place), [row.tolist() for row in agent.policy()]

    for moment in sorted({case.moment for case in MISUSES.values()}):
        for one in (agent, twin):
            begin(one, moment)
        before, plan = seen(), agent.plan
        for misuse, case in MISUSES.items():
            if case.moment != moment:
                continue
            with pytest.raises(case.error) as refused:
                case.call(agent)
            words = case.words.replace("EPISODE", str(agent.episodes + 1))
            assert re.search(f"(?s){words}", str(refused.value)), misuse
            assert agent.plan is plan, misuse
            assert seen() == before, misuse
        for one in (agent, twin):
            end(one, moment)
        same_state(agent, twin)
    assert practise(agent, 3, seed=8) == practise(twin, 3, seed=8)
    same_state(agent, twin)


@every_agent
def test_a_state_that_is_no_start_cannot_begin(kind: str) -> None:
    """By arrays, layer 0 may hold states where nothing starts."""
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=np.array([0, 1, 2]),
        pair_ptr=np.array([0, 1, 2]),
        successors=np.array([0, 1]),
        reward=np.array([0.1, 0.2]),
        cost_features=np.ones((2, 1)),
        fallback=np.array([0, -1]),
        limits=sf.Limit("heat", bound=3.0, noise=0.1, norm=1.0),
        anchor=lambda h: ([1.0], [0.5]),
    )
    agent = make(kind, problem)
    with pytest.raises(InvalidInput, match=r"not a start state.*1"):
        agent.begin_episode(1)
    agent.begin_episode(0)


# ---------------------------------------------------------------- use


@every_agent
def test_policy_is_what_is_played(kind: str, seed: int) -> None:
    tables = _tables_for(kind, seed)
    agent = make(kind, problem_of(tables))
    for episode in range(6):
        played = _play(agent, tables, np.random.default_rng([seed, episode]), check_policy=True)
        assert len(played) == tables.horizon - 1


@every_agent
def test_the_plan_stays_within_an_episode(kind: str) -> None:
    agent = make(kind, ring())
    practise(agent, 2, seed=3)
    agent.begin_episode("s")
    plan = agent.plan
    agent.observe(0, "s", "move", "z", [50.0, -50.0])
    agent.observe(1, "z", "keep", "z", [50.0, -50.0])
    assert agent.plan is plan
    agent.observe(2, "z", "keep", "z", COST)
    agent.observe_terminal("z", COST)
    assert agent.plan is plan


@every_agent
def test_an_aborted_episode_counts_with_what_was_observed(kind: str) -> None:
    agent, twin = make(kind, ring()), make(kind, ring())
    agent.begin_episode("s")
    agent.abort_episode()
    assert agent.episodes == 1
    assert agent.replans == twin.replans  # nothing was seen, nothing to plan for
    agent.begin_episode("s")
    agent.observe(0, "s", "move", "z", COST)
    agent.abort_episode()
    assert agent.episodes == 2
    untouched, now = twin.checkpoint(), agent.checkpoint()
    learned = [name for name in now if "gram" in name and not np.array_equal(now[name], untouched[name])]
    assert bool(learned) == any("gram" in name for name in now)
    practise(agent, 2, seed=4)


@every_agent
def test_a_cost_that_was_not_measured(kind: str) -> None:
    """None teaches the transition and no cost; the bounds stay as they were."""
    agent = make(kind, ring())
    agent.begin_episode("s")
    for h in range(3):
        agent.observe(h, "s", "keep", "s", None)
    agent.observe_terminal("s", None)
    before = agent.plan
    agent.end_episode()
    saved = agent.checkpoint()
    for name, array in saved.items():
        if "costs" in name and not name.endswith("shapes"):  # what stands beside the data is no part of them
            data = array[:FACTOR] if name.endswith("squares") else array  # a factor begins as √λ I
            assert not data.any(), name
    if before is not None:
        for one, two in zip(before.bounds.upper, agent.plan.bounds.upper, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "paper" not in kind])
def test_one_limit_takes_a_plain_number(kind: str, seed: int) -> None:
    tables = random_tables(seed, limits=1, starts=1, anchors=True, terminal_costs=False)
    one, two = make(kind, problem_of(tables)), make(kind, problem_of(tables))
    one.begin_episode()  # the only start need not be named
    two.begin_episode(tables.starts[0])
    s = tables.starts[0]
    for h, cost in zip(range(tables.horizon - 1), (0.25, np.float64(0.5), np.array(0.75), 1, 0.125), strict=False):
        a = one.act(h, s)
        s2 = tables.successors[h, s, a][0]
        one.observe(h, s, a, s2, cost)
        two.observe(h, s, a, s2, [float(cost)])
        s = s2
    one.end_episode()
    two.end_episode()
    same_state(one, two)


@every_agent
def test_several_starts_are_played_as_named(kind: str) -> None:
    """And who asks again is answered the same."""
    agent = make(kind, ring())
    practise(agent, 3, seed=2)
    assert agent.episodes == 3
    for start in ("s", "z", "z", "s"):
        agent.begin_episode(start)
        assert agent.act(0, start) == agent.act(0, start)
        with pytest.raises(OutOfOrder, match="elsewhere"):
            agent.act(0, "z" if start == "s" else "s")
        agent.abort_episode()


@every_agent
def test_it_needs_a_problem(kind: str) -> None:
    """And nothing that knows more than a problem."""
    name, options = KINDS[kind]
    with pytest.raises(InvalidInput, match="an agent needs a Problem: a SimpleNamespace"):
        sf.agents.make(name, SimpleNamespace(problem=ring()), **options)


# ---------------------------------------------------------------- checkpoints


@every_agent
def test_a_restored_agent_goes_on_to_the_bit(kind: str, seed: int) -> None:
    """After different numbers of episodes, so that plans of all ages are met; ``saved`` must not follow the agent."""
    tables = _tables_for(kind, seed)
    for episodes in (0, 1, 5, 12):
        agent = make(kind, problem_of(tables))
        rng = np.random.default_rng([seed, episodes])
        for _ in range(episodes):
            _play(agent, tables, rng)
        saved = agent.checkpoint()
        copy = {name: array.copy() for name, array in saved.items()}
        fresh = make(kind, problem_of(tables))
        for _ in range(2):
            _play(fresh, tables, np.random.default_rng(99))  # what it learned before is forgotten
        fresh.restore(saved)
        same_state(agent, fresh)
        after = np.random.default_rng([seed, 77])
        again = np.random.default_rng([seed, 77])
        for _ in range(6):
            assert _play(agent, tables, after) == _play(fresh, tables, again)
            same_state(agent, fresh)
        for name, array in copy.items():
            assert array.tobytes() == saved[name].tobytes()
            assert array.dtype.kind in "fiub"  # plain arrays, no pickle


@every_agent
def test_a_damaged_checkpoint_is_refused_and_changes_nothing(kind: str) -> None:
    agent, twin = make(kind, ring()), make(kind, ring())
    for one in (agent, twin):
        practise(one, 4, seed=5)
    saved = agent.checkpoint()
    for name, array in saved.items():
        for damaged in (
            {key: value for key, value in saved.items() if key != name},
            {**saved, name: np.zeros((*array.shape, 2))},
        ):
            with pytest.raises(InvalidInput, match="checkpoint is of another agent"):
                agent.restore(damaged)
            same_state(agent, twin)
    with pytest.raises(InvalidInput, match=r"checkpoint is of another agent.*start"):
        agent.restore({**saved, "start": np.array(17)})
    same_state(agent, twin)


# ---------------------------------------------------------------- what it says of itself


@every_agent
def test_its_name_its_guarantee_and_its_constants_are_stamped(kind: str) -> None:
    agent = make(kind, ring())
    assert json.loads(json.dumps(agent.constants, allow_nan=False)) == agent.constants
    name = KINDS[kind][0]
    assert agent.guaranteed is (name in SAFE_BY_PROMISE)
    assert ("no safety guarantee" in agent.promise) is not agent.guaranteed
    assert agent.name == name


def test_unknown_agents_are_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no such agent: 'lsvi-mew'.*Did you mean lsvi-new"):
        sf.agents.make("lsvi-mew", ring())
    with pytest.raises(InvalidInput, match="no such agent") as caught:
        sf.agents.make("???", ring())
    assert all(name in str(caught.value) for name in sf.agents.names())


# ---------------------------------------------------------------- on random problems


def _tables_for(kind: str, seed: int) -> Tables:
    """The paper's constants exist on some problems only."""
    return random_paper_tables(seed) if "paper" in kind else random_tables(seed, starts=2, anchors=True)


def _play(agent: Any, tables: Tables, rng: np.random.Generator, check_policy: bool = False) -> list[Any]:
    """One episode of the agent against the truth."""
    s = tables.starts[int(rng.integers(len(tables.starts)))]
    agent.begin_episode(s)
    played = []
    for h in range(tables.horizon - 1):
        a = agent.act(h, s)
        if check_policy:
            pair = agent.policy()[h][agent.problem.state_index(h, s)]
            assert pair != NO_ACTION
            assert agent.problem.pair_index(h, s, a) == pair
        support = tables.successors[h, s, a]
        chances = np.array([tables.probability((h, s, a, s2)) for s2 in support])
        s2 = support[int(rng.choice(len(support), p=chances / chances.sum()))]
        noise = [limit.noise * float(rng.standard_normal()) for limit in tables.limits]
        agent.observe(h, s, a, s2, [c + e for c, e in zip(tables.cost((h, s, a, s2)), noise, strict=True)])
        played.append((s, a))
        s = s2
    final = tables.terminal_cost(s)
    if final is not None:
        agent.observe_terminal(s, final)
    agent.end_episode()
    return played
