"""Each idea of the paper is needed: in its world the full learner succeeds, and one without it does not.

The arguments with all numbers are in :mod:`surefoot.worlds.named.ablation`; here they are checked, on paper's own
terms (the first plan) and by runs.
"""

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.agents.blocks.look_ahead import IDEAS
from surefoot.runs.run import Run

SEEDS, EPISODES, LAST = 5, 2500, 500
NEEDED = {  # world -> the ideas without which it fails
    "ablation/look-ahead": {"I"},
    "ablation/transition": {"II"},
    "ablation/future": {"III"},
    "ablation/past": {"II", "IV"},  # at layer 0 these two are one bonus
}
GAPS = {"ablation/look-ahead": 0.7, "ablation/transition": 0.5, "ablation/future": 0.85, "ablation/past": 0.5}


def runs(world: sf.World, seed: int, **keywords: object) -> list[Run]:
    first = SEEDS * seed
    return [
        sf.run(sf.LsviNew(world.problem, exploration="ideas", **keywords), world, episodes=EPISODES, seed=s)  # type: ignore[arg-type]
        for s in range(first, first + SEEDS)
    ]


def without(idea: str | None) -> tuple[str, ...]:
    return tuple(each for each in IDEAS if each != idea)


def final_regret(run: Run) -> float:
    return float(run.regret[-LAST:].mean())


@pytest.mark.statistical
@pytest.mark.parametrize("dropped", [None, *IDEAS])
@pytest.mark.parametrize("name", NEEDED)
def test_only_the_named_ideas_are_needed(name: str, dropped: str | None, seed: int) -> None:
    world = sf.worlds.make(name)
    gap = exact.solve(world).value - exact.fallback_value(world)
    assert gap == pytest.approx(GAPS[name])
    done = runs(world, seed, ideas=without(dropped))
    if dropped not in NEEDED[name]:
        assert all(not run.violations.any() for run in done)
        assert all(final_regret(run) < 0.05 * gap for run in done)
    elif dropped == "I":
        assert sum(run.violations.any() for run in done) >= 0.8 * SEEDS
        assert np.mean([(run.violations > 0).mean() for run in done]) > 0.9  # not once, but nearly always
    else:
        assert all(not run.violations.any() for run in done)
        assert sum(final_regret(run) >= 0.5 * gap for run in done) >= 0.8 * SEEDS


def test_no_weight_of_the_other_ideas_replaces_the_future(seed: int) -> None:
    world = sf.worlds.make("ablation/future")
    agent = sf.LsviNew(world.problem, ideas=without("III"), explore=(100.0, 0.0, 100.0))
    run = sf.run(agent, world, episodes=EPISODES, seed=seed)
    assert (run.regret == run.regret[0]).all()
    assert run.regret[0] == pytest.approx(GAPS["ablation/future"])


def test_at_layer_0_the_past_is_more_of_the_transition(seed: int) -> None:
    world = sf.worlds.make("ablation/past")
    full = sf.run(sf.LsviNew(world.problem, exploration="ideas"), world, episodes=EPISODES, seed=seed)
    agent = sf.LsviNew(world.problem, ideas=without("IV"), explore=(0.12, 0.02, 0.0))
    more = sf.run(agent, world, episodes=EPISODES, seed=seed)
    np.testing.assert_array_equal(full.regret, more.regret)


# ---------------------------------------------------------------- the first plan, as the pages give it


@pytest.mark.parametrize(
    ("name", "dropped", "where", "expected"),
    [
        ("look-ahead", "I", (0, "start"), {"road": 1.01, "shortcut": 4.12}),
        ("transition", None, (1, "works"), {"idle": 0.40, "trial": 0.55}),
        ("transition", "II", (1, "works"), {"idle": 0.40, "trial": 0.25}),
        ("future", None, (0, "works"), {"idle": 2.10, "visit": 2.14}),
        ("future", "III", (0, "works"), {"idle": 2.10, "visit": 2.05}),
        ("past", None, (0, "works"), {"idle": 0.40, "trial": 0.43}),
        ("past", "IV", (0, "works"), {"idle": 0.40, "trial": 0.37}),
    ],
)
def test_first_plan(name: str, dropped: str | None, where: tuple[int, str], expected: dict[str, float]) -> None:
    world = sf.worlds.make(f"ablation/{name}")
    plan = sf.LsviNew(world.problem, exploration="ideas", ideas=without(dropped)).plan
    for action, q in expected.items():
        assert plan.certified(*where, action)
        assert plan.q(*where, action) == pytest.approx(q)
    assert plan.action(*where) == max(expected, key=lambda action: expected[action])


def test_one_trial_certifies_full_and_never_overload() -> None:
    """Fact 2 of the page, at horizon 4, with a measurement that is exactly right; 9σ more would still do."""
    world = sf.worlds.make("ablation/look-ahead")
    for noise, certified in ((0.0, True), (0.09, True), (0.11, False)):
        agent = sf.LsviNew(world.problem, exploration="ideas")
        agent.begin_episode("start")
        for h, (state, action, after) in enumerate((("start", "road", "road"), ("road", "walk", "works"))):
            assert agent.act(h, state) == action
            agent.observe(h, state, action, after, 0.0)
        assert agent.act(2, "works") == "trial"
        agent.observe(2, "works", "trial", "end", 0.75 * 0.3 + noise)
        agent.end_episode()
        if noise == 0.0:
            assert agent.plan.upper(2, "works", "full", "end") == pytest.approx(0.741, abs=0.001)
        assert agent.plan.certified(2, "works", "full") == certified
        assert not agent.plan.certified(2, "works", "overload")
        assert agent.plan.upper(2, "works", "overload", "end") >= 1.2
