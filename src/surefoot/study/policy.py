"""The certified greedy policy as a file that needs no surefoot: ``.json`` for any language, ``.py`` for Python.

For every state with a certified action: the action, its optimistic value, its margin to each limit (bound − upper
bound, the least over its successors; null where nothing is proved), and what its safety rests on. States without one
are left out; asking for one of them is an error, never a guess. In safe mode only the fallback's actions are written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput, UnwritableFile
from surefoot.model.graph import NO_ACTION
from surefoot.model.labels import Label
from surefoot.plan.certify import margins
from surefoot.storage.disk import FileLayer
from surefoot.study.records import label_of
from surefoot.study.standing import Standing

FORMAT = "surefoot-policy"
VERSION = 1


def export(standing: Standing, path: Path, start: Label) -> Path:
    """Write the policy in the format of the path's suffix, whole or not at all; returns the path."""
    writers = {".json": _as_json, ".py": _as_python}
    if path.suffix.lower() not in writers:
        raise InvalidInput("a policy's file ends in .json or .py", got=repr(path.name))
    text = writers[path.suffix.lower()](document(standing, start))
    try:
        FileLayer().replace(path.resolve(), text.encode("utf-8"))
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle; ValueError: not a path
        raise UnwritableFile("the policy could not be written", where=str(path), got=str(error)) from error
    return path


def document(standing: Standing, start: Label = None) -> dict[str, Any]:
    """All that is exported, as plain JSON (labels may be tuples)."""
    agent, problem = standing.agent, standing.problem
    if agent.plans_by_start and start is None and len(problem.graph.starts) > 1:
        raise InvalidInput("this policy depends on the start state", fix="Name it: export_policy(path, start=…).")
    before = standing.problem.graph.starts[0] if standing.place is None else None
    if start is not None and before is not None:
        agent.foresee(problem.state_index(0, label_of(start)))
    try:
        return {
            "format": FORMAT,
            "version": VERSION,
            "problem": problem.digest,
            "records": standing.applied,
            "epoch": standing.epoch,
            "plan": agent.plan.number,
            "promise": standing.promise,
            "failure_probability": standing.failure_probability,
            "safe_mode": standing.safe_mode,
            "start": start,
            "limits": [{"name": limit.name, "bound": limit.bound} for limit in problem.limits],
            "layers": [_layer(standing, h) for h in range(problem.horizon - 1)],
        }
    finally:
        if start is not None and before is not None:
            agent.foresee(int(before))


def _layer(standing: Standing, h: int) -> list[dict[str, Any]]:
    problem, plan = standing.problem, standing.agent.plan
    layer = problem.graph.layers[h]
    chosen = layer.fallback if standing.safe_mode else plan.values.action[h]
    worst = np.maximum.reduceat(plan.bounds.upper[h], layer.pair_ptr[:-1], axis=0)  # (N, m)
    entries = []
    for state in np.flatnonzero(chosen != NO_ACTION).tolist():
        pair = int(chosen[state])
        certified = bool(plan.certified_sets.pairs[h][pair])
        entries.append(
            {
                "state": problem.naming.states[h][state],
                "action": problem.naming.action(layer, h, pair),
                "value": float(plan.values.value[h][state]),
                "margin": margins(worst[pair], problem.limits, certified),
                "certified": certified,
                "fallback": pair == int(layer.fallback[state]),
            }
        )
    return entries


def _as_json(policy: dict[str, Any]) -> str:
    head = {key: value for key, value in policy.items() if key != "layers"}
    lines = json.dumps(head, indent=2, ensure_ascii=True)[:-2]
    layers = ",\n".join(
        "    [\n" + ",\n".join(f"      {json.dumps(entry)}" for entry in layer) + "\n    ]"
        for layer in policy["layers"]
    )
    return f'{lines},\n  "layers": [\n{layers}\n  ]\n}}\n'


_MODULE = '''"""A certified policy, exported by surefoot. It needs nothing but Python.

{about}
"""

PROBLEM = {problem!r}
PLAN = {plan!r}

_ACTIONS = (
{layers}
)


def action(layer, state):
    """The action to take in a state of a layer; KeyError where nothing is certified."""
    if type(layer) is not int or not 0 <= layer < len(_ACTIONS):
        raise KeyError(layer)
    return _ACTIONS[layer][state]
'''


def _as_python(policy: dict[str, Any]) -> str:
    layers = []
    for layer in policy["layers"]:
        rows = "".join(f"        {entry['state']!a}: {entry['action']!a},\n" for entry in layer)
        layers.append(f"    {{\n{rows}    }},")
    about = (
        f"Promised: {policy['promise']}.\n"
        f"Epoch {policy['epoch']}, plan {policy['plan']}, after {policy['records']} records of the study."
    )
    plan = {"epoch": policy["epoch"], "plan": policy["plan"], "safe_mode": policy["safe_mode"]}
    return _MODULE.format(about=about, problem=policy["problem"], plan=plan, layers="\n".join(layers))
