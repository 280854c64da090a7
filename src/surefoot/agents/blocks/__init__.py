"""What agents are built of: no file here acts on its own.

place, draws, random_actions    of every agent: the episode under way, what it was fed with, actions drawn by lot
look_ahead                      of the paper's two learners
baseline                        of all that they are compared with; what a family of these shares is in its own file
"""
