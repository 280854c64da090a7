"""Let the power fail under a study: everything that was not synced is gone, directory entries too.

A kill shows none of this, for what a dead process wrote stays in the system's cache. Here a disk remembers what was
synced (:class:`tests.studies.LossyDisk`); at a random touch of it either the process dies, or the power fails.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from tests.soak.kill_study import Inquest
from tests.studies import Calm, LossyDisk, Plant, PowerCut, Quick, fingerprint, go_on, kettle, tell_again

EPISODES = 14


def survive(folder: Path, seed: int, disk: type[LossyDisk], shortest: int = 1, longest: int = 25) -> int:
    """Run a study through power cuts until it is done, every answer checked against what is left. → cuts"""
    rng, plant = np.random.default_rng(seed), Plant(kettle(), seed)
    heard = folder / "heard.jsonl"
    heard.write_text("")

    attempts: list[Any] = []

    def seen(what: str, content: Any) -> None:
        if what == "about to tell":
            attempts[:] = [content]
        with heard.open("a") as stream:
            stream.write(json.dumps([what, content]) + "\n")

    path, cuts, done = folder / "study0", 0, False
    layer, study = disk(0, rng), None
    while not done:
        layer.revive(int(rng.integers(shortest, longest)))
        try:
            study = sf.Study.open(path, kettle().problem, files=layer, monitor_factory=Calm, snapshot_every=7)
            for attempt in attempts:
                tell_again(study, attempt, seen)
            go_on(study, plant, EPISODES, seen)
            done = True
            study.close()
        except PowerCut:
            cuts += 1
            if study is not None:
                study.close()  # the process is gone, and its lock
                study = None
            if rng.random() < 0.6:  # else it was the process alone
                left = folder / f"study{cuts}"
                layer.after_power_cut(path, left)
                path, layer = left, disk(0, rng)
                layer.adopt(path)
        if (path / "journal.jsonl").exists():
            Inquest(path, heard).hold()
    quiet = sf.Study.open(folder / "quiet", kettle().problem, files=Quick(), monitor_factory=Calm)
    go_on(quiet, plant, EPISODES)
    mine = fingerprint(sf.Study.open(path, files=Quick(), monitor_factory=Calm))
    other = fingerprint(quiet)
    for each in (mine, other):
        each.pop("made_after")  # snapshots fall elsewhere, so records have other numbers
    assert mine == other
    return cuts


def cut_often(cuts: int, seed: int) -> int:
    """Studies with so many crashes in all; → how many it were."""
    done = 0
    while done < cuts:
        with tempfile.TemporaryDirectory() as folder:
            done += survive(Path(folder), seed + done, LossyDisk)
    return done
