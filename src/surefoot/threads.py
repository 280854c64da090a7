"""How many threads are used, and for what.

BLAS uses one while a plan is made: with more, the last digits would depend on the machine. Our own kernels use several,
which share nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PARTS = 4  # ranges for each thread: one that is held up is helped by the others


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

    Threads do not survive a fork, a thread that is not the main one is one of several, and a worker process already
    has its core.
    """
    import numba

    worker = multiprocessing.parent_process() is not None or _forked.is_set()
    if worker or threading.current_thread() is not threading.main_thread():
        return 1
    return int(numba.get_num_threads())


def in_ranges(n: int, much: bool, work: Callable[..., None], *arrays: Any) -> None:
    """``work(first, end, *arrays)`` for ranges that make up 0 … n: one, or several on threads if there is much to do.

    Ranges must share nothing, so that their number and order change no bit, and ``work`` call what is compiled with
    ``nogil``. (Numba's own threads need code of their own, with ``parallel=True``, which takes far longer to compile.)
    """
    threads = usable_threads() if much else 1
    if threads == 1:
        return work(0, n, *arrays)
    ranges = iter([(n * i // (PARTS * threads), n * (i + 1) // (PARTS * threads)) for i in range(PARTS * threads)])

    def some() -> None:
        for first, end in ranges:  # whoever is done takes the next
            work(first, end, *arrays)

    others = list[Future[None]]()
    try:
        for _ in range(threads - 1):
            others.append(_pool(threads - 1).submit(some))
        some()
        wait(others)
    except BaseException:
        for _ in ranges:  # nobody takes another
            pass
        raise
    finally:
        _outlast(others)
    for other in others:
        other.result()
    return None


def _outlast(others: list[Future[None]]) -> None:
    """Wait until none of them writes any more, a Ctrl-C or not."""
    try:
        wait(others)
    except BaseException:
        _outlast(others)
        raise


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "surefoot")
