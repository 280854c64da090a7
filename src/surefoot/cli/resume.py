"""``surefoot resume``: finish runs that were interrupted."""

from __future__ import annotations

from surefoot.cli import options
from surefoot.cli.sweeping import finish, stopped_at_once


def resume_command(
    folder: options.RunsFolder,
    jobs: options.Jobs = None,
    on: options.On = None,
    plan_on: options.PlanOn = None,
    checkpoint_seconds: options.Pause = 10.0,
    strict: options.Strict = False,
) -> None:
    """Finish interrupted runs, with the same result as without the interruption."""
    from surefoot.sweeps import sweep

    try:
        outcome = sweep.resume_sweep(folder, jobs=jobs, on=on, plan_on=plan_on, checkpoint_seconds=checkpoint_seconds)
    except KeyboardInterrupt:
        stopped_at_once(folder)
    finish(outcome, strict)
