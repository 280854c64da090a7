"""One seeded run of an agent on a world, measured exactly: begin it, or resume it."""

from __future__ import annotations

from pathlib import Path
from typing import cast, overload

from surefoot.agents.agent import Agent
from surefoot.agents.plant_agent import PlantAgent
from surefoot.errors import InvalidInput
from surefoot.model.plant.simulation import Simulation
from surefoot.runs.plants import Controller, PlantRun, run_plant
from surefoot.runs.run import Run
from surefoot.runs.session import OnEpisode, OnPlan, Session
from surefoot.worlds.world import World, check_world


@overload
def run(
    agent: Agent,
    world: World,
    episodes: int,
    seed: int | None = None,
    *,
    compiled: bool = True,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    on_plan: OnPlan | None = None,
    on_episode: OnEpisode | None = None,
) -> Run: ...


@overload
def run(
    agent: PlantAgent | Controller,
    world: Simulation,
    episodes: int,
    seed: int | None = None,
    *,
    progress: bool | None = None,
    on_plan: OnPlan | None = None,
) -> PlantRun: ...


def run(
    agent: Agent | PlantAgent | Controller,
    world: World | Simulation,
    episodes: int,
    seed: int | None = None,
    *,
    compiled: bool = True,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    on_plan: OnPlan | None = None,
    on_episode: OnEpisode | None = None,
) -> Run | PlantRun:
    """Let an agent play some episodes on a world, and measure it.

    Args:
        agent: made for ``world.problem``, either fresh or after earlier runs on the same world.
        episodes: how many to play.
        seed: names the random streams of the world's transitions and noise: the same seed and a fresh agent give the
            same run, to the bit. No agent draws the same numbers twice, which its bounds would take for new evidence:
            leave the seed out to continue where its last run stopped (a fresh agent starts with seed 0), or give one
            that it has not used. It learns from one world only.
        compiled: False plays step by step, as a real plant would be driven; the result is the same.
        progress: show a bar; by default on a terminal, if it takes more than two seconds.
        checkpoint: a file to keep the run in: written at the end, on Ctrl-C, and every ``checkpoint_every``
            episodes. :func:`resume` continues from it.
        on_plan: called with every new plan, before its first episode, and the number of episodes before it. If it
            returns True, the run ends there.
        on_episode: called after every episode with its :class:`~surefoot.runs.record.EpisodeRow`. If it returns True,
            the run ends there. Episodes are then played one at a time, with the same result but more slowly.

    Ctrl-C ends the run early and keeps what is done. ``run.interrupted`` is then True, also after a callback's True.

    With a simulated plant instead of the world (:meth:`Plant.simulate`), a :class:`PlantAgent` or any controller, a
    function of ``(h, x)``, runs on the continuous state. The result is a :class:`PlantRun`; the options are
    ``progress`` and ``on_plan``.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> run = sf.run(sf.LsviNew(world.problem), world, episodes=50, seed=0)
        >>> run.episodes, int(run.violations.sum())
        (50, 0)
        >>> stopped = sf.run(sf.LsviNew(world.problem), world, 500, 0, on_episode=lambda row: row.to_gain < 1.2)
        >>> stopped.interrupted, stopped.episodes < 500
        (True, True)
    """
    if isinstance(world, Simulation):
        if checkpoint is not None or checkpoint_every is not None:
            raise InvalidInput(
                "a run on a simulated plant keeps no checkpoint", fix="Use a study, which keeps everything."
            )
        if on_episode is not None:
            raise InvalidInput(
                "a run on a simulated plant has no on_episode", fix="Use on_plan, or run fewer episodes."
            )
        return run_plant(cast("PlantAgent | Controller", agent), world, episodes, seed, on_plan, progress)
    if not isinstance(agent, Agent):
        raise _no_agent(agent)
    check_world(world, "a run")
    session = Session(agent, world, episodes, seed)
    session.call(on_plan, on_episode)
    return session.play(compiled, progress, checkpoint, checkpoint_every)


def _no_agent(given: object) -> InvalidInput:
    rule = "a world is played by an agent"
    if isinstance(given, World):
        return InvalidInput(rule, got="a World", fix="The agent comes first: sf.run(agent, world, episodes=…).")
    if isinstance(given, str):
        return InvalidInput(rule, got=repr(given), fix=f"sf.agents.make({given!r}, world.problem) makes one by name.")
    if isinstance(given, type):
        return InvalidInput(rule, got=f"the class {given.__name__}", fix=f"Make one: {given.__name__}(world.problem).")
    fix = "A learner of your own is a subclass of surefoot.agents.agent.Agent"
    fix += "; a PlantAgent, and any controller, is run on plant.simulate(step)."
    return InvalidInput(rule, got=f"a {type(given).__name__}", fix=fix)


def resume(
    path: str | Path,
    agent: Agent,
    world: World,
    *,
    episodes: int | None = None,
    compiled: bool = True,
    progress: bool | None = None,
    checkpoint_every: int | None = None,
    on_plan: OnPlan | None = None,
    on_episode: OnEpisode | None = None,
) -> Run:
    """Resume from a checkpoint; the result is that of an uninterrupted run.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> half = sf.run(sf.LsviNew(world.problem), world, episodes=20, seed=0, checkpoint="half.npz")
        >>> sf.resume("half.npz", sf.LsviNew(world.problem), world, episodes=40).episodes
        40

    Make ``agent`` and ``world`` anew, as for the first run; a different problem, agent or constant is refused.
    ``episodes`` may be larger than the first run's.
    """
    from surefoot.runs import checkpoint as checkpoints

    saved = checkpoints.load_checkpoint(Path(path), agent, world)
    session = Session.resumed(saved, agent, world, saved.episodes if episodes is None else episodes)
    session.call(on_plan, on_episode)
    return session.play(compiled, progress, path, checkpoint_every)
