"""What a row means: its aim, whether it falls short, and how it is written, for table, page and picture alike.

A row has a ``name`` and a ``value``; where something is aimed at, ``target`` and ``better`` ("lower", "higher" or
"within"); where the value is missing, a ``note`` that says why. Everything else in it is detail for the JSON.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def row(
    name: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    within: tuple[float, float] | None = None,
    **details: Any,
) -> Row:
    """A row, with one aim at most."""
    aims = {"lower": at_most, "higher": at_least, "within": within}
    aim = next(({"target": target, "better": better} for better, target in aims.items() if target is not None), {})
    return {"name": name, "value": value, **aim, **details}


def not_measured(name: str, why: str) -> Row:
    return {"name": name, "value": None, "note": f"not measured: {why}"}


def has_aim(row: Row) -> bool:
    return row.get("target") is not None


def falls_short(row: Row) -> bool:
    """Whether the value misses its aim; a NaN does."""
    target, value = row.get("target"), row.get("value")
    if target is None or value is None:
        return False
    if row["better"] == "within":
        return not target[0] <= value <= target[1]
    return not (value <= target if row["better"] == "lower" else value >= target)


def aim(row: Row) -> str:
    target = row.get("target")
    if target is None:
        return ""
    if row["better"] == "within":
        return f"{target[0]:g} … {target[1]:g}"
    if target == 0 and row["better"] == "lower":
        return "0"
    return f"{'≤' if row['better'] == 'lower' else '≥'} {target:g}"


def measured(row: Row) -> str:
    value = row.get("value")
    if value is None:
        return str(row.get("note", ""))
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plans(rows: list[Row]) -> list[Row]:
    """The rows that compare a plan with its two floors."""
    return [row for row in rows if {"size", "seconds", "bytes_seconds", "flops_seconds"} <= row.keys()]


def binding(row: Row) -> str:
    """which of the two floors is the higher one."""
    return "bytes" if row["bytes_seconds"] >= row["flops_seconds"] else "flops"


def amount(number: float) -> str:
    """With a letter for thousands, millions, …"""
    for letter, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"
