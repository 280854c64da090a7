"""The monitor's two probabilities: how rarely a truthful plant raises an alarm, how soon an untruthful one does.

Whole studies run in one compiled loop over the monitor's own kernels; a test below shows that it is the monitor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from scipy import stats

from surefoot import worlds
from surefoot.agents.lsvi_new import LsviNew
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.monitor.mixture_kernels import weigh
from surefoot.monitor.monitor import Monitor
from surefoot.monitor.window_kernels import add_measurement, begin_due
from surefoot.streams import stream
from tests.monitored import chain, told

pytestmark = pytest.mark.statistical

CLEAN, WITHIN = 3000, 200  # tells: the past, and how soon a change must be noticed
SURELY = 1e-6  # chance of a failing test when all is well


class Rows(NamedTuple):
    """What was measured, without the noise."""

    layer: np.ndarray  # (T,)
    edge: np.ndarray  # (T,)
    x: np.ndarray  # (T, d)
    truth: np.ndarray  # (T, m)


@numba.njit
def evidence_of(windows, declared, r, x, z, y, cost, errors, enough):  # type: ignore[no-untyped-def]
    """log evidence after each measurement, up to the first that is at least ``enough``; ∞ after it."""
    track = np.full(len(r), np.inf)
    for t in range(len(r)):
        begin_due(windows, t, declared.ridges)
        add_measurement(windows, declared, r[t], x[t], z[t], y[t], np.abs(cost[t]), errors[t])
        track[t] = weigh(windows, declared, r[t]).log_evidence
        if track[t] >= enough:
            break
    return track


def track(monitor: Monitor, rows: Rows, cost: np.ndarray, enough: float = math.inf) -> np.ndarray:
    h = rows.layer
    rho, z, y = np.zeros(len(h)), rows.x.copy(), cost.copy()
    for t, known in enumerate(monitor._known[step] for step in h):
        if known is not None:
            rho[t] = known.directions[0] @ rows.x[t]
            z[t] -= rho[t] * known.anchors[0]
            y[t] -= rho[t] * known.costs[0]
    errors = monitor._errors * (1.0 + np.abs(rho))[:, None]
    r = np.zeros_like(h) if monitor.problem.stationary_costs else h
    windows = monitor._room(16)
    found: np.ndarray = evidence_of(windows, monitor._declared, r, rows.x, z, y, cost, errors, enough)
    return found


def first_alarm(problem: Problem, rows: Rows, cost: np.ndarray, alpha: float, times: float = 1.0) -> int | None:
    """The first measurement with an alarm, counted from 1. ``times`` scales both (logarithmic) thresholds."""
    monitor = Monitor(problem, alpha)
    enough = times * monitor.log_threshold
    count = np.arange(1, len(cost) + 1)
    q = np.sqrt(times * 2 * np.log(math.pi**2 * count**2 * len(problem.limits) / (3 * alpha)))
    noises = np.array([limit.noise for limit in problem.limits])
    over = (cost > problem.violation_thresholds[rows.layer] + noises * q[:, None]).any(axis=1)
    loud = track(monitor, rows, cost, enough) >= enough
    alarms = np.flatnonzero(over | loud)
    return int(alarms[0]) + 1 if len(alarms) else None


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "uniform":
        return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
    return rng.choice([-1.0, 1.0], shape)


@functools.cache
def played(seed: int, tells: int) -> Rows:
    """What a learner plays on thermal/small, from its first, careful steps on."""
    world = worlds.make("thermal/small")
    graph = world.problem.graph
    agent, sampler = LsviNew(world.problem), world.sampler(seed)
    layers, edges = [], []
    while len(layers) < tells:
        agent._begin(0)
        state = 0
        for h, layer in enumerate(graph.layers):
            pair = agent._choose(h, state)
            edge = sampler.step(h, pair)
            agent._record(h, pair, edge, sampler.measure(h, edge))
            state = int(layer.successor[edge])
            layers.append(h)
            edges.append(edge)
        agent._finish()
    steps = list(zip(layers, edges, strict=True))[:tells]
    return Rows(
        np.array([h for h, _ in steps]),
        np.array([e for _, e in steps]),
        np.array([graph.layers[h].cost_features[e] for h, e in steps]),
        np.array([world.costs[h][e] for h, e in steps]),
    )


def thermal(**changes: Any) -> Problem:
    return worlds.make("thermal/small", **changes).problem


def test_the_compiled_loop_is_the_monitor(seed: int) -> None:
    rng = stream(seed, "monitor/loop")
    rows, problem = played(seed, 700), thermal()
    cost = rows.truth + 0.1 * rng.standard_normal(rows.truth.shape)
    cost[500:] += 0.1
    monitor, seen = Monitor(problem, 1e-200), []
    for h, e, c in zip(rows.layer.tolist(), rows.edge.tolist(), cost, strict=True):
        assert told(monitor, h, e, *c) is None
        seen.append(monitor.log_evidence)
    assert track(Monitor(problem, 1e-200), rows, cost).tolist() == seen


# --- false alarms ---------------------------------------------------------------------------------------


def at_most(alpha: float, studies: int) -> int:
    """More alarms than this refute the level, but for one chance in a million."""
    return int(stats.binom.ppf(1 - SURELY, studies, alpha))


@pytest.mark.parametrize(("kind", "studies"), [("gaussian", 60), ("uniform", 30), ("rademacher", 30)])
def test_truthful_plants_stay_within_the_level(kind: str, studies: int, seed: int) -> None:
    """At the limit itself: the highest cost that the learner plays becomes the bound."""
    alpha, tells = 0.1, 2000
    alarms = 0
    for study in range(studies):
        rng = stream(seed, f"monitor/{kind}/{study}")
        rows = played(seed + study % 4, tells)
        problem = thermal(bound=max(0.6, float(rows.truth.max())))
        cost = rows.truth + 0.1 * drawn(rng, kind, rows.truth.shape)
        alarms += first_alarm(problem, rows, cost, alpha) is not None
    print(f"{kind}: {alarms} of {studies} studies with a false alarm, level {alpha}")
    assert alarms <= at_most(alpha, studies)


def test_noise_declared_too_small_is_found_out(seed: int) -> None:
    """The negative control of the test above: 0.08 declared, 0.1 there."""
    alpha, alarms, studies = 0.1, 0, 30
    for study in range(studies):
        rows = played(seed + study % 4, 2000)
        cost = rows.truth + 0.1 * drawn(stream(seed, f"monitor/small/{study}"), "gaussian", rows.truth.shape)
        alarms += first_alarm(thermal(noise_scale=0.08), rows, cost, alpha) is not None
    assert alarms > at_most(alpha, studies)


def barely_true(seed: int, study: int, tells: int) -> tuple[Problem, Rows, np.ndarray]:
    """Nothing to learn, all cost known, at its bound: RSS is the noise itself and step 2 an exact martingale."""
    problem = chain(np.ones((1, 1)), Limit("c", bound=0.5, noise=0.1, norm=1.0), horizon=2, anchor=([1.0], 0.5 - 1e-12))
    none = np.zeros(tells, np.int64)
    rows = Rows(none, none, np.ones((tells, 1)), np.full((tells, 1), 0.5))
    return problem, rows, rows.truth + 0.1 * stream(seed, f"monitor/tight/{study}").standard_normal((tells, 1))


def test_level_is_kept_where_the_bound_is_tight_and_a_third_of_the_thresholds_breaks_it(seed: int) -> None:
    alpha, studies, tells, third = 0.05, 400, 500, 1 / 3
    alarms = {1.0: 0, third: 0}
    for study in range(studies):
        case = barely_true(seed, study, tells)
        for times in alarms:
            alarms[times] += first_alarm(*case, alpha, times) is not None
    print(f"tight: {alarms[1.0]} of {studies} studies with a false alarm, level {alpha}; {alarms[third]} at a third")
    assert alarms[1.0] <= at_most(alpha, studies)
    assert alarms[third] > at_most(alpha, studies)


def layered() -> Problem:
    """Two limits, a parameter for every layer, costs of last states, a model error."""
    rng = np.random.default_rng(5)
    limits = [
        Limit("a", bound=9.0, noise=0.1, norm=1.0, misspecification=0.03),
        Limit("b", bound=9.0, noise=0.3, norm=2.0),
    ]
    features, last = rng.uniform(-1, 1, (6, 3)), rng.uniform(-1, 1, (6, 3))
    return chain(features, limits, horizon=4, stationary=False, terminal=last)


def layered_rows(problem: Problem, rng: np.random.Generator, tells: int) -> tuple[Rows, np.ndarray]:
    """Rows, and the model error of each: as large as allowed, of one sign or of signs that follow the features."""
    gamma = rng.uniform(-0.5, 0.5, (4, 2, 3))
    layer = np.arange(tells) % 4
    edge = np.where((layer == 2) | (layer == 3), rng.integers(0, 6, tells), 0)
    tables = [each.cost_features for each in problem.graph.layers] + [problem.graph.terminal.cost_features]
    x = np.array([tables[h][e] for h, e in zip(layer, edge, strict=True)])
    error = np.array([limit.misspecification for limit in problem.limits])
    sign = np.sign(x @ rng.standard_normal((3, 2))) if rng.random() < 0.5 else np.ones((tells, 2))
    return Rows(layer, edge, x, np.einsum("tmd,td->tm", gamma[layer], x)), error * sign


def test_layers_limits_and_model_errors_stay_within_the_level(seed: int) -> None:
    alpha, studies, alarms, problem = 0.1, 60, 0, layered()
    for study in range(studies):
        rng = stream(seed, f"monitor/layered/{study}")
        rows, error = layered_rows(problem, rng, 1000)
        cost = rows.truth + error + rng.standard_normal(rows.truth.shape) * [0.1, 0.3]
        alarms += first_alarm(problem, rows, cost, alpha) is not None
    assert alarms <= at_most(alpha, studies)


def test_a_model_error_beyond_its_declaration_is_found_out(seed: int) -> None:
    """The negative control of the test above: signs that follow nothing, ten times as large."""
    alpha, studies, alarms, problem = 0.1, 20, 0, layered()
    for study in range(studies):
        rng = stream(seed, f"monitor/layered/{study}")
        rows, error = layered_rows(problem, rng, 1000)
        wild = 10 * np.abs(error) * rng.choice([-1.0, 1.0], error.shape)
        cost = rows.truth + wild + rng.standard_normal(rows.truth.shape) * [0.1, 0.3]
        alarms += first_alarm(problem, rows, cost, alpha) is not None
    assert alarms > at_most(alpha, studies)


# --- detection ------------------------------------------------------------------------------------------

HALF_SLACK = 0.25  # of thermal: bound 0.6, anchor 0.1


def along(x: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(T,) the change of cost when γ moves in the direction of the hottest feature played, by half the slack there."""
    top = after[np.argmax(after @ [0.10, 0.10, 0.10, 0.45, 0.10])].copy()
    top[0] = 0.0  # the anchor's cost stays
    return np.asarray(HALF_SLACK * (x @ top) / (top @ top))


Change = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
CHANGES: dict[str, Change] = {  # (noise after the change, features after it, tells since it) → what is measured more
    "noise twice the declared": lambda noise, x, since: noise,
    "every cost higher by half the slack": lambda noise, x, since: np.full_like(noise, HALF_SLACK),
    "parameter moved, costlier": lambda noise, x, since: along(x, x[:WITHIN])[:, None],
    "parameter moved, cheaper": lambda noise, x, since: -along(x, x[:WITHIN])[:, None],
    "parameter moving over 100 tells": lambda noise, x, since: (along(x, x[:WITHIN]) * np.minimum(1.0, since / 100))[
        :, None
    ],
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_noticed_after_a_clean_past(name: str, seed: int) -> None:
    """Within 200 tells after 3,000 clean ones, for each of 10 studies."""
    delays: list[float] = []
    for study in range(10):
        rng = stream(seed, f"monitor/{name}/{study}")
        clean = CLEAN + int(rng.integers(512))  # at any moment of the windows' lives
        rows = played(seed + study % 4, CLEAN + 512 + WITHIN)
        noise = 0.1 * rng.standard_normal(rows.truth.shape)
        cost = rows.truth + noise
        cost[clean:] += CHANGES[name](noise[clean:], rows.x[clean:], np.arange(len(cost) - clean))
        alarm = first_alarm(thermal(bound=99.0), rows, cost, 0.01)  # by the model test alone
        delays.append(math.inf if alarm is None else alarm - clean)
    print(f"{name}: noticed after {sorted(delays)[5]:g} tells (median), {max(delays):g} at most")
    assert min(delays) > 0
    assert max(delays) <= WITHIN
