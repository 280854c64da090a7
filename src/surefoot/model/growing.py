"""Problems that grow: the graph holds what is expanded, and one state of each step for all the rest (spec 9).

A state is *added* with all its actions, their rewards, cost rows and transition features. A pair is *expanded* when all
its successors are states of the graph. Until then its triplets lead to the state OUTSIDE of the next step. OUTSIDE is
forbidden, so nothing that may lead there is certified. It has one action, with the fallback's rows of the same step,
which leads outside again and earns the largest reward: hope assumes the best of whatever is not expanded.

Growth only appends: states, pairs, triplets and rows keep their numbers in every problem that grows out of this one.
The only entries that change are successors of newly expanded pairs, from OUTSIDE to where they lead.
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
from surefoot.model.features import Features, largest_norm
from surefoot.model.from_functions import Explorer, policy_choice, start_labels
from surefoot.model.functions import Functions
from surefoot.model.graph import OUTSIDE, Beyond, IntArray, LayeredGraph, freeze
from surefoot.model.grower import ANY, Grower
from surefoot.model.labels import Label, shown
from surefoot.model.limit import Limit
from surefoot.model.lookup import Lookup
from surefoot.model.outline import Declared, Outline
from surefoot.model.reals import constant
from surefoot.model.rules import check_number_of_layers

if TYPE_CHECKING:
    from surefoot.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Growth:
    """How a problem grows, and how it has grown."""

    explorer: Explorer
    most_states: int
    record: IntArray  # (n, 2) the layer and number of each pair that was expanded since the problem was declared
    refused: IntArray  # (n, 2) pairs that there was no room for, likewise
    first: Problem | None  # as it was declared; None: this one is


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
    """The longest cost row that there may be: as declared, else that of the graph as it is."""
    found = max(largest_norm(x) for x in tables)
    if declared is None:
        return found
    given = constant("longest_row", declared)
    if given < found:
        fix = "Give a bound on the length of every row of cost features, those of states to come included."
        raise InvalidInput("a cost row is longer than declared", got=f"{found!r}, longest_row={given!r}", fix=fix)
    return given


def check_beyond(graph: LayeredGraph) -> None:
    """What stands for states that are not there is forbidden, and no row is longer than declared."""
    if graph.beyond is None:
        return
    longest_found(graph.cost_tables(), graph.beyond.longest_row)
    for h in range(1, graph.horizon):
        if not graph.forbidden(h)[OUTSIDE]:
            raise InvalidInput("state 0 of a graph that has grown must be forbidden", where=f"step {h}")


def grower_of(problem: Problem) -> Grower:
    """To grow a problem; one that was not declared by :meth:`surefoot.Problem.growing` is refused."""
    if problem.growth is None:
        raise InvalidInput("this problem does not grow", fix="Declare it by Problem.growing.")
    return Grower(problem.growth.explorer, problem.horizon, problem)


def refuse_growing(problem: Problem, what: str) -> None:
    """Refuse a problem that grows where all of it is needed."""
    if problem.growth is not None:
        fix = "Declare it whole, by Problem.from_functions or a Plant without most_states, if it is small enough."
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
    """What a checkpoint keeps of how a problem has grown; nothing of one that does not grow."""
    growth = problem.growth
    if growth is None:
        return {}
    return {"growth/record": growth.record.copy(), "growth/refused": growth.refused.copy()}


def grown_as_saved(problem: Problem, saved: Mapping[str, NDArray[Any]]) -> Problem:
    """The problem as it had grown when that was kept; itself where nothing was, or where it does not grow."""
    if problem.growth is None or "growth/record" not in saved or "growth/refused" not in saved:
        return problem
    return replayed(problem.first, saved["growth/record"], saved["growth/refused"])


def fully_grown(problem: Problem, most: int) -> Problem | None:
    """The problem with every pair expanded; None where it has more than so many states."""
    grower, left = grower_of(problem), most - problem.graph.n_all_states
    for h in range(problem.horizon - 1):
        known = np.flatnonzero(~problem.graph.expanded(h)).tolist()
        for pair in (*known, *grower.new_pairs(h)):
            if grower.expand(h, pair, left - grower.added) is None:
                return None
    return grower.problem()


def holding(problem: Problem, logged: Iterable[tuple[int, Label, Sequence[Label]]]) -> Problem:
    """A copy of the problem that holds some logged states, each a step, a name and actions, with these expanded.

    The user's functions say what may follow in any state, whether a learner can use it or not. The copy is for reading
    logs: nothing learns with it, and the problem itself stays as it is. A problem that does not grow is returned.
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
        """Declare a problem by the functions of :meth:`from_functions`; only states that can be used are looked at.

        The graph begins with what the fallback may reach. Between two plans a learner expands the actions whose own
        costs keep the limits, what it hopes for first, and never holds more than ``most_states`` states: there may be
        infinitely many (spec 9). What is certified is what would be certified with the whole graph.

        Args:
            declared: ``actions``, ``successors``, ``reward``, ``cost_features``, ``fallback``, ``center`` and so on.
            most_states: of all steps together.
            longest_row: no vector of cost features is longer, in any state; by default that of the first graph. A
                longer one is an error when it is met.

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
        horizon = check_number_of_layers(horizon)
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
        """As it was declared, before it grew; what is fixed before any data is computed from that."""
        known: Any = self  # which is a Problem
        return (known.began if self.growth is None else self.growth.first) or known

    @property
    def expanded_actions(self) -> tuple[int, int]:
        """How many actions are expanded, of how many in the graph; of a problem that does not grow, all."""
        graph, pairs = self.graph, sum(layer.n_pairs for layer in self.graph.layers)
        if graph.beyond is None:
            return pairs, pairs
        outside = self.horizon - 2  # one action of each step but the first
        return sum(int(graph.expanded(h).sum()) for h in range(self.horizon - 1)) - outside, pairs - outside
