"""The policy that a run ends with, as ``policy.json``: for people and controllers, readable without surefoot.

::

    {"format": "surefoot-policy", "version": 1, "problem": digest, "world": digest, "agent": "lsvi-new",
     "seed": 0, "episodes": 20000, "plan": 308,              number of the last plan; null for an agent without plans
     "guaranteed": true, "promise": "every step safe with probability ≥ 0.95", "start": null, "states": "all",
     "limits": [{"name": "temperature", "bound": 0.6}],
     "layers": [[{"state": …, "action": …, "value": 3.48, "margin": [0.02], "certified": true, "fallback": false}, …],
                …]}

The same kind of document that a study exports. ``value``: optimistic, from here on. ``margin``: per limit, bound −
upper bound, the least over the action's successors; null where nothing is proved (the fallback's action may be safe by
assumption alone). ``certified``: proved safe, with all
that may follow. ``fallback``: the fallback's own action. ``start``: the start state that the policy is for, null when
it is for all. States without an action are left out; in a problem with more than ``MOST_STATES`` also those that the
policy never reaches (``"states": "reached"``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.agents.agent import Agent
from surefoot.model.graph import NO_ACTION, BoolArray, IntArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import margins
from surefoot.plan.plan import Plan
from surefoot.runs.run import Run

FORMAT, VERSION = "surefoot-policy", 1
MOST_STATES = 100_000  #: of all decision layers


def save(agent: Agent, run: Run, path: Path) -> None:
    """Write the agent's last policy; the same run gives the same bytes."""
    problem = agent.problem
    agent.foresee(int(problem.graph.starts[0]))
    plan = agent.plan
    chosen = agent.policy() if plan is None else plan.values.action
    everywhere = sum(layer.n_states for layer in problem.graph.layers) <= MOST_STATES
    head = {
        "format": FORMAT,
        "version": VERSION,
        **{name: run.manifest[name] for name in ("problem", "world", "agent", "seed")},
        "episodes": run.episodes,
        "plan": None if plan is None else plan.number,
        "guaranteed": run.guaranteed,
        "promise": run.promise,
        "start": problem.starts[0] if agent.plans_by_start and len(problem.starts) > 1 else None,
        "states": "all" if everywhere else "reached",
        "limits": run.manifest["limits"],
    }
    shown = None if everywhere else reached(problem, chosen)
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, indent=2, ensure_ascii=False)[:-2] + ',\n  "layers": [')
        for h, row in enumerate(chosen):
            file.write(",\n    [" if h else "\n    [")
            entries = _entries(problem, plan, h, row if shown is None else np.where(shown[h], row, NO_ACTION))
            for i, entry in enumerate(entries):
                file.write((",\n      " if i else "\n      ") + json.dumps(entry, ensure_ascii=False))
            file.write("\n    ]")
        file.write("\n  ]\n}\n")


def reached(problem: Problem, chosen: tuple[IntArray, ...]) -> list[BoolArray]:
    """Per decision layer (S,): where the policy can come from the starts, by the declared successors."""
    graph = problem.graph
    masks = [np.zeros(graph.n_states(0), bool)]
    masks[0][graph.starts] = True
    for h, layer in enumerate(graph.layers[:-1]):
        played = np.zeros(layer.n_pairs, bool)
        played[chosen[h][masks[h] & (chosen[h] != NO_ACTION)]] = True
        masks.append(np.zeros(graph.n_states(h + 1), bool))
        masks[-1][layer.successor[np.repeat(played, np.diff(layer.pair_ptr))]] = True
    return masks


def _entries(problem: Problem, plan: Plan | None, h: int, row: IntArray) -> Iterator[dict[str, Any]]:
    layer, naming = problem.graph.layers[h], problem.naming
    worst = None if plan is None else np.maximum.reduceat(plan.bounds.upper[h], layer.pair_ptr[:-1], axis=0)
    for state in np.flatnonzero(row != NO_ACTION).tolist():
        pair = int(row[state])
        fallback = pair == int(layer.fallback[state])
        certified = fallback if plan is None else bool(plan.certified_sets.pairs[h][pair])
        yield {
            "state": naming.states[h][state],
            "action": naming.action(layer, h, pair),
            "value": None if plan is None else float(plan.values.value[h][state]),
            "margin": None if worst is None else margins(worst[pair], problem.limits, certified),
            "certified": certified,
            "fallback": fallback,
        }
