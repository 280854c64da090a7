"""A study over HTTP: what an ask/tell pair costs there, over one in Python; both wait for the disk's syncs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import show
from tests.served import Caller, served
from tests.studies import Plant

PAIRS = 300
TIMES = 3


class Pairs:
    """Drives a study, and counts its own time apart."""

    def __init__(self) -> None:
        self.world = sf.worlds.make("thermal/testing")
        self.plant = Plant(self.world, 0)

    def in_python(self, study: sf.Study, pairs: int) -> float:
        """Milliseconds per pair."""
        told, apart, began = 0, 0.0, time.perf_counter()
        while told < pairs:
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    at = time.perf_counter()
                    after, cost = self.plant.answer(offer.episode, offer.step, offer.state, offer.action)
                    apart += time.perf_counter() - at
                    episode.tell(after, cost)
                    told += 1
        return 1e3 * (time.perf_counter() - began - apart) / told

    def over_http(self, caller: Caller, pairs: int) -> float:
        told, apart, began = 0, 0.0, time.perf_counter()
        while told < pairs:
            caller.call("begin")
            done = False
            while not done:
                offer = caller.call("ask")
                at = time.perf_counter()
                after, cost = self.plant.answer(offer["episode"], offer["step"], offer["state"], offer["action"])
                apart += time.perf_counter() - at
                done = caller.call("tell", ask_id=offer["ask_id"], next_state=after, cost=cost)["done"]
                told += 1
        return 1e3 * (time.perf_counter() - began - apart) / told


def run(pairs: int = PAIRS) -> list[Row]:
    driver = Pairs()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with (
            sf.Study.open(root / "python", driver.world.problem) as study,
            served(root / "http", driver.world.problem) as server,
        ):
            caller = server.caller("plant")
            driver.in_python(study, 20)
            driver.over_http(caller, 20)
            rounds = [(driver.in_python(study, pairs), driver.over_http(caller, pairs)) for _ in range(TIMES)]
    python, http = (min(each) for each in zip(*rounds, strict=True))
    return [
        row(
            "a study: an ask/tell pair over HTTP over one in Python, both with the disk's syncs",
            http / python,
            at_most=2.0,
            http_ms=http,
            python_ms=python,
        )
    ]


if __name__ == "__main__":
    show(run())
