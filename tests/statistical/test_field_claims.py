"""Every claim of an agent's card: what it says never happens does not, what it says may happen does, somewhere.

The cards are in the agents' docstrings. Who promises every step is tested for it elsewhere too,
over many runs; here with the options under which the learners of the deterministic line promise it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.registry import card
from surefoot.agents.tabular import budgets
from tests.made_worlds import visits_of

pytestmark = pytest.mark.statistical

#: where an agent breaks a limit: world, episodes, options. All of these do so with any seed.
BREAKS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "ucrl-vtr": ("thermal/testing", 30, {}),
    "ucrl-vtr-plus": ("thermal/testing", 30, {}),
    "hf-ucrl-vtr-plus": ("thermal/testing", 30, {}),
    "lsvi-ucb": ("thermal/testing", 200, {"scale": 0.01}),
    "mase": ("ablation/look-ahead", 30, {}),
    "slucb-qvi": ("ablation/look-ahead", 30, {}),
    "rslucb-qvi": ("ablation/look-ahead", 30, {}),
    "oplb": ("ablation/look-ahead", 30, {}),
    "safe-lucb": ("ablation/look-ahead", 30, {"initial_episodes": 10}),
    "safe-mdp": ("rover/testing", 200, {}),
    "sno-mdp": ("thermal/testing", 200, {}),
    "safe-exp-opt": ("thermal/testing", 200, {}),
    "lsvi-ae": ("thermal/testing", 100, {}),
    "opt-cmdp": ("ablation/look-ahead", 30, {}),
    "dope": ("ablation/look-ahead", 60, {"initial_episodes": 30, "scale": 0.02, "bonus": 0.0}),
    "opdop": ("ablation/look-ahead", 60, {}),
    "opse-lcmdp": ("ablation/look-ahead", 200, {}),
    "opt-primal-dual": ("ablation/look-ahead", 60, {}),
    "crpo": ("ablation/look-ahead", 60, {}),
}
NEVER = {"lsvi-new", "lsvi-new-paper", "fallback", "static-shield"}


def test_every_agent_has_a_card_and_evidence() -> None:
    for name in sf.agents.names():
        shown = card(name)
        assert all((shown.title, shown.port_of, shown.changed, shown.assumes, shown.guarantees, shown.may_violate))
        assert "read" in shown.port_of or "remembered" in shown.port_of or name == "fallback"
        assert (name in BREAKS) is not (name in NEVER)


@pytest.mark.parametrize("name", BREAKS)
def test_what_may_happen_does(name: str, seed: int) -> None:
    world_name, episodes, options = BREAKS[name]
    world = sf.worlds.make(world_name)
    agent = sf.agents.make(name, world.problem, **options)
    assert not agent.guaranteed
    assert sf.run(agent, world, episodes, seed).violations.sum() > 0


@pytest.mark.parametrize("name", ["safe-mdp", "sno-mdp", "safe-exp-opt"])
@pytest.mark.parametrize("world_name", ["thermal/testing", "rover/testing"])
def test_with_proofs_and_all_successors_nothing_happens(name: str, world_name: str, seed: int) -> None:
    world = sf.worlds.make(world_name)
    agent = sf.agents.make(name, world.problem, confidence="proved", successors="all")
    run = sf.run(agent, world, 150, seed)
    assert run.guaranteed
    assert run.violations.sum() == 0


@pytest.mark.parametrize("name", ["safe-mdp", "sno-mdp", "safe-exp-opt"])
def test_where_actions_have_one_outcome_the_published_look_ahead_sees_the_trap(name: str, seed: int) -> None:
    """As they assume; there SLUCB-QVI, which looks at this step alone, walks into it every time."""
    world = sf.worlds.make("ablation/look-ahead")
    assert sf.run(sf.agents.make(name, world.problem), world, 100, seed).violations.sum() == 0


def test_mase_breaks_nothing_where_stopping_is_safe(seed: int) -> None:
    """On the grids staying is; and where it is not, it learns not to have to stop, unlike SLUCB-QVI."""
    grid = sf.worlds.make("heights/testing", seed=seed, thresholds="varying")
    assert sf.run(sf.agents.make("mase", grid.problem, stop=0), grid, 60, seed).violations.sum() == 0
    trap = sf.worlds.make("ablation/look-ahead")
    broken = [sf.run(sf.agents.make(name, trap.problem), trap, 60, seed).violations for name in ("mase", "slucb-qvi")]
    assert broken[0][30:].sum() == 0 < broken[1][30:].sum()


def test_slucb_breaks_nothing_where_every_state_has_a_known_way_out(seed: int) -> None:
    """A world without traps: all that is open to the fallback everywhere is safe everywhere."""
    world = sf.worlds.make("toy-text/cliff-walking")
    run = sf.run(sf.agents.make("slucb-qvi", world.problem), world, 100, seed)
    assert run.violations.sum() == 0


def test_aggressive_exploration_learns_to_stop(seed: int) -> None:
    """LSVI-AE breaks limits at first, and hardly ever later."""
    world = sf.worlds.make("thermal/testing")
    broken = sf.run(sf.agents.make("lsvi-ae", world.problem), world, 1200, seed).violations
    assert broken[:300].sum() > 10 * max(1, broken[900:].sum())


@pytest.mark.parametrize(("name", "options"), [("dope", {"initial_episodes": 20, "scale": 0.1}), ("opse-lcmdp", {})])
def test_no_episode_is_expected_to_exceed_the_budget(name: str, options: dict[str, Any], seed: int) -> None:
    """Exactly, for every plan; and the budget is used: limits of single steps are broken."""
    world = sf.worlds.make("thermal/testing")
    spent = []

    def look(plan: sf.Plan, done: int) -> None:
        visits, total = visits_of(world, plan.chances, 0), 0.0
        for h, layer in enumerate(world.problem.graph.layers):
            cost = np.add.reduceat(world.probabilities[h] * world.costs[h][:, 0], layer.pair_ptr[:-1])
            total += float(visits[h] @ cost)
        if world.terminal_costs is not None:
            total += float(
                visits[-1] @ np.where(np.isfinite(world.terminal_costs[:, 0]), world.terminal_costs[:, 0], 0)
            )
        spent.append(total)

    sf.run(sf.agents.make(name, world.problem, **options), world, 300, seed, on_plan=look)
    assert max(spent) <= budgets(world.problem)[0] + 1e-9
    assert max(spent) > min(spent)
