"""The ledger: what is read is what was run, the same run gives the same bytes, damage is named."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.runs import ledger as ledgers
from surefoot.runs import session
from surefoot.runs.ledger import Ledger
from surefoot.runs.run import Run
from tests.alike import AGENTS
from tests.drawn_worlds import certified_world

FORMATS = ("parquet", "npz")


def played(seed: int, agent: str = "lsvi-new", episodes: int = 40) -> Run:
    world = certified_world(90_000 + seed, limits=2, starts=2)
    return sf.run(AGENTS[agent](world.problem), world, episodes, seed)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("agent", ["lsvi-new", "fallback"])
def test_round_trip(format: str, agent: str, seed: int, tmp_path: Path) -> None:
    run = played(seed, agent)
    path = run.save(tmp_path / "deep" / "ledger", format=format)
    assert sorted(file.name for file in path.iterdir()) == sorted(
        ["manifest.json", f"episodes.{format}", f"plans.{format}"]
    )
    ledger = Ledger.load(str(path))
    expected: dict[str, Any] = {}
    for name, column in run.episodes_table.columns().items():
        if column.ndim == 1:
            expected[name] = column
        else:
            expected |= {f"{name}_limit 0": column[:, 0], f"{name}_limit 1": column[:, 1]}
    for found, wanted in ((ledger.episodes, expected), (ledger.plans, run.plans_table.columns())):
        assert list(found) == list(wanted)
        for name, column in wanted.items():
            assert found[name].dtype == column.dtype, name
            assert np.array_equal(found[name], column), name
    summary = ledger.manifest.pop("summary")
    assert set(ledger.manifest.pop("sha256")) == {f"episodes.{format}", f"plans.{format}"}
    assert ledger.manifest == {**run.manifest, "tables": format}
    assert summary == {
        "best_value": run.best_value,
        "fallback_value": run.fallback_value,
        "last_value": run.last_value,
        "gap_closed": run.gap_closed,
        "total_regret": run.regret.sum(),
        "violations": 0,
        "replans": run.replans,
        "cost_event": True,
        "value_event": True,
        "interrupted": False,
    }


def test_the_manifest_says_how_to_repeat_the_run(seed: int, tmp_path: Path) -> None:
    run = played(seed)
    manifest = Ledger.load(run.save(tmp_path / "ledger")).manifest
    world = certified_world(90_000 + seed, limits=2, starts=2)
    assert manifest["problem"] == world.problem.digest
    assert manifest["world"] == world.digest
    assert (manifest["seed"], manifest["episodes"], manifest["done"]) == (seed, 40, 40)
    assert manifest["constants"] == json.loads(json.dumps(sf.LsviNew(world.problem).constants))
    assert manifest["promise"] == "every step safe with probability ≥ 0.95"
    assert set(manifest["versions"]) == {"python", "surefoot", "numpy", "scipy", "numba"}
    assert "≥" in (tmp_path / "ledger" / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_run_gives_the_same_bytes(format: str, seed: int, tmp_path: Path) -> None:
    contents = []
    for copy, run_seed in (("a", seed), ("b", seed), ("c", seed + 1)):
        path = played(run_seed if copy == "c" else seed).save(tmp_path / copy, format=format)
        contents.append({file.name: file.read_bytes() for file in path.iterdir()})
    assert contents[0] == contents[1]
    assert all(contents[0][name] != contents[2][name] for name in contents[0])


def test_parquet_is_the_default_where_pyarrow_is(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = played(seed)
    assert Ledger.load(run.save(tmp_path / "with")).manifest["tables"] == "parquet"
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else real(name))
    assert Ledger.load(run.save(tmp_path / "without")).manifest["tables"] == "npz"
    with pytest.raises(InvalidInput, match=r"Parquet needs pyarrow. pip install 'surefoot\[parquet\]'"):
        run.save(tmp_path / "asked for", format="parquet")
    assert not (tmp_path / "asked for").exists()


def test_nothing_is_overwritten(seed: int, tmp_path: Path) -> None:
    run = played(seed)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    path = run.save(tmp_path / "ledger")
    before = {file: file.read_bytes() for file in path.iterdir()}
    for taken in ("empty", "file", "ledger"):
        with pytest.raises(InvalidInput, match=r"already exists.*Choose a new directory"):
            run.save(tmp_path / taken)
    assert {file: file.read_bytes() for file in path.iterdir()} == before
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(InvalidInput, match=r"no such ledger format: 'csv'. Use parquet or npz"):
        run.save(tmp_path / "new", format="csv")
    assert not (tmp_path / "new").exists()


def refused(path: Path, *words: str) -> None:
    with pytest.raises(UnreadableFile) as error:
        Ledger.load(path)
    for word in words:
        assert word in str(error.value)


def test_tables_of_another_run_are_refused(seed: int, tmp_path: Path) -> None:
    path, other = (played(seed, episodes=n).save(tmp_path / str(n), format="npz") for n in (40, 39))
    (path / "episodes.npz").write_bytes((other / "episodes.npz").read_bytes())
    refused(path, "episodes.npz", "not the one that was written")


@pytest.mark.parametrize("format", FORMATS)
def test_an_unfinished_ledger_is_refused(
    format: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path / "nowhere", "not a ledger", "nowhere")
    run = played(seed)
    with monkeypatch.context() as patch:

        def fail(path: Path, text: str) -> None:
            raise OSError("no space left")

        patch.setattr(ledgers, "write_text", fail)
        with pytest.raises(OSError, match="no space left"):
            run.save(tmp_path / "ledger", format=format)
    refused(tmp_path / "ledger", "not a ledger", "no manifest.json")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("table", ["episodes", "plans"])
def test_a_damaged_table_is_named(format: str, table: str, seed: int, tmp_path: Path) -> None:
    path = played(seed).save(tmp_path / "ledger", format=format)
    file = path / f"{table}.{format}"
    whole = file.read_bytes()
    for kept in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:kept])
        refused(path, file.name)
    for place in np.random.default_rng(seed).integers(len(whole), size=60).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :])
        refused(path, file.name)
    file.unlink()
    refused(path, file.name)
    file.mkdir()
    refused(path, file.name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not complete, valid JSON"),
        ("{", "not complete, valid JSON"),
        ("[]", "not a ledger of surefoot"),
        ("null", "not a ledger of surefoot"),
        ("{}", "not a ledger of surefoot"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": "something else", "version": 1}', "not a ledger of surefoot"),
        ('{"format": "surefoot-run", "version": 5, "tables": "npz"}', "written by a newer version"),
        ('{"format": "surefoot-run", "version": 3, "tables": "npz"}', "written by an older version"),
        ('{"format": "surefoot-run", "version": "x", "tables": "npz"}', "wrong type: "),
        ('{"format": "surefoot-run", "version": 4, "tables": "../npz"}', "an entry is missing"),
    ],
)
def test_a_bad_manifest_is_named(text: str, words: str, seed: int, tmp_path: Path) -> None:
    path = played(seed, "fallback", 3).save(tmp_path / "ledger", format="npz")
    (path / "manifest.json").write_text(text)
    refused(path, "manifest.json", words)


def test_a_newer_ledger_asks_for_an_upgrade(seed: int, tmp_path: Path) -> None:
    path = played(seed, "fallback", 3).save(tmp_path / "ledger")
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    (path / "manifest.json").write_text(json.dumps({**manifest, "version": manifest["version"] + 1}))
    refused(path, "written by a newer version", "Upgrade surefoot")


def test_a_run_that_was_stopped_before_its_first_episode(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(session.Interrupt):
        def __init__(self) -> None:
            super().__init__()
            self.requested = True

    monkeypatch.setattr(session, "Interrupt", Stopped)
    with pytest.warns(UserWarning, match="interrupted after 0 of"):
        run = played(seed)
    assert (run.episodes, run.interrupted, run.gap_closed) == (0, True, 0.0)
    ledger = Ledger.load(run.save(tmp_path / "ledger"))
    assert ledger.manifest["done"] == 0
    assert ledger.manifest["summary"]["last_value"] == run.fallback_value
    assert {len(column) for column in ledger.episodes.values()} == {0}


# ---------------------------------------------------------------- bombs


def forged(path: Path, columns: dict[str, Any], **options: Any) -> None:
    """Another table of episodes in place of a run's, sealed as that one was."""
    pyarrow.parquet.write_table(pyarrow.table(columns), path / "episodes.parquet", **options)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    sha256 = {**manifest["sha256"], "episodes.parquet": ledgers._digest(path / "episodes.parquet")}
    rows = len(next(iter(columns.values())))
    (path / "manifest.json").write_text(json.dumps({**manifest, "done": rows, "sha256": sha256}))


def test_a_table_that_unfolds_is_refused_before_it_is_read(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what its footer declares: no column is touched."""
    path = played(seed, "fallback", 3).save(tmp_path / "ledger", format="parquet")
    columns = {name: np.repeat(column[:1], 100_000) for name, column in Ledger.load(path).episodes.items()}
    declared = sum(column.nbytes for column in columns.values())
    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read", lambda file: pytest.fail("it was read"))
    monkeypatch.setattr(ledgers, "LEAST_BUDGET", declared - 1)
    forged(path, columns, compression="none")
    size = (path / "episodes.parquet").stat().st_size
    assert ledgers.UNFOLDED * size < declared
    refused(path, "declares far more than its file holds", f"{declared} bytes in a file of {size}")
    forged(path, {name: column[:1000] for name, column in columns.items()}, compression="zstd")
    refused(path, "a column is compressed", "start")
    forged(path, {**columns, "more": columns["start"]}, compression="none")
    refused(path, "wrong columns", "'more': int64, not None")
    forged(path, {**columns, "regret": columns["regret"].astype(str)}, compression="none")
    refused(path, "wrong columns", "'regret'")


def test_what_would_be_refused_is_written_out(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose columns hardly change is encoded to almost nothing; its ledger can be read all the same."""
    world = certified_world(90_000 + seed, limits=2, starts=2)
    monkeypatch.setattr(ledgers, "LEAST_BUDGET", 0)
    monkeypatch.setattr(ledgers, "UNFOLDED", 2)
    run = sf.run(sf.agents.make("fallback", world.problem), world, 5000, seed)
    assert np.array_equal(Ledger.load(run.save(tmp_path / "ledger", format="parquet")).regret, run.regret)
