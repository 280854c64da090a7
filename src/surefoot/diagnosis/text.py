"""A diagnosis as plain text: the verdict first, then tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from surefoot.model.naming import listed

if TYPE_CHECKING:
    from surefoot.diagnosis.calibration.result import Calibration
    from surefoot.diagnosis.diagnosis import Diagnosis, Finding, LayerReport, LimitReport, Regression

_WIDTH = 100
_MOST_LAYERS = 16  # lines of the layers' table
_MOST_INTERVALS = 12  # of one limit
_MOST_LIMITS = 4  # with a slack column each
_MOST_FEATURES = 16  # lines of the coefficients' table


def lay_out(found: Diagnosis) -> str:
    parts = [_head(found), verdict(found.findings), _limits(found), _coefficients(found), _layers(found)]
    return "\n\n".join(part for part in (*parts, _features(found), _paper(found)) if part)


def lay_out_calibration(found: Calibration) -> str:
    """A calibration as plain text: the verdict, the limits, the proposal."""
    rows = [["limit", "noise declared", "noise at most", "at least", "degrees of freedom", "from"]]
    for one in found.limits:
        source = "repeats" if one.by_repeats else "residuals"
        numbers = [digits(one.declared), "–" if one.noise is None else rounded_up(one.noise), digits(one.least_noise)]
        rows.append([one.name, *numbers, str(one.freedom), source])
    head = f"{found.rows} rows with a cost, {found.unmeasured} without" + (
        f", of {found.episodes} episodes" if found.episodes else ""
    )
    parts = [head, verdict(found.findings), columns(rows)]
    if found.limits and any(one.intervals for one in found.limits):
        told = [["limit", "steps", "feature", "least", "largest"]]
        for one in found.limits:
            for each in one.intervals[:_MOST_INTERVALS]:
                name = str(each.column) if found.features is None else found.features[each.column]
                told.append([one.name, layer_range(each.steps), name, digits(each.low), digits(each.high)])
            if len(one.intervals) > _MOST_INTERVALS:
                told.append([one.name, "…", "…", "…", "…"])
        parts.append(
            f"Cost weights, jointly at level {found.level:g} for Gaussian noise\n{columns(told)}{_left_open(found)}"
        )
    return "\n\n".join([*parts, f"Proposed, for you to decide\n{found.text}"])


def _left_open(found: Calibration) -> str:
    """The named weights that the log says nothing about, since what it plays never tells them from others."""
    names, told = found.features or (), ""
    for one, limit in zip(found.limits, found.proposal, strict=True):
        known = {each.column for each in one.intervals}
        own = [i for i, name in enumerate(names) if i not in known and name in (limit.features or names)]
        told += f"\nleft open by the log, of {one.name!r}: {listed(names, own)}" if own else ""
    return told


def _head(found: Diagnosis) -> str:
    totals = [sum(getattr(layer, name) for layer in found.layers) for name in ("states", "actions", "triplets")]
    return (
        f"Problem with {found.horizon} steps, {totals[0]} states, {totals[1]} actions, "
        f"{totals[2]} triplets; {len(found.limits)} limit{'s' if len(found.limits) > 1 else ''}"
    )


def verdict(findings: Sequence[Finding]) -> str:
    """Findings, one paragraph each, with their grades."""
    lines = [
        textwrap.fill(
            str(finding),
            _WIDTH,
            initial_indent=f"{finding.grade.upper():<9}",
            subsequent_indent=" " * 9,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for finding in findings
    ]
    return "\n".join(lines)


def _limits(found: Diagnosis) -> str:
    rows = [["limit", "bound", "norm", "noise", "starts with bound ≥", "starts with norm ≤"]]
    for limit in found.limits:
        rows.append(
            [
                limit.name,
                digits(limit.bound),
                "prior" if limit.prior else digits(limit.norm),
                digits(limit.noise),
                "–" if limit.smallest_bound is None else rounded_up(limit.smallest_bound),
                _norm(limit),
            ]
        )
    return f"Before any data, with everything else unchanged (–: this alone is not enough)\n{columns(rows)}"


def _coefficients(found: Diagnosis) -> str:
    """What is declared about each coefficient, by feature name; empty if every limit has only its norm."""
    told = [limit for limit in found.limits if limit.coefficients is not None]
    if not told or not (len(told) <= _MOST_LIMITS and found.features.cost_dim <= _MOST_FEATURES):
        return ""
    names = found.features.names or tuple(f"feature {i}" for i in range(found.features.cost_dim))
    rows = [["coefficient of", *(limit.name for limit in told)]]
    for i in range(found.features.cost_dim):
        cells = [_interval(*limit.coefficients[i]) for limit in told if limit.coefficients is not None]
        rows.append([names[i], *cells])
    return columns(rows)


def _interval(low: float, high: float) -> str:
    return digits(low) if low == high else f"{digits(low)} … {digits(high)}"


def _norm(limit: LimitReport) -> str:
    if limit.prior_factor is not None:
        return f"prior × {rounded_down(limit.prior_factor)}"
    return "–" if limit.largest_norm is None else rounded_down(limit.largest_norm)


def _layers(found: Diagnosis) -> str:
    each = len(found.limits) <= _MOST_LIMITS
    slack_names = [f"slack {limit.name}" for limit in found.limits] if each else ["least slack"]
    head = ["step", "states", "reached", "fallback's", "actions", "triplets", "moves", "never", *slack_names]
    rows = []
    for cells, group in groupby(found.layers, key=lambda layer: _cells(layer, each, len(slack_names))):
        rows.append([layer_range([layer.step for layer in group]), *cells])
    if len(rows) > _MOST_LAYERS:
        half = _MOST_LAYERS // 2
        rows = [*rows[:half], ["…"] * len(head), *rows[1 - half :]]
    legend = "moves: actions beyond the fallback's, certified before any data; never: states that no data can certify"
    return f"{columns([head, *rows])}\n{legend}"


def _cells(layer: LayerReport, each: bool, columns: int) -> list[str]:
    counts = [layer.states, layer.reachable, layer.fallback_states, layer.actions, layer.triplets]
    counts += [layer.moves, layer.never_states]
    slack = ["–"] * columns
    if layer.slack is not None:
        slack = [digits(value) for value in (layer.slack if each else [min(layer.slack)])]
    return [*map(str, counts), *slack]


def _features(found: Diagnosis) -> str:
    features = found.features
    rows = [["features", "length", "rank", "regressions"]]
    for name, dim, regressions in (
        ("costs", features.cost_dim, features.costs),
        ("transitions", features.transition_dim, features.transitions),
    ):
        pooled = "one for all steps" if len(regressions) == 1 else "one per step"
        rows.append([name, str(dim), _ranks(regressions), pooled])
    shared = "\ntransitions use the cost features" if features.shared else ""
    return columns(rows) + shared


def _ranks(regressions: Sequence[Regression]) -> str:
    lowest, highest = (pick(regression.rank for regression in regressions) for pick in (min, max))
    return str(lowest) if lowest == highest else f"{lowest}–{highest}"


def _paper(found: Diagnosis) -> str:
    paper = found.paper
    head = (
        f"The paper's constants at {paper.episodes} episodes, p = {found.failure_probability:g}: "
        f"{'usable' if paper.usable else 'not usable'}"
    )
    if paper.gaps is None or paper.future_gaps is None or paper.delta_phi is None:
        return head
    enough = paper.smallest_usable_episodes
    rows = [
        ["d", "ridge", "D", "β", "K′", "K′ ≤ K from", "κ", "largest Δφ", "least gap", "least gap⁺"],
        [
            str(paper.dimension),
            *(digits(value) for value in (paper.ridge, paper.feature_bound, paper.beta)),
            str(paper.initial_episodes),
            "over 10¹⁸" if enough is None else str(enough),
            *(digits(value) for value in (paper.kappa, max(paper.delta_phi))),
            *(digits(value) for value in (min(paper.gaps), min(paper.future_gaps))),
        ],
    ]
    return f"{head}\n{columns(rows)}"


# --- small pieces -------------------------------------------------------------------------------------------


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [
            first.ljust(widths[0]),
            *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True)),
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def layer_range(layers: Sequence[int]) -> str:
    """Steps in short: 0, 2–5."""
    ordered = sorted(layers)
    starts = [h for i, h in enumerate(ordered) if i == 0 or ordered[i - 1] != h - 1]
    ends = [h for i, h in enumerate(ordered) if i == len(ordered) - 1 or ordered[i + 1] != h + 1]
    return ", ".join(
        str(first) if first == last else f"{first}–{last}" for first, last in zip(starts, ends, strict=True)
    )


def digits(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def rounded_up(value: float) -> str:
    """Four digits, never less than the value: a bound that is copied from the text is large enough."""
    return f"{up(value, 4):.4g}"


def rounded_down(value: float) -> str:
    """Four digits, never more than the value; "any" for ∞."""
    return "any" if value == math.inf else f"{down(value, 4):.4g}"


def up(value: float, count: int) -> float:
    """The value to so many digits, rounded up."""
    return _rounded(value, count, math.ceil)


def down(value: float, count: int) -> float:
    """The value to so many digits, rounded down."""
    return _rounded(value, count, math.floor)


def _rounded(value: float, count: int, towards: Callable[[float], int]) -> float:
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - count)
    return float(f"{towards(round(value / unit, 9)) * unit:.{count}g}")  # the inner round() ignores rounding errors
