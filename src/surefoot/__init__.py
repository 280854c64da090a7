"""surefoot: improve a known-safe controller online, without ever breaking a hard limit."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live. They are loaded when first used, so that `import surefoot` stays light.
_HOMES = {
    "Limit": "surefoot.model.limit",
    "Offer": "surefoot.study.certificate",
    "Plan": "surefoot.plan.plan",
    "Problem": "surefoot.model.problem",
    "World": "surefoot.worlds.world",
    "LsviNew": "surefoot.agents.lsvi_new",
    "LsviNewPaper": "surefoot.agents.lsvi_new_paper",
    "calibrate": "surefoot.diagnosis",
    "check": "surefoot.diagnosis",
    "draw": "surefoot.report.draw",
    "Run": "surefoot.runs.run",
    "run": "surefoot.runs.runner",
    "resume": "surefoot.runs.runner",
    "Ledger": "surefoot.runs.ledger",
    "Study": "surefoot.study.study",
    "audit": "surefoot.audits.audit",
    "sweep": "surefoot.sweeps.sweep",
}
_MODULES = {"exact", "theory", "errors", "worlds", "agents"}

if TYPE_CHECKING:
    from surefoot import agents, errors, exact, theory, worlds
    from surefoot.agents.lsvi_new import LsviNew
    from surefoot.agents.lsvi_new_paper import LsviNewPaper
    from surefoot.audits.audit import audit
    from surefoot.diagnosis import calibrate, check
    from surefoot.model.limit import Limit
    from surefoot.model.problem import Problem
    from surefoot.plan.plan import Plan
    from surefoot.report.draw import draw
    from surefoot.runs.ledger import Ledger
    from surefoot.runs.run import Run
    from surefoot.runs.runner import resume, run
    from surefoot.study.certificate import Offer
    from surefoot.study.study import Study
    from surefoot.sweeps.sweep import sweep
    from surefoot.worlds.world import World

__all__ = [
    "Ledger",
    "Limit",
    "LsviNew",
    "LsviNewPaper",
    "Offer",
    "Plan",
    "Problem",
    "Run",
    "Study",
    "World",
    "agents",
    "audit",
    "calibrate",
    "check",
    "draw",
    "errors",
    "exact",
    "resume",
    "run",
    "sweep",
    "theory",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"surefoot.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
