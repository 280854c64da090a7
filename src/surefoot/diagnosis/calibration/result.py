"""The parts of a calibration: frozen dataclasses of plain Python values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from surefoot.diagnosis.calibration.questions import Test
from surefoot.diagnosis.diagnosis import Finding, as_json
from surefoot.diagnosis.text import lay_out_calibration
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.limit import Feature, Limit
from surefoot.model.limit import Interval as Ends
from surefoot.model.naming import FeatureNames


@dataclass(frozen=True)
class Coefficient:
    """An interval for a coefficient of γ: a proof at the calibration's level for Gaussian noise and linear costs."""

    steps: tuple[int, ...]  # of the regression
    column: int
    low: float
    high: float


@dataclass(frozen=True)
class Average:
    """The mean true cost of the rows of a regression: what the log says of it, and what the declaration allows."""

    steps: tuple[int, ...]  # of the regression
    low: float  # a proof at the calibration's level for Gaussian noise
    high: float
    least: float  # by the prior and the norm
    largest: float
    bound: float  # the largest of these steps


@dataclass(frozen=True)
class LimitCalibration:
    """What the log says about one limit."""

    name: str
    declared: float  # noise
    noise: float | None  # upper confidence bound of the noise scale; None: the log is too short
    least_noise: float | None  # lower one
    freedom: int  # degrees of freedom behind both
    by_repeats: bool  # from repeated transitions, without using features; else from residuals of the linear fit
    tests: tuple[Test, ...]
    accused: tuple[str, ...]  # the names of the tests that failed
    episode_noise: float | None  # estimate, upper bound: an offset shared by an episode's rows; None: none was found
    lack: float | None  # estimate: how far costs are from linear; None: no sign of it
    intervals: tuple[Coefficient, ...]  # of coefficients that the log determines
    averages: tuple[Average, ...] = ()


@dataclass(frozen=True)
class SupportCalibration:
    """The declared successors compared with those in the log."""

    transitions: int
    outside: int  # rows whose successor is not declared
    examples: tuple[str, ...]
    pairs: int  # state-action pairs that were logged
    never_seen: int  # declared successors of these that no row shows
    at_edge: int  # transitions to the first or last declared successor, of pairs with three or more
    may_touch: int  # transitions of such pairs
    outside_chance: float | None  # upper bound of the chance, per transition as logged, that a successor is undeclared


Declared = float | tuple[Ends, ...] | dict[Feature, Ends] | None
"""The value of a limit's field: a number, or a prior."""


@dataclass(frozen=True)
class Change:
    """One field of a declaration that the log says something about."""

    limit: str
    field: str
    declared: Declared
    proposed: Declared
    wider: bool  # safer than what was declared; False: it loosens the declaration, which is for you to decide
    why: str

    @property
    def note(self) -> str:
        """What changed, for the margin."""
        was = f"{self.field} was {self.declared:g}" if isinstance(self.declared, float) else f"{self.field} {self.why}"
        return f"{was}, {'wider' if self.wider else 'NARROWER: loosens the declaration'}"


@dataclass(frozen=True, eq=False)
class Residuals:
    """For the picture: one limit's readings and their fit."""

    limit: str
    noise: float  # as declared
    fitted: FloatArray  # (n,)
    residual: FloatArray  # (n,)
    episode: IntArray  # (n,)


@dataclass(frozen=True, repr=False, eq=False)
class Calibration:
    """The result of :func:`surefoot.calibrate`. ``print`` it, or use its fields.

    ``proposal`` has the limits that the log supports, ``changes`` says what differs and in which direction, and
    ``text`` is the proposal as Python code. Nothing is changed automatically.
    """

    level: float
    rows: int  # with a cost
    unmeasured: int
    episodes: int
    limits: tuple[LimitCalibration, ...]
    support: SupportCalibration
    findings: tuple[Finding, ...]
    proposal: tuple[Limit, ...]
    changes: tuple[Change, ...]
    residuals: tuple[Residuals, ...] = field(default=())
    disturbance: dict[str, float] | None = None  # of a plant: how far next states were off its models, at most
    features: FeatureNames = None  # names of the cost features

    @property
    def errors(self) -> list[str]:
        """What contradicts the declaration."""
        return [str(finding) for finding in self.findings if finding.grade == "error"]

    @property
    def text(self) -> str:
        """The proposed limits as Python, each changed number with a comment."""
        lines = ["limits=["]
        for limit in self.proposal:
            parts = [f"{name}={value!r}" for name, value in _fields(limit, self.features).items()]
            notes = [change.note for change in self.changes if change.limit == limit.name]
            comment = f"  # {'; '.join(notes)}" if notes else ""
            lines.append(f"    sf.Limit({limit.name!r}, {', '.join(parts)}),{comment}")
        return "\n".join([*lines, "]"])

    def to_dict(self) -> dict[str, Any]:
        """All fields except the residuals, as JSON-able values."""
        found = {name: getattr(self, name) for name in ("level", "rows", "unmeasured", "episodes", "limits", "support")}
        found |= {name: getattr(self, name) for name in ("findings", "changes", "disturbance")}
        found["proposal"] = [{"name": limit.name, **_fields(limit, self.features)} for limit in self.proposal]
        result: dict[str, Any] = as_json(found)
        return result

    def __str__(self) -> str:
        return lay_out_calibration(self)

    def __repr__(self) -> str:
        return f"<Calibration: {self.rows} rows, {len(self.errors)} errors; print it to read it>"


def _fields(limit: Limit, features: FeatureNames) -> dict[str, Any]:
    """What was declared about a limit, without defaults; a prior goes by the names of the features."""
    found = {name: value for name, value in asdict(limit).items() if name != "name"}
    if features is not None and isinstance(limit.prior, tuple):
        found["prior"] = dict(zip(limit.features or features, limit.prior, strict=True))
    return {name: value for name, value in found.items() if value not in (None, ()) and (name, value) not in _DEFAULTS}


_DEFAULTS = (("misspecification", 0.0), ("episode_noise", 0.0))
