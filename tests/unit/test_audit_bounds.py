"""The audit's own bounds against the engine's, where it takes more than a drawn world to tell them apart."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits import rows as audit_rows
from surefoot.audits.bounds import Confidence, Data, Ellipsoids, beside
from surefoot.audits.certified import make_plan
from surefoot.audits.declaration import read_problem
from surefoot.audits.rows import default_ridge, feature_shapes, ridge_ratio
from surefoot.estimate import shapes
from surefoot.estimate.basis import isotropic
from surefoot.estimate.ellipsoids import CostConfidence, _radii
from surefoot.estimate.families import families
from tests.banks import spread_of, turned
from tests.hand_made import corridor
from tests.studies import confidence_of, kettle

MULTIPLIERS = (0.01, 0.1, 1.0, 10.0)


@pytest.mark.parametrize("case", range(3))
def test_bounds_within_priors_agree_with_the_engine(case: int, tmp_path: Path, seed: int) -> None:
    """Boxes, a norm beside one, a centre, features that a limit does not depend on, anchors with tolerances."""
    rng = np.random.default_rng([seed, case])
    rows = {str(i): row for i, row in enumerate(rng.uniform(-1.0, 1.0, (6, 3)).tolist())}
    limits = [
        sf.Limit("a", bound=5.0, noise=0.1, prior=[(-0.2, 0.9), (0.1, 0.4), (-1.0, 1.0)]),
        sf.Limit(
            "b", bound=5.0, noise=0.2, prior=[(-2.0, 2.0), (0.3, 0.3), (0.0, 1.5)], norm=1.0, misspecification=0.01
        ),
        sf.Limit("c", bound=5.0, noise=0.1, norm=1.5, features=[0, 2]),
    ]
    true = np.array([[0.8, 0.15, 0.9], [0.1, 0.3, 0.9], [0.7, 0.0, -0.9]])
    anchor = (rows["0"], (true @ rows["0"]).tolist(), [0.01, 0.0, 0.02]) if case == 2 else None
    problem = corridor(rows, limits, anchor=anchor)
    agent, read = sf.LsviNew(problem, 0.1), read_problem(problem.save(tmp_path / "problem.json"))
    data = Data(read, paper=False)
    for _ in range((3, 40, 300)[case]):
        edge = int(rng.integers(6))
        x, cost = np.array(rows[str(edge)]), true @ rows[str(edge)] + 0.05 * rng.standard_normal(3)
        data.add(0, x, cost, True)
        agent.costs.add(0, x, cost)
    agent.replan()
    plan = make_plan(read, data, confidence_of(agent))
    bounds = agent.plan.bounds
    assert plan.rows[0].upper == pytest.approx(bounds.upper[0], rel=1e-7, abs=1e-8)
    assert plan.rows[0].lower == pytest.approx(bounds.lower[0], rel=1e-7, abs=1e-8)
    assert (plan.rows[0].slop < 1e-6).all()


@pytest.mark.parametrize("boxed", [False, True])
def test_what_rounding_takes_is_the_engines_to_the_last_term(boxed: bool, tmp_path: Path) -> None:
    """Rows so many and a ridge so small that each term counts: of G, of b, of the rows."""
    known: dict[str, Any] = {"prior": [(-0.5, 1.5), (1.0, 1.0)]} if boxed else {"norm": 2.0}
    problem = corridor({"stay": [3.0, 4.0]}, sf.Limit("heat", bound=1.0, noise=0.1, **known))
    read = read_problem(problem.save(tmp_path / "problem.json"))
    data, radius, digits = Data(read, paper=False), 1e-5, 4.0 * float(np.finfo(np.float64).eps)
    share = digits * math.sqrt(2.0)
    gram, target, ridge = np.diag([6e5, 4e5]), np.array([3e5, 4e5]), 5.0 * share * 1e6
    data.gram[0][0], data.targets[0, 0], data.spread[0, 0] = gram, target, 1e20
    ellipsoids = Ellipsoids(read, data, 0, Confidence((ridge,), 0.0, (1.0,), MULTIPLIERS, 0.1, 1.0, None))
    found, lost = ellipsoids._widened(0, beside(gram, ridge, None), radius)
    longest, length, middle = (3.0, 1.0, math.sqrt(2.0) * math.hypot(0.5, 1.0) * 5.0) if boxed else (5.0, 2.0, 0.0)
    missing = share * (1e6 * length + 5e5)
    of_rows = (length * longest + middle + 0.1) * 1e10
    by_hand = radius / math.sqrt(0.8) + missing / math.sqrt(ridge) + digits * of_rows
    assert found == pytest.approx(by_hand + (share * of_rows if boxed else 0.0), rel=1e-9)
    assert lost == pytest.approx(1.0 - radius / found, rel=1e-9)
    confidence = CostConfidence(
        (ridge,), MULTIPLIERS, lambda *_: radius, shaped=0.0, dual=True, prior=True, scale=1.0, guard=True
    )
    (family,) = families(problem)
    engine = _radii(isotropic(turned(gram, target[None]), ridge), 0, spread_of(1e20), family, confidence)
    assert sum(engine) == pytest.approx(by_hand, rel=1e-9)
    assert ellipsoids._widened(0, beside(gram, 2.0 * share * 1e6, None), radius) == (
        math.inf,
        1.0,
    )  # as many digits as there are


def test_ridges_are_those_of_the_rows_that_a_problem_began_with(tmp_path: Path) -> None:
    """… its last states among them, and of no row shorter than a thousandth of the longest (spec 3 and 9)."""
    rows = {"a": [3.0, 0.0], "b": [0.0, 1.0]}
    limit = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)

    def read(name: str, **more: Any) -> Any:
        return read_problem(corridor(more.pop("rows", rows), limit, **more).save(tmp_path / f"{name}.json"))

    first, later = read("first"), read("later", rows={"a": [5.0, 0.0]})
    assert default_ridge(first, paper=False) == pytest.approx(5.0)
    assert default_ridge(replace(later, first=first), paper=False) == pytest.approx(5.0)
    assert default_ridge(later, paper=False) == pytest.approx(25.0)
    assert default_ridge(read("last", terminal=[2.0, 0.0]), paper=False) == pytest.approx(14.0 / 3)
    anchored = read("anchored", rows={"a": [3.0, 0.0]}, anchor=([3.0, 0.0], [0.1]))
    assert default_ridge(anchored, paper=False) == pytest.approx(9e-6)  # nothing is left beside the anchor
    assert default_ridge(read("zeros", rows={"a": [0.0, 0.0]}), paper=False) == pytest.approx(1e-6)
    assert default_ridge(first, paper=True) == 3.0
    for known, ratio in (
        ({"norm": 1.0}, 1.0),
        ({"norm": 1.0, "features": [1]}, 0.1),
        ({"prior": [2.0, (0.0, 4.0)]}, 0.4),
    ):
        problem = corridor(rows, sf.Limit("heat", bound=1.0, noise=0.1, **known))
        own = read_problem(problem.save(tmp_path / "own.json"))
        assert ridge_ratio(own, own.known[0]) == pytest.approx(ratio)
        assert families(problem)[0].ratio == pytest.approx(ratio)


@pytest.mark.parametrize(("off", "sure", "possible"), [(1e-6, True, True), (1e-13, False, True), (-1e-6, False, False)])
def test_rounding_decides_about_last_states_too(tmp_path: Path, off: float, sure: bool, possible: bool) -> None:
    """Before data ``warm`` may cost 3·0.15 at the end and 3·0.3 on the way; the limit is that, or off by a little."""
    problem = kettle().problem
    for h, most in ((2, 0.45), (1, 0.9)):
        limits = (replace(problem.limits[0], bound=most * (1.0 + off)),)
        read = read_problem(replace(problem, limits=limits).save(tmp_path / f"{h}.json"))
        plan = make_plan(read, Data(read, paper=False), Confidence((1.0,), 0.0, (1.0,), MULTIPLIERS, 0.1, 1.0, None))
        warm = read.state(h, ("warm", 1))
        assert warm is not None
        if h == 2:
            assert (plan.sure.states[2][warm], plan.possible.states[2][warm]) == (sure, possible)
        else:  # heating a pot that is in s: 0.3 at most, and its last states are fine
            pair = read.pair(1, 0, "heat")
            assert pair is not None
            assert (plan.sure.pairs[1][pair], plan.possible.pairs[1][pair]) == (sure, possible)


@pytest.mark.parametrize("most", [100_000, 4])
@pytest.mark.parametrize("stationary", [False, True])
def test_the_shape_of_the_features_is_the_engines(
    most: int, stationary: bool, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """… by regression and family, beside an anchor; of a table that is too large, of every so many rows."""
    monkeypatch.setattr(audit_rows, "MOST_ROWS", most)
    monkeypatch.setattr(shapes, "MOST_ROWS", most)
    rng = np.random.default_rng(seed)
    rows = {str(i): row for i, row in enumerate(rng.uniform(-1.0, 1.0, (9, 3)).tolist())}
    limits = [
        sf.Limit("a", bound=9.0, noise=0.1, prior=[(-0.2, 0.9), (0.1, 0.4), (-1.0, 1.0)]),
        sf.Limit("b", bound=9.0, noise=0.1, norm=1.5),
    ]
    more: dict[str, Any] = {"horizon": 3, "stationary_costs": True} if stationary else {"terminal": [0.5, 2.0, 0.0]}
    problem = corridor(rows, limits, anchor=(rows["0"], [0.1, 0.2]), **more)
    read = read_problem(problem.save(tmp_path / "problem.json"))
    found = np.concatenate([feature_shapes(read, known).reshape(-1) for known in read.known])
    assert sf.LsviNew(problem).costs.shapes == pytest.approx(found, rel=1e-12, abs=1e-15)
    if most < 9:
        monkeypatch.undo()
        assert sf.LsviNew(problem).costs.shapes != pytest.approx(found, rel=1e-3)
