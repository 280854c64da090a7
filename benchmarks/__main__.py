"""``make bench``: everything that is claimed about speed, as ratios of pairs measured in this very run.

Prints one table, what falls short in red, and writes benchmarks/results.json and docs/images/benchmarks.png.
Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

PARTS = ("bench_plan", "bench_runs", "bench_stormpy", "bench_exact", "bench_foundation")
RESULTS = Path(__file__).parent / "results.json"


def falls_short(row: dict[str, Any]) -> bool:
    target, value = row.get("target"), row.get("value")
    if target is None or value is None:
        return False
    if row["better"] == "within":
        return not target[0] <= value <= target[1]
    return bool(value > target if row["better"] == "lower" else value < target)


def aim(row: dict[str, Any]) -> str:
    target = row.get("target")
    if target is None:
        return ""
    if row["better"] == "within":
        return f"{target[0]:g} … {target[1]:g}"
    return f"{'≤' if row['better'] == 'lower' else '≥'} {target:g}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the numbers go, as JSON")
    chosen = parser.parse_args()
    from rich.console import Console
    from rich.table import Table

    console = Console()
    rows: list[dict[str, Any]] = []
    for part in chosen.parts or PARTS:
        console.print(f"[dim]{part} …[/]")
        module = importlib.import_module(f"benchmarks.{part}")
        rows += [{"part": part, **row, "value": row.get("value", row.get("ratio"))} for row in module.run()]
    table = Table(header_style="bold")
    for column in ("what", "measured", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.4g}"
        table.add_row(row["name"], f"[bold red]{value}[/]" if falls_short(row) else value, aim(row))
    console.print(table)
    machine = {"python": platform.python_version(), "processor": platform.machine()}
    chosen.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2, default=float) + "\n")
    short = sum(map(falls_short, rows))
    console.print(f"{short} of {sum(bool(aim(r)) for r in rows)} aims missed; numbers in {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
