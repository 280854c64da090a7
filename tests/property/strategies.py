"""Hypothesis strategies for problems that are valid by construction, and a view of a problem without any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import numpy as np
from hypothesis import strategies as st

from surefoot.model.limit import Limit
from surefoot.model.problem import Problem

# No two of them compare equal, so that any choice of them is a valid set of names.
LABELS: list[Any] = ["a", "b", "", "é", 0, 7, -3, 2.5, True, None, (), (1, "x"), (1, ("y", None)), ((2,),)]

Pair = tuple[int, Any, Any]
Triplet = tuple[int, Any, Any, Any]


@dataclass(frozen=True)
class Declared:
    """A problem as tables of every layer, states that nothing can reach among them."""

    states: list[list[Any]]  # H layers
    starts: list[Any]
    actions: dict[tuple[int, Any], list[Any]]
    successors: dict[Pair, list[Any]]
    reward: dict[Pair, float]
    x: dict[Triplet, list[float]]
    phi: dict[Triplet, list[float]] | None
    terminal_reward: dict[Any, float]
    terminal_x: dict[Any, list[float] | None]
    fallback: dict[tuple[int, Any], Any]
    anchors: list[tuple[list[float], list[float]] | None]
    limits: list[Limit]

    @property
    def horizon(self) -> int:
        return len(self.states)

    def functions(self) -> Problem:
        phi = self.phi
        return Problem.from_functions(
            horizon=self.horizon,
            start=self.starts,
            actions=lambda h, s: self.actions[h, s],
            successors=lambda h, s, a: self.successors[h, s, a],
            reward=lambda h, s, a: self.reward[h, s, a],
            cost_features=lambda h, s, a, s2: self.x[h, s, a, s2],
            transition_features=None if phi is None else lambda h, s, a, s2: phi[h, s, a, s2],
            terminal_reward=self.terminal_reward.__getitem__,
            terminal_cost_features=self.terminal_x.__getitem__,
            fallback=lambda h, s: self.fallback[h, s],
            anchor=self.anchors.__getitem__,
            limits=self.limits,
        )

    def arrays(self) -> Problem:
        """All states, in the tables' order."""
        layers = [self._layer(h) for h in range(self.horizon - 1)]
        rows = [self.terminal_x[s] for s in self.states[-1]]
        dc = len(layers[0]["cost_features"][0])
        last = np.array([row or [0.0] * dc for row in rows]) if any(rows) else None
        columns: dict[str, Any] = {key: [layer[key] for layer in layers] for key in layers[0]}
        return Problem.from_arrays(
            horizon=self.horizon,
            start=[self.states[0].index(s) for s in self.starts],
            **columns,
            terminal_reward=np.array([self.terminal_reward[s] for s in self.states[-1]]),
            terminal_cost_features=last,
            terminal_has_cost=None if last is None else np.array([row is not None for row in rows]),
            anchor=self.anchors.__getitem__,
            limits=self.limits,
            state_labels=self.states,
        )

    def _layer(self, h: int) -> dict[str, Any]:
        pairs = [(h, s, a) for s in self.states[h] for a in self.actions[h, s]]
        triplets = [(*pair, s2) for pair in pairs for s2 in self.successors[pair]]
        x = np.array([self.x[key] for key in triplets])
        return {
            "state_ptr": np.cumsum([0] + [len(self.actions[h, s]) for s in self.states[h]]),
            "pair_ptr": np.cumsum([0] + [len(self.successors[pair]) for pair in pairs]),
            "successors": np.array([self.states[h + 1].index(key[3]) for key in triplets], np.int32),
            "reward": np.array([self.reward[pair] for pair in pairs]),
            "cost_features": x,
            "transition_features": x if self.phi is None else np.array([self.phi[key] for key in triplets]),
            "fallback": np.array([self.actions[h, s].index(self.fallback[h, s]) for s in self.states[h]]),
            "action_labels": [a for _, _, a in pairs],
        }

    def reach(self, choose: Callable[[int, Any], list[Any]] | None = None) -> set[tuple[int, Any]]:
        """Every (layer, state) that the actions chosen, all of them by default, can lead to."""
        found, here = set[tuple[int, Any]](), set(self.starts)
        for h in range(self.horizon):
            found |= {(h, s) for s in here}
            if h < self.horizon - 1:
                played = [(h, s, a) for s in here for a in (choose or self._all)(h, s)]
                here = {s2 for pair in played for s2 in self.successors[pair]}
        return found

    def fallback_reach(self) -> set[tuple[int, Any]]:
        return self.reach(lambda h, s: [self.fallback[h, s]])

    def _all(self, h: int, s: Any) -> list[Any]:
        return self.actions[h, s]

    def reordered(self, order: Callable[[list[Any]], list[Any]]) -> Declared:
        """The same declaration with starts, actions and successors listed in another order."""
        return replace(
            self,
            starts=order(self.starts),
            actions={key: order(row) for key, row in self.actions.items()},
            successors={key: order(row) for key, row in self.successors.items()},
        )


def _some(labels: list[Any], least: int = 1, most: int = 3) -> st.SearchStrategy[list[Any]]:
    """A few of the labels, each once, in any order."""
    index = st.integers(0, len(labels) - 1)
    chosen = st.lists(index, min_size=least, max_size=min(most, len(labels)), unique=True)
    return chosen.map(lambda indices: [labels[i] for i in indices])


@st.composite
def declarations(draw: st.DrawFn) -> Declared:
    """Up to four layers of up to four states; every rule of a problem holds by construction."""
    horizon, dc, dp, m = (draw(st.integers(*ends)) for ends in ((2, 4), (1, 3), (1, 3), (1, 2)))
    states = [draw(_some(LABELS, most=4)) for _ in range(horizon)]
    actions = {(h, s): draw(_some(LABELS)) for h in range(horizon - 1) for s in states[h]}
    pairs = [(h, s, a) for (h, s), row in actions.items() for a in row]
    successors = {pair: draw(_some(states[pair[0] + 1])) for pair in pairs}
    triplets = [(*pair, s2) for pair in pairs for s2 in successors[pair]]
    # Numbers are taken in turn from short lists: drawing each would take most of the time.
    rewards = cycle(draw(st.lists(st.floats(0, 1), min_size=7, max_size=7)))
    sizes = st.floats(-8, 8).map(lambda size: size if abs(size) > 1e-100 else 0.0)  # those that can be squared
    entries = cycle(draw(st.lists(sizes, min_size=13, max_size=13)))
    shared, costed = draw(st.booleans()), draw(st.sets(st.integers(0, 3)))

    def vector(length: int) -> list[float]:
        return list(islice(entries, length))

    # Below the bound, and possible under the norm.
    anchor = st.none() | st.floats(-0.5, 0.5).map(lambda c: ([1.0] + [0.0] * (dc - 1), [c] * m))
    return Declared(
        states=states,
        starts=draw(_some(states[0])),
        actions=actions,
        successors=successors,
        reward={pair: next(rewards) for pair in pairs},
        x={key: vector(dc) for key in triplets},
        phi=None if shared else {key: vector(dp) for key in triplets},
        terminal_reward={s: next(rewards) for s in states[-1]},
        terminal_x={s: vector(dc) if i in costed else None for i, s in enumerate(states[-1])},
        fallback={(h, s): draw(st.sampled_from(row)) for (h, s), row in actions.items()},
        anchors=[draw(anchor) for _ in range(horizon)],
        limits=[Limit(f"limit {j}", bound=1.0, noise=0.1, norm=1.0) for j in range(m)],
    )


def by_label(problem: Problem) -> dict[Any, Any]:
    """All that a problem says, by name and in no order: equal for the same problem however it is numbered."""
    graph, said = problem.graph, dict[Any, Any]()
    said["starts"] = frozenset(problem.starts)
    for h, layer in enumerate(graph.layers):
        for s in list(problem.states(h)):
            said["actions", h, s] = frozenset(problem.actions(h, s))
            fallback = int(layer.fallback[problem.state_index(h, s)])
            said["fallback", h, s] = None if fallback < 0 else problem.naming.at_pair(layer, h, fallback)
            for a in problem.actions(h, s):
                said["reward", h, s, a] = float(layer.reward[problem.pair_index(h, s, a)])
                said["successors", h, s, a] = frozenset(problem.successors(h, s, a))
                for s2 in problem.successors(h, s, a):
                    edge = problem.edge_index(h, s, a, s2)
                    said["features", h, s, a, s2] = (
                        layer.cost_features[edge].tolist(),
                        layer.transition_features[edge].tolist(),
                    )
    last = graph.terminal
    for i, s in enumerate(list(problem.states(problem.horizon - 1))):
        x = None if last.cost_features is None or not last.has_cost[i] else last.cost_features[i].tolist()
        said["terminal", s] = (float(last.reward[i]), x, bool(last.has_cost[i]), bool(last.fallback_reached[i]))
    for h, anchor in enumerate(graph.anchors):
        said["anchor", h] = None if anchor is None else [part.tolist() for part in anchor.parts]
    said["rest"] = (problem.limits, problem.transition_norm, problem.stationary_costs, problem.stationary_transitions)
    return said
