"""Functions of plants for many states at once: one that is wrong among others is found out, and never relied on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput
from surefoot.model.plant.calls import Call

GRID = np.stack([part.reshape(-1) for part in np.meshgrid(*[np.linspace(0.0, 1.0, 15)] * 2, indexing="ij")])


def hot_and_empty(h: int, x: Any, u: float) -> Any:
    """Wrong for many states in one corner: neither in the first, nor in the last, nor in the middle one."""
    return x[0] + x[1] - (0.2 * (x[0] > 0.7) * (x[1] < 0.3) if np.ndim(x[0]) else 0.0)


def small_beside_large(h: int, x: Any, u: float) -> Any:
    """Wrong by half in a value that is small beside the other one."""
    return [1e6 + x[0], 1e-4 * (x[1] if np.ndim(x[1]) == 0 else x[1].mean())]


def in_a_small_unit(h: int, x: Any, u: float) -> Any:
    return 1e-10 * (x[1] if np.ndim(x[1]) == 0 else 0.5)


@pytest.mark.parametrize(("function", "values"), [(hot_and_empty, 1), (small_beside_large, 2), (in_a_small_unit, 1)])
def test_a_function_that_is_wrong_among_others_is_called_state_by_state(function: Any, values: int) -> None:
    call = Call("reward", function, values)
    found = call.at(0, GRID, 0.1)
    assert call.by_point
    assert np.array_equal(found, [*zip(*(call.one(0, x, 0.1) for x in GRID.T), strict=True)])


def test_rounding_is_no_disagreement() -> None:
    """Sums of many states may round otherwise than those of one, and what is left of large numbers is rounding."""
    call = Call("model", lambda h, x, u: [np.sin(x[0]) ** 2 + np.cos(x[0]) ** 2 - 1.0, (1e6 + x[1]) - 1e6], 2)
    call.at(0, GRID, 0.1)
    assert not call.by_point


def test_a_function_found_out_after_its_results_were_used_is_refused() -> None:
    """At step 0 it is right; what it gave there was compared at some states only."""
    call = Call("reward", lambda h, x, u: x[0] if h == 0 or np.ndim(x[0]) == 0 else x[0].max(), 1)
    call.at(0, GRID, 0.1)
    with pytest.raises(
        InvalidInput, match=r"reward gives a state another value .* \[1\.0\] among others, \[0\.0\] alone"
    ):
        call.at(1, GRID, 0.1)
    few = Call("reward", call.function, 1)  # all of so few states were compared, so nothing that was used is wrong
    few.at(0, GRID[:, :9], 0.1)
    assert few.at(1, GRID[:, 9:18], 0.1).tolist() == [GRID[0, 9:18].tolist()]


def test_later_calls_are_compared_at_other_states_each_time() -> None:
    """A mistake in one state of 225 at a step is found within as many calls, at a cost of five states a call."""
    seen: set[tuple[float, ...]] = set()

    def noted(h: int, x: Any, u: float) -> Any:
        if np.ndim(x[0]) == 0:
            seen.add(tuple(x))
        return x[0]

    call = Call("reward", noted, 1)
    for u in range(75):
        call.at(0, GRID, float(u))
    assert len(seen) > 200
