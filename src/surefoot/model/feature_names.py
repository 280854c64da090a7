"""What cost features are called wherever people read about them: by their names, or by column where they have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import FloatArray
from surefoot.model.labels import shown

Names = tuple[str, ...] | None

_OWN = "Give each cost feature a word of its own."
MOST = 8  #: features of a row that a sentence lists


def check_features(given: Sequence[str] | None, dim: int) -> Names:
    """The names of the cost features."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        fix = "Give a word for each cost feature, in their order."
        raise InvalidInput("features must be a list of names", got=shown(given), fix=fix)
    for name in given:
        if type(name) is not str or not name:
            raise InvalidInput("a feature's name must be a word", where="features", got=shown(name), fix=_OWN)
    for name in given:
        if list(given).count(name) > 1:
            raise InvalidInput("two features share a name", where="features", got=repr(name), fix=_OWN)
    if len(given) != dim:
        got = f"{len(given)} names for {dim} features: {shown(list(given))}"
        fix = "Give as many names as cost_features has entries."
        raise InvalidInput("every cost feature needs a name", where="features", got=got, fix=fix)
    return tuple(given)


def feature_name(features: Names, i: int) -> str:
    """A feature as messages call it."""
    return f"feature {i}" if features is None else repr(features[i])


def listed(features: Names, columns: Sequence[int]) -> str:
    """Several features in a sentence; the first few of many."""
    names = ", ".join(str(i) if features is None else repr(features[i]) for i in columns[:MOST])
    kind = "column" if len(columns) == 1 else "columns"
    return (f"{kind} {names}" if features is None else names) + (", …" if len(columns) > MOST else "")


def row_entries(features: Names, x: FloatArray) -> tuple[tuple[str, float], ...]:
    """Names and values of a row's features that are not zero; empty where features have no names."""
    if features is None:
        return ()
    return tuple((features[i], float(x[i])) for i in np.flatnonzero(x).tolist())


def told_entries(entries: Sequence[tuple[str, float]]) -> str:
    """As a sentence has them: ``bias=1, pressure=0.4``."""
    return ", ".join(f"{name}={value:.4g}" for name, value in entries[:MOST]) + (", …" if len(entries) > MOST else "")


def told_row(features: Names, x: FloatArray) -> str:
    """A row of features as errors show it: by name, with all digits, else the numbers in their order."""
    if features is None:
        return shown(x.tolist())
    return shown(dict(row_entries(features, x)) or dict.fromkeys(features, 0.0))
