"""Writes the tables of docs/benchmarks.md from results.json: ``python -m benchmarks.page [results.json]``.

No number of that page is typed by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, aim, amount, binding, duration, falls_short, has_aim, measured, plans

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- numbers: made by benchmarks/page.py -->", "<!-- end of numbers -->"


def numbers(found: dict[str, Any]) -> str:
    """Markdown: what was measured on what, every row, and what the floors are made of."""
    parts = [_setting(found), _rows(found["rows"])]
    if floors := plans(found["rows"]):
        parts += ["What the floors of (a) are made of:", _floors(floors)]
    return "\n\n".join(parts)


def page(found: dict[str, Any]) -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    if not mark:
        raise ValueError(f"{PAGE.name} has no place for the numbers: {BEGIN}")
    return f"{before}{BEGIN}\n{numbers(found)}\n{END}{rest.partition(END)[2]}"


def write(found: dict[str, Any]) -> Path:
    PAGE.write_text(page(found), encoding="utf-8")
    return PAGE


def _setting(found: dict[str, Any]) -> str:
    machine, aims = found["machine"], [row for row in found["rows"] if has_aim(row)]
    load = "" if machine.get("load") is None else f"; load before it began: {machine['load']:g}"
    names = ("python", "numpy", "scipy", "numba", "stormpy", "quantecon")
    versions = ", ".join(f"{name} {machine[name]}" for name in names if name in machine)
    by_date: dict[str, list[str]] = {}
    for part, date in sorted(found.get("later", {}).items()):
        by_date.setdefault(date, []).append(part)
    later = "".join(f" ({', '.join(parts)}: {date})" for date, parts in by_date.items())
    return (
        f"Measured {machine['date']}{later} on {machine['cores']} cores ({machine['processor']}{load}), "
        f"with {versions}, "
        f"in {sum(found['seconds'].values()) / 60:.0f} minutes. "
        f"**{len(aims) - sum(map(falls_short, aims))} of {len(aims)} aims are met.**"
    )


def _rows(rows: list[Row]) -> str:
    lines = ["| what | measured | aim | |", "|---|---:|---:|---|"]
    for row in rows:
        verdict = "" if not has_aim(row) else "**missed**" if falls_short(row) else "met"
        lines.append(f"| {row['name']} | {measured(row)} | {aim(row)} | {verdict} |")
    return "\n".join(lines)


def _floors(rows: list[Row]) -> str:
    lines = [
        "| triplets × features | bytes | time for them | flops | time for them | binding | hard floor | ours "
        "| plain NumPy |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for row in rows:
        plain, hard = (duration(row[key]) if row.get(key) else "" for key in ("numpy_seconds", "hard_seconds"))
        lines.append(
            f"| {row['size']} | {amount(row['bytes'])} | {duration(row['bytes_seconds'])} | {amount(row['flops'])} "
            f"| {duration(row['flops_seconds'])} | {binding(row)} | {hard} | {duration(row['seconds'])} | {plain} |"
        )
    return "\n".join(lines)


def read(path: str | Path = RESULTS) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    print(write(read(*sys.argv[1:2])))
