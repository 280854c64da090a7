"""The verdict: what the numbers of a diagnosis mean, and what to do. The gravest comes first."""

from __future__ import annotations

from collections.abc import Iterator

from surefoot.checks import promised
from surefoot.diagnosis.diagnosis import Diagnosis, Finding, LimitReport, Regression
from surefoot.diagnosis.text import digits, layer_range, rounded_down, rounded_up

_GRAVITY = ("problem", "warning", "ok", "note")


def judge(found: Diagnosis) -> tuple[Finding, ...]:
    findings = [
        *_fallback(found),
        *_cold_start(found),
        *_forced(found),
        *_unreachable(found),
        *_rank(found),
        *_paper(found),
    ]
    return tuple(sorted(findings, key=lambda finding: _GRAVITY.index(finding.level)))


def _fallback(found: Diagnosis) -> Iterator[Finding]:
    fault = found.fallback_fault
    if fault is not None:
        yield Finding(
            "problem",
            f"The declaration contradicts the fallback: {fault.where}: limit {fault.limit!r} is at least "
            f"{digits(fault.lowest)} there, whatever the truth, and its bound is {digits(fault.bound)} "
            f"({_count(fault.triplets, 'such place')}).",
            "Correct the anchor, the norm, the bound or the fallback, or remove the successor from the support.",
        )


def _cold_start(found: Diagnosis) -> Iterator[Finding]:
    start = found.cold_start
    if start.can_move:
        certified = "is" if start.moves == 1 else "are"
        yield Finding(
            "ok",
            f"Learning can start: {_count(start.moves, 'action')} beyond the fallback's "
            f"{certified} certified without data.",
        )
        return
    if start.closest is None:
        only = "every other one may lead into a forbidden state" if start.alternatives else "its action is the only one"
        yield Finding(
            "problem",
            f"Learning can never start: in every state the fallback can reach, {only}.",
            "Declare other actions there.",
        )
        return
    near = start.closest
    place = f"step {near.step}, state {near.state!r}, action {near.action!r}"
    later = f", by a step that may follow: {near.where}" if near.later else ""
    nearest = (
        f"Closest is {place}: over limit {near.limit!r} by {digits(near.excess)} "
        f"(upper bound {digits(near.upper)}, bound {digits(near.bound)}){later}."
    )
    if start.opens_with_fallback_data == "possible":
        level, verdict = "warning", "Learning cannot start before any data; the fallback's own data may be enough."
    else:
        sure = f"(probability {promised(found.failure_probability)})"
        level, verdict = "problem", f"Learning will never start: no fallback data can certify another action {sure}."
    yield Finding(level, f"{verdict} {nearest}", _remedy(found))


def _remedy(found: Diagnosis) -> str:
    single = [part for limit in found.limits for part in _single(limit)]
    if single:
        return f"It would start at once with {' or '.join(single)}."
    start, common = found.cold_start, []
    if start.all_norms_times is not None:
        common.append(f"all norms times {rounded_down(start.all_norms_times)}")
    if start.all_bounds_raised_by is not None:
        common.append(f"all bounds larger by {rounded_up(start.all_bounds_raised_by)}")
    return f"Changing one limit is not enough; it would start at once with {' or '.join(common)}."


def _single(limit: LimitReport) -> Iterator[str]:
    if limit.prior and limit.largest_norm is not None:
        yield f"{limit.name!r} prior {rounded_down(limit.largest_norm)} times as wide"
    elif limit.largest_norm is not None:
        yield f"{limit.name!r} norm ≤ {rounded_down(limit.largest_norm)} (now {digits(limit.norm)})"
    if limit.smallest_bound is not None:
        yield f"{limit.name!r} bound ≥ {rounded_up(limit.smallest_bound)} (now {digits(limit.bound)})"


def _forced(found: Diagnosis) -> Iterator[Finding]:
    if found.forced.states:
        examples = ", ".join(f"{state!r} at step {h}" for h, state in found.forced.examples[:3])
        more = ", …" if found.forced.states > 3 else ""
        yield Finding(
            "note",
            f"{_count(found.forced.states, 'state')} can never be certified, whatever the data: "
            f"every action may exceed a limit ({examples}{more}).",
        )


def _unreachable(found: Diagnosis) -> Iterator[Finding]:
    if found.unreachable_states:
        yield Finding(
            "note",
            f"{_count(found.unreachable_states, 'state')} cannot be reached and only cost time.",
            "problem.pruned() leaves them out.",
        )


def _rank(found: Diagnosis) -> Iterator[Finding]:
    for kind, dim, regressions in (
        ("cost", found.features.cost_dim, found.features.costs),
        ("transition", found.features.transition_dim, found.features.transitions),
    ):
        poor = [regression for regression in regressions if regression.rank < dim]
        if poor and not (kind == "transition" and found.features.shared):
            yield Finding("note", _deficit(kind, dim, poor))


def _deficit(kind: str, dim: int, poor: list[Regression]) -> str:
    worst = min(poor, key=lambda regression: regression.rank)
    columns = ", ".join(map(str, worst.redundant[:8])) + (", …" if len(worst.redundant) > 8 else "")
    layers = [h for regression in poor for h in regression.layers]
    place = f"step{'s' if len(layers) > 1 else ''} {layer_range(layers)}"
    return (
        f"The {kind} features of {place} have rank {worst.rank} of {dim}: columns such as {columns} "
        "follow from the others. This does not affect safety; fewer columns are faster."
    )


def _paper(found: Diagnosis) -> Iterator[Finding]:
    paper = found.paper
    if paper.usable:
        return
    first = paper.reasons[0].split(". ")[0].rstrip(".")  # the reason without its advice
    more = f" (and {len(paper.reasons) - 1} more)" if len(paper.reasons) > 1 else ""
    yield Finding(
        "note",
        f"The paper's constants are not usable at {paper.episodes} episodes: {first}{more}.",
        "The default learner does not need them.",
    )


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
