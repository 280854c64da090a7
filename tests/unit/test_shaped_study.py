"""The shape of the ridge in studies: that of the declaration which the data began with, as long as these are kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits import epoch as audit_epoch
from surefoot.audits.audit import audit
from surefoot.audits.bounds import Data
from surefoot.estimate.costs import CostData
from tests.answered import uneven
from tests.studies import Calm, Quick, fingerprint, records_of

SNAPSHOTS = ("after", "before", "none")  # of those that a killed study finds: made since the answer, earlier ones, none


def opened(path: Path, *problem: sf.Problem) -> sf.Study:
    return sf.Study.open(path, *problem, files=Quick(), monitor_factory=Calm, snapshot_every=5)


def play(study: sf.Study, episodes: int) -> None:
    """No two measurements are alike; what follows is the farthest that is declared."""
    for _ in range(episodes):
        study.begin()
        offer, n = study.ask(), study.standing.tells
        after = study.problem.successors(0, 0, offer.action)[-1]
        study.tell(offer.ask_id, after, [0.2 + 0.1 * after + n / 1000, 0.1 + n / 3000])


def widened(path: Path) -> sf.Study:
    """A study whose support is widened after twelve episodes, its data kept."""
    study = opened(path, uneven(2))
    play(study, 12)
    study.begin()
    study.tell(study.ask().ask_id, 2, [0.4, 0.1], action_applied="go")
    study.acknowledge("it goes further", problem=uneven(3))
    return study


def killed(study: sf.Study, path: Path, folder: Path, kept: str) -> Path:
    """What a process that was killed here leaves behind, with some of its snapshots."""
    copy = folder / f"{kept}-{study.standing.episodes}.study"
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("lock"))
    answer = next((record["n"] for record in records_of(path) if record["kind"] == "acknowledge"), 10**9)
    for file in (copy / "snapshots").iterdir():
        if kept == "none" or (kept == "before" and int(file.stem) > answer):
            file.unlink()
    return copy


def shapes(problem: sf.Problem) -> Any:
    return sf.LsviNew(problem).costs.shapes


def test_rows_that_a_wider_support_adds_would_have_another_shape() -> None:
    """Else what follows would prove nothing."""
    first, other = shapes(uneven(2)), shapes(uneven(3))
    assert first.shape == other.shape
    assert not np.allclose(first, other, rtol=0.05)


@pytest.mark.parametrize("kept", SNAPSHOTS)
def test_a_widened_study_that_was_killed_makes_the_plans_of_one_that_was_not(kept: str, tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    study, first = widened(path), shapes(uneven(2))
    copies = [killed(study, path, tmp_path, kept)]
    play(study, 9)
    copies.append(killed(study, path, tmp_path, kept))
    play(study, 14)
    assert study.standing.agent.replans > 4
    assert study.standing.agent.costs.shapes.tobytes() == first.tobytes()
    state = fingerprint(study)
    study.close()
    assert audit(path).clean, str(audit(path))
    for copy, missing in zip(copies, (23, 14), strict=True):
        again = opened(copy)
        assert again.standing.agent.costs.shapes.tobytes() == first.tobytes()
        play(again, missing)
        assert fingerprint(again) == state
        again.close()
        assert audit(copy).clean, str(audit(copy))


@pytest.mark.parametrize("kept", SNAPSHOTS)
def test_a_shape_that_is_made_anew_would_be_seen(kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a study that forgets it makes other plans, and its audit finds other bounds than it offers."""
    path, arrays = tmp_path / "a.study", CostData.arrays
    study = widened(path)
    copy = killed(study, path, tmp_path, kept)
    play(study, 23)
    state = fingerprint(study)
    study.close()

    def forgetful(self: CostData) -> dict[str, Any]:
        return {name: array for name, array in arrays(self).items() if name != "shapes"}

    monkeypatch.setattr(CostData, "arrays", forgetful)
    again = opened(copy)
    assert again.standing.agent.costs.shapes.tobytes() == shapes(uneven(3)).tobytes()
    play(again, 23)
    other = fingerprint(again)
    again.close()
    assert other["upper 0"] != state["upper 0"]
    assert not audit(copy).clean


def test_an_audit_that_makes_the_shape_anew_disagrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: of the audit's own half."""
    path = tmp_path / "a.study"
    study = widened(path)
    play(study, 9)
    study.close()
    assert audit(path).clean, str(audit(path))
    monkeypatch.setattr(audit_epoch, "Data", lambda problem, paper, since=None: Data(problem, paper))
    assert not audit(path).clean


def test_without_data_the_shape_is_that_of_what_is_declared_now(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    study = opened(path, uneven(2))
    play(study, 6)
    study.begin()
    study.tell(study.ask().ask_id, 2, [0.4, 0.1], action_applied="go")
    study.acknowledge("it goes further", problem=uneven(3), discard_data=True)
    assert study.standing.agent.costs.shapes.tobytes() == shapes(uneven(3)).tobytes()
    play(study, 9)
    state = fingerprint(study)
    study.close()
    for _ in range(2):
        again = opened(path)
        assert fingerprint(again) == state
        again.close()
        for file in (path / "snapshots").iterdir():
            file.unlink()
    assert audit(path).clean, str(audit(path))
