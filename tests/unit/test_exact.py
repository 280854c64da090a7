"""Exact values on worlds small enough for a sheet of paper."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput, UnknownLabel
from tests.made_worlds import BOUND, hand_world, random_world

SAFE, UNSAFE = 0.0, 0.9


def near(expected: F) -> object:
    return pytest.approx(float(expected), rel=0, abs=1e-15)


def two_steps() -> sf.World:
    """From s: "wait" is poor; "go" pays more and, in "b", faces a choice between safe and rich."""
    return hand_world(
        {
            (0, "s"): {
                "wait": (0.25, {"a": (1.0, SAFE)}),
                "go": (0.5, {"a": (1 / 3, SAFE), "b": (2 / 3, SAFE)}),
            },
            (1, "a"): {"rest": (0.125, {"end": (1.0, SAFE)})},
            (1, "b"): {
                "rich": (1.0, {"end": (0.5, SAFE), "fire": (0.5, UNSAFE)}),
                "fair": (0.75, {"end": (0.25, SAFE), "top": (0.75, SAFE)}),
            },
        },
        {"end": (0.0, None), "fire": (1.0, None), "top": (0.5, SAFE)},
    )


def trap(cost_of_b: float = SAFE, p: float = 0.5) -> sf.World:
    """Two steps after "go" nothing is safe in "d", so "go" is not either; with P(d) = 0 it is."""
    return hand_world(
        {
            (0, "s"): {"stay": (0.0, {"a": (1.0, SAFE)}), "go": (1.0, {"b": (1.0, cost_of_b)})},
            (1, "a"): {"stay": (0.0, {"a": (1.0, SAFE)})},
            (1, "b"): {"on": (1.0, {"c": (1 - p, SAFE), "d": (p, SAFE)})},
            (2, "a"): {"stay": (0.0, {"end": (1.0, SAFE)})},
            (2, "c"): {"on": (1.0, {"end": (1.0, SAFE)})},
            (2, "d"): {
                "left": (1.0, {"end": (1.0, UNSAFE)}),
                "right": (1.0, {"end": (0.5, SAFE), "fire": (0.5, SAFE)}),
            },
        },
        {"end": (0.0, SAFE), "fire": (1.0, UNSAFE)},
    )


class TestSolve:
    def test_the_best_safe_value_is_the_fraction_on_paper(self) -> None:
        solution = exact.solve(two_steps())
        b = F(3, 4) + F(3, 4) * F(1, 2)
        assert solution.values[1].tolist() == [0.125, near(b)]
        assert solution.value == near(F(1, 2) + F(1, 3) * F(1, 8) + F(2, 3) * b)
        assert solution.start_values.tolist() == [solution.value]

    def test_danger_is_felt_two_steps_ahead(self) -> None:
        world = trap()
        solution = exact.solve(world)
        assert [row.tolist() for row in solution.safe_states] == [
            [True],
            [True, False],
            [True, True, False],
            [True, False],
        ]
        assert [row.tolist() for row in solution.safe_actions] == [
            [True, False],
            [True, False],
            [True, True, False, False],
        ]
        assert solution.value == 0.0
        assert np.isnan(solution.values[2][2])
        assert solution.policy.action(2, "d") is None
        assert solution.policy.pairs[2].tolist() == [0, 1, -1]

    @pytest.mark.parametrize(("cost", "value"), [(BOUND, 3.0), (BOUND + 5e-10, 3.0), (BOUND + 2e-9, 0.0)])
    def test_a_limit_is_broken_beyond_a_billionth(self, cost: float, value: float) -> None:
        assert exact.solve(trap(cost, p=0.0)).value == value

    def test_every_start_has_its_value(self) -> None:
        world = hand_world(
            {
                (0, "y"): {"go": (0.5, {"end": (1.0, SAFE)})},
                (0, "x"): {"go": (0.25, {"end": (1.0, SAFE)})},
            },
            {"end": (0.125, None)},
            start=["y", "x"],
        )
        solution = exact.solve(world)
        assert solution.start_values.tolist() == [0.625, 0.375]
        assert solution.value == 0.625
        assert exact.fallback_value(world) == 0.625
        assert exact.fallback_value(world, start="x") == 0.375

    def test_ties_go_to_the_first_declared_action(self) -> None:
        end = {"end": (1.0, SAFE)}
        world = hand_world({(0, "s"): {"low": (0.25, end), "one": (0.5, end), "two": (0.5, end)}}, {"end": (0.0, None)})
        assert exact.solve(world).policy.action(0, "s") == "one"

    def test_an_unsafe_start_is_refused_by_name(self) -> None:
        world = two_steps()  # a World refuses an unsafe fallback, so the truth is changed behind its back
        worse = tuple(np.full_like(cost, UNSAFE) for cost in world.costs)
        object.__setattr__(world, "costs", worse)
        with pytest.raises(InvalidInput, match="start is not truly safe: step 0, state 's'"):
            exact.solve(world)

    def test_threads_do_not_change_a_bit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = random_world(np.random.default_rng(5), states=300, actions=5, successors=6, horizon=6)
        alone = exact.solve(world)
        monkeypatch.setattr("surefoot.exact.best.PARALLEL_EDGES", 0)
        for threads in (2, 3, 7):
            monkeypatch.setattr("surefoot.threads.usable_threads", lambda threads=threads: threads)
            together = exact.solve(world)
            for ours, theirs in (
                (alone.values, together.values),
                (alone.policy.pairs, together.policy.pairs),
                (alone.safe_actions, together.safe_actions),
            ):
                assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True))

    def test_results_are_read_only(self) -> None:
        solution = exact.solve(two_steps())
        for rows in (solution.values, solution.policy.pairs, solution.safe_states, solution.safe_actions):
            assert not any(row.flags.writeable for row in rows)


class TestEvaluate:
    GO_RICH = F(1, 2) + F(1, 3) * F(1, 8) + F(2, 3) * (1 + F(1, 2))

    def test_all_ways_to_say_the_same_policy(self) -> None:
        world = two_steps()
        table = {(0, "s"): "go", (1, "a"): "rest", (1, "b"): "rich"}
        pairs = (np.array([1]), np.array([0, 1], np.int32))
        chances = (np.array([0.0, 1.0]), np.array([1.0, 1.0, 0.0]))
        policy = exact.Policy(world.problem, pairs)
        for given in (policy, pairs, list(pairs), chances, table, lambda h, s: table[h, s], policy.action):
            assert exact.evaluate(world, given) == near(self.GO_RICH)

    def test_coins_are_averaged(self) -> None:
        world = two_steps()
        fair = F(3, 4) + F(3, 4) * F(1, 2)
        b = F(1, 4) * F(3, 2) + F(3, 4) * fair
        expected = F(1, 2) * (F(1, 4) + F(1, 8)) + F(1, 2) * (F(1, 2) + F(1, 3) * F(1, 8) + F(2, 3) * b)
        chances = (np.array([0.5, 0.5]), np.array([1.0, 0.25, 0.75]))
        assert exact.evaluate(world, chances) == near(expected)

    def test_the_fallback_needs_actions_only_where_it_goes(self) -> None:
        world = two_steps()
        policy = exact.fallback(world.problem)
        assert policy.action(1, "b") is None
        assert exact.fallback_value(world) == exact.evaluate(world, policy) == 0.375
        assert np.isnan(exact.evaluate_all(world, policy)[1]).tolist() == [False, True]

    def test_a_function_is_asked_only_where_it_leads(self) -> None:
        asked = []
        exact.evaluate(two_steps(), lambda h, s: asked.append((h, s)) or ("wait", "rest")[h])
        assert asked == [(0, "s"), (1, "a")]

    def test_a_function_is_not_asked_where_it_comes_with_probability_zero(self) -> None:
        table = {(0, "s"): "go", (1, "b"): "on", (2, "c"): "on"}
        assert exact.evaluate(trap(p=0.0), table) == 3.0
        asked = []
        exact.evaluate(trap(p=0.0), lambda h, s: asked.append((h, s)) or table.get((h, s)))
        assert asked == list(table)


class TestViolations:
    def test_none_along_a_safe_policy(self) -> None:
        world = two_steps()
        assert exact.violations(world, exact.solve(world).policy) == (0.0, 0.0)

    def test_steps_and_chances_differ_where_one_leads_to_the_next(self) -> None:
        world = trap(cost_of_b=UNSAFE, p=0.25)
        right = (np.array([1]), np.array([0, 1]), np.array([0, 1, 3]))
        found = exact.violations(world, right)  # always at "b", then in "fire" by chance 1/4 · 1/2
        assert found.expected == 1 + 1 / 8
        assert found.probability == 1.0

    def test_the_arrival_in_the_last_layer_is_a_step(self) -> None:
        right = (np.array([1]), np.array([0, 1]), np.array([0, 1, 3]))
        assert exact.violations(trap(p=0.25), right) == (1 / 8, 1 / 8)

    def test_two_chances_do_not_add_up(self) -> None:
        step = {"a": (0.5, SAFE), "b": (0.5, UNSAFE)}
        world = hand_world(
            {
                (0, "s"): {"stay": (0.0, {"a": (1.0, SAFE)}), "go": (0.0, step)},
                (1, "a"): {"stay": (0.0, {"a": (1.0, SAFE)}), "go": (0.0, step)},
                (1, "b"): {"stay": (0.0, {"a": (1.0, SAFE)}), "go": (0.0, step)},
            },
            {"a": (0.0, None), "b": (0.0, None)},
        )
        assert exact.violations(world, lambda h, s: "go") == (1.0, 0.75)
        coin = (np.array([0.5, 0.5]), np.array([0.5, 0.5, 0.5, 0.5]))
        assert exact.violations(world, coin) == (0.5, 1 - 0.75**2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("policy", "words"),
        [
            (42, "policy cannot be read: a int"),
            ((np.array([0]),), "wrong number of steps: 1 arrays where horizon - 1 = 2"),
            ((np.array([0, 0]), np.array([0, 1])), r"step 0: \(2,\) where one entry per state \(1\)"),
            (
                (np.array([0]), np.array([1, 2])),
                "pair of another state: step 1, state 'a': pair 1 where 0 … 0",
            ),
            ((np.array([0]), np.array([0, 3])), "step 1, state 'b': pair 3 where 1 … 2 are its own"),
            ((np.array([0]), np.array([0, -2])), "step 1, state 'b': pair -2"),
            ((np.array([True]), np.array([0, 1])), "wrong dtype: step 0: bool"),
            ((np.array([1.0]), np.array([0, 1])), r"step 0: \(1,\) where one entry per pair \(2\)"),
            ((np.array([0.5, 0.4]), np.array([0, 1])), "do not add up to 1: step 0, state 's': 0.9"),
            (
                (np.array([1.5, -0.5]), np.array([0, 1])),
                "negative or not finite: step 0, state 's', action 'go'",
            ),
            ((np.array([np.nan, 1.0]), np.array([0, 1])), "action 'wait': nan"),
            ((np.array([1]), np.array([0, -1])), "policy has no action: step 1, state 'b'"),
            ((np.array([0.0, 0.0]), np.array([0, 1])), "policy has no action: step 0, state 's'"),
            ({(0, "s"): "go", (1, "a"): "rest"}, "policy has no action: step 1, state 'b'"),
        ],
    )
    def test_a_policy_that_cannot_be_followed_is_named(self, policy: object, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            exact.evaluate(two_steps(), policy)

    def test_an_action_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(UnknownLabel, match="no such action: step 1, state 'a': 'fly'"):
            exact.evaluate(two_steps(), {(0, "s"): "go", (1, "a"): "fly"})

    def test_a_start_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(UnknownLabel, match="no such state: step 0: 'nowhere'"):
            exact.fallback_value(two_steps(), start="nowhere")

    def test_nothing_is_done_in_the_last_layer(self) -> None:
        with pytest.raises(UnknownLabel, match="no such decision step"):
            exact.fallback(two_steps().problem).action(2, "end")
