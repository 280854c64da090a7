"""A plan of a problem larger than memory: its time against reading the bytes, under a limit that the system enforces.

A backward sweep needs V of all states of the next step: so it must read a table that steps share once for each of them.
A plan is compared with reading as often, and nothing else, all that a step has: features and graph. Both read the
disk, past the system's cache of files, as they do where a problem is larger than half of the memory; what came from the
disk is counted, as the system counts it. Then both are timed on files that the system has in its cache, where a plan is
bound by arithmetic. Threads are numba's (NUMBA_NUM_THREADS), and the readers'.

python -m benchmarks.scale [--triplets 2e7] [--limit 4e9] [--folder DIR | --problem DIR] [--rounds 3] [--no-cache]
                           [--memory] [--workers 4]

A problem of so many triplets a step, 16 features in float32, is written block by block. A process of its own, which
may have no more than the limit in memory of its own (``RLIMIT_DATA``: mapped files do not count, all else does), maps
it, learns from some episodes and plans. With ``--memory`` another process loads all of it, and with ``--workers``
another plans on so many workers, each under the limit, and says what every kind of question to them took. All plans
must be the same bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np

import surefoot as sf
from surefoot import clusters
from surefoot.estimate.row_bounds import BLOCK
from surefoot.plan.blockwise.team import Cost
from surefoot.storage import read_ahead
from surefoot.storage.read_ahead import ReadAhead

DIM, ACTIONS, BRANCHES, HORIZON = 16, 2, 5, 4
ROWS = 1 << 20  # that are written at a time
EPISODES = 30


def build(folder: Path, triplets: int) -> Path:
    """A problem whose steps share one table; nothing of its size is ever in memory."""
    states = triplets // (ACTIONS * BRANCHES)
    triplets, rng = states * ACTIONS * BRANCHES, np.random.default_rng(0)
    x = np.memmap(folder / "x.raw", np.float32, "w+", shape=(triplets, DIM))
    following = np.memmap(folder / "s.raw", np.int32, "w+", shape=(triplets,))
    for first in range(0, triplets, ROWS):
        end = min(triplets, first + ROWS)
        rows = rng.random((end - first, DIM), np.float32) - np.float32(0.5)
        rows[:, 0] = 1.0
        rows *= (rng.uniform(0.3, 1.0, (end - first, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")
        x[first:end] = rows
        edge = np.arange(first, end)
        following[first:end] = (edge // (ACTIONS * BRANCHES) * 7 + edge % BRANCHES * 31 + edge // BRANCHES % 2) % states
    problem = sf.Problem.from_arrays(
        horizon=HORIZON,
        start=0,
        state_ptr=np.arange(0, states * ACTIONS + 1, ACTIONS),
        pair_ptr=np.arange(0, triplets + 1, BRANCHES),
        successors=following,
        reward=np.tile([0.1, 0.9], states),
        cost_features=x,
        fallback=np.zeros(states, np.int64),
        limits=sf.Limit("load", bound=0.6, noise=0.05, norm=1.0),
        stationary_costs=True,
        stationary_transitions=True,
    )
    path = problem.save(folder / "big.problem")
    del problem, x, following
    for name in ("x.raw", "s.raw"):
        (folder / name).unlink()
    return path


def measure(path: Path, limit: float, mapped: bool, workers: int, rounds: int, cache: bool) -> dict[str, Any]:
    """In this process, with this limit: load, learn a little, plan; on so many workers, unless there are none.

    Of several rounds the quickest is told: others use the machine, too."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
    began = time.perf_counter()
    problem = sf.Problem.load(path, mapped=mapped)
    loaded = time.perf_counter()
    agent = sf.LsviNew(problem, replan_growth=1e9, on=clusters.on_this_machine(workers) if workers else None)
    ready = time.perf_counter()
    for _ in range(EPISODES):
        agent.begin_episode(0)
        state = 0
        for h in range(HORIZON - 1):
            action = agent.act(h, state)
            following = problem.successors(h, state, action)[0]
            agent.observe(h, state, action, following, 0.3)
            state = following
        agent.end_episode()
    if agent.team is not None:
        agent.team.costs.clear()
    print(f"ready after {time.perf_counter() - began:.0f} s, {agent.plan}", file=sys.stderr, flush=True)
    layer, times = problem.graph.layers[0], dict[str, Any]()
    if mapped and not workers:
        with mock.patch.object(read_ahead, "KEPT", 0.0):
            times["from_disk"] = against_reading(agent, rounds)
        if cache:
            times["from_cache"] = against_reading(agent, rounds)
    else:
        times["plan"] = min((timed(agent.replan) for _ in range(rounds)), key=lambda one: one["seconds"])
    assert not agent.plan_failure, agent.plan_failure
    plan, told = agent.plan, hashlib.sha256()
    for part in (*plan.values.value, *plan.values.action, *plan.certified_sets.pairs):
        told.update(np.ascontiguousarray(part).tobytes())
    return {
        "mapped": mapped,
        "workers": workers,
        "threads": numba.get_num_threads(),
        "triplets": layer.n_edges,
        "feature_bytes": layer.cost_features.nbytes,
        "limit_bytes": int(limit),
        "load_seconds": round(loaded - began, 2),
        "first_plan_seconds": round(ready - loaded, 2),
        "load": os.getloadavg()[0],
        **times,
        "explores": plan.directed is not None,
        "gap": round(plan.gap, 4),
        "certified": plan.n_certified(),
        "own_memory_between_plans": _own_memory(),
        "questions": {} if agent.team is None else {name: _told(cost) for name, cost in agent.team.costs.items()},
        "digest": told.hexdigest(),
    }


def against_reading(agent: sf.LsviNew, rounds: int) -> dict[str, Any]:
    """A plan, and reading once and as often as a plan must all that the steps have."""
    steps, problem = HORIZON - 1, agent.problem
    work: dict[str, Callable[[], object]] = {
        "plan": agent.replan,
        "read_once": lambda: read(problem),
        f"read_{steps}_times": lambda: read(problem, steps),
    }
    found = {name: list[dict[str, float]]() for name in work}
    for _ in range(rounds):
        for name, each in work.items():
            found[name].append(timed(each))
    best: dict[str, Any] = {name: min(each, key=lambda one: one["seconds"]) for name, each in found.items()}
    reading = best[f"read_{steps}_times"]
    best[f"plan_over_reading_{steps}_times"] = round(best["plan"]["seconds"] / reading["seconds"], 2)
    return best


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Seconds by the clock and of the processor; GB from the disk."""
    before, began, worked = _from_disk(), time.perf_counter(), time.process_time()
    work()
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    return {
        "seconds": round(seconds, 2),
        "processor": round(processor, 2),
        "disk_gb": round((_from_disk() - before) / 1e9, 3),
    }


def read(problem: sf.Problem, times: int = 1) -> None:
    """All that a step has, so many times, and nothing else; as fast as files are read here."""
    layer = problem.graph.layers[0]
    for _ in range(times):
        with ReadAhead(layer.arrays()) as reading:
            for part in reading.parts(layer.cuts(BLOCK), lambda cut, read: layer.part(*cut, read)):
                with part:
                    pass


def _from_disk() -> int:
    """Bytes that this process made the system read."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes"):
            return int(line.split()[1])
    return 0


def _told(cost: Cost) -> dict[str, float]:
    return {name: round(number, 4) for name, number in asdict(cost).items()}


def _own_memory() -> int:
    """Bytes that count against the limit, now; the system does not tell how many it were at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData"):
            return int(line.split()[1]) << 10
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triplets", type=float, default=2e7)
    parser.add_argument("--limit", type=float, default=4e9, help="bytes of its own that the planning process may have")
    parser.add_argument("--folder", type=Path, default=None, help="where the problem is written, and removed again")
    parser.add_argument("--problem", type=Path, default=None, help="one that is there, to be used instead")
    parser.add_argument("--workers", type=int, default=0, help="plan on so many workers too, and compare")
    parser.add_argument("--memory", action="store_true", help="plan in memory too, and compare")
    parser.add_argument("--no-cache", action="store_true", help="only from the disk")
    parser.add_argument("--rounds", type=int, default=3, help="how often plan and readings are timed")
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--mapped", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        options = given.mapped, given.workers, given.rounds, not given.no_cache
        print(json.dumps(measure(given.child, given.limit, *options)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        began, path = time.perf_counter(), given.problem
        if path is None:
            path = build(Path(folder), int(given.triplets))
            print(f"built in {time.perf_counter() - began:.0f} s", flush=True)
        ways = [["--mapped", "--limit", str(given.limit), *(["--no-cache"] if given.no_cache else [])]]
        if given.memory:
            ways.append(["--limit", "1e12"])
        if given.workers:
            ways.append([*ways[0], "--workers", str(given.workers)])
        found = []
        for words in ways:
            command = [
                sys.executable,
                "-m",
                "benchmarks.scale",
                "--child",
                str(path),
                "--rounds",
                str(given.rounds),
                *words,
            ]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append(json.loads(answer.splitlines()[-1]))
            print(json.dumps(found[-1]), flush=True)
    assert len({each["digest"] for each in found}) == 1, "the plans differ"


if __name__ == "__main__":
    main()
