"""What is promised is never said to be more than it is: 1 − p is rounded down, for a p of any size."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import surefoot as sf
from surefoot.checks import promised

SURE = re.compile(r"≥ (?:1 − )?([0-9][0-9.e-]*)")


def least(text: str) -> Fraction:
    """The number that a promise names."""
    found = SURE.search(text)
    assert found is not None, text
    number = Fraction(found[1])
    return 1 - number if "1 − " in found[0] else number


def stuck() -> sf.Problem:
    """One in which the fallback is all that can ever be played."""
    return sf.Problem.from_functions(
        horizon=2,
        start="here",
        actions=lambda h, s: ["stay", "try"],
        successors=lambda h, s, a: ["there"],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, s2: [1.0, 0.0] if a == "stay" else [0.0, 1.0],
        fallback=lambda h, s: "stay",
        anchor=lambda h: ([1.0, 0.0], 0.25),  # nothing is left for the fallback to measure
        limits=sf.Limit("heat", bound=0.5, noise=0.1, norm=1.0),
    )


@given(st.floats(min_value=0.0, max_value=1.0, exclude_min=True, exclude_max=True))
@example(5e-324)
@example(1e-17)  # 1 − p is 1 in floating point
@example(1e-7)
@example(1 / 3)
@example(1e-4)
@example(0.99999999)
def test_never_more_than_is_promised_and_hardly_less(p: float) -> None:
    exact = Fraction(repr(p))
    assert 1 - exact * Fraction(100001, 100000) <= least(promised(p)) <= 1 - exact < 1


@pytest.mark.parametrize(
    ("p", "said"),
    [(0.05, "≥ 0.95"), (0.1, "≥ 0.9"), (1e-4, "≥ 0.9999"), (1e-7, "≥ 1 − 1e-7"), (2.5e-12, "≥ 1 − 2.5e-12")],
)
def test_it_reads_as_a_person_would_write_it(p: float, said: str) -> None:
    assert promised(p) == said


@pytest.mark.parametrize("p", [float(f"1e-{n}") for n in range(1, 17)])
def test_agent_and_study_say_it_so(p: float, tmp_path: Path) -> None:
    with sf.Study.open(tmp_path / "s", stuck(), failure_probability=p, despite="one action") as study:
        stamps = [sf.LsviNew(stuck(), p).promise, study.standing.promise]
        with study.episode() as episode:
            stamps.append(episode.ask().certificate["promise"])
    assert {least(stamp) for stamp in stamps} == {1 - Fraction(repr(p))}


def test_the_diagnosis_says_it_so() -> None:
    said = " ".join(str(sf.check(stuck(), failure_probability=1e-7)).split())
    assert "never start" in said
    assert "probability ≥ 1 − 1e-7" in said
