"""Who acts: LSVI-NEW and the systems it is compared with, all over the same Problem."""

from surefoot.agents.registry import make, names

__all__ = ["make", "names"]
