"""Tables that commands print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from surefoot.report.summary import Summary


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = ()) -> None:
    """The first column and those named in ``left`` are left-aligned, numbers right-aligned. Nothing is cut."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title_justify="left", header_style="bold")
    for i, name in enumerate(head):
        words = i == 0 or name in left
        table.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not words or i == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def print_summaries(summaries: Sequence[Summary], first: str = "agent") -> None:
    """Value and violations side by side: neither says enough alone."""
    print_table(
        [first, "value", "gap closed", "regret", "violations", "guarantee"],
        [
            [
                row.label,
                f"{row.value:.3f}",
                f"{row.gap_closed:.0%}",
                f"{row.regret:,.0f}",
                f"[bold red]{row.violations:,}[/]" if row.violations else "[green]0[/]",
                row.promise,
            ]
            for row in summaries
        ],
        left=["guarantee"],
    )
    if any(row.regret < 0 for row in summaries):
        typer.echo("Regret is measured against the best safe policy; below 0 was earned by breaking a limit.")


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
