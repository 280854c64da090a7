"""Imported by the server from which processes are forked: all is compiled and loaded before the first."""

from __future__ import annotations

import tempfile
from pathlib import Path

import surefoot as sf
from tests.studies import Plant, Quick, go_on, kettle

with tempfile.TemporaryDirectory() as folder:
    study = sf.Study.open(Path(folder) / "study", kettle().problem, files=Quick(), snapshot_every=2)
    go_on(study, Plant(kettle(), 0), 40)
    study.close()
