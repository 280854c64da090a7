"""Priors, names of features, several anchors, bounds by step, shared offsets: what may be declared, and errors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.estimate.families import families
from tests.hand_made import corridor, tell

NAMES = ["bias", "pressure", "speed"]
ROWS = {"idle": [1.0, 0.1, 0.0], "half": [1.0, 0.4, 0.5], "full": [1.0, 0.9, 1.0]}
TRUE = np.array([0.1, 0.3, 0.4])
PRIOR = [(0.0, 0.2), (0.1, 0.6), 0.4]


def press(limits: Any = None, **changes: Any) -> sf.Problem:
    """One machine, three ways to run it, two decisions."""
    limits = limits or sf.Limit("strain", bound=0.7, noise=0.05, prior=PRIOR)
    declared: dict[str, Any] = {
        "horizon": 3,
        "start": "s",
        "actions": lambda h, s: list(ROWS),
        "successors": lambda h, s, a: ["s"],
        "reward": lambda h, s, a: {"idle": 0.1, "half": 0.5, "full": 1.0}[a],
        "cost_features": lambda h, s, a, s2: ROWS[a],
        "transition_features": lambda h, s, a, s2: [1.0],
        "fallback": lambda h, s: "idle",
        "features": NAMES,
        "limits": limits,
    }
    return sf.Problem.from_functions(**{**declared, **changes})


def limit(**changes: Any) -> sf.Limit:
    return sf.Limit("strain", **{"bound": 0.7, "noise": 0.05, "prior": PRIOR, **changes})


def test_before_data_a_cost_lies_where_its_prior_says() -> None:
    plan = sf.LsviNew(press()).plan
    assert plan.upper(0, "s", "full", "s")[0] == pytest.approx(0.2 + 0.9 * 0.6 + 0.4, abs=1e-9)
    assert plan.lower(0, "s", "full", "s")[0] == pytest.approx(0.0 + 0.9 * 0.1 + 0.4, abs=1e-9)
    assert plan.certified(0, "s", "half") is (0.2 + 0.4 * 0.6 + 0.2 <= 0.7)


@pytest.mark.parametrize("norm", [None, 0.7])
def test_a_truth_outside_the_prior_is_called_so_however_long_it_is(norm: float | None) -> None:
    problem = press(limit(norm=norm))
    with pytest.raises(InvalidInput, match=r"outside the prior: step 0, limit 'strain', 'pressure': 5.0, declared"):
        sf.World(problem, transition=[1.0], cost=[0.1, 5.0, 0.4])


def test_a_norm_beside_a_prior_joins_the_minimum() -> None:
    alone, both = (sf.LsviNew(press(limit(**more))).plan for more in ({}, {"norm": 0.6}))
    length = float(np.linalg.norm(ROWS["full"]))
    assert both.upper(0, "s", "full", "s")[0] == pytest.approx(0.6 * length, abs=1e-9)
    assert both.upper(0, "s", "full", "s")[0] < alone.upper(0, "s", "full", "s")[0]


@pytest.mark.parametrize("table", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_norm_beside_a_prior_bounds_both_ends(table: Any) -> None:
    """−outer‖x‖ − ζ ≤ cost ≤ outer‖x‖ + ζ, where the prior alone says less at both ends."""
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=[np.array([0, 1])],
        pair_ptr=[np.array([0, 2])],
        successors=[np.array([0, 1])],
        reward=[np.zeros(1)],
        cost_features=[table(np.array([[0.0, 3.0, 4.0], [1.0, 2.0, 2.0]]))],
        fallback=[np.zeros(1, np.int64)],
        limits=limit(prior=[(-9.0, 8.0)] * 3, norm=0.6, misspecification=0.01),
    )
    found = sf.LsviNew(problem).plan.bounds
    assert found.upper[0][:, 0] == pytest.approx([0.6 * 5 + 0.01, 0.6 * 3 + 0.01], abs=1e-9)
    assert found.lower[0][:, 0] == pytest.approx([-0.6 * 5 - 0.01, -0.6 * 3 - 0.01], abs=1e-9)


def test_coefficients_that_are_known_vanish_from_the_regression() -> None:
    """Rows are those of the other features, as if the known part had been taken off every cost."""
    known = [(0.0, 0.2), (0.1, 0.6), (0.4, 0.4)]
    agent = sf.LsviNew(press(limit(prior=known)), replan_growth=0.0, ridges=(0.05, 0.5, 5.0))
    rest = press(
        limit(prior=known[:2]), features=NAMES[:2], cost_features=lambda h, s, a, s2: ROWS[a][:2], transition_norm=1.0
    )
    other = sf.LsviNew(rest, replan_growth=0.0, ridges=agent.options.ridges)
    ratio = agent.costs.families[0].ratio / other.costs.families[0].ratio
    other = sf.LsviNew(rest, replan_growth=0.0, ridges=[ratio * ridge for ridge in agent.options.ridges])
    rng = np.random.default_rng(0)
    for _ in range(12):
        action = str(rng.choice(list(ROWS)))
        cost = float(TRUE @ ROWS[action]) + 0.05 * rng.standard_normal()
        for learner, told in ((agent, cost), (other, cost - 0.4 * ROWS[action][2])):
            learner.begin_episode()
            for h in range(2):
                learner.observe(h, "s", action, "s", told)
            learner.end_episode()
    gram = agent.costs.bank.state.squares[0][:9].reshape(3, 3)
    assert gram[0, 0] > 0.0
    assert not gram[2].any()
    for a, x in ROWS.items():
        mine, theirs = agent.plan.upper(0, "s", a, "s")[0], other.plan.upper(0, "s", a, "s")[0]
        assert mine == pytest.approx(theirs + 0.4 * x[2], abs=1e-9)


def test_the_same_by_name_by_list_and_by_its_own_features() -> None:
    listed = press(limit(prior=[(0.0, 0.2), 0.0, (0.1, 0.5)]))
    named = press(limit(prior={"speed": (0.1, 0.5), "bias": (0.0, 0.2), "pressure": 0}))
    own = press(limit(prior=[(0.1, 0.5), (0.0, 0.2)], features=["speed", "bias"]))
    assert listed.digest == named.digest
    assert own.limits[0].features == ("bias", "speed")
    for problem in (named, own):
        np.testing.assert_array_equal(problem.priors[0].width, listed.priors[0].width)
        np.testing.assert_array_equal(problem.priors[0].centre, listed.priors[0].centre)


def test_what_a_prior_leaves_out_the_norm_bounds() -> None:
    problem = press(limit(prior={"bias": 0.1}, norm=0.5))
    assert problem.limits[0].prior == ((0.1, 0.1), (-0.5, 0.5), (-0.5, 0.5))


def test_limits_with_the_same_half_widths_are_one_family() -> None:
    limits = [
        sf.Limit("a", bound=2.0, noise=0.05, prior=[(0.0, 0.2), (0.1, 0.6), (0.3, 0.5)]),
        sf.Limit("b", bound=2.0, noise=0.05, norm=1.0),
        sf.Limit("c", bound=2.0, noise=0.05, prior=[(-0.2, 0.0), (0.1, 0.6), (0.0, 0.2)]),
        sf.Limit("d", bound=2.0, noise=0.05, norm=2.0, misspecification=0.01),
    ]
    found = families(press(limits))
    assert [family.members for family in found] == [(0,), (1, 3), (2,)] or [f.members for f in found] == [
        (0, 2),
        (1, 3),
    ]
    assert [family.members for family in families(press(limits[1::2]))] == [(0, 1)]


WRONG: dict[str, tuple[Any, str]] = {
    "two numbers without names": (lambda: sf.Limit("a", 0.7, bound=0.7, noise=0.1, norm=1.0), "by name"),
    "nothing known": (lambda: sf.Limit("a", bound=0.7, noise=0.1), "nothing is known about the size"),
    "upside down": (lambda: limit(prior=[(0.3, 0.1), 0, 0]), "lowest number is above its highest"),
    "endless": (lambda: limit(prior=[(0.0, math.inf), 0, 0]), "prior is not finite"),
    "no interval": (lambda: limit(prior=["0.1", 0, 0]), "an interval or a number"),
    "too short": (lambda: press(limit(prior=[0.1])), "1 entries for 3 features"),
    "left out": (lambda: press(limit(prior={"bias": 0.1})), "'pressure', 'speed'.*or norm"),
    "unknown name": (lambda: press(limit(prior={"heat": 0.1}, norm=1.0)), "no such feature.*'heat'"),
    "a feature twice": (lambda: limit(features=["bias", "bias"]), "listed twice"),
    "names that are too few": (lambda: press(features=["a"]), "1 names for 3 features"),
    "a prior beyond its norm": (lambda: press(limit(prior=[(2.0, 3.0), 0, 0], norm=1.0)), "impossible under the norm"),
    "bounds that are too few": (lambda: press(limit(bound=[0.7, 0.7])), "2 numbers.*Give 3"),
    "an anchor against the prior": (
        lambda: press(anchor=lambda h: (ROWS["idle"], 0.5)),
        "impossible under the prior.*cost 0.5",
    ),
    "anchors that contradict": (
        lambda: press(limit(prior=None, norm=3.0), anchor=lambda h: [(ROWS["idle"], 0.1), ([2.0, 0.2, 0.0], 0.5)]),
        "anchors contradict each other",
    ),
    "an anchor by unknown name": (lambda: press(anchor=lambda h: ({"heat": 1.0}, 0.1)), "no such feature"),
    "a negative tolerance": (lambda: press(anchor=lambda h: (ROWS["idle"], 0.1, -0.1)), "tolerance is negative"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_declarations_say_what_to_do(case: str) -> None:
    make, words = WRONG[case]
    with pytest.raises(InvalidInput, match=words) as error:
        make()
    assert error.value.fix


def test_anchors_that_contradict_within_their_tolerance_are_fine() -> None:
    anchors = [(ROWS["idle"], 0.1, 0.2), ([2.0, 0.2, 0.0], 0.5, 0.2)]
    problem = press(limit(prior=None, norm=3.0), anchor=lambda h: anchors)
    assert sf.LsviNew(problem).plan.consistent


def test_a_tolerance_widens_what_rests_on_the_anchor() -> None:
    uppers = []
    for tolerance in (0.0, 0.05):
        problem = press(anchor=lambda h, t=tolerance: ({"bias": 1.0, "pressure": 0.1}, 0.13, t))
        uppers.append(sf.LsviNew(problem).plan.upper(0, "s", "idle", "s")[0])
    assert uppers == pytest.approx([0.13, 0.18], abs=1e-9)


def test_bounds_by_step() -> None:
    rising, listed = press(limit(bound=lambda h: 0.5 + 0.2 * h)), press(limit(bound=[0.5, 0.7, 0.9]))
    assert rising.limits == listed.limits
    assert listed.bounds[:, 0].tolist() == [0.5, 0.7, 0.9]
    plan = sf.LsviNew(listed).plan
    assert [plan.certified(h, "s", "half") for h in range(2)] == [False, True]
    assert "limit is 0.5" in str(plan.why(0, "s", "half"))
    world = sf.World(listed, transition=[1.0], cost=TRUE)
    _, actions = sf.exact.safe_sets(world)
    assert [int(mask.sum()) for mask in actions] == [2, 2]
    assert world.env().reset()[1]["limits"].tolist() == [0.5]


def test_a_bound_that_depends_on_the_state_is_a_known_coefficient() -> None:
    """cost − headroom(s) ≤ 0, with the headroom as a feature whose coefficient is −1."""
    rows = {action: [*x, 0.5 + 0.1 * i] for i, (action, x) in enumerate(ROWS.items())}
    problem = press(
        sf.Limit("room", bound=0.0, noise=0.05, prior=[*PRIOR, -1.0]),
        features=[*NAMES, "headroom"],
        cost_features=lambda h, s, a, s2: rows[a],
    )
    plan = sf.LsviNew(problem).plan
    assert plan.upper(0, "s", "half", "s")[0] == pytest.approx(0.2 + 0.4 * 0.6 + 0.2 - 0.6, abs=1e-9)


def test_files_keep_all_of_it(tmp_path: Any) -> None:
    limits = [
        limit(bound=[0.5, 0.7, 0.9], norm=2.0, episode_noise=0.01),
        sf.Limit("wear", bound=2.0, noise=0.1, norm=1.0, features=["bias", "speed"]),
    ]
    anchors = [(ROWS["idle"], [0.13, 0.1], [0.01, 0.0]), (ROWS["half"], [0.4, 0.2], 0.1)]
    problem = press(limits, anchor=lambda h: anchors)
    for name in ("p.json", "p.npz"):
        back = sf.Problem.load(problem.save(tmp_path / name))
        assert (back.digest, back.limits, back.features) == (problem.digest, problem.limits, problem.features)
    assert press(limits, anchor=lambda h: anchors[:1]).digest != problem.digest
    assert press(limits[::-1], anchor=None).digest != press(limits, anchor=None).digest


def test_offsets_shared_by_an_episode_widen_the_noise_as_stated() -> None:
    noisy = limit(episode_noise=0.1)
    assert press(noisy).noises[0] == pytest.approx(math.hypot(0.05, 0.1))
    assert press(noisy, stationary_costs=True).noises[0] == pytest.approx(math.sqrt(0.05**2 + 2 * 0.1**2))
    assert press(limit()).noises[0] == 0.05


@pytest.mark.parametrize("anchored", [False, True])
def test_rounding_takes_nothing_from_a_model_error(anchored: bool, seed: int) -> None:
    """A cost known but for its model error, and an anchor's tolerance, is within its bounds to the last digit."""
    rng, below, above = np.random.default_rng(seed), 0, 0
    for _ in range(5):
        rows = {str(i): [float(x)] for i, x in enumerate(rng.uniform(0.0, 1e-3, 40))}
        weight, zeta, off = (Fraction(float(x)) for x in rng.uniform(0.1, 1.0, 3))
        of = limit(prior=None if anchored else [float(weight)], norm=2.0, misspecification=float(zeta), bound=9.0)
        anchor = ([1.0], [float(weight)], float(off)) if anchored else None
        plan = sf.LsviNew(corridor(rows, of, anchor=anchor)).plan
        for name, (x,) in rows.items():
            error = zeta + (zeta + off) * Fraction(x) if anchored else zeta
            upper, lower = (Fraction(float(side(0, "s", name, "s")[0])) for side in (plan.upper, plan.lower))
            below += upper < weight * Fraction(x) + error
            above += lower > weight * Fraction(x) - error
    assert (below, above) == (0, 0)


@pytest.mark.parametrize("prior", [False, True])
def test_anchors_that_are_long_and_nearly_dependent_cost_digits_and_no_truth(prior: bool, seed: int) -> None:
    """Beside them a row loses far more than its own last digits; hardly any noise and hardly any ridge hide that."""
    rng, missed = np.random.default_rng(seed), 0
    for _ in range(40):
        weights, length = rng.integers(1, 9, 3), float(rng.integers(60_000, 120_000))
        measured = (rng.uniform(-1.0, 1.0, 3) * [1.0, 1.0, 1e-3]).tolist()
        rows = {"x": [0.5, 0.0, 0.0], "y": [0.0, 0.5, 0.0], "z": [0.0, 0.0, 0.5], "measured": measured}
        ends = ([length, 0.0, 0.0], [length, length * 5.0 / 2**20, 0.0])
        anchor = [(x0, [float(weights @ x0)]) for x0 in ends]  # exact
        known: dict[str, Any] = {"norm": 1.01 * float(np.linalg.norm(weights))}
        if prior:
            known = {"prior": [(w - 1.0, w + 0.5) for w in weights.tolist()]}
        of = sf.Limit("strain", bound=1e7, noise=1e-15, **known)
        agent = sf.LsviNew(corridor(rows, of, anchor=anchor), ridges=[1e-12], replan_growth=1e9)
        true = {
            name: sum(Fraction(x) * int(w) for x, w in zip(row, weights, strict=True)) for name, row in rows.items()
        }
        tell(agent, *[[("measured", float(true["measured"]))]] * 3)
        agent.replan()
        assert agent.plan.consistent
        for name, cost in true.items():
            upper, lower = (
                Fraction(float(side(0, "s", name, "s")[0])) for side in (agent.plan.upper, agent.plan.lower)
            )
            missed += not lower <= cost <= upper
    assert missed == 0


def test_after_another_choice_than_the_plans_an_episode_with_an_offset_is_not_learned_from() -> None:
    for shared, rows in ((0.0, 2), (0.1, 0)):
        agent = sf.LsviNew(press(limit(episode_noise=shared)))
        agent.begin_episode()
        played = agent.act(0, "s")
        other = next(a for a in ROWS if a != played)
        agent.observe(0, "s", other, "s", 0.3)
        agent.observe(1, "s", agent.act(1, "s"), "s", 0.3)
        agent.end_episode()
        assert int(agent.costs.bank.rows.sum()) == rows


def test_a_study_with_priors_and_overrides_is_clean_to_its_audit(tmp_path: Any) -> None:
    problem = press(limit(episode_noise=0.02, bound=[0.7, 0.75, 0.7]), anchor=lambda h: (ROWS["idle"], 0.13, 0.01))
    rng = np.random.default_rng(3)
    with sf.Study.open(tmp_path / "s", problem) as study:
        for k in range(15):
            offset = 0.02 * rng.standard_normal()
            with study.episode("s") as episode:
                while not episode.done:
                    offer = episode.ask()
                    applied = "idle" if k % 4 == 3 and offer.step == 0 else offer.action
                    cost = float(TRUE @ ROWS[applied]) + offset + 0.05 * rng.standard_normal()
                    episode.tell("s", cost, action_applied=applied)
    found = sf.audit(tmp_path / "s")
    assert found.clean, str(found)
