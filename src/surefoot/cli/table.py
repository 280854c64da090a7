"""Tables that commands print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from surefoot.reports.statistics import Summary


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
    """Value and violations side by side: neither is enough alone. All numbers are means over the runs."""
    print_table(
        [first, "value", "gap closed", "regret", "violations", "guarantee"],
        [
            [
                row.label,
                _lines(row.value.text(3)),
                _lines(row.gap_closed.text(percent=True)),
                _lines(row.regret.text(0)),
                f"[bold red]{_lines(row.violations.text(1))}[/]" if row.broke_a_limit else "[green]0[/]",
                row.promise,
            ]
            for row in summaries
        ],
        left=["guarantee"],
    )
    counts = sorted({row.runs for row in summaries})
    over = f"{counts[0]} runs" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} runs"
    each = f"Means over {over}, in brackets their 95% bootstrap intervals. " if counts[-1] > 1 else "One run each. "
    typer.echo(f"{each}Value: exact, of the last policy. Regret and violations: of a whole run.")
    if any(row.regret.mean < 0 for row in summaries):
        typer.echo("Regret is measured against the best safe policy; a regret below 0 was earned by breaking a limit.")


def _lines(text: str) -> str:
    """The interval below its mean, so that a table fits 80 columns."""
    return text.replace(" [", "\n[").replace(", ", ",\n")


def shown_number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
