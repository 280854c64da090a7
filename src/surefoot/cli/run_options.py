"""From words on the command line to the agents and seeds of a sweep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from surefoot.checks import nearest, options_of
from surefoot.errors import InvalidInput
from surefoot.exact.contenders import CONTENDERS, GIVEN
from surefoot.sweeps.spec import Contender

MOST_SEEDS = 100_000


def seeds_of(text: str) -> tuple[int, ...]:
    """``0:10`` is 0 … 9, ``3`` is 3, ``0,5,7`` are these."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?::(\d{1,18}))?\s*", part)
        if match is None or (match[2] is not None and int(match[2]) <= int(match[1])):
            raise InvalidInput("seeds are first:end, a number, or several separated by commas", got=repr(text))
        first = int(match[1])
        end = first + 1 if match[2] is None else int(match[2])
        if len(found) + end - first > MOST_SEEDS:
            raise InvalidInput("too many seeds", got=repr(text), fix=f"{MOST_SEEDS:,} at most.")
        found += range(first, end)
    return tuple(found)


def contenders_of(words: Sequence[str]) -> tuple[Contender, ...]:
    """AGENT, or LABEL=AGENT to compare an agent with itself under different options."""
    found = []
    for word in words:
        label, equals, agent = word.partition("=")
        CONTENDERS.kind(agent if equals else label)  # refuses an unknown one, with the nearest names
        found.append(Contender(agent, {}, label) if equals else Contender(label))
    return tuple(found)


def with_options(found: Sequence[Contender], given: Mapping[str, Any]) -> tuple[Contender, ...]:
    """NAME goes to every agent that takes it, LABEL.NAME to one."""
    result = list(found)
    for key, value in given.items():
        label = max((c.name for c in result if key.startswith(f"{c.name}.")), key=len, default="")
        name = key[len(label) + 1 :] if label else key
        takers = [i for i, c in enumerate(result) if (c.name == label if label else name in _options_of(c))]
        if not takers:
            if "." in key:
                names = ", ".join(c.name for c in result)
                raise InvalidInput("no such agent in this run", got=repr(key), fix=f"There are {names}.")
            known = {option for c in result for option in _options_of(c)}
            who = result[0].agent if len(result) == 1 else "none of the agents"
            has = "has no option" if len(result) == 1 else "has the option"
            raise InvalidInput(f"{who} {has} {name!r}", fix=nearest(name, sorted(known), "Options are"))
        for i in takers:
            result[i] = replace(result[i], options={**result[i].options, name: value})
    return tuple(result)


def _options_of(contender: Contender) -> Mapping[str, Any]:
    return options_of(CONTENDERS.kind(contender.agent), without=GIVEN)
