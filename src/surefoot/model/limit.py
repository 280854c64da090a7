"""A hard limit on one measured cost. Safe means cost ≤ bound (eq:defhardconstraint)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from surefoot.errors import InvalidInput
from surefoot.model.labels import shown
from surefoot.model.reals import constant, reals

Interval = tuple[float, float]
Entry = float | tuple[float, float] | list[float]
"""What is known of one coefficient: its value, or (lowest, highest)."""

Feature = str | int
"""A feature of the costs: its name, or its column."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Limit:
    """A bound on a cost, and what is known about the cost and its measurements.

    ``cost = ⟨γ, x⟩ + η`` with ``|η| ≤ misspecification``. Measurements have zero-mean noise that is sub-Gaussian with
    scale ``noise`` and, with ``episode_noise``, an offset of that scale shared by all measurements of an episode.
    At least one of these must be known about γ (spec 2 and 3):

    - ``norm``: ‖γ‖ ≤ norm;
    - ``prior``: for every feature, an interval that contains its coefficient, or the value itself; a list in the order
      of the features, or a dict by feature. Features missing from a dict are bounded by ``norm``.

    ``features``: those that this cost depends on, by default all; a ``prior`` given as a list refers to these.
    ``bound``: one number, or one per step, as a list or as a function of the step.

    Examples:
        >>> sf.Limit("stress", bound=0.7, noise=0.1, norm=1.0)
        Limit('stress', bound=0.7, noise=0.1, norm=1.0)
        >>> sf.Limit("strain", bound=0.7, noise=0.05, prior=[(0.1, 0.3), (0, 0.8), 0.4])
        Limit('strain', bound=0.7, noise=0.05, prior=((0.1, 0.3), (0.0, 0.8), (0.4, 0.4)))
        >>> sf.Limit("wear", bound=[0.5, 0.5, 0.9], noise=0.05, norm=1.0, features=["bias", "speed"])
        Limit('wear', bound=(0.5, 0.5, 0.9), noise=0.05, norm=1.0, features=('bias', 'speed'))
    """

    name: str
    bound: float | tuple[float, ...] | Callable[[int], float]
    noise: float
    norm: float | None
    prior: tuple[Interval, ...] | dict[Feature, Interval] | None
    misspecification: float
    episode_noise: float
    features: tuple[Feature, ...] | None

    def __init__(
        self,
        name: str,
        *others: object,
        bound: float | Sequence[float] | Callable[[int], float],
        noise: float,
        norm: float | None = None,
        prior: Sequence[Entry] | Mapping[Feature, Entry] | None = None,
        misspecification: float = 0.0,
        episode_noise: float = 0.0,
        features: Sequence[Feature] | None = None,
    ) -> None:
        if type(name) is not str or not name:
            raise InvalidInput("a limit needs a name", got=shown(name), fix="Give it a word.")
        where = f"limit {name!r}"
        if others:
            raise InvalidInput(
                "the numbers of a limit are given by name, so that they cannot be swapped",
                where=where,
                got=shown(others),
                fix='Write sf.Limit("name", bound=…, noise=…, norm=…).',
            )
        if norm is None and prior is None:
            raise InvalidInput(
                "nothing is known about the size of this cost",
                where=where,
                fix="Give norm, a bound on ‖γ‖; or prior, an interval or a number for each coefficient.",
            )
        found = {
            "name": name,
            "bound": _bound(bound, where),
            "noise": _size("noise", noise, where),
            "norm": None if norm is None else _size("norm", norm, where),
            "prior": None if prior is None else _prior(prior, features, where),
            "misspecification": _size("misspecification", misspecification, where),
            "episode_noise": _size("episode_noise", episode_noise, where),
            "features": None if features is None else _features(features, where),
        }
        for field, value in found.items():
            object.__setattr__(self, field, value)

    def told(self) -> dict[str, object]:
        """Name and bound, as runs and policies record them; a bound per step as a list."""
        return {"name": self.name, "bound": list(self.bound) if isinstance(self.bound, tuple) else self.bound}

    def __repr__(self) -> str:
        usual = {"norm": None, "prior": None, "misspecification": 0.0, "episode_noise": 0.0, "features": None}
        told = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)[1:]
            if field.name not in usual or getattr(self, field.name) != usual[field.name]
        ]
        return f"Limit({', '.join([repr(self.name), *told])})"


def _size(what: str, value: object, where: str) -> float:
    number = constant(what, value, where)
    if number < 0:
        fix = "It is a scale: give its size, or 0."
        raise InvalidInput(f"{what} is negative", where=where, got=repr(number), fix=fix)
    return number


def _bound(given: object, where: str) -> float | tuple[float, ...] | Callable[[int], float]:
    if callable(given):
        return given
    if isinstance(given, (list, tuple)) or (reals(given) is not None and getattr(given, "ndim", 0) == 1):
        rows = list(given)  # type: ignore[call-overload]
        return tuple(constant("bound", value, f"{where}, step {h}") for h, value in enumerate(rows))
    return constant("bound", given, where)


def _prior(given: object, features: object, where: str) -> tuple[Interval, ...] | dict[Feature, Interval]:
    if isinstance(given, Mapping):
        for name in given:
            _check_feature(name, where)
        return {name: interval(entry, f"{where}, feature {name!r}") for name, entry in given.items()}
    if isinstance(given, str) or (not isinstance(given, Sequence) and getattr(given, "ndim", 0) not in (1, 2)):
        rule = "prior must be a list with an entry per feature, or a dict by feature"
        fix = "An entry is (lowest, highest), or the number itself where it is known."
        raise InvalidInput(rule, where=where, got=shown(given), fix=fix)
    rows: list[object] = list(given)  # type: ignore[call-overload]
    names = list(features) if isinstance(features, Sequence) and len(features) == len(rows) else range(len(rows))
    return tuple(interval(entry, f"{where}, feature {name!r}") for name, entry in zip(names, rows, strict=True))


def interval(entry: object, where: str) -> Interval:
    """(lowest, highest) of one coefficient, from an interval or a known number."""
    pair = reals(entry)
    if pair is None or pair.shape not in ((), (2,)):
        fix = "Give (lowest, highest), or the number itself where it is known."
        raise InvalidInput("a prior is an interval or a number", where=where, got=shown(entry), fix=fix)
    low, high = pair.tolist() if pair.ndim else (float(pair), float(pair))
    if not (math.isfinite(low) and math.isfinite(high)):
        fix = "Give the widest interval that is possible. If nothing is known, leave this feature out and give norm."
        raise InvalidInput("a prior is not finite", where=where, got=shown(entry), fix=fix)
    if low > high:
        fix = "Give (lowest, highest)."
        raise InvalidInput("a prior's lowest number is above its highest", where=where, got=shown(entry), fix=fix)
    return low, high


def _features(given: object, where: str) -> tuple[Feature, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        rule = "features must be a list of the features that this cost depends on"
        fix = "Give their names or columns. If it depends on all of them, leave it out."
        raise InvalidInput(rule, where=where, got=shown(given), fix=fix)
    for name in given:
        _check_feature(name, where)
    if len(set(given)) < len(given):
        raise InvalidInput("a feature is listed twice", where=where, got=shown(given), fix="List each once.")
    return tuple(given)


def _check_feature(name: object, where: str) -> None:
    if type(name) not in (str, int):
        fix = "Give a word of features=[…], or a column: 0, 1, …"
        raise InvalidInput("a feature is given by its name or its column", where=where, got=shown(name), fix=fix)
