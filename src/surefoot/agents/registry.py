"""Agents by name, and what each is, in five lines of its module's docstring: the one place where that is written."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.errors import AssumptionBroken, InvalidInput

if TYPE_CHECKING:
    from surefoot.agents.agent import Agent
    from surefoot.model.problem import Problem

_HOMES = {
    "lsvi-new": ("surefoot.agents.lsvi_new", "LsviNew"),
    "lsvi-new-paper": ("surefoot.agents.lsvi_new_paper", "LsviNewPaper"),
    "fallback": ("surefoot.agents.fallback", "Fallback"),
    "ucrl-vtr": ("surefoot.agents.ucrl_vtr", "UcrlVtr"),
    "slucb-qvi": ("surefoot.agents.slucb_qvi", "SlucbQvi"),
    "ucrl-vtr-plus": ("surefoot.agents.ucrl_vtr_plus", "UcrlVtrPlus"),
    "hf-ucrl-vtr-plus": ("surefoot.agents.hf_ucrl_vtr_plus", "HfUcrlVtrPlus"),
    "safe-mdp": ("surefoot.agents.safe_mdp", "SafeMdp"),
    "sno-mdp": ("surefoot.agents.sno_mdp", "SnoMdp"),
    "safe-exp-opt": ("surefoot.agents.safe_exp_opt", "SafeExpOpt"),
    "opt-cmdp": ("surefoot.agents.opt_cmdp", "OptCmdp"),
    "dope": ("surefoot.agents.dope", "Dope"),
    "lsvi-ae": ("surefoot.agents.lsvi_ae", "LsviAe"),
    "opdop": ("surefoot.agents.opdop", "Opdop"),
    "opt-primal-dual": ("surefoot.agents.opt_primal_dual", "OptPrimalDual"),
    "crpo": ("surefoot.agents.crpo", "Crpo"),
    "opse-lcmdp": ("surefoot.agents.opse_lcmdp", "OpseLcmdp"),
    "rslucb-qvi": ("surefoot.agents.rslucb_qvi", "RslucbQvi"),
    "oplb": ("surefoot.agents.oplb", "Oplb"),
    "safe-lucb": ("surefoot.agents.safe_lucb", "SafeLucb"),
    "mase": ("surefoot.agents.mase", "Mase"),
    "lsvi-ucb": ("surefoot.agents.lsvi_ucb", "LsviUcb"),
    "static-shield": ("surefoot.agents.static_shield", "StaticShield"),
}


def names() -> tuple[str, ...]:
    """The agents that :func:`make` knows.

    Examples:
        >>> "lsvi-new" in sf.agents.names()
        True
    """
    return tuple(_HOMES)


def kind(name: str, among: tuple[str, ...] = tuple(_HOMES)) -> type[Agent]:
    """The class behind a name; ``among``: the names that an unknown one is answered with."""
    if name not in _HOMES:
        near = difflib.get_close_matches(name, among, n=3, cutoff=0.4) or list(among)
        raise InvalidInput("no such agent", got=repr(name), fix=f"Did you mean {', '.join(near)}?")
    module, attribute = _HOMES[name]
    found: type[Agent] = getattr(importlib.import_module(module), attribute)
    return found


def make(name: str, problem: Problem, **options: Any) -> Agent:
    """An agent by name, with its options.

    Examples:
        >>> sf.agents.make("lsvi-new", sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        LsviNew(episodes=0, replans=1)
    """
    return kind(name)(problem, **options)


# --- cards --------------------------------------------------------------------------------------------------

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


def card(name: str, own: type | None = None) -> Card:
    """The facts about a registered agent, or about one of another room by its class."""
    text = inspect.getdoc(inspect.getmodule(kind(name) if own is None else own)) or ""
    found = {}
    for label in _LABELS:
        match = re.search(rf"^{label}: (.+?)(?=\n\n|\n(?:{'|'.join(_LABELS)}): |\Z)", text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise AssumptionBroken("an agent's docstring lacks a line of its card", where=name, got=label)
        found[label] = " ".join(match[1].split())
    return Card(name, text.partition("\n")[0], *(found[label] for label in _LABELS))
