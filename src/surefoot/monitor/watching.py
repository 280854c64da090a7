"""What a study asks of a monitor; :class:`surefoot.monitor.monitor.Monitor` is the one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem


class AlarmLike(Protocol):
    """What a monitor raises."""

    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def details(self) -> dict[str, Any]: ...


class MonitorLike(Protocol):
    """Watches every measured cost."""

    def observe(self, h: int, edge_index: int, cost: FloatArray, /) -> AlarmLike | None: ...
    def observe_features(self, h: int, features: FloatArray, cost: FloatArray, /) -> AlarmLike | None: ...
    def observe_terminal(self, state_index: int, cost: FloatArray, /) -> AlarmLike | None: ...
    def beyond(self, h: int, cost: FloatArray, /) -> AlarmLike | None: ...
    def follow(self, problem: Problem, /) -> None: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: Mapping[str, NDArray[Any]], /) -> None: ...


MonitorFactory = Callable[[Problem, float], MonitorLike]
