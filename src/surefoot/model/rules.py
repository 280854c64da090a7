"""The rules that a problem must keep; an error says where one is broken.

Arrays that steps share are checked once. Structure comes before content: a rule may rely on those above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from surefoot.checks import refuse_first
from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, freeze, owner
from surefoot.model.features import Features, pieces
from surefoot.model.graph import OUTSIDE
from surefoot.model.labels import Label, shown
from surefoot.model.layer import NO_ACTION, PART, Layer, Terminal
from surefoot.model.limit import Limit
from surefoot.model.lookup import Lookup
from surefoot.model.naming import FeatureNames, Naming, feature_name
from surefoot.model.outline import Outline
from surefoot.model.priors import longest_scaled
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import SQUARES

MAX_HORIZON = 1_000_000
_FINITE = "Look for a division by zero or a missing value where it is computed."

ASKED_TWICE = 64  #: pairs whose successors and reward the user's functions are asked for again


def check_limits(limits: Sequence[Limit] | Limit) -> tuple[Limit, ...]:
    if isinstance(limits, Limit):
        limits = (limits,)
    if not isinstance(limits, (list, tuple)):  # measured costs come in this order
        raise InvalidInput("limits must be a Limit or a list of them", got=shown(limits), fix="Put them into a list.")
    if not limits:
        raise InvalidInput("a problem needs a limit", got="limits is empty", fix="Give at least one Limit.")
    for limit in limits:
        if not isinstance(limit, Limit):
            raise InvalidInput("limits must be Limit objects", got=shown(limit))
    names = [limit.name for limit in limits]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("two limits share a name", got=repr(name), fix="Give each its own name.")
    return tuple(limits)


def check_flag(name: str, value: bool) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} must be True or False", got=shown(value))
    return bool(value)


def check_horizon(horizon: int) -> int:
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)):
        raise InvalidInput("horizon must be a whole number", got=shown(horizon))
    if horizon < 2:
        raise InvalidInput(
            "horizon is below 2",
            got=shown(horizon),
            fix="The last step takes no action, so one decision needs two steps.",
        )
    if horizon > MAX_HORIZON:  # usually a typing error, and the steps may not fit in memory
        fix = "It counts steps, not seconds: choose a longer step."
        raise InvalidInput(f"horizon is above {MAX_HORIZON}", got=shown(horizon), fix=fix)
    return int(horizon)


def check_layers(given: Outline, naming: Naming) -> None:
    """Check every step; shared arrays only once."""
    seen: set[tuple[object, ...]] = set()

    def first_time(rule: str, *arrays: object) -> bool:
        key = (rule, *map(id, arrays))
        return key not in seen and not seen.add(key)  # type: ignore[func-returns-value]

    for h, (layer, n_next) in enumerate(zip(given.layers, given.sizes[1:], strict=True)):
        check_layer(layer, h, n_next, naming, given.beyond is not None, first_time)
    check_terminal(given.terminal, len(given.layers), naming)


def check_layer(
    layer: Layer,
    h: int,
    n_next: int,
    naming: Naming,
    grows: bool,
    first_time: Callable[..., bool] = lambda rule, *arrays: True,
) -> None:
    """Check one step. If the graph ``grows``, several triplets of a pair may lead OUTSIDE. ``first_time``: has this
    rule not been checked for these arrays?"""
    if first_time("structure", layer.state_ptr, layer.pair_ptr, layer.row_ptr):
        _check_structure(layer, h, naming)
    if first_time(f"successors {n_next}", layer.successor, layer.pair_ptr):
        _check_successors(layer, h, n_next, naming, grows)
    if first_time("reward", layer.reward):
        _check_rewards(layer.reward, partial(naming.at_pair, layer, h))
    costs, transitions = layer.cost_features, layer.transition_features
    if first_time("cost features", costs):
        table = _Table("cost feature", costs, partial(naming.at_row, layer, h), naming.features)
        _check_rows(table, SQUARES[0])
    if transitions is not costs and first_time("transition features", transitions):
        table = _Table("transition feature", transitions, partial(naming.at_edge, layer, h), None)
        _check_rows(table, 0.0)  # a probability may be tiny


def check_terminal(terminal: Terminal, last: int, naming: Naming) -> None:
    """Check the last step."""
    place = partial(naming.at_state, last)
    _check_rewards(terminal.reward, place)
    if terminal.cost_features is not None:
        _check_rows(_Table("terminal cost feature", terminal.cost_features, place, naming.features), SQUARES[0])


def _check_structure(layer: Layer, h: int, naming: Naming) -> None:
    at_state, at_pair = partial(naming.at_state, h), partial(naming.at_pair, layer, h)
    fix = "Every state before the last step needs an action; remove states that do not exist."
    refuse_first(np.diff(layer.state_ptr) == 0, "state without actions", at_state, fix)
    fix = "Declare every state that the action may lead to."
    refuse_first(np.diff(layer.pair_ptr) == 0, "empty support", at_pair, fix, "no successors")
    fix = "Give every pair at least one row of cost_features; zeros if the cost is always zero."
    refuse_first(np.diff(layer.row_ptr) == 0, "action without cost features", at_pair, fix, "no cost row")


def _check_successors(layer: Layer, h: int, n_next: int, naming: Naming, grows: bool) -> None:
    for _, pairs, _, part in layer.parts(PART):
        outside = np.flatnonzero((part.successor < 0) | (part.successor >= n_next))
        if len(outside):
            edge = int(outside[0])
            pair = pairs.start + owner(part.pair_ptr, edge)
            got = f"index {int(part.successor[edge])}, but step {h + 1} has {n_next} states"
            raise InvalidInput("successor does not exist", where=naming.at_pair(layer, h, pair), got=got)
        key = part.edge_pair() * n_next + part.successor
        if grows:
            key = key[part.successor != OUTSIDE]
        key.sort()
        twice = np.flatnonzero(key[1:] == key[:-1])
        if len(twice):
            pair, successor = divmod(int(key[twice[0]]), n_next)
            where = naming.at_pair(layer, h, pairs.start + pair)
            got, fix = f"{naming.states[h + 1][successor]!r} is listed twice", "List each possible next state once."
            raise InvalidInput("duplicate successors", where=where, got=got, fix=fix)


def _check_rewards(reward: FloatArray, place: Callable[[int], str]) -> None:
    bad = ~((reward >= 0) & (reward <= 1))  # a NaN is neither
    fix = "Rescale the rewards: the value bounds rely on this range."
    refuse_first(bad, "reward is outside [0, 1]", place, fix, lambda i: repr(float(reward[i])))


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of features, and how messages name its rows and columns."""

    kind: str
    features: Features
    place: Callable[[int], str]
    names: FeatureNames

    def entry(self, value: float, column: int) -> str:
        called = f"in column {column}" if self.names is None else f"for {feature_name(self.names, column)}"
        return f"{value!r} {called}"


def _check_rows(table: _Table, least: float) -> None:
    """Every number is finite, and every row is zero or has a squared length from ``least`` to the largest usable."""
    features = table.features
    if isinstance(features, SparseRows):
        _check_squares(table, 0, features.squares(), least)
        return
    for rows, piece in pieces(features):
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", piece, piece)
        _check_squares(table, rows.start, squares, least)


def _check_squares(table: _Table, first: int, squares: FloatArray, least: float) -> None:
    """Squared lengths of the rows from ``first`` on, of which Gram matrices and bounds are computed."""
    odd = np.flatnonzero(~((squares >= least) & (squares <= SQUARES[1])))
    features = table.features[first + odd]
    wrong = odd[features.not_zero() if isinstance(features, SparseRows) else np.any(features != 0.0, axis=1)]
    if not len(wrong):
        return
    row = first + int(wrong[0])
    x = np.asarray(table.features[row], np.float64)
    if not np.isfinite(x).all():
        column = int(np.argmin(np.isfinite(x)))
        short = len(x) <= 8 and table.names is None  # a longer row is hard to read
        got = repr(x.tolist()) if short else table.entry(float(x[column]), column)
        raise InvalidInput(f"{table.kind} is not finite", where=table.place(row), got=got, fix=_FINITE)
    column = int(np.abs(x).argmax())
    size = abs(float(x[column]))
    raise InvalidInput(
        f"{table.kind} is too {'large' if size > 1.0 else 'small'} to be squared",
        where=table.place(row),
        got=f"entries up to {size!r}" if table.names is None else table.entry(float(x[column]), column),
        fix="Give features in other units, and the norm in their inverse; or declare zero.",
    )


def check_sizes(declared: Lookup) -> None:
    """The largest costs, their noise, and rows scaled by a prior's half-widths can be squared without over- or
    underflow, which tolerances, tests and bounds rely on (spec 8)."""
    graph = declared.graph
    for j, (limit, prior) in enumerate(zip(declared.limits, declared.priors, strict=True)):
        most = float(declared.largest_costs[j])
        known = f"norm {limit.norm!r}" if limit.prior is None else f"costs up to {most!r} by its prior"
        known = f"bound {limit.bound!r}, noise {limit.noise!r}, {known}"
        for what, size, got in (
            ("cost", float(np.abs(declared.bounds[:, j]).max()) + most + limit.misspecification, known),
            ("noise", limit.noise, known),
            ("episode_noise", limit.episode_noise, known),
            ("prior", longest_scaled(graph, prior.width), "half-widths times features"),
        ):
            if size > 0.0 and not SQUARES[0] <= size * size <= SQUARES[1]:
                raise InvalidInput(
                    f"{what} is too {'large' if size > 1.0 else 'small'} to be squared",
                    where=f"limit {limit.name!r}",
                    got=f"{size!r}: {got}, features up to {graph.largest_cost_norm()!r} long",
                    fix="Measure this cost in other units"
                    + (", or give the number itself where a coefficient is known." if what == "prior" else "."),
                )


def check_repeatable(
    layers: Sequence[Layer],
    naming: Naming,
    successors: Callable[[int, Any, Any], Sequence[Any]],
    reward: Callable[[int, Any, Any], float],
) -> None:
    """Ask the user's functions again for successors and reward of some pairs: the answer must not be random."""
    ends = np.cumsum([0, *(layer.n_pairs for layer in layers)])
    total = int(ends[-1])
    for number in np.unique(np.linspace(0, total - 1, min(ASKED_TWICE, total)).astype(np.int64)).tolist():
        h = owner(ends, number)
        layer, pair = layers[h], number - int(ends[h])
        state = owner(layer.state_ptr, pair)
        s, a, where = naming.states[h][state], naming.action(layer, h, pair), naming.at_pair(layer, h, pair)
        reached = layer.successors_of(pair).tolist()
        declared, again = [naming.states[h + 1][i] for i in reached], list(successors(h, s, a))
        if again != declared:
            got = f"first {shown(declared)}, then {shown(again)}"
            fix = "Always list all states that may follow; which one does follow is up to the plant."
            rule = "successors gives another answer when it is asked again"
            raise InvalidInput(rule, where=where, got=got, fix=fix)
        first, value = float(layer.reward[pair]), reward(h, s, a)
        if value != first and value == value:  # a NaN is refused elsewhere
            rule, got = "reward gives another answer when it is asked again", f"first {first!r}, then {value!r}"
            raise InvalidInput(rule, where=where, got=got, fix="Always return the mean.")


def follow_fallback(given: Outline, naming: Naming) -> tuple[tuple[Layer, ...], Terminal]:
    """Follow the fallback through every state it can reach. It must be closed (ass:knownseedsubgraph) and must not
    enter a forbidden state (spec 9)."""
    reached = np.zeros(given.layers[0].n_states, bool)
    reached[given.starts] = True
    done: list[Layer] = []
    for h, (layer, n_next) in enumerate(zip(given.layers, given.sizes[1:], strict=True)):
        states = np.flatnonzero(reached)
        _refuse_forbidden(h, reached & layer.forbidden, done, naming)
        actions = np.asarray(given.fallback(h, states), dtype=np.int64)
        missing = np.flatnonzero(actions < 0)
        if len(missing):
            _refuse_open_fallback(h, int(states[missing[0]]), done, naming)
        fallback = np.full(layer.n_states, NO_ACTION, np.int64)
        fallback[states] = layer.state_ptr[states] + actions
        done.append(replace(layer, fallback=freeze(fallback)))
        reached = done[-1].reached_by(done[-1].played_by_fallback(), n_next)
    _refuse_forbidden(len(done), reached & given.terminal.forbidden, done, naming)
    return tuple(done), replace(given.terminal, fallback_reached=freeze(reached))


def _refuse_open_fallback(h: int, state: int, done: list[Layer], naming: Naming) -> None:
    label: Label = naming.states[h][state]
    if h == 0:
        raise InvalidInput(
            "fallback is missing",
            where=naming.at_state(0, state),
            got="the fallback has no action in this start state",
            fix="Give fallback an action there.",
        )
    culprit, action = _who_leads_to(h, state, done[-1], naming)
    raise InvalidInput(
        "fallback is not closed",
        where=culprit,
        got=f"action {action!r} can reach {label!r}, for which the fallback has no action",
        fix="Give fallback an action there, or remove it from successors.",
    )


def _who_leads_to(h: int, state: int, before: Layer, naming: Naming) -> tuple[str, Label]:
    """Where, and by which action, the fallback can get to a state of layer h."""
    pair = next(int(p) for p in before.fallback_pairs() if state in before.successors_of(p))
    culprit = owner(before.state_ptr, pair)
    return naming.at_state(h - 1, culprit), naming.action(before, h - 1, pair)


def _refuse_forbidden(h: int, entered: BoolArray, done: list[Layer], naming: Naming) -> None:
    """``entered`` (S,): forbidden states of layer h in which an episode may begin, or which the fallback may enter."""
    if not entered.any():
        return
    state = int(np.flatnonzero(entered)[0])
    if h == 0:
        raise InvalidInput(
            "start is forbidden",
            where=naming.at_state(0, state),
            fix="Start elsewhere, or do not forbid this state.",
        )
    culprit, action = _who_leads_to(h, state, done[-1], naming)
    raise InvalidInput(
        "fallback may enter a forbidden state",
        where=culprit,
        got=f"action {action!r} can reach {naming.states[h][state]!r}, which is forbidden",
        fix="Choose another action for fallback, remove the state from successors, or do not forbid it.",
    )
