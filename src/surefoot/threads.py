"""How many threads are used, and for what.

BLAS uses one while a plan is made: with more, the last digits would depend on the machine. Our own kernels use several,
one block each.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

from threadpoolctl import ThreadpoolController

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (numba's products call scipy's BLAS: it must be loaded to be held)

    return ThreadpoolController()


_one_at_a_time = threading.RLock()  # BLAS settings belong to the whole process
_forked = threading.Event()  # in a child of os.fork, where thread pools are dead


def _after_fork() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()  # another thread may have held it at that moment
    _forked.set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which every BLAS of this process uses one thread; the earlier settings are restored.

    Other threads that enter it wait, because overlapping contexts would restore settings in the wrong order.
    """
    with _one_at_a_time, _controller().limit(limits=1, user_api="blas"):
        yield


def one_thread() -> None:
    """In a worker process: one thread per library that is still to be loaded, by the environment.

    If a script imports numba, its workers have it loaded already, and numba refuses to compile once its variable no
    longer has its first value; the code that computes then sets it (``numba.set_num_threads``).
    """
    loaded = "numba" in sys.modules
    for name in ONE_THREAD:
        if not (loaded and name.startswith("NUMBA")):
            os.environ[name] = "1"


def usable_threads() -> int:
    """How many threads our kernels may use.

    Thread pools survive neither a fork nor a second caller, and a worker process already has its core.
    """
    import numba

    worker = multiprocessing.parent_process() is not None or _forked.is_set()
    if worker or threading.current_thread() is not threading.main_thread():
        return 1
    return int(numba.get_num_threads())


def serial_and_parallel(kernel: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A kernel compiled for one thread and for several; the two must give the same bits."""
    import numba

    # numba stores compiled code by the function's name, whatever its options: under one name, the code for several
    # threads would be found on disk when that for one is asked for.
    twin = FunctionType(kernel.__code__, kernel.__globals__, f"{kernel.__name__}_parallel")
    twin.__qualname__, twin.__module__ = twin.__name__, kernel.__module__
    return numba.njit(cache=True)(kernel), numba.njit(cache=True, parallel=True)(twin)
