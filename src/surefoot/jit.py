"""How functions are compiled: cached on disk, and without wrappers for callers in C, which take as long to compile as a
small function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function."""
    made: _F = numba.njit(cache=True, no_cfunc_wrapper=True)(function)  # type: ignore[call-overload]
    return made


def unlocked(function: _F) -> _F:
    """The same, but other Python threads go on while it runs."""
    made: _F = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)  # type: ignore[call-overload]
    return made


def leaf(function: _F) -> _F:
    """Compile a function that creates no array, without reference counting.

    Otherwise references to every array that is taken out of a tuple are counted, which takes as long as the work.
    """
    made: _F = numba.njit(cache=True, _nrt=False, no_cfunc_wrapper=True)(function)  # type: ignore[call-overload]
    return made


def fused(function: _F) -> _F:
    """The same; a product and the sum that it enters are rounded once, if the processor can do so."""
    options = {"cache": True, "_nrt": False, "no_cfunc_wrapper": True, "fastmath": {"contract"}}
    made: _F = numba.njit(**options)(function)  # type: ignore[call-overload]
    return made
