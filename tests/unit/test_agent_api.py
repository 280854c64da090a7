"""LSVI-NEW from outside: its keywords and their errors, its stamps, when it plans, what it plays first."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.agents.learner import Learner
from surefoot.errors import InvalidInput, OutOfOrder, UnknownLabel
from surefoot.model.measured import measured_features
from tests.differential.compare import problem_of
from tests.hand_made import corridor, maze, tell
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed

LIMIT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)


def small(**changes: Any) -> sf.Problem:
    return corridor({"fallback": [1.0], "other": [0.5]}, LIMIT, anchor=([1.0], [0.25]), **changes)


# ---------------------------------------------------------------- keywords


BAD: list[tuple[dict[str, Any], str]] = [
    ({"failure_probability": 0}, "failure_probability must be above 0.*0"),
    ({"failure_probability": 1}, "failure_probability must be below 1"),
    ({"failure_probability": math.nan}, "failure_probability must be above 0.*nan"),
    ({"ridges": []}, "ridges must not be empty"),
    ({"replan_growth": math.inf}, "replan_growth must be finite"),
    ({"ridges": (1.0, 0.0)}, "ridges must be above 0"),
    ({"value_ridge": 0.0}, "value_ridge must be above 0"),
    ({"optimism": -1.0}, "optimism must be at least 0"),
    ({"explore": (0.1, 0.1)}, "explore must be three weights"),
    ({"slack": 0.0}, "slack must be positive"),
    ({"replan_growth": -0.1}, "replan_growth must be at least 0"),
    ({"initial_episodes": -1}, "initial_episodes must be a whole number, at least 0"),
    ({"initial_episodes": 2.5}, "initial_episodes must be a whole number"),
    ({"ideas": ("I", "V")}, "no such idea.*'V'.*I, II, III, IV"),
    ({"safety_radius_scale": -1.0}, "safety_radius_scale must be at least 0"),
    ({"safety_radius_scale": True}, "safety_radius_scale must be a number: True"),
    ({"shaped": "1"}, "shaped must be a number: '1'"),
    ({"shaped": np.True_}, "shaped must be a number"),
    ({"ridges": "12"}, "ridges must be a list: '12'"),
    ({"ridges": b"1"}, "ridges must be a list"),
    ({"ridges": 1.0}, "ridges must be a list: 1.0"),
    ({"ridges": (1.0, True)}, "ridges must be a number: True"),
    ({"ridge_ratios": 1.0}, "ridge_ratios must be a list: 1.0"),
    ({"multipliers": None}, "multipliers must be a list: None"),
    ({"explore": np.array(0.1)}, "explore must be a list"),
    ({"ideas": 1}, "ideas must be a list: 1"),
    ({"slack": "1"}, "slack must be one number, or one per limit: '1'"),
    ({"slack": 10**400}, "slack must be one number, or one per limit"),
    ({"literal_future": "no"}, "literal_future must be True or False: 'no'"),
]
BAD_PAPER: list[tuple[dict[str, Any], str]] = [
    ({"episodes": 0}, "episodes must be a whole number, at least 1"),
    ({"initial_episodes": -1}, "initial_episodes must be a whole number, at least 0"),
    ({"safety_radius_scale": -1.0}, "safety_radius_scale must be at least 0"),
    ({"ridges": (1.0, 2.0)}, "the paper has one ridge"),
    ({"ridges": (0.0,)}, "ridges must be above 0"),
    ({"coverage_rate": 0.0}, "coverage_rate must be above 0"),
    ({"lipschitz": 0.0}, "lipschitz must be above 0"),
    ({"feature_bound": 0.5}, "feature_bound is below the largest cost feature"),
]


@pytest.mark.parametrize(("keywords", "words"), BAD, ids=[str(keywords) for keywords, _ in BAD])
def test_bad_keywords_are_refused_in_words(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.LsviNew(small(), **keywords)


@pytest.mark.parametrize(("keywords", "words"), BAD_PAPER, ids=[str(keywords) for keywords, _ in BAD_PAPER])
def test_so_they_are_by_the_papers_learner(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.LsviNewPaper(small(), **{"episodes": 10, **keywords})


def test_neither_learner_takes_the_others_options() -> None:
    with pytest.raises(TypeError, match="episodes"):
        sf.LsviNewPaper(small())  # type: ignore[call-arg]
    for kind, name in ((sf.LsviNew, "episodes"), (sf.LsviNew, "lipschitz"), (sf.LsviNewPaper, "optimism")):
        with pytest.raises(TypeError, match=name):
            kind(small(), **{name: 1})


def test_ideas_may_be_written_as_one_word() -> None:
    for ideas in ("I, III", "I III", ("III", "I"), ["I", "III", "I"]):
        assert sf.LsviNew(small(), ideas=ideas).options.ideas == ("I", "III")


def test_the_papers_constants_need_an_anchor_everywhere() -> None:
    with pytest.raises(InvalidInput, match=r"need an anchor at every step.*step 0"):
        sf.LsviNewPaper(corridor({"fallback": [1.0]}, LIMIT), episodes=100)


def test_a_non_positive_gap_is_named() -> None:
    """Δ_φ = L·‖x − x'‖ beyond the slack makes the paper's weights meaningless; without Ideas II-IV none is needed."""
    spread = {"x": [1.0, 0.0], "y": [0.0, 1.0]}
    problem = maze(
        {(0, "s"): {"a": ["x", "y"]}},
        {(0, "s"): "a"},
        cost_features=lambda h, s, a, s2: spread[s2],
        anchor=lambda h: ([1.0, 0.0], [0.25]),
    )
    with pytest.raises(InvalidInput, match=r"epsilon_2.*gap"):
        sf.LsviNewPaper(problem, episodes=10**6, initial_episodes=0)
    sf.LsviNewPaper(problem, episodes=10**6, initial_episodes=0, ideas="I")


# ---------------------------------------------------------------- stamps


@pytest.mark.parametrize(
    ("keywords", "guaranteed"),
    [
        ({}, True),
        ({"safety_radius_scale": 1.5}, True),
        ({"safety_radius_scale": 0.999}, False),
        ({"ideas": ("II", "III", "IV")}, False),
        ({"ideas": ()}, False),
        ({"ideas": ("I",)}, True),
        ({"optimism": 0.0, "explore": (0, 0, 0)}, True),
    ],
)
@pytest.mark.parametrize("paper", [False, True])
def test_a_smaller_radius_or_no_look_ahead_is_stamped(keywords: Any, guaranteed: bool, paper: bool) -> None:
    agent: sf.LsviNew | sf.LsviNewPaper
    if paper:
        shared = {name: value for name, value in keywords.items() if name not in ("optimism", "explore")}
        agent = sf.LsviNewPaper(small(), 0.1, episodes=10**6, initial_episodes=0, **shared)
    else:
        agent = sf.LsviNew(small(), 0.1, **keywords)
    assert agent.guaranteed is guaranteed
    assert agent.promise == ("every step safe with probability ≥ 0.9" if guaranteed else "no safety guarantee")


@pytest.mark.parametrize(("kind", "own"), [(sf.LsviNew, {"optimism": 0.5}), (sf.LsviNewPaper, {"episodes": 10**6})])
def test_what_is_stored_are_the_fields_of_the_options(kind: Any, own: dict[str, Any]) -> None:
    chosen = {"initial_episodes": 3, "safety_radius_scale": 2.0, "replan_growth": 0.5, **own}
    agent = kind(small(), 0.1, **chosen)
    written = json.loads(json.dumps(agent.constants, allow_nan=False))
    assert written == agent.constants
    assert list(written) == [field.name for field in dataclasses.fields(agent.options)]
    assert set(inspect.signature(kind).parameters) - {"problem", "on"} <= set(written)  # on: where plans are computed
    assert written["failure_probability"] == 0.1
    for name, value in chosen.items():
        assert written[name] == value
    with pytest.raises(dataclasses.FrozenInstanceError):
        agent.options.replan_growth = 0.1


# ---------------------------------------------------------------- when it plans


def test_no_plan_inside_an_episode() -> None:
    agent = sf.LsviNew(small())
    agent.begin_episode("s")
    plan = agent.plan
    with pytest.raises(OutOfOrder, match=r"never changes inside an episode.*step 0"):
        agent.replan()
    assert agent.plan is plan
    assert agent.replans == 1


# ---------------------------------------------------------------- what it plays first


def test_the_papers_learner_plays_the_fallback_and_says_so() -> None:
    with pytest.warns(UserWarning, match=r"asks for [\d,]+ episodes of the fallback and the run has 100"):
        agent = sf.LsviNewPaper(small(), episodes=100)
    assert agent.constants["initial_episodes"] == 100
    agent.begin_episode("s")
    assert agent.act(0, "s") == "fallback"


def test_the_papers_learner_ends_with_its_episodes() -> None:
    """The constants are for K episodes; one more would be without a proof. A refusal changes nothing."""
    agent = sf.LsviNewPaper(small(), episodes=2, initial_episodes=0)
    tell(agent, [("fallback", 0.2)], [("fallback", 0.2)])
    before = agent.checkpoint()
    with pytest.raises(OutOfOrder, match=r"computed for fewer episodes.*episodes=2"):
        agent.begin_episode("s")
    after = agent.checkpoint()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(OutOfOrder, match="no episode is under way"):
        agent.act(0, "s")


# ---------------------------------------------------------------- what it can be asked


def test_a_plan_answers_by_label_and_refuses_the_unknown() -> None:
    agent = sf.LsviNew(small())
    plan = agent.plan
    assert plan.upper(0, "s", "fallback", "s").shape == (1,)
    for ask in (
        lambda: plan.upper(0, "s", "fallback", "x"),
        lambda: plan.lower(0, "s", "none", "s"),
        lambda: plan.certified(0, "x", "fallback"),
        lambda: plan.q(1, "s", "fallback"),
        lambda: plan.value(2, "s"),
        lambda: plan.action(-1, "s"),
        lambda: plan.action(1, "s"),  # the last step takes none
    ):
        with pytest.raises(UnknownLabel):
            ask()


def test_what_a_plan_hands_out_cannot_change_it() -> None:
    agent = sf.LsviNew(small())
    upper = agent.plan.upper(0, "s", "other", "s")
    before = upper.copy()
    upper[:] = -100.0
    assert agent.plan.upper(0, "s", "other", "s") == before


def test_with_several_starts_the_paper_plans_for_each() -> None:
    problem = maze(
        {(0, "s"): {"a": ["e"], "b": ["e"]}, (0, "z"): {"a": ["e"], "b": ["e"]}},
        {(0, "s"): "a", (0, "z"): "a"},
        start=["s", "z"],
        limits=[sf.Limit("heat", bound=50.0, noise=0.01, norm=1.0)],
        cost_features=lambda h, s, a, s2: [1.0, 0.1 * (a == "b") + 0.2 * (s == "z")],
        anchor=lambda h: ([1.0, 0.0], [0.5]),
    )
    agent = sf.LsviNewPaper(problem, episodes=10**6, initial_episodes=0)
    seen = {}
    for start in ("s", "z"):
        agent.begin_episode(start)
        seen[start] = agent.plan
        assert agent.act(0, start) == agent.plan.action(0, start) == "b"
        agent.abort_episode()
    assert seen["s"] is not seen["z"]
    assert seen["s"].q(0, "s", "b") != seen["z"].q(0, "s", "b")  # the past of the episode's own start enters


def test_observations_do_not_depend_on_having_been_asked(seed: int) -> None:
    """A plant may play something else than was advised; what was observed is what counts."""
    tables = random_tables(seed)
    asked, told = (sf.LsviNew(problem_of(tables)) for _ in range(2))
    for episode in random_history(tables, np.random.default_rng(seed), 5, np.random.default_rng(seed)):
        asked.begin_episode(episode.start)
        for step in episode.steps:
            if asked.plan.safe(step.h, step.s):
                asked.act(step.h, step.s)
            asked.observe(step.h, step.s, step.a, step.s2, step.cost)
        if episode.terminal is not None:
            asked.observe_terminal(*episode.terminal)
        asked.end_episode()
        feed(told, episode)
    one, two = asked.checkpoint(), told.checkpoint()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


# ---------------------------------------------------------------- what others play, and what is measured


def test_what_others_play_counts_as_what_it_plays_itself() -> None:
    """Bit for bit, however many wait; and a plan is made when enough of them do."""
    problem = corridor({"fallback": [1.0], "other": [0.5]}, LIMIT, horizon=3, terminal=[0.7])
    told, taken = (sf.LsviNew(problem, replan_growth=1e9) for _ in range(2))
    layers = problem.graph.layers
    for k in range(150):  # more rows than ever wait
        action, cost = ("fallback", "other")[k % 2], 0.3 + 0.001 * k
        told.begin_episode("s")
        for h in (0, 1):
            measured = None if k == 7 else cost
            told.observe(h, "s", action, "s", measured)
            pair = problem.pair_index(h, "s", action)
            exact = layers[h].cost_features[pair : pair + 1] if k == 5 else None
            taken.take(h, pair, pair, None if measured is None else np.array([measured]), exact)
        last = None if k == 9 else cost
        told.observe_terminal("s", last)
        taken.take_terminal(0, None if last is None else np.array([last]))
        told.end_episode()
        assert taken.count_episodes(1) is False
    mine, other = taken.checkpoint(), told.checkpoint()
    assert taken.episodes == told.episodes == 150
    assert all(np.array_equal(mine[name], other[name]) for name in other if not name.startswith("then/"))
    assert mine["new_data"]


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_a_plan_is_due_when_others_have_played_enough(growth: float) -> None:
    agent = sf.LsviNew(corridor({"fallback": [1.0], "other": [0.5]}, LIMIT), replan_growth=growth)
    assert agent.count_episodes(1) is False  # nothing was told
    made = []
    for k in range(40):
        agent.take(0, 1, 1, np.array([0.2]))
        if agent.count_episodes(1):
            made.append(k)
    assert agent.replans == 1 + len(made)
    assert len(made) == 40 if growth == 0.0 else 1 < len(made) < 20


def test_a_second_plan_that_cannot_be_made_leaves_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = sf.LsviNew(small(), replan_growth=0.0)
    first = agent.plan

    def fails() -> sf.Plan:
        raise ArithmeticError("no digit is left")

    monkeypatch.setattr(agent, "_make_plan", fails)
    tell(agent, [("other", 0.1)])
    assert agent.plan is first
    assert (agent.replans, agent.failed_replans) == (1, 1)
    assert agent.plan_failure.endswith("stays in force: no digit is left")
    monkeypatch.undo()
    tell(agent, [("other", 0.1)])
    assert (agent.replans, agent.failed_replans, agent.plan_failure) == (2, 1, "")


def test_what_a_compiled_roll_out_has_seen_is_told_again() -> None:
    """Each step with its own cost, and the last state only where it has one that was told."""

    class Noting(sf.LsviNew):
        retell = Learner.retell

        def _note(self, episode: int, h: int, edge: int, cost: Any) -> None:
            noted.append((episode, h, edge, cost.tolist()))

        def _note_last(self, state: int, cost: Any) -> None:
            noted.append((state, cost.tolist()))

    noted: list[Any] = []
    graph = {(h, "s"): {"go": ["s", "t"]} for h in range(3)} | {(h, "t"): {"go": ["s"]} for h in (1, 2)}
    problem = maze(graph, dict.fromkeys(graph, "go"), terminal_costs=["t"])
    agent = Noting(problem)
    agent.episodes = 5
    ends = [int(problem.graph.layers[2].successor[edge]) for edge in (0, 1)]
    costs = np.arange(8.0).reshape(2, 4, 1)
    agent.retell(np.array([[0, 0, 0], [1, 2, 1]]), costs, True)
    steps = [(5, 0, 0, [0.0]), (5, 1, 0, [1.0]), (5, 2, 0, [2.0]), (6, 0, 1, [4.0]), (6, 1, 2, [5.0]), (6, 2, 1, [6.0])]
    t = problem.state_index(3, "t")
    assert [note for note in noted if len(note) == 4] == steps
    assert [note for note in noted if len(note) == 2] == [(t, [costs[k, 3, 0]]) for k in (0, 1) if ends[k] == t]
    noted.clear()
    agent.retell(np.array([[1, 2, 1]]), costs[1:], False)
    assert len(noted) == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([3.0, 4.0], None),
        ([3.0, 4.0 * (1 + 1e-7)], "longer than any"),
        ([-3.0, -4.1], "longer than any"),
        ([3.0, math.nan], "not finite"),
        ([3.0], "features"),
        ([3.0, 4.0, 0.0], "features"),
    ],
)
def test_features_that_were_measured_are_no_longer_than_declared_ones(given: Any, words: str | None) -> None:
    problem = corridor({"fallback": [1.0, 0.0], "other": [3.0, 4.0]}, LIMIT)
    layer = problem.graph.layers[0]
    if words is None:
        assert measured_features(problem, layer, 0, given, "here").tolist() == [given]
    else:
        with pytest.raises(InvalidInput, match=words) as found:
            measured_features(problem, layer, 0, given, "here")
        assert "here" in str(found.value)
    assert measured_features(problem, layer, 1, None, "here").tolist() == [[3.0, 4.0]]


def test_a_measured_sparse_row_has_columns_of_its_own_pair_only() -> None:
    x = csr_array(np.array([[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]]))
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=[np.array([0, 2])],
        pair_ptr=[np.array([0, 1, 3])],
        successors=[np.array([0, 0, 1])],
        reward=[np.zeros(2)],
        cost_features=[x],
        fallback=[np.zeros(1, np.int64)],
        limits=LIMIT,
    )
    layer = problem.graph.layers[0]
    found = measured_features(problem, layer, 0, [0.5, 0.0, 0.0, 1.0], "here")
    assert (found.columns.tolist(), np.asarray(found.values).ravel().tolist()) == ([0, 3], [0.5, 1.0])
    for edge in (1, 2):  # of the second pair, whose rows have columns 1 and 2
        assert measured_features(problem, layer, edge, [0.0, 0.1, 0.2, 0.0], "here").columns.tolist() == [1, 2]
        with pytest.raises(InvalidInput, match="column 3"):
            measured_features(problem, layer, edge, [0.0, 0.1, 0.0, 0.1], "here")
