"""Kill a study's server at random under a plant that tries again: nothing answered is lost, nothing counts twice."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from tests.served import Served, go_on
from tests.soak.kill_study import SNAPSHOT_EVERY, Inquest, compare
from tests.studies import Plant, kettle, records_of

EPISODES = 40


def kill_server_often(folder: Path, kills: int, seed: int, *, longest: float = 0.6) -> tuple[int, int]:
    """→ (kills, studies that came to their end under them)."""
    rng, done, finished = np.random.default_rng(seed), 0, 0
    while done < kills or not finished:
        path, heard = folder / f"served{finished}", folder / f"answers{finished}.jsonl"
        server = Served(path, kettle().problem, snapshot_every=SNAPSHOT_EVERY)
        plant = _Driver(server, Plant(kettle(), seed + finished), heard)
        server.start(wait=False)
        plant.start()
        while plant.is_alive():
            plant.join(float(rng.uniform(0.0, longest)))
            if plant.is_alive() and done < kills:
                server.kill()
                done += 1
                server.start(wait=False)
        server.stop()
        if plant.failed is not None:
            raise plant.failed
        Inquest(path, heard).hold()
        _counted_once(path, heard)
        compare(folder, path, seed + finished, EPISODES)
        assert sf.audit(path).clean
        finished += 1
    return done, finished


class _Driver(threading.Thread):
    """The plant, which writes down what it was answered."""

    def __init__(self, server: Served, plant: Plant, heard: Path) -> None:
        super().__init__(daemon=True)
        self._caller, self._plant, self._heard = server.caller("plant"), plant, heard
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            with self._heard.open("a", encoding="utf-8") as file:

                def seen(what: str, content: Any) -> None:
                    if what == "ask":
                        content = {key: value for key, value in content.items() if key != "next"}
                    file.write(json.dumps([what, content]) + "\n")
                    file.flush()

                go_on(self._caller, self._plant, EPISODES, seen)
        except BaseException as error:
            self.failed = error


def _counted_once(path: Path, heard: Path) -> None:
    """One record for each tell that was answered, however often it was sent."""
    told = [record["ask"] for record in records_of(path) if record["kind"] == "tell"]
    answered = [json.loads(line)[1][0] for line in heard.read_text().splitlines() if line.startswith('["tell"')]
    assert len(told) == len(set(told))
    assert set(answered) <= set(told)
    assert len(answered) == len(told)  # each was answered in the end, to a caller that did not give up
