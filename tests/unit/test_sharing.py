"""A world handed from process to process: the very same bits, mapped and not copied, shared where it was shared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.graph import pool
from surefoot.model.labels import Names
from surefoot.worlds import sharing
from tests.drawn_worlds import certified_world
from tests.runs import AGENTS, assert_same_run
from tests.sparse_worlds import sparse_worlds


def worlds(seed: int) -> dict[str, sf.World]:
    return {
        "labels and two limits": certified_world(70_000 + seed, "uniform", limits=2, starts=2),
        "misspecified": certified_world(70_100 + seed, "rademacher", misspecified=True),
        "tuples as labels": sf.worlds.make("figure1"),
        "one template": sf.worlds.make("ladder/testing"),
        "steps of their own": sf.worlds.make("ladder/testing", shared=False),
        "one regression": sf.worlds.make("thermal/testing"),
        "sparse": sparse_worlds(np.random.default_rng(seed), anchors=True, terminal=True)[0],
        "sparse, one template": sparse_worlds(np.random.default_rng(seed), costs="general", template=True)[0],
    }


KINDS = list(worlds(0))


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that a world is made of, by name."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from leaves(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, tuple) and not all(isinstance(item, (str, int, float)) for item in value):
        for i, item in enumerate(value):
            yield from leaves(item, f"{name}[{i}]")
    elif isinstance(value, Names):
        yield f"{name}.size", len(value)
        yield f"{name}.labels", value.listed
    else:
        yield name, value


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, seed: int, tmp_path: Path) -> tuple[sf.World, sf.World]:
    world = worlds(seed)[request.param]
    sharing.write(world, tmp_path)
    return world, sharing.read(tmp_path)


def test_it_is_the_same_world(pair: tuple[sf.World, sf.World]) -> None:
    one, two = (dict(leaves(world)) for world in pair)
    assert list(one) == list(two)
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            assert two[name].dtype == value.dtype, name
            assert two[name].shape == value.shape, name
            assert two[name].tobytes() == value.tobytes(), name
        else:
            assert two[name] == value, name
            assert type(two[name]) is type(value), name


def test_what_was_one_array_is_one_array(pair: tuple[sf.World, sf.World]) -> None:
    same: list[list[int]] = []
    for world in pair:
        arrays = [value for _, value in leaves(world) if isinstance(value, np.ndarray)]
        same.append([[id(other) for other in arrays].index(id(array)) for array in arrays])
    assert same[0] == same[1]


def test_arrays_are_views_of_the_file_and_read_only(pair: tuple[sf.World, sf.World]) -> None:
    arrays = [value for _, value in leaves(pair[1]) if isinstance(value, np.ndarray)]
    for array in arrays:
        assert type(array) is np.ndarray  # compiled code takes these the fast way
        assert not array.flags.writeable
        assert array.flags.aligned
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap)


def test_digests_are_handed_over_and_true(pair: tuple[sf.World, sf.World]) -> None:
    one, two = pair
    assert (two.digest, two.problem.digest) == (one.digest, one.problem.digest)
    del two.__dict__["digest"], two.problem.__dict__["digest"]
    assert (two.digest, two.problem.digest) == (one.digest, one.problem.digest)


@pytest.mark.parametrize("agent", ["lsvi-new", "no look-ahead", "fallback"])
def test_runs_are_the_same(agent: str, pair: tuple[sf.World, sf.World], seed: int) -> None:
    one, two = (sf.run(AGENTS[agent](world.problem), world, 60, seed) for world in pair)
    assert_same_run(one, two)
    assert one.manifest == two.manifest


MEMORY = """
import sys
from pathlib import Path
import surefoot as sf
from surefoot.runs.compiled import Rollout
from surefoot.worlds import sharing

def own():  # anonymous memory of this process, in bytes: what is mapped from the file does not count
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return 1024 * int(line.split()[1])

before = own()
world = sharing.read(Path(sys.argv[1]))
total = sum(float(layer.cost_features.sum()) for layer in world.problem.graph.layers)  # touch it all
played = Rollout(sf.agents.make("fallback", world.problem), world, world.sampler(0))  # wants all layers as one
print(own() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")
def test_another_process_copies_nothing(tmp_path: Path) -> None:
    world = sf.worlds.make("ladder/testing", triplets=20_000, features=64, shared=False)
    sharing.write(world, tmp_path)
    size = (tmp_path / sharing.ARRAYS).stat().st_size
    assert size > 40e6
    done = subprocess.run([sys.executable, "-c", MEMORY, tmp_path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 0.1 * size


def test_arrays_of_one_kind_are_neighbours(tmp_path: Path) -> None:
    world = sf.worlds.make("ladder/testing", shared=False)
    sharing.write(world, tmp_path)
    mapped = sharing.read(tmp_path)
    for table in ("cost_features", "transition_features", "pair_ptr", "reward"):
        arrays = [getattr(layer, table) for layer in mapped.problem.graph.layers]
        flat, offsets = pool(arrays)
        assert len({id(array) for array in arrays}) > 1 or table == "pair_ptr"
        for array, begin in zip(arrays, offsets, strict=True):
            assert np.shares_memory(flat[begin : begin + len(array)], array)
            assert np.array_equal(flat[begin : begin + len(array)], array)
        assert not flat.flags.writeable


def test_what_only_happens_to_lie_side_by_side_is_copied() -> None:
    """Two halves of one array are one view; with a gap, in another order or of another kind they are put together."""
    whole = np.arange(24.0).reshape(12, 2)
    joined, offsets = pool([whole[:5], whole[5:]])
    assert np.shares_memory(joined, whole)
    assert offsets.tolist() == [0, 5]
    single = np.arange(12.0)  # of one entry alone numpy calls any stride contiguous
    assert pool([single[0:2:2], single[1:5]])[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    table = np.arange(40.0).reshape(8, 5)
    rows = [table[:1, :2], table.reshape(-1)[2:10].reshape(4, 2)]
    assert np.array_equal(pool(rows)[0], np.concatenate(rows))
    apart = {
        "a gap": [whole[:5], whole[6:]],
        "another order": [whole[5:], whole[:5]],
        "an overlap": [whole[:5], whole[4:]],
        "another owner": [whole[:5], whole[5:].copy()],
    }
    for name, arrays in apart.items():
        flat, _ = pool(arrays)
        assert np.array_equal(flat, np.concatenate(arrays)), name
        assert not np.shares_memory(flat, whole), name
