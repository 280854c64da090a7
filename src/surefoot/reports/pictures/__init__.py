"""Worlds and plans, drawn."""
