"""How many threads are used, and for what.

BLAS uses one while a plan is made: with more, the last digits would depend on the machine. Our own kernels use several,
which share nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Part = TypeVar("Part")

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


class _Helping(threading.local):
    """Whether this thread does a part of some work, beside others."""

    now = False


_helping = _Helping()


def on_threads(parts: Iterable[Part], work: Callable[[Part], object]) -> bool:
    """``work(part)`` of every part, begun in their order; → False once one of them says so: then no other is begun.

    Parts share nothing, so that it changes no bit how many threads there are, and who does what. What is compiled with
    ``nogil`` runs beside the others; ``work`` has one thread, whatever it calls.
    """
    waiting, taking, over = iter(parts), threading.Lock(), threading.Event()

    def some() -> bool:
        fine, before = True, _helping.now
        try:
            _helping.now = True
            while fine and not over.is_set():
                with taking:
                    part = next(waiting, None)
                if part is None:
                    break
                fine = work(part) is not False
        finally:
            over.set()
            _helping.now = before
        return fine

    threads = 1 if _helping.now else usable_threads()
    others = list[Future[bool]]()
    try:
        with suppress(RuntimeError):  # the system gives no more threads, or the interpreter ends: fewer do it all
            for _ in range(threads - 1):
                others.append(_pool(threads - 1).submit(some))
        fine = some()
        wait(others)
    finally:
        over.set()  # nobody begins another
        _outlast(others)
    return all([fine, *(other.result() for other in others)])


def in_ranges(n: int, much: bool, work: Callable[..., None], *arrays: Any) -> None:
    """``work(first, end, *arrays)`` for ranges that make up 0 … n: one, or several on threads if there is much to do.

    (Numba's own threads need code of their own, with ``parallel=True``, which takes far longer to compile.)
    """
    threads = usable_threads() if much and not _helping.now else 1
    if threads == 1:
        return work(0, n, *arrays)
    ranges = PARTS * threads
    on_threads(pairwise(n * i // ranges for i in range(ranges + 1)), lambda own: work(*own, *arrays))
    return None


def _outlast(others: list[Future[bool]]) -> None:
    """Wait until none of them writes any more, a Ctrl-C or not."""
    try:
        wait(others)
    except BaseException:
        _outlast(others)
        raise


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "surefoot")
