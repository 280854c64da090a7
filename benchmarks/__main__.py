"""``make bench``: everything that is claimed about speed, as ratios of pairs measured in this very run.

Prints one table, what falls short in red. What is measured goes to build/benchmarks.json part by part, so that Ctrl-C
loses little; a whole run then becomes benchmarks/results.json, and from it come the tables and the picture of
docs/benchmarks.md. With --update, some parts take the place of their last measurement there. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.machine import describe
from benchmarks.rows import Row, falls_short, has_aim, not_measured
from benchmarks.table import show

PARTS = (
    "bench_plan",
    "bench_sparse",
    "bench_rays",
    "bench_plants",
    "bench_growing",
    "bench_runs",
    "bench_seeds",
    "bench_bounds",
    "bench_identity",
    "bench_stormpy",
    "bench_exact",
    "bench_rlberry",
    "bench_foundation",
    "bench_first_call",
    "bench_study",
    "bench_shield",
    "bench_serve",
)
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
UNFINISHED = ROOT / "build" / "benchmarks.json"
BUSY = 0.5  # processes that want a core before we do
EXIT_CODES = {"whole": 0, "failed": 1, "interrupted": 130}


def measure(part: str) -> list[Row]:
    """The rows of a part. One that lacks a package here says so; anything else that goes wrong is an error."""
    try:
        rows = importlib.import_module(f"benchmarks.{part}").run()
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("benchmarks", "surefoot", "tests"):
            raise
        rows = [not_measured(part, f"{missing.name} is not installed")]
    return [{"part": part, **row, "value": row.get("value")} for row in rows]


def keep(found: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1, default=float, ensure_ascii=False) + "\n", encoding="utf-8")


def measure_all(parts: Sequence[str], out: Path, console: Console) -> tuple[dict[str, Any], str]:
    """What the parts found, written after each, and how it ended: "whole", "failed" (a part did) or "interrupted"."""
    found: dict[str, Any] = {"machine": describe(), "seconds": {}, "rows": []}
    if (load := found["machine"]["load"] or 0.0) > BUSY:
        console.print(f"[yellow]other work is on these cores (load {load:g}): the ratios below will suffer[/]")
    ending, began = "whole", time.perf_counter()
    for number, part in enumerate(parts, 1):
        console.print(f"[dim]{number:2}/{len(parts)}  {part:17}[/]", end="")
        since = time.perf_counter()
        try:
            found["rows"] += measure(part)
        except KeyboardInterrupt:
            console.print("[bold red]interrupted[/]")
            keep(found, out)
            return found, "interrupted"
        except Exception as error:  # the parts to come are worth their time all the same
            ending = "failed"
            console.print(f"[bold red]failed: {type(error).__name__}[/]")
            traceback.print_exc()
            found["rows"].append({"part": part, "name": part, "value": None, "note": f"failed: {type(error).__name__}"})
        now = time.perf_counter()
        found["seconds"][part] = now - since
        keep(found, out)
        console.print(f"[dim]{now - since:6.1f} s, {now - began:6.1f} s in all[/]")
    return found, ending


def updated(known: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The known results with other rows for the parts that were found, and the day on which these were measured."""
    rows = [row for row in known["rows"] if row["part"] not in found["seconds"]] + found["rows"]
    later = known.get("later", {}) | dict.fromkeys(found["seconds"], found["machine"]["date"])
    return {
        "machine": known["machine"],
        "later": {part: date for part, date in later.items() if date != known["machine"]["date"]},
        "seconds": known["seconds"] | found["seconds"],
        "rows": sorted(rows, key=lambda row: PARTS.index(row["part"])),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--out", type=Path, help="where the numbers go, as JSON")
    parser.add_argument("--update", action="store_true", help="put the measured parts into the committed results")
    chosen = parser.parse_args()
    parts = chosen.parts or PARTS
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    console, out = Console(width=None if sys.stdout.isatty() else 120), chosen.out or UNFINISHED
    found, ending = measure_all(parts, out, console)
    show(found["rows"], console)
    aims = [row for row in found["rows"] if has_aim(row)]
    console.print(f"{sum(map(falls_short, aims))} of {len(aims)} aims missed; numbers in {out}", soft_wrap=True)
    whole = set(parts) == set(PARTS) and not chosen.out
    if ending == "whole" and (whole or chosen.update):
        from benchmarks import page, picture  # which needs Matplotlib

        found = found if whole else updated(page.read(), found)
        keep(found, RESULTS)
        console.print("wrote", RESULTS, page.write(found), *picture.write(found), soft_wrap=True)
    return EXIT_CODES[ending]


if __name__ == "__main__":
    sys.exit(main())
