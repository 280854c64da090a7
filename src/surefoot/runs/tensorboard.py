"""A run in TensorBoard: callbacks that write what it does, episode by episode (extra ``tensorboard``)."""

from __future__ import annotations

import math
from pathlib import Path
from types import TracebackType

from surefoot.checks import needed, whole
from surefoot.plan.plan import Plan
from surefoot.runs.record import EpisodeRow


class TensorBoard:
    """Writes event files that ``tensorboard --logdir`` shows, while a run is under way.

    Args:
        folder: where to write; use a separate folder for each run.
        every: episodes between two points. Nothing in between is lost: each point has the number of violations so far
            and the smallest margin since the previous point.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> with sf.TensorBoard("events") as board:
        ...     run = sf.run(
        ...         sf.LsviNew(world.problem), world, 50, 0, on_plan=board.on_plan, on_episode=board.on_episode
        ...     )
        >>> run.episodes
        50
    """

    def __init__(self, folder: str | Path, every: int = 1) -> None:
        package = needed("tensorboardX", "sf.TensorBoard", "'surefoot[tensorboard]'")
        self._every = whole("every", every, 1)
        self._writer = package.SummaryWriter(str(folder))
        self._regret, self._violations = 0.0, 0
        self._margin: list[float] = []

    def on_plan(self, plan: Plan, episodes: int) -> None:
        """For ``sf.run(on_plan=…)``: what is certified, and what is still to be gained."""
        self._add("plan/number", plan.number, episodes)
        self._add("plan/certified_actions", plan.n_certified(), episodes)
        self._add("plan/gap", plan.gap, episodes)
        self._add("plan/to_gain", plan.to_gain, episodes)

    def on_episode(self, row: EpisodeRow) -> None:
        """For ``sf.run(on_episode=…)``: value, regret, violations and margins."""
        self._regret += row.regret
        self._violations += row.violations
        here = row.margin.tolist()
        self._margin = [min(a, b) for a, b in zip(self._margin, here, strict=True)] if self._margin else here
        if row.episode % self._every:
            return
        self._add("episode/value", row.value, row.episode)
        self._add("episode/reward", row.reward, row.episode)
        self._add("total/regret", self._regret, row.episode)
        self._add("total/violations", self._violations, row.episode)
        for j, margin in enumerate(self._margin):
            self._add(f"margin/{j}", margin, row.episode)
        self._margin = []

    def _add(self, name: str, value: float, episode: int) -> None:
        if math.isfinite(value):
            self._writer.add_scalar(name, float(value), episode)

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
