"""Compiling that takes long is said, once, and only where somebody reads it."""

from __future__ import annotations

import time

import pytest
from numba.core import event

from surefoot import compiling
from surefoot.compiling import compiling_said

KIND = "numba:compile"


def compile_for(seconds: float) -> None:
    """What numba tells while it compiles a function that calls another."""
    with event.trigger_event(KIND), event.trigger_event(KIND):
        time.sleep(seconds)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiling.PATIENCE == 2.0
    monkeypatch.setattr(compiling, "PATIENCE", 0.1)


def test_it_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with compiling_said(True):
        compile_for(0.3)
        compile_for(0.3)
    assert capsys.readouterr().err == f"{compiling.WORDS}\n"


def test_what_is_compiled_in_time_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    with compiling_said(True):
        compile_for(0.0)
        time.sleep(0.3)  # other work
    compile_for(0.3)  # afterwards nobody listens
    with compiling_said(False):
        compile_for(0.3)
    with compiling_said():  # no terminal
        compile_for(0.3)
    assert capsys.readouterr().err == ""
