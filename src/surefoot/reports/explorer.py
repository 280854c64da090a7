"""What the explorer shows: the graph, the truth, and some plans of one run, as arrays that a page can hold.

All steps are concatenated, so that states, pairs and edges have one number each; ``state_ptr`` and
``pair_ptr`` cut them as in :mod:`surefoot.model.graph`. Numbers are base64 of little-endian arrays. Bounds are the
same for many triplets (steps that share their data, equal features), so each distinct row is stored once, and ``row``
says which one an edge has. Why a pair is or is not certified comes from :mod:`surefoot.plan.why`, computed here and
not in the page, so that page and plan agree.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.costs import CostBounds
from surefoot.exact import safe_sets
from surefoot.model.graph import NO_ACTION, BoolArray, FloatArray, IntArray
from surefoot.model.labels import Label
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.plan import Plan
from surefoot.plan.purpose import NOT_EXPLORING
from surefoot.plan.why import Reasons, reasons
from surefoot.reports.pictures.order import state_rows
from surefoot.runs.plans_kept import Snapshot, snapshot_of
from surefoot.worlds.world import World

BUDGET = 1_300_000  #: characters, of all plans together
NONE = 65535  #: no action is played
NO_PURPOSE = 255  #: but reward; there are fewer texts


@dataclass(frozen=True, eq=False)
class Scene:
    """Where nobody knows the truth: what a World tells the explorer, as far as a plan can tell it."""

    problem: Problem
    costs: tuple[FloatArray, ...]  # not known: NaN
    probabilities: tuple[FloatArray, ...]
    terminal_costs: FloatArray | None
    safe: Certified  # what is not proved unsafe
    name: str | None = None


def explorer_of_plan(plan: Plan, first_episode: int) -> dict[str, Any]:
    """Of a plan whose world nobody knows: certified, not yet certified, proved unsafe."""
    problem, last = plan.problem, plan.bounds.terminal_upper
    unknown = tuple(np.full_like(table, np.nan) for table in plan.bounds.upper)
    chances = tuple(np.full(layer.n_edges, np.nan) for layer in problem.graph.layers)
    ends = None if last is None else np.full_like(last, np.nan)
    scene = Scene(problem, unknown, chances, ends, plan.hope.hopeful)
    return explorer(scene, [snapshot_of(plan, first_episode)])


def _safe(world: World | Scene) -> tuple[Sequence[BoolArray], Sequence[BoolArray]]:
    """(states, pairs) that are truly safe; without a truth, those that are not proved unsafe."""
    return (world.safe.states, world.safe.pairs) if isinstance(world, Scene) else safe_sets(world)


def explorer(world: World | Scene, snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """JSON-able. Fewer plans than there are, when they would not fit; the first and the last stay."""
    shown, table = _fitting(world, snapshots)
    distinct, row = table
    return {
        "limits": [limit.told() for limit in world.problem.limits],
        **_graph(world),
        "row": _pack(row, "<u4"),
        "cost": _pack(_truth(world, row, len(distinct)), "<f4"),
        "last_cost": None if world.terminal_costs is None else _pack(world.terminal_costs, "<f4"),
        "view": view_of(world),
        "plans": [_plan(world, snapshot, distinct) for snapshot in shown],
        "truth": not isinstance(world, Scene),
        "left_out": len(snapshots) - len(shown),
        "wrong": any(_wrong(world, snapshot) for snapshot in shown),
        "any_forbidden": any(bool(world.problem.graph.forbidden(h).any()) for h in range(world.problem.horizon)),
    }


def _wrong(world: World | Scene, snapshot: Snapshot) -> bool:
    """Some action is allowed that is truly unsafe."""
    safe = _safe(world)[1]
    return any(bool((mine & ~true).any()) for mine, true in zip(snapshot.certified_pairs, safe, strict=True))


def thinned(count: int, most: int) -> list[int]:
    """At most ``most`` of ``count`` things, evenly spread, with the first and the last."""
    return sorted(set(np.linspace(0, count - 1, min(count, max(2, most))).round().astype(int).tolist()))


def _fitting(world: World | Scene, snapshots: Sequence[Snapshot]) -> tuple[list[Snapshot], tuple[IntArray, IntArray]]:
    most, graph = len(snapshots), world.problem.graph
    pairs = sum(layer.n_pairs for layer in graph.layers)
    while True:
        shown = [snapshots[i] for i in thinned(len(snapshots), most)]
        table = _rows(world, shown)
        characters = 4 / 3 * len(shown) * (8 * len(table[0]) * len(world.problem.limits) + 4 * pairs)
        if characters <= BUDGET or most <= 2:
            return shown, table
        most = max(2, int(most * min(0.9, BUDGET / characters)))


def _rows(world: World | Scene, shown: Sequence[Snapshot]) -> tuple[IntArray, IntArray]:
    """An edge for each distinct row of bounds and true costs, and which row every edge has."""
    columns = [
        by_edge(world, world.costs),
        *(by_edge(world, table) for plan in shown for table in (plan.lower, plan.upper)),
    ]
    everything = np.ascontiguousarray(np.hstack(columns).astype("<f4"))
    keys = everything.view([("", "V", everything.shape[1] * 4)]).reshape(-1)
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    return first, row.reshape(-1)


def _truth(world: World | Scene, row: IntArray, n: int) -> NDArray[np.float64]:
    table = np.empty((n, len(world.problem.limits)))
    table[row] = by_edge(world, world.costs)
    return table


def by_edge(world: World | Scene, tables: Sequence[FloatArray]) -> FloatArray:
    """(ΣE, m) numbers of cost rows, for every edge: of its own row, or the largest of its pair's (spec 9)."""
    layers = world.problem.graph.layers
    return np.concatenate([layer.worst_of_edges(table) for layer, table in zip(layers, tables, strict=True)])


def _graph(world: World | Scene) -> dict[str, Any]:
    problem, graph = world.problem, world.problem.graph
    sizes = [graph.n_states(h) for h in range(graph.horizon)]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    safe_states, safe_pairs = _safe(world)
    actions: dict[str, int] = {}
    labels: dict[str, int] = {}
    named = [
        actions.setdefault(label_text(problem.naming.action(layer, h, pair)), len(actions))
        for h, layer in enumerate(graph.layers)
        for pair in range(layer.n_pairs)
    ]
    called = [
        labels.setdefault(label_text(names[i]), len(labels))
        for names in problem.naming.states
        for i in range(len(names))
    ]
    successor = np.concatenate([layer.successor + begins[h + 1] for h, layer in enumerate(graph.layers)])
    fallbacks = np.concatenate([_marked(layer.n_pairs, layer.fallback_pairs()) for layer in graph.layers])
    return {
        "layers": begins.tolist(),
        "state_ptr": _pack(_joined([layer.state_ptr for layer in graph.layers]), "<u4"),
        "pair_ptr": _pack(_joined([layer.pair_ptr for layer in graph.layers]), "<u4"),
        "successor": _pack(successor, "<u4"),
        "probability": _pack(np.concatenate(world.probabilities), "<f4"),
        "reward": _pack(np.concatenate([layer.reward for layer in graph.layers]), "<f4"),
        "states": list(labels),
        "state": _pack(np.array(called), "<u4"),
        "actions": list(actions),
        "action": _pack(np.array(named), "<u4"),
        "safe_pairs": _pack(np.concatenate(safe_pairs), "<u1"),
        "safe_states": _pack(np.concatenate(safe_states), "<u1"),
        "fallbacks": _pack(fallbacks, "<u1"),
        "forbidden": _pack(np.concatenate([graph.forbidden(h) for h in range(graph.horizon)]), "<u1"),
        "by_pair": [not layer.per_triplet for layer in graph.layers],
        "start": int(graph.starts[0]),
    }


def _marked(n: int, which: IntArray) -> NDArray[np.bool_]:
    marks = np.zeros(n, bool)
    marks[which] = True
    return marks


def _joined(pointers: Sequence[IntArray]) -> IntArray:
    """Pointers of several steps as one."""
    lengths = np.concatenate([np.diff(pointer) for pointer in pointers])
    return np.concatenate([[0], np.cumsum(lengths)])


def label_text(label: Label) -> str:
    """A label as the page shows it."""
    return "(" + ", ".join(map(label_text, label)) + ")" if isinstance(label, tuple) else str(label)


def reasons_of(world: World | Scene, snapshot: Snapshot) -> Reasons:
    """Of a plan that was kept."""
    return reasons(world.problem, *known_of(snapshot))


def known_of(snapshot: Snapshot) -> tuple[CostBounds, Certified]:
    """The plan's bounds and certified sets, as the plan itself held them."""
    bounds = CostBounds(
        snapshot.upper, snapshot.lower, snapshot.terminal_upper, snapshot.terminal_lower, snapshot.consistent
    )
    return bounds, Certified(snapshot.certified_pairs, snapshot.certified_states)


def _plan(world: World | Scene, snapshot: Snapshot, distinct: IntArray) -> dict[str, Any]:
    graph, found = world.problem.graph, reasons_of(world, snapshot)
    layers = list(enumerate(graph.layers))
    edges = [found.edges[h] - layer.pair_ptr[:-1] for h, layer in layers]
    nearest = [found.nearest[h] - layer.state_ptr[:-1] for h, layer in layers]
    played = [
        np.where(a == NO_ACTION, NONE, a - layer.state_ptr[:-1])
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
        "upper": _pack(by_edge(world, snapshot.upper)[distinct], "<f4"),
        "lower": _pack(by_edge(world, snapshot.lower)[distinct], "<f4"),
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


def _pack(array: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(np.asarray(array), dtype=kind).tobytes()).decode("ascii")


# --- where states stand ---------------------------------------------------------------------------------


def view_of(world: World | Scene) -> dict[str, Any]:
    """Columns by step; or, for worlds that are places, a map of one step at a time. x, y and panel per state."""
    problem, kind = world.problem, (world.name or "").partition("/")[0]
    labels = [[names[i] for i in range(len(names))] for names in problem.naming.states]
    flat = [label for column in labels for label in column]
    if kind == "rover":
        places = [(column, row, 0) for row, column in flat]
        return _map(places, "column, eastward", "row, southward", [""])
    if kind == "driving":
        leads = sorted({lead for _, _, lead in flat})
        top = max(own for _, own, _ in flat)
        places = [(gap // 10, (top - own) // 5, leads.index(lead)) for gap, own, lead in flat]
        return _map(
            places,
            "gap, from 0 m in steps of 10 m",
            "own speed, 0 m/s at the bottom, in steps of 5 m/s",
            [f"car in front: {lead} m/s" for lead in leads],
        )
    rows = state_rows(problem)
    flip = kind == "thermal"  # hot on top
    high = max(max(column) for column in rows)
    places = [(float(h), high - row if flip else row, 0) for h, column in enumerate(rows) for row in column]
    return {**_map(places, "step", "state", [""]), "kind": "layers"}


def _map(places: Sequence[tuple[float, float, int]], x: str, y: str, panels: list[str]) -> dict[str, Any]:
    xs, ys, which = (np.array(part, np.float64) for part in zip(*places, strict=True))
    return {
        "kind": "map",
        "x": _pack(xs - xs.min(), "<f4"),
        "y": _pack(ys - ys.min(), "<f4"),
        "panel": _pack(which, "<u1"),
        "panels": panels,
        "x_label": x,
        "y_label": y,
    }
