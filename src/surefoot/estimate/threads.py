"""BLAS on one thread, while a plan is made: with more, the last digits would depend on the machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (numba's products call scipy's BLAS: it must be loaded to be held)

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which every BLAS of this process uses one thread; what was set before comes back."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context
