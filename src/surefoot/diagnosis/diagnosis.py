"""The parts of a diagnosis: frozen dataclasses of plain Python values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from surefoot.diagnosis.text import lay_out
from surefoot.model.labels import Label


@dataclass(frozen=True)
class Sense:
    """The costs of one limit that the declaration allows before any data, in reachable states."""

    least_cost: float
    largest_cost: float
    vacuous: bool  # every possible cost keeps the bound
    only_fallback: bool  # whatever the truth, the bound rules out every action but the fallback's where that goes
    episodes_to_tell: float | None  # estimate: until costs that differ by the room below the bound can be told apart


@dataclass(frozen=True)
class LimitReport:
    """A limit as declared, and how to change it so that the learner could leave the fallback.

    With everything else unchanged, the first plan moves if and only if bound ≥ smallest_bound; or if norm ≤
    largest_norm; or, with a prior, if its half-widths are multiplied by at most ``prior_factor``.
    """

    name: str
    bound: float  # of a bound per step, the largest
    noise: float
    episode_noise: float
    norm: float  # of a prior: √Σ max(lo², hi²)
    prior: bool
    coefficients: tuple[tuple[float, float], ...] | None  # by feature, lowest and highest; None with a norm alone
    misspecification: float
    smallest_bound: float | None  # never below the anchors' costs; None: no bound alone is enough
    largest_norm: float | None  # ∞: any; None: no norm that anchors allow is enough, or there is a prior
    prior_factor: float | None  # the same for the half-widths of a prior; None without one
    least_norm: float  # that the anchors' costs allow, (|c⁰| − ζ)/‖x⁰‖; 0 without anchors or with a prior
    sense: Sense


@dataclass(frozen=True)
class LayerReport:
    """One step in numbers. The last one has states only."""

    step: int
    states: int
    reachable: int
    fallback_states: int  # that the fallback can reach
    actions: int  # pairs of a state and one of its actions
    triplets: int
    moves: int  # actions other than the fallback's that the first plan certifies and can reach
    never_states: int  # reachable, and never certified whatever the data
    never_actions: int
    slack: tuple[float, ...] | None  # per limit, bound − the anchor's cost; None without an anchor


@dataclass(frozen=True)
class Regression:
    """The features of one regression: of one step, or of all steps when stationary."""

    layers: tuple[int, ...]
    rank: int
    redundant: tuple[int, ...]  # columns that are combinations of the others, dim − rank of them


@dataclass(frozen=True)
class Features:
    cost_dim: int
    transition_dim: int
    shared: bool  # transitions use the cost features themselves
    names: tuple[str, ...] | None  # of the cost features
    costs: tuple[Regression, ...]
    transitions: tuple[Regression, ...]
    column_scales: tuple[float, ...]  # the largest entry of each cost feature


@dataclass(frozen=True)
class Blocked:
    """The action, other than the fallback's, that comes closest to being certified before any data."""

    step: int
    state: Label
    action: Label
    limit: str  # that blocks it
    excess: float  # upper − bound of that limit; with all bounds larger by this, the action would be certified
    upper: float
    bound: float
    later: bool  # a later step fails the test, not this one (condition 2)
    where: str  # the triplet or last state that fails it


@dataclass(frozen=True)
class ColdStart:
    """What the first plan certifies before any data, and what it would take to move.

    ``can_move`` is True if an action other than the fallback's is certified before any data. ``can_move_later`` is also
    True if the fallback's own data may change that; False means that they never will, with probability at least 1 − p.
    """

    can_move: bool
    can_move_later: bool
    moves: int  # actions other than the fallback's that are certified and reached by certified ones
    alternatives: int  # actions other than the fallback's in states that the fallback reaches
    closest: Blocked | None = None  # None if it moves, or if no alternative can ever be certified
    all_bounds_raised_by: float | None = None  # the least common raise that lets it move; None as above
    all_norms_times: float | None = None  # the largest common factor that does; None as above, or if none does
    episodes_of_fallback: int | None = None  # about how many let it move later; None: unknown, or above a million


@dataclass(frozen=True)
class Forced:
    """States that no data can certify: every action may lead to a cost that is over a limit whatever the truth."""

    states: int  # reachable ones
    actions: int  # in reachable states
    examples: tuple[tuple[int, Label], ...]  # (step, state), the first few


@dataclass(frozen=True)
class FallbackFault:
    """A contradiction: a triplet of the fallback that exceeds a limit whatever the truth."""

    triplets: int  # how many, last states included
    where: str
    limit: str
    lowest: float  # the least cost that anchor and norm allow there
    bound: float
    too_wide: bool  # other successors declared there keep every limit


@dataclass(frozen=True)
class NoFallback:
    """A contradiction: no γ that the declaration allows lets the fallback keep a limit in all its transitions."""

    layers: tuple[int, ...]
    limit: str
    bound: float
    norm: float
    prior: bool
    least_norm: float  # of a γ that would, in its prior; ∞ without one


@dataclass(frozen=True)
class NoProbabilities:
    """A contradiction: no μ of the declared length turns the transition features into probabilities."""

    layers: tuple[int, ...]
    least_norm: float  # of a μ that would; ∞ without one
    transition_norm: float
    where: tuple[str, ...]  # pairs that are at odds
    looked_at: int  # pairs
    pairs: int
    shared: bool  # they are the cost features


@dataclass(frozen=True)
class PaperReport:
    """The constants of the paper's theorem (spec 6); None if they are not defined."""

    episodes: int
    usable: bool
    reasons: tuple[str, ...]  # why not
    smallest_usable_episodes: int | None  # the least K with K′ ≤ K; None if above 10¹⁸
    dimension: int | None = None
    ridge: float | None = None
    feature_bound: float | None = None
    beta: float | None = None
    initial_episodes: int | None = None  # K′, not capped
    kappa: float | None = None
    delta_phi: tuple[float, ...] | None = None  # per limit
    gaps: tuple[float, ...] | None = None  # per decision step, the smallest over limits
    future_gaps: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """One line of the verdict.

    Grades: ``error``, the declaration cannot be right, or nothing can ever be learned; ``warning``, look at it before a
    run; ``note``, good to know; ``ok``.
    """

    grade: str
    text: str
    fix: str = ""  # what to do about it

    def __str__(self) -> str:
        return f"{self.text} {self.fix}".rstrip()


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most serious first."""
    return tuple(sorted(findings, key=lambda finding: ("error", "warning", "ok", "note").index(finding.grade)))


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The result of :func:`surefoot.check`. ``print`` it, or use its fields."""

    failure_probability: float
    horizon: int
    limits: tuple[LimitReport, ...]
    layers: tuple[LayerReport, ...]  # H
    features: Features
    cold_start: ColdStart
    forced: Forced
    fallback_fault: FallbackFault | None
    no_fallback: NoFallback | None
    no_probabilities: NoProbabilities | None
    unreachable_states: int
    paper: PaperReport
    findings: tuple[Finding, ...]
    expanded: tuple[int, int, int] | None = None  # if the graph grows: actions expanded before any data, all; states

    @property
    def errors(self) -> list[str]:
        """What must be changed: the declaration cannot be right, or nothing can ever be learned with it."""
        return self._at("error")

    @property
    def warnings(self) -> list[str]:
        """What deserves a look before a run."""
        return self._at("warning")

    @property
    def notes(self) -> list[str]:
        """What is good to know."""
        return self._at("note")

    def _at(self, grade: str) -> list[str]:
        return [str(finding) for finding in self.findings if finding.grade == grade]

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-able values: tuples as lists, "any" for infinity."""
        result: dict[str, Any] = as_json(self)
        return result

    def __str__(self) -> str:
        return lay_out(self)

    def __repr__(self) -> str:
        counts = f"{len(self.errors)} errors, {len(self.warnings)} warnings"
        return f"<Diagnosis: {counts}, can_move={self.cold_start.can_move}; print it to read it>"


def as_json(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON-able values; "any" for infinity."""
    if is_dataclass(value):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(item) for item in value]
    return "any" if value == math.inf else value
