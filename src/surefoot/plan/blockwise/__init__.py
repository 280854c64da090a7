"""A plan that many processes make together, each for the states that it owns."""
