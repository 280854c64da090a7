"""Problems that grow: the graph holds what has been expanded, and in each step one state for all the rest (spec 9).

A state is *added* with all its actions, their rewards, cost rows and transition features. A pair is *expanded* once
all its successors are in the graph. Until then its triplets lead to the state OUTSIDE of the next step, which is
forbidden, so nothing that may lead there is certified. OUTSIDE has one action, with the cost rows of a fallback's
action in that step. It leads outside again and earns the largest reward: hope assumes the best of what is not expanded.

Growth only appends: states, pairs, triplets and rows keep their numbers in every later problem. The only entries that
change are the successors of newly expanded pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import whole as whole_number
from surefoot.errors import InvalidInput
from surefoot.model.anchors import AnchorOf
from surefoot.model.arrays import IntArray, freeze
from surefoot.model.features import Features, largest_norm
from surefoot.model.from_functions import Explorer, policy_choice, start_labels
from surefoot.model.functions import Functions
from surefoot.model.graph import OUTSIDE, Beyond, LayeredGraph
from surefoot.model.grower import ANY, Grower
from surefoot.model.labels import Label, shown
from surefoot.model.limit import Limit
from surefoot.model.lookup import Lookup
from surefoot.model.outline import Declared, Outline
from surefoot.model.reals import constant
from surefoot.model.rules import check_horizon

if TYPE_CHECKING:
    from surefoot.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Growth:
    """How a problem grows, and how it has grown."""

    explorer: Explorer
    most_states: int
    record: IntArray  # (n, 2) the step and number of each pair that was expanded since the problem was declared
    refused: IntArray  # (n, 2) of each pair that there was no room for
    first: Problem | None  # the problem as declared; None if this is it


def fallback_closure(explorer: Explorer, horizon: int, start: Label | list[Label]) -> Grower:
    """Holds the starts and everything that the fallback may reach from them; all other pairs are unexpanded."""
    starts, grower = start_labels(start), Grower(explorer, horizon, None)
    here = [grower.state(0, label) for label in starts]
    if len(set(here)) < len(here):
        raise InvalidInput("a start state is listed twice", where="start", got=shown(starts))
    for h in range(horizon - 1):
        here = grower.follow(h, here)
    return grower


def longest_found(tables: Iterable[Features], declared: float | None) -> float:
    """The bound on the length of cost rows: as declared, else the longest row so far."""
    found = max(largest_norm(x) for x in tables)
    if declared is None:
        return found
    given = constant("longest_row", declared)
    if given < found:
        fix = "Give a bound on the length of every row of cost features, in states not yet added too."
        raise InvalidInput("a cost row is longer than declared", got=f"{found!r}, longest_row={given!r}", fix=fix)
    return given


def check_beyond(graph: LayeredGraph) -> None:
    """The states that stand for all the rest are forbidden, and no row is longer than declared."""
    if graph.beyond is None:
        return
    longest_found(graph.cost_tables(), graph.beyond.longest_row)
    for h in range(1, graph.horizon):
        if not graph.forbidden(h)[OUTSIDE]:
            raise InvalidInput("state 0 of a graph that has grown must be forbidden", where=f"step {h}")


def grower_of(problem: Problem) -> Grower:
    """Expands pairs of a problem, which must have been declared by :meth:`surefoot.Problem.growing`."""
    if problem.growth is None:
        raise InvalidInput("this problem does not grow", fix="Declare it with Problem.growing.")
    return Grower(problem.growth.explorer, problem.horizon, problem)


def refuse_growing(problem: Problem, what: str) -> None:
    """Refuse a problem that grows."""
    if problem.growth is not None:
        fix = "If it is small enough, declare all of it: Problem.from_functions, or a Plant without most_states."
        raise InvalidInput(f"{what} needs the whole graph", got="a problem that grows", fix=fix)


def replayed(problem: Problem, record: IntArray, refused: IntArray) -> Problem:
    """The problem with these pairs expanded, in this order, and these refused: each (n, 2) steps and numbers."""
    grower = grower_of(problem)
    for h, pair in record.tolist():
        grower.expand(h, pair, ANY)
    grown = grower.problem()
    assert grown.growth is not None
    assert grown.graph.beyond is not None
    growth = replace(grown.growth, refused=freeze(refused.copy()))
    beyond = replace(grown.graph.beyond, room=len(refused) == 0)
    return replace(grown, growth=growth, graph=replace(grown.graph, beyond=beyond))


def saved_growth(problem: Problem) -> dict[str, NDArray[Any]]:
    """What a checkpoint stores about how a problem has grown."""
    growth = problem.growth
    return {} if growth is None else {"growth/record": growth.record, "growth/refused": growth.refused}


def grown_as_saved(problem: Problem, saved: Mapping[str, NDArray[Any]]) -> Problem:
    """The problem as it had grown when it was stored; unchanged if nothing was stored or it does not grow."""
    if problem.growth is None or "growth/record" not in saved or "growth/refused" not in saved:
        return problem
    return replayed(problem.first, saved["growth/record"], saved["growth/refused"])


def fully_grown(problem: Problem, most: int) -> Problem | None:
    """The problem with every pair expanded; None if it has more than ``most`` states."""
    grower, left = grower_of(problem), most - problem.graph.n_all_states
    for h in range(problem.horizon - 1):
        known = np.flatnonzero(~problem.graph.expanded(h)).tolist()
        for pair in (*known, *grower.new_pairs(h)):
            if grower.expand(h, pair, left - grower.added) is None:
                return None
    return grower.problem()


def holding(problem: Problem, logged: Iterable[tuple[int, Label, Sequence[Label]]]) -> Problem:
    """A copy of the problem that also holds logged states: for each a step, a name, and actions to expand.

    It is for reading logs, which may contain states that no learner would use. A problem that does not grow is returned
    as it is.
    """
    if problem.growth is None:
        return problem
    grower = Grower(problem.growth.explorer.copy(), problem.horizon, problem)
    for h, name, actions in logged:
        state = grower.state(h, name)
        for action in actions:
            if (pair := grower.pair(h, state, action)) is not None:
                grower.expand(h, pair, ANY)
    return grower.problem()


class Growing(Lookup):
    """A declaration whose graph may grow."""

    growth: Growth | None

    @classmethod
    def growing(
        cls,
        *,
        horizon: int,
        start: Label | list[Label],
        limits: Sequence[Limit] | Limit,
        most_states: int = 100_000,
        longest_row: float | None = None,
        anchor: AnchorOf | None = None,
        features: Sequence[str] | None = None,
        transition_norm: float = 1.0,
        stationary_costs: bool = False,
        stationary_transitions: bool = False,
        **declared: Any,
    ) -> Problem:
        """Declare a problem by functions, as in :meth:`from_functions`, and add states only once they can be used.

        The graph begins with what the fallback may reach. Between plans a learner expands actions whose own costs keep
        the limits, the most promising ones first, up to ``most_states`` states; there may be infinitely many (spec 9).
        What is certified would also be certified with the whole graph.

        Args:
            declared: ``actions``, ``successors``, ``reward``, ``cost_features``, ``fallback``, ``center`` and so on.
            most_states: of all steps together.
            longest_row: a bound on the length of cost features in any state; by default, the longest of the first
                graph. If a longer one turns up, that is an error.

        Examples:
            >>> walk = sf.Problem.growing(
            ...     horizon=5,
            ...     start=0,
            ...     actions=lambda h, s: ["stay", "go"],
            ...     successors=lambda h, s, a: [s] if a == "stay" else [s - 1, s + 1],
            ...     reward=lambda h, s, a: 1.0 if a == "go" else 0.2,
            ...     cost_features=lambda h, s, a: [1.0, s / 10],
            ...     transition_features=lambda h, s, a, s2: [1.0] if a == "stay" else [0.5],
            ...     fallback=lambda h, s: "stay",
            ...     limits=sf.Limit("slope", bound=0.5, noise=0.1, norm=1.0),
            ...     longest_row=2.0,
            ... )
            >>> walk
            Problem(horizon=5, triplets=15, expanded=4 of 8 actions, cost_dim=2, transition_dim=1, limits=[slope])
        """
        horizon = check_horizon(horizon)
        most = whole_number("most_states", most_states, 1)
        try:
            given = Functions(**declared)
        except TypeError as error:  # a function that is missing, or an argument that there is not
            raise TypeError(str(error).replace("Functions.__init__()", "Problem.growing()")) from None
        explorer, owner = Explorer(given), cast("type[Problem]", cls)
        layers, terminal, naming, centers = fallback_closure(explorer, horizon, start).parts()
        at_zero = [None if each is None else each.cost_features for each in centers]
        tables = (*(layer.cost_features for layer in layers), *at_zero, terminal.cost_features)
        longest = longest_found((x for x in tables if x is not None), longest_row)
        starts = freeze(np.arange(len(start_labels(start))))
        choice, beyond = policy_choice(explorer, layers, naming), Beyond(longest, True)
        made = owner._assemble(
            Outline(layers, terminal, naming, starts, choice, centers, beyond),
            Declared(limits, anchor, features, transition_norm, stationary_costs, stationary_transitions),
        )
        nothing = freeze(np.empty((0, 2), np.int64))
        return replace(made, growth=Growth(explorer, most, nothing, nothing, None))

    @property
    def first(self) -> Problem:
        """The problem before it grew; what is fixed before any data is computed from this one."""
        known = cast("Problem", self)
        return (known.began if self.growth is None else self.growth.first) or known

    @property
    def expanded_actions(self) -> tuple[int, int]:
        """How many actions are expanded, and how many the graph has."""
        graph, pairs = self.graph, sum(layer.n_pairs for layer in self.graph.layers)
        if graph.beyond is None:
            return pairs, pairs
        outside = self.horizon - 2  # one action of each step but the first
        return sum(int(graph.expanded(h).sum()) for h in range(self.horizon - 1)) - outside, pairs - outside
