"""Rows that were measured once count once: however they are copied, whatever their ids, and after every reopening."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import surefoot as sf
from surefoot.audits import imports as audit_imports
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput
from surefoot.logs.rows import episode_key
from surefoot.reports import study_page as page
from surefoot.study import protocol
from tests.forgery import Record, forge
from tests.made_worlds import hand_world
from tests.studies import Calm, Quick, kettle, opener, records_of

Row = dict[str, Any]


def row(cost: Any, episode: Any = None, h: int = 0, action: str = "wait") -> Row:
    made = {"step": h, "state": "s", "action": action, "next_state": "s", "cost": cost}
    return made if episode is None else {**made, "episode": episode}


def noisy(seed: int, n: int, mean: float = 0.1, sigma: float = 0.05) -> list[float]:
    return [float(cost) for cost in mean + sigma * np.random.default_rng(seed).standard_normal(n)]


# --- the attack -----------------------------------------------------------------------------------------


def test_copies_of_a_few_lucky_rows_do_not_make_an_unsafe_action_safe(tmp_path: Path, seed: int) -> None:
    """Four true measurements whose mean is low by chance, three hundred times over, in another order, with new ids."""
    world = hand_world(
        {(0, "s"): {"wait": (0.1, {"s": (1.0, 0.1)}), "go": (0.9, {"s": (1.0, 0.6)})}}, {"s": (0.0, None)}
    )
    rng = np.random.default_rng(seed)
    log = 0.6 + 0.1 * rng.standard_normal((5_000, 4))
    lucky = [float(cost) for cost in log[np.argmin(log.mean(axis=1))]]
    copies = [row(lucky[i], f"copy {k}.{i}", action="go") for k in range(300) for i in rng.permutation(4)]

    def offered(study: sf.Study) -> Any:
        with study.episode() as episode:
            return episode.ask().action

    study = opener(tmp_path / "honest", world)()
    study.import_log([row(cost, i, action="go") for i, cost in enumerate(lucky)])
    with pytest.raises(InvalidInput, match="1200 of 1200 rows"):
        study.import_log(copies)
    assert offered(study) == "wait"
    assert audit(study.path).clean
    # The control: the attack does work on somebody who gives his word for it, and then his word is on record.
    liar = opener(tmp_path / "liar", world)()
    liar.import_log(copies, different="I swear")
    assert offered(liar) == "go"
    assert any("1196 of 1200" in remark and "I swear" in remark for remark in audit(liar.path).remarks)


# --- copies ---------------------------------------------------------------------------------------------

LOG = [{**row(cost, f"day {i // 2}"), "step": i % 2} for i, cost in enumerate(noisy(1, 12))]
COPIES: dict[str, Callable[[list[Row]], list[Row]]] = {
    "with other ids": lambda rows: [{**r, "episode": f"run {r['episode']}"} for r in rows],
    "without ids": lambda rows: [{k: v for k, v in r.items() if k != "episode"} for r in rows],
    "in another order": lambda rows: [{**rows[i], "episode": int(i)} for i in np.random.default_rng(0).permutation(12)],
    "in part": lambda rows: [{**rows[7], "episode": "one row"}],
    "among new rows": lambda rows: [row(0.4321, "new"), {**rows[3], "episode": "old"}],
    "at other steps": lambda rows: [{**r, "step": 1 - r["step"], "episode": i} for i, r in enumerate(rows)],
    "in other units and back": lambda rows: [
        {**r, "cost": ((r["cost"] * 1.8 + 32.0) - 32.0) / 1.8, "episode": i} for i, r in enumerate(rows)
    ],
    "with a cost in a list": lambda rows: [{**r, "cost": [r["cost"]], "episode": i} for i, r in enumerate(rows)],
}


KNOWN = ["imported", "imported without ids", "told"]


@pytest.mark.parametrize(
    ("known", "how"),
    [*((KNOWN[i % 3], how) for i, how in enumerate(COPIES)), *((known, "among new rows") for known in KNOWN)],
)
def test_a_copy_is_known_again(opened: Any, known: str, how: str) -> None:
    study = opened(snapshot_every=3)
    if known == "told":
        for i in range(0, 12, 2):
            with study.episode("s") as episode:
                for r in LOG[i : i + 2]:
                    episode.ask()
                    episode.tell("s", r["cost"], action_applied="wait")
    else:
        study.import_log(LOG if known == "imported" else COPIES["without ids"](LOG))
    before = len(records_of(study.path))
    for again in (study, None):
        if again is None:
            study.close()
            study = opened()
        with pytest.raises(InvalidInput, match="nothing was imported, these rows cannot be told from others"):
            study.import_log(COPIES[how]([dict(r) for r in LOG]))
    assert len(records_of(study.path)) == before
    assert any(record["kind"] == "snapshot" for record in records_of(study.path))


@pytest.mark.parametrize("how", sorted(set(COPIES) - {"without ids", "among new rows"}))
def test_a_copy_in_the_same_file_is_known_again(opened: Any, how: str) -> None:
    with pytest.raises(InvalidInput, match=r"row 13: the same state, action, next state and cost as row \d+"):
        opened().import_log(LOG + COPIES[how]([dict(r) for r in LOG]))


def test_what_is_left_of_an_earlier_epoch_is_not_imported_either(opened: Any) -> None:
    study = opened()
    study.import_log(LOG)
    with study.episode("s") as episode:
        episode.ask()
        episode.tell("s", float("nan"))
        episode.abort("dead sensor")
    study.acknowledge("a new sensor", discard_data=True)
    with pytest.raises(InvalidInput, match="12 of 12 rows"):
        study.import_log([{**r, "time": "2200-01-01T00:00:00Z"} for r in COPIES["with other ids"](LOG)])


def test_an_honest_log_of_a_fine_sensor_is_never_suspected(opened: Any, seed: int) -> None:
    """Thousands of measurements of one transition, and later ones with ids that begin anew."""
    study = opened()
    costs = noisy(seed, 6_000)
    study.import_log([row(cost) for cost in costs[:3_000]])
    assert study.import_log([row(cost, i) for i, cost in enumerate(costs[3_000:])]).repeated == 0


def test_where_there_is_no_noise_nothing_counts_twice(tmp_path: Path) -> None:
    known = kettle().problem
    problem = sf.Problem(known.graph, known.naming, (sf.Limit("l", bound=0.5, noise=0.0, norm=3.0),), 1.0, False, False)
    study = sf.Study.open(tmp_path / "exact", problem, files=Quick(), monitor_factory=Calm)
    study.import_log([row(0.1), row(0.1), row(0.1, h=1)])
    assert study.import_log([row(0.1, i) for i in range(9)]).repeated == 0
    assert audit(study.path).clean


# --- ids ------------------------------------------------------------------------------------------------

ONE_ID = ["1", 1, 1.0, " 1", "01", "1.0", "+1", "1e0", "10E-1", "１"]


@pytest.mark.parametrize("other", ONE_ID[1:])
def test_an_id_is_one_however_it_is_written(opened: Any, other: Any) -> None:
    study = opened()
    study.import_log([row(0.11, ONE_ID[0]), row(0.12, "2")])
    for word in (None, "another day"):  # an id says that it is the same one, and nobody can say otherwise
        with pytest.raises(InvalidInput, match=r"before: 1 of 2 rows: row 2: episode .*, step 0 is in a row of"):
            study.import_log([row(0.13, 3), row(0.14, other)], different=word)
    assert study.import_log([row(0.15, other, h=1)]).rows == 1  # the rest of that episode
    with pytest.raises(InvalidInput, match="row 3: the rows of an episode must be together"):
        study.import_log([row(0.2, 7), row(0.21, 8), row(0.22, "7.0", h=1)])


def test_an_episode_that_shares_an_offset_is_imported_whole(path: Path) -> None:
    """Plans made between two parts have seen the offset of the second one (spec 3); the audit knows it, too."""
    problem = kettle().problem
    shared = replace(problem, limits=(replace(problem.limits[0], episode_noise=0.01),))
    study = sf.Study.open(path, shared, files=Quick(), monitor_factory=Calm)
    study.import_log([row(0.11, 1), row(0.12, 1, h=1), row(0.13, 2)])
    with pytest.raises(InvalidInput, match="row 2: episode ' 02', step 1 shares the offset of a row of"):
        study.import_log([row(0.14, 3), row(0.15, " 02", h=1)])
    study.import_log([row(0.14, 3), row(0.15, 4, h=1)])
    study.close()
    assert audit(path).clean
    forge(path, lambda records: records[2].update(episodes=[3, "2.0"]))
    (found,) = audit(path).exceptions
    assert "row 2 is of episode '2.0', of which a part was imported before" in found.what


@pytest.mark.parametrize("name", [True, ["a"], " ", float("nan"), np.int64(1), {}])
def test_what_is_no_id(opened: Any, name: Any) -> None:
    with pytest.raises(InvalidInput, match="column 'episode'"):
        opened().import_log([row(0.1, name)])


IDS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r"[ +-]?0{0,2}[1-3]?0{0,2}(\.0{0,2}[1-3]?0{0,2})?([eE][+-]?[0-2])? ?", fullmatch=True),
    st.text(max_size=4),
)


@given(IDS, IDS)
def test_the_audit_reads_ids_alike(a: Any, b: Any) -> None:
    mine, other = (episode_key(a), episode_key(b)), (audit_imports.episode(a), audit_imports.episode(b))
    assert (mine[0] == mine[1]) == (other[0] == other[1])
    if type(a) is not str and type(b) is not str:
        assert (mine[0] == mine[1]) == (a == b)
        assert episode_key(str(a)) == mine[0]


# --- a person's word ------------------------------------------------------------------------------------

COARSE = [row(round(cost, 2), i) for i, cost in enumerate(noisy(2, 200))]
WORD = "the sensor has steps of 0.01"


def test_a_coarse_sensor_needs_a_word_and_the_word_is_kept(opened: Any) -> None:
    study = opened(snapshot_every=10)
    levels = len({r["cost"] for r in COARSE})
    with pytest.raises(InvalidInput, match=rf'{200 - levels} of 200 rows: .*; …\. Leave copies out.*different="why"'):
        study.import_log(COARSE)
    with pytest.raises(InvalidInput, match="need an episode in every row"):
        study.import_log(COPIES["without ids"](COARSE), different=WORD)
    for nothing in ("", " \n", 1, True):
        with pytest.raises(InvalidInput, match="say why"):
            study.import_log(COARSE, different=nothing)
    assert len(records_of(study.path)) == 1
    assert study.import_log(COARSE, source="a log", different=WORD).repeated == 200 - levels
    record = next(r for r in records_of(study.path) if r["kind"] == "import")
    assert (record["different"], record["repeated"]) == (WORD, 200 - levels)
    with pytest.raises(InvalidInput, match=r"200 of 200 rows.*episode 0, step 0 is in a row of the import of record 1"):
        study.import_log(COARSE, different=WORD)
    said = [{"n": 1, "source": "a log", "repeated": 200 - levels, "different": WORD}]
    assert study.status()["vouched"] == said
    study.close()
    assert any(record["kind"] == "snapshot" for record in records_of(study.path))
    assert opened().status()["vouched"] == said
    for file in (study.path / "snapshots").iterdir():
        file.unlink()
    assert opened(read_only=True).status()["vouched"] == said
    report = audit(study.path)
    assert report.clean
    assert report.counts["rows vouched for"] == 200 - levels
    assert report.remarks == [
        f"record 1: {200 - levels} of 200 rows imported are like others; "
        f"a person says that they are different: {WORD!r}"
    ]
    assert WORD in str(report)
    assert WORD in page.write_study_page(study.path).read_text("utf-8")


def test_a_word_by_protocol(opened: Any, tmp_path: Path) -> None:
    study, log = opened(), tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(r) + "\n" for r in COARSE))
    with pytest.raises(InvalidInput, match=r"log\.jsonl: .*line"):
        protocol.answer(study, {"call": "import_log", "path": str(log)})
    answered = protocol.answer(study, {"call": "import_log", "path": str(log), "different": WORD})
    assert answered["repeated"] > 100


# --- the audit ------------------------------------------------------------------------------------------


def _append(records: list[Record], like: int, episode: Any, **more: Any) -> None:
    records[1]["rows"].append(list(records[1]["rows"][like]))
    records[1]["episodes"].append(episode)
    records[1].update(more)


FORGED: dict[str, tuple[Callable[[list[Record]], Any], str]] = {
    "a copy": (lambda records: _append(records, 0, "new"), "0 of its rows are said to be like others, 1 are"),
    "a copy that is counted": (lambda records: _append(records, 0, "new", repeated=1), "1 of its rows are there twice"),
    "a blank word": (lambda records: _append(records, 0, "new", repeated=1, different=" "), "without a reason"),
    "no ids": (lambda records: records[1].update(different="why", episodes=None), "without their episodes"),
    "an id again": (lambda records: records[2].update(episodes=[" 1.0", "x"]), "row 1 is there twice: episode ' 1.0'"),
    "a told row": (
        lambda records: records[-1]["rows"].append([1, "s", "wait", "s", [0.30000000000000004]]),
        "0 of its rows are said to be like others, 1 are",
    ),
    "too few": (lambda records: records[3].update(repeated=1), "1 of its rows are said to be like others, 2 are"),
    "a word taken back": (lambda records: records[3].update(different=None), "2 of its rows are there twice, row 2"),
}


@pytest.mark.parametrize("name", FORGED)
def test_the_audit_counts_again(opened: Any, name: str) -> None:
    edit, words = FORGED[name]
    study = opened()
    study.import_log([row(0.11, 1), row(0.12, 1, h=1)])
    study.import_log([row(0.13, 2), row(0.14, 3)])
    study.import_log([row(0.15, 4), row(0.15, 5), row(-0.0, 6), row(0.0, 7)], different="coarse")
    with study.episode("s") as episode:
        for cost in (0.3, 0.31):
            episode.ask()
            episode.tell("s", cost, action_applied="wait")
    study.import_log([row(0.16), row(0.17)])
    study.close()
    assert audit(study.path).clean
    forge(study.path, edit)
    assert any(words in finding.what for finding in audit(study.path).exceptions), audit(study.path)


@pytest.mark.parametrize("kind", ["parquet", "rows"])
def test_a_copy_in_single_precision_is_known_again(opened: Any, tmp_path: Path, kind: str) -> None:
    study = opened()
    study.import_log([row(0.21, "a"), row(0.137, "b")])
    copies = [row(np.float32(0.137), "c")]
    parquet.write_table(
        pyarrow.table({k: pyarrow.array([v], pyarrow.float32()) if k == "cost" else [v] for k, v in copies[0].items()}),
        tmp_path / "log.parquet",
    )
    with pytest.raises(InvalidInput, match="1 of 1 rows"):
        study.import_log(tmp_path / "log.parquet" if kind == "parquet" else copies)


# --- strict reading -------------------------------------------------------------------------------------


NO_NUMBERS = [
    *("0_5", " 0.5", "0.5 ", "1e5_0", "٣", "nan", "inf", "-Infinity", "0x1p-1", "0x5", "true", "True", " ", "0,5"),
    *(".5", "5.", "1e", "--1", "0.5V", "1 2", "１", '"0.5"', "[0.5", "[true]", '["0.5"]', "[NaN]", "[1e999]", "1e999"),
    *("null", "{}", "NA", "-"),
]


def test_a_cost_that_is_not_written_as_a_number(opened: Any, tmp_path: Path) -> None:
    log, study = tmp_path / "log.csv", opened()
    for cost in NO_NUMBERS:
        quoted = '"' + cost.replace('"', '""') + '"'
        log.write_text(f"step,state,action,next_state,cost\n0,s,wait,s,0.1\n\n0,s,wait,s,{quoted}\n")
        words = r"log\.csv: line 4: .*column 'cost'.*(Write it as|empty if|Give one number|without quotes)"
        with pytest.raises(InvalidInput, match=words):
            study.import_log(log)
    assert len(records_of(study.path)) == 1


@pytest.mark.parametrize("cost", ['"0.5"', "true", '""', "[true]", "{}", '"nan"', '[["0.5"]]'])
def test_a_cost_in_json_is_a_number(opened: Any, tmp_path: Path, cost: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        f'{json.dumps(row(0.1))}\n\n{{"step":0,"state":"s","action":"wait","next_state":"s","cost":{cost}}}\n'
    )
    with pytest.raises(InvalidInput, match=r"log\.jsonl: line 3: a cost must be a number: column 'cost'"):
        opened().import_log(log)


def test_costs_as_they_are_written(opened: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    cells = ["0.5", "-1", "+0.25", "2e-1", "1.5E-1", "00.75", "[0.625]", ""]
    log.write_text("step,state,action,next_state,cost\n" + "".join(f"0,s,wait,s,{cell}\n" for cell in cells))
    study = opened()
    study.import_log(log)
    taken = [r[-1] for r in records_of(study.path)[-1]["rows"]]
    assert taken == [[0.5], [-1.0], [0.25], [0.2], [0.15], [0.75], [0.625], None]


NUMBERED = [" 3", "3 ", "3.0", "03", "3e0", "٣", "3_0", "true"]


@pytest.mark.parametrize("cell", NUMBERED)
def test_a_label_is_written_as_the_problem_has_it(tmp_path: Path, cell: str) -> None:
    problem = sf.Problem.from_functions(
        horizon=5,
        start=[3, 1],
        actions=lambda h, s: [3, 1],
        successors=lambda h, s, a: [3, 1],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, t: [1.0],
        fallback=lambda h, s: 3,
        limits=sf.Limit("level", bound=0.5, noise=0.1, norm=1.0),
    )
    study = sf.Study.open(tmp_path / "s", problem, files=Quick(), monitor_factory=Calm)
    good = {"step": "3", "state": "3", "action": "3", "next_state": "3", "cost": "0.5"}
    log = tmp_path / "log.csv"
    for column in ("", "state", "action", "next_state", "step"):
        cells = {**good, column: cell} if column else good
        log.write_text(",".join(cells) + "\n" + ",".join(cells.values()) + "\n")
        expected = pytest.raises(InvalidInput, match=r"log\.csv: line 2: (no such|outside)")
        with expected if column else contextlib.nullcontext():
            study.import_log(log)


@pytest.mark.parametrize("value", [True, 1.0])
def test_a_label_in_json_is_of_its_kind(tmp_path: Path, value: Any) -> None:
    world = hand_world({(0, 1): {"a": (0.5, {1: (1.0, 0.1)})}}, {1: (0.0, None)}, start=1)
    study = sf.Study.open(tmp_path / "s", world.problem, files=Quick(), monitor_factory=Calm, despite="one action")
    with pytest.raises(InvalidInput, match=f"row 1: no such state: column 'state': {value!r}, the problem has 1"):
        study.import_log([{"step": 0, "state": value, "action": "a", "next_state": 1, "cost": 0.1}])


def test_a_cost_column_of_no_limit(opened: Any) -> None:
    bad = {**row(None), "cost.limit 9": 0.1}
    del bad["cost"]
    with pytest.raises(InvalidInput, match=r"a cost of no limit: column 'cost\.limit 9'\. Use cost\.limit 0"):
        opened().import_log([bad])
