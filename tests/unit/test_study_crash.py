"""Crashes: processes that are killed, and power that fails with everything that was not synced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import UnreadableFile
from tests.soak.kill_study import Inquest, kill_often
from tests.soak.power_study import EPISODES, survive
from tests.studies import Calm, LossyDisk, Plant, PowerCut, Quick, go_on, kettle


class Forgetful(LossyDisk):
    """Says that the journal is synced when it is not: what the tests below must not let pass."""

    def fsync(self, file: int) -> None:
        self._touch()


@pytest.mark.parametrize("i", range(3))
def test_no_acknowledged_tell_is_lost_when_the_power_fails(tmp_path: Path, seed: int, i: int) -> None:
    """The disk loses everything that was not synced, at a random touch, again and again."""
    assert survive(tmp_path, 100 * seed + i, LossyDisk) > 3


def begin(path: Path, layer: LossyDisk, seed: int, answers: list[str]) -> None:
    study = sf.Study.open(path, kettle().problem, files=layer, monitor_factory=Calm)
    go_on(study, Plant(kettle(), seed), EPISODES, lambda *said: answers.append(json.dumps(said)))


def test_power_that_fails_at_every_touch_of_the_disk(tmp_path: Path, seed: int) -> None:
    """The first calls of a study's life, cut at each of their touches of the disk in turn."""
    for calls in range(1, 25):
        folder = tmp_path / str(calls)
        folder.mkdir()
        rng = np.random.default_rng([seed, calls])
        layer, path, heard = LossyDisk(calls, rng), folder / "study", folder / "heard.jsonl"
        answers: list[str] = []
        with pytest.raises(PowerCut):
            begin(path, layer, seed, answers)
        heard.write_text("\n".join(answers))
        layer.after_power_cut(path, folder / "left")
        again = sf.Study.open(folder / "left", kettle().problem, files=Quick(), monitor_factory=Calm)
        Inquest(folder / "left", heard).hold()
        go_on(again, Plant(kettle(), seed), 2)
        again.close()


def test_a_folder_that_a_dead_process_made_is_synced_by_the_next_one(tmp_path: Path, seed: int) -> None:
    """The process dies at each touch of the disk in turn, a second one acknowledges a tell, then the power fails."""
    for calls in range(1, 20):
        root = tmp_path / str(calls)
        root.mkdir()
        path, heard = root / "deep" / "study", root / "heard.jsonl"
        layer, answers = LossyDisk(calls, np.random.default_rng([seed, calls])), list[str]()
        layer.adopt(root)
        with pytest.raises(PowerCut):
            begin(path, layer, seed, [])
        layer.revive(10**6)
        study = sf.Study.open(path, kettle().problem, files=layer, monitor_factory=Calm)
        go_on(study, Plant(kettle(), seed), 2, lambda *said, to=answers: to.append(json.dumps(said)))
        study.close()
        heard.write_text("\n".join(answers))
        layer.after_power_cut(root, tmp_path / f"left{calls}")
        Inquest(tmp_path / f"left{calls}" / "deep" / "study", heard).hold()


def test_what_a_dead_process_left_unsynced_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    """A tell was written, its process died before the sync, the caller says it again; then the power fails."""

    class Sober:
        """Of what was not synced, nothing survives."""

        @staticmethod
        def integers(*range_: int) -> int:
            return 0

    path, layer = tmp_path / "study", LossyDisk(10**6, Sober())  # type: ignore[arg-type]
    study = sf.Study.open(path, kettle().problem, files=layer, monitor_factory=Calm)
    study.begin("s")
    offer = study.ask()
    layer.revive(2)  # the tell is appended; its sync is the last thing the process sees
    with pytest.raises(PowerCut):
        study.tell(offer.ask_id, "s", 0.125)
    study.close()
    layer.revive(10**6)
    again = sf.Study.open(path, files=layer, monitor_factory=Calm)
    assert again.tell(offer.ask_id, "s", 0.125).repeated
    layer.after_power_cut(path, tmp_path / "left")
    left = sf.Study.open(tmp_path / "left", files=Quick(), monitor_factory=Calm)
    assert left.tell(offer.ask_id, "s", 0.125).repeated


def test_a_journal_that_is_not_synced_would_be_caught(tmp_path: Path, seed: int) -> None:
    with pytest.raises((AssertionError, KeyError, UnreadableFile)):
        survive(tmp_path, seed, Forgetful, shortest=30, longest=60)


def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(tmp_path: Path, seed: int) -> None:
    """Real processes, real ``kill -9``, most of them in the middle of an fsync; ``make soak`` does it 500 times."""
    kills, finished = kill_often(tmp_path, 8, seed, episodes=15, longest=0.15)
    assert kills == 8
    assert finished >= 1
