"""``sf.calibrate``: what a log of the fallback says about what was declared.

**Levels.** Let α = 1 − level. The upper bounds of all noise scales hold together with probability at least 1 − α/2, and
so do all intervals for γ and what follows from them. The seven tests of all limits together accuse a truthful log with
probability at most α/2. So with probability at least ``level`` a truthful log is accused of nothing, and with at least
``level`` every bound and interval holds. For Gaussian noise, independent from row to row, these are proofs; for other
noise they are estimates, as is everything that is marked as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import of_kind, probability
from surefoot.diagnosis.calibration import questions
from surefoot.diagnosis.calibration.fits import linear, orthonormal, repeats, squares, within
from surefoot.diagnosis.calibration.measurements import (
    Log,
    Measurements,
    describe_support,
    disturbance_found,
    plant_measurements,
    read_measurements,
)
from surefoot.diagnosis.calibration.proposing import changes_of, proposed
from surefoot.diagnosis.calibration.questions import NAMES, Sample, Scale, Test, scale_of
from surefoot.diagnosis.calibration.result import (
    Average,
    Calibration,
    Coefficient,
    LimitCalibration,
    Residuals,
)
from surefoot.diagnosis.calibration.verdict import judge_log
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.limit import Limit
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem


def calibrate(problem: Problem | Plant, log: Log, *, level: float = 0.95) -> Calibration:
    """Compare a declaration with a log: noise scales, linearity, shared offsets, clipping, supports, intervals.

    Args:
        problem: a problem; or a plant, whose exact states and features are then used, and whose disturbance is
            calibrated as well.
        log: transitions with measured costs, usually of the fallback: a ``.csv``, ``.jsonl`` or ``.parquet`` file, a
            study's folder, rows (mappings), or columns (a mapping of arrays). Columns are those of
            ``study.import_log``: ``step``, ``state``, ``action``, ``next_state``, ``cost`` (for several limits a list,
            or ``cost.NAME`` for each), ``intensity`` for actions that have one, and ``episode``, to find shared
            offsets. For a plant, states are lists such as ``[22.0, 6.0]``, and actions are inputs.
        level: the probability with which all bounds hold, and with which a truthful log is accused of nothing.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> env, rows = world.env(), []
        >>> for episode in range(200):
        ...     _, info = env.reset(seed=episode)
        ...     for h in range(world.problem.horizon - 1):
        ...         row = {"episode": episode, "step": h, "state": info["state"], "action": 0}
        ...         _, _, _, _, info = env.step(0)
        ...         rows.append({**row, "next_state": info["state"], "cost": float(info["cost"][0])})
        >>> found = sf.calibrate(world.problem, rows)
        >>> found.errors, world.problem.limits[0].noise <= found.proposal[0].noise
        ([], True)
    """
    if isinstance(problem, Plant):
        return _of_plant(problem, log, probability("level", level))
    of_kind(problem, Problem, "calibrate needs a Problem or a Plant", "The log comes second; a World has its problem.")
    level = probability("level", level)
    about, data = read_measurements(problem, log)
    return calibrated(about, _some(data), level)


def _of_plant(plant: Plant, log: Log, level: float) -> Calibration:
    about, data, apart = plant_measurements(plant, log)
    found = calibrated(about, _some(data), level)
    largest = dict(zip(plant.cells.names, apart.max(axis=0).tolist(), strict=True))
    said = disturbance_found(plant, apart)
    others = [replace(each, text=plant.in_words(each.text)) for each in found.findings]
    findings = (said, *others) if said.grade == "error" else (*others, said)
    return replace(found, disturbance=largest, findings=findings)


def _some(data: Measurements) -> Measurements:
    if len(data.step) == 0 and not data.outside:
        raise InvalidInput("there is nothing to calibrate with", got="no row with a cost")
    return data


def calibrated(problem: Problem, data: Measurements, level: float) -> Calibration:
    """The same for measurements that have been read."""
    alpha = 1.0 - level
    samples = [_sample(problem, data, j) for j in range(len(problem.limits))]
    limits = tuple(_limit(problem, data, samples[j], j, alpha) for j in range(len(samples)))
    changes = tuple(change for j, found in enumerate(limits) for change in changes_of(problem, j, found, level))
    found = Calibration(
        level=level,
        rows=len(data.step),
        unmeasured=data.unmeasured,
        episodes=len(np.unique(data.episode)) if data.has_episodes else 0,
        limits=limits,
        support=describe_support(problem, data, alpha),
        findings=(),
        proposal=tuple(proposed(limit, changes) for limit in problem.limits),
        changes=changes,
        features=problem.features,
        residuals=tuple(_residuals(limit, data, sample) for limit, sample in zip(problem.limits, samples, strict=True)),
    )
    return replace(found, findings=judge_log(problem, found, data))


def _sample(problem: Problem, data: Measurements, j: int) -> Sample:
    regression = np.zeros_like(data.step) if problem.stationary_costs else data.step
    triplet = data.triplet
    return Sample(
        y=data.cost[:, j],
        features=linear(data.features, regression),
        means=repeats(triplet),
        triplet=triplet,
        episode=data.episode if data.has_episodes else None,
        noise=problem.limits[j].noise,
        episode_noise=problem.limits[j].episode_noise,
    )


def _limit(problem: Problem, data: Measurements, sample: Sample, j: int, alpha: float) -> LimitCalibration:
    limit, m = problem.limits[j], len(problem.limits)
    each = alpha / 2.0 / (m * len(NAMES))
    scale = scale_of(sample)
    offset, between = questions.episodes(sample)
    asked = (
        (
            Test("noise", scale.larger_than(limit.noise), "there are too few rows"),
            questions.linearity(sample, limit.misspecification, each),
            offset,
            *questions.ends(sample),
            questions.tails(sample),
            questions.drifting(sample),
        )
        if len(sample.y)
        else tuple(Test(name, None, "there is no cost in the log") for name in NAMES)
    )
    accused = tuple(test.name for test in asked if test.p is not None and test.p < each)
    bent, shared = "linearity" in accused, between if "episodes" in accused else None
    white = scale if shared is None else Scale(shared.left, shared.freedom)  # the noise apart from an offset
    apart = np.abs(sample.means.fitted(sample.y) - sample.features.fitted(sample.y))  # of transitions from the line
    return LimitCalibration(
        name=limit.name,
        declared=limit.noise,
        noise=white.above(1.0 - alpha / 2.0 / m),
        least_noise=scale.below(1.0 - each),
        freedom=scale.freedom,
        by_repeats=sample.by_repeats,
        tests=asked,
        accused=accused,
        episode_noise=None if shared is None else questions.offset_above(shared, each),
        lack=float(apart.max(initial=0.0)) if bent else None,
        intervals=() if bent else _intervals(problem, data, sample, j, scale, alpha / 2.0 / m),
        averages=() if bent else tuple(_averages(problem, data, sample, j, scale, alpha / 2.0 / m)),
    )


# --- intervals for γ ----------------------------------------------------------------------------------------


def _intervals(
    problem: Problem, data: Measurements, sample: Sample, j: int, scale: Scale, share: float
) -> tuple[Coefficient, ...]:
    """γ̂_i ± t·s·‖row i of X⁺‖, and ζ times the sum of its entries, for coefficients that the rows determine.

    With a declared offset, only differences within episodes are used, if a regression has several rows of one; if not,
    the offset is part of each row's noise.
    """
    if scale.freedom < 1:
        return ()
    steps = _regressions(problem)
    found = list[Coefficient]()
    width = problem.graph.cost_dim
    for some in steps:
        rows = np.isin(data.step, some)
        if rows.any():
            x, y, own = data.features[rows], sample.y[rows], scale
            if sample.episode_noise > 0.0 and problem.stationary_costs:
                x = within(x, np.unique(data.episode[rows], return_inverse=True)[1].reshape(-1))
            elif sample.episode_noise > 0.0:
                basis = orthonormal(x)
                own = Scale(squares(y - basis @ (basis.T @ y)), len(y) - basis.shape[1])
            if own.freedom < 1:
                continue
            centre, half = estimates(x, y, own, share / (len(steps) * (width + 1)))
            # An error of 1 in every row moves a coefficient by at most the sum of its row of |X⁺|.
            half = half + problem.limits[j].misspecification * np.abs(np.linalg.pinv(x, rcond=1e-9)).sum(axis=1)
            seen = tuple(int(h) for h in np.unique(data.step[rows]))
            found += [
                Coefficient(seen, i, float(centre[i] - half[i]), float(centre[i] + half[i]))
                for i in range(width)
                if math.isfinite(half[i])
            ]
    return tuple(found)


def _regressions(problem: Problem) -> list[tuple[int, ...]]:
    """The steps of each regression."""
    every = range(problem.horizon)
    return [tuple(every)] if problem.stationary_costs else [(h,) for h in every]


def _averages(
    problem: Problem, data: Measurements, sample: Sample, j: int, scale: Scale, share: float
) -> Iterator[Average]:
    """⟨γ̂, x̄⟩ ± t·s/√n + ζ for the mean row x̄ of a regression, which any rows determine. It takes the last of the dc + 1
    shares of the weights.

    None with a declared offset of episodes, which stays in the mean.
    """
    from scipy.stats import t

    if scale.freedom < 1 or sample.episode_noise > 0.0:
        return
    prior, steps, fitted = problem.priors[j], _regressions(problem), sample.features.fitted(sample.y)
    quantile = float(t.ppf(1.0 - share / (len(steps) * (problem.graph.cost_dim + 1)) / 2.0, scale.freedom))
    for some in steps:
        rows = np.isin(data.step, some)
        if rows.any():
            x, mean, seen = data.features[rows].mean(axis=0), float(fitted[rows].mean()), np.unique(data.step[rows])
            half = quantile * math.sqrt(scale.squares / scale.freedom / rows.sum()) + problem.limits[j].misspecification
            middle, reach = float(prior.centre @ x), float(prior.width @ np.abs(x)) if prior.boxed else math.inf
            most = prior.norm * float(np.linalg.norm(x))
            yield Average(
                steps=tuple(seen.tolist()),
                low=mean - half,
                high=mean + half,
                least=max(middle - reach, -most),
                largest=min(middle + reach, most),
                bound=float(problem.bounds[seen, j].max()),
            )


def estimates(x: FloatArray, y: FloatArray, scale: Scale, share: float) -> tuple[FloatArray, FloatArray]:
    """γ̂ (d,) and half the width of each coefficient's interval; ∞ where the rows leave it open."""
    from scipy.stats import t

    inverse = np.linalg.pinv(x, rcond=1e-9)
    determined = np.linalg.norm(np.eye(x.shape[1]) - inverse @ x, axis=1) < 1e-6
    deviation = math.sqrt(scale.squares / scale.freedom)
    half = float(t.ppf(1.0 - share / 2.0, scale.freedom)) * deviation * np.linalg.norm(inverse, axis=1)
    return inverse @ y, np.where(determined, half, np.inf)


def _residuals(limit: Limit, data: Measurements, sample: Sample) -> Residuals:
    fitted = sample.features.fitted(sample.y)
    order: NDArray[np.int64] = data.episode if data.has_episodes else np.arange(len(fitted))
    return Residuals(limit.name, limit.noise, fitted, sample.y - fitted, order)
