"""Kill a running study with ``kill -9`` at random moments, hundreds of times, and see what is left.

The plant answers by episode and layer alone, so that an uninterrupted study can be compared. After every kill:

* every tell that was acknowledged before the kill is in the journal, as it was told;
* every action that was offered before is offered again with the very same content while it is pending.

At the end the state equals that of an uninterrupted study, bit for bit. A few kills of this kind are part of
``make test`` (``tests/unit/test_study_crash.py``), as is the loss of everything that was not synced, which no kill
shows.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.model.labels import Label
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from tests.studies import Plant, fingerprint, go_on, kettle

EPISODES = 60
SNAPSHOT_EVERY = 25


def child(path: str, heard: str, seed: int, episodes: int) -> None:
    """Go on with the study and write down what was answered, until killed or done."""
    file = os.open(heard, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def seen(what: str, content: Any) -> None:
        os.write(file, (json.dumps([what, content]) + "\n").encode())

    study = sf.Study.open(path, kettle().problem, snapshot_every=SNAPSHOT_EVERY)
    seen("open", list(study.recovered))
    go_on(study, Plant(kettle(), seed), episodes, seen)
    study.close()
    seen("done", None)


class Inquest:
    """What was answered to the processes that died, against what the journal says."""

    def __init__(self, path: Path, heard: Path) -> None:
        self._path, self._heard = path, heard
        self.answers = 0

    def hold(self) -> None:
        """Everything acknowledged is there; nothing was offered in two ways."""
        name = self._path / journals.NAME
        end = journals.scan(name, FileLayer()).end.size  # what is behind was not written to its end
        kept = [line.record(name) for line in journals.read_lines(name, FileLayer(), end=end)]
        asked = {r["ask"]: r for r in kept if r["kind"] == "ask"}
        told = {r["ask"]: r for r in kept if r["kind"] == "tell"}
        ended = {r["episode"]: r for r in kept if r["kind"] == "terminal"}
        offered: dict[tuple[int, int], Label] = {}
        self.answers = 0
        for line in self._heard.read_text().splitlines():
            what, content = json.loads(line)
            self.answers += 1
            if what == "ask":
                step = (content["episode"], content["step"])
                assert offered.setdefault(step, content) == content, f"offered in two ways: {step}"
                record = asked[content["ask_id"]]
                assert all(record[key] == content[key] for key in ("episode", "step", "state", "action", "certificate"))
            elif what == "tell":
                name, after, cost = content
                assert (told[name]["next_state"], told[name]["cost"]) == (after, cost), f"a tell is not there: {name}"
            elif what == "tell_terminal":
                assert ended[content[0]]["cost"] == content[1]


def kill_often(
    folder: Path, kills: int, seed: int, *, episodes: int = EPISODES, longest: float = 0.5
) -> tuple[int, int]:
    """Kill so many processes; studies that come to their end are compared and new ones begun. → (kills, ends)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.soak.warm", "tests.soak.kill_study"])
    rng = np.random.default_rng(seed)
    done, finished = 0, 0
    while done < kills or not finished:
        path, heard = folder / f"study{finished}", folder / f"heard{finished}.jsonl"
        heard.touch()
        before = heard.stat().st_size
        process = context.Process(target=child, args=(str(path), str(heard), seed + finished, episodes))
        process.start()
        if done < kills:
            if rng.random() < 0.7:  # let it come as far as its first answer; else it may die while it opens
                while heard.stat().st_size == before and process.is_alive():
                    time.sleep(0.001)
            time.sleep(float(rng.uniform(0.0, longest)))
            if process.is_alive() and process.pid is not None:
                with contextlib.suppress(ProcessLookupError):  # it has just come to its end
                    os.kill(process.pid, signal.SIGKILL)
                    done += 1
        process.join()
        os.truncate(heard, heard.read_bytes().rfind(b"\n") + 1)  # killed while it wrote this down: nobody heard it
        if (path / journals.NAME).exists():
            Inquest(path, heard).hold()
        if heard.read_text().endswith('["done", null]\n'):
            compare(folder, path, seed + finished, episodes)
            finished += 1
    return done, finished


def compare(folder: Path, path: Path, seed: int, episodes: int) -> None:
    """The study that was killed and one that was not are in the same state."""
    quiet = sf.Study.open(folder / f"quiet{seed}", kettle().problem, snapshot_every=SNAPSHOT_EVERY)
    go_on(quiet, Plant(kettle(), seed), episodes)
    with sf.Study.open(path) as study:
        mine, other = fingerprint(study), fingerprint(quiet)
        for each in (mine, other):
            each.pop("made_after")  # snapshots fall elsewhere, so records have other numbers
        assert mine == other
    quiet.close()
