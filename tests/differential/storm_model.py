"""A world as a Markov decision process of the model checker Storm.

Node 0 is "bad", from which nothing returns. A step with P > 0 whose cost is beyond a bound leads there instead
of to its successor, and so does a terminal state whose own cost is. A state is truly safe if and only if some
scheduler never comes to node 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import stormpy
from stormpy.analysis import compute_prob01_states
from stormpy.datastructures import BitVector, SparseMatrixBuilder
from stormpy.models import SparseMdp, SparseModelComponents, StateLabeling

import surefoot as sf

PROPERTY = 'Pmin=? [F "bad"]'


def states_model(world: sf.World) -> Any:
    """One node per state (layer after layer, from 1 on), one choice per pair."""
    step, last = _steps(world, _first_nodes(world)), _last(world, _first_nodes(world)[-1])
    choices = [np.diff(layer.state_ptr) for layer in world.problem.graph.layers]
    groups = np.concatenate([[1], *choices, np.ones(last.shape[0], int)])
    return _mdp(sp.vstack([_loop(step.shape[1]), step, last]), groups)


def pairs_model(world: sf.World) -> Any:
    """The same with one more node per pair, after those of the states: a state chooses among its pairs."""
    first = _first_nodes(world)
    step, last = _steps(world, first), _last(world, first[-1])
    n_states, n_pairs = step.shape[1], step.shape[0]
    choices = [np.diff(layer.state_ptr) for layer in world.problem.graph.layers]
    choose = sp.hstack([sp.csr_array((n_pairs, n_states)), sp.eye_array(n_pairs)])
    rows = [_wide(_loop(n_states), n_pairs), choose, _wide(last, n_pairs), _wide(step, n_pairs)]
    groups = np.concatenate([[1], *choices, np.ones(last.shape[0] + n_pairs, int)])
    return _mdp(sp.vstack(rows), groups)


def avoiding(model: Any) -> Any:
    """Per node: can "bad" surely be avoided? That is, is the least probability of ever coming there zero?"""
    zero, _ = compute_prob01_states(model, stormpy.parse_property(PROPERTY))
    marks = np.zeros(model.nr_states, bool)
    marks[list(zero)] = True
    return marks


def _first_nodes(world: sf.World) -> list[int]:
    graph = world.problem.graph
    return np.cumsum([1] + [graph.n_states(h) for h in range(graph.horizon)]).tolist()


def _beyond(world: sf.World, cost: Any) -> Any:
    limits, longest = world.problem.limits, world.problem.graph.largest_cost_norm()
    highest = [limit.bound + 1e-9 * (abs(limit.bound) + limit.norm * longest) for limit in limits]  # spec 8
    return np.any(cost > np.array(highest), axis=1)


def _steps(world: sf.World, first: list[int]) -> Any:
    """(all pairs, nodes) P of each pair, with 'bad' in the place of successors beyond a bound."""
    blocks = []
    for h, layer in enumerate(world.problem.graph.layers):
        possible = world.probabilities[h] > 0
        node = np.where(_beyond(world, world.costs[h]), 0, first[h + 1] + layer.successor)
        entries = (world.probabilities[h][possible], (layer.edge_pair()[possible], node[possible]))
        blocks.append(sp.coo_array(entries, shape=(layer.n_pairs, first[-1])))
    return sp.vstack(blocks)


def _last(world: sf.World, n_nodes: int) -> Any:
    n = world.problem.graph.terminal.n_states
    node = n_nodes - n + np.arange(n)
    if world.terminal_costs is not None:
        node = np.where(_beyond(world, world.terminal_costs), 0, node)
    return sp.coo_array((np.ones(n), (np.arange(n), node)), shape=(n, n_nodes))


def _loop(n_nodes: int) -> Any:
    return sp.coo_array(([1.0], ([0], [0])), shape=(1, n_nodes))


def _wide(block: Any, more: int) -> Any:
    return sp.hstack([block, sp.csr_array((block.shape[0], more))])


def _mdp(matrix: Any, groups: Any) -> Any:
    """``matrix`` has a row per choice, ``groups`` the number of choices of each node."""
    table = sp.csr_array(matrix)
    table.sum_duplicates()
    n_rows, n_nodes = table.shape
    builder = SparseMatrixBuilder[float](
        rows=n_rows, columns=n_nodes, entries=table.nnz, has_custom_row_grouping=True, row_groups=n_nodes
    )
    rows = np.repeat(np.arange(n_rows), np.diff(table.indptr))
    begins = np.concatenate([[0], np.cumsum(groups)])[:-1]
    builder.add_next_values(rows.tolist(), table.indices.tolist(), table.data.tolist(), begins.tolist())
    labels = StateLabeling(n_nodes)
    labels.add_label("bad")
    labels.set_states("bad", BitVector(n_nodes, [0]))
    labels.add_label("init")
    labels.set_states("init", BitVector(n_nodes, [1]))
    components = SparseModelComponents[float](transition_matrix=builder.build(), state_labeling=labels)
    return SparseMdp[float](components)
