"""Directed exploration on worlds that can be followed by hand (spec 5)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.plan.directed import Waited
from surefoot.plan.shares import useful
from tests.alike import assert_same_run, differences, plan_record
from tests.studies import Plant, go_on, opener


def test_the_first_plan_by_hand() -> None:
    """No data. V̄ = 1 by `best`, V = 0.5; its cost row is the only target, and `trial` the only row that tells of it."""
    problem = sf.worlds.make("ablation/stall").problem
    plan = sf.LsviNew(problem).plan
    assert plan.gap == 0.5
    assert plan.to_gain == pytest.approx(1.0 - 0.2)  # the trial that is played earns 0.2
    assert [(plan.certified(0, "works", a), plan.hopeful(0, "works", a)) for a in ("trial", "best")] == [
        (True, True),
        (False, True),
    ]
    assert plan.directed is not None
    assert plan.directed.weight == 1.0  # with 0.5 a trial is worth 0.7, less than V + gap/2; with 1.0 it is worth 1.2
    assert plan.directed.shares.targets == ((0, problem.edge_index(0, "works", "best", "end")),)
    assert plan.directed.shares.share[0].tolist() == [0.0, pytest.approx(1.0), 0.0]  # `best` may not be played
    assert [plan.q(0, "works", a) for a in ("idle", "trial", "best")] == pytest.approx([0.5, 1.2, 1.0])
    assert plan.action(0, "works") == "trial"
    assert plan.targets[0].tolist() == [0.5]  # transitions are learned from V
    none = sf.LsviNew(problem, budget=0.0).plan
    assert (none.action(0, "works"), none.directed, none.value(0, "works")) == ("idle", None, 0.5)


def test_an_exploring_step_says_what_it_is_for() -> None:
    problem = sf.worlds.make("ablation/stall-deep").problem
    plan = sf.LsviNew(problem).plan
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


@pytest.mark.parametrize(("name", "stops"), [("ablation/stall", (1, 199)), ("ablation/stall-deep", (37, 333))])
def test_compiled_step_by_step_and_resumed_runs_agree(
    name: str, stops: tuple[int, int], seed: int, tmp_path: Path
) -> None:
    """With a budget that binds: what was explored decides, and is in the checkpoint."""
    world = sf.worlds.make(name)

    def agent() -> sf.LsviNew:
        return sf.LsviNew(world.problem, budget=1.0)

    whole = sf.run(agent(), world, 400, seed)
    assert_same_run(whole, sf.run(agent(), world, 400, seed, compiled=False))
    explored = np.cumsum(whole.value < world_value(name) - 1e-9)
    assert math.sqrt(300) - 2 <= explored[-1] <= math.sqrt(400) + 1
    for stop in stops:
        path = tmp_path / f"{stop}.npz"
        sf.run(agent(), world, stop, seed, checkpoint=path)
        assert_same_run(whole, sf.resume(path, agent(), world, episodes=400))


def world_value(name: str) -> float:
    """Of the fallback, below which an episode pays for information."""
    return {"ablation/stall": 0.5, "ablation/stall-deep": 1.5}[name]


def test_a_study_that_is_opened_again_goes_on_exploring(seed: int, tmp_path: Path) -> None:
    world = sf.worlds.make("ablation/stall")
    opened, plant = opener(tmp_path / "one.study", world), Plant(world, seed)
    study = opened(budget=1.0)
    go_on(study, plant, 150)
    before = study.standing.agent.checkpoint()
    arrays = plan_record(study.standing.agent.plan)
    study.close()
    again = opened()
    assert not differences(before, again.standing.agent.checkpoint())
    assert not differences(arrays, plan_record(again.standing.agent.plan))
    assert 10.0 <= before["waited/explored"] <= 13.0
    assert before["waited/weight"] > 0.0
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


def test_what_is_hoped_for_longer_has_to_be_told_more_of() -> None:
    assert [useful(k) for k in (0, 1000, 5000, 10_000, 10**9)] == pytest.approx([0.01, 0.01, 0.05, 0.1, 0.1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exploration": "wild"}, "directed, ideas"),
        ({"exploration": "directed", "ideas": "I II"}, 'exploration="ideas"'),
        ({"exploration": "directed", "explore": (1, 1, 1)}, "not for directed"),
        ({"budget": -1.0}, "budget"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], words: str) -> None:
    problem = sf.worlds.make("ablation/stall").problem
    with pytest.raises(InvalidInput, match=words):
        sf.LsviNew(problem, **options)  # type: ignore[arg-type]
    assert sf.LsviNew(problem, ideas="I II").options.exploration == "ideas"
    assert sf.LsviNew(problem).options.exploration == "directed"
