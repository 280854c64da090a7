"""Checks of plain arguments: each returns the value, or raises an error that names it."""

from __future__ import annotations

import collections.abc
import contextlib
import difflib
import importlib
import inspect
import math
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput


def at_least(name: str, value: float, least: float, *, strictly: bool = False) -> float:
    """A finite number ≥ least (or > least), or an error that names it; a text or a truth value is none."""
    try:
        number = float("" if isinstance(value, (str, bytes, bool, np.bool_)) else value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number", got=f"{value!r:.100}") from None
    if number == math.inf:
        raise InvalidInput(f"{name} must be finite", got=repr(value))
    if not number >= least or (strictly and number == least):
        raise InvalidInput(f"{name} must be {'above' if strictly else 'at least'} {least:g}", got=repr(value))
    return number


def probability(name: str, value: float) -> float:
    number = at_least(name, value, 0.0, strictly=True)
    if number >= 1:
        raise InvalidInput(f"{name} must be below 1", got=repr(value))
    return number


def promised(failure_probability: float) -> str:
    """A lower bound on 1 − p, in words: "≥ 0.95", or for a small p "≥ 1 − 1e-7". Never rounded up to 1."""
    p = Context(prec=6, rounding=ROUND_CEILING).plus(Decimal(repr(float(failure_probability)))).normalize()
    return f"≥ 1 − {p:e}" if p < Decimal("1e-4") else f"≥ {(1 - p).normalize():f}"


def whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}", got=repr(value))
    return int(value)


def one_of(name: str, known: Collection[str], value: str, cure: str = "It is one of") -> str:
    """One of the known words."""
    if value not in known:
        raise InvalidInput(f"no such {name}", got=f"{value!r:.100}", fix=f"{cure} {', '.join(known)}.")
    return value


def some_of(what: str, known: tuple[str, ...], given: Iterable[str]) -> tuple[str, ...]:
    """Some of the known names, in the order of ``known``; they may be given as text, with commas or spaces."""
    chosen = list_of(f"{what}s", given.replace(",", " ").split() if isinstance(given, str) else given)
    for name in chosen:
        if name not in known:
            raise InvalidInput(f"no such {what}", got=repr(name), fix=f"The {what}s are {', '.join(known)}.")
    return tuple(name for name in known if name in chosen)


def list_of(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    """What a list holds, if it is one."""
    if not isinstance(given, (str, bytes)):
        with contextlib.suppress(TypeError):
            return tuple(given)
    raise InvalidInput(f"{name} must be a list", got=f"{given!r:.100}")


def of_kind(value: object, kind: type | tuple[type, ...], rule: str, fix: str = "") -> None:
    """Refuse an argument of another type."""
    if not isinstance(value, kind):
        raise InvalidInput(rule, got=f"a {type(value).__name__}", fix=fix)


def refuse_first(
    marked: NDArray[np.bool_],
    rule: str,
    place: Callable[[int], str],
    fix: str = "",
    got: Callable[[int], str] | str = "",
) -> None:
    """Raise an error about the first marked entry, if there is one."""
    if marked.any():
        i = int(np.argmax(marked))
        raise InvalidInput(rule, where=place(i), got=got if isinstance(got, str) else got(i), fix=fix)


# --- arguments of formulas, by name; a NaN never passes -----------------------------------------------------


def count(**values: int) -> None:
    """Whole numbers from 1 on."""
    for name, value in values.items():
        whole(name, value, 1)


def decisions(horizon: int) -> None:
    """There is at least one decision."""
    whole("horizon", horizon, 2)


def probabilities(**values: float) -> None:
    """Strictly within (0, 1)."""
    for name, value in values.items():
        probability(name, value)


def positive(**values: float) -> None:
    for name, value in values.items():
        at_least(name, value, 0.0, strictly=True)


def at_least_zero(**values: float) -> None:
    for name, value in values.items():
        at_least(name, value, 0.0)


def all_finite(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InvalidInput(f"{name} must be finite", got=repr(value))


def needed(package: str, what: str, install: str) -> Any:
    """An optional package, imported; if it is missing, an error says what needs it and how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise InvalidInput(f"{what} needs {package}", fix=f"Install it with: pip install {install}") from None


# --- options that come from a file or a command line --------------------------------------------------------


def options_of(function: Callable[..., Any], without: Collection[str]) -> dict[str, inspect.Parameter]:
    """The options that a function or a class takes, by name; those in ``without`` are left out."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(function).parameters.items()
    return {name: p for name, p in found if p.kind in kinds and name not in without}


def check_options(
    what: str,
    function: Callable[..., Any],
    given: Mapping[str, Any],
    without: Collection[str] = (),
    beside: Collection[str] = (),
) -> None:
    """Refuse an option that the function does not take, with the nearest ones, and a value of the wrong type.

    ``beside``: what else could be meant, because the caller takes it.
    """
    known, taken = options_of(function, without), inspect.signature(function).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    with contextlib.suppress(NameError):  # annotated with names that only a type checker imports
        taken = inspect.signature(function, eval_str=True).parameters
    for name, value in given.items():
        if name not in known:
            if every and name not in without:
                continue
            fix = nearest(name, [*known, *beside], "Its options are")
            raise InvalidInput(f"{what} has no option {name!r}", fix=fix)
        hint = taken[name].annotation
        if not _fits(value, hint):
            raise InvalidInput(f"{name} of {what} must be {_said(hint)}", got=repr(value))


def nearest(name: str, known: Collection[str], otherwise: str) -> str:
    """What to do about an unknown name: the nearest known ones, or all."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.55)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"{otherwise} {', '.join(known)}." if known else "It has none."


def _fits(value: Any, hint: Any) -> bool:
    """Is a plain value (number, text, list, …) of the annotated type? If that cannot be decided, yes."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str):
        return isinstance(value, hint)
    if origin in (collections.abc.Sequence, collections.abc.Iterable, list, tuple):
        if isinstance(value, str):
            return parts[:1] == (str,)
        return isinstance(value, (list, tuple)) and all(_fits(item, parts[0]) for item in value)
    return True


def _said(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_said(part) for part in parts if part is not types.NoneType)
    if origin is not None and parts:
        return "a list of " + {float: "numbers", int: "whole numbers", str: "words"}.get(parts[0], "values")
    simple = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
    return simple.get(hint, "of another type")
