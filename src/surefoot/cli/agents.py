"""``surefoot agents``: the agents, and what each may violate."""

from __future__ import annotations

import re


def agents_command() -> None:
    """List the agents, and what each may violate."""
    import inspect

    from surefoot.cli.table import print_table
    from surefoot.exact import contenders

    rows = []
    for name in contenders.names():
        kind = contenders.kind(name)
        about = f"{inspect.getdoc(inspect.getmodule(kind)) or ''}\n\n{inspect.getdoc(kind) or ''}"
        risk = re.search(r"May violate:\s*(.+?)(?:\n\n|\Z)", about, re.DOTALL)
        rows.append([name, about.partition("\n")[0], "" if risk is None else " ".join(risk[1].split())])
    print_table(["agent", "what it is", "may violate"], rows, left=["what it is", "may violate"])
