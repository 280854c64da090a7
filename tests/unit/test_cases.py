"""The recorded case studies, replayed: what was played is what the declaration allows, and no limit was broken."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

CASES = Path(__file__).parents[2] / "cases"


def case(name: str) -> tuple[Any, dict[str, Any]]:
    spec = importlib.util.spec_from_file_location(name, CASES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def test_the_recorded_charge_is_one_that_the_declaration_allows() -> None:
    charging, recorded = case("charging")
    plant, played = charging.charging(*recorded["declared"]), recorded["learner"]
    assert played["violations"] == 0
    assert min(played["anode_margin_mV"], played["voltage_margin_mV"]) > 0.0
    assert recorded["2C"]["violations"] > 0
    path = np.array(played["path"])  # rounded to four digits
    for h, rate in enumerate(played["inputs"]):
        assert rate in plant.inputs.values
        boxes = plant.boxes(h, path[h], rate)
        assert any((path[h + 1] >= low - 2e-4).all() and (path[h + 1] <= high + 2e-4).all() for low, high in boxes)
        assert not plant.breaks(path[h + 1])
    assert np.mean(played["reward"][-20:]) > recorded["fallback C/5"]["reward"]
