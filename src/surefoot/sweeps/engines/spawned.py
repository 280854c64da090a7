"""Where a worker process begins: it gives libraries one thread each, and ends when its parent does.

This module imports nothing heavy, so that the environment is set before NumPy reads it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from surefoot.threads import one_thread


def work(connection: Connection, root: Path) -> None:
    """Play what comes through the connection until None comes. The parent handles signals; only a run under way reacts,
    and stops between two episodes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    one_thread()

    from surefoot.sweeps.engines.local import play_tasks
    from surefoot.sweeps.folder import working

    try:
        with working(root):
            play_tasks(connection, root)
    except (KeyboardInterrupt, EOFError, BrokenPipeError):  # asked twice to stop, or the parent is gone
        with contextlib.suppress(OSError):
            connection.close()
        os._exit(1)


def _end_with_parent() -> None:
    """A killed parent cannot end its workers, and two processes must never write to one directory."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
