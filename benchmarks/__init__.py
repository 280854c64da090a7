"""Benchmarks: each module has `run() -> list[dict]`, whose rows are measured in one and the same run."""
