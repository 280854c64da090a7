"""The truth, computed: the best safe policy of a World and the exact value of any policy.

Examples:
    >>> world = sf.worlds.make("thermal/testing")
    >>> best = sf.exact.solve(world)
    >>> round(sf.exact.fallback_value(world), 3), round(best.value, 3)
    (1.089, 2.542)
    >>> sf.exact.violations(world, best.policy).probability
    0.0

Steps h = 0 … H-1; actions are taken before the last one, which only has a reward r(s) and perhaps a
cost (spec 1). P_h(s'|s,a) and the costs are those of the world. "Within" means cost_j ≤ bound_j + 10⁻⁹ of the limit's
scale for every limit j (spec 8); no arrival in a forbidden state is within (spec 9). An action is *truly safe* if every
successor with P > 0 is reached within all bounds and is itself a truly safe state; a state is truly safe if one of its
actions is:

    A_h(s)  = { a : for all s' with P_h(s'|s,a) > 0:  cost_h(s,a,s') within,  s' ∈ S_{h+1} }
    S_h     = { s : A_h(s) is not empty },        S_{H-1} = { s : cost(s) within },      no forbidden s in either
    V_h(s)  = max over a ∈ A_h(s) of  r_h(s,a) + Σ_{s'} P_h(s'|s,a) V_{h+1}(s'),      V_{H-1} = r

All sums run in declaration order. Rounding is monotone, so the computed value of a policy of truly safe actions never
exceeds the computed best value, not even in the last digit: regret is never negative.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.exact.best import Solution, safe_sets, solve
from surefoot.exact.evaluate import Violations, evaluate, evaluate_all, fallback_value, violations
from surefoot.exact.policies import Policy, fallback

if TYPE_CHECKING:
    from surefoot.exact.oracle_shield import OracleShield
    from surefoot.exact.witness import Witness

__all__ = [
    "OracleShield",
    "Policy",
    "Solution",
    "Violations",
    "Witness",
    "evaluate",
    "evaluate_all",
    "fallback",
    "fallback_value",
    "safe_sets",
    "solve",
    "violations",
]

# Loaded on first use: they import Gymnasium and the learners.
_LATER = {"Witness": "witness", "OracleShield": "oracle_shield"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"surefoot.exact.{_LATER[name]}"), name)
    raise AttributeError(f"module 'surefoot.exact' has no attribute {name!r}")
