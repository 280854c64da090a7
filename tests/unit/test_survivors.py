"""What a mistake in the safety code must not survive: each of these was made by hand or by ``make mutants``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.audits.audit import audit
from surefoot.errors import UnreadableFile
from tests.studies import Calm, Quick, kettle


def exact(problem: sf.Problem) -> sf.Problem:
    """The same without noise, and with a norm that costs just reach."""
    limit = dataclasses.replace(problem.limits[0], noise=0.0, norm=1.0)
    return dataclasses.replace(problem, limits=(limit,))


@pytest.mark.parametrize("off", [1e-7, 1e-5, 1e-3])
def test_the_audit_knows_a_contradiction_to_its_last_digits(tmp_path: Path, off: float) -> None:
    """L‖x‖ = 0.1 and a cost that is larger by so little exclude each other; the audit finds the alarm right."""
    options: Any = {"files": Quick(), "monitor_factory": Calm, "ridges": [1e-18], "replan_growth": 0.0}
    with sf.Study.open(tmp_path / "s", exact(kettle().problem), **options) as study:
        with study.episode("s") as ep:
            ep.ask()
            ep.tell("s", 0.1 + off, action_applied="wait")
            ep.abort("on")
        assert [alarm["alarm"] for alarm in study.status()["alarms"]] == ["contradiction"]
    report = audit(tmp_path / "s")
    assert report.clean, str(report)


# --- the journal ----------------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "s" / "journal.jsonl").mkdir(parents=True)
    with pytest.raises(UnreadableFile, match=r"the journal cannot be read: .*journal\.jsonl"):
        sf.Study.open(tmp_path / "s", kettle().problem)
