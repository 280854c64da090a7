"""Run folders that somebody edited: every change of one field ends in a clear error, or makes no difference."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli import results
from surefoot.cli.runs import summaries
from surefoot.errors import SurefootError
from surefoot.experiment.sweep import Contender, Outcome, Spec, open_folder, resume, sweep
from surefoot.report import html

RUN = Path("runs/lsvi-new/seed-0000")
FILES = [Path("sweep.json"), Path("times.json"), RUN / "manifest.json", RUN / "policy.json"]
MISSING, NOT_A_NUMBER, INFINITE = object(), "@nan@", "@infinite@"  # the last two are not JSON that Python would write
VALUES = (
    *(MISSING, None, True, False, -1, 0, 1, 1.5, 1e308, -1e-308, 10**30, 10**400, NOT_A_NUMBER, INFINITE),
    *("", "x", "é\u2028", "\ud800", "../..", "1", [], {}, [None], [[]], {"x": None}, [0, 0]),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents, one seed, knobs and options that are not the usual ones."""
    root = tmp_path_factory.mktemp("sweep") / "runs"
    agents = [Contender("lsvi-new", {"failure_probability": 0.1}), Contender("seed")]
    sweep(Spec("thermal/testing", agents, [0], 30, {"bound": 0.61}), root, jobs=1, progress=False)
    return root


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every entry of a document; of a long list the first and the last, which have the others' form."""
    if path:
        yield path
    if isinstance(node, dict):
        for key in node:
            yield from places(node[key], (*path, key))
    elif isinstance(node, list):
        for i in sorted({0, len(node) - 1} - {-1}):
            yield from places(node[i], (*path, i))


def edited(document: Any, path: tuple[Any, ...], value: Any) -> str:
    changed = copy.deepcopy(document)
    part = changed
    for key in path[:-1]:
        part = part[key]
    if value is MISSING:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    text = json.dumps(changed)
    return text.replace(f'"{NOT_A_NUMBER}"', "NaN").replace(f'"{INFINITE}"', "1e999")


def edits(document: Any) -> Iterator[tuple[str, str]]:
    """(what was changed, the file's new text)"""
    for path in places(document):
        for value in VALUES:
            yield f"{path} = {'missing' if value is MISSING else repr(value)[:40]}", edited(document, path, value)


def export(root: Path) -> None:
    results.export(root, policy=root / "exported.json", agent="", seed=None, force=True)


def table(root: Path) -> None:
    folder = open_folder(root)
    summaries(Outcome(folder, len(folder.finished()), len(folder.places()), 0, ()))


READERS = {
    "report": html.write,
    "export": export,
    "resume": lambda root: resume(root, jobs=1, progress=False),
    "table": table,
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
@pytest.mark.parametrize("reader", READERS)
def test_every_edit_of_one_field_is_refused_clearly_or_works(
    reader: str, file: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "_write_figure", lambda draw, name, folder: "<svg/>")  # what is drawn was read before
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    source, original = root / file, (runs / file).read_text("utf-8")
    raw, refused, worked = [], 0, 0
    for what, text in edits(json.loads(original)):
        source.write_text(text, encoding="utf-8")
        try:
            READERS[reader](root)
            worked += 1
        except SurefootError as error:
            refused += 1
            if len(str(error)) > 2000 or not str(error).isprintable():
                raw.append(f"{what}: {error!s:.100}")
        except Exception as error:
            raw.append(f"{what}: {error!r:.200}")
        if reader == "resume" and not (root / RUN).is_dir():
            pytest.fail(f"{what}: a finished run is gone")
    assert not raw, f"{len(raw)} of {refused + worked + len(raw)}:\n" + "\n".join(raw[:40])
    assert worked > 0
