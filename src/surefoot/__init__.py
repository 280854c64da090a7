"""surefoot: improve a known-safe controller online, without ever breaking a hard limit."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live. They are loaded when first used, so that `import surefoot` stays light.
_HOMES = {
    "Limit": "surefoot.model.limit",
    "Offer": "surefoot.study.certificate",
    "Plan": "surefoot.plan.plan",
    "Plant": "surefoot.model.plant.plant",
    "PlantAgent": "surefoot.agents.plant_agent",
    "PlantRun": "surefoot.runs.plants",
    "Problem": "surefoot.model.problem",
    "World": "surefoot.worlds.world",
    "LsviNew": "surefoot.agents.lsvi_new",
    "LsviNewPaper": "surefoot.agents.lsvi_new_paper",
    "calibrate": "surefoot.diagnosis",
    "check": "surefoot.diagnosis",
    "compare": "surefoot.runs.plants",
    "shield": "surefoot.shields.shield",
    "Transition": "surefoot.shields.reading",
    "draw": "surefoot.reports.pictures.draw",
    "Run": "surefoot.runs.run",
    "hat": "surefoot.model.plant.measures",
    "report": "surefoot.reports.page",
    "run": "surefoot.runs.runner",
    "resume": "surefoot.runs.runner",
    "Ledger": "surefoot.runs.ledger",
    "Study": "surefoot.study.study",
    "TensorBoard": "surefoot.runs.tensorboard",
    "audit": "surefoot.audits.audit",
    "sweep": "surefoot.sweeps.sweep",
}
_MODULES = {"exact", "theory", "errors", "worlds", "agents"}

if TYPE_CHECKING:
    from surefoot import agents as agents
    from surefoot import errors as errors
    from surefoot import exact as exact
    from surefoot import theory as theory
    from surefoot import worlds as worlds
    from surefoot.agents.lsvi_new import LsviNew as LsviNew
    from surefoot.agents.lsvi_new_paper import LsviNewPaper as LsviNewPaper
    from surefoot.agents.plant_agent import PlantAgent as PlantAgent
    from surefoot.audits.audit import audit as audit
    from surefoot.diagnosis import calibrate as calibrate
    from surefoot.diagnosis import check as check
    from surefoot.model.limit import Limit as Limit
    from surefoot.model.plant.measures import hat as hat
    from surefoot.model.plant.plant import Plant as Plant
    from surefoot.model.problem import Problem as Problem
    from surefoot.plan.plan import Plan as Plan
    from surefoot.reports.page import report as report
    from surefoot.reports.pictures.draw import draw as draw
    from surefoot.runs.ledger import Ledger as Ledger
    from surefoot.runs.plants import PlantRun as PlantRun
    from surefoot.runs.plants import compare as compare
    from surefoot.runs.run import Run as Run
    from surefoot.runs.runner import resume as resume
    from surefoot.runs.runner import run as run
    from surefoot.runs.tensorboard import TensorBoard as TensorBoard
    from surefoot.shields.reading import Transition as Transition
    from surefoot.shields.shield import shield as shield
    from surefoot.study.certificate import Offer as Offer
    from surefoot.study.study import Study as Study
    from surefoot.sweeps.sweep import sweep as sweep
    from surefoot.worlds.world import World as World

__all__ = sorted([*_HOMES, *_MODULES])


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


class _AfterGymnasium:
    """Enters the named worlds into Gymnasium's registry as soon as somebody imports Gymnasium.

    Importing it here would make `import surefoot` twenty times slower. This finder waits for the one import, lets the
    others find the module, and goes away.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: Any) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _register() -> None:
    from surefoot.worlds.registry import register_all

    register_all()


if "gymnasium" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _AfterGymnasium())
