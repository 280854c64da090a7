"""Every program in the README and the docs prints what the page says it prints, and every command runs.

After a change that alters what they print: ``python -m tests.docs.test_programs`` writes the new output into the pages.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot import cli

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)
COMMANDS = re.compile(r"^surefoot .*$", re.MULTILINE)
NUMBER = re.compile(r" *\d+(?:\.\d+)?")
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    if PROGRAM.search(text := path.read_text("utf-8")) or COMMANDS.search(text)
)


def numbers(text: str) -> list[float]:
    """The numbers of a printed text. Processors differ in the last bits, and what is learned after a tie with them, so
    that a page's numbers are asked to be near, and its words, zeros and small counts to be the same."""
    return [float(found) for found in NUMBER.findall(text)]


def printed_by(source: str, names: dict[str, Any], page: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(page), "exec"), names)
    return printed.getvalue()


def run_commands(commands: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """(Lines behind a ``$`` are shown, not run: they take long, or hold what only their reader has.)"""
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[1] == "run" and "--on" not in words:
            words += ["--jobs", "1"]  # in this process, which has compiled everything
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs_print_what_the_page_says_and_commands_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}  # a page is one session, as a reader would type it
    text = page.read_text(encoding="utf-8")
    for source, expected in PROGRAM.findall(text):
        said, found = expected, printed_by(source, names, page)
        assert NUMBER.sub("#", found) == NUMBER.sub("#", said), source
        assert numbers(found) == pytest.approx(numbers(said), rel=0.05), source
    for problem in declared(names.values()):
        assert sf.check(problem).errors == []
    run_commands(COMMANDS.findall(text), monkeypatch)  # with the files that the programs wrote


def declared(values: Iterable[Any]) -> Iterator[sf.Problem]:
    """The problems among some values."""
    for value in values:
        problem = value.problem if isinstance(value, sf.World) else value
        if isinstance(problem, sf.Problem):
            yield problem


def test_the_pages_with_programs_are_found() -> None:
    assert {"README.md", "tutorial.md", "howto.md"} <= {page.name for page in PAGES}


def made_by(script: str) -> Any:
    """The module of a script in docs that writes a part of a page."""
    spec = importlib.util.spec_from_file_location(script, ROOT / "docs" / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_symbol_table_is_that_of_the_code() -> None:
    symbols = made_by("make_symbols")
    assert symbols.page() == symbols.PAGE.read_text(encoding="utf-8"), "run: python docs/make_symbols.py"
    assert "| β₁ |" in symbols.page()


def test_the_tables_of_the_shield_are_what_was_measured() -> None:
    made = made_by("make_shield")
    assert made.page() == made.PAGE.read_text(encoding="utf-8"), "run: python docs/make_shield.py"
    found = json.loads(made.MILLION.read_text(encoding="utf-8"))
    assert sum(row["steps"] for row in found.values()) >= 1_000_000
    assert sum(row["violations"] for row in found.values() if row["events"] == row["runs"]) == 0


def test_a_foreign_environment_in_25_lines() -> None:
    """Gymnasium's FrozenLake, not our copy: the random walker falls without the shield, and never inside."""
    example = ROOT / "examples" / "frozen_lake.py"
    source = example.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 25
    bare, shielded = printed_by(source, {}, example).splitlines()
    assert int(bare.split()[1]) > 100
    assert shielded == "shielded: 0 falls in 3000 steps"


def rewrite(page: Path) -> None:
    names: dict[str, Any] = {}

    def filled(match: re.Match[str]) -> str:
        output = printed_by(match[1], names, page)
        return f"```python\n{match[1]}```" + (f"\n```text\n{output}```" if output else "")

    page.write_text(PROGRAM.sub(filled, page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    for page in PAGES:
        rewrite(page)
