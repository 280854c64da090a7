"""Directed exploration on worlds that can be followed by hand (spec 5)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.plan.directed import Waited
from tests.alike import assert_same_run, differences, plan_record
from tests.studies import Plant, go_on, opener


def test_the_first_plan_by_hand() -> None:
    """No data. V̄ = 1 by `best`, V = 0.5; its cost row is the only target, and `trial` the only row that tells of it."""
    problem = sf.worlds.make("ablation/stall").problem
    plan = sf.LsviNew(problem, curiosity=3.0).plan
    assert plan.gap == 0.5
    assert plan.to_gain == pytest.approx(1.0 - 0.2)  # the trial that is played earns 0.2
    assert [(plan.certified(0, "works", a), plan.hopeful(0, "works", a)) for a in ("trial", "best")] == [
        (True, True),
        (False, True),
    ]
    assert plan.directed is not None
    assert plan.directed.weight == 1.5
    assert plan.directed.shares.targets == ((0, problem.edge_index(0, "works", "best", "end")),)
    assert plan.directed.shares.share[0].tolist() == [0.0, pytest.approx(1.0), 0.0]  # `best` may not be played
    assert [plan.q(0, "works", a) for a in ("idle", "trial", "best")] == pytest.approx([0.5, 1.7, 1.0])
    assert plan.action(0, "works") == "trial"
    assert plan.targets[0].tolist() == pytest.approx([1.7 / 2.5])  # of what V/(1 + ω) is, transitions are learned
    little = sf.LsviNew(problem, curiosity=0.5).plan  # ω = 0.25 is less than the 0.3 that a trial costs
    assert (little.action(0, "works"), little.directed, little.value(0, "works")) == ("idle", None, 0.5)


def test_an_exploring_step_says_what_it_is_for() -> None:
    problem = sf.worlds.make("ablation/stall-deep").problem
    plan = sf.LsviNew(problem, curiosity=3.0).plan
    hope = "the best that may still be hoped for is 3, certified is 1.5"
    for place in ((0, "works", "leave"), (2, "bench", "trial")):  # on the way there, and there
        told = plan.why(*place)
        assert told.purpose.startswith(
            "to narrow the bound of 'best' in step 0, state 'works' (strain: now 1.1, limit 0.6)"
        )
        assert told.purpose.endswith(hope)
        assert f"it is played {told.purpose}" in str(told)
    assert plan.why(2, "works", "idle").purpose == ""  # what pays best among what is certified
    assert plan.why(0, "works", "best").purpose == ""  # not played
    assert sf.LsviNew(problem, exploration="ideas").plan.why(0, "works", "idle").purpose == ""


@pytest.mark.parametrize("name", ["ablation/stall", "ablation/stall-deep"])
def test_compiled_step_by_step_and_resumed_runs_agree(name: str, seed: int, tmp_path: Path) -> None:
    """With a budget that binds: what was foregone and explored decides, and is in the checkpoint."""
    world = sf.worlds.make(name)

    def agent() -> sf.LsviNew:
        return sf.LsviNew(world.problem, curiosity=1.0, patience=20.0, budget=1.0)

    whole = sf.run(agent(), world, 400, seed)
    assert_same_run(whole, sf.run(agent(), world, 400, seed, compiled=False))
    explored = np.cumsum(whole.value < world_value(name) - 1e-9)
    assert math.sqrt(300) - 2 <= explored[-1] <= math.sqrt(400) + 1
    for stop in (1, 37, 199, 333):
        path = tmp_path / f"{stop}.npz"
        sf.run(agent(), world, stop, seed, checkpoint=path)
        assert_same_run(whole, sf.resume(path, agent(), world, episodes=400))


def world_value(name: str) -> float:
    """Of the fallback, below which an episode pays for information."""
    return {"ablation/stall": 0.5, "ablation/stall-deep": 1.5}[name]


def test_a_study_that_is_opened_again_goes_on_exploring(seed: int, tmp_path: Path) -> None:
    world = sf.worlds.make("ablation/stall")
    opened, plant = opener(tmp_path / "one.study", world), Plant(world, seed)
    options = {"curiosity": 1.0, "patience": 20.0}
    study = opened(**options)
    go_on(study, plant, 150)
    before = study.standing.agent.checkpoint()
    arrays = plan_record(study.standing.agent.plan)
    study.close()
    again = opened()
    assert not differences(before, again.standing.agent.checkpoint())
    assert not differences(arrays, plan_record(again.standing.agent.plan))
    assert float(before["waited/foregone"]) > 20.0
    again.close()


def test_plans_are_due_by_time_while_there_is_a_gap() -> None:
    assert Waited(100, gap=0.0).due_at(0.1, 30.0) is None
    assert Waited(100, gap=0.5).due_at(math.inf, 30.0) is None  # a study in doubt makes no plan
    assert Waited(0, gap=0.5).due_at(0.1, 30.0) == 1
    assert Waited(100, gap=0.5).due_at(0.1, 30.0) == 110
    # 95 were explored, and 10·√104 = 101.98…, 10·√107 = 103.4: at the 108th episode 103 + … is too much
    spent = Waited(100, explored=95, gap=0.5, exploring=True)
    due = spent.due_at(0.1, 10.0)
    assert due is not None
    assert 95 + (due - 1 - 100) < 10 * math.sqrt(due - 1)
    assert 95 + (due - 100) >= 10 * math.sqrt(due)


def test_foregone_counts_from_the_last_progress() -> None:
    waited = Waited().at(0, 1.0).at(10, 1.0)
    assert (waited.foregone, waited.least) == (10.0, 1.0)
    waited = waited.at(20, 0.95)  # not a tenth less
    assert waited.foregone == 20.0
    waited = waited.at(30, 0.5)
    assert (waited.foregone, waited.least) == (0.0, 0.5)
    waited = waited.at(40, 0.0).at(50, 0.6)  # a gap that closes and opens again is no progress
    assert (waited.foregone, waited.least) == (5.0, 0.5)
    assert waited.weight(0.1, 2.0) == pytest.approx(0.6 * 0.1 * 2.5)
    assert Waited(10**6, gap=0.1).weight(0.1, 1.0) == 10.0  # the floor


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exploration": "wild"}, "directed, ideas"),
        ({"exploration": "directed", "ideas": "I II"}, 'exploration="ideas"'),
        ({"exploration": "directed", "explore": (1, 1, 1)}, "not for directed"),
        ({"patience": 0.0}, "patience"),
        ({"budget": -1.0}, "budget"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], words: str) -> None:
    problem = sf.worlds.make("ablation/stall").problem
    with pytest.raises(InvalidInput, match=words):
        sf.LsviNew(problem, **options)  # type: ignore[arg-type]
    assert sf.LsviNew(problem, ideas="I II").options.exploration == "ideas"
    assert sf.LsviNew(problem).options.exploration == "directed"
