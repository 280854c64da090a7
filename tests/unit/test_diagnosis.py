"""The diagnosis: numbers by hand, remedies tried out, and nothing claimed that a run could refute."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.diagnosis.rank import Triangles
from surefoot.diagnosis.text import rounded_down, rounded_up
from surefoot.errors import InvalidInput
from surefoot.estimate.blocks import one_block_each
from tests.diagnosed import (
    HEAT,
    Features,
    moves,
    one_step,
    walk,
)
from tests.saved_problems import PROBLEMS, stationary, template

# ---------------------------------------------------------------- what the graph forces


def forced(**changes: Any) -> sf.Problem:
    """In 'pit' the only action costs 3·0.25 for sure; 'edge' may always fall in. 'ledge' may stay out."""
    pit, free = [3.0, 0.0], [1.0, 0.0]
    steps = {
        (0, "s", "stay", "s"): free,
        (0, "s", "go", "edge"): free,
        (0, "s", "go", "ledge"): free,
        (1, "s", "stay", "s"): free,
        (1, "edge", "left", "pit"): free,
        (1, "edge", "right", "s"): free,
        (1, "edge", "right", "pit"): free,
        (1, "ledge", "back", "s"): free,
        (1, "ledge", "on", "pit"): free,
        (2, "s", "stay", "s"): free,
        (2, "pit", "climb", "s"): pit,
    }
    return walk(steps, **({"limits": replace(HEAT, bound=0.5)} | changes))


def test_states_that_the_graph_forces() -> None:
    found = sf.check(forced())
    assert (found.forced.states, found.forced.actions) == (2, 5)
    assert found.forced.examples == ((1, "edge"), (2, "pit"))
    assert [layer.never_states for layer in found.layers] == [0, 1, 1, 0]
    assert [layer.never_actions for layer in found.layers] == [1, 3, 1, 0]
    assert "state 'edge' at step 1, state 'pit' at step 2" in " ".join(str(found).split())
    near = found.cold_start.closest
    assert near is not None
    assert (near.excess, near.later) == (pytest.approx(0.25, rel=1e-12), True)
    assert found.cold_start.can_move is False
    with_room = sf.check(forced(limits=HEAT))
    assert (with_room.forced.states, with_room.cold_start.can_move) == (0, True)


def test_a_last_state_can_be_forced() -> None:
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "t"): [1.0, 0.0]}
    found = sf.check(walk(steps, last={"t": [5.0, 0.0]}))
    assert (found.forced.states, found.forced.examples) == (1, ((1, "t"),))


def test_a_fallback_against_the_declaration() -> None:
    found = sf.check(walk({(0, "s", "stay", "s"): [5.0, 0.0], (0, "s", "go", "s"): [1.0, 0.0]}))
    fault = found.fallback_fault
    assert fault is not None
    assert (fault.triplets, fault.limit, fault.lowest, fault.bound) == (1, "heat", pytest.approx(1.25, rel=1e-12), 1.0)
    assert fault.where == "step 0, state 's', action 'stay', successor 's'"
    assert found.errors[0].startswith("The declaration contradicts the fallback")
    assert found.forced.actions == 0  # the fallback is certified by assumption
    last = sf.check(walk({(0, "s", "stay", "s"): [1.0, 0.0]}, last={"s": [5.0, 0.0]})).fallback_fault
    assert last is not None
    assert last.where == "step 1, state 's'"
    assert sf.check(one_step()).fallback_fault is None


# ---------------------------------------------------------------- sizes, features, constants


def test_sizes_and_slack() -> None:
    found = sf.check(forced())
    table = [(x.states, x.reachable, x.fallback_states, x.actions, x.triplets) for x in found.layers]
    assert table == [(1, 1, 1, 2, 3), (3, 3, 1, 5, 6), (2, 2, 1, 2, 2), (1, 1, 1, 0, 0)]
    assert [layer.slack for layer in found.layers] == [(0.25,), (0.25,), (0.25,), None]


def test_unreachable_states() -> None:
    problem = template()
    found = sf.check(problem)
    assert found.unreachable_states == 24 - (1 + 2 + 3 + 4)
    assert "problem.pruned()" in str(found)
    assert sf.check(problem.pruned()).unreachable_states == 0


def test_rank() -> None:
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [3.0, 0.0],
        (1, "s", "stay", "s"): [0.0, 1.0],
        (1, "s", "go", "s"): [1.0, 1.0],
    }
    apart = sf.check(walk(steps)).features
    assert [(r.layers, r.rank, r.redundant) for r in apart.costs] == [((0,), 1, (1,)), ((1,), 2, ())]
    assert apart.shared
    pooled = sf.check(walk(steps, stationary_costs=True)).features
    assert [(r.layers, r.rank) for r in pooled.costs] == [((0, 1), 2)]
    assert [r.rank for r in pooled.transitions] == [1, 2]
    assert "rank 1 of 2" in str(sf.check(walk(steps)))


def test_rank_is_not_fooled_by_scale() -> None:
    """A Gram matrix squares the ratio 10⁹ and would lose the second column."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 1e-9],
    }
    assert sf.check(walk(steps)).features.costs[0].rank == 2


def test_compression_keeps_the_singular_values(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(300_000, 5)) @ np.diag([1.0, 1e-3, 1.0, 0.0, 2.0])
    expected = np.linalg.svd(rows, compute_uv=False)
    triangles = Triangles(one_block_each(5, 1), 0)
    for part in (rows[:100], rows[100:]):
        triangles.add(part)
    np.testing.assert_allclose(triangles.singular_values()[0][0], expected, rtol=1e-9, atol=1e-9)


def test_the_papers_constants() -> None:
    many = sf.check(stationary(), episodes=10**9).paper
    assert (many.usable, many.reasons) == (True, ())
    few = sf.check(stationary()).paper
    assert not few.usable
    assert few.initial_episodes is not None
    assert few.initial_episodes > few.episodes == 10_000
    assert f"{few.initial_episodes:,}" in few.reasons[0]
    enough = few.smallest_usable_episodes
    assert enough is not None
    assert sf.check(stationary(), episodes=2 * enough).paper.usable
    assert not sf.check(stationary(), episodes=enough - 1).paper.usable
    assert few.gaps == (0.375,) * 3
    assert few.delta_phi == (0.0,)


def test_the_papers_constants_need_slack() -> None:
    """Δ_φ = L·‖(1, 1) − (1, 0.5)‖ = 0.5, so gap = 0.5 − 0.25 − 0.5 < 0, whatever the number of episodes."""
    paper = sf.check(one_step(limits=replace(HEAT, bound=0.5)), episodes=10**15).paper
    assert paper.gaps == (-0.25,)
    assert not paper.usable
    assert any("gap" in reason for reason in paper.reasons)


def test_the_papers_constants_need_anchors() -> None:
    found = sf.check(one_step(anchor=None))
    assert (found.paper.usable, found.paper.beta) == (False, None)
    assert "anchor at every step" in found.paper.reasons[0]
    assert "anchor at every step" in " ".join(str(found).split())


# ---------------------------------------------------------------- reading it


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_program_can_use_it(name: str) -> None:
    told = sf.check(PROBLEMS[name]()).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert {"limits", "layers", "features", "cold_start", "forced", "paper", "findings"} <= told.keys()


def test_a_person_can_read_it() -> None:
    text = str(sf.check(one_step()))
    lines = text.splitlines()
    assert lines[0] == "Problem with 2 steps, 3 states, 2 actions, 3 triplets; 1 limit"
    assert lines[2].startswith("ERROR    Learning will never start")
    assert max(map(len, lines)) <= 110
    said = " ".join(text.split())
    for words in (
        "step 0, state 's', action 'go': over limit 'heat' by 0.25 (upper bound 1.25, bound 1)",
        "'heat' norm ≤ 0.75 (now 1) or 'heat' bound ≥ 1.25 (now 1)",
        "slack heat",
        "probability ≥ 0.95",
        "κ",
    ):
        assert words in said
    table = [line for line in lines if line.startswith("  0 ") or line.startswith("  step")]
    assert len({len(line) for line in table}) == 1  # columns are aligned
    assert repr(sf.check(one_step())).startswith("<Diagnosis: 1 errors, 0 warnings")


def test_printed_numbers_do_what_they_say() -> None:
    """Copied from the text, a bound is never too small and a norm never too large."""
    assert (rounded_up(0.64311), rounded_down(0.64319)) == ("0.6432", "0.6431")
    assert (rounded_up(0.65), rounded_down(0.65)) == ("0.65", "0.65")
    assert (rounded_up(-1.23456), rounded_down(-1.23451)) == ("-1.234", "-1.235")
    assert (rounded_up(123456.0), rounded_down(0.0)) == ("1.235e+05", "0")
    for value in np.random.default_rng(0).uniform(0.001, 10, 200).tolist():
        assert float(rounded_down(value)) <= value <= float(rounded_up(value))


def test_many_layers_and_limits_stay_readable() -> None:
    steps: Features = {}
    for h in range(40):
        steps |= {(h, "s", "stay", "s"): [1.0, 0.0], (h, "s", "go", "s"): [1.0, 0.1], (h, "s", "race", "s"): [1.0, 1.5]}
    limits = [replace(HEAT, name=f"line {j}") for j in range(6)]
    costs = [0.0] * 6
    long = sf.check(walk(steps, limits=limits, anchor=lambda h: ([1.0, 0.0], [h / 100, *costs[1:]])))
    text = str(long)
    assert len(text.splitlines()) < 50
    assert "least slack" in text
    assert "…" in text


def test_large_problems(seed: int) -> None:
    """10⁵ triplets by arrays; only that it runs and counts right, no clock."""
    rng = np.random.default_rng(seed)
    n, a, b = 5_000, 5, 4
    successors = rng.integers(0, n - b, size=(n, a, 1)) + np.arange(b)
    successors[:, 0] = np.arange(b)
    features = rng.normal(size=(n * a * b, 6)) / 6
    problem = sf.Problem.from_arrays(
        horizon=4,
        start=0,
        state_ptr=np.arange(n + 1) * a,
        pair_ptr=np.arange(n * a + 1) * b,
        successors=successors.ravel(),
        reward=np.full(n * a, 0.5),
        cost_features=features,
        fallback=np.zeros(n, np.int64),
        limits=[sf.Limit("heat", bound=0.3, noise=0.1, norm=1.0), sf.Limit("wear", bound=0.9, noise=0.1, norm=2.0)],
        anchor=lambda h: (np.ones(6), [0.1, 0.2]),
    )
    found = sf.check(problem)
    assert [layer.triplets for layer in found.layers] == [n * a * b] * 3 + [0]
    assert found.cold_start.can_move is moves(problem)


# ---------------------------------------------------------------- refusals


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"needs a Problem: a str\. For a World, pass world\.problem"):
        sf.check("problem")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="failure_probability"):
        sf.check(one_step(), failure_probability=0)
    with pytest.raises(InvalidInput, match="episodes"):
        sf.check(one_step(), episodes=0)
