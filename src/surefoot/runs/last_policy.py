"""The policy that a run ends with, as a file; the format is :mod:`surefoot.plan.policy_document`."""

from __future__ import annotations

from pathlib import Path

from surefoot.exact import evaluate_all
from surefoot.plan.policy_document import Exported, save_policy
from surefoot.runs.run import Run

DRAWN = "actions are drawn, and these are the likeliest"


def save_last_policy(run: Run, path: Path, exploit: bool = False) -> Path:
    """Write the run's last policy, with its exact value in every state; the same run gives the same bytes.

    ``exploit``: the one without exploration bonuses; an agent without plans has only one.
    """
    plan, manifest = run.plan, run.manifest
    chosen = plan.exploiting if exploit and plan is not None else run.policy
    policy = Exported(
        run.world.problem,
        plan,
        chosen=chosen,
        agent=manifest["agent"],
        guaranteed=run.guaranteed,
        promise=run.promise if plan is None or plan.chances is None else f"{run.promise}; {DRAWN}",
        failure_probability=manifest["constants"].get("failure_probability"),
        start=run.policy_start,
        source={"kind": "run", "world": manifest["world"], "seed": manifest["seed"], "episodes": run.episodes},
        exact=evaluate_all(run.world.at(1.0 if plan is None else plan.intensities or 1.0), chosen),
        exploring=plan is not None and not exploit,
    )
    return save_policy(path, policy.head(), policy.steps())
