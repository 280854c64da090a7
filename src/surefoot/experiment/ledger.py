"""The ledger of a run on disk: a directory with a manifest and two tables. The same run gives the same bytes.

manifest.json     versions, seed, every constant, the guarantee
episodes.parquet  a row per episode   (or episodes.npz without pyarrow)
plans.parquet     a row per plan      (or plans.npz)
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.experiment.checkpoints import write_atomically
from surefoot.experiment.run import Run
from surefoot.model import npz

FORMATS = ("parquet", "npz")
MAX_MANIFEST = 16 << 20


@dataclass(frozen=True, eq=False)
class Ledger:
    """A run as it was written down."""

    manifest: dict[str, Any]
    episodes: dict[str, NDArray[Any]]  # a column per name; per limit: margin_NAME, highest_NAME
    plans: dict[str, NDArray[Any]]

    @property
    def regret(self) -> NDArray[np.float64]:
        """(K,) as :attr:`Run.regret`."""
        return self.episodes["regret"]

    @property
    def violations(self) -> NDArray[np.int64]:
        """(K,) as :attr:`Run.violations`."""
        return self.episodes["violations"]

    @staticmethod
    def load(path: str | Path) -> Ledger:
        return load(Path(path))


def save(run: Run, path: Path, format: str | None) -> Path:
    """Write a run's ledger; an existing directory is never overwritten."""
    if format is None:
        format = "parquet" if importlib.util.find_spec("pyarrow") else "npz"
    if format not in FORMATS:
        raise InvalidInput("no such ledger format", got=repr(format), fix=f"Use {' or '.join(FORMATS)}.")
    if format == "parquet" and not importlib.util.find_spec("pyarrow"):
        raise InvalidInput("Parquet needs pyarrow", fix="pip install 'surefoot[parquet]', or use format='npz'.")
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput("a ledger is there already", got=str(path), fix="Choose a new directory.") from None
    limits = [limit["name"] for limit in run.manifest["limits"]]
    tables = {"episodes": _by_limit(run.episodes_table.columns(), limits), "plans": run.plans_table.columns()}
    for name, columns in tables.items():
        if format == "parquet":
            _write_parquet(path / f"{name}.parquet", columns)
        else:
            names = json.dumps({"columns": list(columns)}).encode()
            arrays = {f"c{i}": np.ascontiguousarray(column) for i, column in enumerate(columns.values())}
            write_atomically(path / f"{name}.npz", names, arrays)
    digests = {file.name: _digest(file) for file in sorted(path.iterdir())}
    manifest = {**run.manifest, "summary": _summary(run), "tables": format, "sha256": digests}
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    temporary = path / ".manifest.json"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path / "manifest.json")  # last: a ledger without it is not finished
    return path


def _summary(run: Run) -> dict[str, Any]:
    return {
        "best_value": run.best_value,
        "seed_value": run.seed_value,
        "last_value": run.last_value,
        "gap_closed": run.gap_closed(),
        "total_regret": float(run.regret.sum()),
        "violations": int(run.violations.sum()),
        "replans": run.replans,
        "cost_event": run.cost_event,
        "value_event": run.value_event,
        "interrupted": run.interrupted,
    }


def _by_limit(columns: Mapping[str, NDArray[Any]], limits: list[str]) -> dict[str, NDArray[Any]]:
    """Columns of shape (K, m) become m columns, named after the limits."""
    flat: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        if column.ndim == 1:
            flat[name] = column
        else:
            flat.update({f"{name}_{limit}": column[:, j] for j, limit in enumerate(limits)})
    return flat


def _write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()})
    pyarrow.parquet.write_table(table, path, compression="zstd")


def load(path: Path) -> Ledger:
    """Read a ledger; one that is unfinished or damaged is an error that says which file."""
    source = path / "manifest.json"
    if not source.is_file():
        raise UnreadableFile("not a ledger", where=str(path), got="it has no manifest.json")
    with _blaming(source):
        if source.stat().st_size > MAX_MANIFEST:
            raise UnreadableFile("the manifest is too large")
        manifest = json.loads(source.read_text(encoding="utf-8"))
        if manifest["format"] != "surefoot-run":
            raise UnreadableFile("not a ledger of surefoot")
        if manifest["version"] > 1:
            raise UnreadableFile("written by a newer version", fix="Upgrade surefoot.")
        read = {"parquet": _read_parquet, "npz": _read_npz}[manifest["tables"]]
    tables = []
    for name in ("episodes", "plans"):
        source = path / f"{name}.{manifest['tables']}"
        with _blaming(source):
            if _digest(source) != manifest["sha256"][source.name]:
                raise UnreadableFile("the table is not the one that was written")
            tables.append(read(source))
    return Ledger(manifest, *tables)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _blaming(source: Path) -> Iterator[None]:
    """Whatever goes wrong with a file becomes one error that names it."""
    try:
        yield
    except UnreadableFile as error:
        got = ": ".join(part for part in (error.where, error.got) if part)
        raise UnreadableFile(error.rule, where=str(source), got=got, fix=error.fix) from error
    except Exception as error:  # pyarrow, json and the file system each have their own
        raise UnreadableFile("the ledger is damaged", where=str(source), got=repr(error)) from error


def _read_parquet(path: Path) -> dict[str, NDArray[Any]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        table = file.read()
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    with npz.opened(path, MAX_MANIFEST) as (text, open_members):
        members = open_members()
        return {name: members[f"c{i}"] for i, name in enumerate(json.loads(text)["columns"])}
