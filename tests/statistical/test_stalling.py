"""Bonuses for uncertainty fall asleep where a trial costs a little more than they pay; directed exploration does not.

And it stops: a hope that nothing certified can ever tell about costs √k episodes, not all of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.runs.run import Run

SEEDS, EPISODES = 3, 8000
GAPS = {"ablation/stall": 0.5, "ablation/stall-deep": 1.5}


def runs(world: sf.World, seed: int, episodes: int = EPISODES, **options: object) -> list[Run]:
    return [
        sf.run(sf.LsviNew(world.problem, **options), world, episodes, SEEDS * seed + i, progress=False)  # type: ignore[arg-type]
        for i in range(SEEDS)
    ]


@pytest.mark.statistical
@pytest.mark.parametrize("name", GAPS)
def test_directed_exploration_opens_what_bonuses_leave_closed(name: str, seed: int) -> None:
    world = sf.worlds.make(name)
    assert exact.solve(world).value - exact.fallback_value(world) == pytest.approx(GAPS[name])
    for run in runs(world, seed):
        assert run.plan is not None
        assert run.plan.certified(0, "works", "best")
        assert not run.regret[EPISODES // 2 :].any()  # the last half costs nothing at all
        assert run.gap[-1] == 0.0
        assert not run.violations.any()
    for run in runs(world, seed, exploration="ideas"):  # negative control: linear to the end
        assert run.plan is not None
        assert not run.plan.certified(0, "works", "best")
        assert (run.regret[EPISODES // 2 :] >= GAPS[name] - 1e-9).all()
        assert run.gap[-1] == pytest.approx(GAPS[name])


def one_state(actions: dict[str, tuple[float, list[float]]], slopes: list[float], noise: float = 0.1) -> sf.World:
    """One decision in one state; by action reward and features beside the anchor's. The first is the fallback."""
    problem = sf.Problem.from_functions(
        horizon=2,
        start="start",
        actions=lambda h, s: list(actions),
        successors=lambda h, s, a: ["end"],
        reward=lambda h, s, a: actions[a][0],  # type: ignore[index]
        cost_features=lambda h, s, a, s2: [1.0, *actions[a][1]],  # type: ignore[index]
        transition_features=lambda h, s, a, s2: [1.0],
        terminal_reward=lambda s: 0.0,
        fallback=lambda h, s: next(iter(actions)),
        anchor=lambda h: ([1.0] + [0.0] * len(slopes), 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=noise, norm=1.0),
        transition_norm=1.0,
    )
    return sf.World(problem, transition=[1.0], cost=[0.2, *slopes])


@pytest.mark.statistical
def test_a_hope_out_of_reach_costs_a_budget_and_no_more(seed: int) -> None:
    """Nothing that may be played measures the second slope, so `best` stays hopeful and uncertified for ever."""
    actions = {"idle": (0.5, [0.0, 0.0]), "trial": (0.2, [0.3, 0.0]), "best": (1.0, [0.3, 0.9])}
    world = one_state(actions, [0.3, 0.0])
    for run in runs(world, seed, budget=5.0):
        assert run.plan is not None
        assert not run.plan.certified(0, "start", "best")
        assert run.gap[-1] == 0.5
        trials = np.cumsum(run.value < 0.5 - 1e-9)
        k = np.arange(1, EPISODES + 1)
        assert trials[-1] >= 5 * np.sqrt(EPISODES) / 1.1  # it does try,
        assert (trials <= 5 * np.sqrt(k) + 1).all()  # and never more than it may


@pytest.mark.statistical
def test_a_hope_out_of_reach_hides_no_other(seed: int) -> None:
    """Nothing certified tells anything about `best`; what can be learned, `good`, is learned all the same."""
    actions = {
        "idle": (0.5, [0.0, 0.0]),
        "trial": (0.2, [0.3, 0.0]),
        "good": (0.8, [0.9, 0.0]),
        "best": (1.0, [0.0, 0.9]),
    }
    world = one_state(actions, [0.3, 0.0])
    for run in runs(world, seed):
        assert run.plan is not None
        assert run.plan.certified(0, "start", "good")
        assert run.plan.directed is None or (run.plan.directed.shares.aim[0] == -1).all()  # undirected
        assert (run.value[EPISODES // 2 :] == 0.8).mean() > 0.8


@pytest.mark.statistical
def test_a_hope_close_to_its_limit_hides_no_other_for_long(seed: int) -> None:
    """`best` costs 0.6005 where 0.6 is allowed: `trial` narrows its bound for ever, and cannot tell. Twenty plays of
    `other` certify `good`, which is worth almost as much."""
    actions = {
        "idle": (0.5, [0.0, 0.0]),
        "trial": (0.2, [0.3, 0.0]),
        "other": (0.2, [0.0, 0.3]),
        "good": (0.9, [0.0, 0.9]),
        "best": (1.0, [0.9, 0.0]),
    }
    for run in runs(one_state(actions, [0.445, 0.3], noise=0.04), seed):
        assert run.plan is not None
        assert run.plan.certified(0, "start", "good")
        assert (run.value[-EPISODES // 4 :] == 0.9).mean() > 0.8
        assert run.plan.hopeful(0, "start", "best")
        assert not run.plan.certified(0, "start", "best")
        assert not run.violations.any()


def never(hides: bool, ray: bool = False) -> sf.World:
    """The fallback declares an end that never comes, and would measure there what `best` needs. In the second world
    nothing else measures that: then `trial` can at least tell about `good`."""
    actions = {
        "idle": (0.5, [0.0, 0.0]),
        "trial": (0.2, [0.3, 0.0]),
        "best": (1.0, [0.0, 0.9] if hides else [0.9, 0.0]),
    }
    if hides:
        actions["good"] = (0.8, [0.9, 0.0])
    if ray:
        actions["push"] = (0.1, [0.05, 0.0])  # which has nothing to do with it
    elsewhere = [0.0, 0.3] if hides else [0.3, 0.0]
    problem = sf.Problem.from_functions(
        horizon=2,
        start="start",
        actions=lambda h, s: list(actions),
        successors=lambda h, s, a: ["end", "elsewhere"] if a == "idle" else ["end"],
        reward=lambda h, s, a: actions[a][0],  # type: ignore[index]
        cost_features=lambda h, s, a, s2: [1.0, *(elsewhere if s2 == "elsewhere" else actions[a][1])],  # type: ignore[index]
        transition_features=lambda h, s, a, s2: [s2 == "end" and a == "idle", s2 == "elsewhere", a != "idle"],
        fallback=lambda h, s: "idle",
        anchor=lambda h: ([1.0, 0.0, 0.0], 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=0.1, norm=1.0),
        transition_norm=2.0,
        center=(lambda h, s, a: "trial" if a == "push" else None) if ray else None,
    )
    return sf.World(problem, transition=[1.0, 0.0, 1.0], cost=[0.2, 0.3, 0.0])


@pytest.mark.statistical
@pytest.mark.parametrize("hides", [False, True])
def test_nobody_waits_for_a_measurement_that_never_comes(
    hides: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, episodes = ("good", 2 * EPISODES) if hides else ("best", EPISODES // 4)
    for run in runs(never(hides), seed, episodes, budget=5.0):
        assert run.plan is not None
        assert run.plan.certified(0, "start", found)
        assert (run.value[-episodes // 4 :] >= 0.8).mean() > 0.8
        assert not run.violations.any()
    monkeypatch.setattr(sf.LsviNew, "_note", lambda *_: None)  # negative control: nobody counts what comes
    monkeypatch.setattr(sf.LsviNew, "retell", lambda *_: None)
    for run in runs(never(hides), seed, episodes):
        assert run.plan is not None
        assert not run.plan.certified(0, "start", found)
        assert (run.value == 0.5).all()


@pytest.mark.statistical
def test_a_ray_elsewhere_changes_nothing_about_it(seed: int) -> None:
    for run in runs(never(hides=False, ray=True), seed, episodes=2000):
        assert run.plan is not None
        assert run.plan.certified(0, "start", "best")
        assert not run.regret[1000:].any()


def ladder(steps: int) -> sf.World:
    """The fallback climbs a step with a probability of 0.6, or falls for good; at the top its own work measures what
    `best` needs, once in hundreds of episodes. `trial` measures it at once."""
    first = {"idle": (0.5, 0.0), "trial": (0.1, 0.3), "best": (1.0, 0.9)}

    def follows(h: int, s: str, a: str) -> list[str]:
        return ["end"] if h == steps else ["up", "hall"] if s in ("start", "up") and a == "idle" else ["hall"]

    problem = sf.Problem.from_functions(
        horizon=steps + 2,
        start="start",
        actions=lambda h, s: list(first) if h == 0 else ["idle"],
        successors=follows,  # type: ignore[arg-type]
        reward=lambda h, s, a: first[a][0] if h == 0 else 0.0,  # type: ignore[index]
        cost_features=lambda h, s, a: [1.0, first[a][1] if h == 0 else 0.3 * (h == steps and s == "up")],  # type: ignore[index]
        transition_features=lambda h, s, a, after: [
            float(after == "up"),
            float(after == "hall" and len(follows(h, s, a)) > 1),  # type: ignore[arg-type]
            float(len(follows(h, s, a)) == 1),  # type: ignore[arg-type]
        ],
        fallback=lambda h, s: "idle",
        anchor=lambda h: ([1.0, 0.0], 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=0.2, norm=1.0),
        transition_norm=2.0,
        stationary_costs=True,
    )
    return sf.World(problem, transition=[0.6, 0.4, 1.0], cost=[0.2, 0.3])


@pytest.mark.statistical
@pytest.mark.parametrize("steps", [3, 12])
def test_steps_in_a_row_do_not_multiply_what_is_promised(steps: int, seed: int) -> None:
    for run in runs(ladder(steps), seed, episodes=4000):
        assert run.plan is not None
        assert run.plan.certified(0, "start", "best")
        assert not run.regret[2000:].any()
        assert not run.violations.any()


def waiting_room(chance: float, horizon: int) -> sf.World:
    """The fallback may lead to a bench where its own work measures what `best` needs, and does so with this chance.

    Whoever waits for the bench plays the fallback, and all states of a step have the same V: nothing but what the bench
    is worth to exploration tells whether it ever comes.
    """
    first = {"idle": (0.5, 0.0, ["hall", "bench"]), "trial": (0.2, 0.25, ["hall"]), "best": (1.0, 0.9, ["hall"])}
    then = {"hall": {"idle": (0.5, 0.0, ["hall"])}, "bench": {"work": (0.5, 0.3, ["hall"])}}

    def choices(h: int, s: str) -> dict[str, tuple[float, float, list[str]]]:
        return first if h == 0 else then[s]

    def kernels(h: int, s: str, a: str, after: str) -> list[float]:
        return [float(after == "hall"), float(after == "bench"), 0.0] if (h, a) == (0, "idle") else [0.0, 0.0, 1.0]

    problem = sf.Problem.from_functions(
        horizon=horizon,
        start="start",
        actions=lambda h, s: list(choices(h, s)),  # type: ignore[arg-type]
        successors=lambda h, s, a: choices(h, s)[a][2],  # type: ignore[arg-type, index]
        reward=lambda h, s, a: choices(h, s)[a][0],  # type: ignore[arg-type, index]
        cost_features=lambda h, s, a: [1.0, choices(h, s)[a][1]],  # type: ignore[arg-type, index]
        transition_features=kernels,  # type: ignore[arg-type]
        fallback=lambda h, s: next(iter(choices(h, s))),  # type: ignore[arg-type]
        anchor=lambda h: ([1.0, 0.0], 0.2),
        limits=sf.Limit("strain", bound=0.6, noise=0.1, norm=1.0),
        transition_norm=2.0,
        stationary_costs=True,
    )
    return sf.World(problem, transition=[1.0 - chance, chance, 1.0], cost=[0.2, 0.3])


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [0.0, 0.001, 0.2])
@pytest.mark.parametrize("horizon", [3, 12])
def test_nobody_waits_for_a_state_that_never_comes(chance: float, horizon: int, seed: int) -> None:
    """However long the episode: values of many steps are learned slowly, and this does not wait for them."""
    for run in runs(waiting_room(chance, horizon), seed, episodes=2000):
        assert run.plan is not None
        assert run.plan.certified(0, "start", "best")
        assert not run.regret[1000:].any()
        assert not run.violations.any()
