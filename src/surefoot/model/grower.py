"""Expanding pairs of a graph that grows (surefoot.model.growing), one after the other.

Additions are collected in lists, one per array of a layer, and appended to the arrays at the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import InvalidInput
from surefoot.model import from_functions as functions
from surefoot.model.appended import Appended
from surefoot.model.centers import Centers, build_rays
from surefoot.model.draft import Draft
from surefoot.model.features import Features, row_norms
from surefoot.model.graph import NO_ACTION, OUTSIDE, FloatArray, IntArray, Layer, LayeredGraph, Terminal, freeze, owner
from surefoot.model.labels import Label, Names, shown
from surefoot.model.naming import Naming
from surefoot.model.rays import NO_CENTER
from surefoot.model.rules import check_layer, check_terminal

if TYPE_CHECKING:
    from surefoot.model.growing import Growth
    from surefoot.model.problem import Problem

ANY = 1 << 62  #: room for any number of states
NOT_EXPANDED: Label = "(not expanded)"  #: the name of the state OUTSIDE, and of its action


class Grower:
    """Expands pairs one after the other; :meth:`problem` returns the larger problem."""

    def __init__(self, explorer: functions.Explorer, horizon: int, base: Problem | None) -> None:
        self._declared, self._explorer, self._base = explorer.given, explorer, base
        self._last = horizon - 1
        self._drafts = [Draft() for _ in range(horizon)]
        self._record: list[tuple[int, int]] = []
        self._refused: list[tuple[int, int]] = []
        self.added = 0  # states
        if base is not None:
            self._drafts = [Draft(y.n_states, y.n_pairs, y.n_edges, y.n_rows) for y in base.graph.layers]
            self._drafts.append(Draft(base.graph.terminal.n_states))

    # --- states -----------------------------------------------------------------------------------------

    def state(self, h: int, label: Label) -> int:
        """The number of a state, which is added if it is not there."""
        found = self._find(h, label)
        return self._add(h, label) if found is None else found

    def _find(self, h: int, label: Label) -> int | None:
        if label == NOT_EXPANDED:
            raise InvalidInput("a state's name is taken", where=f"step {h}", got=shown(label), fix="Name it otherwise.")
        known = None if self._base is None else self._base.naming.states[h].find(label)
        return self._drafts[h].index.get(label) if known is None else known

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
                self._check_support(h, label, action, pair.after)
            if h > 0 and first:
                like = pairs[max(0, explorer.fallback_of(h, label, actions))]
                outside = like._replace(reward=1.0, center=NO_CENTER, x0=())
                draft.add(NOT_EXPANDED, [NOT_EXPANDED], [outside], True, _outside)
            draft.add(label, actions, pairs, forbidden, _outside)
        self.added += 1
        return draft.state + len(draft.labels) - 1

    def successors(self, h: int, s: Label, a: Label) -> list[Label]:
        after = self._explorer.support_of(h, s, a)
        self._check_support(h, s, a, after)
        return after

    def _check_support(self, h: int, s: Label, a: Label, after: list[Label]) -> None:
        if not after or len(set(after)) < len(after):
            rule, fix = "empty support", "Declare every state that the action may lead to."
            if after:
                rule, fix = "duplicate successors", "List each possible next state once."
            raise InvalidInput(rule, where=f"step {h}, state {s!r}, action {a!r}", got=shown(after), fix=fix)

    # --- pairs ------------------------------------------------------------------------------------------

    def expand(self, h: int, pair: int, room: int) -> list[int] | None:
        """Add the successors of a pair and return the new states. If these are more than ``room``, nothing is added,
        the pair is recorded as refused and the answer is None. Expanding a ray (spec 9) expands its centre too: the
        centre's successors are among the ray's."""
        state, action, (first, end) = self._owner(h, pair)
        if self._leads(h, first) != OUTSIDE:
            return []
        after = self.successors(h, state, action)
        if len(after) != end - first:
            where = f"step {h}, state {state!r}, action {action!r}"
            raise InvalidInput("successors gives another answer when it is asked again", where=where, got=shown(after))
        if sum(self._find(h + 1, label) is None for label in after) > room:
            self._refused.append((h, pair))
            return None
        draft, new = self._drafts[h], list[int]()
        for edge, label in zip(range(first, end), after, strict=True):
            before = self.added
            target = self.state(h + 1, label)
            new += [target] * (self.added - before)
            if edge < draft.edge:
                draft.leads[edge] = target
            else:
                draft.successor[edge - draft.edge] = target
        self._record.append((h, pair))
        if (center := self._center(h, pair)) != NO_CENTER:
            self.expand(h, center, ANY)
        return new

    def _leads(self, h: int, edge: int) -> int:
        """Where an edge leads so far."""
        draft = self._drafts[h]
        if edge >= draft.edge:
            return draft.successor[edge - draft.edge]
        assert self._base is not None
        return draft.leads.get(edge, int(self._base.graph.layers[h].successor[edge]))

    def _center(self, h: int, pair: int) -> int:
        draft = self._drafts[h]
        if pair >= draft.pair:
            return draft.center[pair - draft.pair]
        rooms = {} if self._base is None else self._growth.rooms[h]
        return int(rooms["center"].array[pair]) if "center" in rooms else NO_CENTER

    def pair(self, h: int, state: int, action: Label) -> int | None:
        """The number of a pair; None where the state has no such action."""
        draft, new = self._drafts[h], state - self._drafts[h].state
        if new < 0:
            assert self._base is not None
            layer, own = self._base.graph.layers[h], self._base.graph.layers[h].pairs_of(state)
            first, listed = own.start, [self._base.naming.action(layer, h, pair) for pair in own]
        else:
            first, end = [draft.pair, *draft.state_ptr][new : new + 2]
            listed = draft.actions[first - draft.pair : end - draft.pair]
        return first + listed.index(action) if action in listed else None

    def _owner(self, h: int, pair: int) -> tuple[Label, Label, tuple[int, int]]:
        """State and action of a pair, and its edges."""
        draft, new = self._drafts[h], pair - self._drafts[h].pair
        if new >= 0:
            ends = [draft.edge, *draft.pair_ptr[max(0, new - 1) : new + 1]][-2:]
            return draft.labels[bisect_right(draft.state_ptr, pair)], draft.actions[new], (ends[0], ends[1])
        assert self._base is not None
        layer, naming = self._base.graph.layers[h], self._base.naming
        state = owner(layer.state_ptr, pair)
        edges = layer.edges_of(pair)
        return naming.states[h][state], naming.action(layer, h, pair), (edges.start, edges.stop)

    def pairs_of(self, h: int, states: Sequence[int]) -> tuple[IntArray, IntArray, FloatArray, list[FloatArray]]:
        """Of new states: where their pairs begin, and the last ends, (n+1,); where these pairs' cost rows do, counted
        from the first, (N+1,); the rewards (N,); and the cost rows, of rays at either end. ``states`` are the last ones
        that were added."""
        draft, first = self._drafts[h], states[0] - self._drafts[h].state
        pairs = np.array([draft.pair, *draft.state_ptr][first : first + len(states) + 1])
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
        return range(self._drafts[h].pair, self._drafts[h].pairs)

    def is_forbidden(self, h: int, state: int) -> bool:
        """Of a new state."""
        return self._drafts[h].forbidden[state - self._drafts[h].state]

    def follow(self, h: int, states: Sequence[int]) -> list[int]:
        """Expand what the fallback plays in some states; where it may lead, each once."""
        draft, reached = self._drafts[h], dict[int, None]()
        for state in states:
            first, end = [draft.pair, *draft.state_ptr][state : state + 2]
            chosen = self._explorer.fallback_of(h, draft.labels[state], draft.actions[first:end])
            if chosen == NO_ACTION:
                where, fix = f"step {h}, state {draft.labels[state]!r}", "Give it one in every state that it can reach."
                raise InvalidInput("fallback is missing", where=where, got="no action of this state", fix=fix)
            self.expand(h, first + chosen, ANY)
            reached |= dict.fromkeys(draft.successor[slice(*self._owner(h, first + chosen)[-1])])
        return list(reached)

    # --- what has grown ---------------------------------------------------------------------------------

    def layers(self) -> tuple[list[Layer], Terminal, Naming, tuple[dict[str, Appended], ...]]:
        """The arrays with what was added, their names, and their rooms."""
        rooms = tuple(self._room(h) for h in range(self._last + 1))
        layers = [self._layer(h, rooms[h]) for h in range(self._last)]
        last = rooms[-1]
        terminal = Terminal(
            reward=last["reward"].array,
            cost_features=None if self._declared.terminal_cost_features is None else last["cost_features"].array,
            has_cost=last["has_cost"].array,
            fallback_reached=last["fallback_reached"].array,
            forbidden=last["forbidden"].array,
        )
        return layers, terminal, self._naming(), rooms

    def _room(self, h: int) -> dict[str, Appended]:
        draft, n = self._drafts[h], len(self._drafts[h].labels)
        more: dict[str, ArrayLike] = {"reward": draft.reward, "cost_features": draft.x, "forbidden": draft.forbidden}
        if h == self._last:
            more |= {"has_cost": draft.has_cost, "fallback_reached": np.zeros(n, bool)}
        else:
            more |= {"state_ptr": draft.state_ptr, "pair_ptr": draft.pair_ptr, "fallback": np.full(n, NO_ACTION)}
            if self._explorer.given.transition_features is not None:
                more["transition_features"] = draft.phi
            if self._explorer.by_pair:
                more["row_ptr"] = draft.row_ptr
            if self._explorer.given.center is not None:
                more |= {"center": draft.center, "center_cost_features": draft.x0}
        rooms = self._empty() if self._base is None else self._growth.rooms[h]
        return {name: rooms[name].plus(rows) for name, rows in more.items()}

    def _empty(self) -> dict[str, Appended]:
        pointer, dim = np.zeros(1, np.int64), self._explorer.cost_dim
        arrays: dict[str, NDArray[Any]] = {
            **dict.fromkeys(("state_ptr", "pair_ptr", "row_ptr"), pointer),
            **{name: np.zeros(0, bool) for name in ("forbidden", "has_cost", "fallback_reached")},
            "reward": np.zeros(0),
            "cost_features": np.zeros((0, dim)),
            "transition_features": np.zeros((0, self._explorer.transition_dim)),
            "fallback": np.zeros(0, np.int64),
            "center": np.zeros(0, np.int64),
            "center_cost_features": np.zeros((0, dim)),
        }
        return {name: Appended.of(array.copy()) for name, array in arrays.items()}

    def centers(self, rooms: Sequence[dict[str, Appended]]) -> list[Centers]:
        """The rays of every layer; none where no action has an intensity."""
        if self._explorer.given.center is None:
            return []
        own = self._explorer.rows_at_zero
        return [
            Centers(room["center"].array, room["center_cost_features"].array if own else None)
            for room in rooms[: self._last]
        ]

    def _layer(self, h: int, room: dict[str, Appended]) -> Layer:
        draft = self._drafts[h]
        before = np.empty(0, np.int64) if self._base is None else self._base.graph.layers[h].successor
        successor = np.concatenate([before, np.array(draft.successor, np.int64)])
        successor[list(draft.leads)] = list(draft.leads.values())
        x, ends = room["cost_features"].array, room["pair_ptr"].array
        return Layer(
            state_ptr=room["state_ptr"].array,
            pair_ptr=ends,
            successor=freeze(successor),
            reward=room["reward"].array,
            cost_features=x,
            transition_features=room["transition_features"].array if "transition_features" in room else x,
            fallback=room["fallback"].array,
            row_ptr=room["row_ptr"].array if "row_ptr" in room else ends,
            forbidden=room["forbidden"].array,
        )

    def _naming(self) -> Naming:
        drafts, base = self._drafts, None if self._base is None else self._base.naming
        states = [list(draft.labels) for draft in drafts]
        actions = [tuple(draft.actions) for draft in drafts[:-1]]
        if base is not None:
            states = [[*(known.listed or ()), *new] for known, new in zip(base.states, states, strict=True)]
            actions = [(*(known or ()), *new) for known, new in zip(base.actions, actions, strict=True)]
        features = None if base is None else base.features
        return Naming(tuple(Names(len(part), part) for part in states), tuple(actions), features)

    @property
    def _growth(self) -> Growth:
        assert self._base is not None
        assert self._base.growth is not None
        return self._base.growth

    def problem(self) -> Problem:
        """The problem that has grown, checked where it is new."""
        base = self._base
        assert base is not None
        assert base.graph.beyond is not None
        layers, terminal, naming, rooms = self.layers()
        self._check(layers, terminal, naming)
        graph = base.graph
        growth = replace(
            self._growth,
            rooms=rooms,
            record=_joined(self._growth.record, self._record),
            refused=_joined(self._growth.refused, self._refused),
            first=base.first,
        )
        beyond = replace(base.graph.beyond, room=len(growth.refused) == 0)
        rays = build_rays(layers, self.centers(rooms), naming, grows=True)
        grown = LayeredGraph(tuple(layers), terminal, graph.starts, graph.anchors, beyond, rays)
        return replace(base, graph=grown, naming=naming, growth=growth)

    def _check(self, layers: Sequence[Layer], terminal: Terminal, naming: Naming) -> None:
        """Apply every rule of a problem to what was added."""
        for h, (layer, draft) in enumerate(zip(layers, self._drafts, strict=False)):
            if draft.labels:
                part = layer.part(draft.state, layer.n_states)[-1]
                n_next = layers[h + 1].n_states if h + 1 < len(layers) else terminal.n_states
                names = self._part(naming, h)
                check_layer(part, h, n_next, names, True)
                for rows in (part.cost_features, np.array(draft.x0)):
                    self._refuse_long(rows, partial(names.at_row, part, h))
        last, names = terminal.part(slice(self._drafts[-1].state, None)), self._part(naming, self._last)
        check_terminal(last, self._last, names)
        if last.cost_features is not None:
            self._refuse_long(last.cost_features, partial(names.at_state, self._last))

    def _refuse_long(self, x: Features, place: Callable[[int], str]) -> None:
        """Guards and tolerances are fixed before any data and rely on the declared longest row."""
        assert self._base is not None
        longest, lengths = self._base.graph.largest_cost_norm(), row_norms(x)
        row = int(lengths.argmax()) if len(lengths) else -1
        if row >= 0 and lengths[row] > longest:
            raise InvalidInput(
                "a cost row is longer than declared",
                where=place(row),
                got=f"length {float(lengths[row])!r}, longest_row={longest!r}",
                fix="Give a longest_row that no row of any state exceeds.",
            )

    def _part(self, naming: Naming, h: int) -> Naming:
        """The names, those of step h counted from the first new one."""
        draft, states, actions = self._drafts[h], list(naming.states), list(naming.actions)
        states[h] = Names(len(draft.labels), draft.labels)
        actions[h : h + 1] = [tuple(draft.actions)] if h < self._last else []
        return replace(naming, states=tuple(states), actions=tuple(actions))


def _outside(label: Label) -> int:
    """Where a triplet leads until its pair is expanded."""
    return OUTSIDE


def _joined(known: IntArray, more: list[tuple[int, int]]) -> IntArray:
    return freeze(np.concatenate([known, np.array(more, np.int64).reshape(-1, 2)]))
