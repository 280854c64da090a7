"""Two ports beside the code that their authors published; none of that code is part of this project.

    python -m benchmarks.published_code FOLDER

FOLDER has two files, saved from GitHub by hand:

    env.py     jyhuang78/UCRL-WVTR, commit c504665       the estimator of HF-UCRL-VTR+, on its RiverSwim
    agent.py   aa14k/Exploration-in-RL, commit 92997d0, UCRL_VTR_Testbed/agent.py        UCRL-VTR on a table

Both sides are told the same random transitions, and the same values: theirs. What is compared are the statistics, the
estimates, and for UCRL-VTR every Q with their radius. env.py has a defect that is mended on reading, the square that
is missing in the variance, and its river moves against its own features in one case, so that here the next states are
drawn from those that have a feature. UCRL-VTR's clip to [0, H] is taken over, and ours to the support left out.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.agents.optimistic import row_variances
from surefoot.estimate.values import expected_next_value
from surefoot.estimate.weighted import WeightedData, by_edge

STEPS, EPISODES = 12, 40


def swim(states: int, features: Any) -> sf.Problem:
    """A chain in which everything may follow from everything that has a feature; costs play no part."""

    def successors(h: int, s: int, a: int) -> list[int]:
        return [s2 for s2 in range(states) if np.any(features(s, a)[:, s2])]

    return sf.Problem.from_functions(
        horizon=STEPS + 1,
        start=list(range(states)),
        actions=lambda h, s: [0, 1],
        successors=successors,
        reward=lambda h, s, a: 0.005 if (s, a) == (0, 0) else float((s, a) == (states - 1, 1)),
        cost_features=lambda h, s, a, s2: [1.0],
        transition_features=lambda h, s, a, s2: features(s, a)[:, s2].tolist(),
        fallback=lambda h, s: 0,
        limits=[sf.Limit("none", bound=1.0, noise=0.1, norm=1.0)],
        transition_norm=10.0,
        stationary_costs=True,
        stationary_transitions=True,
    )


def loaded(path: Path, old: str = "", new: str = "") -> Any:
    """The module of a file, with some of its text mended."""
    text = path.read_text(encoding="utf-8")
    assert old in text, "another version of the file"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(text.replace(old, new), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def moments(folder: Path, seed: int) -> float:
    """The largest difference of any entry of the statistics of HF-UCRL-VTR+, relative to the largest entry."""
    theirs = loaded(folder / "env.py", "variance = var_1 - var_2\n", "variance = var_1 - var_2**2\n")
    rng = np.random.default_rng(seed)
    options = {"S": 6, "state_space": range(6), "init_state": 0, "action_space": [0, 1], "H": STEPS, "dim": 3}
    options |= {"M": 5, "lam": 1.0, "beta": 0.3, "sigmamin": 0.05, "gamma": 0.7}
    river, learner = theirs.RiverSwim(options), theirs.WVTR(options)
    problem = swim(6, river.phi)
    now, before = ([WeightedData(problem, 1.0) for _ in range(5)] for _ in range(2))
    for _ in range(EPISODES):
        s = 0
        learner.update_v(lambda s, a: river.reward(s, a) / STEPS, river.phi)
        for then, data in zip(before, now, strict=True):
            for mine, own in zip(then.arrays("").values(), data.arrays("").values(), strict=True):
                mine[...] = own
        for h in range(STEPS):
            a = int(rng.integers(2))
            following = int(rng.choice(np.flatnonzero(river.phi(s, a).any(axis=0))))
            learner.update(s, a, following, h, river.phi)
            layer = problem.graph.layers[h]
            value = learner.v_func[:, h]
            powers = [by_edge(layer, value ** (2**m)) for m in range(5)]
            edge = problem.edge_index(h, s, a, following)
            rows = [data.row(h, layer, edge, f) for data, f in zip(now, powers, strict=True)]
            seen = [data.row(h, layer, edge, f) for data, f in zip(before, powers, strict=True)]
            squares = row_variances(seen, rows, 0.3, a=0.05, g=0.7)
            for data, row, square in zip(now, rows, squares, strict=True):
                data.count(row, float(np.sqrt(square)))
            s = following
        learner.update_hat()
    worst = 0.0
    for m, data in enumerate(now):
        data.bank.refresh()
        (known, *_) = data.ellipsoids([0.0] * STEPS, 1.0)
        theta = learner.hat_theta_list[m][:, 0]
        worst = max(worst, float(np.abs(known.centre - known.basis.turn(theta)).max() / np.abs(theta).max()))
    return worst


def value_targeted(folder: Path, seed: int) -> float:
    """The largest difference of any Q, relative to the number of steps."""
    stub = types.ModuleType("environments")
    stub.make_riverSwim = stub.deep_sea = stub.TabularMDP = None  # type: ignore[attr-defined]
    sys.modules["environments"] = stub
    theirs = loaded(folder / "agent.py")
    states, rng = 4, np.random.default_rng(seed)
    rewards = {(s, a): (0.005 if (s, a) == (0, 0) else float((s, a) == (3, 1)), 0) for s in range(4) for a in range(2)}
    world = types.SimpleNamespace(nState=states, nAction=2, epLen=STEPS, states=dict.fromkeys(range(states)), R=rewards)
    learner = theirs.UCRL_VTR(world, EPISODES, False, 0)

    def features(s: int, a: int) -> Any:
        table = np.zeros((learner.d, states))
        for s2 in range(states):
            table[learner.sigma[s, a, s2], s2] = 1.0
        return table

    problem = swim(states, features)
    data, worst = WeightedData(problem, 1.0), 0.0
    chances = rng.dirichlet(np.ones(states), (states, 2))
    for k in range(1, EPISODES + 1):
        s = int(rng.integers(states))
        for h in range(STEPS):
            a = int(rng.integers(2))
            following = int(rng.choice(states, p=chances[s, a]))
            layer = problem.graph.layers[h]
            value = np.array([learner.V[h + 1, s2] for s2 in range(states)])
            data.count(data.row(h, layer, problem.edge_index(h, s, a, following), by_edge(layer, value)))
            learner.update_stat(s, a, following, h)
            s = following
        learner.update_param()
        learner.update_Qend(k)
        data.bank.refresh()
        known = data.ellipsoids([float(learner.Beta(k))] * STEPS, 1.0, clip=False)
        value = np.zeros(states)
        for h in reversed(range(STEPS)):
            layer = problem.graph.layers[h]
            q = np.clip(layer.reward + expected_next_value(layer, value, known[h]), 0.0, STEPS).reshape(states, 2)
            published = np.array([[learner.Q[h, s, a] for a in range(2)] for s in range(states)])
            worst = max(worst, float(np.abs(q - published).max()) / STEPS)
            value = q.max(axis=1)
    return worst


if __name__ == "__main__":
    place = Path(sys.argv[1])
    for chosen in range(3):
        print(f"seed {chosen}: moments {moments(place, chosen):.1e}, Q of UCRL-VTR {value_targeted(place, chosen):.1e}")
