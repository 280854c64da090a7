"""All tolerances.

A tolerance on a cost is a share of the limit's *scale*, |bound| + norm·(largest ‖x‖), which
:attr:`surefoot.Problem.cost_scales` computes, so the units of a problem do not matter. Safety proofs have no tolerance:
"upper ≤ bound" is meant exactly (spec 4). The audit, which imports nothing from here, has its own copy.
"""

from __future__ import annotations

# --- of a limit's scale ---------------------------------------------------------------------------------

#: A true cost breaks its limit if it exceeds the bound by more than this (spec 8): a policy that just keeps the limit
#: must not be called unsafe because of rounding.
VIOLATION = 1e-9
#: A true cost lies within [lower, upper] if it misses them by no more than this (spec 8). It is less than VIOLATION, so
#: that there are no violations on the cost event.
EVENT = 5e-10
#: A lower bound above its upper by more than this is a contradiction, not rounding (spec 3): the rounding guards on
#: both have been spent by then.
CONTRADICTION = 1e-9
#: How far true costs may be from ⟨γ, x⟩ and from an anchor's cost beyond the declared misspecification: two ways of
#: summing differ in the last digits.
TRUTH = 1e-9

# --- of the largest ‖x‖² --------------------------------------------------------------------------------

#: The least default ridge: a smaller one would trust the prior to more digits than sums of many rows have.
LEAST_RIDGE = 1e-6
#: The least ridge that is allowed: with a smaller one, a single row leaves no digit of its ellipsoid.
USABLE_RIDGE = 1e-30
#: The largest ridge that is allowed: with a larger one, 10¹⁸ of the longest rows weigh less than the ridge.
MOST_RIDGE = 1e18

# --- of L√λ --------------------------------------------------------------------------------------------

#: The least noise radius R (spec 3): less would trust sums of squares to more digits than they have.
LEAST_NOISE = 1e-6
#: With a larger R nothing is learned in any number of episodes: the ball of the norm takes the place of the ellipsoid,
#: and no square overflows.
MOST_NOISE = 1e9

# --- of numbers as such ---------------------------------------------------------------------------------

#: Squares must lie between these: then sums of 10¹⁸ of them neither under- nor overflow, and a problem whose units are
#: changed by a power of two gives the same bits.
SQUARES = (1e-250, 1e250)

# --- of a declared length, of a sum of probabilities, of a logarithm -------------------------------------

#: A hidden parameter may be longer than declared by this share.
LENGTH = 1e-9
#: An anchor's cost, or the shortest γ of a prior, may be larger than the norm allows by this share.
ANCHOR = 1e-12
#: Anchors contradict each other when every γ misses one of them by more than this share of their costs; the linear
#: program that says so is solved to fewer digits than costs have.
ANCHORS_TOGETHER = 1e-7
#: The probabilities of a pair may miss one by this much; they are divided by their sum.
PROBABILITY_SUM = 1e-9
#: A probability this far below zero is rounding, and becomes zero.
NEGATIVE_PROBABILITY = 1e-12
#: log det(A) − d·log λ is never negative but for rounding of this size.
LOG_DET = 1e-6

# --- of plants (spec 9) ---------------------------------------------------------------------------------

#: Of a coordinate's size: boxes are widened by it, so that rounding leaves out no cell.
CELL = 1e-12
#: Of a feature's size: where it is computed for many states at once, or between corners, it may be off by this.
FEATURE = 1e-9
#: Of the chances of next cells, which affect values only: less than the first may be missing; less than the second may
#: land outside the declared cells, and more means that the cells are wrong.
CHANCE_LEFT, CHANCE_ASTRAY = 1e-9, 1e-6
