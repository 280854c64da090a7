"""The policy that a run ends with, as ``policy.json``; the format is :mod:`surefoot.plan.policy_document`."""

from __future__ import annotations

from pathlib import Path

from surefoot.agents.agent import Agent
from surefoot.plan.policy_document import Exported, save_policy
from surefoot.runs.run import Run

DRAWN = "actions are drawn, and these are the likeliest"


def save_last_policy(agent: Agent, run: Run, path: Path) -> None:
    """Write the agent's last policy; the same run gives the same bytes."""
    problem, manifest = agent.problem, run.manifest
    agent.foresee(int(problem.graph.starts[0]))
    plan = agent.plan
    policy = Exported(
        problem,
        plan,
        chosen=agent.policy() if plan is None else plan.values.action,
        agent=manifest["agent"],
        guaranteed=run.guaranteed,
        promise=run.promise if plan is None or plan.chances is None else f"{run.promise}; {DRAWN}",
        failure_probability=manifest["constants"].get("failure_probability"),
        start=problem.starts[0] if agent.plans_by_start and len(problem.starts) > 1 else None,
        source={"kind": "run", "world": manifest["world"], "seed": manifest["seed"], "episodes": run.episodes},
    )
    save_policy(path, policy.head(), policy.steps())
