"""What agents are built of. Nothing here acts on its own.

place, draws, random_actions    every agent: the episode under way, what it has learned from, actions drawn at random
look_ahead                      the paper's two learners
baseline, options               all that they are compared with; each family has a file of its own
"""
