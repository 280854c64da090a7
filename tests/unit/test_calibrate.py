"""Calibration: what is wrong with a log is named, a truthful one is accused of nothing, every kind of log is read."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.stats

import surefoot as sf
from surefoot.diagnosis.calibration.calibrate import calibrated
from surefoot.diagnosis.calibration.fits import between_episodes, linear, repeats
from surefoot.diagnosis.calibration.measurements import Measurements, read_measurements
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.reports.pictures.residuals import draw_residuals
from surefoot.reports.pictures.style import DARK
from tests.logged import NOISE, log, pump
from tests.studies import Calm, Quick

ROWS = 1_000
LEVEL = 0.95
SURE = 1 - 1e-6  # for single draws: what may fail at this level fails with no seed


def truthful(seed: int) -> tuple[sf.Problem, Measurements, Any]:
    """A problem, a log of ROWS rows of it, and a way to draw all its noise anew."""
    rng = np.random.default_rng([seed, 14])
    problem = pump()
    _, data = read_measurements(problem, log(problem, rng, ROWS // 5, noise=0.0))
    assert len(data.step) == ROWS

    def drawn() -> Measurements:
        return replace(data, cost=data.cost + NOISE * rng.normal(size=data.cost.shape))

    return problem, data, drawn


def test_the_proposed_noise_is_large_enough_and_not_much_larger(seed: int) -> None:
    """At least the true one in 95 % of 200 logs of a thousand rows, and within 1.3 times of it."""
    problem, _, drawn = truthful(seed)
    found = [calibrated(problem, drawn(), LEVEL) for _ in range(200)]
    proposed = np.array([each.proposal[0].noise for each in found])
    assert np.mean(proposed >= NOISE) >= 0.95
    calm = np.array([not each.limits[0].accused for each in found])
    assert (proposed[calm] <= 1.3 * NOISE).all()
    assert np.mean(proposed <= 1.3 * NOISE) >= 0.99
    # Truthful logs are accused no more often than the level says, up to what 200 draws scatter (probability 1e-4).
    assert (~calm).sum() <= scipy.stats.binom.isf(1e-4, 200, (1 - LEVEL) / 2)
    assert sum(bool(each.errors) for each in found) <= scipy.stats.binom.isf(1e-4, 200, 1 - LEVEL)
    gamma = np.array([0.2, 0.4, 0.1])
    held = [all(i.low <= gamma[i.column] <= i.high for i in each.limits[0].intervals) for each in found]
    assert len(found[0].limits[0].intervals) == 3
    assert sum(not ok for ok in held) <= scipy.stats.binom.isf(1e-4, 200, (1 - LEVEL) / 2)


def test_a_level_that_is_too_low_would_be_noticed(seed: int) -> None:
    """The negative control: a bound that is meant to hold half the time does not hold in 95 % of logs."""
    problem, _, drawn = truthful(seed)
    proposed = [calibrated(problem, drawn(), 0.02).limits[0].noise for _ in range(60)]
    assert np.mean(np.array(proposed) >= NOISE) < 0.95


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "not linear": ({"strain": lambda x: 0.2 + 0.6 * x[1] ** 2 + 0.1 * x[2]}, "linearity", "not linear in the features"),
    "shared offset": ({"offset": NOISE}, "episodes", "share an offset within an episode"),
    "clipped above": ({"clip": 0.45}, "high end", "pile up at the highest value, 0.45"),
    "noisier": ({"noise": 1.5 * NOISE}, "noise", "larger than declared"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named(name: str, seed: int) -> None:
    changes, test, words = FAULTS[name]
    found = sf.calibrate(pump(), log(pump(), np.random.default_rng([seed, 15]), ROWS // 5, **changes))
    assert test in found.limits[0].accused
    (error,) = (each for each in found.errors if words in each)
    assert error.endswith(".")
    assert "ERROR" in str(found)


def test_a_missing_successor_is_named(seed: int) -> None:
    found = sf.calibrate(pump(), log(pump(), np.random.default_rng([seed, 16]), 100, leak=True))
    assert found.support.outside > 0
    assert found.support.outside_chance is None
    assert "leave the declared support (a proof that it is too small): row" in found.errors[0]
    assert "Declare these successors, too" in found.errors[0]
    calm = sf.calibrate(pump(), log(pump(), np.random.default_rng([seed, 16]), 100))
    assert calm.support.outside == 0
    assert calm.support.outside_chance == pytest.approx(1 - 0.05 ** (1 / 500))


def test_a_drift_and_a_heavy_tail_are_named(seed: int) -> None:
    rng = np.random.default_rng([seed, 17])
    before, after = (log(pump(), rng, 100, strain=lambda x, a=a: 0.2 + a * x[1]) for a in (0.4, 0.55))
    shifted = [{**row, "episode": row["episode"] + 100} for row in after]
    assert "drift" in sf.calibrate(pump(), before + shifted).limits[0].accused
    wild = log(pump(), rng, 200)
    wild[77]["cost"] += 12 * NOISE
    found = sf.calibrate(pump(), wild)
    assert "tails" in found.limits[0].accused
    assert any("heavier tails" in str(finding) for finding in found.findings)


def test_a_norm_and_an_anchor_against_the_log(seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 18]), 200)
    small = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, norm=0.3))
    assert any("norm of 'strain' is too small" in error for error in sf.calibrate(small, rows).errors)
    wrong = pump(anchor=lambda h: ([1.0, 0.0, 0.0], 0.3))
    assert any("anchor of 'strain' contradicts the log" in error for error in sf.calibrate(wrong, rows).errors)
    right = pump(anchor=lambda h: ([1.0, 0.0, 0.0], 0.2))
    assert not [error for error in sf.calibrate(right, rows).errors if "anchor" in error]


PRIOR = {"prior": [(0.0, 0.4), (0.2, 0.6), (0.0, 0.3)]}


@pytest.mark.parametrize("known", [{"norm": 0.6}, PRIOR, {"norm": 0.6, **PRIOR}], ids=["norm", "prior", "both"])
def test_costs_in_another_unit_are_named(known: dict[str, Any], seed: int) -> None:
    """Even where the log determines no weight: the mean cost of its rows is always known."""
    problem = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, **known))
    rows = [row for row in log(problem, np.random.default_rng([seed, 31]), 200) if row["step"] == 0]
    (one,) = sf.calibrate(problem, rows).limits
    assert not one.accused
    assert len(one.intervals) < 3
    (mean,) = one.averages
    assert mean.least <= mean.low <= np.mean([row["cost"] for row in rows]) <= mean.high <= mean.largest
    per_cent = [{**row, "cost": 100 * row["cost"]} for row in rows]
    first, second, *_ = sf.calibrate(problem, per_cent).errors
    assert f"average {100 * mean.low:.4g} … {100 * mean.high:.4g} in the log, but the declared" in first
    assert "and the bound is 0.68: the fallback broke the limit" in second
    low = pump(limits=sf.Limit("strain", bound=0.1, noise=NOISE, **known))
    assert any("the fallback broke the limit" in error for error in sf.calibrate(low, rows).errors)


def test_a_declared_misspecification_covers_what_it_covers(seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 19]), 200, strain=lambda x: 0.2 + 0.6 * x[1] ** 2 + 0.1 * x[2])
    assert "linearity" in sf.calibrate(pump(), rows).limits[0].accused
    limit = sf.Limit("strain", bound=0.68, noise=NOISE, norm=0.6, misspecification=0.15)
    assert "linearity" not in sf.calibrate(pump(limits=limit), rows).limits[0].accused


# ---------------------------------------------------------------- the numbers behind it, against others


def test_lack_of_fit_and_episodes_against_least_squares_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, group, episode = rng.normal(size=(60, 2)), np.repeat(np.arange(20), 3), np.tile(np.arange(15), 4)
    x = x[group]
    y = x @ [1.0, -2.0] + rng.normal(size=60)
    features, means = linear(x, np.zeros(60, np.int64)), repeats(group)
    full = np.eye(20)[group]
    for design, matrix in ((features, x), (means, full)):
        expected = matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]
        np.testing.assert_allclose(design.fitted(y), expected, atol=1e-12)
        assert design.freedom == 60 - np.linalg.matrix_rank(matrix)
        both = np.hstack([matrix, np.eye(15)[episode]])
        found = between_episodes(design, y, episode)
        assert found is not None
        left = y - both @ np.linalg.lstsq(both, y, rcond=None)[0]
        assert found.left == pytest.approx(float(left @ left))
        assert found.freedom == 60 - np.linalg.matrix_rank(both)
        projector = np.eye(60) - matrix @ np.linalg.pinv(matrix)
        assert found.load == pytest.approx(float(np.trace(np.eye(15)[episode].T @ projector @ np.eye(15)[episode])))


def test_a_coarse_sensor_is_not_called_clipped(seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 20]), 200)
    coarse = [{**row, "cost": round(row["cost"] / 0.02) * 0.02} for row in rows]
    accused = sf.calibrate(pump(), coarse).limits[0].accused
    assert "high end" not in accused
    assert "low end" not in accused


# ---------------------------------------------------------------- what is proposed, and how it is read


def test_nothing_is_loosened_silently(seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 21]), 200)
    wide = pump(limits=sf.Limit("strain", bound=0.68, noise=0.2, norm=0.6))
    found = sf.calibrate(wide, rows, level=SURE)
    change, prior = found.changes
    assert (change.field, change.declared, change.wider) == ("noise", 0.2, False)
    assert (prior.field, prior.declared, prior.wider) == ("prior", None, False)
    assert "NARROWER: loosens the declaration" in found.text
    assert found.proposal[0].noise < 0.1
    clipped = sf.calibrate(wide, log(wide, np.random.default_rng([seed, 21]), 200, clip=0.45))
    assert not [change for change in clipped.changes if not change.wider]  # its scatter is too small to be believed
    assert wide.limits[0].noise == 0.2  # and nothing changes by itself


def test_a_prior_from_the_log(seed: int) -> None:
    """Where the log determines all coefficients it proposes intervals, never wider than declared, and their level."""
    gamma = dict(zip(("bias", "level", "speed"), (0.2, 0.4, 0.1), strict=True))
    rows = log(pump(), np.random.default_rng([seed, 25]), 200)
    named = pump(features=list(gamma))
    found = sf.calibrate(named, rows, level=SURE)
    (change,) = (each for each in found.changes if each.field == "prior")
    assert "prior from the log, level 0.999999 for Gaussian noise, NARROWER" in found.text
    assert isinstance(change.proposed, dict)
    assert all(low <= gamma[str(name)] <= high for name, (low, high) in change.proposed.items())
    again = pump(features=list(gamma), limits=found.proposal)
    assert again.limits[0].norm == 0.6
    assert not sf.check(again).errors
    assert sf.check(again).cold_start.moves > sf.check(named).cold_start.moves
    # Beside a declared prior: what both allow, and nothing is wider.
    loose = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, prior=[(0.1, 0.21), (-9, 9), 0.1]))
    (change,) = (each for each in sf.calibrate(loose, rows, level=SURE).changes if each.field == "prior")
    assert isinstance(change.proposed, tuple)
    assert change.proposed[0][1] == 0.21
    assert change.proposed[2] == (0.1, 0.1)
    assert -9 < change.proposed[1][0] < 0.4 < change.proposed[1][1] < 9


def test_a_prior_that_the_log_contradicts_is_widened(seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 26]), 200)
    wrong = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, prior=[(0.0, 0.3), (0.6, 0.9), (0.0, 0.3)]))
    found = sf.calibrate(wrong, rows, level=SURE)
    assert any("The prior of 'strain' contradicts the log: feature 1 is declared as" in e for e in found.errors)
    (change,) = (each for each in found.changes if each.field == "prior")
    assert change.wider
    assert isinstance(change.proposed, tuple)
    assert change.proposed[0] == (0.0, 0.3)
    assert change.proposed[1][0] <= 0.4
    assert change.proposed[1][1] == 0.9
    few = sf.calibrate(pump(stationary_costs=False), rows[:40])  # step 0 never leaves state 0: the level is not shown
    assert not [each for each in few.changes if each.field == "prior"]


def test_a_declared_offset_is_not_accused_and_its_noise_is_found(seed: int) -> None:
    """Nor is a truthful log of it: noise, linearity, tails and drift are looked at within episodes."""
    rng = np.random.default_rng([seed, 27])
    first = sf.calibrate(pump(), log(pump(), rng, 200, offset=2 * NOISE))
    assert "episodes" in first.limits[0].accused
    proposal = first.proposal[0]
    assert 2 * NOISE <= proposal.episode_noise <= 4 * NOISE
    assert 0.9 * NOISE <= proposal.noise <= 1.3 * NOISE
    problem = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, norm=0.6, episode_noise=2 * NOISE))
    accused, held = 0, 0
    for _ in range(20):
        found = sf.calibrate(problem, log(pump(), rng, 60, offset=2 * NOISE))
        accused += bool(found.limits[0].accused)
        shown = {each.column: each for each in found.limits[0].intervals}
        held += all(shown[i].low <= gamma <= shown[i].high for i, gamma in ((1, 0.4), (2, 0.1)))
        assert 0 not in shown  # the offsets stand beside it
    assert accused <= scipy.stats.binom.isf(1e-4, 20, (1 - LEVEL) / 2)
    assert 20 - held <= scipy.stats.binom.isf(1e-4, 20, (1 - LEVEL) / 2)
    larger = sf.calibrate(problem, log(pump(), rng, 200, offset=8 * NOISE))
    assert "episodes" in larger.limits[0].accused
    without = [{key: value for key, value in row.items() if key != "episode"} for row in log(pump(), rng, 9)]
    with pytest.raises(InvalidInput, match="every row needs its episode"):
        sf.calibrate(problem, without)


def test_weights_go_by_the_names_of_their_features(seed: int) -> None:
    problem = pump(limits=sf.Limit("strain", bound=0.68, noise=NOISE, **PRIOR), features=["rest", "pressure", "speed"])
    found = sf.calibrate(problem, log(problem, np.random.default_rng([seed, 32]), 20))
    assert {"rest", "pressure", "speed"} <= set(str(found).split())
    assert "prior={'rest': (" in found.text
    assert "left open" not in str(found)
    first = [row for row in log(problem, np.random.default_rng([seed, 33]), 40) if row["step"] == 0]
    assert str(sf.calibrate(problem, first)).count("left open by the log, of 'strain': 'rest', 'speed'\n") == 1


def test_the_proposal_can_be_pasted(seed: int) -> None:
    found = sf.calibrate(pump(), log(pump(), np.random.default_rng([seed, 22]), 200, offset=NOISE))
    namespace: dict[str, Any] = {"sf": sf}
    exec(f"{found.text.replace('limits=', 'limits = ', 1)}", namespace)
    assert tuple(namespace["limits"]) == found.proposal
    assert found.proposal[0].noise > NOISE or found.proposal[0] != pump().limits[0]


def test_every_kind_of_log_says_the_same(tmp_path: Path, seed: int) -> None:
    rows = log(pump(), np.random.default_rng([seed, 23]), 30)
    expected = sf.calibrate(pump(), rows).to_dict()
    with (tmp_path / "log.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "log.parquet")
    with sf.Study.open(tmp_path / "pump.study", pump(), files=Quick(), monitor_factory=Calm) as study:
        study.import_log(rows)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for source in (
        tmp_path / "log.csv",
        tmp_path / "log.jsonl",
        tmp_path / "log.parquet",
        tmp_path / "pump.study",
        columns,
    ):
        assert sf.calibrate(pump(), source).to_dict() == expected  # type: ignore[arg-type]


def test_a_journal_of_a_study_is_a_log(tmp_path: Path) -> None:
    problem = pump()
    with sf.Study.open(tmp_path / "s", problem, files=Quick(), monitor_factory=Calm) as study:
        for k in range(12):
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    following = problem.successors(offer.step, offer.state, offer.action)[0]
                    episode.tell(following, None if k == 0 else 0.2 + 0.001 * k)
    found = sf.calibrate(problem, tmp_path / "s")
    assert (found.rows, found.unmeasured, found.episodes) == (55, 5, 11)


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    row = {"step": 0, "state": 0, "action": "slow", "next_state": 1, "cost": 0.3}
    with pytest.raises(InvalidInput, match=r"does not fit the problem: row 1: no such step.*Correct or remove"):
        sf.calibrate(pump(), [{**row, "step": 9}])
    with pytest.raises(InvalidInput, match=r"calibrate needs a Problem or a Plant: a str\."):
        sf.calibrate("pump", [row])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a log is a file, a study's folder, or rows: 7"):
        sf.calibrate(pump(), 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"column 'step': 0\. Give lists"):
        sf.calibrate(pump(), row)
    with pytest.raises(InvalidInput, match="level"):
        sf.calibrate(pump(), [row], level=1.0)
    with pytest.raises(InvalidInput, match="nothing to calibrate"):
        sf.calibrate(pump(), [{**row, "cost": None}])
    with pytest.raises(InvalidInput, match="columns of different lengths"):
        sf.calibrate(pump(), {"step": [0, 0], "state": [0]})
    with pytest.raises(UnreadableFile, match="no study here"):
        sf.calibrate(pump(), tmp_path)
    with pytest.raises(InvalidInput, match=r"a row is a mapping: row 1: 'step'\. Of a pandas frame, give"):
        sf.calibrate(pump(), pandas.DataFrame([row]))
    short = sf.calibrate(pump(), [{**row, "step": np.int64(0)}])
    assert short.limits[0].noise is None
    assert "too few rows" in str(short)


def test_the_picture(tmp_path: Path, seed: int) -> None:
    found = sf.calibrate(pump(), log(pump(), np.random.default_rng([seed, 24]), 20))
    for name, paper in (("light.png", None), ("dark.svg", DARK)):
        made = draw_residuals(found, tmp_path / name, *([] if paper is None else [paper]))
        assert made.stat().st_size > 5_000
    without = [
        {key: value for key, value in row.items() if key != "episode"}
        for row in log(pump(), np.random.default_rng(seed), 9)
    ]
    assert draw_residuals(sf.calibrate(pump(), without), tmp_path / "rows.png").exists()
