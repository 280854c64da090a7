"""Proposes a declaration that the log supports; whatever would loosen the present one is marked."""

from __future__ import annotations

import math
from dataclasses import replace

from surefoot.diagnosis.calibration.result import Change, Coefficient, LimitCalibration
from surefoot.diagnosis.text import down, up
from surefoot.model.limit import Feature, Limit
from surefoot.model.limit import Interval as Ends
from surefoot.model.problem import Problem

DIGITS = 3  #: of proposed numbers
_SLOPPY = 1e-9  # of a width: a smaller difference is no change


def changes_of(problem: Problem, j: int, found: LimitCalibration, level: float) -> list[Change]:
    """What differs from the declaration of limit j."""
    limit, changes = problem.limits[j], list[Change]()
    if found.episode_noise is not None:
        why = "an offset shared by an episode, estimate"
        changes.append(_change(limit, "episode_noise", found.episode_noise, why))
    if found.noise is not None:
        why = f"upper bound from {found.freedom} degrees of freedom"
        changes.append(_change(limit, "noise", found.noise, why))
    if found.lack is not None:
        changes.append(_change(limit, "misspecification", limit.misspecification + found.lack, "costs are not linear"))
    prior = _prior(problem, j, found, level)
    changes += [] if prior is None else [prior]
    # A fault may make the scatter of a log small, so only a log without faults supports a narrower number.
    return [c for c in changes if c.proposed != c.declared and (c.wider or not found.accused)]


def proposed(limit: Limit, changes: tuple[Change, ...]) -> Limit:
    """The limit with all that the log supports."""
    own = {change.field: change.proposed for change in changes if change.limit == limit.name}
    return replace(limit, **own)  # type: ignore[arg-type]


def _change(limit: Limit, name: str, value: float, why: str) -> Change:
    declared, rounded = float(getattr(limit, name)), up(value, DIGITS)
    return Change(limit.name, name, declared, rounded, rounded > declared, why)


# --- priors -------------------------------------------------------------------------------------------------


def _prior(problem: Problem, j: int, found: LimitCalibration, level: float) -> Change | None:
    """The log's intervals as a prior, narrowed to the declared one if there is one; None if they say nothing new.

    If an interval and the declared prior do not overlap, the proposed one contains both. If only a norm was declared,
    a prior is proposed if the log determines every coefficient.
    """
    limit, known = problem.limits[j], problem.priors[j]
    shown = {i: _hull(problem, found.intervals, i) for i in range(problem.graph.cost_dim)}
    own = [i for i in range(problem.graph.cost_dim) if _depends(problem, limit, i)]
    if limit.prior is None:
        ends = [shown[i] for i in own]
        if any(each is None for each in ends) or _shortest(shown, own) > known.norm:
            return None  # a norm that is too small is reported elsewhere
        made, wider = [each for each in ends if each is not None], False
    else:
        assert isinstance(limit.prior, tuple)
        made = [_both(declared, shown[i]) for i, declared in zip(own, limit.prior, strict=True)]
        wider = any(new[0] < old[0] or new[1] > old[1] for new, old in zip(made, limit.prior, strict=True))
        if wider:  # then nothing gets narrower
            made = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(made, limit.prior, strict=True)]
        elif not any(b - a < (d - c) * (1.0 - _SLOPPY) for (a, b), (c, d) in zip(made, limit.prior, strict=True)):
            return None
    why = "widened to hold the log's intervals" if wider else "from the log"
    why += f", level {level:g} for Gaussian noise"
    names = problem.features
    prior: tuple[Ends, ...] | dict[Feature, Ends] = tuple(made)
    if names is not None:
        prior = {names[i]: ends for i, ends in zip(own, made, strict=True)}
    return Change(limit.name, "prior", limit.prior, prior, wider, why)


def _depends(problem: Problem, limit: Limit, i: int) -> bool:
    return limit.features is None or (i if problem.features is None else problem.features[i]) in limit.features


def _hull(problem: Problem, intervals: tuple[Coefficient, ...], i: int) -> Ends | None:
    """Where coefficient i lies at every step that has a cost; None where some step does not show it."""
    own = [each for each in intervals if each.column == i]
    graph = problem.graph
    costed = len(graph.layers) + (graph.terminal.cost_features is not None)
    if not own or (not problem.stationary_costs and len({h for each in own for h in each.steps}) < costed):
        return None
    return down(min(each.low for each in own), DIGITS), up(max(each.high for each in own), DIGITS)


def _both(declared: Ends, shown: Ends | None) -> Ends:
    """What both allow; if they do not overlap, the smallest interval that contains both."""
    if shown is None:
        return declared
    low, high = max(declared[0], shown[0]), min(declared[1], shown[1])
    return (low, high) if low <= high else (min(declared[0], shown[0]), max(declared[1], shown[1]))


def _shortest(shown: dict[int, Ends | None], own: list[int]) -> float:
    """The least ‖γ‖ of these intervals."""
    return math.hypot(*(max(ends[0], -ends[1], 0.0) for i in own if (ends := shown[i]) is not None))
