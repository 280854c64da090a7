"""The paper's labels, the specification's sections and the code name each other, and none names what is not there."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CITING = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").glob("*.py"))]

ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \| (.*?) ?\| (.+?) \|$", re.MULTILINE)
LABEL = re.compile(r"\b(?:eq|ass|thm|lemma|fig)[:;][a-z]+\d*\b")
LINK = re.compile(r"\]\(([\w/-]*(?:\.md)?)#([^)\s]+)\)")
CITED = re.compile(r"\bspec\s+(\d(?:\.\d+)?)(?:,?\s+(and|to)\s+(\d(?:\.\d+)?))?", re.IGNORECASE)


class Row(NamedTuple):
    label: str
    says: str
    sections: str
    code: str


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def rows() -> list[Row]:
    return [
        Row(*match) for match in re.findall(r"^\| `([^`]+)` \| (.+?) \| (.*?) ?\| (.+?) \|$", text("paper.md"), re.M)
    ]


def slug(heading: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.encode("ascii", "ignore").decode()).strip().lower())


@functools.cache
def headings(page: str) -> frozenset[str]:
    unfenced = re.sub(r"^```.*?^```", "", text(page), flags=re.M | re.S)
    return frozenset(slug(heading) for heading in re.findall(r"^#+ (.+)$", unfenced, re.M))


def shown(page: str, name: str) -> bool:
    """Does a page show this thing of the code, itself or as a part of what it shows?"""
    return any(f"{name}.".startswith(f"{each}.") for each in re.findall(r"^::: (\S+)$", text(page), re.M))


def found(name: str) -> tuple[ModuleType, Any]:
    """The module that a thing is written in, and the thing."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        home = thing
        for part in parts[n:]:
            thing = getattr(thing, part)
            home = inspect.getmodule(thing) or home
        return home, thing
    raise AssertionError(f"{name} does not exist")


def sections_of(page: str) -> set[str]:
    return set(re.findall(r"^#+ (\d(?:\.\d+)?)\.? ", text(page), re.M))


def test_every_label_is_there_once_and_says_where_it_went() -> None:
    labels = [row.label for row in rows()]
    assert len(labels) == len(set(labels)) == 87
    assert {"eq:chooseaction", "ass:knownseedsubgraph", "ass:starconvexity", "ass:lipschitzreward"} <= set(labels)
    assert [row.label for row in rows() if not (LINK.search(row.code) or "nothing to compute" in row.code)] == []


@pytest.mark.parametrize(
    ("label", "name"),
    [(row.label, name) for row in rows() for page, name in LINK.findall(row.code) if name.startswith("surefoot")],
)
def test_the_code_that_a_label_leads_to_names_the_label(label: str, name: str) -> None:
    module, _ = found(name)
    assert label == "algorithm" or label in LABEL.findall(inspect.getsource(module))


def test_the_code_names_no_label_that_the_paper_does_not_have() -> None:
    known = {row.label for row in rows()}
    cited = {label: path.name for path in SOURCES for label in LABEL.findall(path.read_text(encoding="utf-8"))}
    assert len(cited) > 20
    assert {label: path for label, path in cited.items() if label not in known} == {}


def test_every_section_that_is_cited_exists() -> None:
    known, cited = sections_of("specification.md"), set[tuple[str, str]]()
    for path in CITING:
        for first, word, last in CITED.findall(path.read_text(encoding="utf-8")):
            wanted = {first, last or first}
            if word == "to":
                wanted = {str(n) for n in range(int(first), int(last) + 1)}
            cited |= {(section, path.name) for section in wanted}
    assert {"1", "2", "3", "4", "5", "6", "7.17", "8"} <= {section for section, _ in cited}
    assert {(section, path) for section, path in cited if section not in known} == set()


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_every_link_to_a_heading_finds_it(page: str) -> None:
    lost = [
        f"{target}#{anchor}"
        for target, anchor in LINK.findall(text(page))
        if anchor not in headings(target or page) and not (shown(target or page, anchor) and found(anchor))
    ]
    assert lost == []
