"""The policies that can be evaluated, each turned into one array per step.

A policy is any of

- a :class:`Policy`, or anything with ``action(h, s)``, such as a plan of the same labels;
- a function ``(h, s) -> action`` or a dict ``{(h, s): action}``, asked only in states that it reaches;
- H-1 integer arrays (S,): the pair played in each state, -1 for none;
- H-1 float arrays (N,): the probability of each pair; each state's add up to 1, or to 0 for none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import refuse_first
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray, freeze
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.model.problem import Problem
from surefoot.model.rays import Intensities
from surefoot.tolerances import PROBABILITY_SUM
from surefoot.worlds.world import World

Rows = tuple[NDArray[Any], ...]
"""H-1 arrays, each (S,) of pairs or (N,) of probabilities."""


@dataclass(frozen=True, eq=False)
class Policy:
    """One action per state: ``pairs`` are H-1 arrays (S,) of pair indices, -1 where there is none.

    Examples:
        >>> sf.exact.solve(sf.worlds.make("thermal/testing")).policy
        Policy(steps=5, an action in 20 of 27 states)
    """

    problem: Problem
    pairs: tuple[IntArray, ...]
    intensities: Intensities | None = None  # with rays: at which each pair is played (spec 9)

    def intensity(self, h: int, s: Label, a: Label) -> float:
        """At which intensity an action is played; 1 without rays."""
        pair = self.problem.pair_index(h, s, a)
        return 1.0 if self.intensities is None else float(self.intensities[h][pair])

    def action(self, h: int, s: Label) -> Label | None:
        """The action in state ``s`` at step ``h``, None where the policy has none."""
        problem = self.problem
        state = problem.state_index(h, s)
        problem.actions(h, s)  # refuses the last step, where no action is taken
        pair = int(self.pairs[h][state])
        if pair == NO_ACTION:
            return None
        return problem.naming.action(problem.graph.layers[h], h, pair)

    def __call__(self, h: int, s: Label) -> Label | None:
        return self.action(h, s)

    def __repr__(self) -> str:
        acting = sum(int(np.count_nonzero(row != NO_ACTION)) for row in self.pairs)
        return f"Policy(steps={len(self.pairs)}, an action in {acting} of {sum(map(len, self.pairs))} states)"


AnyPolicy = Policy | Callable[[int, Label], Label] | Mapping[tuple[int, Label], Label] | Sequence[NDArray[Any]]


def fallback(problem: Problem) -> Policy:
    """The fallback as a policy, with an action in every state it can reach.

    Examples:
        >>> sf.exact.fallback(sf.worlds.make("thermal/testing").problem).action(0, 0)
        0
    """
    played = tuple(layer.fallback for layer in problem.graph.layers)
    return Policy(problem, played, problem.intensities(1.0) if problem.has_rays else None)


def policy_rows(world: World, policy: AnyPolicy, starts: IntArray) -> Rows:
    """The policy as checked arrays; one by labels is asked in the states that ``starts`` (of step 0) lead to."""
    problem: Problem = world.problem
    if isinstance(policy, Policy) and (policy.problem is problem or policy.intensities is not None):
        return _checked(problem, policy.pairs)
    if isinstance(policy, Mapping):
        table = policy
        return _asked(world, lambda h, s: table.get((h, s)), starts)
    ask = getattr(policy, "action", policy)
    if callable(ask):
        return _asked(world, ask, starts)
    if isinstance(policy, (tuple, list)):
        return _checked(problem, policy)
    raise InvalidInput(
        "policy cannot be read",
        got=f"a {type(policy).__name__}",
        fix="Give a Policy, a function (h, s) -> action, a dict {(h, s): action}, or H-1 arrays.",
    )


def weights(layer: Layer, row: NDArray[Any]) -> FloatArray:
    """(N,) the probability of each pair; all zero in states without an action."""
    if row.dtype.kind == "f":
        return row
    chances = np.zeros(layer.n_pairs)
    chances[row[row != NO_ACTION]] = 1.0
    return chances


def _checked(problem: Problem, given: Sequence[Any]) -> Rows:
    layers = problem.graph.layers
    if len(given) != len(layers):
        raise InvalidInput(
            "policy has the wrong number of steps",
            got=f"{len(given)} arrays where horizon - 1 = {len(layers)} are expected",
        )
    return tuple(
        _checked_row(problem, h, np.asarray(row), layer)
        for h, (row, layer) in enumerate(zip(given, layers, strict=True))
    )


def _checked_row(problem: Problem, h: int, row: NDArray[Any], layer: Layer) -> NDArray[Any]:
    if row.dtype.kind not in "iuf":
        raise InvalidInput(
            "policy has the wrong dtype",
            where=f"step {h}",
            got=str(row.dtype),
            fix="Give pair indices (integers, one per state) or probabilities (floats, one per pair).",
        )
    chances = row.dtype.kind == "f"
    size, of = (layer.n_pairs, "pair") if chances else (layer.n_states, "state")
    if row.shape != (size,):
        raise InvalidInput(
            "policy has the wrong shape",
            where=f"step {h}",
            got=f"{row.shape} where one entry per {of} ({size}) is expected",
        )
    if chances:
        return _checked_chances(problem, h, row.astype(np.float64, copy=False), layer)
    row = row.astype(np.int64, copy=False)
    foreign = (row != NO_ACTION) & ((row < layer.state_ptr[:-1]) | (row >= layer.state_ptr[1:]))

    def got(state: int) -> str:
        own = layer.pairs_of(state)
        return f"pair {int(row[state])} where {own.start} … {own.stop - 1} are its own"

    refuse_first(foreign, "policy plays a pair of another state", partial(problem.naming.at_state, h), got=got)
    return row


def _checked_chances(problem: Problem, h: int, row: FloatArray, layer: Layer) -> FloatArray:
    bad, rule = ~((row >= 0) & (row < np.inf)), "action probability is negative or not finite"
    refuse_first(bad, rule, partial(problem.naming.at_pair, layer, h), got=lambda pair: repr(float(row[pair])))
    total = np.add.reduceat(row, layer.state_ptr[:-1])  # every state has an action, so no empty sums
    wrong, rule = (total != 0) & ~(np.abs(total - 1) <= PROBABILITY_SUM), "action probabilities do not add up to 1"
    refuse_first(wrong, rule, partial(problem.naming.at_state, h), got=lambda state: repr(float(total[state])))
    return row


def _asked(world: World, ask: Callable[[int, Label], Label], starts: IntArray) -> Rows:
    problem: Problem = world.problem
    reached = np.zeros(problem.graph.n_states(0), bool)
    reached[starts] = True
    rows: list[IntArray] = []
    for h, layer in enumerate(problem.graph.layers):
        row = np.full(layer.n_states, NO_ACTION, np.int64)
        for state in np.flatnonzero(reached).tolist():
            row[state] = _asked_pair(problem, ask, layer, h, state)
        rows.append(freeze(row))
        played = np.repeat(weights(layer, row) > 0, np.diff(layer.pair_ptr))
        reached = np.zeros(problem.graph.n_states(h + 1), bool)
        reached[layer.successor[played & (world.probabilities[h] > 0)]] = True
    return tuple(rows)


def _asked_pair(problem: Problem, ask: Callable[[int, Label], Label], layer: Layer, h: int, state: int) -> int:
    try:
        action = ask(h, problem.naming.states[h][state])
    except LookupError:  # a table without an entry; reaching this state is the error
        return NO_ACTION
    listed = problem.naming.actions[h]
    first, end = layer.state_ptr[state : state + 2].tolist()
    if action is None and (listed is None or None not in listed[first:end]):
        return NO_ACTION
    return problem.naming.pair(layer, h, state, action)
