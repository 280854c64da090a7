"""The page on benchmarks shows what results.json holds, and `make bench` keeps what it measured."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as bench
from benchmarks import bench_first_call, bench_rlberry, bench_seeds, grid, page, picture
from benchmarks.rows import aim, falls_short, has_aim, measured, not_measured

ROOT = Path(__file__).parents[2]


def plan_row(triplets: int, dim: int, seconds: float) -> dict[str, Any]:
    return {
        "name": f"(a) plan at {triplets} triplets per step, {dim} features: time over its floor",
        "value": 2.5,
        "target": 2.0,
        "better": "lower",
        "size": f"{triplets:,} × {dim}",
        "seconds": seconds,
        "bytes_seconds": seconds / 4,
        "flops_seconds": seconds / 2.5,
        "hard_seconds": seconds / 5,
        "numpy_seconds": 20 * seconds,
        "bytes": 1e6,
        "flops": 1e9,
    }


MADE_UP: dict[str, Any] = {
    "machine": {
        **{"date": "2001-02-03", "processor": "an abacus", "cores": 2, "load": 0.0},
        **{"python": "3", "numpy": "2", "scipy": "1", "numba": "0"},
    },
    "seconds": {"bench_plan": 90.0, "bench_runs": 30.0},
    "rows": [
        plan_row(10_000, 16, 2e-3),
        plan_row(1_000_000, 64, 2.0),
        {"name": "a slope", "value": 1.05, "target": [0.9, 1.1], "better": "within"},
        {"name": "violations", "value": 0.0, "target": 0.0, "better": "lower"},
        {"name": "arrays that differ", "value": 3.0, "target": 0.0, "better": "lower"},
        {"name": "a slope of nothing", "value": 0.0, "target": 0.75, "better": "lower"},
        {"name": "a slope from nothing", "value": math.inf, "target": 0.75, "better": "lower"},
        {"name": "theirs over ours", "value": 3065.4, "target": 1000.0, "better": "higher"},
        {"name": "nobody aims at this", "value": 12.0},
        not_measured("somebody else's", "there is no network"),
    ],
}


# ---------------------------------------------------------------- page and picture


def test_the_page_shows_the_committed_numbers() -> None:
    assert page.page(page.read()) == page.PAGE.read_text(encoding="utf-8"), "run: python -m benchmarks.page"


def test_the_committed_pictures_are_there() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"\((images/benchmarks[^)#]*)", text)
    assert named == ["images/benchmarks.png", "images/benchmarks-dark.png"]
    assert all((page.PAGE.parent / name).is_file() for name in named)


def test_every_part_is_in_the_committed_numbers() -> None:
    assert {row["part"] for row in page.read()["rows"]} == set(bench.PARTS)


def test_tables_of_made_up_numbers() -> None:
    text = page.numbers(MADE_UP)
    assert "**4 of 8 aims are met.**" in text
    assert "in 2 minutes" in text
    assert "| arrays that differ | 3 | 0 | **missed** |" in text
    assert "| theirs over ours | 3,065 | ≥ 1000 | met |" in text
    assert "| nobody aims at this | 12 |  |  |" in text
    assert "| somebody else's | not measured: there is no network |  |  |" in text
    assert "| 1,000,000 × 64 | 1 M | 500 ms | 1 G | 800 ms | flops | 400 ms | 2 s | 40 s |" in text


def test_pictures_of_made_up_numbers(tmp_path: Path) -> None:
    light, dark = picture.write(MADE_UP, tmp_path)
    assert light.read_bytes()[:8] == dark.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert light.read_bytes() != dark.read_bytes()


def test_how_far_an_aim_is_met() -> None:
    margins = [picture.margin(row) for row in MADE_UP["rows"] if "target" in row]
    assert margins == pytest.approx([0.8, 0.8, 1.1 / 1.05, 1.0, 0.0, math.inf, 0.0, 3.0654])


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("row", "short", "shown"),
    [
        ({"value": 2.0, "target": 2.0, "better": "lower"}, False, "≤ 2"),
        ({"value": 2.1, "target": 2.0, "better": "lower"}, True, "≤ 2"),
        ({"value": 1.9, "target": 2.0, "better": "higher"}, True, "≥ 2"),
        ({"value": math.nan, "target": 2.0, "better": "higher"}, True, "≥ 2"),
        ({"value": 0.8, "target": (0.9, 1.1), "better": "within"}, True, "0.9 … 1.1"),
        ({"value": 0.0, "target": 0.0, "better": "lower"}, False, "0"),
        ({"value": None, "target": 1.0, "better": "lower"}, False, "≤ 1"),
        ({"value": 5.0}, False, ""),
    ],
)
def test_a_row_falls_short_or_not(row: dict[str, Any], short: bool, shown: str) -> None:
    assert (falls_short(row), aim(row)) == (short, shown)


def test_what_is_missing_says_why() -> None:
    assert measured(not_measured("x", "no core")) == "not measured: no core"


@pytest.mark.parametrize(
    ("before", "after", "slope"), [(10, 100, 1), (10, 10, 0), (0, 0, 0), (0, 1, math.inf), (5, 4, 0)]
)
def test_slope_of_regret(before: float, after: float, slope: float) -> None:
    assert bench_seeds.slope(before, after) == pytest.approx(slope)


def test_time_that_overlaps_counts_once() -> None:
    assert bench_first_call.covered([(5, 6), (0, 2), (1, 3), (1.5, 1.6)]) == 4
    assert bench_first_call.covered([]) == 0


# ---------------------------------------------------------------- make bench


@pytest.mark.parametrize("part", bench.PARTS)
def test_every_part_can_be_loaded(part: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{part}").run)


@pytest.mark.parametrize(
    ("part", "sizes"),
    [
        ("bench_bounds", {"worlds": {"thermal/testing": 1.0}, "seeds": range(1), "episodes": 5}),
        ("bench_plants", {"cells": 6, "episodes": 5, "steps": 6}),
        ("bench_seeds", {"seeds": 1, "episodes": 20}),
        ("bench_shield", {"steps": 2}),
    ],
)
def test_a_part_measures_what_its_rows_say(part: str, sizes: dict[str, Any]) -> None:
    """On problems too small to mean anything: it runs, and its rows can be shown."""
    found = importlib.import_module(f"benchmarks.{part}").run(**sizes)
    assert all(math.isfinite(row["value"]) and measured(row) for row in found)
    assert [aim(row) for row in found if has_aim(row)]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Parts by name, what each does: `make bench` with these in place of its own, its files in a scratch folder."""
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(bench, "UNFINISHED", tmp_path / "build" / "benchmarks.json")
    monkeypatch.setattr(page, "write", lambda found: tmp_path / "page.md")
    monkeypatch.setattr(picture, "write", lambda found: [])
    return {}


def run_bench(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(bench, "PARTS", tuple(parts))
    for name, run in parts.items():
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", SimpleNamespace(run=run))
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    return bench.main()


def raises(error: BaseException) -> Any:
    def run() -> list[dict[str, Any]]:
        raise error

    return run


GOOD = [{"name": "good", "value": 1.0, "target": 2.0, "better": "lower"}]


def test_a_missing_package_is_said_and_the_rest_goes_on(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts |= {"one": raises(ModuleNotFoundError("no", name="stormpy.core")), "two": lambda: GOOD}
    assert run_bench(parts, monkeypatch) == 0
    found = json.loads(bench.RESULTS.read_text(encoding="utf-8"))
    assert [row["value"] for row in found["rows"]] == [None, 1.0]
    assert found["rows"][0]["note"] == "not measured: stormpy.core is not installed"
    assert set(found["seconds"]) == {"one", "two"}
    assert "0 of 1 aims missed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (AssertionError("the two disagree"), 1)], ids=["ctrl-c", "failure"]
)
def test_what_was_measured_is_kept(
    error: BaseException, code: int, parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts |= {"one": lambda: GOOD, "two": raises(error)}
    assert run_bench(parts, monkeypatch) == code
    assert not bench.RESULTS.exists(), "the page is about whole runs"
    assert json.loads(bench.UNFINISHED.read_text(encoding="utf-8"))["rows"][0]["name"] == "good"


def test_some_parts_leave_the_page_alone(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    parts |= {"one": lambda: GOOD, "two": raises(AssertionError())}
    assert run_bench(parts, monkeypatch, "one") == 0
    assert bench.UNFINISHED.exists()
    assert not bench.RESULTS.exists()


def test_some_parts_can_take_the_place_of_their_last_measurement() -> None:
    row = {"part": "bench_plan", "name": "b", "value": 2.0}
    known = {"machine": {"date": "2001-02-03"}, "seconds": {"bench_plan": 1.0}, "rows": [row | {"value": 1.0}]}
    serve = {"part": "bench_serve", "name": "a", "value": 3.0}
    known["rows"].append(serve)
    found = bench.updated(known, {"machine": {"date": "2001-03-04"}, "seconds": {"bench_plan": 9.0}, "rows": [row]})
    assert found["rows"] == [row, serve]
    assert (found["machine"], found["later"]) == (known["machine"], {"bench_plan": "2001-03-04"})
    assert found["seconds"] == {"bench_plan": 9.0}


# ---------------------------------------------------------------- the grid of two programs


def test_both_sides_play_on_the_same_grid() -> None:
    world = bench_rlberry.world()
    problem = world.problem
    last = len(problem.graph.layers) - 1
    assert last + 1 == grid.STEPS
    for s in problem.states(last):
        for a in problem.actions(last, s):
            pair = problem.pair_index(last, s, a)
            assert problem.graph.layers[last].reward[pair] == grid.reward(s, a)
            for after in problem.successors(last, s, a):
                ours = world.probabilities[last][problem.edge_index(last, s, a, after)]
                assert ours == pytest.approx(grid.probability(s, a, after))
            assert np.isclose(sum(grid.probability(s, a, after) for after in grid.STATES), 1)


def test_the_other_environment_is_pinned_by_name_and_version() -> None:
    lines = (ROOT / "benchmarks" / "rlberry-requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in pins)
