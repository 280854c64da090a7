"""The verdict: what the numbers of a diagnosis mean and what to do, the most serious finding first."""

from __future__ import annotations

from collections.abc import Iterator

from surefoot.checks import promised
from surefoot.diagnosis.diagnosis import (
    Diagnosis,
    Finding,
    LimitReport,
    NoFallback,
    NoProbabilities,
    Regression,
    ranked,
)
from surefoot.diagnosis.possible import is_none
from surefoot.diagnosis.text import digits, layer_range, rounded_down, rounded_up
from surefoot.model.naming import listed

FAR_OFF = 3.0  #: times the largest possible cost: a larger bound must be in another unit
MAGNITUDES = 1e3  #: between the scales of two features: a larger ratio deserves a warning


def judge(found: Diagnosis) -> tuple[Finding, ...]:
    findings = [
        *_fallback(found),
        *_limits(found),
        *_probabilities(found),
        *_cold_start(found),
        *_noise(found),
        *_units(found),
        *_forced(found),
        *_unreachable(found),
        *_rank(found),
        *_growth(found),
        *_paper(found),
    ]
    return ranked(findings)


# --- the declaration contradicts itself ---------------------------------------------------------------------


def _fallback(found: Diagnosis) -> Iterator[Finding]:
    fault, none = found.fallback_fault, found.no_fallback
    if fault is not None:
        wide = " Other possible successors keep it: the support may be too wide." if fault.too_wide else ""
        yield Finding(
            "error",
            f"The declaration contradicts the fallback: {fault.where}: limit {fault.limit!r} is at least "
            f"{digits(fault.lowest)} there, whatever the truth, but its bound is {digits(fault.bound)} "
            f"({_count(fault.triplets, 'such place')}).{wide}",
            "Correct the anchor, the norm or prior, the bound or the fallback, or remove the successor from the "
            "support.",
        )
    elif none is not None:
        needed = "no weights do" if is_none(none.least_norm) else f"weights of length {digits(none.least_norm)} would"
        yield Finding(
            "error",
            f"The declaration contradicts the fallback: no cost weights that {_size(none)} and the anchors allow let "
            f"it keep limit {none.limit!r} (bound {digits(none.bound)}) in every transition it may meet "
            f"{_at_steps(none.layers)}; {needed}.",
            f"Remove successors that cannot happen from the support, or correct bound, {_word(none)}, anchor or "
            "fallback.",
        )


def _growth(found: Diagnosis) -> Iterator[Finding]:
    if found.expanded is not None:
        done, actions, states = found.expanded
        yield Finding(
            "note",
            f"The graph grows: before any data {done} of {actions} actions are expanded, with {states} states; "
            "the others wait until their own costs keep the limits, and this check takes what follows them for safe.",
        )


def _size(limit: LimitReport | NoFallback) -> str:
    """What bounds the cost weights, in words."""
    return "its prior" if limit.prior else f"norm {digits(limit.norm)}"


def _word(limit: LimitReport | NoFallback) -> str:
    return "prior" if limit.prior else "norm"


def _probabilities(found: Diagnosis) -> Iterator[Finding]:
    none = found.no_probabilities
    if none is None:
        return
    where = f" (conflicting: {'; '.join(none.where)})" if none.where else ""
    if is_none(none.least_norm):
        text = f"No weights turn the transition features {_at_steps(none.layers)} into probabilities{where}."
        yield Finding("error", text, _probabilities_cure(none))
        return
    yield Finding(  # values may be wrong then, but safety does not depend on them
        "warning",
        f"No weights of length {digits(none.transition_norm)} (transition_norm) or less turn the transition features "
        f"{_at_steps(none.layers)} into probabilities{where}.",
        f"Declare transition_norm={rounded_up(none.least_norm)} or more, or features that give probabilities.",
    )


def _probabilities_cure(none: NoProbabilities) -> str:
    example = "e.g. the probabilities of some known models of the plant, one column each"
    if none.shared:
        return f"None were given, so the cost features are used: give transition_features, {example}."
    return f"Their sums over the successors must be the same for every pair: give {example}."


# --- limits that say nothing, or forbid all -----------------------------------------------------------------


def _limits(found: Diagnosis) -> Iterator[Finding]:
    everything = all(limit.sense.vacuous for limit in found.limits)
    for limit in found.limits:
        sense = limit.sense
        largest = max(abs(sense.least_cost), abs(sense.largest_cost))
        if sense.vacuous:
            yield Finding(
                "error" if everything or limit.bound > FAR_OFF * largest else "warning",
                f"Nothing can break limit {limit.name!r}: no cost that {_size(limit)} and the anchors allow "
                f"exceeds {digits(sense.largest_cost)}, but its bound is {digits(limit.bound)}.",
                f"Give the bound in the unit of the measured cost (0.7, not 70 per cent), and {_right(limit)}; if "
                f"this is intended, leave the limit out.{_swapped(limit)}",
            )
        if sense.only_fallback:
            yield Finding(
                "error",
                f"Only the fallback can ever keep limit {limit.name!r}: in every state the fallback can reach, every "
                f"other action exceeds its bound {digits(limit.bound)}, whatever the truth.",
                "Give the bound in the unit of the measured cost, correct the anchor or the features, or declare "
                "milder actions.",
            )
        for word, noise in (("noise", limit.noise), ("episode_noise", limit.episode_noise)):
            if noise > largest:
                yield Finding(
                    "error",
                    f"The {word} of limit {limit.name!r}, {digits(noise)}, is larger than any cost that "
                    f"{_size(limit)} and the anchors allow ({digits(largest)}).",
                    f"Give {_NOISES[word]} as {word}, and {_right(limit)}.{_swapped(limit)}",
                )


_NOISES = {
    "noise": "the standard deviation of one reading",
    "episode_noise": "the standard deviation of the offset that the readings of an episode share",
}


def _right(limit: LimitReport) -> str:
    """What norm or prior must be, as advice."""
    if limit.prior:
        return "the prior's intervals in this unit for each unit of their features"
    return "the length of the cost weights, not the noise, as norm"


def _swapped(limit: LimitReport) -> str:
    return " Are noise and norm swapped?" if not limit.prior and limit.noise > limit.norm else ""


# --- can it learn -------------------------------------------------------------------------------------------


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
            "error",
            f"Learning can never start: in every state the fallback can reach, {only}.",
            "Declare other actions there.",
        )
        return
    near = start.closest
    if near.excess <= 0.0:  # it would be certified if the bounds did not contradict each other
        yield Finding(
            "error",
            "The declaration contradicts itself: no cost weights agree with both the norm or prior and the anchors, so "
            "nothing is ever certified.",
            "Widen the prior or raise the norm, correct the anchors, or give them a tolerance.",
        )
        return
    place = f"step {near.step}, state {near.state!r}, action {near.action!r}"
    later = f", because of a later step: {near.where}" if near.later else ""
    nearest = (
        f"Closest is {place}: over limit {near.limit!r} by {digits(near.excess)} "
        f"(upper bound {digits(near.upper)}, bound {digits(near.bound)}){later}."
    )
    if start.can_move_later:
        grade, verdict = "warning", f"Learning cannot start before any data; {_with_data(found)}."
    else:
        sure = f"(probability {promised(found.failure_probability)})"
        grade, verdict = "error", f"Learning will never start: no fallback data can certify another action {sure}."
    other = "" if start.can_move_later else " Importing a log of other actions into a study may also help."
    yield Finding(grade, f"{verdict} {nearest}", f"{_remedy(found)}{other}")


def _with_data(found: Diagnosis) -> str:
    n = found.cold_start.episodes_of_fallback
    if n is None:
        return "the fallback's own data may be enough, but how many episodes it takes cannot be estimated"
    about = f"about {_count(n, 'episode')} of the fallback's own data"
    few = f"{about} may be enough (an estimate; more if its costs are high)"
    return few if n <= found.paper.episodes else f"{few}, more than the {found.paper.episodes} planned"


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
    if limit.prior_factor is not None:
        yield f"{limit.name!r} prior {rounded_down(limit.prior_factor)} times as wide"
    if limit.largest_norm is not None:
        yield f"{limit.name!r} norm ≤ {rounded_down(limit.largest_norm)} (now {digits(limit.norm)})"
    if limit.smallest_bound is not None:
        yield f"{limit.name!r} bound ≥ {rounded_up(limit.smallest_bound)} (now {digits(limit.bound)})"


def _noise(found: Diagnosis) -> Iterator[Finding]:
    planned = found.paper.episodes
    for limit in found.limits:
        needed = limit.sense.episodes_to_tell
        if needed is None or needed > planned:
            many = "more than can be counted" if needed is None else f"about {needed:.0f}"
            yield Finding(
                "warning",
                f"The noise of limit {limit.name!r}, {digits(limit.noise)}, is large compared with the room below its "
                f"bound: it takes {many} episodes to tell apart costs that differ by it (an estimate), and {planned} "
                "are planned.",
                "Average several readings into one, use a better sensor, declare stationary_costs if that is true, "
                "or plan more episodes.",
            )


def _units(found: Diagnosis) -> Iterator[Finding]:
    scales = {i: scale for i, scale in enumerate(found.features.column_scales) if scale > 0.0}
    if len(scales) < 2:
        return
    large, small = max(scales, key=lambda i: scales[i]), min(scales, key=lambda i: scales[i])
    if scales[large] >= MAGNITUDES * scales[small]:
        yield Finding(
            "warning",
            f"The cost features differ by orders of magnitude: column {large} goes up to {digits(scales[large])}, "
            f"column {small} up to {digits(scales[small])}; one norm for both says little about either.",
            "Choose units in which each feature goes up to about 1, and give the norm in these units.",
        )


# --- good to know -------------------------------------------------------------------------------------------


def _forced(found: Diagnosis) -> Iterator[Finding]:
    if found.forced.states:
        examples = ", ".join(f"state {state!r} at step {h}" for h, state in found.forced.examples[:3])
        more = ", …" if found.forced.states > 3 else ""
        yield Finding(
            "note",
            f"{_count(found.forced.states, 'state')} can never be certified, whatever the data: they are "
            f"forbidden, or every action there may exceed a limit or lead to such a state ({examples}{more}).",
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
            yield Finding("note", _deficit(kind, dim, poor, found.features.names if kind == "cost" else None))


def _deficit(kind: str, dim: int, poor: list[Regression], names: tuple[str, ...] | None) -> str:
    worst = min(poor, key=lambda regression: regression.rank)
    layers = [h for regression in poor for h in regression.layers]
    return (
        f"The {kind} features {_at_steps(layers)} have rank {worst.rank} of {dim}: for example "
        f"{listed(names, worst.redundant)} follow{'s' if len(worst.redundant) == 1 else ''} from the others. "
        "Safety is not affected; fewer columns would be faster."
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


def _at_steps(layers: list[int] | tuple[int, ...]) -> str:
    return f"of step{'s' if len(layers) > 1 else ''} {layer_range(layers)}"


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
