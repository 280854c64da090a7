"""The benchmark worlds, one file per family."""
