"""What the costs of a problem are measured against (spec 8)."""

from __future__ import annotations

from .tables import Tables, norm

VIOLATION = 1e-9  # of a limit's scale: a true cost beyond its bound by more is a violation


def largest_cost_norm(tables: Tables) -> float:
    """max over triplets, and terminal states with a cost, of the norm of the cost features."""
    last = [x for x in (tables.terminal_x or {}).values() if x is not None]
    return max(norm(x) for x in [*tables.x.values(), *last])


def cost_scales(tables: Tables) -> list[float]:
    """|bound| + norm times the longest feature, per limit."""
    longest = largest_cost_norm(tables)
    return [abs(limit.bound) + limit.norm * longest for limit in tables.limits]
