"""LSVI-NEW transcribed from the specification, sections 3 to 6, with dicts and loops.

Slow on purpose. Every plan is computed afresh from the raw rows, nothing is updated incrementally, and every
formula stands where the specification has it: `spec 3` in a comment points to that section. The hidden truth
in `Tables` is never read here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .paper import PaperConstants, joint_dimension, paper_constants
from .scale import cost_scales, largest_cost_norm
from .tables import Action, PairKey, State, StateKey, Tables, TripletKey, dot, norm

Made = TypeVar("Made")
Vector = NDArray[np.floating[Any]]
DEVIATIONS = ("clip", "lazy", "fallback", "features", "radius", "guard")  # from the letter of the paper
MOST_VISITED = 64  # rows of a regression whose visits are counted one by one
CROSSING_TOLERANCE = 1e-9  # of a limit's scale: how far lower may pass upper before it is more than rounding


@dataclass(frozen=True)
class CostRow:
    """One observed cost vector; layer H-1 holds the terminal observations."""

    h: int
    x: list[float]
    cost: list[float]


@dataclass(frozen=True)
class ValueRow:
    """One target of the value regression, made with the plan in force at the time (spec 6)."""

    h: int
    features: list[float]
    target: float


@dataclass(frozen=True)
class Ellipsoid:
    """{γ : (γ − centre)ᵀ W⁻¹ (γ − centre) ≤ radius²}, W = rootᵀ root (spec 3). With more digits: W may be huge where
    zᵀWz is not."""

    root: Vector
    centre: Vector
    radius: float

    def reach(self, z: Vector) -> tuple[float, float]:
        """⟨centre, z⟩ and √(zᵀWz)."""
        turned = self.root @ z
        return float(self.centre @ z), math.sqrt(float(turned @ turned))

    @property
    def W(self) -> Vector:
        return np.asarray(self.root.T @ self.root, float)


def pull_of(gram: Vector, beside: Vector) -> Vector:
    """G A⁻¹, A = G + λN."""
    return _solved(gram.astype(np.longdouble) + beside, gram).T


def noise_and_ball(
    gram: Vector,
    b: Vector,
    beside: Vector,
    pull: Vector,
    length: float,
    R: float,
    c: float,
    told_less: float = 0.0,
) -> Ellipsoid:
    """(S3) for one c, A = G + λN, without a decomposition; pull is G A⁻¹. What the data tell of the radius is taken to
    be shorter by told_less."""
    G, b = gram.astype(np.longdouble), b.astype(np.longdouble)
    root = _root_of_inverse(pull @ G + c * np.eye(len(b)))  # of W
    told = max(0.0, math.sqrt(c * (b @ _solved(c * (G + beside) + G @ G, b[:, None])[:, 0])) - told_less)
    square = R * R + c * length * length - told * told
    radius = math.sqrt(square) if square >= 0.0 else math.nan
    return Ellipsoid(root, root.T @ (root @ (pull @ b)), radius)


def _root_of_inverse(matrix: Vector) -> Vector:
    """K⁻¹ of matrix = KKᵀ, K a lower triangle: K⁻ᵀK⁻¹ is the inverse."""
    K, inverse = np.zeros_like(matrix), np.eye(len(matrix), dtype=matrix.dtype)
    for k in range(len(matrix)):
        column = matrix[k:, k] - K[k:, :k] @ K[k, :k]
        K[k:, k] = column / np.sqrt(column[0])
        inverse[k, : k + 1] = (inverse[k, : k + 1] - K[k, :k] @ inverse[:k, : k + 1]) / K[k, k]
    return inverse


def _solved(matrix: Vector, right: Vector) -> Vector:
    """matrix⁻¹ right, by elimination, with all the digits that there are: c may be tiny beside G."""
    both = np.hstack([matrix, right.astype(np.longdouble)])
    for i in range(len(matrix)):
        k = i + int(abs(both[i:, i]).argmax())
        if k != i:
            both[[i, k]] = both[[k, i]]
        both[i] /= both[i, i]
        others = both[:, i, None].copy()
        others[i] = 0.0
        both[:, i:] -= others * both[i, i:]
    return np.asarray(both[:, len(matrix) :])


@dataclass(frozen=True)
class Beside:
    """What stands beside the Gram matrix in least squares: λN."""

    ridge: float  # λ
    N: Vector

    @property
    def matrix(self) -> Vector:
        return self.ridge * self.N

    def noise(self, gram: Vector, sigma: float, log_term: float) -> float:
        """σ √( log det(G + λN) − log det λN + 2 log_term )."""
        return sigma * math.sqrt(_log_det(gram + self.matrix) - _log_det(self.matrix) + 2.0 * log_term)


def least_noise(length: float, beside: Beside) -> float:
    """R is at least this, whatever it comes to."""
    return 1e-6 * length * math.sqrt(beside.ridge)


def shape_of(rows: Sequence[Sequence[float]], s: float, dim: int) -> Vector:
    """N = dc · mean(z zᵀ) / s + I/100 over the rows z of a regression."""
    N = np.eye(dim) / 100.0
    for z in rows:
        N += dim / s / len(rows) * np.outer(z, z)
    return N


@dataclass(frozen=True)
class Counted:
    """An ellipsoid for the noise alone, and what the model errors of visited rows may move its centre by (spec 3)."""

    noise: Ellipsoid
    moves: list[tuple[float, Vector]]  # per visited row: n times its error, and M z
    rest: float  # the root of the summed squares of the errors of all other rows
    pulled: Vector  # G A⁻¹ G: M G Mᵀ is no more than W G A⁻¹ G W

    def reach(self, z: Vector) -> tuple[float, float]:
        """What is told of z, and how far off it may be."""
        mean, u = self.noise.reach(z)
        moved = sum(amount * abs(float(move @ z)) for amount, move in self.moves)
        y = self.noise.root.T @ (self.noise.root @ z)
        return mean, self.noise.radius * u + moved + self.rest * math.sqrt(max(0.0, float(y @ self.pulled @ y)))


def dual_ellipsoids(gram: Vector, b: Vector, beside: Beside, length: float, R: float) -> list[Ellipsoid]:
    """Noise and ball, for every c."""
    multipliers, pull = (0.01, 0.1, 1.0, 10.0), pull_of(gram, beside.matrix)
    return [noise_and_ball(gram, b, beside.matrix, pull, length, R, k * (R / length) ** 2) for k in multipliers]


def count_visits(
    rows: Sequence[tuple[Sequence[float], Vector, float]], b: Vector, beside: Beside, length: float, R: float
) -> Counted | None:
    """Of rows (x, z, the most that its model error can be) in the order in which they were seen, with sum b; R: of the
    noise alone. None where errors do not matter."""
    whole = math.sqrt(sum(error * error for _, _, error in rows))
    if length == 0.0 or not whole > 0.1 * R:
        return None
    visits: dict[tuple[float, ...], tuple[float, Vector]] = {}
    rest = 0.0
    for x, z, error in rows:
        if not any(x):
            continue
        key = tuple(x)
        if key in visits or len(visits) < MOST_VISITED:
            visits[key] = visits.get(key, (0.0, z))[0] + error, z
        else:
            rest += error * error
    gram = sum((np.outer(z, z).astype(np.longdouble) for _, z, _ in rows), np.zeros((len(b), len(b)), np.longdouble))
    R = max(R, least_noise(length, beside))
    c, pull = 0.01 * (R / length) ** 2, pull_of(gram, beside.matrix)
    noise = noise_and_ball(gram, b, beside.matrix, pull, length, R, c, told_less=whole)
    M = noise.root.T @ (noise.root @ pull)
    moves = [(amount, M @ z) for amount, z in visits.values()]
    return Counted(noise, moves, math.sqrt(rest), pull @ gram)


@dataclass(frozen=True)
class CostFit:
    """The cost regression of one layer: the ellipsoids of every limit, and A of the first ridge."""

    ellipsoids: list[list[Ellipsoid]]
    matrix: Vector
    counted: list[Counted | None]

    def told_of(self, j: int, z: Vector) -> list[tuple[float, float]]:
        """(what is told, how far off it may be) by everything that the data say of limit j."""
        found = [(mean, one.radius * u) for one in self.ellipsoids[j] for mean, u in [one.reach(z)]]
        more = self.counted[j]
        return found if more is None else [*found, more.reach(z)]


@dataclass(frozen=True)
class ValueFit:
    """The value regression of one layer."""

    matrix: Vector
    estimate: Vector
    radius: float


@dataclass
class Plan:
    """One plan, as dicts. `spread` is what `omega` maximises: relative width, or u in the paper profile."""

    replans: int
    upper: dict[TripletKey, list[float]] = field(default_factory=dict)
    lower: dict[TripletKey, list[float]] = field(default_factory=dict)
    terminal_upper: dict[State, list[float]] = field(default_factory=dict)
    terminal_lower: dict[State, list[float]] = field(default_factory=dict)
    spread: dict[TripletKey, float] = field(default_factory=dict)
    terminal_spread: dict[State, float] = field(default_factory=dict)
    consistent: bool = True
    condition1: dict[PairKey, bool] = field(default_factory=dict)
    certified: dict[PairKey, bool] = field(default_factory=dict)
    safe: set[StateKey] = field(default_factory=set)
    omega: dict[PairKey, float] = field(default_factory=dict)
    future: dict[StateKey, float] = field(default_factory=dict)
    q: dict[PairKey, float] = field(default_factory=dict)
    value: dict[StateKey, float] = field(default_factory=dict)
    action: dict[StateKey, Action] = field(default_factory=dict)


class Reference:
    """The agent: begin_episode, act, observe, observe_terminal, end_episode; `plan` is what it goes by.

    `value_ridge=None` is 1 (certified) or d (paper); `initial_episodes=None` is 0 or the paper's min(K', K).
    """

    def __init__(
        self,
        tables: Tables,
        failure_probability: float,
        profile: str = "certified",
        ridges: Sequence[float] | None = None,
        shaped: float | None = None,
        value_ridge: float | None = None,
        optimism: float = 1.0,
        explore: tuple[float, float, float] = (0.1, 0.02, 0.02),
        slack: float | Sequence[float] | None = None,
        replan_growth: float | None = None,
        initial_episodes: int | None = None,
        episodes: float | None = None,
        feature_bound: float | None = None,
        coverage_rate: float = 1.0,
        value_radius_scale: float = 1.0,
        lipschitz: float = 1.0,
        safety_radius_scale: float = 1.0,
        literal_future: bool = False,
        deviations: Sequence[str] = DEVIATIONS,
    ) -> None:
        if profile not in ("certified", "paper"):
            raise ValueError(f"profile must be 'certified' or 'paper', but got {profile!r}")
        self.t = tables
        self.p = failure_probability
        self.paper = profile == "paper"
        self.w1, (self.w2, self.w3, self.w4) = optimism, explore
        self.deviations = deviations
        self.replan_growth = (0.1 if "lazy" in deviations else 0.0) if replan_growth is None else replan_growth
        self.safety_radius_scale = safety_radius_scale
        self.literal_future = literal_future
        self.H, self.m = tables.horizon, len(tables.limits)
        self.dc = len(next(iter(tables.x.values())))
        self.dp = len(next(iter(tables.phi.values())))
        self.d = joint_dimension(tables)
        self.layers = [tables.states(h) for h in range(self.H)]
        self._check_stationary_anchors()
        self.kappa = self._kappa() if shaped is None and ridges is None and not self.paper else float(shaped or 0.0)
        self.ridges = self._ridges(ridges)
        self._shapes: dict[int, Vector] = {}
        self.value_ridge = (float(self.d) if self.paper else 1.0) if value_ridge is None else value_ridge
        self.slack = None if self.paper else self._slack(slack)
        self.constants: PaperConstants | None = None
        if self.paper:
            self.constants = paper_constants(
                tables,
                failure_probability,
                ridge=self.ridges[0],
                episodes=episodes,
                feature_bound=feature_bound,
                coverage_rate=coverage_rate,
                value_radius_scale=value_radius_scale,
                lipschitz=lipschitz,
                union="radius" in deviations,
            )
        self.initial_episodes = self._initial_episodes(initial_episodes, episodes)
        self.cost_rows: list[CostRow] = []
        self.value_rows: list[ValueRow] = []
        self.episodes_ended = 0
        self.replans = 0
        self.start: State = tables.starts[0]
        self.saw_data = False
        self._make_plan()

    # ------------------------------------------------------------------ the agent's five calls

    @property
    def plan(self) -> Plan:
        """The plan in force: that of the episode's own start (they differ in the paper profile only)."""
        return self.plans[self.start]

    def begin_episode(self, start: State) -> None:
        if start not in self.t.starts:
            raise ValueError(f"start must be one of {self.t.starts}, but got {start!r}")
        self.start = start
        self.saw_data = False

    def act(self, h: int, s: State) -> Action:
        if self.episodes_ended < self.initial_episodes:
            return self.t.fallback[h, s]
        return self.plan.action[h, s]

    def observe(
        self, h: int, s: State, a: Action, s2: State, cost: Sequence[float], features: Sequence[float] | None = None
    ) -> None:
        own = self.t.measured_row((h, s, a, s2))
        assert (own is None) == (features is not None), "exact features, exactly where a pair has several rows"
        self.cost_rows.append(CostRow(h, list(features or self.t.x[own]), list(cost)))  # type: ignore[index]
        features = self._value_features(self.plan.value, (h, s, a))
        self.value_rows.append(ValueRow(h, features, self.plan.value[h + 1, s2]))
        self.saw_data = True

    def observe_terminal(self, s: State, cost: Sequence[float]) -> None:
        x = self.t.terminal_features(s)
        if x is not None:
            self.cost_rows.append(CostRow(self.H - 1, x, list(cost)))
            self.saw_data = True

    def end_episode(self) -> None:
        self.episodes_ended += 1
        if self._must_replan():
            self.replans += 1
            self._make_plan()

    # ------------------------------------------------------------------ settings

    def _check_stationary_anchors(self) -> None:
        """Spec 6, stationary problems: one anchor for all layers, or none."""
        if self.t.stationary_costs and any(self.t.anchor(h) != self.t.anchor(0) for h in range(self.H)):
            raise ValueError("stationary costs need one anchor for all layers, or none")

    def _ridges(self, given: Sequence[float] | None) -> list[float]:
        """Spec 3: s, the mean square of z over all cost rows; paper profile: the one ridge d."""
        if given is not None:
            if (self.paper or self.kappa) and len(given) != 1:
                raise ValueError(f"the paper profile, or a ridge with a shape, is one ridge, but got {len(given)}")
            return [float(r) for r in given]
        return [float(self.d)] if self.paper else [self._s()]

    def _kappa(self) -> float:
        """Spec 3: 100 (dc + 10) max σ²/room², between 1/1000 and 10; room is the least |bound - anchor's cost|
        of a step that has costs."""
        most, last = 0.0, self.H - (self.t.terminal_x is None)
        for j in range(self.m):
            room = min(abs(self._bound(h, j) - self._known_cost(h, j)) for h in range(last))
            most = max(most, (self._sigma(j) / room) ** 2 if room > 0.0 else math.inf)
        return min(10.0, max(0.001, 100.0 * (self.dc + 10) * most))

    def _sigma(self, j: int) -> float:
        return self.t.limits[j].noise

    def _known_cost(self, h: int, j: int) -> float:
        """0 without an anchor."""
        anchor = self.t.anchor(h)
        return 0.0 if anchor is None else anchor[1][j]

    def _declared_rows(self) -> list[tuple[int, list[float]]]:
        """All cost rows of the graph, with their layers."""
        rows = [(key[0], x) for key, x in self.t.x.items()]
        return rows + [(self.H - 1, x) for x in map(self.t.terminal_features, self.layers[-1]) if x is not None]

    def _s(self) -> float:
        squares = [norm(self._project(h, x)[0]) ** 2 for h, x in self._declared_rows()]
        return max(sum(squares) / len(squares), 1e-6 * largest_cost_norm(self.t) ** 2)

    def _beside(self, h: int) -> list[Beside]:
        """λN for every ridge: of one with the shape of the features, or even ones. Of the declaration alone."""
        if not self.kappa:
            return [Beside(ridge, np.eye(self.dc)) for ridge in self.ridges]
        if h not in self._shapes:
            own = [row for row in self._declared_rows() if self.t.stationary_costs or row[0] == h]
            self._shapes[h] = shape_of([self._project(*row)[0] for row in own], self._s(), self.dc)
        return [Beside(self.kappa * self.ridges[0], self._shapes[h])]

    def _slack(self, given: float | Sequence[float] | None) -> list[list[float]]:
        """Spec 5: bound minus the anchor's cost per layer and limit, 1 without an anchor, or the user's."""
        out: list[list[float]] = []
        for h in range(self.H):
            anchor = self.t.anchor(h)
            if given is not None:
                row = [float(given)] * self.m if isinstance(given, int | float) else [float(g) for g in given]
            elif anchor is not None:
                row = [limit.bound - c for limit, c in zip(self.t.limits, anchor[1], strict=True)]
            else:
                row = [1.0] * self.m
            if len(row) != self.m or min(row) <= 0.0:
                raise ValueError(f"slack must be one positive number per limit, but got {row} at layer {h}")
            out.append(row)
        return out

    def _initial_episodes(self, given: int | None, episodes: float | None) -> int:
        if given is not None:
            return given
        if self.constants is None or episodes is None:
            return 0
        return int(min(self.constants.initial_episodes, episodes))

    # ------------------------------------------------------------------ planning

    def _make_plan(self) -> None:
        plan = Plan(replans=self.replans)
        self._bounds(plan)
        self._certify(plan)
        self._explore(plan)
        fits = self._value_fits()
        if self.paper:
            self.plans = {start: self._paper_values(plan, fits, start) for start in self.t.starts}
        else:
            self._values(plan, fits, first_bonus=0.0)
            self.plans = dict.fromkeys(self.t.starts, plan)
        self.planned_at = self._log_determinants()

    # ------------------------------------------------------------------ costs (spec 3)

    def _project(self, h: int, x: Sequence[float]) -> tuple[list[float], list[float], float]:
        """z, the known part k per limit, and rho."""
        anchor = self.t.anchor(h)
        if anchor is None:
            return list(x), [0.0] * self.m, 0.0
        x0, c0 = anchor
        rho = dot(x, x0) / dot(x0, x0)
        return [xi - rho * x0i for xi, x0i in zip(x, x0, strict=True)], [rho * c for c in c0], rho

    def _cost_rows_of(self, h: int) -> list[CostRow]:
        """Rows of the layer, or all of them when gamma is the same everywhere."""
        return [row for row in self.cost_rows if self.t.stationary_costs or row.h == h]

    def _cost_gram(self, h: int) -> Vector:
        gram = np.zeros((self.dc, self.dc), np.longdouble)
        for row in self._cost_rows_of(h):
            z = np.array(self._project(row.h, row.x)[0], np.longdouble)
            gram += np.outer(z, z)
        return gram

    def _cost_fit(self, h: int) -> CostFit:
        gram = self._cost_gram(h)
        moments = [np.zeros(self.dc, np.longdouble) for _ in range(self.m)]
        row_weight = 0.0
        rows: list[tuple[list[float], Vector, float]] = []
        for row in self._cost_rows_of(h):
            z, known, rho = self._project(row.h, row.x)
            row_weight += (1.0 + abs(rho)) ** 2
            rows.append((row.x, np.array(z), 1.0 + abs(rho)))
            for j in range(self.m):
                moments[j] += np.array(z, np.longdouble) * (row.cost[j] - known[j])
        bias = [limit.misspecification * math.sqrt(row_weight) for limit in self.t.limits]
        make, beside = self._paper_ellipsoid if self.paper else self._dual_ellipsoids, self._beside(h)
        each = [[one for two in beside for one in make(gram, moments[j], two, j, bias[j])] for j in range(self.m)]
        middle = sorted(beside, key=lambda one: one.ridge)[len(beside) // 2]
        counted = [None if self.paper else self._count(gram, moments[j], middle, j, rows) for j in range(self.m)]
        return CostFit(each, np.asarray(self.ridges[0] * np.eye(self.dc) + gram, float), counted)

    def _count(
        self, gram: Vector, b: Vector, beside: Beside, j: int, rows: Sequence[tuple[list[float], Vector, float]]
    ) -> Counted | None:
        limit = self.t.limits[j]
        R = self.safety_radius_scale * beside.noise(gram, limit.noise, math.log(self._union() / self.p))
        own = [(x, z, limit.misspecification * size) for x, z, size in rows]
        return count_visits(own, b, beside, limit.norm, R)

    def _union(self) -> int:
        return self.m * (1 if self.t.stationary_costs else self.H) * len(self.ridges)

    def _dual_ellipsoids(self, gram: Vector, b: Vector, beside: Beside, j: int, bias: float) -> list[Ellipsoid]:
        """(S3): one ellipsoid for every multiple c of the ball."""
        limit = self.t.limits[j]
        if limit.norm == 0.0:
            return []  # the prior bound says all
        noise = self.safety_radius_scale * beside.noise(gram, limit.noise, math.log(self._union() / self.p))
        R = max(noise + bias, least_noise(limit.norm, beside))
        return dual_ellipsoids(gram, b, beside, limit.norm, R)

    def _paper_ellipsoid(self, gram: Vector, b: Vector, beside: Beside, j: int, bias: float) -> list[Ellipsoid]:
        """One ellipsoid around the estimate; its radius is beta, or more where the data outgrow it."""
        assert self.constants is not None
        limit, log_term = self.t.limits[j], math.log(self.m * self.H / self.p)
        proved = beside.noise(gram, limit.noise, log_term) + math.sqrt(beside.ridge) * limit.norm
        beta = self.constants.beta
        radius = self.safety_radius_scale * (max(proved, beta) if "radius" in self.deviations else beta) + bias
        matrix = beside.matrix + gram
        return [Ellipsoid(_root_of_inverse(matrix), _solved(matrix, b[:, None])[:, 0], radius)]

    def _interval(self, fit: CostFit, h: int, x: Sequence[float]) -> tuple[list[float], list[float], float]:
        """(S3): upper and lower per limit, and u under the first ridge."""
        z, known, rho = self._project(h, x)
        direction = np.array(z)
        upper: list[float] = []
        lower: list[float] = []
        for j, limit in enumerate(self.t.limits):
            # What is known before any data; the paper profile does without.
            prior = math.inf if self.paper else limit.norm * norm(z)
            high, low = prior, -prior
            for mean, width in fit.told_of(j, direction):
                high, low = min(high, mean + width), max(low, mean - width)
                if math.isnan(width):
                    high = low = math.nan  # no γ explains the data
                    break
            widening = limit.misspecification * (1.0 + abs(rho))
            upper.append(known[j] + high + widening)
            lower.append(known[j] + low - widening)
        return upper, lower, _weighted_norm(fit.matrix, direction)

    def _bounds(self, plan: Plan) -> None:
        fits = self._per_layer(self._cost_fit, self.H, self.t.stationary_costs)
        scales = self._scales()
        for key in [row for pair in self.t.pairs() for row in self.t.rows(pair)]:
            h = key[0]
            upper, lower, u = self._interval(fits[h], h, self.t.x[key])
            plan.upper[key], plan.lower[key] = upper, lower
            plan.spread[key] = self._spread(h, upper, lower, u)
            plan.consistent &= not _crossed(upper, lower, scales)
        for s in self.layers[self.H - 1]:
            x = self.t.terminal_features(s)
            plan.terminal_spread[s] = 0.0
            if x is not None:
                upper, lower, u = self._interval(fits[self.H - 1], self.H - 1, x)
                plan.terminal_upper[s], plan.terminal_lower[s] = upper, lower
                plan.terminal_spread[s] = self._spread(self.H - 1, upper, lower, u)
                plan.consistent &= not _crossed(upper, lower, scales)

    def _scales(self) -> list[float]:
        return cost_scales(self.t)

    # ------------------------------------------------------------------ certified sets (spec 4)

    def _bound(self, h: int, j: int) -> float:
        return self.t.limits[j].bound

    def _within(self, h: int, upper: Sequence[float]) -> bool:
        return all(c <= self._bound(h, j) for j, c in enumerate(upper))

    def _certify(self, plan: Plan) -> None:
        last = self.H - 1
        fallback_pairs, fallback_terminals = self.t.fallback_pairs(), self.t.fallback_terminals()
        if "fallback" not in self.deviations:  # nothing is certified but by its bounds
            fallback_pairs, fallback_terminals = set(), set()
        for s in self.layers[last]:
            within = s not in plan.terminal_upper or self._within(last, plan.terminal_upper[s])
            if (s in fallback_terminals or (plan.consistent and within)) and (last, s) not in self.t.forbidden:
                plan.safe.add((last, s))
        for h in reversed(range(last)):
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    support = self.t.successors[h, s, a]
                    condition1 = all(self._within(h, plan.upper[row]) for row in self.t.rows((h, s, a)))
                    condition2 = all((h + 1, s2) in plan.safe for s2 in support)
                    earned = plan.consistent and condition1 and condition2
                    plan.condition1[h, s, a] = condition1
                    allowed = (h, s) not in self.t.forbidden  # spec 9
                    plan.certified[h, s, a] = allowed and (earned or (h, s, a) in fallback_pairs)
                if any(plan.certified[h, s, a] for a in self.t.actions[h, s]):
                    plan.safe.add((h, s))

    # ------------------------------------------------------------------ exploration (spec 5)

    def _spread(self, h: int, upper: Sequence[float], lower: Sequence[float], u: float) -> float:
        """Relative uncertainty of a cost row; plain u in the paper profile."""
        if self.slack is None:
            return u
        return max(max(0.0, up - lo) / sl for up, lo, sl in zip(upper, lower, self.slack[h], strict=True))

    def _explore(self, plan: Plan) -> None:
        """omega of every pair, and U of every state."""
        for h, s, a in self.t.pairs():
            plan.omega[h, s, a] = max(plan.spread[row] for row in self.t.rows((h, s, a)))
        for s in self.layers[self.H - 1]:
            plan.future[self.H - 1, s] = plan.terminal_spread[s]
        every_action = self.paper or self.literal_future
        for h in reversed(range(self.H - 1)):
            for s in self.layers[h]:
                most = 0.0
                for a in self.t.actions[h, s]:
                    if every_action or plan.certified[h, s, a]:
                        most = max(most, plan.omega[h, s, a], self._next_future(plan, (h, s, a)))
                plan.future[h, s] = most

    def _next_future(self, plan: Plan, pair: PairKey) -> float:
        return max(plan.future[pair[0] + 1, s2] for s2 in self.t.successors[pair])

    def _bonus(self, plan: Plan, pair: PairKey) -> float:
        """Ideas II, III and IV; the paper profile's Idea IV is added by its caller."""
        h, s, _ = pair
        if self.constants is not None:
            idea_2 = self.constants.epsilon_2[h] * plan.omega[pair]
            return idea_2 + self.constants.epsilon_3[h] * plan.future[h, s]
        remaining = float(self.H - h)  # R_h
        bonus = self.w2 * remaining * plan.omega[pair] + self.w3 * remaining * self._next_future(plan, pair)
        if h == 0:
            bonus += self.w4 * remaining * plan.omega[pair]
        return bonus

    # ------------------------------------------------------------------ values (spec 6)

    def _value_features(self, value: dict[StateKey, float], pair: PairKey) -> list[float]:
        """phi_V = sum over s' of phi(s, a, s') V(s')."""
        h, s, a = pair
        total = [0.0] * self.dp
        for s2 in self.t.successors[pair]:
            v = value[h + 1, s2]
            total = [t + f * v for t, f in zip(total, self.t.phi[h, s, a, s2], strict=True)]
        return total

    def _value_rows_of(self, h: int) -> list[ValueRow]:
        return [row for row in self.value_rows if self.t.stationary_transitions or row.h == h]

    def _value_matrix(self, h: int) -> Vector:
        matrix = self.value_ridge * np.eye(self.dp)
        for row in self._value_rows_of(h):
            matrix += np.outer(row.features, row.features)
        return matrix

    def _value_fit(self, h: int) -> ValueFit:
        matrix = self._value_matrix(h)
        moment = np.zeros(self.dp)
        for row in self._value_rows_of(h):
            moment += np.array(row.features) * row.target
        return ValueFit(matrix, np.linalg.solve(matrix, moment), self._value_radius(matrix, h))

    def _value_radius(self, matrix: Vector, h: int) -> float:
        """w1 times (S6); the paper profile has epsilon_1."""
        if self.constants is not None:
            return self.constants.epsilon_1
        half_range = (self.H - 1 if self.t.stationary_transitions else self.H - 1 - h) / 2.0
        ridge = self.value_ridge
        inside = _log_det(matrix) - self.dp * math.log(ridge) + 2.0 * math.log(self.H / self.p)
        return self.w1 * (half_range * math.sqrt(inside) + math.sqrt(ridge) * self.t.transition_norm)

    def _value_fits(self) -> list[ValueFit]:
        return self._per_layer(self._value_fit, self.H - 1, self.t.stationary_transitions)

    def _expected_next(self, fit: ValueFit, value: dict[StateKey, float], pair: PairKey) -> float:
        features = np.array(self._value_features(value, pair))
        estimate = float(np.dot(fit.estimate, features)) + fit.radius * _weighted_norm(fit.matrix, features)
        if "clip" not in self.deviations:
            return estimate
        nexts = [value[pair[0] + 1, s2] for s2 in self.t.successors[pair]]
        return max(min(nexts), min(max(nexts), estimate))

    def _values(self, plan: Plan, fits: list[ValueFit], first_bonus: float) -> None:
        """(S7), backward; `first_bonus` is the paper profile's Idea IV."""
        for s in self.layers[self.H - 1]:
            is_safe = (self.H - 1, s) in plan.safe
            plan.value[self.H - 1, s] = self.t.terminal_reward[s] if is_safe else 0.0
        for h in reversed(range(self.H - 1)):
            cap = float(self.H if self.paper else self.H - h)
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    expected = self._expected_next(fits[h], plan.value, (h, s, a))
                    bonus = self._bonus(plan, (h, s, a)) + first_bonus
                    plan.q[h, s, a] = self.t.reward[h, s, a] + expected + bonus
                certified = [a for a in self.t.actions[h, s] if plan.certified[h, s, a]]
                if certified:
                    best = _best({a: plan.q[h, s, a] for a in certified}, cap)
                    plan.action[h, s] = best
                    plan.value[h, s] = min(plan.q[h, s, best], cap)
                else:
                    plan.value[h, s] = 0.0
                    if (h, s) in self.t.fallback:  # only without the deviation "fallback"
                        plan.action[h, s] = self.t.fallback[h, s]

    def _paper_values(self, plan: Plan, fits: list[ValueFit], start: State) -> Plan:
        """Idea IV literally: one backward pass per certified first action, keep the best (spec 5)."""
        assert self.constants is not None
        passes: dict[Action, Plan] = {}
        for first in self.t.actions[0, start]:
            if plan.certified[0, start, first]:
                passes[first] = replace(plan, q={}, value={}, action={})
                self._values(passes[first], fits, self.constants.epsilon_4 * plan.omega[0, start, first])
        cap = float(self.H)
        if not passes:  # no first action is certified: the fallback is played
            bare = replace(plan, q={}, value={}, action={})
            self._values(bare, fits, first_bonus=0.0)
            return bare
        kept = _best({first: one.q[0, start, first] for first, one in passes.items()}, cap)
        chosen = passes[kept]
        # Within the kept pass another first action may look better; the pass was made for this one.
        chosen.action[0, start] = kept
        chosen.value[0, start] = min(chosen.q[0, start, kept], cap)
        return chosen

    # ------------------------------------------------------------------ lazy replanning (spec 6)

    def _log_determinants(self) -> list[float]:
        smallest = min(self.ridges) * np.eye(self.dc)
        costs = self._per_layer(lambda h: _log_det(smallest + self._cost_gram(h)), self.H, self.t.stationary_costs)
        values = self._per_layer(lambda h: _log_det(self._value_matrix(h)), self.H - 1, self.t.stationary_transitions)
        return costs + values

    def _must_replan(self) -> bool:
        if self.replan_growth == 0.0:
            return self.saw_data
        threshold = math.log(1.0 + self.replan_growth)
        return any(new - old > threshold for new, old in zip(self._log_determinants(), self.planned_at, strict=True))

    def _per_layer(self, make: Callable[[int], Made], layers: int, pooled: bool) -> list[Made]:
        """One result per layer; a pooled regression is the same at all of them, so make it once."""
        return [make(0)] * layers if pooled else [make(h) for h in range(layers)]


def _log_det(matrix: Vector) -> float:
    return float(np.linalg.slogdet(matrix.astype(float))[1])


def _weighted_norm(matrix: Vector, z: Vector) -> float:
    """sqrt(z' A^-1 z)."""
    return math.sqrt(max(0.0, float(np.dot(z, np.linalg.solve(matrix, z)))))


def _crossed(upper: Sequence[float], lower: Sequence[float], scales: Sequence[float]) -> bool:
    """Spec 3: some lower above its upper, beyond rounding, or no number at all."""
    return any(not lo <= up + CROSSING_TOLERANCE * scale for up, lo, scale in zip(upper, lower, scales, strict=True))


def _best(q: dict[Action, float], cap: float) -> Action:
    """Spec 6: largest min(Q, cap), then larger Q, then declared first (`max` keeps the first of equals)."""
    return max(q, key=lambda a: (min(q[a], cap), q[a]))
