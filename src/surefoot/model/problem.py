"""The declaration of a problem: everything that the learner is told.

A :class:`Problem` is built once, from functions or arrays, and never changes. Agents get a Problem and nothing else;
what they have to learn is in :class:`surefoot.World`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model import from_arrays as arrays
from surefoot.model import functions
from surefoot.model.anchors import AnchorOf, anchors_at, check_anchors, each_once
from surefoot.model.arrays import BoolArray, FloatArray
from surefoot.model.centers import build_rays
from surefoot.model.from_functions import outline_of_functions
from surefoot.model.graph import Anchors, Beyond, LayeredGraph
from surefoot.model.growing import Growing, Growth, check_beyond
from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.model.naming import Labels, Naming, check_features
from surefoot.model.outline import Declared, Outline
from surefoot.model.priors import canonical, with_step_bounds
from surefoot.model.rays import Throttled
from surefoot.model.reals import constant
from surefoot.model.rules import (
    check_flag,
    check_horizon,
    check_layers,
    check_limits,
    check_sizes,
    follow_fallback,
)
from surefoot.model.seals import FileSeal, Seal, check_seals


@dataclass(frozen=True, eq=False)
class Problem(Growing, Throttled):
    """What is known about a plant (spec 2). Build one with :meth:`from_functions` or :meth:`from_arrays`.

    Examples:
        >>> heat = {"cold": 0.0, "warm": 0.4, "hot": 0.8}
        >>> problem = sf.Problem.from_functions(
        ...     horizon=3,
        ...     start="cold",
        ...     actions=lambda h, s: ["wait", "heat"],
        ...     successors=lambda h, s, a: ["cold"] if a == "wait" else ["warm", "hot"],
        ...     reward=lambda h, s, a: 1.0 if a == "heat" else 0.2,
        ...     cost_features=lambda h, s, a, s2: [1.0, heat[s2]],
        ...     fallback=lambda h, s: "wait",
        ...     limits=sf.Limit("stress", bound=0.7, noise=0.1, norm=1.0),
        ... )
        >>> problem
        Problem(horizon=3, triplets=12, cost_dim=2, transition_dim=2, limits=[stress])
        >>> problem.states(1), problem.successors(0, "cold", "heat"), problem.fallback_action(0, "cold")
        (<3 states: 'cold', 'warm', 'hot'>, ('warm', 'hot'), 'wait')
        >>> sf.Problem.load(problem.save("heater.json")).digest == problem.digest
        True
    """

    graph: LayeredGraph
    naming: Naming
    limits: tuple[Limit, ...]
    transition_norm: float
    stationary_costs: bool
    stationary_transitions: bool
    seals: tuple[Seal, ...] = ()  # of arrays that others may still write to
    growth: Growth | None = None  # how the graph grows, if it does
    began: Problem | None = None  # what it began as, if it has grown but its functions are not known

    def __post_init__(self) -> None:
        used = {id(array) for array in self.graph.arrays()} if self.seals else ()
        object.__setattr__(self, "seals", tuple(seal for seal in self.seals if id(seal.array) in used))

    @classmethod
    def from_functions(
        cls,
        *,
        horizon: int,
        start: Label | list[Label],
        actions: functions.Actions,
        successors: functions.Successors,
        reward: functions.Reward,
        cost_features: functions.CostFeatures,
        fallback: functions.FallbackPolicy,
        limits: Sequence[Limit] | Limit,
        transition_features: functions.Features | None = None,
        terminal_reward: Callable[[Label], float] | None = None,
        terminal_cost_features: Callable[[Label], ArrayLike | None] | None = None,
        forbidden: functions.Forbidden | None = None,
        anchor: AnchorOf | None = None,
        center: functions.Center | None = None,
        features: Sequence[str] | None = None,
        transition_norm: float = 1.0,
        stationary_costs: bool = False,
        stationary_transitions: bool = False,
    ) -> Problem:
        """Declare a problem with plain functions of the step ``h``, state, action and next state.

        Args:
            horizon: number of steps H ≥ 2; actions are taken at steps 0 … H-2.
            start: the start state, or a list of several.
            actions: ``actions(h, s)`` lists the actions of a state; ties go to the first.
            successors: ``successors(h, s, a)`` lists every state that may follow. Too many is safe, too few is not.
            reward: ``reward(h, s, a)`` in [0, 1].
            cost_features: ``cost_features(h, s, a, s2)``, the vector x with cost = ⟨γ, x⟩. Write a function of
                (h, s, a) if the cost does not depend on the next state: it has fewer rows to bound (spec 9).
            fallback: ``fallback(h, s)``, the known safe action, in every state the fallback can reach.
            limits: one :class:`Limit` or several, all on the same features.
            transition_features: the vector φ with P(s2|s,a) = ⟨μ, φ⟩; by default the cost features of (h, s, a, s2).
            terminal_reward: ``terminal_reward(s)`` in [0, 1] for the last step; 0 by default.
            terminal_cost_features: ``terminal_cost_features(s)`` for the last step; by default, or if it returns None,
                there is no cost.
            forbidden: ``forbidden(h, s)`` is True if entering the state is forbidden: a known limit (spec 9).
            anchor: ``anchor(h)`` returns ``(features, cost)`` if a cost at step h is known exactly, or ``(features,
                cost, tolerance)``; a list of such tuples, the fallback's first; or None.
            center: ``center(h, s)``, the action at intensity 0 of all other actions of s; or ``center(h, s, a)`` for
                each action. None: the action has no intensity (spec 9).
            features: names of the cost features, for priors, anchors and explanations.
            transition_norm: a bound on ‖μ‖.
            stationary_costs, stationary_transitions: the hidden parameters are the same at every step.
        """
        horizon = check_horizon(horizon)
        given = functions.Functions(
            actions=actions,
            successors=successors,
            reward=reward,
            cost_features=cost_features,
            fallback=fallback,
            transition_features=transition_features,
            terminal_reward=terminal_reward,
            terminal_cost_features=terminal_cost_features,
            forbidden=forbidden,
            center=center,
        )
        declared = Declared(limits, anchor, features, transition_norm, stationary_costs, stationary_transitions)
        return cls._assemble(outline_of_functions(horizon, start, given), declared)

    @classmethod
    def from_arrays(
        cls,
        *,
        horizon: int,
        start: int | Sequence[int],
        state_ptr: arrays.PerLayer,
        pair_ptr: arrays.PerLayer,
        successors: arrays.PerLayer,
        reward: arrays.PerLayer,
        cost_features: arrays.Tables,
        fallback: arrays.PerLayer,
        limits: Sequence[Limit] | Limit,
        transition_features: arrays.Tables | None = None,
        terminal_reward: FloatArray | None = None,
        terminal_cost_features: arrays.Tables | None = None,
        terminal_has_cost: BoolArray | None = None,
        row_ptr: arrays.PerLayer | None = None,
        forbidden: BoolArray | Sequence[BoolArray | None] | None = None,
        anchor: AnchorOf | None = None,
        center: arrays.PerLayer | None = None,
        center_cost_features: arrays.PerLayer | None = None,
        features: Sequence[str] | None = None,
        transition_norm: float = 1.0,
        stationary_costs: bool = False,
        stationary_transitions: bool = False,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
        beyond: Beyond | None = None,
    ) -> Problem:
        """Declare a problem with CSR arrays, of the shapes in :mod:`surefoot.model.graph`.

        Examples:
            >>> limit = sf.Limit("wear", bound=0.8, noise=0.05, norm=1.0)
            >>> loop = {"state_ptr": np.array([0, 2]), "pair_ptr": np.array([0, 1, 2]), "successors": np.array([0, 0])}
            >>> known = {"reward": np.array([0.2, 1.0]), "fallback": np.array([0]), "limits": limit}
            >>> features = {"cost_features": np.array([[0.5], [0.9]]), "transition_features": np.ones((2, 1))}
            >>> problem = sf.Problem.from_arrays(horizon=4, start=0, **loop, **known, **features)
            >>> problem.actions(0, 0), problem.fallback_action(0, 0)
            ((0, 1), 0)

        An argument of the decision steps is one ``ndarray`` for all H-1 of them, or a list of H-1 arrays:

        - ``state_ptr`` (S+1,) and ``pair_ptr`` (N+1,) int64, ``successors`` (E,) int32 or int64, ``reward`` (N,);
        - ``cost_features`` (E, dc), or (N, dc) if costs do not depend on the successor; with ``row_ptr`` (N+1,) int64,
          rows row_ptr[p] to row_ptr[p+1]-1 belong to pair p (spec 9); ``transition_features`` (E, dp);
        - ``fallback`` (S,) int64, the number of the fallback's action among the state's own, or -1;
        - ``center`` (N,) int64, which makes an action a ray (spec 9): the number, among the state's own, of the action
          that it is at intensity 0, or -1. A ray also lists the successors of its centre, with transition features 0
          where only the centre leads. ``center_cost_features`` (R, dc), at intensity 0, are needed if rows belong to
          triplets and the ray has successors that its centre does not have.

        Others: ``start``, a state number or several; ``forbidden`` (S,) bool for all H steps, or a list with an array
        or None for each; ``terminal_reward`` (S',), ``terminal_cost_features`` (S', dc) and, if only some of the last
        states have a cost, ``terminal_has_cost`` (S',) bool; ``state_labels`` (H lists, one label per state) and
        ``action_labels`` (H-1 lists, one per pair), where None stands for numbers; ``beyond``, in a graph that grows
        and whose triplets to state 0 lead to states that it does not hold yet (spec 9).

        Arrays of up to 16 MiB in total are copied. Larger ones, and the arrays they are views of, become read-only
        instead and must not be changed; a checksum is verified before every plan (:mod:`surefoot.model.seals`).

        Features may be float32 arrays, at all steps alike: the hidden costs and probabilities are then linear in
        exactly these numbers. If they were rounded, declare the exact features and call :meth:`stored_in_float32`.

        Features may also be sparse: a ``csr_array`` or ``csr_matrix`` of :mod:`scipy.sparse`, at all steps alike.
        Regressions then keep a small matrix for each set of columns that occur together, so even one column per
        triplet, pair or state fits in memory.
        """
        given, seals = arrays.outline_of_arrays(
            check_horizon(horizon),
            start,
            {
                "state_ptr": state_ptr,
                "pair_ptr": pair_ptr,
                "successors": successors,
                "reward": reward,
                "cost_features": cost_features,
                "transition_features": transition_features,
                "terminal_reward": terminal_reward,
                "terminal_cost_features": terminal_cost_features,
                "terminal_has_cost": terminal_has_cost,
                "row_ptr": row_ptr,
                "forbidden": forbidden,
                "fallback": fallback,
                "center": center,
                "center_cost_features": center_cost_features,
                "state_labels": state_labels,
                "action_labels": action_labels,
            },
            beyond,
        )
        declared = Declared(limits, anchor, features, transition_norm, stationary_costs, stationary_transitions)
        problem = cls._assemble(given, declared)
        arrays.claim(problem.graph)  # last: a refused declaration changes nothing
        return replace(problem, seals=seals)

    @classmethod
    def _assemble(cls, given: Outline, known: Declared) -> Problem:
        """Make a problem; every rule is checked here."""
        if known.anchor is not None:
            functions.check_function("anchor", known.anchor)
        horizon, dim = len(given.layers) + 1, given.layers[0].cost_features.shape[1]
        limits = tuple(with_step_bounds(limit, horizon) for limit in check_limits(known.limits))
        norm = constant("transition_norm", known.transition_norm)
        if norm <= 0:
            raise InvalidInput("transition_norm must be positive", got=repr(norm), fix="Give a bound on ‖μ‖.")
        same_costs = check_flag("stationary_costs", known.stationary_costs)
        same_transitions = check_flag("stationary_transitions", known.stationary_transitions)
        naming = replace(given.naming, features=check_features(known.features, dim))
        check_layers(given, naming)
        layers, terminal = follow_fallback(given, naming)
        limits = tuple(canonical(limit, dim, naming.features) for limit in limits)
        anchors: list[Anchors | None] = [None] * horizon
        if known.anchor is not None:
            for h in range(len(layers) + (terminal.cost_features is not None)):
                found = functions.call("anchor", known.anchor, h)
                anchors[h] = anchors_at(found, h, dim, len(limits), naming.features)
        rays = build_rays(layers, given.centers, naming, given.beyond is not None)
        graph = LayeredGraph(layers, terminal, given.starts, each_once(anchors), given.beyond, rays)
        made = cls(graph, naming, limits, norm, same_costs, same_transitions)
        check_beyond(graph)
        check_anchors(made)
        check_sizes(made)
        return made

    # --- other forms of it ------------------------------------------------------------------------------

    def pruned(self) -> Problem:
        """The same problem without states that cannot be reached; no value changes."""
        from surefoot.model.restated import pruned

        return pruned(self)

    def verify(self) -> None:
        """Raise AssumptionBroken if an array that was too large to copy has been changed."""
        check_seals(self.seals)

    def stored_in_float32(self) -> Problem:
        """The same problem with features stored in float32: half the memory; all arithmetic is still in float64.

        Each limit then declares ``norm`` × max ‖x − float32(x)‖ more ``misspecification`` (spec 3), so the guarantee is
        still about the costs of the exact features. Anchors stay exact, and sparse features stay as they are. Features
        outside the range of float32 are refused. Details: :mod:`surefoot.model.restated`.
        """
        from surefoot.model.restated import stored_in_float32

        return stored_in_float32(self)

    def __repr__(self) -> str:
        graph = self.graph
        names, expanded = ", ".join(limit.name for limit in self.limits), ""
        if graph.beyond is not None:
            expanded = "expanded={} of {} actions, ".format(*self.expanded_actions)
        return (
            f"Problem(horizon={self.horizon}, triplets={sum(y.n_edges for y in graph.layers)}, {expanded}"
            f"cost_dim={self.graph.cost_dim}, "
            f"transition_dim={self.graph.transition_dim}, limits=[{names}])"
        )

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the problem, exactly, as JSON (``.json``), arrays (``.npz``) or a new folder (``.problem``)."""
        from surefoot.model import files

        return files.save_problem(self, Path(path))

    @staticmethod
    def load(path: str | Path, *, mapped: bool = False) -> Problem:
        """Read and check a problem written by :meth:`save`; nothing in the file is run.

        ``mapped``: the arrays of a ``.problem`` stay on disk, and plans are made without loading them into memory.
        """
        from surefoot.model import files

        return files.load_problem(Path(path), mapped)

    @cached_property
    def mapped(self) -> bool:
        """True if the arrays are on disk; then nothing of their size may be kept in memory."""
        return any(isinstance(seal, FileSeal) for seal in self.seals)

    @cached_property
    def digest(self) -> str:
        """A sha256, in hex, of the whole declaration, however it is stored."""
        from surefoot.model import files

        self.verify()
        return files.digest(self)
