"""Ports beside the code that their authors published; none of that code is part of this project.

    python -m benchmarks.published_code FOLDER

FOLDER has files saved from GitHub by hand, and what is missing is left out:

    env.py                  jyhuang78/UCRL-WVTR, c504665: the estimator of HF-UCRL-VTR+, on its RiverSwim
    agent.py                aa14k/Exploration-in-RL, 92997d0, UCRL_VTR_Testbed/agent.py: UCRL-VTR on a table
    safemdp/*.py            befelix/SafeMDP, dd8d88d: SafeMDP's intervals and sets, on its grid
    UtilityMethods_in.py    archanabura/DOPE-DoublyOptimisticPessimisticExploration, ee9cab5, Codes/InventoryControl:
                            the programs of OptCMDP and DOPE; needs PuLP
    proposal.py, utils.py, envs/cmdp.py
                            matsuolab/Episode-Wise-Safe-Linear-CMDP, 63b9d6d: OPSE-LCMDP on a table; needs JAX and chex
    utilities.py            pacchiano/constrainedBandits, 457aa7e: the program of OPLB for arms

Both sides are told the same random data. What is compared is what a port takes over: statistics, estimates, intervals,
sets, optima of programs, policies. Some code is mended on reading, and each function says where.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from benchmarks.published_values import loaded, moments, swim, value_targeted
from surefoot.agents.tabular import by_triplet
from surefoot.estimate.counts import Counts, bernstein, empirical
from surefoot.plan.drawing import best_mixture
from surefoot.plan.hope import reached
from surefoot.plan.occupancy import best_occupancy

SIDE, CLIMB, NOISE, LENGTH = 4, 0.4, 0.1, 1.0  # of the grid


class Process:
    """As much of a process of GPy as SafeMDP's code asks for, of heights that are measured as differences."""

    input_dim = 2

    def __init__(self) -> None:
        self.kern, self.X, self.y = self, np.zeros((0, 4)), np.zeros(0)

    def K(self, a: Any, b: Any) -> Any:
        """Covariances of heights at places (2,) or of differences of heights (4,)."""
        if a.shape[1] == 4:
            return self.K(a[:, :2], b) - self.K(a[:, 2:], b)
        if b.shape[1] == 4:
            return self.K(b, a).T
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2.0 * LENGTH**2))

    def Kdiag(self, x: Any) -> Any:
        return np.ones(len(x))

    def predict(self, asked: Any, kern: Any, full_cov: bool) -> tuple[Any, Any]:
        across = kern.K(self.X, asked)
        solved = np.linalg.solve(self.K(self.X, self.X) + NOISE**2 * np.eye(len(self.X)), across)
        return (solved.T @ self.y)[:, None], (kern.Kdiag(asked) - (across * solved).sum(axis=0))[:, None]


def hill(process: Process, coord: Any, moves: dict[Any, int]) -> sf.Problem:
    """Their grid in layers, long enough to go anywhere and come home, where every episode has to end."""
    steps, cells = 2 * SIDE**2, range(SIDE**2)
    values, vectors = np.linalg.eigh(process.K(coord, coord))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return sf.Problem.from_functions(
        horizon=steps + 1,
        start=0,
        actions=lambda h, s: [a for a in range(5) if (s, a) in moves],
        successors=lambda h, s, a: [moves[s, a]],
        reward=lambda h, s, a: 0.0,
        cost_features=lambda h, s, a, s2: root[s2] - root[s],
        transition_features=lambda h, s, a, s2: [1.0],
        forbidden=lambda h, s: h == steps and s != 0,
        fallback=lambda h, s: 0,
        limits=[sf.Limit("climb", bound=CLIMB, noise=NOISE, norm=np.sqrt(len(cells)))],
        stationary_costs=True,
        stationary_transitions=True,
    )


def safe_sets(folder: Path, seed: int) -> str:
    """Intervals and sets of SafeMDP after each of eight walks. Names that networkx and numpy have dropped are replaced.
    The noise that GPy adds to the variance of what it predicts is left out, as in the port."""
    old = (("edges_iter", "edges"), ("out_degree_iter", "out_degree"), ("np.bool)", "bool)"))
    theirs = loaded(folder, "safemdp.grid_world", *old)
    rng, process = np.random.default_rng(seed), Process()
    graph, coord = theirs.grid_world_graph((SIDE, SIDE)), theirs.grid((SIDE, SIDE), (0.5, 0.5))
    moves = {(0, 0): 0} | {(int(s), a): int(s2) for s, s2, a in graph.edges(data="action")}  # at home one may stay
    problem = hill(process, coord, moves)
    agent = sf.agents.make("safe-mdp", problem, successors="all", replan_growth=0.0)
    height = np.linalg.cholesky(process.K(coord, coord) + 1e-9 * np.eye(len(coord))) @ rng.normal(size=len(coord))
    worst, other, sizes = 0.0, 0, []
    for _ in range(8):
        s = 0
        agent.begin_episode(0)
        for h in range(problem.horizon - 1):
            a = int(rng.choice([a for a in range(5) if (s, a) in moves]))
            climb = height[moves[s, a]] - height[s] + NOISE * rng.normal()
            measured = h < 6  # so that it takes some walks to know them all
            if measured:
                process.X = np.vstack([process.X, np.concatenate([coord[s], coord[moves[s, a]]])])
                process.y = np.append(process.y, -climb)
            agent.observe(h, s, a, moves[s, a], [climb] if measured else None)
            s = moves[s, a]
        agent.end_episode()
        none = np.zeros((SIDE**2, 5), bool)
        safe, home = none.copy(), none.copy()
        safe[:, 0] = home[0, 0] = True
        world = theirs.GridWorld(process, (SIDE, SIDE), (0.5, 0.5), 2, height, -CLIMB, safe, home, 0.0)
        world.update_sets()
        proved, mine = none.copy(), none.copy()
        plan = agent.plan
        assert plan is not None
        met = reached(problem.graph, plan.certified_sets.pairs)
        for (s, a), s2 in moves.items():
            upper, lower = plan.upper(SIDE**2, s, a, s2)[0], plan.lower(SIDE**2, s, a, s2)[0]
            worst = max(worst, abs(upper + world.l[s, a]), abs(lower + world.u[s, a])) if a else worst
            proved[s, a] = upper <= CLIMB
            there = [h for h in range(problem.horizon - 1) if s in problem.states(h)]
            mine[s, a] = any(problem.pair_index(h, s, a) in met[h] for h in there)
        other += int((proved != world.S)[:, 1:].sum() + (mine != world.S_hat)[:, 1:].sum())
        sizes.append(int(world.S_hat[:, 1:].sum()))
    return f"bounds differ by {worst:.1e}, sets by {other} moves; they had {sizes} of {len(moves) - 1}"


def programs(folder: Path, seed: int) -> str:
    """Intervals and optima of OptCMDP and DOPE from the same counts, on a table whose every state may follow. Their
    code counts all steps together: here all steps have the same counts. Its rewards have no bonus. An option that PuLP
    has renamed is mended."""
    import pulp

    theirs = loaded(folder, "UtilityMethods_in", ("fracGap", "gapRel"))
    solved: list[Any] = []

    class Kept(pulp.LpProblem):  # type: ignore[misc, unused-ignore]
        def solve(self, *arguments: Any) -> Any:
            solved.append(self)
            return super().solve(*arguments)

    theirs.p = types.SimpleNamespace(**(vars(pulp) | {"LpProblem": Kept}))
    rng, states, steps = np.random.default_rng(seed), 4, 5
    p = rng.dirichlet(np.ones(states), (states, 2))
    r, c = rng.random((2, states, 2))
    problem = swim(states, lambda s, a: p[s, a][None], steps, lambda s, a: float(r[s, a]), start=0)
    graph, counts = problem.graph, Counts(problem)
    tables = [{s: {a: t[s, a] for a in range(2)} for s in range(states)} for t in (p, r, c)]
    worst, off, kept, none = 0.0, 0.0, 0, 0
    for n in (0, 3, 30, 3000, 300000):
        visits = np.array([[rng.multinomial(n * rng.integers(2, 5), p[s, a]) for a in range(2)] for s in range(states)])
        for h, layer in enumerate(graph.layers):
            here = np.array(problem.states(h))
            counts.visits[h][:] = visits[here].ravel()
            assert layer.n_edges == len(here) * 2 * states
        for mode, width in ((1, bernstein), (0, empirical)):
            budget = float(rng.uniform(0.3, 0.7)) * steps
            code = theirs.utils(0, 0, 0, *tables, steps, states, {s: [0, 1] for s in range(states)}, budget, 0.0)
            code.setCounts(visits, visits.sum(axis=2))
            code.update_empirical_model(0)
            code.compute_confidence_intervals(2.0, mode)
            inside = [width(counts, h, 2.0) for h in range(steps)]
            wide = np.array([code.beta_prob[s] for s in range(states)])
            worst = max(worst, float(np.abs(inside[1].width - wide.ravel()).max()))
            with contextlib.redirect_stdout(io.StringIO()), np.errstate(invalid="ignore"):
                status = (code.compute_extended_LP1(0, 1) if mode else code.compute_extended_LP(0, 0.0))[3]
            costs = [c[problem.states(h)].reshape(-1, 1) for h in range(steps)]
            if not mode:
                sums = [np.add.reduceat(inside[h].width, layer.pair_ptr[:-1]) for h, layer in enumerate(graph.layers)]
                costs = [own + steps * doubt[:, None] for own, doubt in zip(costs, sums, strict=True)]
            costs.append(np.zeros((states, 1)))
            rewards = [*(layer.reward for layer in graph.layers), graph.terminal.reward]
            bounds = ([each.low for each in inside], [each.high for each in inside])
            found = best_occupancy(graph, *bounds, rewards, by_triplet(graph, costs), np.array([budget]))
            assert (found is None) == (status != "Optimal")
            if found is None:
                none += 1
                continue
            kept += 1
            off = max(off, abs(found.value - pulp.value(solved[-1].objective)))
    return f"widths differ by {worst:.1e}, {kept} optima by {off:.1e}; {none} programs have none on either side"


def priced(folder: Path, seed: int) -> str:
    """The policy of a price of OPSE-LCMDP. Two things are mended: the entropy of a state's policy is weighed by that
    policy twice, and a last step that nobody takes has an entropy, too. Utilities are known to their code, and are
    taken from ours."""
    import jax

    jax.config.update("jax_enable_x64", True)
    mends = (
        ("Q_nh + ent_coef * jax.scipy.special.entr(pol_nh)", "Q_nh - ent_coef * jnp.log(pol_nh)"),
        ("pol = jnp.ones((H+1, S, A)) / A", "pol = jnp.ones((H+1, S, A))"),
    )
    theirs, tools = loaded(folder, "proposal", *mends), loaded(folder, "utils", *mends)
    table = loaded(folder, "envs.cmdp").CMDP
    rng, states, steps = np.random.default_rng(seed), 5, 6
    p, r = rng.dirichlet(np.ones(states), (states, 2)), rng.random((states, 2))
    problem = swim(states, lambda s, a: p[s, a][None], steps, lambda s, a: float(r[s, a]))
    agent: Any = sf.agents.make("opse-lcmdp", problem, replan_growth=0.0)
    d = 2 * states
    inverse, sums, worst = np.tile(np.eye(d), (steps, 1, 1)), np.zeros((steps, states, d)), 0.0
    for k in range(60):
        s, walk = int(rng.integers(states)), []
        for h in range(steps):
            a = int(rng.integers(2))
            following = int(rng.choice(states, p=p[s, a]))
            agent.counts.add(h, problem.edge_index(h, s, a, following), rng.uniform(-0.5, 0.8, 1))
            walk.append((2 * s + a, following))
            s = following
        phi = np.eye(d)
        inverse = tools.Sherman_Morrison_update_H(inverse, phi[[pair for pair, _ in walk]])
        rewards = np.tile(r, (steps, 1, 1))
        shared = {"S_set": np.arange(states), "A_set": np.arange(2), "H": steps, "d": d, "phi": phi, "rew": rewards}
        shared |= {"const": 0.0, "const_scale": 1.0, "init_dist": np.full(states, 1 / states), "xi": 1.0}
        cmdp = table(**shared, utility=rewards, P=np.zeros((steps, states, 2, states)))
        bonus = np.asarray(tools.compute_bonus(inverse, cmdp))
        sums, estimate = tools.update_ephi_sum_and_estimate_P(sums, inverse, np.array(walk), cmdp)
        if k % 20 != 19:
            continue
        utility = np.array([agent._utilities(h, bonus[h].ravel()).reshape(states, 2) for h in range(steps)])
        for price in (0.0, 1.0, 10.0):
            cmdp = table(**shared, utility=utility, P=estimate)
            worth, policy = theirs.compute_softmax_pol(bonus, cmdp, 0.1, price, 1.0, 1.0, 1.0, 1.0)
            mine = agent._priced(price)
            chances = np.array(mine.chances).reshape(steps, states, 2)
            worst = max(worst, float(np.abs(chances - policy).max()), abs(float(worth - mine.utilities[0])))
    return f"policies and utilities differ by {worst:.1e}"


def mixtures(folder: Path, seed: int) -> str:
    """The best mixture of arms of OPLB: reward and cost of 50 of them."""
    import scipy.optimize  # noqa: F401 - their code takes it to be loaded

    theirs = loaded(folder, "utilities")
    rng, worst, mixed = np.random.default_rng(seed), 0.0, 0
    for arms in range(2, 12):
        costs = [0.2, *rng.uniform(0.3, 0.9, arms - 1)]
        bandit = theirs.ConstrainedBandit(
            list(rng.uniform(0.0, 0.6, arms)), costs, 0.5, 100, [True] + [False] * (arms - 1), 2.0, 1.0
        )
        for _ in range(5):
            for arm in range(arms):
                for _ in range(int(rng.integers(100, 3000))):
                    bandit.update(arm, float(rng.random() * 0.5), float(rng.uniform(0.0, 2 * costs[arm])))
            score, cost = np.array(bandit.upper_rewards_means), np.array(bandit.upper_cost_means)
            layer: Any = types.SimpleNamespace(state_ptr=np.array([0, arms]), n_pairs=arms, n_states=1)
            chances, value = best_mixture(layer, score, cost - bandit.threshold)
            policy = bandit.get_policy()
            worst = max(worst, abs(float(value[0] - score @ policy)), float(chances @ cost) - bandit.threshold)
            mixed += int((chances > 0).sum() == 2)
    return f"values differ by {worst:.1e}; {mixed} of 50 play two arms"


COMPARISONS: dict[str, tuple[str, Callable[[Path, int], str]]] = {
    "hf-ucrl-vtr-plus": ("env.py", moments),
    "ucrl-vtr": ("agent.py", value_targeted),
    "safe-mdp": ("safemdp/grid_world.py", safe_sets),
    "opt-cmdp, dope": ("UtilityMethods_in.py", programs),
    "opse-lcmdp": ("proposal.py", priced),
    "oplb": ("utilities.py", mixtures),
}

if __name__ == "__main__":
    place = Path(sys.argv[1])
    for label, (file, compared) in COMPARISONS.items():
        for chosen in range(3) if (place / file).exists() else ():
            print(f"{label}, seed {chosen}: {compared(place, chosen)}")
