"""Names of states and actions: hashable, JSON-able Python values, mapped to dense indices.

Allowed are ``str``, ``int`` (64 bits), finite ``float``, ``bool``, ``None`` and tuples of these. JSON has
no tuples, but lists are not hashable and so can never be labels: a JSON array is always a tuple.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, overload

from surefoot.errors import InvalidInput, UnknownLabel

Label = Any  # str | int | float | bool | None | tuple[Label, ...]: checked at run time

_SCALARS = (str, int, float, bool, type(None))
_SHOWN = 6  # labels in a repr
_DEEPEST = 16  # nesting of tuples; deeper ones are mistakes or attacks


def shown(value: object) -> str:
    """For messages: the repr, cut where it is long. Integers of thousands of digits have none."""
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= 80 else text[:77] + "..."


def check_label(label: Label, where: str) -> None:
    """Refuse a label that cannot be a dictionary key or would not survive JSON."""
    fault = _fault(label)
    if fault:
        raise InvalidInput(
            "label cannot be used",
            where=where,
            got=f"{shown(label)} holds {fault}" if type(label) is tuple else fault,
            fix="Use str, int, finite float, bool, None, or tuples of these.",
        )


def label_of(value: object, where: str = "") -> Label:
    """The label that a JSON value stands for: an array is a tuple. Anything that cannot be one is refused."""
    label = _tuples(value)
    check_label(label, where)
    return label


def _tuples(value: object, depth: int = 0) -> Label:
    if isinstance(value, (list, tuple)) and depth <= 32:
        return tuple(_tuples(part, depth + 1) for part in value)
    return value


def _fault(label: Label, depth: int = 0) -> str:
    kind = type(label)
    if kind is tuple:
        if depth == _DEEPEST:
            return f"tuples nested deeper than {_DEEPEST}"
        return next((f for part in label if (f := _fault(part, depth + 1))), "")
    if kind not in _SCALARS:
        # Exact types only: numpy scalars subclass float or str but come back from JSON as something else.
        if kind.__module__ == "numpy":
            convert = "tuple(….tolist())" if kind.__hash__ is None else ".item()"
            return f"{shown(label)}, a numpy {kind.__name__}; convert it with {convert}"
        fault = "hashable" if kind.__hash__ is None else "JSON-able"
        return f"{shown(label)}, a {kind.__name__}, which is not {fault}"
    if kind is float and not math.isfinite(label):
        return f"{label!r}, which is not finite"
    if kind is int and not -(2**63) <= label < 2**63:
        return f"{shown(label)}, which does not fit in 64 bits"
    return ""


def same_label(a: Label, b: Label) -> bool:
    """True when two *equal* labels are also of the same kind throughout (1 and True are not)."""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same_label, a, b))
    if type(a) is float:
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    return bool(a == b)


def other_spellings(label: Label) -> list[Label]:
    """What may have been meant instead: ``0`` for ``"0"``, ``"0"`` for ``0``, ``(1, 2)`` for ``"(1, 2)"``,
    ``0`` for ``(0,)``."""
    if type(label) is tuple:
        return list(label) if len(label) == 1 else []
    if type(label) is not str:
        return [] if _fault(label) or type(label) not in (int, float, bool) else [str(label)]
    if len(label) > 200:
        return []
    try:
        found = ast.literal_eval(label.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    found = tuple(found) if type(found) is list else found
    return [] if _fault(found) or type(found) is str else [found]


def meant(label: Label, known: Callable[[Label], bool]) -> str:
    """A hint for an unknown label whose other spelling is known; empty otherwise."""
    other = next((each for each in other_spellings(label) if known(each)), None)
    if other is None:
        return ""
    kinds = {str: "text", int: "a number", float: "a number", tuple: "a tuple", bool: "true or false"}
    return f"Did you mean {shown(other)}, {kinds[type(other)]}, instead of {shown(label)}, {kinds[type(label)]}?"


def hashable(label: Label) -> bool:
    """False for what can never be a label; comparing it may even fail, as an array does."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def position(label: Label, size: int) -> int | None:
    """The whole number from 0 to size - 1 that equals the label, None if there is none."""
    if not hashable(label):
        return None
    try:
        number = int(label)
        return number if number == label and 0 <= number < size else None
    except (TypeError, ValueError, OverflowError):
        return None


class Register:
    """Sees every label once, so that equal but different ones (1, 1.0, True) are refused together."""

    def __init__(self, kind: str, numbers: int = 0) -> None:
        """``numbers``: the labels 0 … numbers-1 are in use already."""
        self._kind, self._numbers = kind, numbers
        self._seen: dict[Label, Label] = {}

    def add(self, label: Label, where: str) -> None:
        check_label(label, where)
        number = position(label, self._numbers) if self._numbers else None
        known = self._seen.setdefault(label, label) if number is None else number
        if known is not label and not same_label(known, label):
            raise InvalidInput(
                f"{self._kind} labels compare equal but differ",
                where=where,
                got=f"{shown(label)} and {shown(known)}",
                fix="Use one spelling for one thing.",
            )

    def copy(self) -> Register:
        """One that has seen the same, and goes on for itself."""
        other = Register(self._kind, self._numbers)
        other._seen = dict(self._seen)
        return other


class Names(Collection[Label]):
    """The labels of one step's states, in index order; without a list they are 0 … n-1.

    Labels are looked up by equality, as in a dictionary: two that compare equal are the same label.
    """

    __slots__ = ("_index", "_labels", "_size")

    def __init__(self, size: int, labels: Sequence[Label] | None = None) -> None:
        self._size = size
        self._labels = None if labels is None else tuple(labels)
        self._index: dict[Label, int] | None = None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Label]:
        return iter(self[:])

    def __contains__(self, label: Label) -> bool:
        return self.find(label) is not None

    @overload
    def __getitem__(self, index: int) -> Label: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Label, ...]: ...
    def __getitem__(self, index: int | slice) -> Label | tuple[Label, ...]:
        """A label or a slice of them. A single index is never negative: -1 means "none" in the arrays of a problem."""
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._size)))
        if not 0 <= index < self._size:
            raise IndexError(index)
        return int(index) if self._labels is None else self._labels[index]

    def __repr__(self) -> str:
        words = [shown(label) for label in self[: _SHOWN if self._size <= _SHOWN else _SHOWN - 1]]
        if self._size > _SHOWN:
            words += ["…", shown(self[self._size - 1])]
        text = ", ".join(words)
        return f"<{self._size} states{': ' if text else ''}{text if len(text) <= 80 else text[:79] + '…'}>"

    @property
    def listed(self) -> tuple[Label, ...] | None:
        """The labels where they were given, None where they are plain numbers."""
        return self._labels

    def index(self, label: Label, where: str) -> int:
        """The index of a label; an unknown one is an error, never a guess."""
        found = self.find(label)
        if found is None:
            fix = meant(label, lambda other: self.find(other) is not None)
            raise UnknownLabel("no such state", where=where, got=shown(label), fix=fix)
        return found

    def find(self, label: Label) -> int | None:
        """The index of a label, None for an unknown one."""
        if self._labels is None:
            return position(label, self._size)
        if not hashable(label):
            return None
        if self._index is None:
            self._index = {name: i for i, name in enumerate(self._labels)}
        return self._index.get(label)

    def take(self, kept: Iterable[int]) -> Names:
        chosen = [self[i] for i in kept]
        return Names(len(chosen), chosen)
