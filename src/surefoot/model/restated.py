"""The same problem in another form: with features in float32, or without the states that cannot be reached.

**float32** takes half the memory. The rounding of cost features is declared as misspecification (spec 3):

    cost_j = ⟨γ_j, x⟩ = ⟨γ_j, fl(x)⟩ + η,    |η| ≤ ‖γ_j‖·‖x − fl(x)‖ ≤ L_j · max ‖x − fl(x)‖

where the maximum is over all cost rows and last states. What is proved about costs then holds for the exact features'.

Transition features are rounded too. Safety does not depend on them, so nothing is declared: a value target Σ P(s')V(s')
is off by at most transition_norm · max V · Σ_{s'} ‖φ − float32(φ)‖, about 6e-8 of its size, and after n rows the
ellipsoid (S6) is too small by at most √n times that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze, pointer_of
from surefoot.model.features import FeatureArray, Features, pieces
from surefoot.model.graph import LayeredGraph
from surefoot.model.growing import refuse_growing
from surefoot.model.labels import shown
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.rays import refuse_rays
from surefoot.model.sparse_rows import SparseRows

#: The most that a row may lose, relative to its largest entry. Rounding loses at most half of this; more is lost only
#: beyond the range of float32, above 3e38 or below 1e-38.
_MOST_LOST = float(np.finfo(np.float32).eps)
_EPS = float(np.finfo(np.float64).eps)


def stored_in_float32(problem: Problem) -> Problem:
    """See :meth:`surefoot.Problem.stored_in_float32`."""
    refuse_rays(problem, "storing features in float32")
    refuse_growing(problem, "storing features in float32")
    graph, naming = problem.graph, problem.naming
    if all(table.dtype == np.float32 for table in _tables(graph)):
        return problem
    known: dict[int, tuple[Features, float]] = {}  # what steps share stays one array

    def rounded(kind: str, x: Features, place: Callable[[int], str]) -> tuple[Features, float]:
        if isinstance(x, SparseRows):
            return x, 0.0  # it is small already
        if id(x) not in known:
            known[id(x)] = round_table(kind, x, place)
        return known[id(x)]

    layers, losses, last = [], [], graph.terminal
    for h, layer in enumerate(graph.layers):
        x, loss = rounded("cost feature", layer.cost_features, partial(naming.at_row, layer, h))
        phi, _ = rounded("transition feature", layer.transition_features, partial(naming.at_edge, layer, h))
        layers.append(replace(layer, cost_features=x, transition_features=phi))
        losses.append(loss)
    if last.cost_features is not None:
        place = partial(naming.at_state, graph.horizon - 1)
        x, loss = rounded("terminal cost feature", last.cost_features, place)
        last = replace(last, cost_features=x)
        losses.append(loss)
    return replace(
        problem,
        graph=replace(graph, layers=tuple(layers), terminal=last),
        limits=tuple(
            widened(limit, prior.norm, max(losses)) for limit, prior in zip(problem.limits, problem.priors, strict=True)
        ),
    )


def _tables(graph: LayeredGraph) -> list[FeatureArray]:
    """The dense ones."""
    decisions = [table for layer in graph.layers for table in (layer.cost_features, layer.transition_features)]
    return [x for x in (*decisions, graph.terminal.cost_features) if not (x is None or isinstance(x, SparseRows))]


def round_table(kind: str, x: FeatureArray, place: Callable[[int], str]) -> tuple[FeatureArray, float]:
    """The table in float32, and max ‖x − fl(x)‖ of its rows, rounded up. Numbers beyond its range are refused."""
    if x.dtype == np.float32:
        return x, 0.0
    stored, loss = np.empty(x.shape, np.float32), 0.0
    for rows, piece in pieces(x):
        stored[rows] = _narrow(piece)
        lost = np.abs(piece - stored[rows])  # exact
        bad = np.flatnonzero(~(lost.max(axis=1) <= _MOST_LOST * np.abs(piece).max(axis=1)))
        if len(bad):
            row = int(bad[0])
            raise InvalidInput(
                f"{kind} does not fit float32",
                where=place(rows.start + row),
                got=shown(piece[row].tolist()),
                fix="Rescale the features, and with them the norms; or keep this problem in float64.",
            )
        loss = max(loss, _longest(lost))
    return freeze(stored), loss


def _narrow(piece: FloatArray) -> NDArray[np.float32]:
    """fl(x). Numbers out of range become infinite or zero, and are refused because of what they lose."""
    with np.errstate(over="ignore", under="ignore"):
        return piece.astype(np.float32)


def _longest(lost: FloatArray) -> float:
    """The length of the longest row (n, d), rounded up."""
    scale = float(lost.max())
    if scale == 0.0:
        return 0.0
    shares = lost / scale  # so that not all squares underflow
    length = scale * math.sqrt(float((shares * shares).sum(axis=1).max()))
    return math.nextafter(length * (1.0 + (lost.shape[1] + 8) * _EPS), math.inf)


def widened(limit: Limit, norm: float, loss: float) -> Limit:
    """The limit for features that are off by at most ``loss``: with ζ + L·loss, rounded up; L ≥ ‖γ‖."""
    if loss == 0.0 or norm == 0.0:
        return limit
    extra = math.nextafter(norm * loss, math.inf)
    return replace(limit, misspecification=math.nextafter(limit.misspecification + extra, math.inf))


# --- pruning -----------------------------------------------------------------------------------------------


def pruned(problem: Problem) -> Problem:
    """The problem without states that cannot be reached; unchanged if there are none or the graph still grows."""
    graph, keep = problem.graph, problem.graph.reachable
    if graph.beyond is not None or all(mask.all() for mask in keep):
        return problem
    refuse_rays(problem, "pruning")
    layers = tuple(_restrict(layer, keep[h], keep[h + 1]) for h, layer in enumerate(graph.layers))
    starts = freeze(_renumber(keep[0])[graph.starts])
    left = LayeredGraph(layers, graph.terminal.part(keep[-1]), starts, graph.anchors)
    return replace(problem, graph=left, naming=problem.naming.kept(keep, graph.layers))


def _renumber(keep: BoolArray) -> IntArray:
    """The new index of every kept entry; the numbers of dropped ones mean nothing."""
    return np.cumsum(keep, dtype=np.int64) - 1


def _restrict(layer: Layer, keep: BoolArray, keep_next: BoolArray) -> Layer:
    if keep.all() and keep_next.all():
        return layer
    pairs = np.repeat(keep, np.diff(layer.state_ptr))
    edges = np.repeat(pairs, np.diff(layer.pair_ptr))
    cost_features = freeze(layer.cost_features[np.repeat(pairs, np.diff(layer.row_ptr))])
    fallback = layer.fallback[keep]
    pair_ptr = freeze(pointer_of(np.diff(layer.pair_ptr)[pairs]))
    return Layer(
        state_ptr=freeze(pointer_of(np.diff(layer.state_ptr)[keep])),
        pair_ptr=pair_ptr,
        successor=freeze(_renumber(keep_next)[layer.successor[edges]].astype(layer.successor.dtype)),
        reward=freeze(layer.reward[pairs]),
        cost_features=cost_features,
        transition_features=cost_features if layer.shares_features else freeze(layer.transition_features[edges]),
        fallback=freeze(np.where(fallback == NO_ACTION, NO_ACTION, _renumber(pairs)[fallback])),
        row_ptr=pair_ptr if layer.per_triplet else freeze(pointer_of(np.diff(layer.row_ptr)[pairs])),
        forbidden=freeze(layer.forbidden[keep]),
    )
