"""The tests of a log, each with a p-value.

They are for Gaussian noise as declared, independent from row to row, and exact for it (the test for clipping is
conservative): with a truthful log, a p-value is below q with probability at most q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.diagnosis.calibration.fits import Between, Design, Fit, between_episodes, fit, fit_beside, squares
from surefoot.model.arrays import FloatArray

NAMES = ("noise", "linearity", "episodes", "high end", "low end", "tails", "drift")
_FEWEST_REPEATS = 20
_MOST_MEANS = 300  # of transitions, in addition to episodes; with more, the features are used instead
_EDGE = 0.5  # of a bin


@dataclass(frozen=True)
class Test:
    """One test of a log. ``p`` is None if the log cannot answer it; ``why`` then says what is missing."""

    name: str
    p: float | None
    why: str = ""
    size: float | None = None  # an estimate of the effect, in units of the cost


@dataclass(frozen=True, eq=False)
class Sample:
    """The readings of one limit, with the designs of the log."""

    y: FloatArray  # (n,)
    features: Design
    means: Design
    triplet: NDArray[np.int64]
    episode: NDArray[np.int64] | None
    noise: float  # as declared
    episode_noise: float  # as declared; with such an offset, all tests use differences within episodes

    def left(self, design: Design, some: NDArray[np.bool_] | None = None) -> Fit:
        """The residuals of a design, and of an offset per episode if one is declared; perhaps of some rows only."""
        y, episode = self.y, self.episode
        if some is not None:
            design, y, episode = design.part(some), y[some], None if episode is None else episode[some]
        return fit(design, y) if self.episode_noise == 0.0 or episode is None else fit_beside(design, y, episode)

    @property
    def by_repeats(self) -> bool:
        """True if there are enough repeats to know the noise without the features. Decided by the design alone."""
        free = self.means.freedom
        return free >= _FEWEST_REPEATS or 2 * free >= self.features.freedom > 0

    @property
    def design(self) -> Design:
        return self.means if self.by_repeats else self.features


@dataclass(frozen=True)
class Scale:
    """The sum of squares behind a noise scale, and its degrees of freedom."""

    squares: float
    freedom: int

    def above(self, level: float) -> float | None:
        """An upper confidence bound of σ: √(S/χ²), exact for Gaussian noise."""
        return self._at(1.0 - level)

    def below(self, level: float) -> float | None:
        return self._at(level)

    def _at(self, quantile: float) -> float | None:
        from scipy.stats import chi2

        return None if self.freedom < 1 else math.sqrt(self.squares / float(chi2.ppf(quantile, self.freedom)))

    def larger_than(self, noise: float) -> float | None:
        """The p-value of "σ is at most this"."""
        from scipy.stats import chi2

        if self.freedom < 1:
            return None
        if noise == 0.0:
            return 1.0 if self.squares == 0.0 else 0.0
        return float(chi2.sf(self.squares / noise**2, self.freedom))


def scale_of(sample: Sample) -> Scale:
    found = sample.left(sample.design)
    return Scale(found.squares, found.freedom)


def linearity(sample: Sample, error: float, quantile: float) -> Test:
    """Lack of fit: are the means of repeated transitions ⟨γ, x⟩, up to the declared misspecification? What the means
    explain in addition to the features, S_features − S_repeats, is compared with S_repeats."""
    fitted, line, means = sample.features.fitted(sample.y), sample.left(sample.features), sample.left(sample.means)
    whole, free, gained = line.squares, means.freedom, line.freedom - means.freedom
    if gained < 1:
        return Test("linearity", None, "the log does not have more distinct transitions than features")
    if free < _FEWEST_REPEATS and sample.episode_noise > 0.0:
        return Test("linearity", None, "there are too few repeats for the declared offsets of episodes")
    if free < _FEWEST_REPEATS:
        return _curvature(sample, fitted, whole, error, quantile)
    pure = means.squares
    if pure == 0.0:
        return Test(
            "linearity", 1.0 if whole <= 1e-18 * squares(sample.y) else 0.0, size=math.sqrt(whole / len(fitted))
        )
    return _lack_of_fit(whole - pure, gained, Scale(pure, free), Scale(pure, free), error, quantile, len(fitted))


def _lack_of_fit(
    explained: float, gained: int, rest: Scale, noise: Scale, error: float, quantile: float, n: int
) -> Test:
    """F = (explained/gained) over the mean square of the rest. With a misspecification ζ it is noncentral, by at most
    n·ζ²/σ², where σ is the least that the noise allows."""
    from scipy.stats import f, ncf

    ratio = explained / gained / (max(rest.squares, 1e-300) / rest.freedom)
    size = math.sqrt(max(0.0, explained / n))
    if error == 0.0:
        return Test("linearity", float(f.sf(ratio, gained, rest.freedom)), size=size)
    least = noise.below(1.0 - quantile / 2.0) or 0.0
    beside = n * error**2 / least**2 if least > 0.0 else math.inf
    p = float(ncf.sf(ratio, gained, rest.freedom, beside)) if math.isfinite(beside) else 1.0
    return Test("linearity", min(1.0, 2.0 * (0.0 if math.isnan(p) else p)), size=size)


def _curvature(sample: Sample, fitted: FloatArray, whole: float, error: float, quantile: float) -> Test:
    """Without repeats: does the square of the fit explain anything more? (Tukey's test, one degree of freedom.)"""
    free = sample.features.freedom - 1
    bend = fitted**2
    bend = bend - sample.features.fitted(bend)
    length = squares(bend)
    if free < 1 or length <= 1e-18 * max(squares(fitted**2), 1e-300) or whole == 0.0:
        return Test("linearity", None, "there are too few repeats and too few rows to tell")
    explained = float(bend @ sample.y) ** 2 / length
    rest, noise = Scale(whole - explained, free), Scale(whole, free + 1)
    return _lack_of_fit(explained, 1, rest, noise, error, quantile, len(fitted))


def episodes(sample: Sample) -> tuple[Test, Between | None]:
    """Whiteness: do the rows of an episode share an offset? F of an offset per episode in addition to the means.

    With a declared offset of scale τ: is it larger? With at most n rows per episode, it adds at most (σ² + nτ²)·χ².
    """
    from scipy.stats import chi2, f

    if sample.episode is None:
        return Test("episodes", None, "the log does not say which rows belong to one episode"), None
    design = sample.means if sample.means.rank <= _MOST_MEANS else sample.features
    found = between_episodes(design, sample.y, sample.episode)
    if found is None:
        return Test("episodes", None, "there are too few rows per episode"), None
    spread = found.left / found.freedom
    if spread == 0.0:
        return Test("episodes", 1.0 if found.explained == 0.0 else 0.0), found
    if sample.episode_noise > 0.0:
        most = sample.noise**2 + found.most * sample.episode_noise**2
        p = float(chi2.sf(found.explained / most, found.gained))
    else:
        p = float(f.sf(found.explained / found.gained / spread, found.gained, found.freedom))
    variance = max(0.0, (found.explained - found.gained * spread) / found.load)
    return Test("episodes", p, size=math.sqrt(variance)), found


def offset_above(found: Between, quantile: float) -> float:
    """An upper bound on the offset's scale: exact if all episodes have the same rows, otherwise an estimate."""
    from scipy.stats import f

    spread = found.left / found.freedom
    if spread == 0.0:
        return math.sqrt(found.explained / found.load)
    ratio = found.explained / found.gained / spread / float(f.ppf(quantile, found.gained, found.freedom))
    return math.sqrt(max(0.0, spread * (ratio - 1.0) * found.gained / found.load))


def ends(sample: Sample) -> tuple[Test, Test]:
    """Clipping: do readings pile up at the highest or the lowest value?

    If the mean of a transition lies more than half a bin below the highest one, the density falls, so fewer readings
    fall into the highest bin than into the next. A bin is the least difference between two readings.
    """
    high = _pile(sample.y, sample.means.fitted(sample.y))
    low = _pile(-sample.y, -sample.means.fitted(sample.y))
    return Test("high end", high, size=float(sample.y.max())), Test("low end", low, size=float(sample.y.min()))


def _pile(y: FloatArray, mean: FloatArray) -> float:
    from scipy.stats import binom

    values = np.unique(y)
    if len(values) < 3:
        return 1.0
    gaps = np.diff(values)
    step = float(gaps[gaps > 1e-9 * float(np.abs(values).max())].min(initial=math.inf))
    top = float(values[-1])
    below = mean < top - _EDGE * step
    here = int((below & (y == top)).sum())
    next_to = int((below & (np.abs(y - (top - step)) <= _EDGE * step)).sum())
    if here < 2:
        return 1.0
    return float(binom.sf(here - 2, here - 1 + next_to, 0.5))  # one of them is there because it is the highest


def tails(sample: Sample) -> Test:
    """Heavier than Gaussian: is the largest residual larger than it should be? (Studentised, over all rows.)"""
    from scipy.stats import t

    found = sample.left(sample.design)
    e, room, free = found.residual, found.room, found.freedom - 1
    usable = room > 1e-9
    if free < 5 or not usable.any():
        return Test("tails", None, "there are too few rows")
    total = squares(e)
    own = e[usable] ** 2 / room[usable]
    others = (total - own) / free
    if total == 0.0 or (others <= 0.0).any():
        return Test("tails", 1.0 if total == 0.0 else 0.0)
    largest = math.sqrt(float((own / others).max()))
    return Test("tails", min(1.0, 2.0 * len(own) * float(t.sf(largest, free))), size=float(np.abs(e).max()))


def drifting(sample: Sample) -> Test:
    """Do transitions cost the same in the first and the second half of the log? (Chow's test.)"""
    from scipy.stats import f

    design, n = sample.design, len(sample.y)
    together = sample.left(design)
    whole, left, free = together.squares, 0.0, 0
    first = np.arange(n) < n // 2
    if sample.episode_noise > 0.0 and sample.episode is not None:
        first = sample.episode <= sample.episode[n // 2]  # an episode with an offset is of one half
    for half in (first, ~first):
        if not half.any():
            return Test("drift", None, "there are too few rows")
        part = sample.left(design, half)
        left, free = left + part.squares, free + part.freedom
    gained = together.freedom - free
    if gained < 1 or free < 5:
        return Test("drift", None, "there are too few rows")
    if left == 0.0:
        return Test("drift", 1.0 if whole <= 1e-18 * squares(sample.y) else 0.0)
    return Test("drift", float(f.sf((whole - left) / gained / (left / free), gained, free)))
