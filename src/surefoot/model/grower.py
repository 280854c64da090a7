"""Expanding pairs of a graph that grows (surefoot.model.growing), one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.centers import Centers, build_rays
from surefoot.model.draft import Draft, longer
from surefoot.model.features import Features, row_norms
from surefoot.model.from_functions import Explorer
from surefoot.model.graph import OUTSIDE, LayeredGraph
from surefoot.model.labels import Label, Names, shown
from surefoot.model.layer import NO_ACTION, Layer, Terminal
from surefoot.model.naming import Naming
from surefoot.model.rays import NO_CENTER
from surefoot.model.rules import check_layer, check_terminal

if TYPE_CHECKING:
    from surefoot.model.problem import Problem

ANY = 1 << 62  #: room for any number of states
NOT_EXPANDED: Label = "(not expanded)"  #: the name of the state OUTSIDE, and of its action


class Grower:
    """Expands pairs one after the other; :meth:`problem` returns the larger problem."""

    def __init__(self, explorer: Explorer, horizon: int, base: Problem | None) -> None:
        self._explorer, self._base = explorer, base
        self._last = horizon - 1
        self._drafts = [Draft() for _ in range(horizon)]
        self._record: list[tuple[int, int]] = []
        self._refused: list[tuple[int, int]] = []
        self.added = 0  # states
        if base is not None:
            graph, names = base.graph, base.naming
            rays = graph.rays or [None] * self._last
            each = zip(names.states, names.actions, graph.layers, rays, strict=False)
            self._drafts = [Draft(known, actions or (), layer, own) for known, actions, layer, own in each]
            self._drafts.append(Draft(names.states[-1]))

    # --- states -----------------------------------------------------------------------------------------

    def state(self, h: int, label: Label) -> int:
        """The number of a state, which is added if it is not there."""
        found = self._find(h, label)
        return self._add(h, label) if found is None else found

    def _find(self, h: int, label: Label) -> int | None:
        if label == NOT_EXPANDED:
            raise InvalidInput("a state's name is taken", where=f"step {h}", got=shown(label), fix="Name it otherwise.")
        return self._drafts[h].find(label)

    def _add(self, h: int, label: Label) -> int:
        draft, explorer = self._drafts[h], self._explorer
        forbidden, first = explorer.forbids(h, label), not draft.labels and self._base is None
        if h == self._last:
            if first:
                draft.add_last(NOT_EXPANDED, 1.0, None, True, explorer.cost_dim)
            draft.add_last(label, *explorer.last(h, label), forbidden, explorer.cost_dim)
        else:
            actions = explorer.actions_of(h, label)
            if not actions:
                where, fix = f"step {h}, state {label!r}", "Every state before the last step needs an action."
                raise InvalidInput(
                    "state without actions", where=where, fix=f"{fix} Leave out states that do not exist."
                )
            pairs = [explorer.pair(h, label, action, actions) for action in actions]
            for action, pair in zip(actions, pairs, strict=True):
                _check_support(h, label, action, pair.after)
            if h > 0 and first:
                like = pairs[max(0, explorer.fallback_of(h, label, actions))]
                outside = like._replace(reward=1.0, center=NO_CENTER, x0=())
                draft.add(NOT_EXPANDED, [NOT_EXPANDED], [outside], True, _outside)
            draft.add(label, actions, pairs, forbidden, _outside)
        self.added += 1
        return draft.state + len(draft.labels) - 1

    # --- pairs ------------------------------------------------------------------------------------------

    def expand(self, h: int, pair: int, room: int) -> list[int] | None:
        """Add the successors of a pair and return the new states. If these are more than ``room``, nothing is added,
        the pair is recorded as refused and the answer is None. Expanding a ray (spec 9) expands its centre too: the
        centre's successors are among the ray's."""
        draft, new = self._drafts[h], list[int]()
        edges = draft.edges_of(pair)
        if draft.target(edges.start) != OUTSIDE:
            return []
        state, action = draft.state_of(pair), draft.action(pair)
        after = self._explorer.support_of(h, state, action)
        _check_support(h, state, action, after)
        if len(after) != len(edges):
            where = f"step {h}, state {state!r}, action {action!r}"
            raise InvalidInput("successors gives another answer when it is asked again", where=where, got=shown(after))
        if sum(self._find(h + 1, label) is None for label in after) > room:
            self._refused.append((h, pair))
            return None
        for edge, label in zip(edges, after, strict=True):
            before = self.added
            target = self.state(h + 1, label)
            new += [target] * (self.added - before)
            draft.lead(edge, target)
        self._record.append((h, pair))
        if (center := draft.center_of(pair)) != NO_CENTER:
            self.expand(h, center, ANY)
        return new

    def pair(self, h: int, state: int, action: Label) -> int | None:
        """The number of a pair; None where the state has no such action."""
        draft = self._drafts[h]
        return next((pair for pair in draft.pairs_of(state) if draft.action(pair) == action), None)

    def pairs_of(self, h: int, states: Sequence[int]) -> tuple[IntArray, IntArray, FloatArray, list[FloatArray]]:
        """Of new states: where their pairs begin, and the last ends, (n+1,); where these pairs' cost rows do, counted
        from the first, (N+1,); the rewards (N,); and the cost rows, of rays at either end. ``states`` are the last ones
        that were added."""
        draft, first = self._drafts[h], states[0] - self._drafts[h].state
        pairs = np.array([draft.pairs_of(states[0]).start, *draft.state_ptr[first : first + len(states)]])
        ends = np.array([draft.row, *draft.row_ptr][pairs[0] - draft.pair :])
        rows = ends - ends[0]
        ends_of_rays = [draft.x] if self._explorer.given.center is None else [draft.x, self._at_zero(draft)]
        x = [np.array(table[len(table) - int(rows[-1]) :]) for table in ends_of_rays]
        return pairs, rows, np.array(draft.reward[pairs[0] - draft.pair :]), x

    def _at_zero(self, draft: Draft) -> list[FloatArray]:
        """The new cost rows of a layer at intensity 0: as they are drafted, or those of their centres' pairs."""
        if self._explorer.rows_at_zero:
            return draft.x0
        ends = [0, *(end - draft.row for end in draft.row_ptr)]
        own = [pair if center == NO_CENTER else center - draft.pair for pair, center in enumerate(draft.center)]
        return [row for pair in own for row in draft.x[ends[pair] : ends[pair + 1]]]

    def new_pairs(self, h: int) -> range:
        """The pairs of new states."""
        draft = self._drafts[h]
        return range(draft.pair, draft.pair + len(draft.reward))

    def is_forbidden(self, h: int, state: int) -> bool:
        """Of a new state."""
        return self._drafts[h].forbidden[state - self._drafts[h].state]

    def follow(self, h: int, states: Sequence[int]) -> list[int]:
        """Expand what the fallback plays in some new states; returns where it may lead, each state once."""
        draft, reached = self._drafts[h], dict[int, None]()
        for state in states:
            own, label = draft.pairs_of(state), draft.labels[state - draft.state]
            chosen = self._explorer.fallback_of(h, label, [draft.action(pair) for pair in own])
            if chosen == NO_ACTION:
                where, fix = f"step {h}, state {label!r}", "Give it one in every state that it can reach."
                raise InvalidInput("fallback is missing", where=where, got="no action of this state", fix=fix)
            self.expand(h, own[chosen], ANY)
            reached |= dict.fromkeys(map(draft.target, draft.edges_of(own[chosen])))
        return list(reached)

    # --- what has grown ---------------------------------------------------------------------------------

    def parts(self) -> tuple[list[Layer], Terminal, Naming, list[Centers | None]]:
        """The arrays with what was added, their names, and their rays."""
        drafts, base, explorer = self._drafts, self._base, self._explorer
        layers = [explorer.layer(draft) for draft in drafts[:-1]]
        terminal = explorer.terminal(drafts[-1], None if base is None else base.graph.terminal)
        states = [[*draft.names, *draft.labels] for draft in drafts]
        names = tuple(Names(len(labels), labels) for labels in states)
        actions = tuple((*draft.known_actions, *draft.actions) for draft in drafts[:-1])
        naming = Naming(names, actions, None if base is None else base.naming.features)
        return layers, terminal, naming, [explorer.centers(draft) for draft in drafts[:-1]]

    def problem(self) -> Problem:
        """The problem that has grown, checked where it is new."""
        base = self._base
        assert base is not None
        assert base.growth is not None
        assert base.graph.beyond is not None
        layers, terminal, naming, centers = self.parts()
        self._check(layers, terminal, naming, base.graph.largest_cost_norm())
        refused = _joined(base.growth.refused, self._refused)
        record = _joined(base.growth.record, self._record)
        growth = replace(base.growth, record=record, refused=refused, first=base.first)
        beyond = replace(base.graph.beyond, room=len(refused) == 0)
        rays = build_rays(layers, centers, naming, grows=True)
        grown = LayeredGraph(tuple(layers), terminal, base.graph.starts, base.graph.anchors, beyond, rays)
        return replace(base, graph=grown, naming=naming, growth=growth)

    def _check(self, layers: Sequence[Layer], terminal: Terminal, naming: Naming, longest: float) -> None:
        """Apply every rule of a problem to what was added."""
        for h, (layer, draft) in enumerate(zip(layers, self._drafts, strict=False)):
            if draft.labels:
                part = layer.part(draft.state, layer.n_states)[-1]
                n_next = layers[h + 1].n_states if h + 1 < len(layers) else terminal.n_states
                names = self._part(naming, h)
                check_layer(part, h, n_next, names, True)
                for rows in (part.cost_features, np.array(draft.x0)):
                    _refuse_long(rows, longest, partial(names.at_row, part, h))
        last, names = terminal.part(slice(self._drafts[-1].state, None)), self._part(naming, self._last)
        check_terminal(last, self._last, names)
        if last.cost_features is not None:
            _refuse_long(last.cost_features, longest, partial(names.at_state, self._last))

    def _part(self, naming: Naming, h: int) -> Naming:
        """The names, those of step h counted from the first new one."""
        draft, states, actions = self._drafts[h], list(naming.states), list(naming.actions)
        states[h] = Names(len(draft.labels), draft.labels)
        actions[h : h + 1] = [tuple(draft.actions)] if h < self._last else []
        return replace(naming, states=tuple(states), actions=tuple(actions))


def _check_support(h: int, s: Label, a: Label, after: list[Label]) -> None:
    if not after or len(set(after)) < len(after):
        rule, fix = "empty support", "Declare every state that the action may lead to."
        if after:
            rule, fix = "duplicate successors", "List each possible next state once."
        raise InvalidInput(rule, where=f"step {h}, state {s!r}, action {a!r}", got=shown(after), fix=fix)


def _refuse_long(x: Features, longest: float, place: Callable[[int], str]) -> None:
    """Guards and tolerances are fixed before any data and rely on the declared longest row."""
    lengths = row_norms(x)
    row = int(lengths.argmax()) if len(lengths) else -1
    if row >= 0 and lengths[row] > longest:
        raise InvalidInput(
            "a cost row is longer than declared",
            where=place(row),
            got=f"length {float(lengths[row])!r}, longest_row={longest!r}",
            fix="Give a longest_row that no row of any state exceeds.",
        )


def _outside(label: Label) -> int:
    """Where a triplet leads until its pair is expanded."""
    return OUTSIDE


def _joined(known: IntArray, more: list[tuple[int, int]]) -> IntArray:
    joined: IntArray = longer(known, np.array(more, np.int64).reshape(-1, 2))
    return joined
