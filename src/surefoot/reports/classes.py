"""The class of every state and action: certified, truly safe but not yet certified, truly unsafe. No drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from surefoot.exact import safe_sets
from surefoot.exact.best import MOST_WHOLE
from surefoot.model.arrays import BoolArray, IntArray
from surefoot.model.graph import OUTSIDE
from surefoot.model.growing import fully_grown
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.plan.certify import Certified, fallback_only
from surefoot.plan.plan import Plan
from surefoot.plan.segments import spread
from surefoot.reports.statistics import csv_text
from surefoot.runs.plans_kept import Snapshot
from surefoot.worlds.world import World


class Class(IntEnum):
    """Of a state or an action."""

    CERTIFIED = 0  # and truly safe
    OPEN = 1  # truly safe, not yet certified
    UNSAFE = 2  # truly unsafe, and not certified
    WRONG = 3  # truly unsafe, and certified anyway: the confidence event failed, or nothing was promised
    FORBIDDEN = 4  # a forbidden state, or an action in one


CLASS_NAMES = {
    Class.CERTIFIED: "certified",
    Class.OPEN: "truly safe, not yet certified",
    Class.UNSAFE: "truly unsafe",
    Class.WRONG: "allowed, but truly unsafe",
    Class.FORBIDDEN: "forbidden",
}
NAMES_WITHOUT_TRUTH = {**CLASS_NAMES, Class.OPEN: "not yet certified", Class.UNSAFE: "proved unsafe"}
NAMES_OF_FALLBACK = {**CLASS_NAMES, Class.CERTIFIED: "the fallback's, safe by assumption", Class.OPEN: "truly safe"}

WAYS = {  # of View.ways_to
    Class.CERTIFIED: "certified actions lead there",
    Class.OPEN: "can be reached safely, not yet certified",
    Class.UNSAFE: "cannot be reached safely",
    Class.WRONG: "allowed actions lead there, truly unsafe",
    Class.FORBIDDEN: "forbidden",
}
WAYS_OF_FALLBACK = {**WAYS, Class.CERTIFIED: "the fallback goes there", Class.OPEN: "can be reached safely"}
_BEST = [Class.FORBIDDEN, Class.CERTIFIED, Class.WRONG, Class.OPEN, Class.UNSAFE]  # the first of these names a place


@dataclass(frozen=True, eq=False)
class View:
    """A world at one moment of learning."""

    world: World
    pairs: tuple[IntArray, ...]  # H-1 of (N,) a Class
    states: tuple[IntArray, ...]  # H of (S,) a Class
    action: tuple[IntArray, ...]  # H-1 of (S,) the pair that is played; NO_ACTION: none
    learned: bool  # False: there is no plan, only the fallback

    @property
    def names(self) -> dict[Class, str]:
        return CLASS_NAMES if self.learned else NAMES_OF_FALLBACK

    @property
    def path_name(self) -> str:
        """What the path is, for legends."""
        return "most likely path of the plan" if self.learned else "most likely path of the fallback"

    @cached_property
    def path(self) -> list[tuple[int, int]]:
        """(step, state) along the most likely way of the policy from the first start."""
        graph = self.world.problem.graph
        way = [(0, int(graph.starts[0]))]
        for h, layer in enumerate(graph.layers):
            pair = int(self.action[h][way[-1][1]])
            if pair == NO_ACTION:
                break
            edges = layer.edges_of(pair)
            edge = edges[int(self.world.probabilities[h][edges].argmax())]
            way.append((h + 1, int(layer.successor[edge])))
        return way

    def edge(self, at: int) -> int:
        """The edge from the at-th to the next place of the path."""
        (h, state), (_, after) = self.path[at], self.path[at + 1]
        edge = self.world.problem.graph.layers[h].edge_to(int(self.action[h][state]), after)
        assert edge is not None
        return edge

    def at_first_sight(self) -> dict[Label, int]:
        """By label, the Class at the first step at which a state can occur, with most of the episode ahead."""
        found: dict[Label, int] = {}
        for h, classes in enumerate(self.states[:-1]):
            names = self.world.problem.naming.states[h]
            for i, kind in enumerate(classes.tolist()):
                if i != self._outside(h):
                    found.setdefault(names[i], kind)
        return found

    def ways_to(self) -> dict[Label, int]:
        """By label, how a state can be reached: CERTIFIED by certified actions alone, OPEN by truly safe ones, WRONG by
        an action that is allowed but truly unsafe, UNSAFE not safely; the best way over all steps."""
        certified = self._reached((Class.CERTIFIED,))
        allowed = self._reached((Class.CERTIFIED, Class.WRONG))
        safe = self._reached((Class.CERTIFIED, Class.OPEN))
        found: dict[Label, int] = {}
        for h, names in enumerate(self.world.problem.naming.states):
            marks = [self.states[h] == Class.FORBIDDEN, certified[h], allowed[h], safe[h]]
            kinds = np.select(marks, [Class.FORBIDDEN, Class.CERTIFIED, Class.WRONG, Class.OPEN], Class.UNSAFE)
            for i, kind in enumerate(kinds.tolist()):
                found[names[i]] = min(kind, found.get(names[i], kind), key=_BEST.index)
        return found

    def _reached(self, by: tuple[Class, ...]) -> tuple[BoolArray, ...]:
        """H of (S,) what actions of these classes may lead to from a start."""
        return self.world.problem.graph.reached_along([np.isin(kinds, by) for kinds in self.pairs])

    def kinds_of_states(self) -> set[int]:
        """The classes of all states of all steps."""
        return {int(kind) for row in self.states for kind in set(row.tolist())}

    def _outside(self, h: int) -> int | None:
        """The number of the state, and of the pair, that stands for what is not in a growing graph; None without
        one."""
        return OUTSIDE if h > 0 and self.world.problem.graph.beyond is not None else None

    def csv(self) -> str:
        """A row per action: step, state, action, class."""
        problem, rows = self.world.problem, []
        for h, layer in enumerate(problem.graph.layers):
            for pair, state in enumerate(layer.pair_state().tolist()):
                kind = self.names[Class(int(self.pairs[h][pair]))]
                rows.append([h, str(problem.naming.states[h][state]), str(problem.naming.action(layer, h, pair)), kind])
        return csv_text(["step", "state", "action", "class"], rows)

    @property
    def present(self) -> set[int]:
        """The classes that occur."""
        parts = [*enumerate(self.pairs), *enumerate(self.states)]
        return {int(kind) for h, part in parts for kind in set(part[self._outside(h) is not None :].tolist())}

    def count(self) -> dict[Class, int]:
        """Pairs by class, all steps together."""
        everything = np.concatenate([part[self._outside(h) is not None :] for h, part in enumerate(self.pairs)])
        return {kind: int((everything == kind).sum()) for kind in Class}


def classify(world: World, plan: Plan | Snapshot | None = None) -> View:
    """Classify for a plan or a kept plan; without one, for the fallback. Rays are at their plan's intensities."""
    graph = world.problem.graph
    if plan is not None and world.problem.has_rays:
        opened = plan.intensity if isinstance(plan, Snapshot) else plan.intensities
        world = world.at(1.0 if opened is None else opened)
    if plan is None:
        return _compare(world, fallback_only(graph), graph.fallback, False)
    if isinstance(plan, Snapshot):
        return _compare(world, Certified(plan.certified_pairs, plan.certified_states), plan.action, True)
    return _compare(world, plan.certified_sets, plan.values.action, True)


def _compare(world: World, known: Certified, action: tuple[IntArray, ...], learned: bool) -> View:
    safe_states, safe_pairs = truly_safe(world)
    graph = world.problem.graph
    banned = [graph.forbidden(h) for h in range(graph.horizon)]
    inside = [spread(mask, layer.state_ptr) for mask, layer in zip(banned, graph.layers, strict=False)]
    pairs = tuple(_classes(c, s, f & ~c) for c, s, f in zip(known.pairs, safe_pairs, inside, strict=True))
    states = tuple(_classes(c, s, f) for c, s, f in zip(known.states, safe_states, banned, strict=True))
    return View(world, pairs, states, action, learned)


def truly_safe(world: World) -> tuple[Sequence[BoolArray], Sequence[BoolArray]]:
    """Truly safe states and pairs; for a growing graph, those of the whole graph if it is small enough to build."""
    problem = world.problem
    everything = None if problem.growth is None else fully_grown(problem, MOST_WHOLE)
    states, pairs = safe_sets(world if everything is None else world.on(everything))
    sizes = [layer.n_pairs for layer in problem.graph.layers]
    return [mask[: problem.graph.n_states(h)] for h, mask in enumerate(states)], [
        mask[:n] for mask, n in zip(pairs, sizes, strict=True)
    ]


def _classes(certified: BoolArray, safe: BoolArray, forbidden: BoolArray) -> IntArray:
    marks = [forbidden, certified & safe, safe, ~certified]
    kinds: IntArray = np.select(marks, [Class.FORBIDDEN, Class.CERTIFIED, Class.OPEN, Class.UNSAFE], Class.WRONG)
    return kinds.astype(np.int64)
