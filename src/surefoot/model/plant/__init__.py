"""A continuous plant becomes a Problem (spec 9): cells, the boxes that models reach, and features at the corners."""
