"""Every program in the README and the docs runs, and prints what the page says it prints.

After a change that alters what they print: ``python -m tests.docs.test_programs`` writes the new output into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for path in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")] if "```python" in path.read_text("utf-8")
)
PROGRAM = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)


def printed_by(source: str, names: dict[str, Any], page: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(page), "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_program_prints_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}  # a page is one session, as a reader would type it
    for source, expected in PROGRAM.findall(page.read_text(encoding="utf-8")):
        assert printed_by(source, names, page) == expected, source


def test_the_pages_with_programs_are_found() -> None:
    assert {"README.md", "tutorial.md", "howto.md"} <= {page.name for page in PAGES}


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
