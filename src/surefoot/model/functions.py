"""The functions that a user declares a problem with, and how to call them so that an error names the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.labels import Label, shown

Actions = Callable[[int, Label], Iterable[Label]]
Successors = Callable[[int, Label, Label], Iterable[Label]]
Reward = Callable[[int, Label, Label], float]
Features = Callable[[int, Label, Label, Label], ArrayLike]
CostFeatures = Features | Callable[[int, Label, Label], ArrayLike]
Forbidden = Callable[[int, Label], bool]
FallbackPolicy = Callable[[int, Label], Label]
Center = Callable[[int, Label], Label] | Callable[[int, Label, Label], Label]

Result = TypeVar("Result")


def check_function(name: str, given: object) -> None:
    if not callable(given):
        raise InvalidInput(f"{name} must be a function", got=shown(given))


@dataclass(frozen=True, eq=False, kw_only=True)
class Functions:
    """A declaration by functions, as in :meth:`surefoot.Problem.from_functions`."""

    actions: Actions
    successors: Successors
    reward: Reward
    cost_features: CostFeatures
    fallback: FallbackPolicy
    transition_features: Features | None = None
    terminal_reward: Callable[[Label], float] | None = None
    terminal_cost_features: Callable[[Label], ArrayLike | None] | None = None
    forbidden: Forbidden | None = None
    center: Center | None = None
    center_cost_features: Callable[[int, Label, Label], ArrayLike] | None = None  # only if cost rows belong to pairs

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if given is not None or each.default is not None:
                check_function(each.name, given)


def by_pair(cost_features: CostFeatures, transition_features: Features | None) -> bool:
    """True if the cost features are a function of (h, s, a): then rows belong to pairs (spec 9).

    Decided by the signature: a function that can take four arguments gets four.
    """
    if takes(cost_features, 4, unknown=True):
        return False
    signature = inspect.signature(cost_features)
    if not takes(cost_features, 3):
        raise InvalidInput(
            "cost_features takes the wrong number of arguments",
            got=f"cost_features{signature}",
            fix="Write a function of (h, s, a, s2), or of (h, s, a) if the cost does not depend on s2.",
        )
    if transition_features is None:
        raise InvalidInput(
            "transition_features are missing",
            got=f"cost_features{signature} does not take the next state, so transitions cannot use it",
            fix="Give transition_features, a function of (h, s, a, s2).",
        )
    return True


def takes(function: Callable[..., Any], n: int, *, unknown: bool = False) -> bool:
    """Can the function be called with n arguments? ``unknown`` is the answer if it has no signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins
        return unknown
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def call(name: str, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a user's function; if it fails, a note on the error says which call it was."""
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"surefoot was calling {name}({', '.join(map(shown, arguments))})")
        raise


def call_for_list(name: str, function: Callable[..., object], where: str, *arguments: object) -> list[Label]:
    """The labels that a user's function returns, in order; anything without an order is refused."""
    given: Any = call(name, function, *arguments)
    fix = ""
    if isinstance(given, (set, frozenset)):
        fix = "A set has no order, and the order breaks ties: sort it into a list."
    elif isinstance(given, Mapping):
        fix = "Its values would be ignored: give a list of its keys."
    elif isinstance(given, (str, bytes)) or not _has_entries(given):
        fix = "Put a single label into a list as well."
    if fix:
        raise InvalidInput(f"{name} must return a list", where=where, got=shown(given), fix=fix)
    return call(name, lambda *_: list(given), *arguments)  # a generator runs only here


def _has_entries(value: Any) -> bool:
    try:
        iter(value)
    except TypeError:
        return False
    return True
