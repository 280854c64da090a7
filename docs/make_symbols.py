"""Writes the symbol table of ``algorithm.md`` from the code: ``python docs/make_symbols.py``.

A row names where a symbol lives. Its meaning is the first sentence of that thing's own documentation, so the page
cannot say what the code does not; a name that no longer exists is an error.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "algorithm.md"
BEGIN, END = "<!-- symbols: made by docs/make_symbols.py -->", "<!-- end of symbols -->"

# the paper's symbol → module, and the name in it
SYMBOLS = (
    ("H", "surefoot.model.problem", "Problem.horizon"),
    ("S_h(s,a)", "surefoot.model.problem", "Problem.successors"),
    ("c̄, σ, L", "surefoot.model.limit", "Limit"),
    ("(s⁰,a⁰,s⁰′), c⁰", "surefoot.model.graph", "Anchors"),
    ("γ*, μ*", "surefoot.worlds.world", "World"),
    ("γ̂, Λ₁", "surefoot.estimate.ellipsoids", "CostEllipsoids"),
    ("c̃ (eq:estimatesafetyvalue)", "surefoot.estimate.costs", "bound_rows"),
    ("S^safe, A^safe (eq:safetycondition1, 2)", "surefoot.plan.certify", "certify"),
    ("w, Λ₂ (eq:estimatemodel)", "surefoot.estimate.values", "ValueEllipsoid"),
    ("φ_V", "surefoot.estimate.update", "value_row"),
    ("Q, V (eq:estimateqvalue)", "surefoot.plan.values", "optimistic_values"),
    ("argmax (eq:chooseaction)", "surefoot.plan.values", "greedy"),
    ("ε₂, ε₃, ε₄ (certified)", "surefoot.plan.explore", "bonuses"),
    ("β₁", "surefoot.theory", "beta_1"),
    ("β", "surefoot.theory", "beta"),
    ("K′", "surefoot.theory", "initial_episodes"),
    ("κ", "surefoot.theory", "kappa"),
    ("Δ_φ", "surefoot.theory", "delta_phi"),
    ("ε₁", "surefoot.theory", "epsilon_1"),
    ("ε₂ (eq:epss)", "surefoot.theory", "epsilon_2"),
    ("ε₃ (eq:epsss)", "surefoot.theory", "epsilon_3"),
    ("ε₄ (eq:epssss)", "surefoot.theory", "epsilon_4"),
    ("regret bound (eq:regret)", "surefoot.theory", "regret_bound"),
    ("lower bound (eq:lowerbound)", "surefoot.theory", "lower_bound"),
)


def table() -> str:
    rows = ["| paper | here | meaning |", "|---|---|---|"]
    for symbol, module, name in SYMBOLS:
        thing: Any = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
        rows.append(f"| {symbol} | `{module}.{name}` | {_meaning(thing)} |")
    return "\n".join(rows)


def _meaning(thing: Any) -> str:
    words = " ".join((inspect.getdoc(getattr(thing, "py_func", thing)) or "").split("\n\n")[0].split())
    words = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", words).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[.;])\s", words)[0].rstrip(".;") + "."


def page() -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
