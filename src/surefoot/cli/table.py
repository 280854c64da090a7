"""Tables that commands print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from surefoot.reports.summary import Summary


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
    """Value and violations side by side: neither says enough alone. All numbers are means over the runs."""
    print_table(
        [first, "runs", "value", "gap closed", "regret", "violations", "guarantee"],
        [
            [
                row.label,
                str(row.runs),
                row.value.text(3),
                row.gap_closed.text(percent=True),
                row.regret.text(0),
                f"[bold red]{row.violations.text(1)}[/]" if row.broke_a_limit else "[green]0[/]",
                row.promise,
            ]
            for row in summaries
        ],
        left=["guarantee"],
    )
    several = max(row.runs for row in summaries) > 1
    each = "Means over runs, in brackets their 95% bootstrap intervals. " if several else "One run each. "
    typer.echo(f"{each}Value: exact, of the last policy. Regret and violations: of a whole run.")
    if any(row.regret.mean < 0 for row in summaries):
        typer.echo("Regret is measured against the best safe policy; below 0 was earned by breaking a limit.")


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
