"""What a calibration means and what to do. Each finding is marked as a proof, with its level, or an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from surefoot.diagnosis.calibration.measurements import Measurements
from surefoot.diagnosis.calibration.result import Average, Calibration, LimitCalibration
from surefoot.diagnosis.diagnosis import Finding, ranked
from surefoot.diagnosis.text import digits, rounded_up
from surefoot.model.limit import Limit
from surefoot.model.naming import feature_name
from surefoot.model.priors import Prior
from surefoot.model.problem import Problem


def judge_log(problem: Problem, found: Calibration, data: Measurements) -> tuple[Finding, ...]:
    findings, by_fallback = [*_support(found)], _by_fallback(problem, data)
    for limit, one in zip(problem.limits, found.limits, strict=True):
        findings += _averages(one, limit, by_fallback)  # first: a wrong unit makes the rest of it meaningless
        findings += [*_noise(found, limit, one), *_accusations(limit, one), *_weights(problem, limit, one)]
        findings += _silent(one)
    return ranked(findings)


def _noise(found: Calibration, limit: Limit, one: LimitCalibration) -> Iterator[Finding]:
    if one.noise is None:
        yield Finding(
            "warning", f"The log has too few rows to say anything about the noise of {limit.name!r}.", "Log more."
        )
        return
    source = "repeated transitions" if one.by_repeats else "residuals, less the degrees of freedom of the features"
    beside = "Apart from the shared offset, the" if "episodes" in one.accused else "The"
    bound = (
        f"{beside} noise scale of {limit.name!r} is at most {rounded_up(one.noise)} (from {source}; a proof at level "
        f"{found.level:g} for Gaussian noise, an estimate for other noise)"
    )
    if "noise" in one.accused and "episodes" not in one.accused:
        yield Finding(
            "error",
            f"The noise of {limit.name!r} is larger than declared: at least {digits(one.least_noise)} instead of "
            f"{digits(limit.noise)}; {bound[0].lower()}{bound[1:]}.",
            f"Declare noise={rounded_up(one.noise)} or more.",
        )
    elif one.noise <= limit.noise:
        yield Finding("ok", f"{bound}; the declared one is {digits(limit.noise)}.")
    else:
        yield Finding(
            "note",
            f"{bound}; the declared one is {digits(limit.noise)}, which the log neither proves nor rules out.",
            f"noise={rounded_up(one.noise)} would be on the safe side.",
        )


def _accusations(limit: Limit, one: LimitCalibration) -> Iterator[Finding]:
    size = {test.name: test.size for test in one.tests}
    if "linearity" in one.accused:
        yield Finding(
            "error",
            f"The costs of {limit.name!r} are not linear in the features up to the declared misspecification "
            f"{digits(limit.misspecification)}: transitions are off by up to {digits(one.lack)} (estimate).",
            "Add a feature that bends (a square, a product, a step), or declare the misspecification.",
        )
    if "episodes" in one.accused:
        yield Finding(
            "error",
            f"The readings of {limit.name!r} share an offset within an episode, of scale {digits(size['episodes'])} "
            f"(estimate; at most about {digits(one.episode_noise)}), declared as {digits(limit.episode_noise)}: the "
            "noise is not independent from step to step.",
            "Remove its cause (one calibration per episode, a filter, a drift of the sensor), or declare the "
            "proposed episode_noise, which covers it.",
        )
    for end, word in (("high end", "highest"), ("low end", "lowest")):
        if end in one.accused:
            yield Finding(
                "error",
                f"The readings of {limit.name!r} pile up at the {word} value, {digits(size[end])}: the sensor is "
                "clipped, and its mean is not the cost.",
                "Give the sensor a range that exceeds the limit by several noise scales; leave such rows out only if "
                "you leave out all rows of these transitions.",
            )
    if "tails" in one.accused:
        yield Finding(
            "warning",
            f"The noise of {limit.name!r} has heavier tails than a Gaussian: one residual is as large as "
            f"{digits(size['tails'])}. The bound on its scale is therefore only an estimate.",
            "Look for faulty readings; if there are none, declare a noise scale that covers the largest residuals.",
        )
    if "drift" in one.accused:
        yield Finding(
            "error",
            f"The costs of {limit.name!r} changed during the log: its two halves do not agree.",
            "Use the part after the change, or declare the size of the change as misspecification.",
        )


def _weights(problem: Problem, limit: Limit, one: LimitCalibration) -> Iterator[Finding]:
    """A norm, a prior or an anchor that the intervals for γ rule out."""
    j = [each.name for each in problem.limits].index(limit.name)
    yield from _outside_prior(problem, limit, one, problem.priors[j])
    by_steps: dict[tuple[int, ...], list[float]] = {}
    for interval in one.intervals:
        nearest = 0.0 if interval.low <= 0.0 <= interval.high else min(abs(interval.low), abs(interval.high))
        by_steps.setdefault(interval.steps, []).append(nearest)
    least = max((math.hypot(*parts) for parts in by_steps.values()), default=0.0)
    if limit.norm is not None and least > limit.norm:
        yield Finding(
            "error",
            f"The norm of {limit.name!r} is too small: the log shows cost weights of length {digits(least)} or more, "
            f"but {digits(limit.norm)} is declared.",
            f"Declare norm={rounded_up(least)} or, better, a larger one.",
        )
    for anchors in {id(a): a for a in problem.graph.anchors if a is not None}.values():
        for steps in by_steps:
            own = {interval.column: interval for interval in one.intervals if interval.steps == steps}
            for x, costs, tolerance in zip(*anchors.parts, strict=True):
                needed = np.flatnonzero(x).tolist()
                if not set(needed) <= set(own):
                    continue
                ends = [sorted((x[i] * own[i].low, x[i] * own[i].high)) for i in needed]
                low, high = sum(end[0] for end in ends), sum(end[1] for end in ends)
                cost, error = float(costs[j]), limit.misspecification + float(tolerance[j])
                if not low - error <= cost <= high + error:
                    yield Finding(
                        "error",
                        f"The anchor of {limit.name!r} contradicts the log: its cost is declared as "
                        f"{digits(cost)} but lies between {digits(low)} and {digits(high)}.",
                        "Measure the anchor again, give it a tolerance, or leave it out.",
                    )
                    return


def _outside_prior(problem: Problem, limit: Limit, one: LimitCalibration, prior: Prior) -> Iterator[Finding]:
    """Coefficients whose interval and prior do not overlap; for a feature that the limit leaves out, the prior is 0."""
    wrong = []
    for each in one.intervals:
        middle, width = float(prior.centre[each.column]), float(prior.width[each.column])
        if not prior.boxed and width > 0.0:
            continue  # a norm says nothing of single coefficients
        if each.low > middle + width or each.high < middle - width:
            wrong.append(
                f"{feature_name(problem.features, each.column)} is declared as {digits(middle - width)} … "
                f"{digits(middle + width)} but lies between {digits(each.low)} and {digits(each.high)}"
            )
    if wrong:
        told = "; ".join(dict.fromkeys(wrong[:3])) + ("; …" if len(wrong) > 3 else "")
        yield Finding(
            "error",
            f"The prior of {limit.name!r} contradicts the log: {told}.",
            "Widen the prior to contain both, or check the units.",
        )


def _by_fallback(problem: Problem, data: Measurements) -> bool:
    """True if every logged action is the fallback's."""
    played = [layer.played_by_fallback() for layer in problem.graph.layers]
    return all(played[h][pair] for h, pair, _ in data.transitions if h < len(played))


def _averages(one: LimitCalibration, limit: Limit, by_fallback: bool) -> Iterator[Finding]:
    """Mean costs that the declared weights do not allow, or that are above the bound: most often a wrong unit."""
    declared = "prior" if limit.norm is None else "norm" if limit.prior is None else "prior and norm"
    for each in [each for each in one.averages if each.low > each.largest or each.high < each.least][:1]:
        yield Finding(
            "error",
            f"The costs of {limit.name!r} average {_average(each)} in the log, but the declared {declared} would allow "
            f"{digits(each.least)} … {digits(each.largest)} for the same rows.",
            "Check the unit of the readings, the order of the features, and the declared numbers.",
        )
    for each in [each for each in one.averages if each.low > each.bound][:1]:
        who, fix = ("what was logged", "") if not by_fallback else ("the fallback", ", or declare a safer fallback")
        yield Finding(
            "error" if by_fallback else "warning",
            f"The costs of {limit.name!r} average {_average(each)} in the log, and the bound is {digits(each.bound)}: "
            f"{who} broke the limit.",
            f"Check the units of the readings and of the bound{fix}.",
        )


def _average(found: Average) -> str:
    return f"{digits(found.low)} … {digits(found.high)}"


def _silent(one: LimitCalibration) -> Iterator[Finding]:
    missing = [f"{test.name} ({test.why})" for test in one.tests if test.p is None]
    if missing:
        yield Finding("note", f"Not tested for {one.name!r}: {', '.join(missing)}.")


def _support(found: Calibration) -> Iterator[Finding]:
    support = found.support
    if support.outside:
        more = "; …" if support.outside > len(support.examples) else ""
        yield Finding(
            "error",
            f"{support.outside} of {support.transitions} transitions leave the declared support (a proof that it is "
            f"too small): {'; '.join(support.examples)}{more}.",
            "Declare these successors, too; for a plant, declare a larger disturbance.",
        )
    elif support.outside_chance is not None:
        yield Finding(
            "ok",
            f"All {support.transitions} logged transitions are within the declared support; an undeclared successor "
            f"has a chance of at most {support.outside_chance:.2g} per transition as logged (a proof at level "
            f"{found.level:g} if transitions are independent).",
        )
    if support.may_touch and support.at_edge:
        share = support.at_edge / support.may_touch
        yield Finding(
            "note",
            f"{support.at_edge} of {support.may_touch} transitions with three or more declared successors end at the "
            f"edge of the support ({share:.0%}).",
            "If few of the declared successors are at the edge but many transitions end there, ask what lies beyond.",
        )
    if support.never_seen:
        yield Finding(
            "note",
            f"{support.never_seen} declared successors of the {support.pairs} logged state-action pairs were never "
            "seen. A support that is too large is safe, but learning is slower.",
        )
