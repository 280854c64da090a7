"""A study of 50,000 ask/tell pairs: what a pair costs at the beginning and at the end, and how long reopening takes.

A pair is timed without the disk, over a stretch of a thousand; its cost must not grow. On a real disk two syncs come on
top, which take far longer. Reopening starts from the newest snapshot, the whole journal verified; replaying has none.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import show
from surefoot import worlds
from surefoot.storage.disk import FileLayer
from surefoot.study.study import Study

PAIRS = 50_000
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
                    h = offer.step
                    edge = self._sampler.step(h, problem.pair_index(h, offer.state, offer.action))
                    after, cost = states[h + 1][int(layers[h].successor[edge])], self._sampler.measure(h, edge)
                    plant += time.perf_counter() - at
                    ep.tell(after, cost)
                    told += 1
        return 1e6 * (time.perf_counter() - began - plant) / told


def run(pairs: int = PAIRS) -> list[Row]:
    plant = _Plant()
    with tempfile.TemporaryDirectory() as folder:
        synced = sf.Study.open(Path(folder) / "synced", plant.world.problem)
        plant.play(synced, 20)
        on_disk = plant.play(synced, 200)
        synced.close()
        path = Path(folder) / "long"
        study = sf.Study.open(path, plant.world.problem, files=NoSync())
        plant.play(study, 20)
        by_tells = {}
        for mark in (pairs // 10, pairs // 2, pairs):
            plant.play(study, max(1, mark - STRETCH - study.standing.tells))
            by_tells[mark] = plant.play(study, STRETCH)
        study.close()
        size = (path / "journal.jsonl").stat().st_size
        reopen = _opened(path)
        shutil.rmtree(path / "snapshots")
        replay = _opened(path)
    return [
        row(
            f"a study: cost of an ask/tell pair after {pairs:,} over that after {pairs // 10:,}",
            by_tells[pairs] / by_tells[pairs // 10],
            at_most=1.5,
            pair_us={str(mark): microseconds for mark, microseconds in by_tells.items()},
        ),
        row("a study: an ask/tell pair with the disk's syncs over one without", on_disk / by_tells[pairs]),
        row(
            f"a study of {pairs:,} pairs: replaying it all over reopening from a snapshot",
            replay / reopen,
            reopen_seconds=reopen,
            replay_seconds=replay,
            journal_megabytes=size / 1e6,
        ),
    ]


def _opened(path: Path) -> float:
    began = time.perf_counter()
    sf.Study.open(path, files=NoSync()).close()
    return time.perf_counter() - began


if __name__ == "__main__":
    show(run())
