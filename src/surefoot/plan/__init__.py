"""What follows from the bounds: certified sets, exploration, values, and the policy (spec 4 to 6).

confidence                  how wide the bounds are, from an agent's options
certify, values             the certified pairs, and the best of them              kernels, segments
directed, hope, scores      exploration towards what would certify more reward     purpose
explore                     exploration by the paper's bonuses                     paper: to the letter
mapped, blockwise           the same plans, of a problem on the disk or on many machines
rays, point, centres        intensities, and exact states of a plant               growth: of the graph
plan, why, policy_document  what was found, why, and as a file
successors, drawing, occupancy   for the learners that LSVI-NEW is compared with
"""
