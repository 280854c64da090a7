"""Pictures of worlds: every family is drawn, with and without a plan, and says what it shows. Warnings are errors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.model.labels import Label
from surefoot.reports.charts import Chart, Curve
from surefoot.reports.classes import Class, classify
from surefoot.reports.pictures.style import DARK, LIGHT, LOOKS, look_of
from surefoot.reports.pictures.svg import line_chart
from surefoot.reports.wording import with_words, wording_of
from surefoot.worlds.registry import FAMILIES

TESTING = [next(iter(family.ids())) for family in FAMILIES]
# What an axis, a title or a mark of each kind of picture must say.
WORDS = {
    "thermal": ["heat over time", "step", "number: the largest certified power"],
    "power": ["case6ww", "storage", "limit", "line 1-5", "charge", "dear,", "local"],
    "driving": ["gap, m", "own speed, m/s", "car in front: 15 m/s", "a collision may be inevitable"],
    "rover": ["crater: no safe action", "start", "eastward"],
    "figure1": ["step 5", "end", "states (squares), actions (circles)"],
    "toy-text": ["the map", "column", "row", "cannot be reached safely"],
    "heights": ["the map", "column", "row", "certified actions lead there"],
    "ladder": ["actions by step"],
    "ablation": ["states (squares), actions (circles)"],
}


@pytest.mark.parametrize("name", TESTING)
def test_every_world_is_drawn(name: str, tmp_path: Path) -> None:
    world = sf.worlds.make(name)
    plan = sf.run(sf.LsviNew(world.problem), world, episodes=3, seed=0).plan
    path = sf.draw(world, plan, tmp_path / "with.svg")
    text = path.read_text(encoding="utf-8")
    for word in (name, "certified", "truly safe actions certified", *WORDS.get(name.partition("/")[0], [])):
        assert word in text, f"{name}: {word!r} is not in the picture"


@pytest.mark.parametrize(
    ("name", "paper"), [("thermal/testing", LIGHT), ("rover/testing", DARK), ("lower-bound/1", LIGHT)]
)
def test_without_a_plan_the_fallback_is_shown(name: str, paper: object, tmp_path: Path) -> None:
    path = sf.draw(sf.worlds.make(name), path=tmp_path / "picture.png", paper=paper)
    assert path.read_bytes().startswith(b"\x89PNG")
    figure = sf.draw(sf.worlds.make(name))
    words = " ".join(text.get_text() for legend in figure.legends for text in legend.get_texts())
    assert "the fallback's, safe by assumption" in words
    assert "not yet certified" not in words


def test_a_world_of_ones_own_is_drawn_as_its_graph(tmp_path: Path) -> None:
    """It has no name; the labels are still there, shortened where they are long."""
    made = sf.worlds.make("ablation/look-ahead")
    world = sf.World(made.problem, transition=made.transition, cost=made.cost_parameters)
    assert world.name is None
    text = sf.draw(world, path=tmp_path / "own.svg").read_text(encoding="utf-8")
    for word in ("bridge", "gorge", "overload", "step 0"):
        assert word in text


def test_squares_and_texts_of_a_graph_do_not_overlap() -> None:
    figure = sf.draw(sf.worlds.make("figure1"))
    figure.canvas.draw()
    axes = figure.axes[0]
    steps = [text.get_window_extent() for text in axes.texts if text.get_text().startswith("step")]
    squares = [patch.get_window_extent() for patch in axes.patches]
    assert not any(a.overlaps(b) for a in steps for b in squares)
    assert not any(a.overlaps(b) for i, a in enumerate(steps) for b in steps[:i])


def test_no_two_agents_of_a_chart_look_alike_without_colour() -> None:
    looks = [look_of(name, n)[1:] for n, name in enumerate([*LOOKS, "one's own", "another", "a third", "a fourth"])]
    assert len(set(looks)) == len(looks)


def test_names_of_levels_are_drawn_over_the_lines() -> None:
    line = Curve("measured", "", (1, 2), (0.5, 0.7), (0.5, 0.7), (0.5, 0.7))
    svg = line_chart(Chart("limit", "Limit", "strain", "", (line,), levels=(("limit", 0.6),)))
    assert svg.index("<polyline") < svg.index(">limit<")


def test_the_same_picture_has_the_same_bytes(tmp_path: Path) -> None:
    world = sf.worlds.make("figure1")
    one, two = (sf.draw(world, path=tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert one == two


def test_a_plan_of_another_problem_is_refused() -> None:
    world, other = sf.worlds.make("figure1"), sf.worlds.make("thermal/testing")
    plan = sf.run(sf.LsviNew(other.problem), other, episodes=1, seed=0).plan
    with pytest.raises(ValueError, match="another problem"):
        sf.draw(world, plan)


def test_classes_compare_plan_and_truth() -> None:
    world = sf.worlds.make("thermal/testing")
    safe = sf.exact.safe_sets(world)[1]
    plan = sf.run(sf.LsviNew(world.problem), world, episodes=20, seed=0).plan
    assert plan is not None
    view = classify(world, plan)
    for h, kinds in enumerate(view.pairs):
        certified = plan.certified_sets.pairs[h]
        np.testing.assert_array_equal(kinds == Class.CERTIFIED, certified & safe[h])
        np.testing.assert_array_equal(kinds == Class.OPEN, ~certified & safe[h])
        np.testing.assert_array_equal(kinds == Class.UNSAFE, ~certified & ~safe[h])
    assert sum(view.count().values()) == sum(layer.n_pairs for layer in world.problem.graph.layers)
    assert view.csv().count("\n") == 1 + sum(view.count().values())
    assert [h for h, _ in view.path] == list(range(world.problem.horizon))


def test_what_is_allowed_but_unsafe_is_a_class_of_its_own() -> None:
    world = sf.worlds.make("thermal/testing")
    plan = sf.run(sf.agents.make("slucb-qvi", world.problem), world, episodes=400, seed=0).plan
    assert classify(world, plan).count()[Class.WRONG] > 0


def test_the_registry_names_its_worlds() -> None:
    world = sf.worlds.make("thermal/testing")
    assert world.name == "thermal/testing"
    assert world.named("other").digest == world.digest
    assert world.name == "thermal/testing"


def test_coordinates_make_a_map_of_ones_own_world(tmp_path: Path) -> None:
    rover = sf.worlds.make("rover/testing")
    own = sf.World(rover.problem, rover.transition, rover.cost_parameters, deviation=rover.deviation)
    figure = sf.draw(own, coordinates=lambda cell: (cell[1], -cell[0]))
    (axes,) = figure.axes
    shown = {label for h in range(own.problem.horizon) for label in own.problem.states(h)[:]}
    corners = {(round(patch.get_x(), 6), round(patch.get_y(), 6)) for patch in axes.patches}
    assert len(corners) == len(shown)  # a square each
    assert sf.draw(own, path=tmp_path / "map.svg", coordinates=lambda cell: (cell[1], -cell[0])).exists()
    for wrong in (lambda cell: 3, lambda cell: (1, math.nan), lambda cell: ("x", "y"), lambda cell: (1, 2, 3)):
        with pytest.raises(InvalidInput, match=r"coordinates are a pair .*state \("):
            sf.draw(own, coordinates=wrong)  # type: ignore[arg-type]


def test_places_are_coloured_by_the_ways_that_lead_there() -> None:
    """A hole has a certified action, to wait; but no safe one leads into it."""
    lake = sf.worlds.make("toy-text/frozen-lake-4x4")
    holes = {5, 7, 11, 12}
    before = classify(lake).ways_to()
    assert all((before[square] == Class.UNSAFE) == (square in holes) for square in range(16))
    assert before[0] == Class.CERTIFIED  # where the fallback stays
    run = sf.run(sf.LsviNew(lake.problem), lake, episodes=300, seed=0)
    after = classify(lake, run.plan).ways_to()
    assert {square for square in range(16) if after[square] == Class.UNSAFE} == holes
    way = [lake.problem.states(h)[i] for h, i in classify(lake, run.plan).path]
    assert all(after[label] == Class.CERTIFIED for label in way)


def test_numbers_have_words() -> None:
    def called(name: str, h: int, state: Label, action: Label) -> tuple[str, str]:
        wording = wording_of(sf.worlds.make(name).problem, name)
        return wording.state(state), wording.action(h, state, action)

    assert called("thermal/testing", 1, 3, 1) == ("heat 0.43", "power 0.5")
    assert called("toy-text/frozen-lake-4x4", 2, 6, 0) == ("row 1, column 2", "left")
    assert called("toy-text/cliff-walking", 1, (36, -100.0), 0) == ("row 3, column 0, after a fall", "up")
    taxi = "row 2, column 2, passenger Y, to R"
    assert called("toy-text/taxi", 0, 248, 4) == (taxi, "pick up")
    assert called("heights/testing", 0, 0, 1) == ("row 0, column 0", "down")  # a corner has no way up
    assert called("heights/testing", 0, 8, 1) == ("row 1, column 1", "up")
    assert called("driving/testing", 0, (50, 5, 10), "hold") == ("", "")
    assert with_words(1, "power 0.5") == "1 (power 0.5)"
    assert with_words(("north", 0.5), "") == "(north, 0.5)"


def test_every_named_world_can_be_worded() -> None:
    """No label of a testing size is beyond the words."""
    for name in ("thermal/testing", "power/testing", "toy-text/taxi", "toy-text/cliff-walking", "heights/testing"):
        problem = sf.worlds.make(name).problem
        wording = wording_of(problem, name)
        for h in range(problem.horizon - 1):
            for state in problem.states(h)[:]:
                assert isinstance(wording.state(state), str)
                for action in problem.actions(h, state):
                    assert isinstance(wording.action(h, state, action), str)


def test_what_is_no_world_and_no_plan_is_refused_by_name() -> None:
    agent = sf.PlantAgent(plant := sf.worlds.tank().plant)
    with pytest.raises(InvalidInput, match=r"draw needs a World or a Plant: a Plan\. The plan comes second"):
        sf.draw(agent.plan, plant)
    with pytest.raises(InvalidInput, match=r"draw needs a Plan: a PlantAgent\. Of an agent, give agent.plan"):
        sf.draw(plant, agent)
