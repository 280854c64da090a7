"""The ledger of a run on disk: a directory with a manifest and two tables. Equal runs give equal bytes.

manifest.json     versions, seed, every constant, the guarantee
episodes.parquet  a row per episode   (or episodes.npz without pyarrow)
plans.parquet     a row per plan      (or plans.npz)

Parquet files are encoded but not compressed, and their declared size is compared with that of the file before they are
read, so a small file cannot claim much memory. Of the manifest only the needed part is read, and all of that is
checked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked
from surefoot.runs.record import EpisodeTable, PlanTable, by_limit
from surefoot.runs.run import FORMAT, VERSION, Run
from surefoot.storage import archive as npz
from surefoot.storage import disk, documents
from surefoot.storage.disk import write_text

FORMATS = ("parquet", "npz")
DAMAGED = "the ledger is damaged"
UNFOLDED = 64  #: how many times as large as its file a Parquet table may be,
LEAST_BUDGET = 256 << 20  #: or how many bytes it may have


@dataclass(frozen=True, eq=False)
class Ledger:
    """A saved run: its manifest and the columns of its tables.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> path = sf.run(sf.LsviNew(world.problem), world, episodes=50, seed=0).save("ledger")
        >>> ledger = sf.Ledger.load(path)
        >>> ledger
        Ledger(lsvi-new, seed=0, episodes=50, violations=0)
        >>> len(ledger.regret), ledger.manifest["limits"][0]["name"]
        (50, 'temperature')
    """

    manifest: dict[str, Any]
    episodes: dict[str, NDArray[Any]]  # a column per name; per limit: margin_NAME, highest_NAME
    plans: dict[str, NDArray[Any]]

    def __repr__(self) -> str:
        agent, seed = self.manifest["agent"], self.manifest["seed"]
        return f"Ledger({agent}, seed={seed}, episodes={len(self.regret)}, violations={int(self.violations.sum())})"

    @property
    def regret(self) -> NDArray[np.float64]:
        """(K,) like :attr:`Run.regret`."""
        return self.episodes["regret"]

    @property
    def violations(self) -> NDArray[np.int64]:
        """(K,) like :attr:`Run.violations`."""
        return self.episodes["violations"]

    @staticmethod
    def of(run: Run) -> Ledger:
        """The ledger of a run that is still in memory."""
        return Ledger({**run.manifest, "summary": _summary(run)}, **run.tables())

    @staticmethod
    def load(path: str | Path) -> Ledger:
        return load_ledger(Path(path))


def save_ledger(run: Run, path: Path, format: str | None) -> Path:
    """Write a run's ledger; an existing directory is never overwritten."""
    if format is None:
        format = "parquet" if importlib.util.find_spec("pyarrow") else "npz"
    if format not in FORMATS:
        raise InvalidInput("no such ledger format", got=repr(format), fix=f"Use {' or '.join(FORMATS)}.")
    if format == "parquet" and not importlib.util.find_spec("pyarrow"):
        raise InvalidInput("Parquet needs pyarrow", fix="pip install 'surefoot[parquet]', or use format='npz'.")
    try:
        disk.DISK.mkdir(path, new=True)
    except FileExistsError:
        raise InvalidInput("the directory already exists", got=str(path), fix="Choose a new directory.") from None
    for name, columns in run.tables().items():
        if format == "parquet":
            _write_parquet(path / f"{name}.parquet", columns)
        else:
            arrays = {f"c{i}": np.ascontiguousarray(column) for i, column in enumerate(columns.values())}
            npz.save_archive(path / f"{name}.npz", {"columns": list(columns)}, arrays)
    digests = {file.name: _digest(file) for file in sorted(path.iterdir())}
    manifest = {**run.manifest, "summary": _summary(run), "tables": format, "sha256": digests}
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    write_text(path / "manifest.json", text)  # last: a ledger without it is not finished
    return path


def _summary(run: Run) -> dict[str, Any]:
    return {
        "best_value": run.best_value,
        "fallback_value": run.fallback_value,
        "last_value": run.last_value,
        "gap_closed": run.gap_closed,
        "total_regret": float(run.regret.sum()),
        "violations": int(run.violations.sum()),
        "replans": run.replans,
        "cost_event": run.cost_event,
        "value_event": run.value_event,
        "interrupted": run.interrupted,
    }


def _write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()})
    write = partial(pyarrow.parquet.write_table, table, compression="none")
    disk.DISK.replace(path, write)
    if table.nbytes > _budget(path):  # encoded so well that it would be refused: write it out
        disk.DISK.replace(path, partial(write, use_dictionary=False))


def _budget(path: Path) -> int:
    """How many bytes of memory a Parquet file may claim."""
    return max(LEAST_BUDGET, UNFOLDED * path.stat().st_size)


def load_ledger(path: Path) -> Ledger:
    """Read a ledger; if it is unfinished or damaged, the error names the file."""
    source = path / "manifest.json"
    if not source.is_file():
        raise UnreadableFile("not a ledger", where=str(path), got="it has no manifest.json")
    with documents.reading(source, DAMAGED):
        manifest = _checked(documents.read_json(source)[0])
        read = {"parquet": _read_parquet, "npz": _read_npz}[manifest["tables"]]
    tables: dict[str, dict[str, NDArray[Any]]] = {}
    for name, kinds in _expected(manifest).items():
        source = path / f"{name}.{manifest['tables']}"
        with documents.reading(source, DAMAGED):
            if _digest(source) != manifest["sha256"].get(source.name):
                raise UnreadableFile("the table is not the one that was written")
            tables[name] = read(source, kinds)
            _refuse_columns({column: array.dtype for column, array in tables[name].items()}, kinds)
            _refuse_uneven(tables[name], manifest["done"], exactly=name == "episodes")
    with documents.reading(path / "manifest.json", DAMAGED):
        _compare(manifest["summary"], **tables)
    return Ledger(manifest, **tables)


_NUMBERS = ("best_value", "fallback_value", "last_value", "gap_closed", "total_regret", "violations", "replans")
_FLAGS = ("cost_event", "value_event", "interrupted")
_READ = (
    *("agent", "constants", "guaranteed", "promise", "limits", "world", "seed", "episodes", "done"),
    *("summary", "tables", "sha256"),
)


def _checked(document: object) -> dict[str, Any]:
    """The manifest, with every entry checked that is ever read."""
    checked.of_format(document, "a ledger", FORMAT, VERSION, "Run anew.")
    manifest = checked.entries(document, "$", _READ)
    for name in ("agent", "promise", "tables", "world"):
        checked.string(manifest[name], f"$.{name}")
    checked.flag(manifest["guaranteed"], "$.guaranteed")
    for name in ("seed", "episodes", "done"):
        if checked.integer(manifest[name], f"$.{name}") < 0:
            raise checked.wrong(f"$.{name}", "a whole number from 0", manifest[name])
    p = checked.entries(manifest["constants"], "$.constants", ()).get("failure_probability", 0.5)
    if not 0 < checked.floating(p, "$.constants.failure_probability") < 1:
        raise checked.wrong("$.constants.failure_probability", "a number between 0 and 1", p)
    for i, limit in enumerate(checked.sequence(manifest["limits"], "$.limits")):
        at = f"$.limits[{i}]"
        checked.string(checked.entries(limit, at, ("name",))["name"], f"{at}.name")
    summary = checked.entries(manifest["summary"], "$.summary", (*_NUMBERS, *_FLAGS))
    for name in _NUMBERS:
        checked.finite(summary[name], f"$.summary.{name}")
    for name in _FLAGS:
        checked.flag(summary[name], f"$.summary.{name}")
    checked.entries(manifest["sha256"], "$.sha256", ())
    return manifest


def _expected(manifest: Mapping[str, Any]) -> dict[str, dict[str, np.dtype[Any]]]:
    """The columns of both tables, in order, and their kinds."""
    names = [limit["name"] for limit in manifest["limits"]]
    tables = {"episodes": EpisodeTable.blank(0, len(names)).columns(), "plans": PlanTable().columns()}
    return {
        table: {name: column.dtype for name, column in by_limit(columns, names).items()}
        for table, columns in tables.items()
    }


def _refuse_uneven(columns: Mapping[str, NDArray[Any]], done: int, exactly: bool) -> None:
    """There must be one row per finished episode, and at most as many plans."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or not (lengths == {done} if exactly else max(lengths) <= done):
        raise UnreadableFile(
            "the table has the wrong number of rows", got=f"{sorted(lengths)}, {done} episodes are done"
        )


def _compare(
    summary: Mapping[str, Any], episodes: Mapping[str, NDArray[Any]], plans: Mapping[str, NDArray[Any]]
) -> None:
    """The summary must agree with the tables."""
    found = {
        "violations": int(episodes["violations"].sum()),
        "total_regret": float(episodes["regret"].sum()),
        "cost_event": bool(plans["cost_event"].all()),
        "value_event": bool(plans["value_event"].all()),
    }
    for name, value in found.items():
        if not np.isclose(summary[name], value, rtol=1e-9, atol=1e-9):
            got = f"{summary[name]!r}, the tables have {value!r}"
            raise UnreadableFile("the summary does not match the run", where=f"$.summary.{name}", got=got)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Kinds = Mapping[str, np.dtype[Any]]


def _read_parquet(path: Path, kinds: Kinds) -> dict[str, NDArray[Any]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        _refuse_parquet(file, path, kinds)
        table = file.read()
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _refuse_parquet(file: Any, path: Path, kinds: Kinds) -> None:
    """Refuse a file by what it declares, before reading any column."""
    declared = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in file.schema_arrow}
    _refuse_columns(declared, kinds)
    size = file.metadata.num_rows * sum(kind.itemsize for kind in kinds.values())
    if size > _budget(path):
        got = f"{size} bytes in a file of {path.stat().st_size}"
        raise UnreadableFile("the table declares far more than its file holds", got=got)
    for i in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(i)
        for j in range(group.num_columns):
            if group.column(j).compression != "UNCOMPRESSED":
                raise UnreadableFile("a column is compressed", got=str(group.column(j).path_in_schema))


def _refuse_columns(found: Kinds, wanted: Kinds) -> None:
    if list(found.items()) != list(wanted.items()):
        names = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
        got = ", ".join(f"{name!r}: {found.get(name)}, not {wanted.get(name)}" for name in names[:3]) or "another order"
        raise UnreadableFile("the table has the wrong columns", got=got)


def _read_npz(path: Path, kinds: Kinds) -> dict[str, NDArray[Any]]:
    with npz.opened(path) as (header, open_members):
        members = open_members()
        return {name: members[f"c{i}"] for i, name in enumerate(header["columns"])}
