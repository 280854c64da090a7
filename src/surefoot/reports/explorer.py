"""What the explorer shows: the graph, the truth, and some plans of one run, as arrays that a page can hold.

All steps are concatenated, so states, pairs and edges have one number each; ``state_ptr`` and ``pair_ptr`` cut them as
in :mod:`surefoot.model.graph`. Numbers are base64 of little-endian arrays. Many triplets have the same bounds, so each
distinct row is stored once, and ``row`` says which one an edge has. The reasons why a pair is certified or not come
from :mod:`surefoot.plan.why`, so that page and plan agree.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from surefoot.estimate.costs import CostBounds
from surefoot.model.arrays import FloatArray, IntArray, pointer_of
from surefoot.model.features import Features
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL
from surefoot.plan.certify import Certified
from surefoot.plan.plan import Plan
from surefoot.plan.purpose import NOT_EXPLORING
from surefoot.plan.why import reasons
from surefoot.reports.classes import CLASS_NAMES, NAMES_WITHOUT_TRUTH, truly_safe
from surefoot.reports.html import filled
from surefoot.reports.wording import Placing, Wording, label_text, placing_of, with_words, wording_of
from surefoot.runs.plans_kept import Snapshot, snapshot_of
from surefoot.worlds.world import World

BUDGET = 1_300_000  #: characters, of all plans together
FEATURES = 600_000  #: characters, of the named features
NO_FEATURES = 2**32 - 1  #: of features
NOT_PLAYED = 65535  #: no action is played
NO_PURPOSE = 255  #: but reward; there are fewer texts


@dataclass(frozen=True, eq=False)
class Scene:
    """What is shown beside the plans: the truth of a world, or as much of it as a plan knows."""

    problem: Problem
    costs: tuple[FloatArray, ...]  # not known: NaN
    probabilities: tuple[FloatArray, ...]
    terminal_costs: FloatArray | None
    safe: Certified  # what is truly safe; without a truth, what is not proved unsafe
    wording: Wording
    placing: Placing
    truth: bool


def explorer_of_plan(plan: Plan, first_episode: int, wording: Wording) -> dict[str, Any]:
    """For a plan whose world nobody knows: certified, not yet certified, proved unsafe."""
    problem, last = plan.problem, plan.bounds.terminal_upper
    scene = Scene(
        problem=problem,
        costs=tuple(np.full_like(table, np.nan) for table in plan.bounds.upper),
        probabilities=tuple(np.full(layer.n_edges, np.nan) for layer in problem.graph.layers),
        terminal_costs=None if last is None else np.full_like(last, np.nan),
        safe=plan.hope.hopeful,
        wording=wording,
        placing=placing_of(problem, None),
        truth=False,
    )
    return _explorer(scene, [snapshot_of(plan, first_episode)])


def explorer(world: World, snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """For the plans that were kept of a run. With rays, whose costs and probabilities every plan has at its own
    intensities, only the last plan."""
    if snapshots and snapshots[-1].intensity is not None:
        world, snapshots = world.at(snapshots[-1].intensity), snapshots[-1:]
    states, pairs = truly_safe(world)
    scene = Scene(
        problem=world.problem,
        costs=world.costs,
        probabilities=world.probabilities,
        terminal_costs=world.terminal_costs,
        safe=Certified(tuple(pairs), tuple(states)),
        wording=wording_of(world.problem, world.name),
        placing=placing_of(world.problem, world.name),
        truth=True,
    )
    return _explorer(scene, snapshots)


def _explorer(scene: Scene, snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """JSON-able. If the plans would not all fit, some are left out, but never the first and the last."""
    shown, (distinct, row) = _fitting(scene, snapshots)
    problem, graph = scene.problem, scene.problem.graph
    unsafe = [~true for true in scene.safe.pairs]
    wrong = [(mine & it).any() for plan in shown for mine, it in zip(plan.certified_pairs, unsafe, strict=True)]
    return {
        "limits": [limit.told() for limit in problem.limits],
        **_graph(scene, snapshots[-1].intensity if snapshots else None),
        "features": _features(problem),
        "row": _pack(row, "<u4"),
        "cost": _pack(_by_edge(problem, scene.costs)[distinct], "<f4"),
        "last_cost": None if scene.terminal_costs is None else _pack(scene.terminal_costs, "<f4"),
        "view": _view(scene.placing),
        "plans": [_plan(problem, snapshot, distinct) for snapshot in shown],
        "truth": scene.truth,
        "left_out": len(snapshots) - len(shown),
        "wrong": bool(any(wrong)),  # some action is allowed that is truly unsafe
        "any_forbidden": any(bool(graph.forbidden(h).any()) for h in range(graph.horizon)),
    }


def thinned(count: int, most: int) -> list[int]:
    """At most ``most`` of ``count`` things, evenly spread, with the first and the last."""
    return sorted(set(np.linspace(0, count - 1, min(count, max(2, most))).round().astype(int).tolist()))


def _fitting(scene: Scene, snapshots: Sequence[Snapshot]) -> tuple[list[Snapshot], tuple[IntArray, IntArray]]:
    most, pairs = len(snapshots), sum(layer.n_pairs for layer in scene.problem.graph.layers)
    while True:
        shown = [snapshots[i] for i in thinned(len(snapshots), most)]
        table = _rows(scene, shown)
        characters = 4 / 3 * len(shown) * (8 * len(table[0]) * len(scene.problem.limits) + 4 * pairs)
        if characters <= BUDGET or most <= 2:
            return shown, table
        most = max(2, int(most * min(0.9, BUDGET / characters)))


def _rows(scene: Scene, shown: Sequence[Snapshot]) -> tuple[IntArray, IntArray]:
    """One edge for each distinct row of bounds and true costs, and the row of every edge."""
    tables = [scene.costs, *(table for plan in shown for table in (plan.lower, plan.upper))]
    everything = np.ascontiguousarray(np.hstack([_by_edge(scene.problem, each) for each in tables]).astype("<f4"))
    keys = everything.view([("", "V", everything.shape[1] * 4)]).reshape(-1)
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    return first, row.reshape(-1)


def _by_edge(problem: Problem, tables: Sequence[FloatArray]) -> FloatArray:
    """(ΣE, m) numbers of cost rows, for every edge: of its own row, or the largest of its pair's (spec 9)."""
    layers = zip(problem.graph.layers, tables, strict=True)
    return np.concatenate([layer.worst_of_edges(table) for layer, table in layers])


def _graph(scene: Scene, intensities: Sequence[FloatArray] | None) -> dict[str, Any]:
    graph = scene.problem.graph
    begins = pointer_of(np.array([graph.n_states(h) for h in range(graph.horizon)]))
    states, state, actions, action = _names(scene, intensities)
    successor = np.concatenate([layer.successor + begins[h + 1] for h, layer in enumerate(graph.layers)])
    fallbacks = np.concatenate([layer.played_by_fallback() for layer in graph.layers])
    return {
        "layers": begins.tolist(),
        "state_ptr": _pack(_joined([layer.state_ptr for layer in graph.layers]), "<u4"),
        "pair_ptr": _pack(_joined([layer.pair_ptr for layer in graph.layers]), "<u4"),
        "successor": _pack(successor, "<u4"),
        "probability": _pack(np.concatenate(scene.probabilities), "<f4"),
        "reward": _pack(np.concatenate([layer.reward for layer in graph.layers]), "<f4"),
        "states": list(states),
        "state_words": list(states.values()),
        "state": _pack(np.array(state), "<u4"),
        "actions": actions,
        "action": _pack(np.array(action), "<u4"),
        "safe_pairs": _pack(np.concatenate(scene.safe.pairs), "<u1"),
        "safe_states": _pack(np.concatenate(scene.safe.states), "<u1"),
        "fallbacks": _pack(fallbacks, "<u1"),
        "forbidden": _pack(np.concatenate([graph.forbidden(h) for h in range(graph.horizon)]), "<u1"),
        "by_pair": [not layer.per_triplet for layer in graph.layers],
        "start": int(graph.starts[0]),
    }


def _names(
    scene: Scene, intensities: Sequence[FloatArray] | None
) -> tuple[dict[str, str], list[int], list[str], list[int]]:
    """Every name once: of states with its words, and per state its number; of actions, and per pair its number."""
    problem, wording = scene.problem, scene.wording
    names, words, actions = dict[str, int](), dict[str, str](), dict[str, int]()
    state, action = [], []
    for column in problem.naming.states:
        for i in range(len(column)):
            text = label_text(column[i])
            state.append(names.setdefault(text, len(names)))
            words.setdefault(text, with_words(column[i], wording.state(column[i])))
    for h, layer in enumerate(problem.graph.layers):
        column = problem.naming.states[h]
        for pair, at in enumerate(layer.pair_state().tolist()):
            label = problem.naming.action(layer, h, pair)
            text = with_words(label, wording.action(h, column[at], label))
            if intensities is not None and intensities[h][pair] < FULL:
                text += f" at {intensities[h][pair]:.3g}"
            action.append(actions.setdefault(text, len(actions)))
    return words, state, list(actions), action


def _features(problem: Problem) -> dict[str, Any] | None:
    """Names, and each distinct cost row once, with its number for every edge and last state; None without names, or if
    it would not fit. NO_FEATURES: a pair with several rows (spec 9), or a last state without a cost."""
    graph = problem.graph
    if problem.features is None:
        return None
    rows: dict[bytes, int] = {}
    found: list[FloatArray] = []

    def number(table: Features, i: int) -> int:
        x = np.asarray(table[i], "<f4")
        if (key := x.tobytes()) not in rows:
            rows[key] = len(found)
            found.append(x)
        return rows[key]

    edges: list[int] = []
    for layer in graph.layers:
        single = np.diff(layer.row_ptr) == 1
        for edge, pair in enumerate(layer.edge_pair().tolist()):
            own = layer.per_triplet or bool(single[pair])
            row = edge if layer.per_triplet else int(layer.row_ptr[pair])
            edges.append(number(layer.cost_features, row) if own else NO_FEATURES)
    last = graph.terminal
    ends = [
        number(last.cost_features, s) if last.cost_features is not None and last.has_cost[s] else NO_FEATURES
        for s in range(last.n_states)
    ]
    if 16 / 3 * (len(edges) + len(found) * graph.cost_dim) > FEATURES:
        return None
    return {
        "names": list(problem.features),
        "rows": _pack(np.array(found), "<f4"),
        "row": _pack(np.array(edges), "<u4"),
        "last_row": _pack(np.array(ends), "<u4"),
        "used": [((prior.width > 0) | (prior.centre != 0)).tolist() for prior in problem.priors],
    }


def _joined(pointers: Sequence[IntArray]) -> IntArray:
    """The pointers of several steps as one."""
    return pointer_of(np.concatenate([np.diff(pointer) for pointer in pointers]))


def known_of(snapshot: Snapshot) -> tuple[CostBounds, Certified]:
    """The plan's bounds and certified sets, as the plan itself held them."""
    bounds = CostBounds(
        snapshot.upper, snapshot.lower, snapshot.terminal_upper, snapshot.terminal_lower, snapshot.consistent
    )
    return bounds, Certified(snapshot.certified_pairs, snapshot.certified_states)


def _plan(problem: Problem, snapshot: Snapshot, distinct: IntArray) -> dict[str, Any]:
    found = reasons(problem, *known_of(snapshot))
    layers = list(enumerate(problem.graph.layers))
    edges = [found.edges[h] - layer.pair_ptr[:-1] for h, layer in layers]
    nearest = [found.nearest[h] - layer.state_ptr[:-1] for h, layer in layers]
    played = [
        np.where(a == NO_ACTION, NOT_PLAYED, a - layer.state_ptr[:-1])
        for a, (_, layer) in zip(snapshot.action, layers, strict=True)
    ]
    ends = {
        name: None if table is None else _pack(table, "<f4")
        for name, table in (("last_upper", snapshot.terminal_upper), ("last_lower", snapshot.terminal_lower))
    }
    purpose = np.concatenate(snapshot.purpose)
    return {
        "number": snapshot.number,
        "episode": snapshot.first_episode + 1,
        "consistent": snapshot.consistent,
        "pairs": _pack(np.concatenate(snapshot.certified_pairs), "<u1"),
        "states": _pack(np.concatenate(snapshot.certified_states), "<u1"),
        "upper": _pack(_by_edge(problem, snapshot.upper)[distinct], "<f4"),
        "lower": _pack(_by_edge(problem, snapshot.lower)[distinct], "<f4"),
        "kind": _pack(np.concatenate(found.kinds), "<u1"),
        "edge": _pack(np.concatenate(edges), "<u2"),
        "limit": _pack(np.concatenate(found.limits), "<u1"),
        "nearest": _pack(np.concatenate(nearest), "<u2"),
        "last_limit": _pack(found.last_limits, "<u1"),
        "played": _pack(np.concatenate(played), "<u2"),
        "purpose": _pack(np.where(purpose == NOT_EXPLORING, NO_PURPOSE, purpose), "<u1"),
        "purposes": list(snapshot.purposes),
        "hope": snapshot.hope,
        **ends,
    }


def _view(layout: Placing) -> dict[str, Any]:
    x, y, panel = (np.array(part, np.float64) for part in zip(*layout.places, strict=True))
    return {
        "kind": "map" if layout.is_map else "layers",
        "x": _pack(x - x.min(), "<f4"),
        "y": _pack(y - y.min(), "<f4"),
        "panel": _pack(panel, "<u1"),
        "panels": list(layout.panels),
        "x_label": layout.x_label,
        "y_label": layout.y_label,
    }


def _pack(array: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(np.asarray(array), dtype=kind).tobytes()).decode("ascii")


# --- on a page --------------------------------------------------------------------------------------------


def explorer_html(data: Any, note: str) -> str:
    """The explorer without its data: controls, legend, and room for the picture and the reasons."""
    view = data["view"]
    maps = view["kind"] == "map"
    left = f" {data['left_out']} more plans were kept than fit into the page." if data["left_out"] else ""
    last = "" if maps or data["last_cost"] else "The last step ends the episode and has no limits. "
    axes = f"Across: {view['x_label']}. Down: {view['y_label']}. " if maps else ""
    names = CLASS_NAMES if data["truth"] else NAMES_WITHOUT_TRUTH
    parts = {
        **{f"name{int(kind)}": escape(name) for kind, name in names.items()},
        "one": "hidden" if len(data["plans"]) == 1 else "",
        "columns": "" if maps else ", in columns by step",
        "maps": "" if maps else "hidden",
        "way": "" if len(view["panels"]) == 1 and data["truth"] else "hidden",
        "wrong": "" if data["wrong"] else "hidden",
        "forbidden": "" if data["any_forbidden"] else "hidden",
        "note": f"{escape(axes)}{last}{escape(note)}{left}",
    }
    return filled("explorer.html", parts)
