"""``surefoot worlds``: the named worlds, and what each one shows."""

from __future__ import annotations


def worlds_command() -> None:
    """List the named worlds and what each one shows."""
    from surefoot.cli.table import print_table
    from surefoot.worlds.registry import FAMILIES

    rows = []
    for family in FAMILIES:
        if family.sizes:  # the family's description once, above its sizes
            rows.append(["", f"[bold]{family.description}[/]"])
            rows += [[f"{family.name}/{size}", what] for size, what in family.sizes.items()]
        else:
            rows.append([family.name, family.description])
    print_table(["world", "shows"], rows, left=["shows"])
