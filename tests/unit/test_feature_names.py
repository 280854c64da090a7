"""Features that have names are called by them wherever people read: explanations, checks, errors, the explorer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.reports.explorer import NO_FEATURES, explorer
from tests.unit.test_priors import NAMES, ROWS, limit, press

NAN = float("nan")


def test_why_names_the_features_that_the_limit_depends_on() -> None:
    wear = sf.Limit("wear", bound=0.3, noise=0.1, prior={"speed": (0.0, 1.0)}, features=["speed"])
    strain, worn = (sf.LsviNew(press(one)).plan.why(0, "s", "full") for one in (limit(), wear))
    assert strain.cause.features == (("bias", 1.0), ("pressure", 0.9), ("speed", 1.0))
    assert "strain may be 1.14 towards 's' with bias=1, pressure=0.9, speed=1, and the limit is 0.7" in str(strain)
    assert worn.cause.features == (("speed", 1.0),)
    proved = sf.LsviNew(press()).plan.why(0, "s", "half")
    assert proved.certified
    assert "with bias=1, pressure=0.4, speed=0.5, and the limit" in str(proved)
    assert "with" not in str(sf.LsviNew(press(features=None)).plan.why(0, "s", "full"))


def test_why_names_the_features_of_a_last_state() -> None:
    """The end alone is over the limit: the chain comes to it."""
    ends = {"terminal_cost_features": lambda s: [1.0, 2.0, 0.0]}
    found = sf.LsviNew(press(limit(), successors=lambda h, s, a: ["s"] if a == "idle" else ["t"], **ends)).plan
    explained = found.why(1, "s", "half")
    assert explained.cause.features == (("bias", 1.0), ("pressure", 2.0))
    assert "with bias=1, pressure=2, and the limit" in str(explained)


def test_only_the_first_few_of_many_features_are_listed() -> None:
    names = [f"f{i}" for i in range(12)]
    wide = press(
        sf.Limit("strain", bound=0.1, noise=0.1, norm=1.0),
        features=names,
        cost_features=lambda h, s, a, s2: [ROWS[a][1] + 0.1] * 12,
    )
    text = str(sf.LsviNew(wide).plan.why(0, "s", "full"))
    assert "f7=1, …, and" in text
    assert "f8" not in text


def test_check_names_redundant_features_and_lists_coefficients() -> None:
    doubled = {"cost_features": lambda h, s, a, s2: [1.0, ROWS[a][1], 2 * ROWS[a][1]]}
    named, plain = (str(sf.check(press(limit(), **doubled, features=names))) for names in (NAMES, None))
    joined = [" ".join(text.split()) for text in (named, plain)]
    assert "for example 'pressure' follows from the others" in joined[0]
    assert "for example column 1 follows from the others" in joined[1]
    table = [line.split() for line in named.splitlines()]
    assert ["coefficient", "of", "strain"] in table
    assert ["pressure", "0.1", "…", "0.6"] in table
    assert ["speed", "0.4"] in table
    assert "feature 1" in plain
    assert "coefficient of" not in str(sf.check(press(sf.Limit("strain", bound=0.7, noise=0.1, norm=1.0))))


def test_check_says_what_a_limit_with_its_own_features_leaves_out() -> None:
    two = [limit(), sf.Limit("wear", bound=3.0, noise=0.1, norm=2.0, features=["speed"])]
    found = sf.check(press(two))
    assert found.limits[1].coefficients == ((0.0, 0.0), (0.0, 0.0), (-2.0, 2.0))
    assert found.limits[0].coefficients == ((0.0, 0.2), (0.1, 0.6), (0.4, 0.4))


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "not finite": (lambda: press(cost_features=lambda h, s, a, s2: [1.0, NAN, 1.0]), "nan for 'pressure'"),
    "too large": (lambda: press(cost_features=lambda h, s, a, s2: [1.0, 1.0, -1e300]), r"-1e\+300 for 'speed'"),
    "anchor not finite": (lambda: press(anchor=lambda h: ([1.0, NAN, 0.0], 0.1)), "{'bias': 1.0, 'pressure': nan}"),
    "anchor zero": (lambda: press(anchor=lambda h: ([0.0, 0.0, 0.0], 0.1)), "'bias': 0.0, 'pressure': 0.0"),
    "anchor impossible": (
        lambda: press(anchor=lambda h: ([1.0, 0.1, 0.0], 0.5)),
        r"anchor of step 0 \(bias=1, pressure=0.1\), limit 'strain'",
    ),
    "anchors differ": (
        lambda: press(anchor=lambda h: ({"bias": 1.0, "pressure": 0.1 * h}, 0.2), stationary_costs=True),
        r"\(\{'bias': 1.0\}, \[0.2\]\) and \(\{'bias': 1.0, 'pressure': 0.1\}, \[0.2\]\)",
    ),
    "prior too short": (
        lambda: press(limit(prior=[0.1, 0.2])),
        "2 entries for 3 features: 'bias', 'pressure', 'speed'",
    ),
    "prior leaves out": (lambda: press(limit(prior={"bias": 0.1})), "'pressure', 'speed'. Give their intervals"),
    "prior upside down": (lambda: limit(prior=[0.1, (1, 0)], features=["bias", "speed"]), "feature 'speed'"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_call_features_by_name(case: str) -> None:
    make, text = ERRORS[case]
    with pytest.raises(InvalidInput, match=text):
        make()


def test_without_names_errors_count_columns() -> None:
    with pytest.raises(InvalidInput, match=r"\[1.0, nan, 1.0\]"):
        press(features=None, cost_features=lambda h, s, a, s2: [1.0, NAN, 1.0])
    with pytest.raises(InvalidInput, match="prior leaves features out: limit 'strain': columns 1, 2"):
        press(limit(prior={0: 0.1}), features=None)


# --- the explorer ---------------------------------------------------------------------------------------


def world(problem: sf.Problem) -> sf.World:
    gamma = np.broadcast_to([0.1, 0.3, 0.4], (problem.horizon, len(problem.limits), 3))
    return sf.World(problem, transition=np.ones(1), cost=gamma.copy())


def unpacked(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_explorer_holds_named_features() -> None:
    found = explorer(world(press()), [])["features"]
    assert found["names"] == NAMES
    assert found["used"] == [[True, True, True]]
    rows, row = unpacked(found["rows"], "<f4").reshape(-1, 3), unpacked(found["row"], "<u4")
    assert len(rows) == len(ROWS)  # each once, though both steps have them
    np.testing.assert_array_equal(rows[row], np.float32([*ROWS.values()] * 2))
    assert unpacked(found["last_row"], "<u4").tolist() == [NO_FEATURES]
    assert explorer(world(press(features=None)), [])["features"] is None


def test_features_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.reports.explorer.FEATURES", 50)
    assert explorer(world(press()), [])["features"] is None
