"""The agents: LSVI-NEW and the learners that it is compared with, all made for the same Problem.

Examples:
    >>> sf.agents.make("fallback", sf.worlds.make("thermal/testing").problem)
    Fallback(episodes=0, replans=0)
"""

from surefoot.agents.registry import make, names

__all__ = ["make", "names"]
