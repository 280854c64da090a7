"""Logged rows: what is taken, what is refused and with which row, and that nothing counts twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder, UnreadableFile
from tests.made_worlds import hand_world
from tests.studies import Calm, Plant, Quick, fingerprint, go_on, kettle, lines_of, nervous, records_of

WARM = ("warm", 1)


def row(h: int, s: Any, a: Any, t: Any, cost: Any, **more: Any) -> dict[str, Any]:
    return {"step": h, "state": s, "action": a, "next_state": t, "cost": cost, **more}


ROWS = [row(0, "s", "wait", "s", 0.11), row(1, "s", "wait", "s", 0.12), row(0, "cold", "wait", "s", None)]
EPISODE = [
    row(0, "cold", "heat", WARM, 0.21, episode="a"),
    row(1, WARM, "heat", WARM, 0.29, episode="a"),
    {"step": 2, "state": WARM, "cost": 0.16, "episode": "a"},
    row(1, "s", "wait", "s", 0.1, episode="b"),
]


def test_rows_enter_both_regressions_with_the_first_plans_targets(opened: Any) -> None:
    study = opened()
    go_on(study, Plant(kettle(), 0), 30)  # plans have changed since the first one
    twin = sf.LsviNew(study.problem, 0.025)
    first = twin.plan.targets  # its values contain what exploring is worth, and may be larger than any reward
    assert all(each.max() <= study.problem.horizon - h for h, each in enumerate(first))
    assert any(each.max() > study.problem.horizon - h for h, each in enumerate(twin.plan.values.value))
    saved = study.standing.agent.checkpoint()
    twin.restore(saved)
    imported = study.import_log(ROWS + [{k: v for k, v in r.items() if k != "episode"} for r in EPISODE])
    assert (imported.rows, imported.with_cost, imported.alarm) == (7, 6, None)
    graph, problem = study.problem.graph, study.problem
    for r in ROWS + EPISODE:
        h = r["step"]
        if h == 2:
            assert graph.terminal.cost_features is not None
            twin.costs.add(2, graph.terminal.cost_features[problem.state_index(2, r["state"])], np.array([r["cost"]]))
            continue
        names = (h, r["state"], r["action"])
        edge = problem.edge_index(*names, r["next_state"])
        twin.transitions.add(h, graph.layers[h], problem.pair_index(*names), edge, first[h + 1])
        if r["cost"] is not None:
            twin.costs.add(h, graph.layers[h].cost_features[edge], np.array([r["cost"]]))
    twin.replan()
    mine, other = study.standing.agent.checkpoint(), twin.checkpoint()
    for name in mine:
        if name not in ("start", "new_data"):
            assert np.array_equal(mine[name], other[name]), name
    assert study.standing.made_after == len(lines_of(study.path)) - 1
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened()) == before


def test_a_warm_start_certifies_what_a_cold_one_cannot(opened: Any) -> None:
    study, rng = opened(), np.random.default_rng(0)
    cold = study.status()["certified_pairs"]
    rows = [row(h, "s", "wait", "s", float(0.1 + 0.05 * rng.standard_normal())) for _ in range(400) for h in (0, 1)]
    imported = study.import_log(rows)
    assert imported.certified_pairs > cold
    with study.episode("s") as ep:
        assert ep.ask().certificate["safe_by"] == "estimate"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "ndjson", "parquet", "rows"])
def test_every_kind_of_file_gives_the_same_record(opened: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log.{kind}"
    source: Any = path
    if kind == "csv":
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["time", "episode", "step", "state", "action", "next_state", "cost"])
            for r in EPISODE:
                state, after = (json.dumps(v) if isinstance(v, tuple) else v for v in (r["state"], r.get("next_state")))
                writer.writerow(["noon", r["episode"], r["step"], state, r.get("action"), after, r["cost"]])
    elif kind in ("jsonl", "ndjson"):
        path.write_text("".join(json.dumps(r) + "\n" for r in EPISODE) + "\n")
    elif kind == "parquet":
        # a column has one type: labels that are tuples cannot stand beside text, so this log has none of them
        parquet.write_table(pyarrow.Table.from_pylist([EPISODE[3]]), path)
    else:
        source = iter(EPISODE)
    study = opened()
    assert study.import_log(source).rows == (1 if kind == "parquet" else 4)
    record = records_of(study.path)[-1]
    expected = [[0, "cold", "heat", ["warm", 1], [0.21]], [1, ["warm", 1], "heat", ["warm", 1], [0.29]]]
    expected += [[2, ["warm", 1], [0.16]], [1, "s", "wait", "s", [0.1]]]
    assert record["rows"] == (expected[3:] if kind == "parquet" else expected)
    assert record["episodes"] == (["b"] if kind == "parquet" else ["a", "a", "a", "b"])
    assert record["source"] == ("rows" if kind == "rows" else str(path))


BAD = [
    (row(0, "s", "wait", "melt", 0.1), "no such state.*'melt'"),
    (row(0, "s", "wait", WARM, 0.1), "outside the declared support"),
    (row(0, "s", "dance", "s", 0.1), "no such action"),
    (row(0, "nowhere", "wait", "s", 0.1), "no such state"),
    (row(2, "s", None, None, 0.1), "declares no cost for this last state"),
    (row(2, WARM, "wait", None, 0.1), "nothing follows the last step"),
    (row(3, "s", "wait", "s", 0.1), "no such step"),
    (row("0", "s", "wait", "s", 0.1), "no such step: '0', steps are 0 … 2. Give a whole number"),  # type: ignore[arg-type]
    (row(True, "s", "wait", "s", 0.1), "no such step"),
    (row(0, "s", "wait", "s", float("nan")), "not finite.*empty"),
    (row(0, "s", "wait", "s", [0.1, 0.2]), "wrong number of costs"),
    (row(0, "s", "wait", "s", "high"), "must be a number"),
    ({"step": 0, "state": "s", "action": "wait", "next_state": "s"}, "the cost is missing"),
    ({"step": 0, "state": "s", "next_state": "s", "cost": 0.1}, "the action is missing"),
    (row(0, "s", "wait", "s", 0.1, **{"cost.limit 0": 0.1}), "given twice"),
    (row(0, np.float64(1), "wait", "s", 0.1), "label cannot be used"),
]


@pytest.mark.parametrize(("bad", "fault"), BAD)
def test_one_bad_row_and_nothing_is_imported(opened: Any, bad: dict[str, Any], fault: str) -> None:
    study = opened()
    before = fingerprint(study)
    with pytest.raises(InvalidInput, match=f"nothing was imported: row 3: .*{fault}"):
        study.import_log([*ROWS[:2], bad, ROWS[2]])
    assert fingerprint(study) == before
    assert len(lines_of(study.path)) == 1


def test_all_bad_rows_are_named_at_once(opened: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        opened().import_log([BAD[0][0], BAD[2][0], BAD[3][0]])
    assert all(f"row {i}: no such" in str(refused.value) for i in (1, 2, 3))


def test_a_fault_of_every_row_is_told_once(tmp_path: Path, opened: Any) -> None:
    """With the columns that there are: a log whose columns have other names has a fault in every row."""
    log = tmp_path / "log.csv"
    log.write_text("step,state,move,next_state,cost\n" + "0,s,wait,s,0.1\n" * 500)
    with pytest.raises(InvalidInput) as refused:
        opened().import_log(log)
    told = str(refused.value)
    assert "line 2, line 3, line 4: the action is missing: there are step, state, move" in told
    assert "; and 497 more like it. A row has step, state, action, next_state and cost" in told
    assert told.count("missing") == 1


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([EPISODE[0], EPISODE[3], EPISODE[1]], "row 3: the rows of an episode must be together"),
        ([EPISODE[1], EPISODE[0]], "row 2: steps must rise within an episode"),
        ([EPISODE[0], row(1, "s", "wait", "s", 0.1, episode="a")], "row 2: a row does not follow.*'s' after.*'warm'"),
        ([EPISODE[0], ROWS[1]], "row 2: give every row its episode, or none"),
        ([ROWS[0], EPISODE[0]], "row 2: give every row its episode, or none"),
        ([EPISODE[0], EPISODE[0]], "row 2: steps must rise within an episode"),
        ([ROWS[0], ROWS[1], dict(ROWS[0])], "1 of 3 rows: row 3: the same state, action, next state and cost as row 1"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(opened: Any, rows: list[Any], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        opened().import_log(rows)


def test_parts_of_episodes_are_fine(opened: Any) -> None:
    assert opened().import_log([EPISODE[0], EPISODE[2], EPISODE[3]]).rows == 3


def test_a_last_state_whose_cost_was_not_measured_is_no_data(opened: Any) -> None:
    study = opened()
    imported = study.import_log([{"step": 2, "state": ("warm", 1), "cost": None}])
    assert (imported.rows, imported.with_cost, imported.alarm) == (1, 0, None)
    assert not study.safe_mode
    assert (study.status()["cost_rows"], study.standing.monitor.seen) == ([0, 0, 0], 0)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[2, "s", [0.1]]], "a state that has none"),
        ([[1, "s", [0.1]]], "a state that has none"),
        ([[0, "s", "wait", "s", 1.0, [0.1]]], "one too many"),
        ([[0, "s", "wait", "s", [0.1]]], None),
        ([[2, ["warm", 1], [0.1]]], None),
    ],
)
def test_what_no_import_writes_is_not_replayed(opened: Any, rows: Any, words: str | None) -> None:
    standing = opened().standing
    record = {"n": 1, "kind": "import", "different": None, "repeated": 0, "since": None, "source": "a", "rows": rows}
    if words is None:
        standing.apply(record)
        assert (standing.applied, standing.rows, standing.agent.costs.bank.rows.sum()) == (2, 1, 1)
    else:
        with pytest.raises(OutOfOrder, match=words):
            standing.apply(record)


def test_the_same_rows_are_never_imported_twice(opened: Any) -> None:
    study = opened()
    study.import_log(EPISODE)
    study.import_log(ROWS)
    for again, fault in ((EPISODE, "these episodes were imported before"), (ROWS, "2 of 3 rows: row 1: the same")):
        with pytest.raises(InvalidInput, match=fault):
            study.import_log(again)
    with pytest.raises(InvalidInput, match="row 1: episode 'a', step 1 is in a row of the import of record 1"):
        study.import_log(EPISODE[1:2])
    with pytest.raises(InvalidInput, match=r"row 2: the same state, .* as a row of the import of record 2"):
        study.import_log([row(0, "s", "wait", "s", 0.3), ROWS[0]])
    study.close()
    study = opened()
    with pytest.raises(InvalidInput, match="2 of 3 rows: row 1: the same"):
        study.import_log(ROWS)
    study.import_log([ROWS[2], row(0, "s", "wait", "s", 0.31)])  # without a cost nothing is counted twice that matters
    study.import_log(ROWS[2:])
    with pytest.raises(InvalidInput, match="the same list of rows was imported before"):
        study.import_log(ROWS[2:])


def test_what_was_told_is_not_imported_as_well(opened: Any) -> None:
    study = opened()
    with study.episode("cold") as ep:
        ep.ask()
        ep.tell(WARM, 0.21, action_applied="heat")
        ep.ask()
        ep.tell(WARM, 0.29, action_applied="heat")
        ep.tell_terminal(0.16)
    for r in EPISODE[:3]:
        logged = {key: value for key, value in r.items() if key != "episode"}
        with pytest.raises(InvalidInput, match=r"as the (tell|last cost) of record \d"):
            study.import_log([logged])


def test_several_limits_and_missing_parts(tmp_path: Path) -> None:
    world = hand_world({(0, "s"): {"a": (0.5, {"s": (1.0, [0.1, 0.2])})}}, {"s": (0.0, None)}, bounds=(0.5, 0.6))
    study = sf.Study.open(tmp_path / "study", world.problem, files=Quick(), monitor_factory=Calm, despite="small")
    (tmp_path / "log.csv").write_text(
        "step,state,action,next_state,cost.limit 0,cost.limit 1\n0,s,a,s,0.1,0.2\n0,s,a,s,0.1,\n0,s,a,s,,\n"
    )
    imported = study.import_log(tmp_path / "log.csv")
    assert (imported.rows, imported.with_cost, imported.partly_measured) == (3, 1, 1)
    assert [r[-1] for r in records_of(study.path)[-1]["rows"]] == [[0.1, 0.2], None, None]


def test_a_cell_is_read_as_the_problem_knows_it(tmp_path: Path) -> None:
    """In a CSV file 3 may be a number or a text."""

    def problem(states: list[Any]) -> sf.Problem:
        return sf.Problem.from_functions(
            horizon=2,
            start=states,
            actions=lambda h, s: [0, "1"],
            successors=lambda h, s, a: [s],
            reward=lambda h, s, a: 0.5,
            cost_features=lambda h, s, a, t: [1.0],
            fallback=lambda h, s: 0,
            limits=sf.Limit("level", bound=0.5, noise=0.1, norm=1.0),
        )

    log = tmp_path / "log.csv"
    log.write_text("step,state,action,next_state,cost\n0,3,1,3,0.1\n")
    for states, expected in (([3], 3), (["3"], "3")):
        study = sf.Study.open(tmp_path / f"study {states}", problem(states), files=Quick(), monitor_factory=Calm)
        study.import_log(log)
        assert records_of(study.path)[-1]["rows"] == [[0, expected, "1", expected, [0.1]]]
    both = sf.Study.open(tmp_path / "both", problem([3, "3"]), files=Quick(), monitor_factory=Calm)
    with pytest.raises(InvalidInput, match="can be read in two ways"):
        both.import_log(log)


def test_what_the_monitor_says_to_the_rows_is_an_alarm(opened: Any) -> None:
    study = opened(monitor_factory=nervous({2: "limit"}))
    imported = study.import_log(ROWS)
    assert imported.alarm == "row 2 of the import: a limit alarm"
    assert study.safe_mode
    with pytest.raises(OutOfOrder, match="nothing is imported in safe mode"):
        study.import_log([row(0, "s", "wait", "s", 0.3)])
    with pytest.raises(InvalidInput, match="disproved"):
        study.acknowledge("an old sensor")
    study.acknowledge("an old sensor", discard_data=True)
    assert study.status()["cost_rows"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("log.txt", b"", "a log ends in"),
        ("missing.csv", None, "cannot be read"),
        ("log.csv", b"", "names of its columns"),
        ("log.csv", b"step,step\n", "names of its columns"),
        ("log.csv", b"step,state\n0\n", "another length"),
        ("log.csv", b"step,state\xff\n", "cannot be read"),
        ("log.csv", b'step,state\n0,"s\n', "cannot be read"),
        ("log.jsonl", b"{]\n", "line 1: Expecting"),
        ("log.jsonl", b"[1]\n", "not a JSON object"),
        ("log.jsonl", b'{"cost": NaN}\n', "not finite"),
        ("log.parquet", b"PAR1 not really", "cannot be read"),
        ("log.jsonl", b"\n", "no rows"),
    ],
)
def test_files_that_are_no_logs(opened: Any, tmp_path: Path, name: str, content: bytes | None, fault: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((InvalidInput, UnreadableFile), match=fault):
        opened().import_log(tmp_path / name)


def test_a_row_is_a_mapping(opened: Any) -> None:
    with pytest.raises(InvalidInput, match="row 1: 1"):
        opened().import_log([1])
