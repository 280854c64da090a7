"""Kill a study's server at random under a plant that tries again: nothing answered is lost, nothing counts twice."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from tests.served import Served, go_on
from tests.soak.kill_study import SNAPSHOT_EVERY, Inquest, compare
from tests.studies import Plant, kettle, records_of

EPISODES = 40


@dataclass
class Toll:
    """What the kills came to."""

    kills: int = 0
    answering: int = 0  # of a server that had answered since it was started
    finished: int = 0  # studies that came to their end
    tells: int = 0  # recorded
    calls: int = 0  # sent, with those that were sent again


def kill_server_often(folder: Path, kills: int, seed: int, *, longest: float = 0.6) -> Toll:
    """Every other kill waits for the server's first answer, so that a slow machine kills working servers, too."""
    rng, toll = np.random.default_rng(seed), Toll()
    while toll.kills < kills or not toll.finished:
        path, heard = folder / f"served{toll.finished}", folder / f"answers{toll.finished}.jsonl"
        server = Served(path, kettle().problem, snapshot_every=SNAPSHOT_EVERY)
        plant = _Driver(server, Plant(kettle(), seed + toll.finished), heard)
        server.start(wait=False)
        plant.start()
        while plant.is_alive():
            before = plant.answered
            while toll.kills % 2 and plant.answered == before and plant.is_alive():
                plant.join(0.005)
            plant.join(float(rng.uniform(0.0, longest)))
            if plant.is_alive() and toll.kills < kills:
                server.kill()
                toll.kills += 1
                toll.answering += plant.answered > before
                server.start(wait=False)
        server.stop()
        if plant.failed is not None:
            raise plant.failed
        Inquest(path, heard).hold()
        toll.tells += _counted_once(path, heard)
        toll.calls += plant.calls
        compare(folder, path, seed + toll.finished, EPISODES)
        assert sf.audit(path).clean
        toll.finished += 1
    return toll


class _Driver(threading.Thread):
    """The plant, which writes down what it was answered."""

    def __init__(self, server: Served, plant: Plant, heard: Path) -> None:
        super().__init__(daemon=True)
        self._caller, self._plant, self._heard = server.caller("plant"), plant, heard
        self.failed: BaseException | None = None
        self.answered = 0

    @property
    def calls(self) -> int:
        return self._caller.tries

    def run(self) -> None:
        try:
            with self._heard.open("a", encoding="utf-8") as file:

                def seen(what: str, content: Any) -> None:
                    self.answered += 1
                    if what == "ask":
                        content = {key: value for key, value in content.items() if key != "next"}
                    file.write(json.dumps([what, content]) + "\n")
                    file.flush()

                go_on(self._caller, self._plant, EPISODES, seen)
        except BaseException as error:
            self.failed = error


def _counted_once(path: Path, heard: Path) -> int:
    """One record for each tell that was answered, however often it was sent. → how many."""
    told = [record["ask"] for record in records_of(path) if record["kind"] == "tell"]
    answered = [json.loads(line)[1][0] for line in heard.read_text().splitlines() if line.startswith('["tell"')]
    assert len(told) == len(set(told))
    assert set(answered) <= set(told)
    assert len(answered) == len(told)  # each was answered in the end, to a caller that did not give up
    return len(told)
