"""Random problems that are valid by construction.

A problem is built in the order in which its parts depend on each other: options, graph and fallback, hidden
parameters, features of the fallback, bounds and anchors (so the fallback is truly safe), features of everything else
(some cheap, some new, some beyond a bound). Transition features are the probabilities under a few known
kernels and mu mixes the kernels, so probabilities are non-negative and sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from .history import Episode, Step, feed, random_history
from .tables import Action, Anchor, LimitSpec, PairKey, State, StateKey, Tables, TripletKey, dot, norm

__all__ = [
    "Episode",
    "Step",
    "feed",
    "random_history",
    "random_paper_settings",
    "random_paper_tables",
    "random_tables",
    "with_forbidden",
    "with_pair_rows",
]

Vec = list[float]


@dataclass(frozen=True)
class _Scales:
    """Sizes of things. Lengths of features are relative to nothing; margins are in units of cost."""

    size: float  # length of a layer's typical feature
    wobble: float  # how far features of one layer lie from each other
    spread: float  # how far the features of one pair's successors lie from each other
    kernel: float  # length of the kernel block
    norm: tuple[float, float]  # range of the length of gamma
    noise: tuple[float, float]  # range of sigma
    margin: tuple[float, float]  # range of what the bound leaves above the fallback
    zeta: tuple[float, float]  # range of misspecification, when there is any
    reach: tuple[float, float]  # range of log10 of a fresh feature's distance, in wobbles
    cover_spread: bool  # whether bounds leave room for Delta_phi, which the paper's constants need


@dataclass(frozen=True)
class _Options:
    """The kind of problem."""

    horizon: int
    starts: int
    limits: int
    cost_dimension: int
    kernels: int
    anchors: str  # "none", "some" or "all"
    terminal: str  # "none", "some" or "all"
    stationary_costs: bool
    stationary_transitions: bool
    shared: bool
    misspecified: bool
    numeric_labels: bool


@dataclass
class _Graph:
    """States, actions, supports and the fallback; `twin` maps a duplicated action to its original."""

    actions: dict[StateKey, list[Action]] = field(default_factory=dict)
    successors: dict[PairKey, list[State]] = field(default_factory=dict)
    terminals: list[State] = field(default_factory=list)
    fallback: dict[StateKey, Action] = field(default_factory=dict)
    fallback_terminals: list[State] = field(default_factory=list)
    twin: dict[PairKey, PairKey] = field(default_factory=dict)
    traps: set[StateKey] = field(default_factory=set)


def random_tables(
    seed: int,
    *,
    horizon: int | None = None,
    starts: int | None = None,
    limits: int | None = None,
    anchors: bool | None = None,
    terminal_costs: bool | None = None,
    stationary_costs: bool | None = None,
    stationary_transitions: bool | None = None,
    shared_features: bool | None = None,
    misspecified: bool | None = None,
) -> Tables:
    """A random valid problem for the certified profile; whatever is None is drawn."""
    rng = np.random.default_rng([seed, 1])
    drawn = _draw_options(rng)
    options = _Options(
        horizon=drawn.horizon if horizon is None else horizon,
        starts=drawn.starts if starts is None else starts,
        limits=drawn.limits if limits is None else limits,
        cost_dimension=drawn.cost_dimension,
        kernels=drawn.kernels,
        anchors=_override(drawn.anchors, anchors),
        terminal=_override(drawn.terminal, terminal_costs),
        stationary_costs=drawn.stationary_costs if stationary_costs is None else stationary_costs,
        stationary_transitions=(
            drawn.stationary_transitions if stationary_transitions is None else stationary_transitions
        ),
        shared=drawn.shared if shared_features is None else shared_features,
        misspecified=drawn.misspecified if misspecified is None else misspecified,
        numeric_labels=drawn.numeric_labels,
    )
    scales = _Scales(
        size=1.0,
        wobble=0.3,
        spread=0.05,
        kernel=1.0,
        norm=(0.4, 1.2),
        noise=(0.01, 0.08),
        margin=(0.1, 0.6),
        zeta=(0.001, 0.01),
        reach=(-1.0, 0.7),
        cover_spread=False,
    )
    return _Maker(rng, options, scales).tables()


def random_paper_tables(seed: int) -> Tables:
    """A random valid problem whose paper constants exist: anchors everywhere, little spread, wide margins.

    The paper's radius is about d H sqrt(log) and never shrinks, so costs and features are large here.
    Meant for `episodes` of 1e6 and more.
    """
    rng = np.random.default_rng([seed, 2])
    drawn = _draw_options(rng)
    options = _Options(
        horizon=int(rng.integers(3, 6)),
        starts=drawn.starts,
        limits=drawn.limits,
        cost_dimension=int(rng.integers(2, 4)),
        kernels=2,
        anchors="all",
        terminal=drawn.terminal,
        stationary_costs=drawn.stationary_costs,
        stationary_transitions=drawn.stationary_transitions,
        shared=drawn.shared,
        misspecified=drawn.misspecified,
        numeric_labels=drawn.numeric_labels,
    )
    wobble = float(10.0 ** rng.uniform(0.3, 1.0))
    scales = _Scales(
        size=wobble * 2.0,
        wobble=wobble,
        spread=wobble * 0.02,
        kernel=wobble * 0.05,
        norm=(1.0, 12.0),
        noise=(0.02, 0.5),
        margin=(60.0, 240.0),
        zeta=(0.01, 0.2),
        reach=(-1.0, 0.7),
        cover_spread=True,
    )
    return _Maker(rng, options, scales).tables()


def random_paper_settings(seed: int) -> dict[str, Any]:
    """Keywords for the paper profile: verbatim on even seeds, small radius and bonuses on odd ones.

    The verbatim bonuses clip nearly every value to H (spec 7.14) and would leave values untested.
    """
    episodes = 10.0 ** (6 + seed % 7)
    if seed % 2 == 0:
        return {"episodes": episodes}
    return {"episodes": episodes, "value_radius_scale": 0.01, "lipschitz": 1000.0}


def with_pair_rows(tables: Tables, rng: Generator, most: int, stretch: float) -> Tables:
    """The same problem with 1 to `most` cost rows per pair, taken from its triplets and between them (spec 9).

    Off the fallback, rows after the first are longer or shorter by a share of up to `stretch`.
    """
    played = tables.fallback_pairs()
    x: dict[TripletKey, Vec] = {}
    counts: dict[PairKey, int] = {}
    for pair, support in tables.successors.items():
        own = [tables.x[(*pair, s2)] for s2 in support]
        counts[pair] = int(rng.integers(1, most + 1))
        for i in range(counts[pair]):
            shares = rng.dirichlet(np.ones(len(own)))
            between = [float(shares @ np.array(column)) for column in zip(*own, strict=True)]
            factor = 1.0 if i == 0 or pair in played else 1.0 + float(rng.uniform(-stretch, stretch))
            x[(*pair, i)] = _scaled(own[i] if i < len(own) else between, factor)
    return replace(tables, x=x, phi=dict(tables.phi), shared_features=False, deviation={}, pair_rows=counts)


def with_forbidden(tables: Tables, rng: Generator, share: float = 0.5) -> Tables:
    """The same problem with some states forbidden that the fallback cannot reach."""
    last = tables.horizon - 1
    reached = set(tables.fallback) | {(last, s) for s in tables.fallback_terminals()}
    free = [key for h in range(1, last + 1) for key in [(h, s) for s in tables.states(h)] if key not in reached]
    return replace(tables, forbidden={key for key in free if rng.random() < share})


def _override(drawn: str, wanted: bool | None) -> str:
    if wanted is None:
        return drawn
    if not wanted:
        return "none"
    return "all" if drawn == "none" else drawn


def _draw_options(rng: Generator) -> _Options:
    return _Options(
        horizon=int(rng.integers(3, 7)),
        starts=int(rng.integers(1, 3)),
        limits=int(rng.integers(1, 4)),
        cost_dimension=int(rng.integers(2, 5)),
        kernels=int(rng.integers(2, 4)),
        anchors=str(rng.choice(["none", "some", "all"], p=[0.4, 0.15, 0.45])),
        terminal=str(rng.choice(["none", "some", "all"], p=[0.35, 0.25, 0.4])),
        stationary_costs=bool(rng.random() < 0.4),
        stationary_transitions=bool(rng.random() < 0.4),
        shared=bool(rng.random() < 0.5),
        misspecified=bool(rng.random() < 0.2),
        numeric_labels=bool(rng.random() < 0.5),
    )


class _Maker:
    """Builds one problem; each method adds one part."""

    def __init__(self, rng: Generator, options: _Options, scales: _Scales) -> None:
        self.rng, self.o, self.sc = rng, options, scales
        self.H = options.horizon

    def tables(self) -> Tables:
        self.graph = self._graph()
        self._parameters()
        self._kernel_features()
        self._fallback_features()
        self.bounds = self._bounds()
        self.limits = self._limits()
        self._other_features()
        return self._assemble()

    # ------------------------------------------------------------------ graph and fallback

    def _label(self, h: int, i: int) -> State:
        # Numeric labels repeat in every layer, named ones do not.
        return i if self.o.numeric_labels else f"s{h}.{i}"

    def _action_label(self, i: int) -> Action:
        return i if self.o.numeric_labels else ("do", i)

    def _graph(self) -> _Graph:
        g = _Graph()
        layer: list[State] = [self._label(0, i) for i in range(self.o.starts)]
        self.starts = list(layer)
        for h in range(self.H - 1):
            layer = self._one_layer(g, h, layer)
        g.terminals = layer
        self._fallback_and_traps(g)
        for (h, s), actions in list(g.actions.items()):
            self._maybe_twin(g, h, s, actions)
        return g

    def _one_layer(self, g: _Graph, h: int, layer: list[State]) -> list[State]:
        """Actions and supports of a layer; returns the next layer in order of discovery."""
        rng = self.rng
        width = int(rng.integers(2, 6))
        queue: list[int] = []
        found: list[State] = []
        for s in layer:
            count = int(rng.integers(2 if h == 0 else 1, 5))
            g.actions[h, s] = [self._action_label(i) for i in range(count)]
            for a in g.actions[h, s]:
                wanted = min(width, int(rng.integers(1, 4)))
                support: list[State] = []
                while len(support) < wanted:
                    # Deal next states like cards, so that all of them get used.
                    queue = queue or [int(i) for i in rng.permutation(width)]
                    s2 = self._label(h + 1, queue.pop())
                    if s2 not in support:
                        support.append(s2)
                g.successors[h, s, a] = support
                found += [s2 for s2 in support if s2 not in found]
        return found

    def _fallback_and_traps(self, g: _Graph) -> None:
        reached: list[State] = list(self.starts)
        for h in range(self.H - 1):
            following: list[State] = []
            for s in reached:
                a = g.actions[h, s][int(self.rng.integers(len(g.actions[h, s])))]
                g.fallback[h, s] = a
                following += [s2 for s2 in g.successors[h, s, a] if s2 not in following]
            reached = following
        g.fallback_terminals = reached
        off_fallback = [key for key in g.actions if key not in g.fallback]
        g.traps = {key for key in off_fallback if self.rng.random() < 0.35}

    def _maybe_twin(self, g: _Graph, h: int, s: State, actions: list[Action]) -> None:
        """Now and then the same action a second time, before or after the original."""
        if len(actions) >= 4 or self.rng.random() > 0.3:
            return
        original = actions[int(self.rng.integers(len(actions)))]
        twin = self._action_label(len(actions))
        g.actions[h, s] = [twin, *actions] if self.rng.random() < 0.5 else [*actions, twin]
        support = list(g.successors[h, s, original])
        g.successors[h, s, twin] = support
        g.twin[h, s, twin] = (h, s, original)

    # ------------------------------------------------------------------ hidden parameters

    def _unit(self, n: int) -> Vec:
        v = self.rng.standard_normal(n)
        return [float(c) for c in v / np.linalg.norm(v)]

    def _between(self, ends: tuple[float, float]) -> float:
        return float(self.rng.uniform(*ends))

    def _parameters(self) -> None:
        """gamma per layer and limit (cost block only) and the kernels' mixing weights per layer."""
        dc, m = self.o.cost_dimension, self.o.limits
        lengths = [self._between(self.sc.norm) for _ in range(m)]
        layers = [[[c * length for c in self._unit(dc)] for length in lengths] for _ in range(self.H)]
        self.gamma = [layers[0]] * self.H if self.o.stationary_costs else layers
        weights: list[Vec] = []
        for _ in range(self.H - 1):
            w = self.rng.dirichlet(np.ones(self.o.kernels))
            weights.append([float(c) for c in w])
        self.weights = [weights[0]] * (self.H - 1) if self.o.stationary_transitions else weights

    def _kernel_features(self) -> None:
        """Probabilities of each successor under every kernel."""
        self.kernel: dict[TripletKey, Vec] = {}
        for (h, s, a), support in self.graph.successors.items():
            rows = [self.rng.dirichlet(np.ones(len(support))) for _ in range(self.o.kernels)]
            for i, s2 in enumerate(support):
                self.kernel[h, s, a, s2] = [float(row[i]) for row in rows]
        for (h, s, a), (_, _, original) in self.graph.twin.items():
            for s2 in self.graph.successors[h, s, a]:
                self.kernel[h, s, a, s2] = self.kernel[h, s, original, s2]

    # ------------------------------------------------------------------ costs

    def _fallback_features(self) -> None:
        """Cost features of what the fallback plays: one direction per layer, and some variety around it."""
        self.cost_x: dict[TripletKey, Vec] = {}
        self.terminal_x: dict[State, Vec | None] = {}
        dc = self.o.cost_dimension
        directions = [_scaled(self._unit(dc), self.sc.size) for _ in range(self.H)]
        self.base = [directions[0]] * self.H if self.o.stationary_costs else directions
        for (h, s), a in self.graph.fallback.items():
            centre = self._around(h, self.sc.wobble)
            for s2 in self.graph.successors[h, s, a]:
                self.cost_x[h, s, a, s2] = _plus(centre, _scaled(self._unit(dc), self.sc.spread))
        for s in self.graph.fallback_terminals:
            self.terminal_x[s] = self._around(self.H - 1, self.sc.wobble)
        if self.o.terminal == "some":
            for s in self.graph.fallback_terminals[1:]:
                if self.rng.random() < 0.4:
                    self.terminal_x[s] = None

    def _around(self, h: int, distance: float) -> Vec:
        stretched = _scaled(self.base[h], self._between((0.6, 1.1)))
        return _plus(stretched, _scaled(self._unit(self.o.cost_dimension), distance))

    def _true(self, h: int, x: Vec, j: int) -> float:
        return dot(self.gamma[h][j], x)

    def _fallback_costs(self, j: int) -> list[float]:
        costs = [self._true(key[0], x, j) for key, x in self.cost_x.items()]
        if self.o.terminal != "none":
            costs += [self._true(self.H - 1, x, j) for x in self.terminal_x.values() if x is not None]
        return costs

    def _bounds(self) -> list[float]:
        """Above everything the fallback does, whatever the deviation, by a margin."""
        limits = range(self.o.limits)
        longest = [max(norm(layer[j]) for layer in self.gamma) for j in limits]
        self.norms = [length * self._between((1.01, 1.4)) for length in longest]
        self.zeta = [self._between(self.sc.zeta) if self.o.misspecified else 0.0 for _ in limits]
        # Successors differ by at most two spreads, and by the kernel block when it is part of the features.
        apart = 2.0 * self.sc.spread
        if self.o.shared:
            apart += self.sc.kernel * float(np.sqrt(2.0 * self.o.kernels))
        room = [length * apart if self.sc.cover_spread else 0.0 for length in self.norms]
        return [max(self._fallback_costs(j)) + self.zeta[j] + room[j] + self._between(self.sc.margin) for j in limits]

    def _limits(self) -> list[LimitSpec]:
        return [
            LimitSpec(f"limit{j}", self.bounds[j], self._between(self.sc.noise), self.norms[j], self.zeta[j])
            for j in range(self.o.limits)
        ]

    def _other_features(self) -> None:
        """Pairs off the fallback: near what the fallback shows, new, or beyond a bound; traps are always beyond."""
        g = self.graph
        for h, s, a in g.successors:
            if g.fallback.get((h, s)) == a or (h, s, a) in g.twin:
                continue
            kind = str(self.rng.choice(["near", "fresh", "costly"], p=[0.5, 0.25, 0.25]))
            self._pair_features((h, s, a), "costly" if (h, s) in g.traps else kind)
        for (h, s, a), (_, _, original) in g.twin.items():
            for s2 in g.successors[h, s, a]:
                self.cost_x[h, s, a, s2] = self.cost_x[h, s, original, s2]
        for s in g.terminals:
            if s not in self.terminal_x:
                self.terminal_x[s] = self._terminal_features()

    def _pair_features(self, pair: PairKey, kind: str) -> None:
        h, s, a = pair
        centre = self._centre(h, kind)
        for s2 in self.graph.successors[pair]:
            self.cost_x[h, s, a, s2] = _plus(centre, _scaled(self._unit(self.o.cost_dimension), self.sc.spread))

    def _terminal_features(self) -> Vec | None:
        if self.o.terminal == "some" and self.rng.random() < 0.4:
            return None
        return self._centre(self.H - 1, str(self.rng.choice(["near", "fresh", "costly"], p=[0.5, 0.2, 0.3])))

    def _centre(self, h: int, kind: str) -> Vec:
        if kind == "near":
            shown = self._shown(h)
            one = shown[int(self.rng.integers(len(shown)))]
            two = shown[int(self.rng.integers(len(shown)))]
            mixed = _plus(_scaled(one, 0.5), _scaled(two, 0.5))
            return _plus(mixed, _scaled(self._unit(self.o.cost_dimension), 0.1 * self.sc.wobble))
        fresh = self._around(h, self.sc.wobble * 10.0 ** self._between(self.sc.reach))
        return self._pushed(h, fresh) if kind == "costly" else fresh

    def _shown(self, h: int) -> list[Vec]:
        """Features the fallback itself displays at this layer."""
        if h == self.H - 1:
            shown = [self.terminal_x[s] for s in self.graph.fallback_terminals]
            return [x for x in shown if x is not None] or [self.base[h]]
        return [
            self.cost_x[h, s, a, s2]
            for (layer, s), a in self.graph.fallback.items()
            if layer == h
            for s2 in self.graph.successors[h, s, a]
        ]

    def _pushed(self, h: int, x: Vec) -> Vec:
        """Moved along one limit's gamma until its true cost is beyond the bound for every successor."""
        j = int(self.rng.integers(self.o.limits))
        g = self.gamma[h][j]
        beyond = self.zeta[j] + self.sc.spread * norm(g) + self._between(self.sc.margin) * 0.5
        step = max(0.0, self.bounds[j] + beyond - dot(g, x)) / dot(g, g)
        return _plus(x, _scaled(g, step))

    # ------------------------------------------------------------------ the whole

    def _cost_vector(self, cost: Vec, kernel: Vec | None) -> Vec:
        """The cost features; with shared features the kernel block follows, zero for a terminal state."""
        if not self.o.shared:
            return cost
        return [*cost, *([0.0] * self.o.kernels if kernel is None else _scaled(kernel, self.sc.kernel))]

    def _anchors(
        self, x: dict[TripletKey, Vec], terminal: dict[State, Vec | None] | None
    ) -> dict[int, Anchor | None] | None:
        if self.o.anchors == "none":
            return None
        out: dict[int, Anchor | None] = {}
        for h in range(self.H):
            features: Vec | None
            if self.o.stationary_costs:
                features = _first(x, self.graph, 0)
            elif h < self.H - 1:
                features = _first(x, self.graph, h)
            else:
                shown = [] if terminal is None else [terminal[s] for s in self.graph.fallback_terminals]
                features = next((f for f in shown if f is not None), None)
            out[h] = None if features is None else (features, [dot(g, features) for g in self.full_gamma[h]])
        if self.o.anchors == "some" and not self.o.stationary_costs:
            for h in range(self.H):
                if self.rng.random() < 0.4:
                    out[h] = None
        return out

    def _deviations(self) -> Vec:
        return [float(self.rng.uniform(-z, z)) for z in self.zeta]

    def _assemble(self) -> Tables:
        g, o, rng = self.graph, self.o, self.rng
        x = {key: self._cost_vector(self.cost_x[key], self.kernel[key]) for key in self.kernel}
        zeros_c, zeros_k = [0.0] * o.cost_dimension, [0.0] * o.kernels
        self.full_gamma = [[[*c, *zeros_k] if o.shared else c for c in layer] for layer in self.gamma]
        mixing = [_scaled(w, 1.0 / self.sc.kernel) for w in self.weights]
        mu = [[*zeros_c, *w] if o.shared else w for w in mixing]
        phi = x if o.shared else {key: _scaled(k, self.sc.kernel) for key, k in self.kernel.items()}
        terminal_x: dict[State, Vec | None] | None = None
        if o.terminal != "none":
            shown = {s: self.terminal_x[s] for s in g.terminals}
            terminal_x = {s: None if c is None else self._cost_vector(c, None) for s, c in shown.items()}
        # Coarse rewards make ties; twins must earn the same.
        reward = {pair: round(float(rng.random()), 1) for pair in g.successors}
        reward |= {twin: reward[original] for twin, original in g.twin.items()}
        deviation: dict[TripletKey, Vec] = {}
        terminal_deviation: dict[State, Vec] = {}
        if o.misspecified:
            deviation = {key: self._deviations() for key in x}
            terminal_deviation = {s: self._deviations() for s in g.terminals}
        return Tables(
            horizon=self.H,
            starts=self.starts,
            actions=g.actions,
            successors=g.successors,
            reward=reward,
            x=x,
            phi=phi,
            shared_features=o.shared,
            terminal_reward={s: round(float(rng.random()), 1) for s in g.terminals},
            terminal_x=terminal_x,
            fallback=g.fallback,
            anchors=self._anchors(x, terminal_x),
            limits=self.limits,
            transition_norm=max(norm(v) for v in mu) * self._between((1.01, 1.3)),
            stationary_costs=o.stationary_costs,
            stationary_transitions=o.stationary_transitions,
            mu=mu,
            gamma=self.full_gamma,
            deviation=deviation,
            terminal_deviation=terminal_deviation,
        )


def _first(x: dict[TripletKey, Vec], graph: _Graph, h: int) -> Vec:
    """Features of the first triplet that the fallback plays at layer h."""
    s, a = next((s, a) for (layer, s), a in graph.fallback.items() if layer == h)
    return x[h, s, a, graph.successors[h, s, a][0]]


def _plus(u: Vec, v: Vec) -> Vec:
    return [a + b for a, b in zip(u, v, strict=True)]


def _scaled(u: Vec, factor: float) -> Vec:
    return [a * factor for a in u]
