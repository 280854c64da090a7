"""The record of a run: what was played, what it cost, whether the guarantee held."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surefoot
from surefoot.agents.agent import Agent, Policy
from surefoot.checks import needed
from surefoot.errors import InvalidInput
from surefoot.exact import evaluate_all
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.labels import Label
from surefoot.plan.plan import Plan
from surefoot.plan.policy_document import Exported, save_policy
from surefoot.runs.record import EpisodeTable, PlanTable, by_limit
from surefoot.worlds.world import World

FORMAT, VERSION = "surefoot-run", 4
DRAWN = "actions are drawn, and these are the likeliest"  # of an exported policy


@dataclass(frozen=True, eq=False)
class Run:
    """What :func:`surefoot.run` returns: one agent, one world, one seed. Arrays have an entry per episode.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> run = sf.run(sf.LsviNew(world.problem), world, episodes=300, seed=0)
        >>> int(run.violations.sum()), round(run.best_value, 2), round(run.last_value, 2)
        (0, 2.54, 2.3)
        >>> f"{run.gap_closed:.0%} of the gap from the fallback to the best safe policy"
        '83% of the gap from the fallback to the best safe policy'
        >>> path = run.save("ledger")  # a directory; sf.Ledger.load reads it
    """

    episodes_table: EpisodeTable
    plans_table: PlanTable
    manifest: dict[str, Any]  # versions, seed, every constant, the guarantee
    best_values: dict[int, float]  # best safe value, by index of the start state
    fallback_values: dict[int, float]  # likewise
    replans: int
    interrupted: bool
    seconds: float  # wall time; kept out of the ledger, which is deterministic
    plan: Plan | None  # the last one
    world: World
    policy: Policy  # the last one
    policy_start: Label  # the start that it is for, None when it is for all
    kept: tuple[tuple[Plan, int], ...]  # some plans, and the episodes before each, for the report's explorer

    @property
    def episodes(self) -> int:
        return len(self.episodes_table.regret)

    @property
    def regret(self) -> FloatArray:
        """(K,) best safe value − exact value of each episode's policy (eq:defregret); negative only for unsafe ones."""
        return self.episodes_table.regret

    @property
    def violations(self) -> IntArray:
        """(K,) steps of each episode whose true cost broke a limit."""
        return self.episodes_table.violations

    @property
    def certified(self) -> IntArray:
        """(K,) certified pairs in the plan of each episode."""
        return self.episodes_table.certified

    @property
    def gap(self) -> FloatArray:
        """(K,) what further certificates may add to the value, by the learner's own bounds (:attr:`Plan.gap`)."""
        return self.episodes_table.gap

    @property
    def to_gain(self) -> FloatArray:
        """(K,) the most that can still be gained, by the learner's own bounds (:attr:`Plan.to_gain`)."""
        return self.episodes_table.to_gain

    @property
    def value(self) -> FloatArray:
        """(K,) exact value of the policy of each episode."""
        return self.episodes_table.value

    @property
    def margin(self) -> FloatArray:
        """(K, m) how close each episode came to each limit: smallest bound − true cost."""
        return self.episodes_table.margin

    @property
    def best_value(self) -> float:
        """The best safe value; of several starts the mean."""
        return float(np.mean([*self.best_values.values()]))

    @property
    def fallback_value(self) -> float:
        """The fallback's value; of several starts the mean."""
        return float(np.mean([*self.fallback_values.values()]))

    @property
    def cost_event(self) -> bool:
        """Every true cost lay within the bounds of every plan (spec 8), so no certified step can violate."""
        return all(self.plans_table.cost_event)

    @property
    def value_event(self) -> bool:
        """Every true transition parameter lay within every plan's ellipsoid."""
        return all(self.plans_table.value_event)

    @property
    def promise(self) -> str:
        return str(self.manifest["promise"])

    @property
    def guaranteed(self) -> bool:
        return bool(self.manifest["guaranteed"])

    @property
    def gap_closed(self) -> float:
        """Share of the gap from the fallback's value to the best safe value that the last policy closes."""
        gap = self.best_value - self.fallback_value
        return 1.0 if gap == 0 else (self.last_value - self.fallback_value) / gap

    @property
    def last_value(self) -> float:
        """Exact value of the last policy played; the fallback's before the first episode. Of several starts the mean,
        each with the last episode that began there."""
        starts, ago = np.unique(self.episodes_table.start[::-1], return_index=True)
        last = dict(zip(starts.tolist(), self.value[::-1][ago], strict=True))
        return float(np.mean([*{**self.fallback_values, **last}.values()]))

    def tables(self) -> dict[str, dict[str, NDArray[Any]]]:
        """The columns of "episodes" and of "plans", with one column per limit where there are several: margin_NAME."""
        limits = [limit["name"] for limit in self.manifest["limits"]]
        return {"episodes": by_limit(self.episodes_table.columns(), limits), "plans": self.plans_table.columns()}

    def to_pandas(self, table: str = "episodes") -> Any:
        """A table, "episodes" or "plans", as a pandas.DataFrame; needs the extra ``pandas``.

        Examples:
            >>> world = sf.worlds.make("thermal/testing")
            >>> frame = sf.run(sf.LsviNew(world.problem), world, episodes=50, seed=0).to_pandas()
            >>> frame[["value", "violations", "margin_temperature"]].shape
            (50, 3)
        """
        return needed("pandas", "to_pandas", "'surefoot[pandas]'").DataFrame(self._table(table))

    def to_arrow(self, table: str = "episodes") -> Any:
        """A table, "episodes" or "plans", as a pyarrow.Table; needs the extra ``parquet``."""
        return needed("pyarrow", "to_arrow", "'surefoot[parquet]'").table(self._table(table))

    def _table(self, name: str) -> dict[str, NDArray[Any]]:
        tables = self.tables()
        if name not in tables:
            raise InvalidInput("no such table", got=repr(name), fix=f"There are {' and '.join(tables)}.")
        return tables[name]

    def report(self, path: str | Path) -> Path:
        """Write the report of this run to one HTML file; for several runs: :func:`surefoot.report`.

        Examples:
            >>> world = sf.worlds.make("thermal/testing")
            >>> run = sf.run(sf.LsviNew(world.problem), world, episodes=100, seed=0)
            >>> run.report("run.html").name
            'run.html'
        """
        return surefoot.report([self], path)

    def export(self, path: str | Path, *, exploit: bool = False) -> Path:
        """Write the last policy, ``.json`` or ``.py``: :mod:`surefoot.plan.policy_document`.

        It includes the exact value of every state; equal runs give equal bytes. ``exploit``: without exploration
        bonuses, but still certified; an agent without plans has only one policy.
        """
        plan, manifest = self.plan, self.manifest
        chosen = plan.exploiting if exploit and plan is not None else self.policy
        policy = Exported(
            self.world.problem,
            plan,
            chosen=chosen,
            agent=manifest["agent"],
            guaranteed=self.guaranteed,
            promise=self.promise if plan is None or plan.chances is None else f"{self.promise}; {DRAWN}",
            failure_probability=manifest["constants"].get("failure_probability"),
            start=self.policy_start,
            source={"kind": "run", "world": manifest["world"], "seed": manifest["seed"], "episodes": self.episodes},
            exact=evaluate_all(self.world.at(1.0 if plan is None else plan.intensities or 1.0), chosen),
            exploring=plan is not None and not exploit,
        )
        return save_policy(Path(path), policy.head(), policy.steps())

    def save(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write the ledger to a new directory: Parquet if pyarrow is installed, otherwise NPZ."""
        from surefoot.runs import ledger

        return ledger.save_ledger(self, Path(path), format)

    @property
    def failed_replans(self) -> int:
        """Plans that were due and could not be computed; the previous plan stayed in force."""
        return int(self.manifest["failed_replans"])

    def __repr__(self) -> str:
        failed = f"failed_replans={self.failed_replans}, " if self.failed_replans else ""
        return (
            f"Run({self.manifest['agent']}, episodes={self.episodes}, regret={self.regret.sum():.6g}, "
            f"violations={int(self.violations.sum())}, replans={self.replans}, {failed}{self.promise!r})"
        )


def describe(agent: Agent, world: World, seed: int, episodes: int, done: int, before: dict[str, int]) -> dict[str, Any]:
    """The manifest: everything needed to repeat the run, and its guarantee.

    ``before``: the number of earlier episodes, of the ``agent`` and from the streams of the ``seed``. Unless both are
    0, repeating the run means repeating these first.
    """
    problem = world.problem.first
    return {
        "format": FORMAT,
        "version": VERSION,
        "agent": agent.name,
        "constants": agent.constants,
        "guaranteed": agent.guaranteed and not world.misspecified_beyond_declaration,
        "promise": (
            "no safety guarantee: the world deviates from the model by more than was declared"
            if world.misspecified_beyond_declaration
            else agent.promise
        ),
        "problem": problem.digest,
        "limits": [limit.told() for limit in problem.limits],
        "world": world.digest,
        "noise": world.noise,
        "seed": int(seed),
        "episodes": int(episodes),
        "done": int(done),
        "before": before,
        "failed_replans": agent.failed_replans,
        "versions": dict(versions()),
    }


@cache
def versions() -> Mapping[str, str]:
    """Of what a run depends on; looked up once, which takes longer than a short run."""
    packages = {name: version(name) for name in ("surefoot", "numpy", "scipy", "numba")}
    return {"python": platform.python_version(), **packages}
