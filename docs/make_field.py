"""Writes the tables, the figures and the cards of docs/field.md. Usage: python docs/make_field.py [DIR]

DIR is what ``surefoot compare --out DIR`` wrote; without it only the cards are written anew, which come from the
agents' docstrings.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from surefoot.agents import registry
from surefoot.agents.registry import card

DOCS = Path(__file__).parent
PAGE = DOCS / "field.md"


def between(text: str, name: str, new: str) -> str:
    """The page with a part replaced that stands between two comments."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    assert pattern.search(text), name
    return pattern.sub(lambda match: f"{match[1]}\n{new}\n\n{match[2]}", text)


def cards() -> str:
    """A card per agent."""
    parts = []
    for name in registry.names():
        each = card(name)
        parts.append(
            f"### {name}\n\n{each.title}\n\n"
            f"- **Port of:** {each.port_of}\n- **Changed to fit:** {each.changed}\n- **Assumes:** {each.assumes}\n"
            f"- **Guarantees:** {each.guarantees}\n- **May violate:** {each.may_violate}"
        )
    return "\n\n".join(parts).replace("``", "`")


def main(folder: str = "") -> None:
    from surefoot.reports.field import overall_table, read_field, world_table

    text = between(PAGE.read_text(encoding="utf-8"), "cards", cards())
    if folder:
        field = read_field(Path(folder))
        some = next(iter(field.cells.values()))
        many = f"{len(field.labels)} agents, {len(field.worlds)} worlds, {len(some.seeds)} seeds"
        made = f"{many}, {some.episodes:,} episodes a run."
        text = between(text, "size", made)
        text = between(text, "overall", overall_table(field))
        text = between(text, "worlds", world_table(field))
        for name in ("plane", "profiles"):
            shutil.copy(Path(folder) / f"{name}.svg", DOCS / "images" / f"field-{name}.svg")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
