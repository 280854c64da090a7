"""The rows on a terminal: what falls short in red, and below it what the floors are made of."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row, aim, amount, binding, duration, falls_short, measured, plans


def show(rows: list[Row], console: Console) -> None:
    table = Table(header_style="bold")
    for column in ("what", "measured", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        style = "bold red" if falls_short(row) or row.get("note", "").startswith("failed") else ""
        if row["value"] is None and not style:
            style = "yellow"
        table.add_row(row["name"], f"[{style}]{measured(row)}[/]" if style else measured(row), aim(row))
    console.print(table)
    if floors := plans(rows):
        console.print(_floors(floors))


def _floors(rows: list[Row]) -> Table:
    table = Table(header_style="bold", title="plans and their floors: the higher of two times", title_justify="left")
    table.add_column("what")
    for column in ("bytes", "flops", "time for bytes", "time for flops", "binding", "ours", "plain NumPy"):
        table.add_column(column, justify="right")
    for row in rows:
        plain = row.get("numpy_seconds")
        table.add_row(
            row["size"],
            amount(row["bytes"]),
            amount(row["flops"]),
            duration(row["bytes_seconds"]),
            duration(row["flops_seconds"]),
            binding(row),
            duration(row["seconds"]),
            duration(plain) if plain else "",
        )
    return table
