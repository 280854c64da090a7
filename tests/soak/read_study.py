"""Read studies that another process is writing, thousands of times: an auditor, a reader and a reporter by turns.

Records are added and snapshots come and go under their hands. Nothing may be missing, nothing called altered.
"""

from __future__ import annotations

import itertools
import multiprocessing
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.audits.audit import audit
from surefoot.reports.study_history import History
from tests.studies import Calm, Plant, Quick, go_on, kettle

EPISODES = 40  #: of a study; then the next one begins


def write(folder: str, seed: int, current: Any, enough: Any) -> None:
    """One study after the other, with a snapshot every other row, until it is enough."""
    for k in itertools.count(1):
        options: dict[str, Any] = {"files": Quick(), "monitor_factory": Calm, "snapshot_every": 2}
        with sf.Study.open(Path(folder) / str(k), kettle().problem, **options) as study:
            current.value = k
            for episode in range(EPISODES):
                go_on(study, Plant(kettle(), seed + k), episode + 1)
                if enough.is_set():
                    return


def read_often(folder: Path, reads: int, seed: int) -> tuple[int, int]:
    """→ (reads, studies that were written meanwhile)."""
    context = multiprocessing.get_context("spawn")
    current, enough = context.Value("q", 0), context.Event()
    writer = context.Process(target=write, args=(str(folder), seed, current, enough))
    writer.start()
    done = 0
    try:
        while done < reads:
            if not current.value:
                assert writer.is_alive(), "the writer died"
                continue
            path = folder / str(current.value)
            report = audit(path)
            assert report.clean, str(report)
            assert sf.Study.open(path, read_only=True, monitor_factory=Calm).standing.applied >= report.records
            History(sf.Problem.load(path / "problem.json")).read(path / "journal.jsonl")
            done += 3
        assert writer.is_alive(), "the writer died"
    finally:
        enough.set()
        writer.join()
    return done, int(current.value)
