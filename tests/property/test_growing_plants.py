"""A plant whose cells are made when they can be used certifies what the whole plant certifies (spec 9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.plant.cellwise import CellTables, Cellwise, cells_in
from surefoot.plan.centres import CentreValues
from surefoot.plan.hope import hope
from surefoot.plan.point import at_point
from tests.plants import RandomPlant, random_plant

RIDGES = (0.1, 1.0, 10.0)
KINDS = (  # dimension, features of x', endless, rays
    (1, False, True, False),
    (2, False, True, False),
    (2, True, False, False),
    (3, False, False, False),
    (1, False, True, True),
    (2, False, False, True),
    (1, True, True, True),
    (2, True, False, True),
)


def learned(world: RandomPlant, seed: int) -> sf.PlantAgent:
    """After a few episodes, and until there is nothing left to expand."""
    agent, truth = sf.PlantAgent(world.plant, ridges=RIDGES, replan_growth=0.0), world.plant.simulate(world.step)
    sf.run(agent, truth, 40, seed)
    for _ in range(20):
        if not agent.learner.may_grow():
            break
        sf.run(agent, truth, 1, seed)
    assert not agent.learner.may_grow()
    return agent


def whole_plan(world: RandomPlant, agent: sf.PlantAgent) -> sf.Plan:
    """The plan that the same data give with the whole plant."""
    other = sf.LsviNew(world.plant.problem, ridges=RIDGES, replan_growth=0.0)
    other.inherit(agent.learner)
    other.replan()
    return other.plan


def cells_of_both(world: RandomPlant, grown: RandomPlant, plan: sf.Plan, h: int) -> list[tuple[int, int]]:
    """(cell of the one that has grown, the same cell of the whole one)."""
    cells = cells_in(plan.problem, h, grown.plant.cells)[0]
    low, high = grown.plant.cells.bounds(cells)
    return list(zip(cells.tolist(), world.plant.cells.of(0.5 * (low + high)).tolist(), strict=True))


def compared(world: RandomPlant, grown: RandomPlant, seed: int) -> tuple[int, int]:
    """All that both certify and hope for is the same; (pairs that data certify, points certified beyond their cell)."""
    first = whole_plan(world, sf.PlantAgent(grown.plant, ridges=RIDGES))
    agent, rng = learned(grown, seed), np.random.default_rng(seed)
    plan, whole = agent.plan, whole_plan(world, agent)
    assert plan.problem.graph.n_all_states < whole.problem.graph.n_all_states
    steer = CentreValues(grown.plant).of(plan), CentreValues(world.plant).of(whole)
    alike = hope(whole.problem, whole.bounds, whole.certified_sets, plan.ellipsoids, opened=whole.opened)
    changed = points = 0  # values are compared with the same value ellipsoids
    many = world.plant.n_choices  # the first that are looked at anywhere
    for h in range(plan.problem.horizon - 1):
        layer = plan.problem.graph.layers[h]
        kept = np.logical_or.reduceat((plan.bounds.upper[h] <= plan.problem.bounds[h]).all(axis=1), layer.row_ptr[:-1])
        for mine, theirs in cells_of_both(world, grown, plan, h):
            for i in range(len(world.plant.inputs)):
                assert plan.certified(h, mine, i) == whole.certified(h, theirs, i)
                if world.plant.rays and plan.certified(h, mine, i):
                    assert plan.intensity(h, mine, i) == pytest.approx(whole.intensity(h, theirs, i), abs=1e-9)
                changed += whole.certified(h, theirs, i) != first.certified(h, theirs, i)
            value = plan.hope.sure.value[h][plan.problem.state_index(h, mine)]
            assert value == pytest.approx(alike.sure.value[h][theirs], abs=1e-9)
            low, high = grown.plant.cells.bounds(np.array([mine]))
            x = (low + rng.random(low.shape) * (high - low))[:, 0]
            here, there = at_point(grown.plant, plan, steer[0], h, x), at_point(world.plant, whole, steer[1], h, x)
            own = kept[here.pairs][here.choices.number[:many]]  # where no corner keeps the limits nothing is expanded
            mine_proved, theirs_proved = here.proved[:many], there.proved[:many]
            assert not (mine_proved & ~theirs_proved).any()
            assert np.array_equal(mine_proved[own], theirs_proved[own])
            points += int((here.proved & ~here.whole_cell).sum())
    return changed, points


def test_ends_with_the_certified_sets_and_values_of_the_whole_plant(seed: int) -> None:
    found = []
    for dim, of_next, endless, rays in KINDS:
        rng = np.random.default_rng([seed, dim, of_next])
        world = random_plant(rng, dim, of_next, start=(-0.2, 0.2), rays=rays)
        found.append(compared(world, world.growing(endless), seed))
    assert np.sum(found, axis=0).min() > 0  # something was learned, and the comparison is able to fail


def test_no_limit_is_broken_on_the_continuous_state_and_a_control_breaks_some(seed: int, monkeypatch: Any) -> None:
    """The control judges a cell by the mean of its corners, by whole cells only."""

    def violations(worlds: list[RandomPlant], exact: bool) -> int:
        broken = 0
        for n, world in enumerate(worlds):
            held = list[bool]()
            agent = sf.PlantAgent(world.plant, exact=exact)
            truth = world.plant.simulate(world.step)
            run = sf.run(agent, truth, 40, seed + n, on_plan=lambda p, k, of=world, so=held: so.append(of.event(p)))
            broken += int(run.violations.sum()) * (all(held) or not exact)
        return broken

    rng = np.random.default_rng(seed)
    worlds = [random_plant(rng, 1 + n % 2, start=(-0.9, 0.9)) for n in range(4)]
    assert violations([world.growing(n % 2 == 0, most_states=150) for n, world in enumerate(worlds)], True) == 0
    make = Cellwise._make

    def averaged(*cell: Any) -> CellTables:
        found = make(*cell)
        rows, zero = ([x.mean(axis=0, keepdims=True) for x in table] for table in (found.rows, found.zero))
        return replace(found, rows=rows, zero=zero)

    monkeypatch.setattr(Cellwise, "_make", averaged)
    assert violations([world.growing(n % 2 == 0) for n, world in enumerate(worlds)], False) > 0
