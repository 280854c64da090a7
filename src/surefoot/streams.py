"""Randomness: named streams that all come from one seed.

The same seed and name always give the same stream, whatever else is drawn, in whatever order or process.
"""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator called ``name`` (such as ``"transitions"``) of a seed."""
    key = zlib.crc32(name.encode())  # stable across processes, unlike hash()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,))))
