"""Run folders that somebody edited: every change of one field ends in a clear error, or makes no difference."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli import export as exporting
from surefoot.cli.sweeping import summaries
from surefoot.errors import InvalidInput, SurefootError, UnreadableFile
from surefoot.reports import data
from surefoot.reports import page as html
from surefoot.runs.record import EpisodeTable
from surefoot.sweeps.sweep import Contender, Outcome, Spec, open_folder, resume_sweep, sweep

SVG = '<svg viewBox="0 0 4 3"></svg>'
RUN = Path("runs/lsvi-new/seed-0000")
SWEEP, TIMES, MANIFEST, POLICY = Path("sweep.json"), Path("times.json"), RUN / "manifest.json", RUN / "policy.json"
MISSING, NOT_A_NUMBER, INFINITE = object(), "@nan@", "@infinite@"  # the last two are not JSON that Python would write
VALUES = (
    *(MISSING, None, True, -1, 0, 1.5, 1e308, 10**30, 10**400, NOT_A_NUMBER, INFINITE),
    *("", "x", "é\u2028", "\ud800", "../..", [], {}, [None], {"x": None}, [0, 0]),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents, one seed, options and options that are not the usual ones."""
    root = tmp_path_factory.mktemp("sweep") / "runs"
    agents = [Contender("lsvi-new", {"failure_probability": 0.1}), Contender("fallback")]
    sweep(Spec("thermal/testing", agents, [0], 10, {"bound": 0.61}), root, jobs=1, progress=False)
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


def edits(document: Any, every: bool) -> Iterator[tuple[str, str]]:
    """(what was changed, the file's new text). Unless ``every``, each place gets a sixth of the values in turn."""
    for n, path in enumerate(places(document)):
        for value in VALUES if every else VALUES[n % 6 :: 6]:
            yield f"{path} = {'missing' if value is MISSING else repr(value)[:40]}", edited(document, path, value)


def export(root: Path) -> None:
    exporting.export_command(root, out=root / "exported.json", agent="", seed=None, force=True)


def table(root: Path) -> None:
    folder = open_folder(root)
    summaries(Outcome(folder, len(folder.finished()), len(folder.places()), 0, ()))


READERS = {
    "report": (html.write_page, (SWEEP,)),
    "what the report says": (data.read_sweep, (TIMES, MANIFEST)),
    "export": (export, (SWEEP, POLICY)),
    "resume": (lambda root: resume_sweep(root, jobs=1, progress=False), (SWEEP,)),  # ledgers as the table reads them
    "table": (table, (SWEEP, TIMES, MANIFEST)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "file"), [(name, file) for name, (_, files) in READERS.items() for file in files])
def test_every_edit_of_one_field_is_refused_clearly_or_works(
    reader: str, file: Path, runs: Path, tmp_path: Path, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "write_figure", lambda draw, name, folder: SVG)  # what is drawn was read before
    monkeypatch.setattr(
        data, "_kept_plans", lambda folder, world, done: (data.KeptPlans(), world)
    )  # archives of their own
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    source, original = root / file, (runs / file).read_text("utf-8")
    raw, refused, worked = [], 0, 0
    for what, text in edits(json.loads(original), every=thorough):
        source.write_text(text, encoding="utf-8")
        try:
            READERS[reader][0](root)
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


# ---------------------------------------------------------------- edits that make sense, and are lies


def test_a_run_of_another_place_is_refused(runs: Path, tmp_path: Path) -> None:
    """A valid run, moved to where another belongs, or beside a manifest that says otherwise."""
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    (root / "runs/lsvi-new/seed-0000").rename(root / "spare")
    (root / "runs/fallback/seed-0000").rename(root / "runs/lsvi-new/seed-0000")
    for reader in (html.write_page, table, READERS["resume"][0]):
        with pytest.raises(
            UnreadableFile, match=r"not the one of this place.*agent 'fallback' where 'lsvi-new'.*Remove"
        ):
            reader(root)
    shutil.rmtree(root)
    shutil.copytree(runs, root)
    manifest = json.loads((root / SWEEP).read_text("utf-8"))
    (root / SWEEP).write_text(json.dumps({**manifest, "episodes": 20}))
    with pytest.raises(UnreadableFile, match="episodes 10 where 20 is expected"):
        resume_sweep(root, jobs=1, progress=False)


def test_a_summary_that_its_tables_contradict_is_refused(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    source = tmp_path / "runs" / MANIFEST
    manifest = json.loads(source.read_text("utf-8"))
    for name, value in (("violations", 1), ("total_regret", 0.0), ("cost_event", False), ("value_event", False)):
        source.write_text(json.dumps({**manifest, "summary": {**manifest["summary"], name: value}}))
        with pytest.raises(UnreadableFile, match=rf"summary does not match the run.*\$\.summary\.{name}"):
            html.write_page(tmp_path / "runs")


def test_too_many_episodes_are_refused_before_they_are_laid_out() -> None:
    with pytest.raises(InvalidInput, match=r"too many episodes for one run.*at most"):
        EpisodeTable.blank(10**12, 1)
