"""Episodes: against the reference, compiled against step by step, how often a plan is made, and what priors save."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import surefoot as sf
from benchmarks.playing import played
from benchmarks.priors import worth_of_intervals
from benchmarks.rows import Row, row
from benchmarks.timing import show
from tests.reference.lsvi_new import Reference
from tests.reference.tables import LimitSpec, Tables

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)  # episodes


def tables_of(world: sf.World) -> Tables:
    """A world's problem as the reference reads it."""
    problem, graph = world.problem, world.problem.graph
    H = problem.horizon
    actions: dict[Any, Any] = {}
    successors: dict[Any, Any] = {}
    reward: dict[Any, Any] = {}
    x: dict[Any, Any] = {}
    phi: dict[Any, Any] = {}
    fallback: dict[Any, Any] = {}
    for h, layer in enumerate(graph.layers):
        for s in (problem.states(h)[i] for i in range(layer.n_states)):
            actions[h, s] = list(problem.actions(h, s))
            if (chosen := problem.fallback_action(h, s)) is not None:
                fallback[h, s] = chosen
            for a in actions[h, s]:
                pair = problem.pair_index(h, s, a)
                successors[h, s, a] = list(problem.successors(h, s, a))
                reward[h, s, a] = float(layer.reward[pair])
                for s2 in successors[h, s, a]:
                    edge = problem.edge_index(h, s, a, s2)
                    x[h, s, a, s2] = layer.cost_features[edge].tolist()
                    phi[h, s, a, s2] = layer.transition_features[edge].tolist()
    last = [problem.states(H - 1)[i] for i in range(graph.terminal.n_states)]
    # The last layer has no cost here; the reference asks for the one anchor of a stationary problem there too.
    known = [*graph.anchors[:-1], graph.anchors[0]]
    return Tables(
        horizon=H,
        starts=list(problem.starts),
        actions=actions,
        successors=successors,
        reward=reward,
        x=x,
        phi=phi,
        shared_features=graph.shared_features,
        terminal_reward={s: float(r) for s, r in zip(last, graph.terminal.reward, strict=True)},
        terminal_x=None,
        fallback=fallback,
        anchors={h: None if a is None else (a.features[0].tolist(), a.cost[0].tolist()) for h, a in enumerate(known)},
        limits=[LimitSpec(*(getattr(limit, field.name) for field in fields(LimitSpec))) for limit in problem.limits],
        transition_norm=problem.transition_norm,
        stationary_costs=problem.stationary_costs,
        stationary_transitions=problem.stationary_transitions,
        mu=world.transition.tolist(),
        gamma=world.cost_parameters.tolist(),
    )


def reference_seconds(world: sf.World, episodes: int) -> float:
    """Per episode, of the reference: the same world, the same replan schedule (it plans by the same rule)."""
    reference, sampler, problem = Reference(tables_of(world), 0.05), world.sampler(0), world.problem
    begin = time.perf_counter()
    for _ in range(episodes):
        s = problem.starts[0]
        reference.begin_episode(s)
        for h, layer in enumerate(problem.graph.layers):
            a = reference.act(h, s)
            edge = sampler.step(h, problem.pair_index(h, s, a))
            s2 = problem.states(h + 1)[int(layer.successor[edge])]
            reference.observe(h, s, a, s2, sampler.measure(h, edge).tolist())
            s = s2
        reference.end_episode()
    return (time.perf_counter() - begin) / episodes


def run() -> list[Row]:
    world = sf.worlds.make("thermal/small")

    def seconds(episodes: int, *, compiled: bool = True, **options: Any) -> float:
        """Per episode."""
        agent = sf.LsviNew(world.problem, **options)
        return played(agent, world, episodes, compiled=compiled).seconds / episodes

    seconds(100)  # compiled, warm
    by_length = {episodes: played(sf.LsviNew(world.problem), world, episodes) for episodes in LENGTHS}
    many = by_length[1_000_000].seconds / 1_000_000
    ours, theirs = seconds(200), reference_seconds(world, 200)
    stepped, rolled = seconds(3000, compiled=False, replan_growth=10.0), seconds(300_000, replan_growth=10.0)
    plans = {str(episodes): done.replans for episodes, done in by_length.items()}
    return [
        row(
            "(c) thermal/small: the reference's time per episode (first 200) over ours (1e6)",
            theirs / many,
            at_least=1000.0,
            ours_seconds=many,
            reference_seconds=theirs,
        ),
        row("(c) the same, both over their first 200 episodes", theirs / ours),
        row(
            "(f) thermal/small: compiled roll-out over step by step, episodes per second",
            stepped / rolled,
            episodes_per_second=1 / rolled,
        ),
        row(
            "(g) plans made at 1e6 episodes over those at 1e4",
            plans["1000000"] / plans["10000"],
            at_most=2.5,
            plans_by_episodes=plans,
        ),
        *(row(f"(g) plans made in {episodes:,} episodes", float(done.replans)) for episodes, done in by_length.items()),
        *worth_of_intervals(),
    ]


if __name__ == "__main__":
    show(run())
