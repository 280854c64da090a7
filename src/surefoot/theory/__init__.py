"""The constants of the paper and of the specification, as pure functions of numbers.

Symbols: d dimension, H horizon, K episodes, T = H·K total steps, m limits, p failure probability,
σ noise scale, L norm bound, λ ridge, D feature bound (‖φ_V‖ ≤ D), c̄ a limit's bound,
c⁰ an anchor's known cost. Steps are 0 … H−1 (the paper's 1 … H); decisions at 0 … H−2.

Labels such as `eq:epss` and `thm:regret` are those of the paper (lsvi-new.tex); `spec n` is a section of the
specification. Each formula has a test that is named after its label. No argument has a default, so none is forgotten.

Examples:
    >>> sf.theory.gap(bound=1.0, anchor_cost=0.5, delta_phi=0.25)
    0.25
"""

from surefoot.theory.paper import (
    LowerBound,
    beta,
    beta_1,
    delta_phi,
    epsilon_1,
    epsilon_2,
    epsilon_3,
    epsilon_4,
    future_gap,
    gap,
    initial_episodes,
    kappa,
    lower_bound,
    regret_bound,
)
from surefoot.theory.radii import cost_log_term, noise_radius, self_normalised_radius, value_log_term, value_radius
from surefoot.theory.regret_theorem import (
    MOST_EPISODES,
    PaperConstants,
    Setting,
    paper_constants,
    smallest_usable_episodes,
)

__all__ = [
    "MOST_EPISODES",
    "LowerBound",
    "PaperConstants",
    "Setting",
    "beta",
    "beta_1",
    "cost_log_term",
    "delta_phi",
    "epsilon_1",
    "epsilon_2",
    "epsilon_3",
    "epsilon_4",
    "future_gap",
    "gap",
    "initial_episodes",
    "kappa",
    "lower_bound",
    "noise_radius",
    "paper_constants",
    "regret_bound",
    "self_normalised_radius",
    "smallest_usable_episodes",
    "value_log_term",
    "value_radius",
]
