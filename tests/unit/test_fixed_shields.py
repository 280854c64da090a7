"""Shields that do not learn what is safe, and the price of learning it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.exact.contenders import CONTENDERS, agent_for
from surefoot.reports.statistics import Price, prices
from tests.unit.test_shield_foreign import corridor


def test_the_oracle_plays_truly_safe_actions_only(seed: int) -> None:
    for name in ("thermal/testing", "driving/testing", "figure1"):
        world = sf.worlds.make(name)
        agent = sf.exact.OracleShield(world)
        run = sf.run(agent, world, episodes=120, seed=seed)
        assert run.violations.sum() == 0
        _, pairs = sf.exact.safe_sets(world)
        for mask, safe in zip(agent.plan.certified_sets.pairs, pairs, strict=True):
            assert np.array_equal(mask, safe)
        assert run.regret[-50:].mean() <= run.regret[:50].mean()
        assert run.guaranteed


def test_the_oracle_needs_the_truth() -> None:
    world = sf.worlds.make("thermal/testing")
    with pytest.raises(InvalidInput, match="the oracle shield needs a World: a Problem"):
        sf.exact.OracleShield(world.problem)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no such agent"):
        sf.agents.make("oracle-shield", world.problem)
    assert agent_for("oracle-shield", world, replan_growth=0.5).constants["replan_growth"] == 0.5
    assert agent_for("fallback", world).name == "fallback"
    with pytest.raises(InvalidInput, match=r"Did you mean .*oracle-shield"):
        CONTENDERS.kind("oracle-sheild")


def test_the_static_shield_never_grows(seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    agent = sf.agents.make("static-shield", world.problem)
    first = [mask.copy() for mask in agent.plan.certified_sets.pairs]  # type: ignore[union-attr]
    run = sf.run(agent, world, episodes=250, seed=seed)
    assert run.violations.sum() == 0
    assert run.replans > 5
    assert all(map(np.array_equal, first, agent.plan.certified_sets.pairs))  # type: ignore[union-attr]
    learned = sf.run(sf.LsviNew(world.problem), world, episodes=250, seed=seed)
    assert learned.certified[-1] > run.certified[-1] == sum(int(mask.sum()) for mask in first)
    assert learned.regret.sum() < run.regret.sum()


def test_data_against_the_declaration_leave_the_static_shield_the_fallback() -> None:
    problem = corridor()
    agent: Any = sf.agents.make("static-shield", problem, replan_growth=0.0)
    for _ in range(400):
        agent.begin_episode()
        for h in range(3):
            agent.observe(h, 0, "stay", 0, 5.0)  # no γ of norm 1 gives that
        agent.end_episode()
    assert not agent.plan.consistent
    assert agent.plan.n_certified() == 3


# ---------------------------------------------------------------- the price


def runs(agent: str, *regrets: float) -> list[dict[str, Any]]:
    return [{"agent": agent, "seed": seed, "summary": {"total_regret": r}} for seed, r in enumerate(regrets)]


def test_a_price_by_hand() -> None:
    (price,) = prices({"ours": runs("lsvi-new", 30.0, 10.0), "oracle": runs("oracle-shield", 5.0, 5.0)})
    assert price == Price("ours", 2, 20.0, 5.0, 2.0, 6.0)
    assert price.ratio == 4.0
    assert str(price) == "ours: regret 20 where the oracle shield has 5, 4 times as much (2 to 6 by seed)"


def test_prices_of_what_is_missing() -> None:
    (alone,) = prices({"ours": runs("lsvi-new", 30.0), "theirs": runs("ucrl-vtr", -3.0)})
    assert alone.ratio is None
    assert str(alone) == "ours: not measured; add the agent oracle-shield to the comparison"
    (free,) = prices({"ours": runs("lsvi-new", 30.0), "oracle": runs("oracle-shield", 0.0)})
    assert str(free) == "ours: regret 30 where the oracle shield has 0: all of it is the price"
    (some,) = prices({"ours": runs("lsvi-new", 30.0, 8.0), "oracle": runs("oracle-shield", 2.0)})
    assert (some.seeds, some.ratio) == (1, 15.0)  # of the seeds that both have finished
