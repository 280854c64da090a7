"""The value-targeted learners beside published code; benchmarks/published_code.py says which, and runs this."""

from __future__ import annotations

import importlib
import sys
import tempfile
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.agents.optimistic import row_variances
from surefoot.estimate.values import expected_next_value
from surefoot.estimate.weighted import WeightedData, by_edge

STEPS, EPISODES = 12, 40


def swim(states: int, features: Any, steps: int = STEPS, reward: Any = None, start: Any = None) -> sf.Problem:
    """A chain in which everything may follow from everything that has a feature; costs play no part."""

    def successors(h: int, s: int, a: int) -> list[int]:
        return [s2 for s2 in range(states) if np.any(features(s, a)[:, s2])]

    def of_the_river(s: int, a: int) -> float:
        return 0.005 if (s, a) == (0, 0) else float((s, a) == (states - 1, 1))

    pays = of_the_river if reward is None else reward
    return sf.Problem.from_functions(
        horizon=steps + 1,
        start=list(range(states)) if start is None else start,
        actions=lambda h, s: [0, 1],
        successors=successors,
        reward=lambda h, s, a: pays(s, a),
        cost_features=lambda h, s, a, s2: [1.0],
        transition_features=lambda h, s, a, s2: features(s, a)[:, s2].tolist(),
        fallback=lambda h, s: 0,
        limits=[sf.Limit("none", bound=1.0, noise=0.1, norm=1.0)],
        transition_norm=10.0,
        stationary_costs=True,
        stationary_transitions=True,
    )


def loaded(folder: Path, name: str, *mends: tuple[str, str]) -> Any:
    """A module among the files of a folder, with some of their text mended."""
    texts = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert all(any(old in text for text in texts.values()) for old, _ in mends), "another version of the files"
    with tempfile.TemporaryDirectory() as copy:
        for path, text in texts.items():
            for old, new in mends:
                text = text.replace(old, new)
            (Path(copy) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(copy) / path).write_text(text, encoding="utf-8")
        sys.path.insert(0, copy)
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(copy)
            for key, module in list(sys.modules.items()):  # their names are everybody's
                if str(getattr(module, "__file__", None)).startswith(copy):
                    del sys.modules[key]


def moments(folder: Path, seed: int) -> str:
    """The estimates of HF-UCRL-VTR+. A square that is missing in the variance is put in; its river moves against its
    own features in one case, so that here the next states are drawn from those that have a feature."""
    theirs = loaded(folder, "env", ("variance = var_1 - var_2\n", "variance = var_1 - var_2**2\n"))
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
        (known, *_) = data.around([0.0] * STEPS, 1.0)
        theta = learner.hat_theta_list[m][:, 0]
        worst = max(worst, float(np.abs(known.centre - known.basis.turn(theta)).max() / np.abs(theta).max()))
    return f"estimates differ by {worst:.1e} of the largest"


def value_targeted(folder: Path, seed: int) -> str:
    """Every Q of UCRL-VTR with its author's radius; his clip to [0, H] is taken over, and ours to the support left
    out."""
    stub = types.ModuleType("environments")
    stub.make_riverSwim = stub.deep_sea = stub.TabularMDP = None  # type: ignore[attr-defined]
    sys.modules["environments"] = stub
    theirs = loaded(folder, "agent")
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
        known = [replace(each, clip=False) for each in data.around([float(learner.Beta(k))] * STEPS, 1.0)]
        value = np.zeros(states)
        for h in reversed(range(STEPS)):
            layer = problem.graph.layers[h]
            q = np.clip(layer.reward + expected_next_value(layer, value, known[h]), 0.0, STEPS).reshape(states, 2)
            published = np.array([[learner.Q[h, s, a] for a in range(2)] for s in range(states)])
            worst = max(worst, float(np.abs(q - published).max()) / STEPS)
            value = q.max(axis=1)
    return f"Q differ by {worst:.1e} of the horizon"
