"""Seeing results: summaries, plots, pages. It reads records and plans, never agents."""
