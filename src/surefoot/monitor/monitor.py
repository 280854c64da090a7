"""The monitor: does the plant still do what the problem declares? Two tests with a stated false-alarm probability.

**Promise.** Let every measured cost be true cost + ξ, where given the past and the triplet (h, s, a, s′) the noise ξ of
limit j has mean zero and is sub-Gaussian with scale σ_j, and let the true cost be ⟨γ_j, x⟩ + η with ‖γ_j‖ ≤ L_j and
|η| ≤ ζ_j (spec 2 and 3; offsets and priors: items 9 and 10). Then the *model test* ever raises an alarm with
probability at most α/2, over the whole study, whatever actions are played and however long it runs. If moreover every
true cost keeps its limit, the *limit test* ever raises one with probability at most α/2. α is ``false_alarm``.

**Limit test.** A good policy stays close to its limit, so a measurement slightly above it proves nothing; one far above
it does. Measurement number t raises an alarm if for some j

    measured_j > bound_j + σ_j q_t + 10⁻⁹ of the limit's scale,      q_t = √( 2 log( π² t² m / (6·α/2) ) )

By the sub-Gaussian tail P(ξ > σq) ≤ exp(−q²/2), the chance of this at t is at most m·exp(−q_t²/2) = (α/2)·6/(π²t²),
and the sum over all t ≥ 1 is α/2. (The past may decide whether there is a measurement t; the bound is conditional.)

**Model test.** Standardising residuals would not be sound, since ridge residuals are biased. The following is.

1.  *One measurement.* For a fixed number η and 0 < s < 1,  E exp(s(ξ+η)²/2σ²) ≤ (1−s)^(−1/2) exp(sη²/(2σ²(1−s))).
    Proof: with g standard normal and independent, exp(v²/2) = E_g exp(gv). Put v = √s(ξ+η)/σ and exchange the
    expectations (all is positive): E_g E exp(√s g(ξ+η)/σ) ≤ E_g exp(sg²/2 + √s gη/σ), which is the right side.

2.  *A martingale.* After projection (spec 3) row i is y_i = cost − ρ_i c⁰ = ⟨γ, z_i⟩ + η_i + ξ_i with
    |η_i| ≤ b_i = ζ(1+|ρ_i|), or ζ(1+Σ|ρ|) + Σ|ρ|t with several anchors and tolerances, and ρ_i, z_i, η_i are known
    before ξ_i is drawn. So, over any rows i of any steps after a
    fixed start τ,

        M_t = Π_i (1−s)^(1/2) exp( s(ξ_i+η_i)²/2σ² − s b_i²/(2σ²(1−s)) )

    is a nonnegative supermartingale that starts from 1: by item 1 every factor has conditional mean at most 1.

3.  *What is observed of it.* For every λ ≥ 0 the least ridge objective of the rows of one regression is at most its
    value at the true γ:  RSS_λ = min_γ′ Σ(y−⟨γ′,z⟩)² + λ‖γ′‖² ≤ Σ(ξ+η)² + λL².  So with any finite set of ridges

        D = max( 0, max_λ RSS_λ − λL² ) ≤ Σ(ξ+η)²

    No probability is spent on the ridges: this holds for all of them at once. (The maximum over all λ ≥ 0 is the
    least sum of squares among ‖γ′‖ ≤ L, by duality; a small λ sees the scatter, a large one sees a γ that is too long.)

4.  *Steps.* Where every step r has a γ of its own, item 3 holds for each, and each pays its own λL². Summed over
    steps, Σ_r D_r ≤ Σ_i (ξ_i+η_i)² over all rows, which is the exponent of the one M_t of all steps:

        E_t = (1−s)^(n/2) exp( s/(2σ²)·Σ_r (D_r − Σ_i b_i²/(1−s)) ) ≤ M_t          (n rows in all)

    The rows of one step alone are rows too, and give an E of their own: better where a single step has changed.

5.  *Shifts.* When γ changes, the new rows scatter no more than the old ones; only both together do. So, for a fixed
    moment τ, let θ_P and θ_N be fixed vectors and f_i = ⟨θ_P, z_i⟩ up to τ, ⟨θ_N, z_i⟩ after it. Then
    Π exp(f_i ξ_i/σ² − f_i²/2σ²) is a nonnegative supermartingale that starts from 1 (sub-Gaussian noise, and f_i is
    known before ξ_i), and so is its mean W_t over independent θ_P, θ_N ~ N(0, σ²/κ·I). With G = Σ zzᵀ, A = G + κI and
    S = Σ zξ, each over the rows up to τ (P) and after it (N), that Gaussian integral is

        W_t = exp( (‖S_P‖²_{A_P⁻¹} + ‖S_N‖²_{A_N⁻¹})/2σ² − ½ log det(I + G_P/κ) − ½ log det(I + G_N/κ) )

    S is not observed, but S′(γ) = Σ z(y − ⟨γ,z⟩) is Σ z(ξ+η) at the true γ, and ‖Σ zη‖_{A⁻¹} ≤ √Σb² (Cauchy–Schwarz,
    and ZA⁻¹Zᵀ ≼ I). With F = min over ‖γ‖ ≤ L of ‖S′_P(γ)‖²_{A_P⁻¹} + ‖S′_N(γ)‖²_{A_N⁻¹} the triangle inequality gives
    √F − √Σb² ≤ (‖S_P‖² + ‖S_N‖²)^½. So W_t with max(0, √F − √Σb²)² in place of ‖S_P‖² + ‖S_N‖² is a lower bound. (F is
    bounded from below as in item 3: min_γ F(γ) + λ‖γ‖², less λL².)

6.  *Mixture.* A sum of nonnegative supermartingales, with weights that add up to at most 1, is again one that starts
    from at most 1, and leaving out terms at any time only lowers it. The mixture is over: scatter (items 1-4) with ½
    and shifts (item 5) with ½; the noisy limits j, evenly (their noises may depend on each other; no product is taken
    over j); for scatter, s ∈ {0.75, 0.3, 0.1, 0.03}, evenly (a large s detects a few wild rows, a small one many that
    are slightly wrong), and all steps together with ½, single steps with ½ between them; for shifts, single
    regressions, of which only the one just told is looked at; and start times τ, or a clean past would hide a drift. A
    window is left out until it starts. The first one starts at 0, weighs ½, never ends and has no shift. Further ones
    start at every multiple τ = (2i+1)·2^v of 2^5, weigh ½·1/((v−4)(v−3))·1/((i+1)(i+2)), which adds up to ½ over v ≥ 5
    and i ≥ 0 (for shifts doubled, as the first one has none), and are left out from the age of 2^(v+1) on, when the
    next one of the same v starts. So after t ≥ 32 measurements there are at most log₂ t − 3 windows, and for every
    power of two a from 32 to t/4 one of them has an age in [a, 4a).

7.  *Ville.* A nonnegative supermartingale that starts from at most 1 ever reaches 2/α with probability at most α/2.
    The alarm is raised when the mixture, which is at most one of these, reaches 2/α.

8.  *Rounding.* Rows are rotated into triangles, which is backward stable: the computed √RSS belongs to data (Z+δZ,
    y+δy) whose columns are off by at most c·(n+d)·ε of their length, so that it exceeds the exact bound of item 3 by at
    most c(n+d)ε(L‖Z‖ + ‖y‖). That much, with ‖x‖ ≥ ‖z‖ and c = 16, is subtracted first. From √F, where errors of sums
    Σzy matter, c(√n+d)ε(L‖Z‖² + ‖Z‖‖y‖)·√(2/κ) is subtracted: n roundings of either sign add up to about √n (Higham and
    Mary 2019). An overflow or a NaN counts against the model.

9.  *Offsets that an episode shares* (``episode_noise`` τ). Given everything before an episode, its noise has mean zero
    and the scale √(σ² + τ²), which replaces σ in both tests; but one measurement tells something about the next. So the
    model test sees one row of each episode, at a step fixed before the episode begins, and items 1 to 8 hold for these
    rows. The limit test adds up the probabilities of single measurements, and may see all of them.

10. *Priors.* γ − m, m the centres, is no longer than the half-widths' length. With y − ⟨m, z⟩ in place of y that is the
    norm bound of item 3; rows and their projection stay as declared.

**σ_j = 0.** Then D ≤ Σb² surely, for every window and step; a larger D is an alarm at once and costs nothing of α. The
smallest ridge is (10⁻⁹·max‖x‖)², so that contradictions of about 10⁻⁹ of the largest possible cost are detected.

After an alarm the promise is used up: start again with another Monitor and a fresh share of α. Until then only the
limit test continues (``beyond``), so that no measurement escapes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import probability
from surefoot.errors import InvalidInput
from surefoot.estimate.families import of_norms
from surefoot.model.arrays import FloatArray
from surefoot.model.features import FeatureArray
from surefoot.model.problem import Problem
from surefoot.monitor import window_kernels as kernels
from surefoot.monitor.mixture_kernels import ALL, NOTHING, SHIFT, Verdict, weigh
from surefoot.monitor.window_kernels import FIRST_LEVEL, UNUSED, DeclaredModel, Windows

SHARES = (0.75, 0.3, 0.1, 0.03)  #: the s of item 6

_SHIFT = 3.0  # noise scales: what shifts of the largest cost are looked for first
_SMALL_DIM = 16  # with more features, shifts are looked for less often: they take d³


@dataclass(frozen=True)
class Alarm:
    """Why the study must stop trusting its model."""

    kind: str  # "residual" (the model test) or "limit"
    message: str
    details: dict[str, Any]  # JSON-able


class Monitor:
    """Watches every measured cost of a study; the module's docstring says what is tested and proves it."""

    def __init__(self, problem: Problem, false_alarm: float) -> None:
        """``false_alarm``: α, the probability of any alarm ever if the plant is as declared."""
        self.problem = problem
        self.false_alarm = probability("false_alarm", false_alarm)
        self.measurements = 0
        graph, limits = problem.graph, problem.limits
        longest = graph.largest_cost_norm() or 1.0
        noises, norms = problem.noise_of(1), np.array([prior.reach for prior in problem.priors])
        self._thresholds = problem.violation_thresholds
        self._episodes = np.array([0, problem.horizon, 0], np.int64)  # begun, step last told, rows in the model test
        self._declared = DeclaredModel(
            noises=noises,
            norms=norms,
            ridges=kernels.ridge_grid(noises, norms, longest),
            shares=np.array(SHARES),
            prior=(longest / _SHIFT) ** 2,
        )
        self._stride = max(1, graph.cost_dim // _SMALL_DIM) ** 2
        self._errors = np.array([limit.misspecification for limit in limits])
        self._centres = np.array([prior.centre for prior in problem.priors])  # (m, dc)
        self._known = [of_norms(problem)[0].known(anchors) for anchors in graph.anchors]
        self._windows = self._room(1)
        self._verdict = NOTHING

    # --- measurements -----------------------------------------------------------------------------------

    def follow(self, problem: Problem) -> None:
        """Continue with a graph that has grown (spec 9); what is tested does not change."""
        self.problem = problem

    def beyond(self, h: int, cost: FloatArray) -> Alarm | None:
        """Test a measurement of step h against its limit alone, as in safe mode, when the model is already in doubt."""
        values = self._checked(h, cost)
        self._begin_window()  # for the measurements after this one
        self.measurements += 1
        return self._limit_alarm(h, values)

    def _checked(self, h: int, cost: FloatArray) -> FloatArray:
        values = np.ascontiguousarray(cost, dtype=np.float64)
        if values.shape != self._thresholds[h].shape or not np.isfinite(values).all():
            raise InvalidInput(f"cost must be {self._thresholds.shape[1]} finite numbers", got=repr(cost))
        return values

    def observe(self, h: int, features: FeatureArray, cost: FloatArray) -> Alarm | None:
        """The measured cost (m,) of step h with its features (dc,); an alarm, or None if nothing is wrong."""
        x, values = np.asarray(features, np.float64), self._checked(h, cost)
        self._begin_window()
        self.measurements += 1
        if not self._in_model_test(h):
            return self._limit_alarm(h, values)
        middle, known = self._centres @ x, self._known[h]
        z, y, errors = x, values - middle, self._errors.copy()
        if known is not None:
            rho = known.directions @ x
            z = x - rho @ known.anchors
            y = y - rho @ (known.costs - known.anchors @ self._centres.T)
            errors = errors * (1.0 + np.abs(rho).sum()) + np.abs(rho) @ known.tolerances
        r = 0 if self.problem.stationary_costs else h
        kernels.add_measurement(self._windows, self._declared, r, x, z, y, np.abs(values) + np.abs(middle), errors)
        shifted = r if self.measurements % self._stride == 0 else UNUSED
        self._verdict = Verdict(*weigh(self._windows, self._declared, shifted))
        return self._limit_alarm(h, values) or self._contradiction() or self._residual_alarm()

    def _in_model_test(self, h: int) -> bool:
        """If episodes share offsets, the model test sees one row of each (item 9), at a step fixed before the episode
        begins. Steps rise within an episode."""
        if not self.problem.shared_offsets:
            return True
        begun, last, told = self._episodes.tolist()
        if h <= last:
            begun, told = begun + 1, 0
        costed = self.problem.horizon - (self.problem.graph.terminal.cost_features is None)
        mine = bool(told == 0 and h == begun % costed)
        self._episodes[:] = begun, h, told + mine
        return mine

    # --- the two tests ----------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """The logarithm of the mixture of item 6; an alarm is raised at log(2/α)."""
        return self._verdict.log_evidence

    @property
    def log_threshold(self) -> float:
        return math.log(2.0 / self.false_alarm)

    def quantile(self, t: int) -> float:
        """q_t: how many noise scales measurement t may lie above its limit."""
        m = self._thresholds.shape[1]
        return math.sqrt(2.0 * math.log(math.pi**2 * t**2 * m / (3.0 * self.false_alarm)))

    def _limit_alarm(self, h: int, cost: FloatArray) -> Alarm | None:
        q, noises = self.quantile(self.measurements), self._declared.noises
        over = cost > self._thresholds[h] + noises * q
        if not over.any():
            return None
        needed = {
            limit.name: _finite(_own_noise((float(value) - float(bound)) / q, limit.episode_noise))
            for limit, value, bound, noise in zip(
                self.problem.limits, cost, self.problem.bounds[h], noises, strict=True
            )
            if value - bound > noise * q
        }
        j = int(np.argmax(over))  # the first
        limit, value = self.problem.limits[j], float(cost[j])
        bound, noise = float(self.problem.bounds[h, j]), float(noises[j])
        return Alarm(
            "limit",
            f"limit {limit.name!r} was exceeded: measured {value:g}, bound {bound:g}; "
            f"measurement noise explains at most {bound + noise * q:g} (noise scale {noise:g})",
            {
                "limit": limit.name,
                "measured": value,
                "bound": bound,
                "noise": noise,
                "quantile": q,
                "noise_needed": needed,  # the scales that would explain it
                "measurement": self.measurements,
                "log_evidence": _finite(self.log_evidence),
            },
        )

    def _contradiction(self) -> Alarm | None:
        j, w, r = kernels.contradiction(self._windows, self._declared)
        if j == UNUSED:
            return None
        limit, rows = self.problem.limits[j], int(self._windows.rows[w, r])
        scatter = self._scatter(w, r, j)
        return Alarm(
            "residual",
            f"measurements of limit {limit.name!r} contradict the declared model: it has no noise, but {rows} of them"
            f"{self._place(r)} lie {scatter:g} (root mean square) from every fit within {self._known_of(j)}",
            {**self._window_details(j, w, r), "test": "contradiction", "scatter": scatter},
        )

    def _residual_alarm(self) -> Alarm | None:
        if self.log_evidence < self.log_threshold:
            return None
        found = self._verdict
        limit = self.problem.limits[found.limit]
        scatter = self._scatter(found.window, found.regression, found.limit)
        details = self._window_details(found.limit, found.window, found.regression)
        shift = found.share == SHIFT
        what = "follow other costs than those before"
        if not shift:
            fit = f"the best fit within {self._known_of(found.limit)}"
            what = f"scatter by {scatter:g} around {fit}; the declared noise is {self._declared.noises[found.limit]:g}"
        return Alarm(
            "residual",
            f"measurements of limit {limit.name!r} no longer fit the declared model: the last {details['rows']} of them"
            f"{self._place(found.regression)} {what}; evidence e^{_finite(self.log_evidence):.1f}, "
            f"alarm at e^{self.log_threshold:.1f}",
            {
                **details,
                "test": "shift" if shift else "scatter",
                "scatter": scatter,
                "log_evidence": _finite(self.log_evidence),
                "log_threshold": self.log_threshold,
            },
        )

    def _window_details(self, j: int, w: int, r: int) -> dict[str, Any]:
        limit, rows = self.problem.limits[j], self._windows.rows[w]
        return {
            "limit": limit.name,
            "noise": float(self._declared.noises[j]),
            "measurement": self.measurements,
            "since": int(self._windows.start[w]) + 1,
            "step": None if r == ALL or self.problem.stationary_costs else r,
            "rows": int(rows.sum() if r == ALL else rows[r]),
        }

    def _scatter(self, w: int, r: int, j: int) -> float:
        """The root mean square distance from the best admissible fit; at most about the noise scale if all is well."""
        excess, rows = self._windows.excess[w, :, j], self._windows.rows[w]
        if r != ALL:
            excess, rows = excess[r : r + 1], rows[r : r + 1]
        return _finite(math.sqrt(float(excess.sum()) / max(1, int(rows.sum()))))

    def _known_of(self, j: int) -> str:
        limit = self.problem.limits[j]
        return f"norm ≤ {limit.norm:g}" if limit.prior is None else "its prior"

    def _place(self, r: int) -> str:
        return "" if r == ALL or self.problem.stationary_costs else f" at step {r}"

    # --- windows ----------------------------------------------------------------------------------------

    def _room(self, n: int) -> Windows:
        dim, m, ridges = self.problem.graph.cost_dim, self._thresholds.shape[1], len(self._declared.ridges)
        return kernels.no_windows(n, ridges, 1 if self.problem.stationary_costs else self.problem.horizon, dim, m)

    def _begin_window(self) -> None:
        """Begin the window that starts here, if any; make room for it."""
        if self.measurements % (1 << FIRST_LEVEL):
            return
        n = max(1, self.measurements.bit_length() - FIRST_LEVEL + 1)
        if n > len(self._windows.start):
            larger = self._room(n)
            for old, new in zip(self._windows, larger, strict=True):
                new[: len(old)] = old
            self._windows = larger
        kernels.begin_due(self._windows, self.measurements, self._declared.ridges)

    # --- checkpoints ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All state, copied: float64 and int64 arrays of one or two axes."""
        state: dict[str, NDArray[Any]] = {
            name: array.reshape(-1, array.shape[-1]).copy() if array.ndim > 2 else array.copy()
            for name, array in self._windows._asdict().items()
        }
        state["measurements"] = np.array([self.measurements], np.int64)
        state["episodes"] = self._episodes.copy()
        return state

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the :meth:`arrays` of a monitor of the same problem; if these do not fit, nothing changes."""
        try:
            empty = self._room(len(arrays["start"]))
            for name, array in empty._asdict().items():
                given = np.asarray(arrays[name])
                if given.dtype != array.dtype or given.size != array.size:
                    raise ValueError(f"{name} is {given.dtype} with {given.size} entries")
                array[...] = given.reshape(array.shape)
            (measurements,) = arrays["measurements"].tolist()
            begun, last, told = arrays["episodes"].tolist()
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput("the monitor's state does not fit this problem", got=str(error)) from None
        self._windows, self.measurements = empty, int(measurements)
        self._episodes[:] = begun, last, told
        self._verdict = Verdict(*weigh(self._windows, self._declared, UNUSED))


def _own_noise(scale: float, shared: float) -> float:
    """The σ for which √(σ² + τ²) is the scale."""
    return scale if shared == 0.0 else math.sqrt(max(0.0, scale * scale - shared * shared))


def _finite(value: float) -> float:
    """A number that JSON can hold."""
    return min(max(value, -1e300), 1e300)
