"""What the tests of studies share: a plant, the folder of its study, and a way to open it again and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import surefoot as sf
from tests.commanded import Surefoot, in_this_process
from tests.studies import kettle, opener


@pytest.fixture
def world() -> sf.World:
    return kettle()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plant.study"


@pytest.fixture
def opened(path: Path, world: sf.World) -> Callable[..., sf.Study]:
    return opener(path, world)


@pytest.fixture
def surefoot(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Surefoot:
    """``surefoot("run", …)`` in this process, in a directory of its own: exit code and what it printed."""
    return in_this_process(monkeypatch, capfd, tmp_path)
