"""``make soak``: kills and power cuts by the hundred, readers beside a writer, servers and workers that are killed.

python -m tests.soak [--kills 500] [--cuts 2000] [--reads 10000] [--server-kills 200] [--tasks 200] [--seed 0]
    [--folder DIR]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.soak.kill_server import kill_server_often
from tests.soak.kill_study import kill_often
from tests.soak.kill_sweep import kill_workers
from tests.soak.power_study import cut_often
from tests.soak.read_study import read_often


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500, help="kill -9 of a running study")
    parser.add_argument("--cuts", type=int, default=2000, help="crashes on a disk that loses what is not synced")
    parser.add_argument("--reads", type=int, default=10_000, help="of a study that another process is writing")
    parser.add_argument("--tasks", type=int, default=200, help="of a sweep on a cluster whose workers are killed")
    parser.add_argument("--server-kills", type=int, default=200, help="kill -9 of a study's server under a client")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to be tested; a temporary one otherwise")
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        killed, given_up = kill_workers(Path(folder), given.tasks, given.seed)
    seconds = time.perf_counter() - began
    print(f"{killed} workers killed in a sweep of {given.tasks}, {given_up} runs given up and resumed, ", end="")
    print(f"the same bytes ({seconds:.0f} s, seed {given.seed})")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        kills, finished = kill_often(Path(folder), given.kills, given.seed)
    seconds = time.perf_counter() - began
    print(f"{kills} kills, {finished} studies finished, nothing lost ({seconds:.0f} s, seed {given.seed})")
    began = time.perf_counter()
    cuts = cut_often(given.cuts, given.seed)
    seconds = time.perf_counter() - began
    print(f"{cuts} crashes that lost what was not synced, nothing acknowledged lost ({seconds:.0f} s)")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        reads, studies = read_often(Path(folder), given.reads, given.seed)
    seconds = time.perf_counter() - began
    print(f"{reads} reads of {studies} studies that were being written, nothing missing ({seconds:.0f} s)")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        kills, finished = kill_server_often(Path(folder), given.server_kills, given.seed)
    seconds = time.perf_counter() - began
    print(f"{kills} kills of a server, {finished} studies finished, nothing lost or counted twice ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
