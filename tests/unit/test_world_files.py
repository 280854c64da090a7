"""A world is a file: exact round trips, a truth written by hand, and files that lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.sweeps import sweep
from surefoot.sweeps.sweep import Contender, Spec
from tests.drawn_worlds import certified_world
from tests.sweeps import contents

WORLDS = ("thermal/testing", "figure1", "ladder/testing", "toy-text/cliff-walking")


def own() -> sf.World:
    """With a deviation, other noise, costs that differ by step, and a last cost."""
    problem = sf.Problem.from_functions(
        horizon=3,
        start="a",
        actions=lambda h, s: ["stay", ("go", 1)],
        successors=lambda h, s, a: ["a"] if a == "stay" else ["a", "b"],
        reward=lambda h, s, a: 0.2 if a == "stay" else 0.9,
        cost_features=lambda h, s, a, s2: [1.0, float(s2 == "b")],
        transition_features=lambda h, s, a, s2: [1.0 if a == "stay" else 0.5],
        terminal_cost_features=lambda s: [1.0, 0.0],
        fallback=lambda h, s: "stay",
        limits=[sf.Limit("heat </script>", bound=0.6, noise=0.05, norm=1.0, misspecification=0.01)],
    )
    extra = [np.full((layer.n_edges, 1), 0.005) for layer in problem.graph.layers]
    return sf.World(problem, [[1.0], [1.0]], [[[0.1, 0.2]], [[0.2, 0.2]], [[0.3, 0.0]]], "uniform", extra)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_round_trips_are_exact(suffix: str, tmp_path: Path) -> None:
    for world in (own(), *map(sf.worlds.make, WORLDS)):
        again = sf.World.load(world.save(tmp_path / f"world{suffix}"))
        assert (again.digest, again.problem.digest, again.noise) == (world.digest, world.problem.digest, world.noise)
        for mine, theirs in zip(again.probabilities + again.costs, world.probabilities + world.costs, strict=True):
            assert np.array_equal(mine, theirs)
        assert again.name == f"world{suffix}"
        first = (tmp_path / f"world{suffix}").read_bytes()
        assert again.save(tmp_path / f"world{suffix}").read_bytes() == first


def test_a_truth_by_hand_is_a_few_numbers(tmp_path: Path) -> None:
    world = sf.worlds.make("thermal/testing")
    truth = {
        "format": "surefoot-world",
        "version": 1,
        "transition": world.transition[0].tolist(),
        "cost": world.cost_parameters[0].tolist(),
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(truth))
    assert sf.World.load(path, world.problem).digest == world.digest
    with pytest.raises(UnreadableFile, match="a truth without its problem"):
        sf.World.load(path)
    with pytest.raises(UnreadableFile, match="the truth belongs to another problem"):
        sf.World.load(world.save(tmp_path / "whole.json"), sf.worlds.make("figure1").problem)


LIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another format": (lambda d: d.update(format="surefoot-problem"), "a problem, not a world"),
    "a newer version": (lambda d: d.update(version=2), "written by a newer version"),
    "another truth": (lambda d: d.update(noise="uniform"), "does not match its digest"),
    "a truth that is excluded": (lambda d: d["cost"][0][0].__setitem__(0, 99.0), "norm|anchor"),
    "an unknown entry": (lambda d: d.update(code="import os"), "unknown entry"),
    "text for numbers": (lambda d: d.update(transition="[1]"), "wrong type"),
    "ragged": (lambda d: d["cost"][0][0].pop(), "rows of different lengths|wrong"),
    "too deep": (lambda d: d.update(cost=[[[[[1.0]]]]]), "levels of brackets"),
    "nothing": (lambda d: d.update(cost=[]), "levels of brackets"),
    "no such array": (lambda d: d.update(cost={"array": "a99"}), "no such array"),
    "another problem": (lambda d: d["problem"]["limits"][0].update(bound=0.61), "does not match its digest"),
    "a broken problem": (lambda d: d["problem"].pop("layers"), r"an entry is missing.*\$\.problem"),
    "noise of another kind": (lambda d: d.update(noise="pink"), "noise"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_refused(lie: str, tmp_path: Path) -> None:
    path = sf.worlds.make("thermal/testing").save(tmp_path / "world.json")
    document = json.loads(path.read_text())
    change, words = LIES[lie]
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UnreadableFile, match=words) as caught:
        sf.World.load(path)
    assert str(path) in str(caught.value)


def test_a_world_in_float32_says_why_it_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="stored in float32"):
        sf.worlds.make("ladder/testing").stored_in_float32().save(tmp_path / "half.npz")
    assert not (tmp_path / "half.npz").exists()


def test_sweeps_take_a_file_as_they_take_a_name(tmp_path: Path, seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    agents, seeds = [Contender("lsvi-new"), Contender("fallback")], [seed, seed + 1]
    world.save(tmp_path / "truth.json")
    named = sweep.sweep(Spec("thermal/testing", agents, seeds, 40), tmp_path / "named", jobs=1)
    filed = sweep.sweep(Spec(str(tmp_path / "truth.json"), agents, seeds, 40), tmp_path / "filed", jobs=1)
    given = sweep.sweep(Spec(world, agents, seeds, 40), tmp_path / "given", jobs=1)
    (tmp_path / "truth.json").unlink()  # the runs keep a copy
    known = {name: data for name, data in contents(named.folder.root).items() if name.startswith("runs")}
    for outcome in (filed, given):
        root = outcome.folder.root
        assert {name: data for name, data in contents(root).items() if name.startswith("runs")} == known
        assert sweep.open_folder(root).world().digest == world.digest
        assert sweep.resume_sweep(root, jobs=1).finished == 4
    copy = tmp_path / "filed" / "world.json"
    copy.write_text(copy.read_text().replace('"noise": "gaussian"', '"noise": "uniform"'))
    with pytest.raises(UnreadableFile, match="the world cannot be made again"):
        sweep.open_folder(tmp_path / "filed").world()


def test_options_go_with_names_only(tmp_path: Path) -> None:
    path = str(sf.worlds.make("thermal/testing").save(tmp_path / "truth.json"))
    with pytest.raises(InvalidInput, match="takes no options"):
        sf.worlds.make(path, bound=0.7)
    with pytest.raises(InvalidInput, match="takes no options"):
        Spec(path, [Contender("fallback")], [0], 5, {"bound": 0.7})


def test_drawn_worlds_survive(seed: int, tmp_path: Path) -> None:
    for number in range(5):
        world = certified_world(100 * seed + number)
        assert sf.World.load(world.save(tmp_path / "w.npz")).digest == world.digest
