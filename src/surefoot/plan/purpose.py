"""The purpose of an exploring step: the bound that it should narrow, in words (spec 5).

A step explores if the plan plays an action other than the best certified one. It may narrow a bound itself or lead to a
step that does; the largest share ahead along the plan's own play decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surefoot.model.arrays import FloatArray, IntArray, owner
from surefoot.model.layer import NO_ACTION
from surefoot.plan.segments import first_largest, spread

if TYPE_CHECKING:
    from surefoot.plan.plan import Plan

NOT_EXPLORING = -1


@dataclass(frozen=True, eq=False)
class Purposes:
    """What the exploring steps of a plan are for."""

    texts: tuple[str, ...]  # "to narrow …", one per target; the last one is for steps without a target
    number: tuple[IntArray, ...]  # H-1 of (S,): which text is the played action's, NOT_EXPLORING elsewhere
    hoped: float  # V̄ at the start
    certified: float  # V at the start

    def of(self, h: int, state: int) -> str:
        """A sentence; empty where the plan does not explore."""
        number = int(self.number[h][state])
        return "" if number == NOT_EXPLORING else f"{self.texts[number]}; {self.hope}"

    @property
    def hope(self) -> str:
        return f"the best that may still be hoped for is {self.hoped:.4g}, certified is {self.certified:.4g}"


def purposes(plan: Plan) -> Purposes:
    """The purposes of a plan's steps."""
    graph, hope, directed = plan.problem.graph, plan.hope, plan.directed
    gaps = (hope.best.value[0] - hope.sure.value[0])[graph.starts]
    start = int(graph.starts[gaps.argmax()])
    ends = float(hope.best.value[0][start]), float(hope.sure.value[0][start])
    if directed is None:
        return Purposes((), tuple(np.full(layer.n_states, NOT_EXPLORING) for layer in graph.layers), *ends)
    targets = directed.shares.targets
    texts = [_narrow(plan, h, row) for h, row in targets]
    texts.append("to learn more of what can be measured: nothing that is certified tells about what is hoped for")
    share, aim = directed.shares.share[-1], directed.shares.aim[-1]
    number: list[IntArray] = []
    for h in reversed(range(len(graph.layers))):
        share, aim = _ahead(plan, h, share, aim)
        explores = (plan.values.action[h] != hope.sure.action[h]) & (share > 0)
        number.insert(0, np.where(explores, np.where(aim < 0, len(targets), aim), NOT_EXPLORING).astype(np.int64))
    return Purposes(tuple(texts), tuple(number), *ends)


def _ahead(plan: Plan, h: int, share: FloatArray, aim: IntArray) -> tuple[FloatArray, IntArray]:
    """(S,) the largest share from a state on, along the plan's play, and its aim, given those of the next layer."""
    layer, chosen = plan.problem.graph.layers[h], plan.values.action[h]
    assert plan.directed is not None
    own, own_aim = plan.directed.shares.share[h], plan.directed.shares.aim[h]
    if not layer.per_triplet:  # the pair's best row counts on all its edges
        best_row = first_largest(own, layer.row_ptr)
        own, own_aim = spread(own[best_row], layer.pair_ptr), spread(own_aim[best_row], layer.pair_ptr)
    later = share[layer.successor]
    aims = np.where(own >= later, own_aim, aim[layer.successor])
    best = np.maximum(own, later)
    edge = first_largest(best, layer.pair_ptr)[chosen]
    has = chosen != NO_ACTION
    return np.where(has, best[edge], 0.0), np.where(has, aims[edge], -1)


def _narrow(plan: Plan, h: int, row: int) -> str:
    """The bound that a target stands for: of the limit that it fails most."""
    problem, bounds = plan.hope.problem, plan.hope.bounds
    naming, limit = problem.naming, problem.bounds[h]
    if h == problem.horizon - 1:
        assert bounds.terminal_upper is not None
        upper, place = bounds.terminal_upper[row], f"state {naming.states[h][row]!r} at the end"
    else:
        layer, upper = problem.graph.layers[h], bounds.upper[h][row]
        pair = owner(layer.row_ptr, row)
        place = f"{naming.action(layer, h, pair)!r} in {naming.at_state(h, owner(layer.state_ptr, pair))}"
    j = int((upper - limit).argmax())
    return f"to narrow the bound of {place} ({problem.limits[j].name}: now {upper[j]:.4g}, limit {limit[j]:.4g})"
