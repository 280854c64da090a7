"""Seeded runs of an agent on a world, and the record they leave."""
