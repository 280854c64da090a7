"""``surefoot …`` in this process: its exit code, what it prints, and what a refusal looks like."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surefoot import cli


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Surefoot = Callable[..., Ended]


def in_this_process(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path) -> Surefoot:
    """``surefoot("run", …)`` in this folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "140")

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["surefoot", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, *capfd.readouterr())

    return run


def refused(ended: Ended, *words: str, code: int = 2) -> None:
    """One short line on standard error, no traceback."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    lines = [line for line in ended.err.splitlines() if line.startswith("surefoot: ")]
    assert len(lines) == 1, ended.err
    assert len(lines[0]) < 600
    for word in words:
        assert word in lines[0]


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*words: Any, **options: Any) -> Any:
        raise error

    return fail
