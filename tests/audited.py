"""Studies and their audits, for tests: what clean means, and where an exception was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.audits.audit import AuditReport, audit
from tests.forgery import Record, records_of
from tests.studies import Calm, Plant, Quick, go_on, kettle


def study_at(path: Path, world: sf.World | sf.Problem, **options: Any) -> sf.Study:
    problem = world.problem if isinstance(world, sf.World) else world
    return sf.Study.open(path, problem, **{"files": Quick(), "monitor_factory": Calm, **options})


def played(path: Path, episodes: int) -> Path:
    """A study of the kettle that leaves its fallback before long."""
    world = kettle()
    with study_at(path, world) as study:
        go_on(study, Plant(world, 0), episodes)
    return path


def clean(path: Path) -> AuditReport:
    report = audit(path)
    assert report.clean, str(report)
    assert report.exit_code == 0
    assert "CLEAN" in str(report)
    return report


def found(path: Path, *words: str, at: int | None = None) -> AuditReport:
    """The report of a study with exceptions, one of which has these words, at this record."""
    report = audit(path)
    assert report.exit_code == 1
    hits = [item for item in report.exceptions if all(word in item.what for word in words)]
    assert hits, str(report)
    if at is not None:
        assert at in [item.record for item in hits], str(report)
        assert f"record {at} " in str(report)
    return report


def first(path: Path, kind: str, condition: Callable[[Record], bool] = lambda record: True, skip: int = 0) -> int:
    """The number of the first record of a kind, after some."""
    return next(r["n"] for r in records_of(path) if r["kind"] == kind and r["n"] >= skip and condition(r))
