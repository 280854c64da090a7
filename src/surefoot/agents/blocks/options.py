"""Options of baselines, one frozen dataclass each. A field is an option: it is accepted, checked and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from surefoot.agents.learner import LearnerOptions
from surefoot.checks import at_least, one_of, probability

Slack = float | Sequence[float] | None  # once computed an array, which files store as lists


def option(default: Any, check: Callable[..., Any], *within: Any, **more: Any) -> Any:
    """A field that is checked: its value becomes ``check(name, value, *within, **more)``."""
    return field(default=default, metadata={"check": (check, within, more)})


def worked_out(default: Any) -> Any:
    """A field that is computed: stored like the others, but not accepted."""
    return field(default=default, init=False)


def word(name: str, value: str, known: Sequence[str]) -> str:
    return one_of(name, known, value)


@dataclass(frozen=True, kw_only=True)
class BaselineOptions(LearnerOptions):
    """The options of every baseline. An option whose default is None is computed from the problem."""

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
