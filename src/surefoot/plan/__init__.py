"""What follows from the bounds: certified sets, exploration, optimistic values, a plan."""
