"""What each agent is, in five lines, from its module's docstring: the one place where it is written."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from surefoot.agents import registry
from surefoot.errors import AssumptionBroken

_LABELS = ("Port of", "Changed to fit", "Assumes", "Guarantees", "May violate")


@dataclass(frozen=True)
class Card:
    """The facts about an agent; every claim is tested (tests/statistical/test_field_claims.py)."""

    name: str
    title: str  # its docstring's first line
    port_of: str  # what is ported, and whether its source was read, derived from or remembered
    changed: str
    assumes: str
    guarantees: str
    may_violate: str


def card(name: str, kind: type | None = None) -> Card:
    """The facts about a registered agent, or about one of another room by its class."""
    text = inspect.getdoc(inspect.getmodule(registry.kind(name) if kind is None else kind)) or ""
    found = {}
    for label in _LABELS:
        match = re.search(rf"^{label}: (.+?)(?=\n\n|\n(?:{'|'.join(_LABELS)}): |\Z)", text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise AssumptionBroken("an agent's docstring lacks a line of its card", where=name, got=label)
        found[label] = " ".join(match[1].split())
    return Card(name, text.partition("\n")[0], *(found[label] for label in _LABELS))
