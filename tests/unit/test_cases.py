"""The recorded case studies, replayed: what was played is what was declared, and the pages say what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from cases import charging, office, reactor

ROOT = Path(__file__).parents[2]


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "cases" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def declared(name: str, found: dict[str, Any]) -> sf.Plant:
    known = found["declared"]
    if name == "charging":
        return charging.charging(*known)
    numbers = known["disturbance"], known["noise"], known["misspecification"]
    return reactor.reactor(*numbers) if name == "reactor" else office.office(found["drift"], *numbers)


@pytest.mark.parametrize("name", ["charging", "reactor", "office"])
def test_the_recorded_episode_is_one_that_the_declaration_allows(name: str) -> None:
    found = recorded(name)
    plant, players = declared(name, found), found["players"]
    played = players["learner"]
    assert played["violations"] == 0
    assert min(played["nearest"].values()) > 0.0
    assert played["promise"] == "every step safe with probability ≥ 0.95"
    assert any(each["violations"] > 0 for each in players.values())  # the limits are ones that can be broken
    path = np.array(played["path"])  # rounded to six digits
    assert len(path) == plant.horizon
    for h, u in enumerate(played["inputs"]):
        assert u in plant.inputs.values
        boxes = plant.boxes(h, path[h], u)
        assert any((path[h + 1] >= low - 1e-4).all() and (path[h + 1] <= high + 1e-4).all() for low, high in boxes)
        assert not plant.breaks(path[h + 1])
    assert np.mean(played["reward"][-20:]) > 1.5 * np.mean(next(iter(players.values()))["reward"])


@pytest.mark.parametrize("name", ["charging", "reactor", "office"])
def test_the_page_says_what_was_recorded(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for who, each in recorded(name)["players"].items():
        nearest = " | ".join(f"{value:.3g}" for value in each["nearest"].values())
        earned = f"{np.mean(each['reward'][-50:]):.1f}"
        assert f"| {who} | {earned} | {each['violations']} of {each['steps']} | {nearest} |" in page
