"""Agents by name, and the card of each, which is written in its docstring and nowhere else."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.checks import nearest
from surefoot.errors import AssumptionBroken, InvalidInput

if TYPE_CHECKING:
    from surefoot.agents.agent import Agent
    from surefoot.model.problem import Problem


@dataclass(frozen=True)
class Roster:
    """Agents by name; each class is imported when it is first used."""

    homes: Mapping[str, str]  # name -> module and class, below surefoot

    def names(self) -> tuple[str, ...]:
        return tuple(self.homes)

    def kind(self, name: str) -> type[Agent]:
        """The class behind a name; an unknown one is an error that offers the nearest names."""
        if name not in self.homes:
            raise InvalidInput("no such agent", got=repr(name), fix=nearest(name, self.homes, "There are"))
        module, _, attribute = self.homes[name].rpartition(".")
        found: type[Agent] = getattr(importlib.import_module(f"surefoot.{module}"), attribute)
        return found


AGENTS = Roster(
    {
        "lsvi-new": "agents.lsvi_new.LsviNew",
        "lsvi-new-paper": "agents.lsvi_new_paper.LsviNewPaper",
        "fallback": "agents.declared.Fallback",
        "ucrl-vtr": "agents.optimistic.UcrlVtr",
        "slucb-qvi": "agents.one_step.SlucbQvi",
        "ucrl-vtr-plus": "agents.optimistic.UcrlVtrPlus",
        "hf-ucrl-vtr-plus": "agents.optimistic.HfUcrlVtrPlus",
        "safe-mdp": "agents.two_sets.SafeMdp",
        "sno-mdp": "agents.two_sets.SnoMdp",
        "safe-exp-opt": "agents.two_sets.SafeExpOpt",
        "opt-cmdp": "agents.tabular.OptCmdp",
        "dope": "agents.tabular.Dope",
        "lsvi-ae": "agents.optimistic.LsviAe",
        "opdop": "agents.mirrored.Opdop",
        "opt-primal-dual": "agents.mirrored.OptPrimalDual",
        "crpo": "agents.mirrored.Crpo",
        "opse-lcmdp": "agents.tabular.OpseLcmdp",
        "rslucb-qvi": "agents.one_step.RslucbQvi",
        "oplb": "agents.one_step.Oplb",
        "safe-lucb": "agents.one_step.SafeLucb",
        "mase": "agents.one_step.Mase",
        "lsvi-ucb": "agents.tabular.LsviUcb",
        "static-shield": "agents.declared.StaticShield",
    }
)


def names() -> tuple[str, ...]:
    """The agents that :func:`make` knows.

    Examples:
        >>> "lsvi-new" in sf.agents.names()
        True
    """
    return AGENTS.names()


def make(name: str, problem: Problem, **options: Any) -> Agent:
    """An agent by name, with its options.

    Examples:
        >>> sf.agents.make("lsvi-new", sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        LsviNew(episodes=0, replans=1)
    """
    return AGENTS.kind(name)(problem, **options)


# --- cards --------------------------------------------------------------------------------------------------

_LABELS = ("Port of", "Changed to fit", "Assumes", "Guarantees", "May violate")


@dataclass(frozen=True)
class Card:
    """What an agent is; every claim is tested (tests/statistical/test_field_claims.py)."""

    name: str
    title: str  # its docstring's first line
    port_of: str  # what is ported, and whether its source was read, derived from or remembered
    changed: str
    assumes: str
    guarantees: str
    may_violate: str


def card(name: str, own: type | None = None) -> Card:
    """The card of a registered agent, or of a class in another room."""
    described = AGENTS.kind(name) if own is None else own
    texts = [inspect.getdoc(each) or "" for each in (described, inspect.getmodule(described))]
    text, found = next((text for text in texts if _LABELS[0] in text), ""), {}
    for label in _LABELS:
        match = re.search(rf"^{label}: (.+?)(?=\n\n|\n(?:{'|'.join(_LABELS)}): |\Z)", text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise AssumptionBroken("an agent's docstring lacks a line of its card", where=name, got=label)
        found[label] = " ".join(match[1].split())
    return Card(name, text.partition("\n")[0], *(found[label] for label in _LABELS))
