"""A run in progress: plays stretches of episodes, measures them exactly, keeps its state between plans.

Per episode: the exact value of the policy played and its regret against the best safe policy, and every violation of
a true cost. Per plan: whether the cost event and the value event of spec 8 held. The policy's value is computed when
the plan changes, not every episode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.agent import Agent, Chances, Policy
from surefoot.agents.learner import Learner
from surefoot.checks import whole
from surefoot.compiling import compiling_said
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.exact import evaluate, fallback_value, solve
from surefoot.exact.best import solve_whole
from surefoot.model.arrays import FloatArray
from surefoot.model.labels import Label
from surefoot.model.rays import Intensities
from surefoot.plan.plan import Plan
from surefoot.runs import sources
from surefoot.runs.plans_kept import Recorder, why_not_kept
from surefoot.runs.progress import Display, Interrupt
from surefoot.runs.record import EpisodeRow, EpisodeTable, PlanTable, cost_event, value_event
from surefoot.runs.run import Run, describe
from surefoot.worlds.world import World

if TYPE_CHECKING:
    from surefoot.runs.checkpoint import Saved

CHUNK_SECONDS = 0.2  # how long compiled code runs between checks for progress and Ctrl-C

OnPlan = Callable[[Plan, int], object]
"""Called with every plan that comes into force, and the number of episodes played before it; True ends the run."""

OnEpisode = Callable[[EpisodeRow], object]
"""Called after every episode; True ends the run."""


class Session:
    """The state of a run in progress."""

    def __init__(self, agent: Agent, world: World, episodes: int, seed: int | None, saved: Saved | None = None) -> None:
        """With ``saved``, the agent must have been restored from it."""
        episodes = whole("episodes", episodes, 1)
        self.agent, self.world = agent, world
        self.sampler, self.draws = sources.open_source(agent, world, seed)
        self.done = 0 if saved is None else saved.done
        self.before = self.draws.played - self.done  # episodes drawn from the same streams by earlier runs
        self.played_before = agent.episodes - self.done
        graph = world.problem.graph
        self.table = EpisodeTable.blank(episodes, len(world.problem.limits))
        numbers = sources.start_numbers(len(graph.starts), self.seed, self.before, episodes)
        self.table.start[:] = graph.starts[numbers]
        self.plans = PlanTable()
        best, self.best_of_all = solve_whole(world)
        self.best = dict(zip(graph.starts.tolist(), best.start_values, strict=True))
        self.played = world  # with rays: each at the intensity of the plan in force (spec 9)
        self._intensities: Intensities | None = None
        self._values: dict[int, float] = {}  # of the policy in force, by start
        self._policy: Policy | None = None
        self._chances: Chances | None = None  # of an agent that draws its actions: in place of its policy
        self.recorder = None if why_not_kept(world.problem) else Recorder()
        self.on_plan: OnPlan | None = None
        self.on_episode: OnEpisode | None = None
        self._ended = False  # by a callback
        self._counted = 0, 0  # episodes, and the violations in them
        self.watch: Callable[[], bool] | None = None  # called several times a second: should the run stop here?
        if saved is not None:
            for name, column in self.table.columns().items():
                column[: self.done] = saved.table[name]
            self.plans = PlanTable.of(saved.plans)

    @classmethod
    def resumed(cls, saved: Saved, agent: Agent, world: World, episodes: int) -> Session:
        """A session that continues from a checkpoint; the agent becomes the saved one."""
        if whole("episodes", episodes, 1) < saved.done:
            raise InvalidInput(
                "the checkpoint has more episodes", got=f"{saved.done} are played, {episodes} were asked for"
            )
        agent.restore(saved.agent)
        return cls(agent, world, episodes, None, saved)

    def call(self, on_plan: OnPlan | None, on_episode: OnEpisode | None) -> None:
        for name, given in (("on_plan", on_plan), ("on_episode", on_episode)):
            if given is not None and not callable(given):
                raise InvalidInput(f"{name} is a function", got=f"a {type(given).__name__}")
        self.on_plan, self.on_episode = on_plan, on_episode

    @property
    def seed(self) -> int:
        return self.draws.seeds[-1]

    # --- playing ----------------------------------------------------------------------------------------

    def play(self, compiled: bool, progress: bool | None, checkpoint: str | Path | None, every: int | None) -> Run:
        episodes, began = len(self.table.start), time.perf_counter()
        self._check(checkpoint, every)
        self._follow()
        rollout = self._rollout() if compiled else None
        chunk = 64
        display = Display(1, episodes, progress)
        with self._drawing(), Interrupt() as stop, compiling_said(progress), display:
            while self.done < episodes and not stop.requested:
                started = time.perf_counter()
                step = chunk if self.on_episode is None else 1
                last = min(episodes, self.done + step, self._next_save(every), self._next_policy())
                if self._follow() and compiled:
                    rollout = self._rollout()
                self._note_plan()
                self._check_alone()
                if self._ended:
                    break
                due = False
                if rollout is not None and not self._differs_by_start:
                    reached, due = rollout.play(self.table, self.done, last)
                    self.agent.skip(reached - self.done)
                    due = due or (isinstance(self.agent, Learner) and self.agent.overdue())
                else:
                    self._step_episode()
                    reached = self.done + 1
                self._account(reached)
                self._note_draws()
                if due:
                    assert isinstance(self.agent, Learner)
                    self.agent.replan()
                took = time.perf_counter() - started
                if reached == last and took < CHUNK_SECONDS / 2:
                    chunk = min(2 * chunk, 1 << 20)
                display.advance("episodes", self.done, self.headline())
                if checkpoint is not None and every is not None and self.done % every == 0:
                    self.save(Path(checkpoint))
                if self.on_episode is not None and self.on_episode(self.table.row(self.done - 1)) is True:
                    break
                if self.watch is not None and self.watch():
                    break
        if checkpoint is not None:
            self.save(Path(checkpoint))
        stop.warn(self.done, episodes)
        return self._finished(time.perf_counter() - began)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """However the run ends, the agent keeps a record of what was drawn."""
        self._note_draws()
        try:
            yield
        finally:
            if self.agent.draws is self.draws:
                self._note_draws()

    def _note_draws(self) -> None:
        played, agent = self.before + self.done, self.agent
        self.draws = replace(self.draws, played=played, episodes=agent.episodes, state=self.sampler.state())
        agent.draws = self.draws

    def _check_alone(self) -> None:
        """If a callback or another thread had used the agent meanwhile, the same draws would be repeated here."""
        if self.agent.draws is not self.draws or self.agent.episodes != self.draws.episodes:
            raise OutOfOrder("the agent was used elsewhere during its run", fix="Use it after the run has ended.")

    def _check(self, checkpoint: str | Path | None, every: int | None) -> None:
        """Validate before starting."""
        left, wanted = self.agent.episodes_left(), len(self.table.start) - self.done
        if left is not None and wanted > left:
            raise InvalidInput(
                "the paper's constants were computed for fewer episodes",
                got=f"{wanted} to play, {left} left",
                fix="Make the agent with a larger episodes=.",
            )
        if every is not None:
            whole("checkpoint_every", every, 1)
            if checkpoint is None:
                raise InvalidInput("checkpoint_every has no effect without checkpoint")
        if checkpoint is not None and (Path(checkpoint).is_dir() or not Path(checkpoint).parent.is_dir()):
            raise InvalidInput("checkpoint must be a file in a directory that exists", got=str(checkpoint))

    @property
    def _differs_by_start(self) -> bool:
        """Only the paper's learner with several starts has a plan per start."""
        return self.agent.plans_by_start and len(self.world.problem.graph.starts) > 1

    def _rollout(self) -> Any:
        from surefoot.runs.compiled import Rollout

        return Rollout(self.agent, self.played, self.sampler)

    def _follow(self) -> bool:
        """Make the world what the agent plays: as large as its graph has grown, every ray at the intensity of its plan
        (spec 9). → has it changed?"""
        problem, intensities = self.agent.problem, self.agent.intensities()
        larger = problem.growth is not None and problem is not self.world.problem
        if larger:
            before = self.sampler
            self.world = self.played = self.world.on(problem)
            self.sampler = self.world.sampler(self.seed)
            self.sampler.restore(before.state())
        if problem.has_rays and (self.played is self.world or intensities is not self._intensities):
            self._intensities = intensities
            self.played = self.world.at(1.0 if intensities is None else intensities)
            self.sampler.follow(self.played)
        elif not larger:
            return False
        self._values = {}
        return True

    def _next_policy(self) -> int:
        """The episode up to which the policy stays, unless new data change it."""
        left = self.agent.episodes_before_change()
        return len(self.table.start) if left is None else self.done + max(1, left)

    def _next_save(self, every: int | None) -> int:
        return len(self.table.start) if every is None else (self.done // every + 1) * every

    def _step_episode(self) -> None:
        """One episode, with the calls that a real plant would make, on indices."""
        agent, world, table, k = self.agent, self.played, self.table, self.done
        graph = world.problem.graph
        state, total = int(table.start[k]), 0.0
        agent._begin(state)
        self.sampler.begin_episode()
        for h, layer in enumerate(graph.layers):
            pair = agent._choose(h, state)
            edge = self.sampler.step(h, pair)
            measured = self.sampler.measure(h, edge)
            total += float(layer.reward[pair])
            after = int(layer.successor[edge])
            entered = bool(graph.forbidden(h + 1)[after])
            self._note_step(k, h, world.costs[h][layer.row_of(edge)], measured, entered)
            agent._record(h, pair, edge, measured)
            state = after
        total += float(graph.terminal.reward[state])
        if graph.terminal.has_cost[state] and world.terminal_costs is not None:
            measured = self.sampler.measure_terminal(state)
            self._note_step(k, graph.horizon - 1, world.terminal_costs[state], measured)
            agent._record_terminal(measured)
        table.reward[k] = total
        agent._finish()

    def _note_step(self, k: int, h: int, truth: FloatArray, measured: FloatArray, entered: bool = False) -> None:
        problem = self.world.problem
        bounds, beyond = problem.bounds[h], truth > problem.violation_thresholds[h]
        room = np.where(beyond, bounds - truth, np.maximum(bounds - truth, 0.0))
        self.table.margin[k] = np.minimum(self.table.margin[k], room)
        self.table.highest[k] = np.maximum(self.table.highest[k], measured)
        self.table.violations[k] += bool(beyond.any()) or entered

    # --- measuring --------------------------------------------------------------------------------------

    def _note_plan(self) -> None:
        """Before the first episode of a plan: is the truth inside its bounds, how much is certified."""
        start = int(self.table.start[self.done])
        self.agent.foresee(start)
        chances = self.agent.chances()
        policy = self.agent.policy() if chances is None else None
        if policy is not self._policy or chances is not self._chances or self._differs_by_start:
            self._policy, self._chances, self._values = policy, chances, {}
        plan = self.agent.plan
        if plan is None or (self.plans.number and self.plans.number[-1] == plan.number):
            return
        self.plans.number.append(plan.number)
        self.plans.first_episode.append(self.done)
        self.plans.certified_pairs.append(plan.n_certified())
        self.plans.certified_states.append(int(sum(mask.sum() for mask in plan.certified_sets.states)))
        self.plans.gap.append(plan.gap)
        self.plans.to_gain.append(plan.to_gain)
        self.plans.value.append(self._value(start))
        self.plans.consistent.append(plan.consistent)
        self.plans.cost_event.append(cost_event(self.played, plan.bounds))
        self.plans.value_event.append(value_event(self.world, plan.ellipsoids))
        if self.recorder is not None:
            self.recorder(plan, self.done)
        if self.on_plan is not None:
            self._ended = self.on_plan(plan, self.done) is True

    def _value(self, start: int) -> float:
        if start not in self._values:
            played = self._policy if self._chances is None else self._chances
            assert played is not None
            self._values[start] = evaluate(self.played, played, self._named(start))
        return self._values[start]

    def _named(self, start: int) -> Label:
        return self.world.problem.naming.states[0][start]

    def _account(self, reached: int) -> None:
        """Fill the columns that depend on the policy only, for a stretch of episodes."""
        stretch, table = slice(self.done, reached), self.table
        for start in np.unique(table.start[stretch]).tolist():
            rows = np.flatnonzero(table.start[stretch] == start) + self.done
            table.value[rows] = self._value(start)
            table.regret[rows] = self.best[start] - self._value(start)
        if self.plans.number:
            table.plan[stretch] = self.plans.number[-1]
            table.certified[stretch] = self.plans.certified_pairs[-1]
            table.gap[stretch] = self.plans.gap[-1]
            table.to_gain[stretch] = self.plans.to_gain[-1]
        self.done = reached

    def headline(self) -> str:
        """Progress in a line; each episode is counted once, since this is asked several times a second."""
        counted, violations = self._counted
        violations += int(self.table.violations[counted : self.done].sum())
        self._counted = self.done, violations
        return f"regret {self.table.regret[self.done - 1]:.3g}, violations {violations}"

    def _finished(self, seconds: float) -> Run:
        self._follow()
        if not self.best_of_all:
            self._compare_with_expanded()
        problem, agent = self.world.problem, self.agent
        agent.foresee(int(problem.graph.starts[0]))
        plan = agent.plan
        return Run(
            episodes_table=self.table.first(self.done),
            plans_table=self.plans,
            manifest=self.manifest(),
            best_values=self.best,
            fallback_values={start: fallback_value(self.world, self._named(start)) for start in self.best},
            replans=self.agent.replans,
            interrupted=self.done < len(self.table.start),
            seconds=seconds,
            plan=plan,
            world=self.world,
            policy=agent.policy() if plan is None else plan.values.action,
            policy_start=problem.starts[0] if agent.plans_by_start and len(problem.starts) > 1 else None,
            kept=self._kept(plan),
        )

    def _kept(self, plan: Plan | None) -> tuple[tuple[Plan, int], ...]:
        """Some of the run's plans, or the last one if its graph has grown too large for that."""
        kept = () if self.recorder is None or plan is None else self.recorder.in_memory(plan, self.done)
        alone = plan is not None and self.world.problem.growth is not None and not kept
        return ((plan, self.done),) if alone and plan is not None else kept

    def _compare_with_expanded(self) -> None:
        """If the whole graph is too large, regret is against the best policy on the graph grown so far."""
        self.best = dict(zip(self.best, solve(self.world).start_values, strict=True))
        for start, best in self.best.items():
            rows = self.table.start[: self.done] == start
            self.table.regret[: self.done][rows] = best - self.table.value[: self.done][rows]

    # --- checkpoints ------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        before = {"agent": self.played_before, "seed": self.before}
        found = describe(self.agent, self.world, self.seed, len(self.table.start), self.done, before)
        return found if self.best_of_all else {**found, "best_value_of": "the graph as it has grown"}

    def save(self, path: Path) -> None:
        from surefoot.runs import checkpoint as checkpoints

        checkpoints.save_checkpoint(path, self)
