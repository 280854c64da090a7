"""An offset that an episode's measurements share breaks bounds that do not know of it, and none that do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf

NOISE, SHARED, HORIZON, EPISODES, RUNS = 0.02, 0.15, 12, 60, 20
GAMMA = np.array([0.3, 0.2])


def chain(declared: float) -> sf.Problem:
    rows = {"stay": [1.0, 0.0], "go": [1.0, 1.0]}
    return sf.Problem.from_functions(
        horizon=HORIZON,
        start=0,
        actions=lambda h, s: list(rows),
        successors=lambda h, s, a: [0],
        reward=lambda h, s, a: 0.0 if a == "stay" else 1.0,
        cost_features=lambda h, s, a, s2: rows[a],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: "stay",
        limits=sf.Limit("load", bound=2.0, noise=NOISE, norm=1.0, episode_noise=declared),
        stationary_costs=True,
    )


def broken(declared: float, seed: int) -> int:
    """In how many runs some plan's bounds miss a true cost; the world draws the offsets in any case."""
    world = sf.World(chain(SHARED), transition=[1.0], cost=GAMMA)
    count = 0
    for number in range(RUNS):
        agent, sampler = sf.LsviNew(chain(declared), replan_growth=0.0), world.sampler(1000 * seed + number)
        missed = False
        for _ in range(EPISODES):
            agent.begin_episode()
            sampler.begin_episode()
            for h in range(HORIZON - 1):
                action = agent.act(h, 0)
                edge = world.problem.edge_index(h, 0, action, 0)
                agent.observe(h, 0, action, 0, sampler.measure(h, edge))
            agent.end_episode()
            bounds = agent.plan.bounds
            missed |= any(
                bool(((true < low - 1e-9) | (true > up + 1e-9)).any())
                for true, low, up in zip(world.costs, bounds.lower, bounds.upper, strict=True)
            )
        count += missed
    return count


def test_offsets_break_the_bounds_unless_they_are_declared(seed: int) -> None:
    assert broken(SHARED, seed) <= 4  # p = 0.05: five of twenty have a chance below 0.003
    assert broken(0.0, seed) >= 10


def test_the_compiled_world_draws_the_same_offsets(seed: int) -> None:
    world = sf.World(chain(SHARED), transition=[1.0], cost=GAMMA)
    runs = [sf.run(sf.LsviNew(world.problem), world, 30, seed, compiled=compiled) for compiled in (True, False)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    still = sf.World(
        replace(world.problem, limits=(replace(world.problem.limits[0], episode_noise=0.0),)),
        transition=[1.0],
        cost=GAMMA,
    )
    drawn = [each.sampler(seed) for each in (world, still)]
    for sampler in drawn:
        sampler.begin_episode()
    assert drawn[0].offsets.any()
    assert not drawn[1].offsets.any()


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_no_truth_within_prior_and_noise_exceeds_its_bound_and_a_smaller_radius_lets_one(
    scale: float, seed: int
) -> None:
    """The attack: among γ of the box that explain the data within R, the one that costs most (by many random tries)."""
    rng, worst = np.random.default_rng([seed, 5]), -np.inf
    for _ in range(12):
        d = 3
        low = rng.uniform(-0.5, 0.3, d)
        prior = [(float(a), float(a + w)) for a, w in zip(low, rng.uniform(0.1, 0.8, d), strict=True)]
        rows = {f"a{i}": rng.uniform(-1, 1, d).tolist() for i in range(5)}
        problem = sf.Problem.from_functions(
            horizon=2,
            start=0,
            actions=lambda h, s, rows=rows: list(rows),
            successors=lambda h, s, a: [0],
            reward=lambda h, s, a: 0.5,
            cost_features=lambda h, s, a, s2, rows=rows: rows[a],
            transition_features=lambda h, s, a, s2: [1.0],
            fallback=lambda h, s: "a0",
            limits=sf.Limit("load", bound=5.0, noise=0.05, prior=prior),
        )
        agent = sf.LsviNew(problem, replan_growth=0.0, safety_radius_scale=scale)
        x, cost = [], []
        for _ in range(20):
            action = f"a{rng.integers(5)}"
            x.append(rows[action])
            middle = np.array([(a + b) / 2 for a, b in prior])
            cost.append(float(middle @ rows[action]) + 0.05 * rng.standard_normal())
            agent.begin_episode()
            agent.observe(0, 0, action, 0, cost[-1])
            agent.end_episode()
        # Within the box, and within (S3) at the full radius.
        family = agent.costs.families[0]
        z, y = np.array(x) * family.width, np.array(cost) - np.array(x) @ family.priors[0].centre
        gram, b = z.T @ z, z.T @ y
        possible = rng.uniform(-1, 1, (20_000, d))
        possible[::2] = np.sign(possible[::2]) * np.abs(possible[::2]) ** 0.2  # towards the corners
        every = np.array(list(rows.values())) * family.width
        s = float((every * every).sum(axis=1).mean())
        kappa = min(10.0, 100.0 * (d + 10) * 0.05**2 / 5.0**2)  # 0.13
        ridge = kappa * s * (d * (every.T @ every) / len(every) / s + np.eye(d) / 100.0)
        ratio = float(np.linalg.slogdet(np.eye(d) + np.linalg.solve(ridge, gram))[1])
        radius, off = 0.05 * np.sqrt(ratio + 2 * np.log(2 / 0.05)), b - possible @ gram
        possible = possible[np.einsum("ti,ij,tj->t", off, np.linalg.inv(gram + ridge), off) <= radius**2]
        for action, row in rows.items():
            costs = (possible * family.width + family.priors[0].centre) @ np.array(row)
            upper = float(agent.plan.upper(0, 0, action, 0)[0])
            worst = max(worst, float(costs.max(initial=-np.inf)) - upper)
    assert worst <= 1e-9 if scale == 1.0 else worst > 0.0
