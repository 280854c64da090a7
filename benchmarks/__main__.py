"""``make bench``: everything that is claimed about speed, as ratios of pairs measured in this very run.

Prints one table, what falls short in red. A whole run writes benchmarks/results.json, and from it the table of
docs/benchmarks.md and its picture. A run of some parts, or one ended by Ctrl-C, leaves these alone: what it measured
goes to build/benchmarks.json. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.rows import Row, falls_short, has_aim, not_measured

PARTS = (
    "bench_plan",
    "bench_runs",
    "bench_seeds",
    "bench_identity",
    "bench_stormpy",
    "bench_exact",
    "bench_rlberry",
    "bench_foundation",
    "bench_first_call",
    "bench_study",
)
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
UNFINISHED = ROOT / "build" / "benchmarks.json"


def measure(part: str) -> list[Row]:
    """The rows of a part. One that lacks a package here says so; anything else that goes wrong is an error."""
    try:
        rows = importlib.import_module(f"benchmarks.{part}").run()
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("benchmarks", "surefoot", "tests"):
            raise
        rows = [not_measured(part, f"{missing.name} is not installed")]
    return [{"part": part, **row, "value": row.get("value")} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--out", type=Path, help="where the numbers go, as JSON")
    chosen = parser.parse_args()
    wanted = chosen.parts or PARTS
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")

    from rich.console import Console

    console = Console()
    found: dict[str, Any] = {"machine": describe(), "seconds": {}, "rows": []}
    failed, interrupted, began = False, False, time.perf_counter()
    for number, part in enumerate(wanted, 1):
        console.print(f"[dim]{number:2}/{len(wanted)}  {part:17}[/]", end="")
        since = time.perf_counter()
        try:
            found["rows"] += measure(part)
            ending = ""
        except KeyboardInterrupt:
            interrupted = True
            break
        except Exception as error:  # the parts to come are worth their time all the same
            failed = True
            ending = f"[bold red]  failed: {type(error).__name__}: {error}[/]"
            found["rows"].append({"part": part, "name": part, "value": None, "note": f"failed: {error}"})
            console.print()
            traceback.print_exc()
        now = time.perf_counter()
        found["seconds"][part] = now - since
        console.print(f"[dim]{now - since:6.1f} s, {now - began:6.1f} s in all[/]{ending}")
    if interrupted:
        console.print(f"[bold red]interrupted[/]: {len(found['seconds'])} of {len(wanted)} parts are done")
    if found["rows"]:
        from benchmarks.table import show

        show(console, found["rows"])
    whole = set(wanted) == set(PARTS) and not (failed or interrupted)
    out = chosen.out or (RESULTS if whole else UNFINISHED)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1, default=float, ensure_ascii=False) + "\n", encoding="utf-8")
    aims = [row for row in found["rows"] if has_aim(row)]
    console.print(f"{sum(map(falls_short, aims))} of {len(aims)} aims missed; numbers in {out}", soft_wrap=True)
    if whole and out == RESULTS:
        from benchmarks import page, picture

        console.print(f"wrote {page.write(found)}", *picture.write(found), soft_wrap=True)
    return 130 if interrupted else int(failed)


if __name__ == "__main__":
    sys.exit(main())
