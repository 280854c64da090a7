"""Python runs this at its start when this folder is on its path: a line for each time numba's compiler was busy.

Worker processes are watched, too, as they inherit the path. A line is (event, from, to, what), in the file that
SUREFOOT_COMPILER_LOG names, by the clock that all processes share; it is written at once, because a worker may be ended
without notice. Numba is not loaded before the program itself does it: workers set its number of threads first.
"""

import importlib.util
import os
import sys
import time
from types import ModuleType
from typing import Any

EVENTS = "numba.core.event"


def _note(kind: str, since: float, data: Any) -> None:
    what = getattr((data or {}).get("dispatcher"), "__name__", "")
    with open(os.environ["SUREFOOT_COMPILER_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{kind}\t{since}\t{time.monotonic()}\t{what}\n")


def _watch(events: Any) -> None:
    class Listener(events.Listener):
        def __init__(self, kind: str) -> None:
            self.kind, self.since = kind, list[float]()

        def on_start(self, event: Any) -> None:
            self.since.append(time.monotonic())  # they nest: a function compiles those it calls

        def on_end(self, event: Any) -> None:
            _note(self.kind, self.since.pop(), event.data)

    for kind in ("numba:compile", "numba:compiler_lock"):
        events.register(kind, Listener(kind))


class _WhenLoaded:
    """Finds numba's events as usual, and starts to listen as soon as they are loaded."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != EVENTS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def load_and_watch(module: ModuleType) -> None:
            load(module)
            _watch(module)

        setattr(spec.loader, "exec_module", load_and_watch)  # noqa: B010
        return spec


if "SUREFOOT_COMPILER_LOG" in os.environ:
    sys.meta_path.insert(0, _WhenLoaded())
