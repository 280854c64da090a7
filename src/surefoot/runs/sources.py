"""Where a run's draws come from. No agent may draw the same numbers twice, because its bounds would count them twice.

A seed names streams. Without a seed, an agent continues its last streams, so that 150 runs of 10 episodes are one run
of 1,500; a fresh agent begins those of seed 0. With a seed, it begins the streams of that seed, which must be new to
it. If some of its episodes were entered by hand, nobody knows how they were drawn, and a seed must be given.
"""

from __future__ import annotations

import numpy as np

from surefoot.agents.agent import Agent
from surefoot.agents.blocks.draws import Draws
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.arrays import IntArray
from surefoot.streams import stream
from surefoot.worlds.sampler import Sampler
from surefoot.worlds.world import World


def open_source(agent: Agent, world: World, seed: int | None) -> tuple[Sampler, Draws]:
    """The streams of a run and their record; refused if the agent has learned from another source."""
    played, declared = agent.problem.first, world.problem.first
    if played is not declared and (played.growth is not None or played.digest != declared.digest):
        raise InvalidInput("agent and world have different problems", fix="Make the agent from world.problem.")
    if agent.place is not None:
        raise OutOfOrder("an episode is already under way", fix="End or abort it first.")
    known = agent.draws
    if known is not None and known.world != world.digest:
        raise InvalidInput(
            "the agent has learned on another world of this problem",
            got=f"{agent.episodes} episodes, world {known.world[:12]}… there, {world.digest[:12]}… here",
            fix="Make a new agent for this world.",
        )
    by_hand = agent.episodes - (0 if known is None else known.episodes)
    if seed is None and by_hand:
        raise InvalidInput(
            "the agent has episodes that no run played",
            got=f"{by_hand} of {agent.episodes}",
            fix="Pass a seed that none of its data were drawn with; data from another world need a new agent.",
        )
    if seed is None and known is not None:
        sampler = world.sampler(known.seeds[-1])
        sampler.restore(dict(known.state))
        return sampler, known
    sampler = world.sampler(0 if seed is None else seed)
    number = 0 if seed is None else int(seed)
    seen = () if known is None else known.seeds
    if number in seen:
        raise InvalidInput(
            "the agent has already learned from this seed, and the same noise twice breaks its bounds",
            got=f"seed {number}",
            fix=f"Leave seed out to continue its streams, or pass one that is new, such as {max(seen) + 1}.",
        )
    return sampler, Draws(world.digest, (*seen, number), 0, agent.episodes, sampler.state())


def start_numbers(n: int, seed: int, before: int, episodes: int) -> IntArray:
    """The start of each episode, drawn uniformly from several; ``before``: those drawn in earlier runs."""
    if n == 1:
        return np.zeros(episodes, np.int64)
    drawn: IntArray = stream(seed, "starts").integers(n, size=before + episodes)
    return drawn[before:]
