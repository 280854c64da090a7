"""The paper's β is made for H·K rows; rows imported on top of them get the radius that they need."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot import theory
from surefoot.audits.audit import audit

LIMIT = sf.Limit("heat", bound=1.0, noise=0.5, norm=1.0)
P = 0.05


def slope() -> sf.Problem:
    """One step, two features, which are those of the transitions too: d = 2, of which one is learned."""
    return sf.Problem.from_functions(
        horizon=2,
        start="here",
        actions=lambda h, s: ["flat", "steep"],
        successors=lambda h, s, a: ["there"],
        reward=lambda h, s, a: float(a == "steep"),
        cost_features=lambda h, s, a, s2: [1.0, float(a == "steep")],
        fallback=lambda h, s: "flat",
        limits=LIMIT,
        anchor=lambda h: ([1.0, 0.0], [0.25]),
    )


def proved(problem: sf.Problem, log_det_ratio: float, ridge: float, p: float) -> float:
    inside = log_det_ratio + 2 * math.log(len(problem.limits) * problem.horizon / p)
    return LIMIT.noise * math.sqrt(inside) + math.sqrt(ridge) * LIMIT.norm


@pytest.mark.parametrize("episodes", [1, 10, 10**6])
@pytest.mark.parametrize("dim", [2, 3, 20])
def test_beta_covers_what_its_episodes_can_tell(episodes: int, dim: int) -> None:
    """The most that H·K rows no longer than D can do to a log-determinant; one direction is the anchor's, and known."""
    setting = theory.Setting(
        horizon=2,
        bounds=[1.0],
        cost_norms=[LIMIT.norm],
        noises=[LIMIT.noise],
        transition_norm=0.0,
        anchor_costs=[[0.25]],
        largest_distance=0.0,
        dimension=dim,
        feature_bound=1.0,
        failure_probability=P,
        ridge=dim,
        lambda_0=1.0,
        b_beta=0.0,
        delta_tilde=1.0,
        union=True,
    )
    known = theory.paper_constants(setting, episodes)
    most = (dim - 1) * math.log1p(known.total_steps / ((dim - 1) * setting.ridge))
    assert proved(slope(), most, setting.ridge, P) <= known.beta


def test_a_log_beyond_its_rows_widens_the_radius_and_the_audit_agrees(tmp_path: Path, seed: int) -> None:
    problem, rng = slope(), np.random.default_rng(seed)
    options = {"episodes": 1, "ideas": ("I",), "initial_episodes": 0, "value_radius_scale": 0.0}
    why = "other actions are imported"
    row = {"step": 0, "state": "here", "action": "steep", "next_state": "there"}
    rows = [{**row, "cost": 0.25 + 0.5 * noise} for noise in rng.uniform(-1.0, 1.0, 1000).tolist()]
    with sf.Study.open(
        tmp_path / "s", problem, agent=sf.LsviNewPaper, failure_probability=P, despite=why, **options
    ) as study:
        agent = study.standing.agent
        beta = agent.constants["beta"]
        (ridge,) = agent.cost_confidence.ridges
        assert np.all(agent.costs.ellipsoids(0, agent.cost_confidence).radii == beta)
        study.import_log(rows)
        radius = float(agent.costs.ellipsoids(0, agent.cost_confidence).radii[0, 0])
        assert radius == pytest.approx(proved(problem, math.log1p(len(rows) / ridge), ridge, study.standing.share))
        assert radius > beta
        with study.episode() as episode:
            assert episode.ask().action == "steep"
            episode.tell("there", 0.25)
    report = audit(tmp_path / "s")
    assert report.clean, report
