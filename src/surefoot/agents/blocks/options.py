"""Options of baselines, a frozen dataclass each: a field is an option that is taken, checked and stored in records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from surefoot.agents.learner import LearnerOptions
from surefoot.checks import at_least, one_of, probability

Slack = float | Sequence[float] | None  # once worked out an array, which files store as lists


def option(default: Any, check: Callable[..., Any], *within: Any, **more: Any) -> Any:
    """A field whose value becomes ``check(name, value, *within, **more)``."""
    return field(default=default, metadata={"check": (check, within, more)})


def worked_out(default: Any) -> Any:
    """A field that is stored like the others but cannot be given."""
    return field(default=default, init=False)


def word(name: str, value: str, known: Sequence[str]) -> str:
    return one_of(name, known, value)


@dataclass(frozen=True, kw_only=True)
class BaselineOptions(LearnerOptions):
    """The options of every baseline. One whose default is None is worked out from the problem."""

    failure_probability: float = option(0.05, probability)
    replan_growth: float = option(0.1, at_least, 0.0)
    ridges: Sequence[float] | None = None
    shaped: float | None = None
    value_ridge: float = 1.0
    optimism: float = 1.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if "check" in each.metadata and not (value is None and each.default is None):
                check, within, more = each.metadata["check"]
                object.__setattr__(self, each.name, check(each.name, value, *within, **more))
