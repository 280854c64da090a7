"""Plans: against the machine's limit, against plain NumPy, and how they grow.

The floor of a plan is the longer of two times, both measured in this run: its bytes at the bandwidth of two threads
that read memory, and its floating-point operations at the rate of the matrix product that it consists of, N×d by d×d,
streamed, on one thread or two. That product writes its result to memory; a plan need not, and can be faster. So there
is a harder floor as well, at the rate of the same product in blocks that stay in the cache. Counted per layer of R cost
rows and N triplets with d features, b successors to a pair, E ellipsoids (ridges × multipliers × limits) of w shapes, T
targets, where a share of the pairs is certified, a share hopeful and a share of the rows met along certified pairs:

    bounds      bytes 8·R·d + 2·8·R·m (both bounds)     flops 2·R·d·(d + 1 + E) (the product) + 2·(1 + w)·R·d (norms)
    each sweep  bytes share·8·N·d + 4·N (successors)    flops share·(2·N·d + 2·N/b·d·(d + 2))
    scores      bytes met·8·R·d                         flops met·2·R·d·(d + T + 1)

A plan by bonuses has one sweep, over certified pairs. A plan with a gap has V's, over certified pairs, V̄'s, over
hopeful ones, scores, and the sweep of what it plays.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import surefoot as sf
from benchmarks.numpy_plan import numpy_plan
from benchmarks.problems import learned, random_problem
from benchmarks.rows import Row, row
from benchmarks.rows_per_pair import rows_per_pair
from benchmarks.timing import best_of, show
from surefoot.plan.confidence import default_ridge
from surefoot.plan.hope import reached
from surefoot.plan.shares import MOST_TARGETS

SIZES = [(10_000, 16, 5.0), (100_000, 32, 2.0), (1_000_000, 64, 2.0)]  # triplets per step, features, target
HORIZON, BRANCHING = 10, 5
GAP_ROWS = 300  # per step: few enough that something is still hoped for


@numba.njit(parallel=True, fastmath=True)
def _read(data: Any) -> float:
    total = 0.0
    for i in numba.prange(data.shape[0]):
        total += data[i]
    return total


def bandwidth() -> float:
    """Bytes per second that all threads together read from memory."""
    data = np.ones(1 << 26)
    (seconds,) = best_of(5, lambda: _read(data))
    return data.nbytes / seconds


def product_rate(rows: int, dim: int) -> float:
    """Flops per second of a streamed product of that shape, on one BLAS thread or as many as cores, what is faster.

    Small products gain nothing from threads, and on a busy machine they lose a lot: a floor must not be set by that.
    """
    rng = np.random.default_rng(0)
    x, square, out = rng.normal(size=(rows, dim)), rng.normal(size=(dim, dim)), np.empty((rows, dim))
    work, best = 2.0 * rows * dim * dim, 0.0
    for threads in {1, numba.get_num_threads()}:
        with threadpool_limits(threads, user_api="blas"):
            (seconds,) = best_of(max(5, int(1e9 / work)), lambda: np.dot(x, square, out=out))
        best = max(best, work / seconds)
    return best


@numba.njit(parallel=True)
def _product_in_blocks(x: Any, square: Any, step: int, out: Any) -> None:
    for block in numba.prange(len(out)):
        out[block] = np.dot(x[block * step : min(len(x), (block + 1) * step)], square)[0, 0]


def _rows_in_cache(dim: int) -> int:
    """Two such blocks fit the second cache; never a power of two, where columns would compete for cache lines."""
    return max(56, 8064 // dim)


def cached_product_rate(rows: int, dim: int) -> float:
    """Flops per second of that product in blocks of rows whose result stays in the cache, on all threads."""
    rng = np.random.default_rng(0)
    x, square, step = rng.normal(size=(rows, dim)), rng.normal(size=(dim, dim)), _rows_in_cache(dim)
    out, work = np.empty(-(-rows // step)), 2.0 * rows * dim * dim
    with threadpool_limits(1, user_api="blas"):
        (seconds,) = best_of(max(5, int(1e9 / work)), lambda: _product_in_blocks(x, square, step, out))
    return work / seconds


def counts(agent: sf.LsviNew) -> tuple[float, float]:
    """(bytes, flops) of one plan."""
    plan, graph, m = agent.plan, agent.problem.graph, len(agent.problem.limits)
    sweeps = [plan.certified_sets.pairs]
    if plan.known_hope is not None and plan.known_hope.gap > 0:
        sweeps += [plan.known_hope.hopeful.pairs, plan.certified_sets.pairs]
    total_bytes = total_flops = 0.0
    for h, (layer, met) in enumerate(zip(graph.layers, reached(graph, plan.certified_sets.pairs), strict=False)):
        known = plan.bounds.known[h] or []
        each, shapes = sum(one.radii.size for one in known), sum(len(one.weights) for one in known)
        rows, n, d, dp = len(layer.cost_features), layer.n_edges, graph.cost_dim, graph.transition_dim
        total_bytes += 8 * rows * d + 16 * rows * m
        total_flops += 2 * rows * d * (d + 1 + each) + 2 * (1 + shapes) * rows * d
        for pairs in sweeps:
            share = float(pairs[h].mean())
            total_bytes += share * 8 * n * dp + 4 * n
            total_flops += share * (2 * n * dp + 2 * layer.n_pairs * dp * (dp + 2))
        if len(sweeps) > 1:
            total_bytes += 8 * len(met) * d
            total_flops += 2 * len(met) * d * (d + MOST_TARGETS + 1)
    return total_bytes, total_flops


def _agent(triplets: int, dim: int, horizon: int = HORIZON, **options: Any) -> sf.LsviNew:
    agent = learned(random_problem(triplets, dim, horizon, BRANCHING, **options))
    agent.replan()
    return agent


def against_the_limit() -> list[Row]:
    """(a) and (b): one plan, its floor, and plain NumPy."""
    speed = bandwidth()
    rows = []
    for triplets, dim, target in SIZES:
        agent = _agent(triplets, dim)
        flops_per_second, cached = product_rate(triplets, dim), cached_product_rate(triplets, dim)
        (seconds,) = best_of(max(3, min(50, 3_000_000 // triplets)), agent.replan)
        begin = time.perf_counter()
        numpy_plan(agent)
        plain = time.perf_counter() - begin
        # again: what a busy spell slowed down would make a floor that a plan can beat
        speed, flops_per_second = max(speed, bandwidth()), max(flops_per_second, product_rate(triplets, dim))
        cached = max(cached, flops_per_second, cached_product_rate(triplets, dim))
        size, work = counts(agent)
        floor, hard = max(size / speed, work / flops_per_second), max(size / speed, work / cached)
        rows.append(
            row(
                f"(a) plan at {triplets:,} triplets per step, {dim} features: time over its floor",
                seconds / floor,
                at_most=target,
                seconds=seconds,
                floor_seconds=floor,
                bytes_seconds=size / speed,
                flops_seconds=work / flops_per_second,
                numpy_seconds=plain,
                size=f"{triplets:,} × {dim}",
                bytes=size,
                flops=work,
                bandwidth=speed,
                product_rate=flops_per_second,
                hard_seconds=hard,
                cached_product_rate=cached,
            )
        )
        rows.append(
            row(f"(a) plan at {triplets:,} × {dim}: time over its hard floor, products in the cache", seconds / hard)
        )
        rows.append(
            row(
                f"(b) plan at {triplets:,} × {dim}: plain NumPy over ours",
                plain / seconds,
                at_least=8.0 if triplets == 1_000_000 else None,
            )
        )
    return rows


def with_a_gap() -> list[Row]:
    """A plan that explores, against its own hard floor and against a plan of bonuses with three even ridges and one
    multiplier of the ball: the plans before there were gaps. In processor time on one thread, so that a busy machine
    matters little."""
    rows, threads = [], numba.get_num_threads()
    numba.set_num_threads(1)
    for (triplets, dim, _), target in zip(SIZES, (8.0, None, 2.0), strict=True):
        problem = random_problem(triplets, dim, HORIZON, BRANCHING)
        s = default_ridge(problem)
        three = [0.1 * s, s, 10.0 * s]
        agents = [
            learned(problem, GAP_ROWS, ridges=three, multipliers=[1.0]),
            learned(problem, GAP_ROWS, exploration="directed"),
        ]
        seconds, work = [float("inf")] * 2, 2.0 * triplets * dim * dim
        x, square, step = np.ones((triplets, dim)), np.eye(dim), _rows_in_cache(dim)
        out, rate = np.empty(-(-triplets // step)), float("inf")
        for repeat in range(max(4, min(50, 3_000_000 // triplets))):
            for i, agent in enumerate(agents):
                begin = time.process_time()
                agent.replan()
                seconds[i] = min(seconds[i], time.process_time() - begin if repeat else float("inf"))
            begin = time.process_time()
            _product_in_blocks(x, square, step, out)
            rate = min(rate, (time.process_time() - begin if repeat else float("inf")) / work)
        size = f"{triplets:,} × {dim}"
        hoped = agents[1].plan.known_hope
        if hoped is None or not hoped.gap > 0:
            raise AssertionError("there is no gap: nothing to measure")
        rows += [
            row(
                f"(a) plan with a gap at {size}: processor time over its hard floor",
                seconds[1] / (rate * counts(agents[1])[1]),
                at_most=target,
                gap=hoped.gap,
            ),
            row(
                f"(a) plan with a gap at {size}: processor time over a plan of bonuses and three ellipsoids",
                seconds[1] / seconds[0],
                at_most=1.5 if triplets == 1_000_000 else None,
                seconds=seconds,
            ),
        ]
    numba.set_num_threads(threads)
    return rows


def growth() -> list[Row]:
    """(g) plan time against N, d, |Λ| and H."""

    def slope(sizes: list[float], times: list[float]) -> float:
        return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])

    def timed(agent: sf.LsviNew) -> float:
        return best_of(3, agent.replan)[0]

    triplets = [100_000, 1_000_000, 10_000_000]
    by_n = [timed(_agent(n, 8, 4)) for n in triplets]
    dims = [8, 16, 32, 64]
    by_d = [timed(_agent(100_000, d, 4)) for d in dims]
    horizons = [5, 10, 20]
    by_h = [timed(_agent(50_000, 16, h)) for h in horizons]
    by_ridges = []
    for n in (1, 3, 9):
        agent = sf.LsviNew(random_problem(100_000, 16, 4), ridges=list(np.geomspace(0.01, 100, n)))
        by_ridges.append(timed(agent))
    return [
        row(
            "(g) growth of plan time with N, 1e5 to 1e7: log-log slope",
            slope([float(n) for n in triplets], by_n),
            within=(0.9, 1.1),
            seconds=by_n,
        ),
        row("(g) growth with d, 8 to 64: slope", slope([float(d) for d in dims], by_d), seconds=by_d),
        row("(g) growth with H, 5 to 20: slope", slope([float(h) for h in horizons], by_h)),
        row("(g) nine ridges instead of one: time ratio", by_ridges[2] / by_ridges[0]),
    ]


def memory() -> list[Row]:
    """(h) the most memory that planning takes above its arrays, at 1e7 triplets per step; in its own process."""
    code = "from benchmarks.bench_plan import _memory; _memory()"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    arrays, before, peak = (float(part) for part in out.split())
    return [
        row(
            "(h) planning 1e7 triplets per step, 16 shared features, H = 10: GiB above its arrays",
            (peak - max(before, arrays)) / 2**30,
            at_most=2.5,
            arrays_gib=arrays / 2**30,
        ),
        row(
            "(h) the same: peak memory of the whole process over the problem's arrays",
            peak / arrays,
            peak_gib=peak / 2**30,
        ),
    ]


def _memory() -> None:
    problem = random_problem(10_000_000, 16, 10)
    layer = problem.graph.layers[0]
    arrays = sum(a.nbytes for a in (layer.cost_features, layer.successor, layer.pair_ptr, layer.reward))
    with open("/proc/self/statm") as status:
        before = int(status.read().split()[1]) * resource.getpagesize()
    with open("/proc/self/clear_refs", "w") as peaks:
        peaks.write("5")  # forget the peak of building it
    sf.LsviNew(problem)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    print(arrays, before, peak)


def in_float32() -> list[Row]:
    """The same plan with its features stored in float32: time, and bytes of all arrays of the problem."""
    triplets, dim, _ = SIZES[-1]
    wide = random_problem(triplets, dim, 4, BRANCHING)
    agents = [learned(problem) for problem in (wide, wide.stored_in_float32())]
    seconds = best_of(5, *(agent.replan for agent in agents))
    sizes = [
        sum({id(a): a.nbytes for layer in agent.problem.graph.layers for a in vars(layer).values()}.values())
        for agent in agents
    ]
    name = f"float32: plan at {triplets:,} × {dim}, features in float32 over float64"
    return [
        row(f"{name}: time", seconds[1] / seconds[0], at_most=1.05, seconds=seconds),
        row(f"{name}: bytes of the problem", sizes[1] / sizes[0], bytes=sizes),
    ]


def run() -> list[Row]:
    return [*against_the_limit(), *with_a_gap(), *growth(), *memory(), *in_float32(), *rows_per_pair()]


if __name__ == "__main__":
    show(run())
