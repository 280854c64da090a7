"""A study re-verified independently: imports nothing of the planner."""
