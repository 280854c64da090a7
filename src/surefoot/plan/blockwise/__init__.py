"""A plan that many processes make together, each from the states that it owns."""
