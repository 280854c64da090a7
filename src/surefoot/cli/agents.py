"""``surefoot agents``: the agents, and what each may violate."""

from __future__ import annotations

import re


def agents_command() -> None:
    """List the agents, and what each may violate."""
    import inspect

    from surefoot.agents import registry
    from surefoot.cli.table import print_table

    rows = []
    for name in registry.names():
        kind = registry.kind(name)
        about = f"{inspect.getdoc(inspect.getmodule(kind)) or ''}\n\n{inspect.getdoc(kind) or ''}"
        risk = re.search(r"May violate:\s*(.+?)(?:\n\n|\Z)", about, re.DOTALL)
        rows.append([name, about.partition("\n")[0], "" if risk is None else " ".join(risk[1].split())])
    print_table(["agent", "what it is", "may violate"], rows, left=["what it is", "may violate"])
