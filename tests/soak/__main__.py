"""``make soak``: kills and power cuts by the hundred, readers beside a writer, servers and workers that are killed.

python -m tests.soak [sweep study cuts reads server] [--kills 500] [--cuts 2000] [--reads 10000]
    [--server-kills 200] [--tasks 200] [--seed 0] [--folder DIR]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.soak.kill_server import kill_server_often
from tests.soak.kill_study import kill_often
from tests.soak.kill_sweep import fill_disk, kill_workers, lose_scheduler, whole
from tests.soak.power_study import cut_often
from tests.soak.read_study import read_often


def _sweep(folder: Path, given: argparse.Namespace) -> str:
    expected = whole(folder, given.tasks)
    killed, given_up = kill_workers(folder, expected, given.tasks, given.seed)
    crashes = lose_scheduler(folder, expected, given.tasks, given.seed)
    full = fill_disk(folder, expected, given.tasks, given.seed)
    return (
        f"{killed} workers killed in a sweep of {given.tasks}, {given_up} runs given up and resumed, {crashes} "
        f"schedulers lost, {full} full disks: the same bytes"
    )


def _study(folder: Path, given: argparse.Namespace) -> str:
    kills, finished = kill_often(folder, given.kills, given.seed)
    return f"{kills} kills, {finished} studies finished, nothing lost"


def _cuts(folder: Path, given: argparse.Namespace) -> str:
    return f"{cut_often(given.cuts, given.seed)} crashes that lost what was not synced, nothing acknowledged lost"


def _reads(folder: Path, given: argparse.Namespace) -> str:
    reads, studies = read_often(folder, given.reads, given.seed)
    return f"{reads} reads of {studies} studies that were being written, nothing missing"


def _server(folder: Path, given: argparse.Namespace) -> str:
    found = kill_server_often(folder, given.server_kills, given.seed)
    return (
        f"{found.kills} kills of a server, {found.answering} of them after it had answered, {found.finished} studies "
        f"finished, {found.tells} tells in {found.calls} calls, nothing lost or counted twice"
    )


PARTS: dict[str, Callable[[Path, argparse.Namespace], str]] = {
    "sweep": _sweep,
    "study": _study,
    "cuts": _cuts,
    "reads": _reads,
    "server": _server,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--kills", type=int, default=500, help="kill -9 of a running study")
    parser.add_argument("--cuts", type=int, default=2000, help="crashes on a disk that loses what is not synced")
    parser.add_argument("--reads", type=int, default=10_000, help="of a study that another process is writing")
    parser.add_argument("--tasks", type=int, default=200, help="of a sweep on a cluster whose workers are killed")
    parser.add_argument("--server-kills", type=int, default=200, help="kill -9 of a study's server under a client")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to be tested; a temporary one otherwise")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in given.parts or PARTS:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            said = PARTS[name](Path(folder), given)
        print(f"{said} ({time.perf_counter() - began:.0f} s, seed {given.seed})", flush=True)


if __name__ == "__main__":
    main()
