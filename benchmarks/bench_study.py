"""A study of 100,000 ask/tell pairs: what a pair costs at the beginning and at the end, and how long reopening takes.

``pair_us`` is without the disk, in microseconds, over a stretch of a thousand pairs; it must not grow. On a real disk
two syncs come on top (``synced_pair_us``), which take far longer. ``reopen_s`` starts from the newest snapshot, the
whole journal verified; ``replay_s`` is without any snapshot.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import surefoot as sf
from benchmarks.timing import show
from surefoot import worlds
from surefoot.study.filelayer import FileLayer
from surefoot.study.study import Study

PAIRS = 100_000
STRETCH = 1_000


class NoSync(FileLayer):
    """Everything but the waiting for the disk."""

    def fsync(self, file: int) -> None:
        pass

    def fsync_dir(self, path: Path) -> None:
        pass


class _Plant:
    def __init__(self) -> None:
        self.world = worlds.make("thermal/small")
        self._sampler = self.world.sampler(0)

    def play(self, study: Study, pairs: int) -> float:
        """Microseconds per pair, over whole episodes; the plant's own time is not counted."""
        problem, states, layers = self.world.problem, self.world.problem.naming.states, self.world.problem.graph.layers
        told, plant = 0, 0.0
        began = time.perf_counter()
        while told < pairs:
            with study.episode() as ep:
                while not ep.done:
                    offer = ep.ask()
                    at = time.perf_counter()
                    h = offer.layer
                    edge = self._sampler.step(h, problem.pair_index(h, offer.state, offer.action))
                    after, cost = states[h + 1][int(layers[h].successor[edge])], self._sampler.measure(h, edge)
                    plant += time.perf_counter() - at
                    ep.tell(after, cost)
                    told += 1
        return 1e6 * (time.perf_counter() - began - plant) / told


def run(pairs: int = PAIRS) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    plant = _Plant()
    with tempfile.TemporaryDirectory() as folder:
        synced = sf.Study.open(Path(folder) / "synced", plant.world.problem)
        plant.play(synced, 20)
        rows.append({"what": "synced", "synced_pair_us": plant.play(synced, 200)})
        path = Path(folder) / "long"
        study = sf.Study.open(path, plant.world.problem, files=NoSync())
        plant.play(study, 20)
        marks = [pairs // 100, pairs // 10, pairs // 2, pairs]
        for mark in marks:
            plant.play(study, max(1, mark - STRETCH - study.standing.tells))
            rows.append({"what": "pairs", "tells": study.standing.tells, "pair_us": plant.play(study, STRETCH)})
        study.close()
        size = (path / "journal.jsonl").stat().st_size
        reopen = _opened(path)
        shutil.rmtree(path / "snapshots")
        rows.append({"what": "reopen", "megabytes": size / 1e6, "reopen_s": reopen, "replay_s": _opened(path)})
    return rows


def _opened(path: Path) -> float:
    began = time.perf_counter()
    sf.Study.open(path, files=NoSync()).close()
    return time.perf_counter() - began


if __name__ == "__main__":
    show(run())
