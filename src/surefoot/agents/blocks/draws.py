"""What an agent has learned from in simulation: which world, and which random streams up to where.

Confidence bounds hold for noise that is fresh given the past (spec 3). Draws that enter twice would count as twice the
evidence, and draws from another world as evidence about this one. So an agent carries this record, as plain data, since
agents know no world; :mod:`surefoot.runs.sources` checks it before a run and updates it during the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.storage.documents import parse_json


@dataclass(frozen=True)
class Draws:
    """The streams that an agent has learned from, all of one world."""

    world: str  # its digest
    seeds: tuple[int, ...]  # every seed so far; the streams of the last one continue
    played: int  # episodes drawn from the streams of the last seed
    episodes: int  # of the agent, when this was written; later ones were entered by hand
    state: Mapping[str, Any]  # of the streams of the last seed


def to_array(draws: Draws | None) -> NDArray[np.int32]:
    """(n,) for a checkpoint: the bytes of a JSON text, empty without a record."""
    text = b"" if draws is None else json.dumps(asdict(draws)).encode()
    return np.frombuffer(text, np.uint8).astype(np.int32)


def from_array(array: NDArray[Any]) -> Draws | None:
    """What :func:`to_array` wrote; anything else is refused."""
    try:
        text = bytes(array.tolist())
        if not text:
            return None
        found = Draws(**parse_json(text))
        numbers = (*found.seeds, found.played, found.episodes)
        plain = isinstance(found.world, str) and isinstance(found.state, dict) and isinstance(found.seeds, list)
        if not plain or not found.seeds or not all(type(number) is int and number >= 0 for number in numbers):
            raise TypeError(f"{found!r:.200}")
        return Draws(found.world, tuple(found.seeds), found.played, found.episodes, found.state)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInput("the checkpoint does not say what was drawn", where="draws", got=repr(error)) from None
