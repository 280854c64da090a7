"""What the data say: regressions, and the bounds that follow (spec 3; for transitions spec 6).

costs, values         the two regressions of a learner, and what they bound
families              limits that learn from the same rows, and how rows become z
bank, update          sums of rows, and how one more enters                       waiting: many at once
blocks                which columns can occur together
basis, shapes         a regression in its own directions, beside its ridge
ellipsoids, boxes     where γ may lie
kernels, value_kernels   the bounds of many rows, and the expected values of many pairs
row_bounds, tables, prefetch   tables too large to keep, and how they are read
weighted, counts      for the learners that LSVI-NEW is compared with
"""
