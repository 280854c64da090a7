"""Features stored in float32: what rounding takes is declared, to the last digit; files and errors."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.declaration import read_problem
from surefoot.errors import InvalidInput
from surefoot.model import features, restated
from surefoot.study.comparing import problem_difference
from tests.drawn_worlds import certified_world
from tests.narrow import star, tables_of, upcast
from tests.saved_problems import DENSE, PROBLEMS, assert_same, members_of, refused, repack, sharing_of, template

# --- how much is declared -------------------------------------------------------------------------------


def test_the_misspecification_by_hand() -> None:
    """0.1 is stored as 0.100000001490116…, which is 1.49e-9 too much; 0.25 and 0.5 as they are."""
    limits = [
        sf.Limit("one", bound=0.5, noise=0.1, norm=2.0),
        sf.Limit("two", bound=0.5, noise=0.1, norm=4.0, misspecification=0.125),
        sf.Limit("none", bound=0.5, noise=0.1, norm=0.0),
    ]
    features = np.full((12, 2), 0.25)
    features[7] = 0.1, 0.5
    problem = template(cost_features=features, limits=limits).stored_in_float32()
    off = 13421773 / 2**27 - 0.1  # float32's nearest to 0.1, less 0.1
    assert 1.49e-9 < off < 1.4902e-9
    one, two, none = problem.limits
    assert one.misspecification == pytest.approx(2.0 * off, rel=1e-14)
    assert two.misspecification == pytest.approx(0.125 + 4.0 * off, rel=1e-15)
    assert none == limits[2]
    for limit, before in zip(problem.limits, limits, strict=True):
        assert (limit.name, limit.bound, limit.noise, limit.norm) == (
            before.name,
            before.bound,
            before.noise,
            before.norm,
        )


def test_the_last_layer_counts() -> None:
    last = np.zeros((6, 2))
    last[3] = 0.3, 0.4  # off by 1.19e-8 and 5.96e-9
    problem = template(cost_features=np.ones((12, 2)), terminal_cost_features=last).stored_in_float32()
    off = math.hypot(0.3 - float(np.float32(0.3)), 0.4 - float(np.float32(0.4)))
    assert problem.limits[0].misspecification == pytest.approx(off, rel=1e-14)


def test_exact_features_add_nothing() -> None:
    problem = template(cost_features=np.linspace(-1, 1, 24).round(1).reshape(12, 2) * 5)  # halves
    stored = problem.stored_in_float32()
    assert stored.limits == problem.limits
    assert all(table.dtype == np.float32 for table in tables_of(stored))


def test_transition_features_add_nothing_to_costs() -> None:
    """They decide no safety; the docstring bounds what they do to optimism."""
    stored = template(cost_features=np.ones((12, 2)), transition_features=np.full((12, 1), 0.1)).stored_in_float32()
    assert stored.limits == template().limits
    assert stored.graph.layers[0].transition_features.dtype == np.float32


@pytest.mark.parametrize("kind", ["usual", "tiny beside large", "long", "all sizes"])
def test_it_is_rounded_up_and_hardly(kind: str, seed: int) -> None:
    """In exact fractions: (ζ' − ζ)/L is no less than the longest x − fl(x), and no more than a few digits above."""
    rng = np.random.default_rng([seed, 32])
    for _ in range(20):
        x = rng.uniform(-1, 1, (12, 40 if kind == "long" else 2))
        if kind == "tiny beside large":  # 1 is exact, so all that is lost has squares below any float64
            x = np.stack([np.ones(12), rng.uniform(0, 1e-200, 12)], axis=1)
        if kind == "all sizes":
            x *= 10.0 ** rng.integers(-30, 30, (12, 1))
        norm = float(rng.uniform(0.1, 10.0))
        problem = template(cost_features=x, limits=sf.Limit("level", bound=0.5, noise=0.1, norm=norm))
        stored = problem.stored_in_float32()
        declared = Fraction(stored.limits[0].misspecification) / Fraction(norm)
        table = stored.graph.layers[0].cost_features
        lost = [
            [Fraction(a) - Fraction(b) for a, b in zip(*pair, strict=True)]
            for pair in zip(x.tolist(), table.tolist(), strict=True)
        ]
        longest = max(sum(part * part for part in row) for row in lost)
        assert longest > 0
        loss = Fraction(restated.round_table("cost feature", x, str)[1])  # what is declared is rounded up once more
        assert loss * loss >= longest
        assert declared * declared >= longest
        assert declared * declared <= longest * (1 + Fraction(1, 10**12))


# --- all else is kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_else_is_equal(name: str) -> None:
    problem = PROBLEMS[name]()
    stored = problem.stored_in_float32()
    assert sharing_of(stored) == sharing_of(problem)  # what layers shared, they share
    for before, now in zip(tables_of(problem), tables_of(stored), strict=True):
        assert now.dtype == np.float32
        assert not now.flags.writeable
        assert now.flags.c_contiguous
        assert np.array_equal(now, before.astype(np.float32))
    for before, now in zip(problem.graph.anchors, stored.graph.anchors, strict=True):
        assert before is now  # exact
    for layer, other in zip(problem.graph.layers, stored.graph.layers, strict=True):
        for field in ("state_ptr", "pair_ptr", "successor", "reward", "fallback"):
            assert getattr(layer, field) is getattr(other, field)
    assert stored.naming is problem.naming
    assert stored.stored_in_float32() is stored
    assert stored.graph.shared_features == problem.graph.shared_features
    assert all(table.dtype == np.float32 for table in tables_of(stored.pruned()))


def test_sparse_features_stay_as_they_are() -> None:
    problem = PROBLEMS["sparse"]()
    assert not tables_of(problem)
    assert problem.stored_in_float32() is problem
    mixed = PROBLEMS["empty_rows"]()
    stored = mixed.stored_in_float32()
    for layer, other in zip(mixed.graph.layers, stored.graph.layers, strict=True):
        assert other.cost_features is layer.cost_features
    assert {table.dtype.name for table in tables_of(stored)} == {"float32"}
    assert stored.limits == mixed.limits  # costs were not rounded


WRONG = [(1e39, "overflows"), (-1e120, "overflows"), (1.1e-42, "keeps three digits"), (1e-120, "vanishes")]


@pytest.mark.parametrize(("value", "why"), WRONG, ids=[f"{value} {why}" for value, why in WRONG])
def test_what_float32_has_no_numbers_for_is_refused(value: float, why: str) -> None:
    features = np.ones((12, 2))
    features[5] = value, 0.0
    problem = template(cost_features=features)
    with pytest.raises(InvalidInput, match="cost feature does not fit float32") as caught:
        problem.stored_in_float32()
    error = caught.value
    assert error.where == "step 0, state 2, action 1, successor 3"
    assert repr(value) in error.got
    assert "keep this problem in float64" in error.fix
    with pytest.raises(InvalidInput, match=r"^transition feature does not fit float32"):
        template(transition_features=features).stored_in_float32()
    with pytest.raises(InvalidInput, match=r"^terminal cost feature does not fit float32: step 3, state 5"):
        template(cost_features=np.ones((12, 2)), terminal_cost_features=features[:6]).stored_in_float32()


# --- the truth ------------------------------------------------------------------------------------------


def worlds(seed: int) -> dict[str, sf.World]:
    return {
        "star": star(np.random.default_rng(seed)),
        "anchors": certified_world(73_000 + seed, anchors=True, terminal_costs=True),
        "not quite linear": certified_world(73_100 + seed, misspecified=True, terminal_costs=True, anchors=True),
        "one template": sf.worlds.make("ladder/testing"),
        "thermal": sf.worlds.make("thermal/testing", mismatch=0.03),
    }


@pytest.mark.parametrize("kind", list(worlds(0)))
def test_a_world_keeps_its_truth(kind: str, seed: int) -> None:
    world = worlds(seed)[kind]
    stored = world.stored_in_float32()
    assert all(table.dtype == np.float32 for table in tables_of(stored.problem))
    for name in ("probabilities", "cumulative", "costs", "terminal_costs", "transition", "cost_parameters", "noise"):
        assert getattr(stored, name) is getattr(world, name)
    assert not stored.misspecified_beyond_declaration
    assert stored.digest != world.digest
    assert stored.stored_in_float32() is stored
    declared = np.array([limit.misspecification for limit in stored.problem.limits])
    assert stored.deviation is not None
    truths = [*world.costs, *([] if world.terminal_costs is None else [world.terminal_costs])]
    used = tables_of(stored.problem)
    used = used[: 2 * len(world.costs) : 2] + used[2 * len(world.costs) :]
    for h, (off, x, truth) in enumerate(zip(stored.deviation, used, truths, strict=True)):
        assert (np.abs(off) <= declared).all()  # without any tolerance
        linear = x.astype(np.float64) @ world.cost_parameters[h].T
        there = np.isfinite(truth)
        np.testing.assert_allclose((linear + off)[there], truth[there], rtol=0, atol=1e-14)
    assert max(float(np.abs(off).max()) for off in stored.deviation) > 0


def test_the_digest_of_a_world_counts_the_exact_features() -> None:
    """Two truths whose features are the same in float32 are two worlds."""
    worlds = [star(np.random.default_rng(0)) for _ in range(2)]
    graph = worlds[1].problem.graph
    graph.layers[0].transition_features.flags.writeable = True
    graph.layers[0].transition_features[:2, 0] += [1e-12, -1e-12]
    one, two = (world.stored_in_float32() for world in worlds)
    assert one.problem.digest == two.problem.digest
    assert one.digest != two.digest


# --- the bounds -----------------------------------------------------------------------------------------


def inside(world: sf.World, seed: int) -> bool:
    """After 400 measurements of triplets and as many of last states: does every true cost lie in its bounds?"""
    rng, problem = np.random.default_rng([seed, 400]), world.problem
    agent, last = sf.LsviNew(problem), problem.graph.terminal.cost_features
    assert last is not None
    assert world.terminal_costs is not None
    for h, x, truth in ((0, problem.graph.layers[0].cost_features, world.costs[0]), (1, last, world.terminal_costs)):
        for row in rng.integers(len(x), size=400):
            agent.costs.add(h, x[row], truth[row] + problem.limits[0].noise * rng.normal(size=1))
    agent.replan()
    bounds = agent.plan.bounds
    assert bounds.terminal_upper is not None
    assert bounds.terminal_lower is not None
    over = [*(world.costs[0] - bounds.upper[0]), *(world.terminal_costs - bounds.terminal_upper)]
    under = [*(bounds.lower[0] - world.costs[0]), *(bounds.terminal_lower - world.terminal_costs)]
    width = np.median(bounds.upper[0] - bounds.lower[0])
    assert width < 1.0, "bounds that say nothing would prove nothing"
    return bool(max(np.max(over), np.max(under)) <= 0.0)


def coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store features in steps of 1/32, so that what rounding takes is seen."""
    monkeypatch.setattr(restated, "_narrow", lambda piece: (np.round(piece * 32) / 32).astype(np.float32))
    monkeypatch.setattr(restated, "_MOST_LOST", 1.0)


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
def test_true_costs_of_the_exact_features_lie_within(
    coarse: bool, anchored: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if coarse:
        coarsely(monkeypatch)
    for number in range(16):
        world = star(np.random.default_rng([seed, number]), anchored=anchored).stored_in_float32()
        assert not world.misspecified_beyond_declaration
        assert (world.problem.limits[0].misspecification > 0.01) == coarse
        assert inside(world, 100 * seed + number)


@pytest.mark.parametrize("anchored", [False, True])
def test_without_the_declaration_they_do_not(anchored: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    coarsely(monkeypatch)
    monkeypatch.setattr(restated, "widened", lambda limit, norm, loss: limit)
    held = []
    for number in range(16):
        world = star(np.random.default_rng([seed, number]), anchored=anchored).stored_in_float32()
        assert world.misspecified_beyond_declaration  # and the world says so
        held.append(inside(world, 100 * seed + number))
    assert sum(held) <= 4


# --- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DENSE)
def test_an_archive_keeps_float32(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]().stored_in_float32()
    path = problem.save(tmp_path / "problem.npz")
    assert_same(problem, sf.Problem.load(path))
    assert any(b"'<f4'" in member[:128] for member in members_of(path).values())


@pytest.mark.parametrize("name", PROBLEMS)
def test_json_keeps_the_numbers(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]().stored_in_float32()
    assert_same(upcast(problem), sf.Problem.load(problem.save(tmp_path / "problem.json")))


@pytest.mark.parametrize("name", DENSE)
def test_the_digest_is_of_the_numbers_and_not_of_their_storage(name: str) -> None:
    problem = PROBLEMS[name]().stored_in_float32()
    assert problem.digest == upcast(problem).digest
    assert problem.digest != PROBLEMS[name]().digest


def test_a_long_table_is_hashed_piece_by_piece_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [upcast(template().stored_in_float32()).digest, template().digest]
    monkeypatch.setattr("surefoot.model.files._HASHED", 5)
    assert [template().stored_in_float32().digest, template().digest] == before


def test_the_digest_of_a_float64_problem_is_what_it_always_was() -> None:
    """Files and journals hold it: a change would make them unreadable."""
    assert template().digest == "ce74f7561491263da706ba8cb3a3382815a9cbf4bbeeb2d197e1afa05241c325"


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("name", DENSE)
def test_the_audit_reads_both(name: str, suffix: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]().stored_in_float32()
    read = read_problem(problem.save(tmp_path / f"problem{suffix}"))
    assert read.digest == problem.digest
    for ours, theirs in zip(problem.graph.layers, read.layers, strict=True):
        assert theirs.x.dtype == np.float64
        assert np.array_equal(ours.cost_features, theirs.x)
    assert read.largest_sum == pytest.approx(problem.graph.largest_feature_sum(), rel=1e-14)


def test_only_features_may_be_narrow(tmp_path: Path) -> None:
    """An archive whose rewards are in float32 is none that surefoot writes."""
    path = template(reward=np.zeros(12)).save(tmp_path / "problem.npz")
    members = members_of(path)
    rewards = next(n for n, data in members.items() if b"(12,), }" in data[:128] and b"<f8" in data[:128])
    members[rewards] = members[rewards][:128].replace(b"<f8", b"<f4") + bytes(48)
    repack(path, members)
    refused(path, "an array is of the wrong kind")


def test_a_difference_is_one_of_numbers() -> None:
    narrow = template().stored_in_float32()
    assert problem_difference(upcast(narrow), narrow) == ""
    assert "cost_features[0, 1]" in problem_difference(template(), narrow)


# --- the rest reads them too ----------------------------------------------------------------------------

READERS: dict[str, Callable[[sf.Problem], Any]] = {
    "distance": lambda problem: problem.graph.largest_feature_distance(),
    "sum": lambda problem: problem.graph.largest_feature_sum(),
    "norm": lambda problem: problem.graph.largest_cost_norm(),
    "diagnosis": sf.check,
}


def problems(seed: int) -> dict[str, sf.Problem]:
    rng = np.random.default_rng([seed, 33])
    whole = rng.integers(-99, 99, (12, 2)) / 8  # the sum of both columns is exact: three columns of rank two
    return {
        **{name: world.problem for name, world in worlds(seed).items()},
        "stuck": template(
            cost_features=rng.normal(size=(12, 5)), limits=sf.Limit("level", bound=0.01, noise=0.1, norm=1.0)
        ),
        "dependent columns": template(cost_features=np.column_stack([whole, whole.sum(axis=1)])),
    }


@pytest.mark.parametrize("kind", list(problems(0)))
def test_every_reader_computes_in_float64(kind: str, seed: int) -> None:
    problem = problems(seed)[kind].stored_in_float32()
    wide = upcast(problem)
    for name, reader in READERS.items():
        assert reader(problem) == reader(wide), name


def plan_of(x: np.ndarray) -> None:
    """Declare a problem with these features, and plan twice."""
    n = len(x)
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=np.arange(0, n // 2 + 1, 2),
        pair_ptr=np.arange(0, n + 1, 2),
        successors=np.arange(n, dtype=np.int32) % (n // 4),
        reward=np.zeros(n // 2),
        cost_features=x,
        terminal_reward=np.zeros(n // 4),
        fallback=np.zeros(n // 4, np.int64),
        limits=sf.Limit("load", bound=3.0, noise=0.1, norm=1.0),
    )
    agent = sf.LsviNew(problem)
    agent._begin(0)
    agent._record(0, 0, 0, np.array([1.0]))
    agent._finish()
    assert np.isfinite(agent.plan.bounds.upper[0]).all()


def most_bytes(work: Callable[[np.ndarray], object], x: np.ndarray) -> int:
    """The most bytes that numpy held at once beyond what was there, as it counts them itself."""
    work(x.copy())  # what is compiled or kept for good is not counted
    own = x.copy()
    tracemalloc.start()
    try:
        work(own)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_planning_in_float32_takes_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nowhere is a table converted as a whole: what is held beside it is the same, but for a piece or two."""
    monkeypatch.setattr(features, "_PIECE", 1 << 12)
    x = np.random.default_rng(0).random((2_500, 32)).astype(np.float32)
    room, whole = 4 * 8 * features._PIECE, 8 * x.size
    plan_of(x), plan_of(x.astype(np.float64))  # compiled first: watching memory makes compilation ten times as slow
    wide = most_bytes(plan_of, x.astype(np.float64))
    assert most_bytes(plan_of, x) <= wide + room
    converted = most_bytes(lambda table: plan_of(table.astype(np.float64)), x)
    assert converted > wide + 0.9 * whole  # such a conversion would be noticed
    assert room < whole / 2
