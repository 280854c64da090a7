"""Every public name has an example in its docstring, and the example does what it shows."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from tests.docs.test_programs import declared


def public() -> dict[str, Any]:
    """Every exported name, and what the modules of functions export (errors and formulas are shown by their module)."""
    found = {f"sf.{name}": getattr(sf, name) for name in sf.__all__}
    for module in (sf.agents, sf.exact, sf.worlds):
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return found


def examples(name: str, thing: Any) -> list[doctest.DocTest]:
    """Of a function or a module its own, of a class also those of its methods, inherited ones included."""
    docs = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        bases = [base for base in thing.__mro__ if base.__module__.startswith("surefoot.")]
        parts = dict.fromkeys(part for base in bases for part in vars(base) if not part.startswith("_"))
        docs += [inspect.getdoc(getattr(thing, part)) or "" for part in parts]
    parser = doctest.DocTestParser()
    found = [parser.get_doctest(doc, {"sf": sf, "np": np}, name, None, 0) for doc in docs]
    return [each for each in found if each.examples]


@pytest.mark.parametrize("name", public())
def test_the_example_does_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examples(name, public()[name])
    assert found, f"{name} has no example"
    failures: list[str] = []
    for n, each in enumerate(found):
        (tmp_path / str(n)).mkdir()
        monkeypatch.chdir(tmp_path / str(n))
        doctest.DocTestRunner(verbose=False).run(each, out=failures.append, clear_globs=False)
        for problem in declared(each.globs.values()):
            assert sf.check(problem).errors == []
    assert not failures, "".join(failures)


def test_a_wrong_example_is_noticed() -> None:
    def wrong() -> None:
        """
        >>> 1 + 1
        3
        """

    (each,) = examples("wrong", wrong)
    assert doctest.DocTestRunner(verbose=False).run(each, out=lambda text: None).failed == 1


def test_what_is_printed_fits_on_a_line() -> None:
    world = sf.worlds.make("thermal/medium")
    best = sf.exact.solve(world)
    shown = [best, best.policy, sf.LsviNew(world.problem), *map(world.problem.states, range(world.problem.horizon))]
    for thing in shown:
        assert "\n" not in repr(thing)
        assert len(repr(thing)) <= 110


def test_the_states_are_sliced_like_a_list() -> None:
    states = sf.worlds.make("thermal/testing").problem.states(2)
    everything = [states[i] for i in range(len(states))]
    for cut in (slice(1, 3), slice(None), slice(-2, None), slice(None, None, -1), slice(4, 1), slice(100)):
        assert list(states[cut]) == everything[cut]
    with pytest.raises(IndexError):  # -1 means "no action" or "no state" in the arrays, and must not be one
        states[-1]
