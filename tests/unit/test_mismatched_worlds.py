"""Every family of worlds has the option ``mismatch``, and declaring it keeps the promise.

(``heights`` has a model error of its own, what its features leave of the map, and declares it; along a ray costs are
affine by declaration.)
"""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.worlds.registry import FAMILIES

SIZE = 0.004  # small enough for every world to be built with it


@pytest.mark.parametrize(
    "family",
    [each for each in FAMILIES if each.name not in ("heights", "dosing", "throttle")],
    ids=lambda family: family.name,
)
def test_a_declared_mismatch_breaks_nothing_and_an_undeclared_one_is_stamped(family) -> None:  # type: ignore[no-untyped-def]
    name = next(iter(family.ids()))
    told = sf.worlds.make(name, mismatch=SIZE, declared=True)
    assert all(limit.misspecification == SIZE for limit in told.problem.limits)
    assert not told.misspecified_beyond_declaration
    run = sf.run(sf.LsviNew(told.problem), told, 60, 0)
    assert run.guaranteed
    assert run.violations.sum() == 0
    untold = sf.worlds.make(name, mismatch=SIZE, declared=False)
    assert untold.misspecified_beyond_declaration
    stamped = sf.run(sf.LsviNew(untold.problem), untold, 5, 0)
    assert "no safety guarantee" in stamped.promise
