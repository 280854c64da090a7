"""No constant is silently ignored: each one is changed, and the change is seen where it must be, and nowhere else.

Exploration must never touch safety: changing it leaves bounds and certified sets alone, to the bit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.lsvi_new_paper import DEVIATIONS
from tests.differential.compare import problem_of
from tests.reference.generate import (
    Episode,
    random_history,
    random_paper_settings,
    random_paper_tables,
    random_tables,
)
from tests.reference.history import feed
from tests.reference.tables import Tables
from tests.unit import test_wiring_priors

FEWEST, MOST = 3, 40  # problems that are looked at: some, and more until every change was seen
EPISODES = 4
P = 0.05

BOUNDS, MASKS, VALUES = {"upper", "lower"}, {"certified"}, {"q", "value"}
SAFETY = BOUNDS | MASKS
KINDS: dict[str, Any] = {"certified": sf.LsviNew, "directed": sf.LsviNew, "paper": sf.LsviNewPaper}


# ---------------------------------------------------------------- a problem, a history, what came out


@dataclass(frozen=True)
class Case:
    kind: Any  # of the learner
    tables: Tables
    history: tuple[Episode, ...]
    options: dict[str, Any]


@cache
def case(learner: str, number: int, seed: int) -> Case:
    """A problem whose history shows all its actions; the small optimism keeps values off their clips."""
    if learner != "paper":
        tables = random_tables(1000 * seed + number, anchors=True, limits=2, misspecified=True, shared_features=False)
        rule = "directed" if learner == "directed" else "ideas"
        options: dict[str, Any] = {"optimism": 0.02, "replan_growth": 0.0, "exploration": rule}
    else:
        # β is the larger of two numbers; this scale leaves the choice to β₁, which carries the safety constants.
        tables = random_paper_tables(1000 * seed + number)
        settings = random_paper_settings(1)
        options = {
            "episodes": int(settings["episodes"]),
            "value_radius_scale": 1e-6,
            "lipschitz": settings["lipschitz"],
            "initial_episodes": 0,
            "replan_growth": 0.0,
        }
    rng = np.random.default_rng([seed, number])
    return Case(KINDS[learner], tables, tuple(random_history(tables, rng, EPISODES, rng)), options)


def outcome(problem: sf.Problem, chosen: Case, p: float = P, **changes: Any) -> dict[str, Any]:
    """Everything that a plan says after the history, how many plans there were, and what is played next."""
    agent = chosen.kind(problem, p, **{**chosen.options, **changes})
    played = []
    for episode in chosen.history:
        agent.begin_episode(episode.start)
        played.append(agent.act(0, episode.start))
        agent.abort_episode()
        agent.episodes -= 1
        feed(agent, episode)
    plan, tables = agent.plan, chosen.tables
    ends = [s for s in tables.terminal_reward if plan.terminal_upper(s) is not None]
    return {
        "upper": [plan.upper(*key).tolist() for key in tables.triplets()]
        + [plan.terminal_upper(s).tolist() for s in ends],
        "lower": [plan.lower(*key).tolist() for key in tables.triplets()]
        + [plan.terminal_lower(s).tolist() for s in ends],
        "certified": [plan.certified(*key) for key in tables.pairs()],
        "q": [plan.q(*key) for key in tables.pairs()],
        "value": [plan.value(h, s) for h in range(tables.horizon) for s in tables.states(h)],
        "replans": agent.replans,
        "played": played,
    }


def changed(one: dict[str, Any], two: dict[str, Any]) -> set[str]:
    return {name for name in one if one[name] != two[name]}


@cache
def plain(learner: str, number: int, seed: int) -> dict[str, Any]:
    chosen = case(learner, number, seed)
    return outcome(problem_of(chosen.tables), chosen)


# ---------------------------------------------------------------- constructor constants


@dataclass(frozen=True)
class Wire:
    """A change, what it must change (a problem may happen not to show it), and what it must never change."""

    changes: dict[str, Any]
    seen: set[str]
    never: frozenset[str] = frozenset()


def without(name: str) -> tuple[str, ...]:
    return tuple(each for each in DEVIATIONS if each != name)


SAFE = frozenset(SAFETY)
CERTIFIED: dict[str, list[Wire]] = {
    "failure_probability": [Wire({"p": 0.4}, BOUNDS | {"q"})],
    "ridges": [
        Wire({"ridges": (0.5,)}, BOUNDS | {"q"}),
        Wire({"ridges": (0.01, 0.1, 1.0, 2.0)}, BOUNDS | {"q"}),
    ],
    "shaped": [Wire({"shaped": 0.0}, BOUNDS | {"q"}), Wire({"shaped": 3.0}, BOUNDS | {"q"})],
    "ridge_ratios": [Wire({"ridge_ratios": (0.5, 0.5)}, BOUNDS | {"q"})],
    "multipliers": [Wire({"multipliers": (3.0,)}, BOUNDS | {"q"})],
    "value_ridge": [Wire({"value_ridge": 0.3}, {"q"}, never=SAFE)],
    "optimism": [Wire({"optimism": 0.04}, {"q"}, never=SAFE)],
    "explore": [
        Wire({"explore": (0.2, 0.02, 0.02)}, {"q"}, never=SAFE),
        Wire({"explore": (0.1, 0.04, 0.02)}, {"q"}, never=SAFE),
        Wire({"explore": (0.1, 0.02, 0.04)}, {"q"}, never=SAFE),
    ],
    "exploration": [Wire({"exploration": "directed"}, {"q"}, never=SAFE)],
    "slack": [Wire({"slack": 0.123}, {"q"}, never=SAFE), Wire({"slack": [5.0, 0.1]}, {"q"}, never=SAFE)],
    "replan_growth": [
        Wire({"replan_growth": 1e9}, {"replans", *BOUNDS}),
        Wire({"replan_growth": 0.5}, {"replans"}),
    ],
    "initial_episodes": [Wire({"initial_episodes": 10**6}, {"played"}, never=SAFE | {"q", "replans"})],
    "ideas": [
        Wire({"ideas": ("II", "III", "IV")}, {"certified", "q"}, never=frozenset(BOUNDS)),
        Wire({"ideas": ("I", "III", "IV")}, {"q"}, never=SAFE),
        Wire({"ideas": ("I", "II", "IV")}, {"q"}, never=SAFE),
        Wire({"ideas": ("I", "II", "III")}, {"q"}, never=SAFE),
    ],
    "safety_radius_scale": [
        Wire({"safety_radius_scale": 1.3}, BOUNDS | {"q"}),
        Wire({"safety_radius_scale": 0.7}, BOUNDS | {"q"}),
    ],
    "literal_future": [Wire({"literal_future": True}, {"q"}, never=SAFE)],
}
DIRECTED: dict[str, list[Wire]] = {
    "budget": [Wire({"budget": 0.0}, {"q"}, never=SAFE)],
}
PAPER: dict[str, list[Wire]] = {
    "failure_probability": [Wire({"p": 0.4}, BOUNDS | {"q"})],
    "ridges": [Wire({"ridges": (0.5,)}, BOUNDS | {"q"})],
    "value_ridge": [Wire({"value_ridge": 1e6}, {"q"}, never=SAFE)],  # the radius β + 1 often clips
    "replan_growth": [Wire({"replan_growth": 1e9}, {"replans", *BOUNDS})],
    "initial_episodes": [Wire({"initial_episodes": 10**6}, {"played"}, never=SAFE | {"q", "replans"})],
    "ideas": [
        Wire({"ideas": ("II", "III", "IV")}, {"certified", "q"}, never=frozenset(BOUNDS)),
        Wire({"ideas": ("I", "III", "IV")}, {"q"}, never=SAFE),
        Wire({"ideas": ("I", "II", "IV")}, {"q"}, never=SAFE),
        Wire({"ideas": ("I", "II", "III")}, {"q"}, never=SAFE),  # nothing where the anchor is played first
    ],
    "safety_radius_scale": [Wire({"safety_radius_scale": 1.3}, BOUNDS), Wire({"safety_radius_scale": 0.7}, BOUNDS)],
    "episodes": [Wire({"episodes": 10**9}, BOUNDS | {"q"})],
    "feature_bound": [Wire({"feature_bound": 1e6}, BOUNDS | {"q"})],
    "coverage_rate": [Wire({"coverage_rate": 1e-3}, {"q"}, never=SAFE)],
    "value_radius_scale": [Wire({"value_radius_scale": 3.0}, BOUNDS | {"q"})],
    "lipschitz": [Wire({"lipschitz": 500.0}, {"q"}, never=SAFE)],
    "deviations": [
        Wire({"deviations": without("clip")}, {"q"}, never=SAFE),
        Wire({"deviations": without("radius")}, BOUNDS | {"q"}),
        Wire(
            {"deviations": without("lazy"), "replan_growth": None}, set(), never=SAFE | {"q"}
        ),  # 0 is the default then
    ],
}
WIRES = [
    pytest.param(learner, wire, id=f"{learner}-{name}-{number}")
    for learner, table in (("certified", CERTIFIED), ("directed", DIRECTED), ("paper", PAPER))
    for name, wires in table.items()
    for number, wire in enumerate(wires)
]


def test_every_constant_has_a_wire() -> None:
    for learner, table in (("certified", CERTIFIED | DIRECTED), ("paper", PAPER)):
        assert set(inspect.signature(KINDS[learner]).parameters) - {"problem", "on"} == set(table)  # on: where
    assert {field.name for field in fields(sf.Limit)} == set(LIMIT_FIELDS) | {"name"} | test_wiring_priors.FIELDS


@pytest.mark.parametrize(("learner", "wire"), WIRES)
def test_changing_a_constant_changes_what_it_must(learner: str, wire: Wire, seed: int) -> None:
    seen: set[str] = set()
    for number in until_seen(wire.seen, seen):
        chosen = case(learner, number, seed)
        after = outcome(problem_of(chosen.tables), chosen, **wire.changes)
        difference = changed(plain(learner, number, seed), after)
        assert not wire.never & difference, f"problem {number}: {wire.never & difference} must not change"
        seen |= difference


def until_seen(wanted: set[Any], seen: set[Any]) -> Iterator[int]:
    """Numbers of problems, until all that is wanted was seen; an error if it never is."""
    for number in range(MOST):
        yield number
        if number + 1 >= FEWEST and wanted <= seen:
            return
    raise AssertionError(f"never seen to change: {wanted - seen}")


def test_the_same_constants_change_nothing(seed: int) -> None:
    """Negative control, and the defaults are what the specification says they are."""
    chosen = case("certified", 0, seed)
    spelled_out: dict[str, Any] = {
        "p": 0.05,
        "multipliers": (0.01, 0.1, 1.0, 10.0),
        "value_ridge": 1.0,
        "explore": (0.1, 0.02, 0.02),
        "initial_episodes": 0,
        "ideas": ("I", "II", "III", "IV"),
        "safety_radius_scale": 1.0,
        "literal_future": False,
    }
    problem = problem_of(chosen.tables)
    assert not changed(plain("certified", 0, seed), outcome(problem, chosen, **spelled_out))
    defaults = inspect.signature(sf.LsviNew).parameters
    assert defaults["failure_probability"].default == 0.05
    assert defaults["replan_growth"].default == 0.1
    one = sf.LsviNew(problem, exploration="ideas")
    two = sf.LsviNew(problem, optimism=1.0, replan_growth=0.1, **_no_p(spelled_out))
    assert one.constants == two.constants


def _no_p(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "p"}


# ---------------------------------------------------------------- what the problem declares

LIMIT_FIELDS: dict[str, Callable[[sf.Limit], sf.Limit]] = {
    "bound": lambda limit: replace(limit, bound=limit.bound + 1e6),
    "noise": lambda limit: replace(limit, noise=limit.noise * 3 + 0.1),
    "norm": lambda limit: replace(limit, norm=limit.norm * 3),
    "misspecification": lambda limit: replace(limit, misspecification=limit.misspecification + 0.05),
}


def declared(tables: Tables, limits: list[sf.Limit] | None = None, **changes: Any) -> sf.Problem:
    functions = tables.functions()
    limits = limits or list(problem_of(tables).limits)
    return sf.Problem.from_functions(**{**functions, **changes}, limits=limits)


@pytest.mark.parametrize("field", ["noise", "norm", "misspecification"])
@pytest.mark.parametrize("j", [0, 1])
def test_every_field_of_every_limit_counts(field: str, j: int, seed: int) -> None:
    """Changed in one limit, it moves that limit's own bounds, and values with them."""
    seen: set[str] = set()
    for number in until_seen(BOUNDS | {"q"}, seen):
        chosen, before = case("certified", number, seed), plain("certified", number, seed)
        limits = problem_of(chosen.tables).limits
        altered = [LIMIT_FIELDS[field](x) if i == j else x for i, x in enumerate(limits)]
        after = outcome(declared(chosen.tables, altered), chosen)
        seen |= {side for side in BOUNDS if [row[j] for row in before[side]] != [row[j] for row in after[side]]}
        seen |= changed(before, after) & {"q"}


def test_the_bound_of_every_limit_counts(seed: int) -> None:
    """Bounds so high that nothing is forbidden certify everything; one that is left as it was still forbids."""
    forbids: set[int | None] = set()
    for number in until_seen({0, 1}, forbids):
        chosen = case("certified", number, seed)
        before = outcome(problem_of(chosen.tables), chosen, shaped=3.0)  # by default it follows the bounds, too
        limits = list(problem_of(chosen.tables).limits)
        raised = [LIMIT_FIELDS["bound"](limit) for limit in limits]
        for kept in (0, 1, None):
            altered = [limits[j] if j == kept else raised[j] for j in range(2)]
            after = outcome(declared(chosen.tables, altered), chosen, shaped=3.0)
            assert not BOUNDS & changed(before, after)
            if not all(after["certified"]):
                forbids.add(kept)
    assert None not in forbids


def test_the_bound_is_what_slack_is_measured_from(seed: int) -> None:
    """Two sets of bounds that forbid nothing differ in the slack they leave, unless the slack is given."""
    chosen = case("certified", 0, seed)
    limits = problem_of(chosen.tables).limits
    high, higher = (declared(chosen.tables, [replace(x, bound=x.bound + by) for x in limits]) for by in (50.0, 90.0))
    assert changed(outcome(high, chosen, shaped=3.0), outcome(higher, chosen, shaped=3.0)) >= {"q"}
    given = {"slack": 0.5, "shaped": 3.0}
    assert not changed(outcome(high, chosen, **given), outcome(higher, chosen, **given))


@pytest.mark.parametrize("field", LIMIT_FIELDS)
def test_every_field_of_the_limits_counts_in_the_paper(field: str, seed: int) -> None:
    """There the largest noise and norm decide, L_μ among them; a large norm leaves no gap for Ideas II to IV."""
    expected = {"bound": {"q"}, "noise": BOUNDS | {"q"}, "norm": BOUNDS, "misspecification": BOUNDS}[field]
    seen: set[str] = set()
    for number in until_seen(expected, seen):
        chosen, options = case("paper", number, seed), {}
        limits = problem_of(chosen.tables).limits
        altered = [LIMIT_FIELDS[field](limit) for limit in limits]
        if field == "norm":
            altered, options = [replace(x, norm=1e4) for x in limits], {"ideas": ("I",)}
        before = outcome(problem_of(chosen.tables), chosen, **options)
        seen |= changed(before, outcome(declared(chosen.tables, altered), chosen, **options))


def test_the_name_of_a_limit_is_a_name(seed: int) -> None:
    chosen = case("certified", 0, seed)
    limits = [replace(x, name=f"other {i}") for i, x in enumerate(problem_of(chosen.tables).limits)]
    assert not changed(plain("certified", 0, seed), outcome(declared(chosen.tables, limits), chosen))


@pytest.mark.parametrize(("learner", "factor"), [("certified", 3.0), ("paper", 1e4)])
def test_transition_norm_counts(learner: str, factor: float, seed: int) -> None:
    seen: set[str] = set()
    for number in until_seen({"q"}, seen):
        chosen = case(learner, number, seed)
        problem = declared(chosen.tables, transition_norm=chosen.tables.transition_norm * factor)
        seen |= changed(plain(learner, number, seed), outcome(problem, chosen))
        assert learner == "paper" or not SAFETY & seen


@pytest.mark.parametrize("name", ["stationary_costs", "stationary_transitions"])
def test_stationarity_counts(name: str, seed: int) -> None:
    seen: set[str] = set()
    for number in until_seen({"q"} | (BOUNDS if name == "stationary_costs" else set()), seen):
        tables = random_tables(1000 * seed + number, anchors=False, **{name: True})
        rng = np.random.default_rng([seed, number])
        options = {"optimism": 0.02, "replan_growth": 0.0}
        chosen = Case(sf.LsviNew, tables, tuple(random_history(tables, rng, 4, rng)), options)
        seen |= changed(outcome(problem_of(tables), chosen), outcome(declared(tables, **{name: False}), chosen))
        assert name == "stationary_costs" or not SAFETY & seen
