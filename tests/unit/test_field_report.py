"""The numbers of a comparison, by hand; its command, in small; and the page that says the same as the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.registry import card
from surefoot.cli.compare import WORLDS, compare_command, contenders
from surefoot.errors import SurefootError
from surefoot.reports.field import LEVELS, Cell, Field, bootstrap_interval, read_field

ROOT = Path(__file__).parents[2]


def cell(world: str, label: str, earned: list[float], violations: list[int]) -> Cell:
    n = len(earned)
    ones = np.ones(n)
    return Cell(
        world, label, label == "good", 10, tuple(range(n)), np.array(earned), ones, ones, np.array(violations), ones
    )


def made() -> Field:
    cells = [
        cell("one", "good", [0.5, 1.0], [0, 0]),
        cell("two", "good", [0.0, 0.2], [0, 0]),
        cell("one", "bold", [1.5, 1.1], [5, 0]),
        cell("two", "bold", [0.9, 0.7], [20, 20]),
    ]
    return Field(("one", "two"), ("good", "bold"), {(each.world, each.label): each for each in cells})


def test_the_numbers_of_an_agent_by_hand() -> None:
    good, bold = made().ranked()
    assert (good.earned, good.per_episode, good.unsafe_runs, good.runs, good.guaranteed) == (0.425, 0.0, 0, 4, True)
    assert good.milliseconds == 100.0
    assert bold.earned == pytest.approx((1.3 + 0.8) / 2)
    assert bold.per_episode == pytest.approx((0.25 + 2.0) / 2)
    assert (bold.unsafe_runs, bold.guaranteed) == (3, False)
    assert good.earned_between[0] <= good.earned <= good.earned_between[1]


def test_a_profile_counts_runs_and_leaves_the_unsafe_out_when_asked() -> None:
    field = made()
    at = {float(level): i for i, level in enumerate(LEVELS)}
    assert field.profile("good", True)[[at[0.0], at[0.2], at[0.5], at[0.51], at[1.0]]].tolist() == [
        1,
        0.75,
        0.5,
        0.25,
        0.25,
    ]
    assert field.profile("bold", True)[[at[0.0], at[1.0]]].tolist() == [0.25, 0.25]
    assert field.profile("bold", False)[[at[0.7], at[0.71], at[1.0]]].tolist() == [1.0, 0.75, 0.5]


def test_an_interval_is_of_the_seeds_within_each_world() -> None:
    assert bootstrap_interval([np.array([1.0, 1.0]), np.array([3.0, 3.0])]) == (2.0, 2.0)  # worlds are not drawn
    low, high = bootstrap_interval([np.arange(100.0)])
    assert 41 < low < 47
    assert 52 < high < 58


def test_tables_put_the_safe_first_and_mark_the_unsafe() -> None:
    text = made().markdown()
    assert text.index("`good`") < text.index("`bold`")
    assert "| `bold` | 1.30 · 1/2 ✗ | 0.80 · 2/2 ✗ |" in text
    assert len(made().csv().splitlines()) == 1 + 8


def test_the_command_in_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice: the second time nothing is played. "earned" is 1 − regret/(K·gap) of the ledgers."""
    options: dict[str, Any] = {"world": ["figure1"], "agent": ["lsvi-new", "dope-tuned", "mine=oplb"], "jobs": 1}
    for _ in range(2):
        compare_command(**options, episodes=20, seeds="0:2", out=tmp_path / "field")
    assert "lsvi-new" in capsys.readouterr().out
    assert {"field.csv", "field.md", "plane.png", "profiles.svg"} <= {
        path.name for path in (tmp_path / "field").iterdir()
    }
    field = read_field(tmp_path / "field")
    assert field.labels == ("lsvi-new", "dope-tuned", "mine")
    ledger = sf.Ledger.load(tmp_path / "field/figure1/runs/lsvi-new/seed-0001")
    end = ledger.manifest["summary"]
    gap = end["best_value"] - end["fallback_value"]
    assert field.cells["figure1", "lsvi-new"].earned[1] == pytest.approx(1 - end["total_regret"] / (20 * gap))
    policy = (tmp_path / "field/figure1/runs/mine/seed-0000/policy.json").read_text(encoding="utf-8")
    assert "actions are drawn, and these are the likeliest" in policy
    with pytest.raises(SurefootError, match="no runs of a comparison"):
        read_field(tmp_path)


def test_the_comparison_is_large_enough_and_of_things_that_exist() -> None:
    """At least 12 agents and 8 worlds, some of them without traps."""
    found = contenders(1000)
    assert len({each.agent for each in found}) >= 12
    assert len(WORLDS) >= 8
    assert set(WORLDS) <= set(sf.worlds.names())
    assert {each.agent for each in found} | {"lsvi-new-paper"} == {*sf.agents.names(), "oracle-shield"}


def test_the_cards_of_the_page_are_those_of_the_code() -> None:
    """After a change of a docstring: python docs/make_field.py."""
    spec = importlib.util.spec_from_file_location("make_field", ROOT / "docs/make_field.py")
    assert spec is not None
    assert spec.loader is not None
    made_by = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made_by)
    page = (ROOT / "docs/field.md").read_text(encoding="utf-8")
    assert made_by.cards() in page
    assert card("dope").may_violate in page
