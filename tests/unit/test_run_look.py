"""Looking at a run of your own: its report, its policy with values that are true, tables, callbacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, SurefootError
from surefoot.plan.policy_document import load_policy
from surefoot.reports.data import read_runs
from surefoot.reports.statistics import bands, mean_over_runs
from tests.drawn_worlds import certified_world

EPISODES = 120


@pytest.fixture(scope="module")
def world() -> sf.World:
    """Without a name: a world of one's own."""
    thermal = sf.worlds.make("thermal/testing")
    return sf.World(thermal.problem, thermal.transition, thermal.cost_parameters)


@pytest.fixture(scope="module")
def runs(world: sf.World, seed: int) -> list[sf.Run]:
    return [sf.run(sf.LsviNew(world.problem), world, EPISODES, s) for s in (seed, seed + 1)]


# --- the report -----------------------------------------------------------------------------------------


def test_a_report_of_ones_own_runs_has_the_explorer(runs: list[sf.Run], tmp_path: Path) -> None:
    page = sf.report(runs, tmp_path / "x.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    assert 'id="picture"' in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert [plan["number"] for plan in data["explorer"]["plans"]][-1] == runs[0].plan.number  # type: ignore[union-attr]


def test_runs_go_together_by_agent_and_options(world: sf.World, runs: list[sf.Run]) -> None:
    other = sf.run(sf.LsviNew(world.problem, optimism=0.5), world, 30, 0)
    fallback = sf.run(sf.agents.make("fallback", world.problem), world, 30, 0)
    report = read_runs([*runs, other, fallback])
    assert [(each.label, each.runs) for each in report.headlines] == [
        ("lsvi-new", 2),
        ("lsvi-new (2)", 1),
        ("fallback", 1),
    ]
    assert dict(report.agents[1][2])["optimism"] == 0.5
    labelled = read_runs({"careful": runs, "bold": [other]})
    assert [each.label for each in labelled.headlines] == ["careful", "bold"]


def test_what_is_no_run_is_refused(runs: list[sf.Run], tmp_path: Path) -> None:
    elsewhere = sf.worlds.make("figure1")
    other = sf.run(sf.LsviNew(elsewhere.problem), elsewhere, 5, 0)
    for given, words in (
        ([*runs, other], "one world"),
        ([], "needs a run"),
        ([3], "about runs"),
        ({"a": []}, "needs a run"),
    ):
        with pytest.raises(InvalidInput, match=words):
            sf.report(given, tmp_path / "x.html")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"an \.html file"):
        runs[0].report(tmp_path / "x.pdf")


# --- statistics -----------------------------------------------------------------------------------------


def test_the_interval_is_that_of_the_bootstrap(seed: int) -> None:
    """Against the definition: every resample drawn index by index; and equal numbers have no width."""
    rng = np.random.default_rng(seed)
    sample = rng.normal(3.0, 2.0, 12)
    shown = mean_over_runs(sample.tolist())
    means = np.array([rng.choice(sample, len(sample)).mean() for _ in range(20_000)])
    low, high = np.percentile(means, [2.5, 97.5])
    width = high - low
    assert shown.mean == pytest.approx(sample.mean())
    assert abs(shown.low - low) < 0.1 * width
    assert abs(shown.high - high) < 0.1 * width
    assert mean_over_runs([0.1] * 7).text(3) == "0.100"
    assert mean_over_runs([5.0]).text(1) == "5.0"
    assert (mean_over_runs([5.0]).low, mean_over_runs([5.0]).runs) == (5.0, 1)
    assert mean_over_runs([1.0, 3.0]).text(0).startswith("2 [")
    low, middle, high = bands(np.stack([sample, sample + 1]))
    assert ((low <= middle) & (middle <= high)).all()


def test_the_interval_covers_the_mean_as_often_as_it_says(seed: int) -> None:
    """Of 400 samples of 20 about 94 in 100 cover it (the percentile bootstrap is a little short); not 60, nor all."""
    rng = np.random.default_rng(seed)
    hits = sum(
        (found := mean_over_runs(rng.exponential(1.0, 20).tolist())).low <= 1.0 <= found.high for _ in range(400)
    )
    assert 0.82 <= hits / 400 <= 0.99


# --- the policy -----------------------------------------------------------------------------------------


def test_an_exported_value_is_exact_and_within_its_bounds(runs: list[sf.Run], tmp_path: Path) -> None:
    for run in runs:
        for exploit in (False, True):
            document = load_policy(run.export(tmp_path / "p.json", exploit=exploit))
            actions = {(h, e["state"]): e["action"] for h, step in enumerate(document["steps"]) for e in step}
            (start,) = document["starts"]
            assert start["value"] == pytest.approx(sf.exact.evaluate(run.world, actions), abs=1e-12)
            assert document["exploring"] is not exploit
            if run.value_event:
                assert start["value_low"] - 1e-9 <= start["value"] <= start["value_high"] + 1e-9
            assert all(entry["certified"] for step in document["steps"] for entry in step)


def test_bounds_of_a_value_hold_whatever_the_optimism(seed: int) -> None:
    """On drawn worlds, with a planner that is hardly optimistic: the written bounds use the whole radius."""
    held = 0
    for number in range(4):
        world = certified_world(60 * seed + number)
        run = sf.run(sf.LsviNew(world.problem, optimism=0.01), world, 40, seed)
        if not run.value_event:
            continue
        from surefoot.plan.hope import worth_between

        plan = run.plan
        assert plan is not None
        low, high = worth_between(world.problem.graph, plan.values.action, plan.ellipsoids)
        exact = sf.exact.evaluate_all(world, run.policy)
        for h, value in enumerate(exact):
            known = ~np.isnan(value)
            assert (low[h][known] <= value[known] + 1e-9).all()
            assert (value[known] <= high[h][known] + 1e-9).all()
        held += 1
    assert held


def test_without_bonuses_nothing_is_played_for_its_uncertainty(world: sf.World, seed: int) -> None:
    """Early on the exploring policy gives reward up for what it may learn; the exploiting one does not."""
    run = sf.run(sf.LsviNew(world.problem), world, 10, seed)
    plan = run.plan
    assert plan is not None
    exploiting = sf.exact.evaluate(world, plan.exploiting)
    assert exploiting >= sf.exact.fallback_value(world) - 1e-9
    for chosen, certified in zip(plan.exploiting, plan.certified_sets.pairs, strict=True):
        assert certified[chosen[chosen >= 0]].all()
    long = sf.run(sf.LsviNew(world.problem), world, 2000, seed)
    assert long.plan is not None
    assert sf.exact.evaluate(world, long.plan.exploiting) >= 0.9 * long.best_value


def test_an_agent_without_plans_exports_its_exact_value(world: sf.World, tmp_path: Path) -> None:
    run = sf.run(sf.agents.make("fallback", world.problem), world, 3, 0)
    (start,) = load_policy(run.export(tmp_path / "p.json"))["starts"]
    assert start["value"] == pytest.approx(run.fallback_value)
    assert start["value_low"] is None


# --- tables and callbacks -------------------------------------------------------------------------------


def test_tables_are_the_ledgers(runs: list[sf.Run], tmp_path: Path) -> None:
    run = runs[0]
    ledger = sf.Ledger.load(run.save(tmp_path / "ledger"))
    for name, columns in (("episodes", ledger.episodes), ("plans", ledger.plans)):
        frame, table = run.to_pandas(name), run.to_arrow(name)
        assert list(frame.columns) == table.column_names == list(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(frame[column], values)
            np.testing.assert_array_equal(table[column].to_numpy(), values)
    with pytest.raises(InvalidInput, match="no such table"):
        run.to_pandas("rows")


def test_a_callback_sees_every_episode_and_changes_nothing(world: sf.World, runs: list[sf.Run], seed: int) -> None:
    rows: list[Any] = []
    plans: list[tuple[int, int]] = []

    def see(plan: sf.Plan, before: int) -> None:
        plans.append((plan.number, before))

    run = sf.run(sf.LsviNew(world.problem), world, EPISODES, seed, on_plan=see, on_episode=rows.append)
    assert [row.episode for row in rows] == list(range(1, EPISODES + 1))
    for name in ("value", "regret", "reward", "violations", "certified", "gap", "to_gain", "plan"):
        np.testing.assert_array_equal([getattr(row, name) for row in rows], getattr(run.episodes_table, name))
        np.testing.assert_array_equal(getattr(run.episodes_table, name), getattr(runs[0].episodes_table, name))
    np.testing.assert_array_equal([row.margin for row in rows], run.margin)
    assert plans == list(zip(run.plans_table.number, run.plans_table.first_episode, strict=True))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_callback_ends_a_run_exactly_there(world: sf.World, runs: list[sf.Run], seed: int, compiled: bool) -> None:
    def enough(row: Any) -> bool:
        return bool(row.episode == 37)

    run = sf.run(sf.LsviNew(world.problem), world, EPISODES, seed, compiled=compiled, on_episode=enough)
    assert (run.episodes, run.interrupted) == (37, True)
    np.testing.assert_array_equal(run.value, runs[0].value[:37])
    agent = sf.LsviNew(world.problem)
    first = sf.run(agent, world, EPISODES, seed, on_plan=lambda plan, before: before >= 20)
    rest = sf.run(agent, world, EPISODES - first.episodes)
    assert 20 <= first.episodes < EPISODES
    np.testing.assert_array_equal([*first.value, *rest.value], runs[0].value)  # nothing was lost or drawn twice


def test_what_a_callback_raises_comes_through(world: sf.World, seed: int) -> None:
    def fail(row: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sf.run(sf.LsviNew(world.problem), world, 5, seed, on_episode=fail)
    with pytest.raises(InvalidInput, match="on_plan is a function"):
        sf.run(sf.LsviNew(world.problem), world, 5, seed, on_plan=3)  # type: ignore[arg-type]


def test_tensorboard_reads_what_was_written(world: sf.World, seed: int, tmp_path: Path) -> None:
    from tensorboardX.proto import event_pb2  # type: ignore[import-untyped]

    with sf.TensorBoard(tmp_path / "events", every=2) as board:
        run = sf.run(sf.LsviNew(world.problem), world, 9, seed, on_plan=board.on_plan, on_episode=board.on_episode)
    (path,) = (tmp_path / "events").iterdir()
    data, found = path.read_bytes(), dict[str, dict[int, float]]()
    while data:  # a record: length (8), its checksum (4), the event, its checksum (4)
        size = int.from_bytes(data[:8], "little")
        event = event_pb2.Event.FromString(data[12 : 12 + size])
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
        data = data[16 + size :]
    assert list(found["episode/value"]) == [2, 4, 6, 8]
    assert found["episode/value"][8] == pytest.approx(run.value[7], rel=1e-6)
    assert found["total/regret"][8] == pytest.approx(run.regret[:8].sum(), rel=1e-6)
    assert found["margin/0"][4] == pytest.approx(run.margin[2:4].min(), rel=1e-6)
    assert len(found["plan/number"]) == len(run.plans_table.number)


def test_what_is_missing_is_named(runs: list[sf.Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for package, call in (("pandas", runs[0].to_pandas), ("pyarrow", runs[0].to_arrow)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(SurefootError, match=f"needs {package}"):
            call()
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(SurefootError, match="tensorboard"):
        sf.TensorBoard(tmp_path)
