"""What differs between two declarations, said so that a person sees what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from surefoot.model.document import to_document
from surefoot.model.labels import shown
from surefoot.model.problem import Problem

_MOST = 5


def problem_difference(there: Problem, here: Problem) -> str:
    """The first places where two problems differ: what the study has, and what was given."""
    before, now = to_document(there), to_document(here)
    for document in (before, now):
        for layer in document["layers"]:
            if layer["transition_features"] is None:
                layer["transition_features"] = layer["cost_features"]
    return difference(before, now)


def difference(there: object, here: object) -> str:
    """'a.b[2]: 3 there, 4 here; …', of values made of dicts, lists, arrays and scalars."""
    found = [text for text, _ in zip(_differences(there, here, ""), range(_MOST + 1), strict=False)]
    return "; ".join(found[:_MOST]) + ("; …" if len(found) > _MOST else "")


def _differences(there: Any, here: Any, at: str) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            place = f"{at}.{key}" if at else str(key)
            if key not in there:
                yield f"{place}: not given there, {shown(here[key])} here"
            elif key not in here:
                yield f"{place}: {shown(there[key])} there, not given here"
            else:
                yield from _differences(there[key], here[key], place)
    elif isinstance(there, np.ndarray) and isinstance(here, np.ndarray):
        yield from _array_differences(there, here, at)
    elif isinstance(there, (list, tuple)) and isinstance(here, (list, tuple)):
        if len(there) != len(here):
            yield f"{at}: {len(there)} entries there, {len(here)} here"
        for i, (a, b) in enumerate(zip(there, here, strict=False)):
            yield from _differences(a, b, f"{at}[{i}]")
    elif type(there) is not type(here) or there != here:
        yield f"{at}: {shown(there)} there, {shown(here)} here"


def _array_differences(there: Any, here: Any, at: str) -> Iterator[str]:
    kinds = there.dtype, here.dtype
    same_kind = kinds[0] == kinds[1] or {kind.kind for kind in kinds} == {"f"}  # a number is one in any precision
    if there.shape != here.shape or not same_kind:
        yield f"{at}: {there.dtype} {there.shape} there, {here.dtype} {here.shape} here"
        return
    for index in np.argwhere(there != here):
        place = ", ".join(map(str, index.tolist()))
        yield f"{at}[{place}]: {there[tuple(index)]} there, {here[tuple(index)]} here"
