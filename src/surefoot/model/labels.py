"""Names of states and actions: hashable, JSON-able Python values, mapped to dense indices.

Allowed are ``str``, ``int`` (64 bits), finite ``float``, ``bool``, ``None`` and tuples of these. A JSON array is read
as a tuple, since a list can never be a label.
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
_DEEPEST = 16  # nesting of tuples; anything deeper is a mistake or an attack


def shown(value: object) -> str:
    """The repr, shortened for messages. (An integer of thousands of digits has none.)"""
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
    """The label in a JSON value, with arrays as tuples; anything that cannot be a label is refused."""
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
        # Exact types only: numpy's scalars subclass float or str, but come back from JSON as something else.
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
    """True if two *equal* labels also have the same types throughout (1 and True do not)."""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same_label, a, b))
    if type(a) is float:
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    return bool(a == b)


def other_spellings(label: Label) -> list[Label]:
    """What may have been meant: ``0`` by ``"0"`` or ``(0,)``, ``"0"`` by ``0``, ``(1, 2)`` by ``"(1, 2)"``."""
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
    """A hint if another spelling of an unknown label is known; else empty."""
    other = next((each for each in other_spellings(label) if known(each)), None)
    if other is None:
        return ""
    kinds = {str: "text", int: "a number", float: "a number", tuple: "a tuple", bool: "true or false"}
    return f"Did you mean {shown(other)}, {kinds[type(other)]}, instead of {shown(label)}, {kinds[type(label)]}?"


def hashable(label: Label) -> bool:
    """False for what can never be a label. (Even comparing it may fail, as with an array.)"""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def position(label: Label, size: int) -> int | None:
    """The whole number from 0 to size - 1 that equals the label, or None."""
    if not hashable(label):
        return None
    try:
        number = int(label)
        return number if number == label and 0 <= number < size else None
    except (TypeError, ValueError, OverflowError):
        return None


class Register:
    """Records every label, to refuse labels that are equal but of different types (1, 1.0, True)."""

    def __init__(self, kind: str, numbers: int = 0) -> None:
        """``numbers``: the labels 0 … numbers-1 are in use."""
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
        """A copy that can be added to independently."""
        other = Register(self._kind, self._numbers)
        other._seen = dict(self._seen)
        return other


class Names(Collection[Label]):
    """The labels of one step's states, in index order; without a list, 0 … n-1. Equal labels are the same label."""

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
        """A label, or a tuple of them for a slice. No index is negative: in a problem's arrays -1 means "none"."""
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
        """The labels as given; None if they are plain numbers."""
        return self._labels

    def index(self, label: Label, where: str) -> int:
        """The index of a label; an unknown label is an error."""
        found = self.find(label)
        if found is None:
            fix = meant(label, lambda other: self.find(other) is not None)
            raise UnknownLabel("no such state", where=where, got=shown(label), fix=fix)
        return found

    def find(self, label: Label) -> int | None:
        """The index of a label, or None."""
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
