"""Power that fails while a problem, a policy or the folder of a sweep is written (studies: test_study_crash)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import UnreadableFile
from surefoot.model.problem import Problem
from surefoot.runs.ledger import Ledger
from surefoot.storage import disk
from surefoot.sweeps import sweep
from surefoot.sweeps.sweep import Contender
from tests.saved_problems import labelled, template
from tests.studies import LossyDisk, PowerCut, Quick
from tests.sweeps import contents, left_over, small


class Hasty(LossyDisk):
    """Moves a file into its place without waiting for its content: what the tests below must not let pass."""

    def fsync(self, file: int) -> None:
        self._touch()


def left_of(folder: Path, layer: LossyDisk, patch: pytest.MonkeyPatch, suffix: str) -> tuple[bool, str]:
    """Replace a saved problem while the power fails. → was it acknowledged; the digest of what is left."""
    folder.mkdir()
    path = template().save(folder / f"p.{suffix}")
    layer.adopt(folder)
    done = False
    with patch.context() as here, contextlib.suppress(PowerCut):
        here.setattr(disk, "DISK", layer)
        labelled().save(path)
        done = True
    layer.after_power_cut(folder, folder / "left")
    return done, Problem.load(folder / "left" / path.name).digest


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_a_saved_problem_is_the_old_or_the_new_one(
    suffix: str, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = template().digest, labelled().digest
    for calls in (1, 2, 3):  # two touches: the file, its folder
        layer = LossyDisk(calls, np.random.default_rng([seed, calls]))
        done, left = left_of(tmp_path / str(calls), layer, monkeypatch, suffix)
        assert done == (calls == 3)
        assert left == new if done else left in (old, new)


def test_a_problem_that_is_not_synced_would_be_caught(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def often() -> None:
        for i in range(20):
            left_of(tmp_path / str(i), Hasty(9, np.random.default_rng([seed, i])), monkeypatch, "npz")

    with pytest.raises(UnreadableFile):
        often()


def test_a_sweep_ends_the_same_whenever_the_power_failed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that stands in its place is complete; whatever is missing is played again, to the same bytes."""
    spec = small(20, seeds=[0], agents=[Contender("lsvi-new")])
    monkeypatch.setattr(disk, "DISK", counted := LossyDisk(10**6, np.random.default_rng(0)))
    sweep.sweep(spec, tmp_path / "whole", jobs=1, checkpoint_seconds=0)
    touches, whole = 10**6 - counted._left, contents(tmp_path / "whole")
    rng = np.random.default_rng(seed)
    for calls in sorted({1, 4, touches - 1, touches, *rng.integers(2, touches, 8).tolist()}):
        root, left = tmp_path / str(calls) / "s", tmp_path / f"left{calls}"
        root.parent.mkdir()
        layer = LossyDisk(calls, rng)
        layer.adopt(root.parent)
        monkeypatch.setattr(disk, "DISK", layer)
        with contextlib.suppress(PowerCut):
            sweep.sweep(spec, root, jobs=1, checkpoint_seconds=0)
        monkeypatch.setattr(disk, "DISK", Quick())
        layer.after_power_cut(root.parent, left)
        for run in (left / "s/runs").glob("*/seed-????"):
            Ledger.load(run)
        if (left / "s/sweep.json").exists():
            sweep.resume_sweep(left / "s", jobs=1)
        else:
            sweep.sweep(spec, left / "s", jobs=1)
        assert contents(left / "s") == whole, calls
        assert left_over(left / "s") == []
