"""Labels: what may be one, which of them are the same, and how they are found again."""

from __future__ import annotations

import enum
import math
from collections import namedtuple
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.labels import Names, Register, check_label, position, same_label, shown

GOOD = ["", "hot", 0, -(2**63), 2**63 - 1, 2.5, -0.5, 5e-324, True, None, (), (1, ("x", (None,))), "\x00é😀"]


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


def nested(depth: int) -> Any:
    label: Any = "core"
    for _ in range(depth):
        label = (label,)
    return label


@pytest.mark.parametrize("label", GOOD, ids=shown)
def test_good_labels_pass(label: Any) -> None:
    check_label(label, "here")
    Register("state").add(label, "here")
    assert same_label(label, label)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ([1], "[1], a list, which is not hashable"),
        ({1}, "{1}, a set, which is not hashable"),
        ({}, "{}, a dict, which is not hashable"),
        (frozenset({1}), "frozenset({1}), a frozenset, which is not JSON-able"),
        (b"x", "b'x', a bytes, which is not JSON-able"),
        (1j, "1j, a complex, which is not JSON-able"),
        (Colour.RED, "<Colour.RED: 1>, a Colour, which is not JSON-able"),
        (Word("x"), "'x', a Word, which is not JSON-able"),
        (Point(1, 2), "Point(x=1, y=2), a Point, which is not JSON-able"),
        (np.int64(3), "np.int64(3), a numpy int64; convert it with .item()"),
        (np.float64(0.5), "np.float64(0.5), a numpy float64; convert it with .item()"),
        (np.str_("x"), "np.str_('x'), a numpy str_; convert it with .item()"),
        (np.bool_(True), "np.True_, a numpy bool; convert it with .item()"),
        (np.array([1, 2]), "array([1, 2]), a numpy ndarray; convert it with tuple(….tolist())"),
        (math.nan, "nan, which is not finite"),
        (-math.inf, "-inf, which is not finite"),
        (2**63, "9223372036854775808, which does not fit in 64 bits"),
        (-(2**63) - 1, "-9223372036854775809, which does not fit in 64 bits"),
        (10**5000, "<int that cannot be shown>, which does not fit in 64 bits"),  # beyond Python's digits
        ((1, [2]), "(1, [2]) holds [2], a list, which is not hashable"),
        ((1, ("x", math.nan)), "(1, ('x', nan)) holds nan, which is not finite"),
        (nested(17), "holds tuples nested deeper than 16"),
        (nested(100_000), "holds tuples nested deeper than 16"),  # deeper than Python recurses
    ],
    ids=lambda value: shown(value)[:30],
)
def test_bad_labels_are_refused_by_what_they_are(label: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as error:
        check_label(label, "step 4, state")
    assert str(error.value).startswith("label cannot be used: step 4, state: ")
    assert words in error.value.got
    assert error.value.fix == "Use str, int, finite float, bool, None, or tuples of these."


def test_sixteen_tuples_are_deep_enough() -> None:
    check_label(nested(16), "here")


def test_an_object_without_a_repr_is_refused_all_the_same() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(InvalidInput, match="<Silent that cannot be shown>, a Silent, which is not JSON-able"):
        check_label(Silent(), "here")


def test_long_values_are_cut_in_messages() -> None:
    assert shown("x" * 500) == "'" + "x" * 76 + "..."
    assert shown("x" * 78) == repr("x" * 78)


EQUAL: list[tuple[Any, Any]] = [(1, True), (1, 1.0), (0.0, -0.0), (0, -0.0), ((0.0,), (-0.0,)), (((1,),), ((1.0,),))]


@pytest.mark.parametrize(("a", "b"), EQUAL, ids=repr)
def test_labels_that_are_equal_but_differ_are_refused_together(a: Any, b: Any) -> None:
    assert a == b
    assert not same_label(a, b)
    for first, second in ((a, b), (b, a)):
        register = Register("state")
        register.add(first, "step 0")
        with pytest.raises(InvalidInput) as error:
            register.add(second, "step 1")
        message = f"state labels compare equal but differ: step 1: {second!r} and {first!r}. Use one spelling"
        assert str(error.value).startswith(message)


def test_labels_that_differ_or_are_the_same_live_together() -> None:
    register = Register("action")
    for label in [*GOOD, *GOOD, "1", (1,), ("1",), -1.0]:
        register.add(label, "here")
    assert not any(same_label(a, b) for a, b in combinations(GOOD, 2))


def test_numbers_in_use_count_as_labels() -> None:
    register = Register("state", numbers=3)
    for label in (2, 3.0, -1.0, "1", 7):
        register.add(label, "here")
    for label in (True, 2.0, 0.0, -0.0, False):
        with pytest.raises(InvalidInput, match="state labels compare equal but differ: here"):
            register.add(label, "here")


@pytest.mark.parametrize("labels", [None, [0, 1, 2]], ids=["numbered", "listed"])
@pytest.mark.parametrize(
    ("label", "index"),
    [(0, 0), (2, 2), (True, 1), (2.0, 2), (np.int64(2), 2), (np.uint8(1), 1), (np.float32(1), 1), (Fraction(2), 2)],
    ids=repr,
)
def test_states_are_found_by_equality_numbered_or_listed(labels: Any, label: Any, index: int) -> None:
    assert Names(3, labels).index(label, "step 0") == index


@pytest.mark.parametrize("labels", [None, [0, 1, 2]], ids=["numbered", "listed"])
@pytest.mark.parametrize(
    "label",
    [
        *(3, -1, 0.5, math.nan, math.inf, 1j, 2**70, 10**5000, "1", b"1", "9" * 5000, None, object()),
        *([1], {1}, (1,), np.array(1), np.array([1]), np.array([1, 2]), (1, np.array([1, 2]))),
    ],
    ids=lambda label: shown(label)[:20],
)
def test_an_unknown_state_is_an_error_never_a_guess(labels: Any, label: Any) -> None:
    with pytest.raises(UnknownLabel) as error:
        Names(3, labels).index(label, "step 4")
    other = {str: ("1", "text"), tuple: ((1,), "a tuple")}.get(type(label), (None, ""))
    meant = f". Did you mean 1, a number, instead of {other[0]!r}, {other[1]}?"
    hint = meant if other[1] and label == other[0] else ""
    assert str(error.value) == f"no such state: step 4: {shown(label)}{hint}"


def test_names_read_like_a_sequence() -> None:
    for names in (Names(3), Names(3, [0, 1, 2])):
        assert len(names) == 3
        assert [names[i] for i in range(3)] == [*names] == [0, 1, 2]  # type: ignore[misc]
        assert type(names[np.int64(1)]) is int
        for outside in (-1, 3):
            with pytest.raises(IndexError):
                names[outside]
    assert Names(3).listed is None
    assert Names(2, ["a", "b"]).listed == ("a", "b")


def test_taking_some_names_keeps_them() -> None:
    kept = Names(5).take([1, 4])
    assert kept.listed == (1, 4)
    assert kept.index(4, "") == 1
    assert Names(3, ["a", "b", "c"]).take([2]).listed == ("c",)


def test_position_is_a_number_or_nothing() -> None:
    assert [position(label, 2) for label in (0, 1, 2, -1, "0", None)] == [0, 1, None, None, None, None]
