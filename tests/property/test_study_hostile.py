"""Whatever a study has accepted, it can be opened again with, in the very same state: hostile numbers and labels."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import surefoot as sf
from surefoot.audits.audit import audit
from surefoot.errors import SurefootError
from tests.studies import Quick, fingerprint

SIZES = [5e-324, 1e-308, 1e-200, 1e-160, 1e-20, 1e-8, 0.1, 1.0, 1e8, 1e20, 1e150, 1e160, 1e300, 1.7e308]
SIZE = st.sampled_from(SIZES)
NUMBER = SIZE | st.sampled_from([0.0, -0.1, -1.0, -1e150, -1.7e308])
COST = st.just(0.1) | NUMBER | st.sampled_from([math.nan, math.inf, -math.inf, None])
LABEL = st.sampled_from(["s", "hot", "half \ud800", "", None, True, 1, 0.5, ("s",), ["s", 2**62], "wait", "x" * 300])

CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "ridges": st.lists(SIZE, min_size=1, max_size=3),
    "shaped": SIZE | st.just(0.0),
    "value_ridge": SIZE,
    "replan_growth": SIZE | st.just(0.0),
    "optimism": SIZE,
    "explore": st.lists(SIZE, min_size=3, max_size=3),
    "slack": NUMBER,
    "safety_radius_scale": SIZE,
    "initial_episodes": st.sampled_from([0, 2, 2**70]),
    "failure_probability": st.sampled_from([5e-324, 1e-300, 0.05, 1 - 1e-16]),
    "false_alarm": st.sampled_from([5e-324, 1e-300, 0.05, 1 - 1e-16]),
}
OPTIONS = st.lists(st.sampled_from(sorted(CHOICES)), unique=True, max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({name: CHOICES[name] for name in names})
)
PLANT = st.tuples(*(st.just(usual) | st.just(usual) | SIZE for usual in (1.0, 0.5, 0.05, 3.0)))
STEP = st.tuples(
    st.sampled_from(["tell"] * 8 + ["stray", "override", "abort", "acknowledge", "discard", "import"]), COST, LABEL
)


def plant(scale: float, bound: float, noise: float, norm: float, anchored: bool) -> sf.Problem:
    """Two decisions, two states; every cost feature times the scale."""
    return sf.Problem.from_functions(
        horizon=3,
        start="s",
        actions=lambda h, s: ["wait", "go"],
        successors=lambda h, s, a: ["s"] if a == "wait" else ["s", "hot"],
        reward=lambda h, s, a: 0.1 if a == "wait" else 0.9,
        cost_features=lambda h, s, a, s2: [scale * (1.0 + (a == "go")), scale * (s2 == "hot") * 0.5],
        transition_features=lambda h, s, a, s2: [1.0 if a == "wait" else 0.5],
        terminal_reward=lambda s: 0.0,
        terminal_cost_features=lambda s: [0.0, scale] if s == "hot" else None,
        anchor=(lambda h: ([scale, 0.0], [0.0])) if anchored else None,
        fallback=lambda h, s: "wait",
        limits=[sf.Limit("heat", bound=bound, noise=noise, norm=norm)],
    )


def take(study: sf.Study, step: tuple[str, Any, Any]) -> None:
    """The call of a step, or what must come before it."""
    what, cost, label = step
    if what == "abort":
        study.abort("enough \ud800")
    elif what in ("acknowledge", "discard"):
        study.acknowledge("seen", discard_data=what == "discard")
    elif what == "import":
        study.import_log([{"step": 0, "state": "s", "action": "go", "next_state": "hot", "cost": cost}])
    elif study.next_call == "begin":
        study.begin()
    elif study.next_call == "tell_terminal":
        study.tell_terminal(cost)
    elif what == "stray":
        study.tell(study.ask().ask_id, label, cost)
    elif what == "override":
        study.tell(study.ask().ask_id, "s", cost, action_applied=label)
    else:
        offer = study.ask()
        json.dumps(offer.to_dict())
        study.tell(offer.ask_id, "hot" if offer.action == "go" else "s", cost)


@given(
    numbers=PLANT,
    anchored=st.booleans(),
    options=OPTIONS,
    steps=st.lists(STEP, min_size=5, max_size=25),
    every=st.sampled_from([None, 1, 3]),
)
@example((1.0, 0.5, 0.05, 3.0), False, {"ridges": [1e-308]}, [("tell", 0.1, None)] * 9, None)
@example((1e-160, 0.5, 0.05, 3.0), True, {}, [("tell", 0.1, None)] * 9, None)
@example((1e160, 0.5, 0.05, 3.0), False, {}, [("tell", 0.1, None)] * 9 + [("discard", 0.1, None)], 1)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_what_was_accepted_is_there_again(
    tmp_path_factory: Any,
    numbers: tuple[float, float, float, float],
    anchored: bool,
    options: dict[str, Any],
    steps: list[tuple[str, Any, Any]],
    every: int | None,
) -> None:
    path = tmp_path_factory.mktemp("hostile") / "study"
    try:
        with np.errstate(all="ignore"):
            attack(path, numbers, anchored, options, steps, every)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def attack(path: Path, numbers: Any, anchored: bool, options: Any, steps: Any, every: int | None) -> None:
    try:
        problem = plant(*numbers, anchored)
        study = sf.Study.open(path, problem, files=Quick(), snapshot_every=every, **options)
    except SurefootError:
        return
    for step in steps:
        before = study.standing.applied
        try:
            take(study, step)
        except SurefootError:
            pass
        else:
            assert study.standing.applied > before
    json.dumps(study.status(), allow_nan=False)
    before = fingerprint(study)
    study.close()
    again = sf.Study.open(path, files=Quick())
    assert fingerprint(again) == before
    again.close()
    audit(path)
