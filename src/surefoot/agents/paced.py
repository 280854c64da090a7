"""A baseline whose plans depend on the number of episodes too: it plans anew when that has grown, whatever the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.baseline import Baseline


class Paced(Baseline):
    """Beside what makes a plan due by its data (spec 6), ``replan_growth`` more episodes do."""

    _planned_at = 0  # episodes, when the plan in force was made

    def _replan(self) -> None:
        super()._replan()
        self._planned_at = self.episodes

    def _due_at(self) -> int | None:
        """After how many episodes a plan is due by time; None: never."""
        if not math.isfinite(self.replan_growth):
            return None
        return self._planned_at + max(1, math.ceil(self.replan_growth * self._planned_at))

    def overdue(self) -> bool:
        due = self._due_at()
        return due is not None and self.episodes >= due

    def episodes_before_change(self) -> int | None:
        due = self._due_at()
        left = None if due is None else max(1, due - self.episodes)
        return min((n for n in (super().episodes_before_change(), left) if n is not None), default=None)

    def planned(self) -> dict[str, Any]:
        return {**super().planned(), "planned_at": self._planned_at}

    def put_back(self, planned: Mapping[str, Any]) -> None:
        super().put_back(planned)
        self._planned_at = planned["planned_at"]

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        return {**super().checkpoint(), "planned_at": np.array(self._planned_at)}

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        if moment == "then":  # the plan is made again as after so many episodes
            self._planned_at = self.episodes = int(saved["planned_at"])
        else:
            self.episodes = int(saved["episodes"])
