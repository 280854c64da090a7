"""Problems as folders of arrays: what is mapped from the disk gives the bits of what is in memory, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput, UnreadableFile, UnwritableFile
from surefoot.estimate import kernels, row_bounds
from surefoot.estimate.costs import bound_all
from surefoot.estimate.row_bounds import BoundTable, RowBounds
from surefoot.model import seals
from surefoot.plan import kernels as sweeps
from surefoot.plan import mapped as plan_of_mapped
from surefoot.plan.hope import hope, worth_at_least
from surefoot.storage.disk import FileLayer
from surefoot.storage.read_ahead import ReadAhead
from tests.irregular import assert_the_same_bits, irregular, learn
from tests.sparse_worlds import sparse_twin

WORLD = "rover/testing"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved problem; small as it is, nothing of it is copied, and it is read in small parts."""
    monkeypatch.setattr(seals, "COPIED", 0)
    monkeypatch.setattr(row_bounds, "BLOCK", 24)
    return sf.worlds.make(WORLD).problem.save(tmp_path / "big.problem")


def mapped(folder: Path) -> sf.Problem:
    problem = sf.Problem.load(folder, mapped=True)
    assert problem.mapped
    assert all(isinstance(layer.cost_features, np.memmap) for layer in problem.graph.layers)
    return problem


def test_round_trips(folder: Path) -> None:
    declared = sf.worlds.make(WORLD).problem
    whole = sf.Problem.load(folder)
    assert not whole.mapped
    assert declared.digest == whole.digest == mapped(folder).digest
    assert len({id(layer.cost_features) for layer in mapped(folder).graph.layers}) == len(
        {id(layer.cost_features) for layer in declared.graph.layers}
    )  # what steps share is stored once and shared again
    assert mapped(folder).save(folder.with_name("again.problem"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in folder.with_name("again.problem").iterdir()
    }


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lsvi-new", {}),
        ("lsvi-new", {"exploration": "ideas"}),
        ("lsvi-new", {"ideas": ["II", "III", "IV"]}),
        ("slucb-qvi", {}),
    ],
)
def test_the_same_bits(name: str, options: dict[str, Any], folder: Path) -> None:
    from surefoot.agents import registry

    world = sf.worlds.make(WORLD)
    found = []
    for problem in (world.problem, mapped(folder)):
        there = sf.World(problem, transition=world.transition, cost=world.cost_parameters)
        agent = registry.make(name, problem, **options)
        found.append((agent.plan, sf.run(agent, there, episodes=120, seed=3), agent.plan))
    (first, run, plan), (other_first, other_run, other) = found
    assert isinstance(other.bounds.upper[0], BoundTable)
    assert np.array_equal(run.regret, other_run.regret)
    for one, two in ((first, other_first), (plan, other)):
        for h in range(world.problem.horizon - 1):
            assert np.array_equal(one.bounds.upper[h], np.asarray(two.bounds.upper[h]))
            assert np.array_equal(one.bounds.lower[h], np.asarray(two.bounds.lower[h]))
            assert np.array_equal(one.certified_sets.pairs[h], two.certified_sets.pairs[h])
            assert np.allclose(one.q_row(h), two.q_row(h), rtol=1e-13)  # not kept where there is no room for it
            assert np.array_equal(one.values.value[h], two.values.value[h])
            assert np.array_equal(one.values.action[h], two.values.action[h])
    assert plan.gap == other.gap
    problem = world.problem
    for h in (0, 2):
        s = problem.states(h)[0]
        for a in problem.actions(h, s):
            assert str(plan.why(h, s, a)) == str(other.why(h, s, a))
            s2 = problem.successors(h, s, a)[-1]
            assert np.array_equal(plan.upper(h, s, a, s2), other.upper(h, s, a, s2))
            assert np.array_equal(plan.condition_1(h), other.condition_1(h))


KINDS: list[dict[str, bool]] = [{"per_pair": True}, {"one_table": True}, {"one_table": True, "shared": True}]


@pytest.mark.parametrize(("kind", "threads"), [*((kind, 3) for kind in KINDS), (KINDS[2], 1)])
def test_all_in_one_sweep(
    kind: dict[str, bool], threads: int, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no chunk ends with a block, a state or a pair's rows; on one thread, and on several that take turns."""
    monkeypatch.setattr("surefoot.threads.usable_threads", lambda: threads)
    monkeypatch.setattr(seals, "COPIED", 0)
    monkeypatch.setattr(row_bounds, "BLOCK", 24)
    monkeypatch.setattr(plan_of_mapped, "BLOCK", 100)
    problem = irregular(seed, **kind)
    both = problem, mapped(problem.save(tmp_path / "irregular.problem"))
    here, there = (sf.LsviNew(each, budget=1e6) for each in both)
    assert_the_same_bits(here.plan, there.plan)
    plans = [learn(agent, 12, seed) for agent in (here, there)]
    assert plans[0].directed is not None
    assert 0 < plans[0].n_certified() < sum(layer.n_pairs for layer in problem.graph.layers)
    assert_the_same_bits(plans[0], plans[1])
    assert there.plan.values.low is not None


@pytest.mark.parametrize("h", [0, 2])
def test_data_that_contradict_what_was_declared(
    h: int, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one step alone, the first or the last that the sweep comes to: then nothing of the others is certified."""
    monkeypatch.setattr(seals, "COPIED", 0)
    monkeypatch.setattr(row_bounds, "BLOCK", 24)
    problem = irregular(seed)
    plans = []
    for each in (problem, mapped(problem.save(tmp_path / "irregular.problem"))):
        agent = sf.LsviNew(each)
        for _ in range(50):
            agent.costs.add(h, each.graph.layers[h].cost_features[900], np.array([5.0, -5.0]))
        agent.replan()
        plans.append(agent.plan)
    assert not plans[0].consistent
    assert_the_same_bits(plans[0], plans[1])


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_table_is_read_once_for_each_step(
    kind: dict[str, bool], tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "COPIED", 0)
    monkeypatch.setattr(row_bounds, "BLOCK", 24)
    agent = sf.LsviNew(mapped(irregular(seed, **kind).save(tmp_path / "irregular.problem")))
    learn(agent, 12, seed)
    tables = {id(layer.cost_features): layer.cost_features for layer in agent.problem.graph.layers}
    seen = {key: list[tuple[int, int]]() for key in tables}

    def note(x: Any, first: int, end: int) -> None:
        """Rows first … end-1 of x, which may be a part of a table."""
        for key, table in tables.items():
            if np.shares_memory(x, table):
                at = (x.ctypes.data - table.ctypes.data) // table.strides[0]
                seen[key].append((at + first, at + end))

    def bounds(x: Any, rows: Any, *others: Any) -> None:
        note(x.values, rows[0], rows[-1] + 1)
        bounding(x, rows, *others)

    def expected(asked: Any, wanted: Any) -> None:
        if len(wanted):
            note(asked.x.values, asked.ahead.pair_ptr[wanted[0]], asked.ahead.pair_ptr[wanted[-1] + 1])

    def values(*words: Any) -> None:
        expected(words[8], np.flatnonzero(words[5]))
        of_values(*words)

    def worths(*words: Any) -> None:
        expected(words[3], words[2][words[2] >= 0])
        of_worths(*words)

    def read(self: Any, x: Any, room: Any) -> Any:
        note(x, 0, len(x))
        return taken(self, x, room)

    bounding, of_values, of_worths, taken = kernels.bound, sweeps.values, sweeps.worths, ReadAhead._read
    monkeypatch.setattr(ReadAhead, "_read", read)
    monkeypatch.setattr(kernels, "bound", bounds)
    monkeypatch.setattr(sweeps, "values", values)
    monkeypatch.setattr(sweeps, "worths", worths)

    def readings(rows: list[tuple[int, int]]) -> int:
        """How often somebody begins again: goes back by more than the part that is still in memory."""
        begun, furthest = 0, np.inf
        for first, end in rows:
            if first < furthest - 1000:
                begun, furthest = begun + 1, 0
            furthest = max(furthest, end)
        return begun

    by, known = plan_of_mapped.Mapped(agent.problem), agent.value_ellipsoids()
    bound = by.bound_costs(agent.costs, agent.cost_confidence, known)
    certified, hoped = by.hope(bound)
    steps = len(agent.problem.graph.layers)
    assert [readings(rows) for rows in seen.values()] == [steps // len(tables)] * len(tables)
    assert all(min(rows)[0] == 0 and max(end for _, end in rows) == len(tables[key]) for key, rows in seen.items())
    for made in seen.values():
        made.clear()
    hope(agent.problem, bound, certified, known)  # as of a problem in memory: a sweep for V, and one for V̄
    assert [readings(rows) for rows in seen.values()] == [2 * steps // len(tables)] * len(tables)
    assert np.array_equal(hoped.sure.low, worth_at_least(agent.problem.graph, hoped.sure.action, known))


def test_exploring_reads_again_only_what_differs(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "COPIED", 0)
    monkeypatch.setattr(row_bounds, "BLOCK", 24)
    monkeypatch.setattr(plan_of_mapped, "BLOCK", 8)
    walk, parts = plan_of_mapped.Mapped._walk, list[int]()

    def noted(self: Any, layer: Any, rows: int, work: Any, states: Any = None) -> bool:
        found = list[slice]()

        def seen(*part: Any) -> Any:
            found.append(part[0])
            return work(*part)

        fine = walk(self, layer, rows, seen, states)
        if states is not None:
            assert all(states[[own.start, own.stop - 1]].all() for own in found)
            assert sum(states[own].sum() for own in found) == states.sum()
            parts.append(layer.n_states - sum(own.stop - own.start for own in found))
        return fine

    monkeypatch.setattr(plan_of_mapped.Mapped, "_walk", noted)
    problem = irregular(seed, one_table=True)
    agents = [sf.LsviNew(each, budget=1e6) for each in (problem, mapped(problem.save(tmp_path / "irregular.problem")))]
    plans = [learn(agent, 12, seed) for agent in agents]
    assert plans[1].directed is not None
    assert_the_same_bits(*plans)
    assert max(parts) > 0


def test_check_and_export(folder: Path, tmp_path: Path) -> None:
    world, problem = sf.worlds.make(WORLD), mapped(folder)
    assert str(sf.check(problem)) == str(sf.check(world.problem))
    for i, each in enumerate((world.problem, problem)):
        there = sf.World(each, transition=world.transition, cost=world.cost_parameters)
        agent = sf.LsviNew(each)
        sf.run(agent, there, episodes=60, seed=0).export(tmp_path / f"{i}.json")
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


@pytest.mark.parametrize("block", [1, 40, 500])
def test_any_rows_are_those_of_the_whole_table(block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = irregular(seed)
    agent, layer = sf.LsviNew(problem), problem.graph.layers[0]
    learn(agent, 5, seed)
    known, x = [agent.costs.ellipsoids(0, agent.cost_confidence)], layer.cost_features

    def bounding(rows: Any) -> tuple[Any, Any]:
        return bound_all(rows, problem.graph.anchors[0], known, agent.costs.families)

    bounds = RowBounds(x, np.zeros((1, len(problem.limits))), bounding)
    bounds.block = block
    upper, lower = bounding(x)
    table = BoundTable(bounds, 0)
    assert np.array_equal(np.asarray(table), upper)
    limits = np.median(upper, axis=0)
    assert np.array_equal(table.kept(slice(0, len(x)), limits), (upper <= limits).all(axis=1))
    assert [bounds.look(np.full(len(limits), -np.inf)) for _ in range(2)] == [False, False]  # however often it is asked
    assert bounds.look(np.full(len(limits), np.inf))
    zero = np.zeros(len(limits))
    assert np.array_equal(BoundTable(bounds, 1).kept(slice(0, len(x)), zero), (lower <= 0.0).all(axis=1))
    rows = rng.integers(0, len(x), 300)
    assert np.array_equal(table[rows], upper[rows])
    assert np.array_equal(BoundTable(bounds, 1)[rows], lower[rows])
    mask = rng.random(len(x)) < 0.3
    assert np.array_equal(table[mask], upper[mask])
    first, end = sorted(rng.integers(0, len(x) + 1, 2).tolist())
    assert np.array_equal(table[first:end], upper[first:end])
    assert np.array_equal(table[len(x) - 1], upper[-1])
    assert table[len(x) - 1, 1] == upper[-1, 1]


def test_the_parts_of_a_layer_are_the_layer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name in (WORLD, "thermal/testing"):
        for layer in sf.worlds.make(name).problem.graph.layers:
            parts = list(layer.parts(int(rng.integers(1, 60))))
            assert parts[0][0].start == 0
            assert parts[-1][0].stop == layer.n_states
            for states, pairs, rows, part in parts:
                assert np.array_equal(
                    part.pair_ptr + layer.pair_ptr[pairs.start], layer.pair_ptr[pairs.start : pairs.stop + 1]
                )
                assert np.array_equal(part.cost_features, layer.cost_features[rows])
                assert np.array_equal(part.fallback >= 0, layer.fallback[states] >= 0)
            assert np.array_equal(np.concatenate([part.successor for *_, part in parts]), layer.successor)


def test_every_array_of_a_part_is_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that work on it waits for no page, and dense or sparse it is the part."""
    monkeypatch.setattr(seals, "COPIED", 0)
    dense = sf.worlds.make(WORLD).problem
    for i, problem in enumerate((dense, sparse_twin(dense))):
        layer = sf.Problem.load(problem.save(tmp_path / f"{i}.problem"), mapped=True).graph.layers[1]
        tables = [x for x in layer.arrays() if isinstance(x, np.memmap)]
        with ReadAhead(layer.arrays()) as reading:
            read = reading.parts(layer.cuts(40), lambda cut, read, layer=layer: layer.part(*cut, read))
            for lent, whole in zip(read, layer.parts(40), strict=True):
                with lent as found:
                    assert found[:3] == whole[:3]
                    for own, x in zip(found[3].arrays(), whole[3].arrays(), strict=True):
                        assert np.array_equal(own, x)
                        assert not any(np.may_share_memory(own, table) for table in tables)


# ---------------------------------------------------------------- files that are not as they were


def test_a_file_that_changes_under_a_plan(folder: Path) -> None:
    agent = sf.LsviNew(mapped(folder))
    agent.replan()
    path = max(folder.glob("*.bin"), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    with pytest.raises(AssumptionBroken, match=f"changed after it was declared: {path.stem}"):
        agent.replan()


def test_damage_is_found(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for path in sorted(folder.glob("*.bin")):
        data = path.read_bytes()
        if not data:
            continue
        at = int(rng.integers(len(data)))
        for broken, words in (
            (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "damaged or altered"),
            (data[:-1], "wrong size"),
            (data + b"x", "wrong size"),
        ):
            path.write_bytes(broken)
            for how in (True, False):
                with pytest.raises(UnreadableFile, match=rf"{words}.*{folder}, \$.arrays.{path.stem}"):
                    sf.Problem.load(folder, mapped=how)
        path.write_bytes(data)
    assert sf.Problem.load(folder).horizon


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "newer version"),
        ({"format": "other"}, "not a saved problem"),
        ({"arrays": 3}, "does not describe the arrays"),
        ({"arrays": {}}, "missing, or not one of the arrays"),
        ({"horizon": 1}, "horizon is below 2"),
        ({"extra": 1}, "unknown entry"),
    ],
)
def test_a_header_that_lies(change: dict[str, Any], words: str, folder: Path) -> None:
    header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
    (folder / "header.json").write_text(json.dumps({**header, **change}), encoding="utf-8")
    with pytest.raises(UnreadableFile, match=words):
        sf.Problem.load(folder, mapped=True)


@pytest.mark.parametrize("entry", [{"dtype": "|O"}, {"shape": [-1]}, {"shape": [1 << 70]}, {"crc32": "xyz"}])
def test_an_array_that_is_described_wrongly(entry: dict[str, Any], folder: Path) -> None:
    header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
    header["arrays"]["a0"].update(entry)
    (folder / "header.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(UnreadableFile, match=r"does not describe an array: .*\$.arrays.a0"):
        sf.Problem.load(folder, mapped=True)


def test_what_cannot_be_mapped_or_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sf.Problem.load(folder)
    with pytest.raises(InvalidInput, match="the folder already exists"):
        problem.save(folder)
    with pytest.raises(InvalidInput, match=r"only a .problem can be mapped"):
        sf.Problem.load(problem.save(tmp_path / "x.npz"), mapped=True)
    (tmp_path / "empty.problem").mkdir()
    with pytest.raises(UnreadableFile, match=r"no header.json"):
        sf.Problem.load(tmp_path / "empty.problem")
    (tmp_path / "file.problem").write_text("x")
    with pytest.raises(UnreadableFile, match="not a folder"):
        sf.Problem.load(tmp_path / "file.problem")

    def full(self: Any, file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileLayer, "fsync", full)
    with pytest.raises(UnwritableFile, match="the disk is full"):
        problem.save(tmp_path / "other.problem")
    assert not [
        path for path in tmp_path.iterdir() if path.name.startswith(".surefoot") or path.name == "other.problem"
    ]
