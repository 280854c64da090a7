"""The few ways in which surefoot refuses.

A message is built from the same parts everywhere: the rule that was broken, the place
(layer, state, action, …), what was found there, and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "AssumptionBroken",
    "InvalidInput",
    "OutOfOrder",
    "SurefootError",
    "UnknownLabel",
    "UnreadableFile",
    "UnwritableFile",
]


class SurefootError(Exception):
    """Everything that surefoot raises on purpose."""

    def __init__(self, rule: str, *, where: str = "", got: str = "", fix: str = "") -> None:
        self.rule, self.where, self.got, self.fix = rule, where, got, fix
        message = ": ".join(part for part in (rule, where, got) if part)
        super().__init__(f"{message}. {fix}" if fix else message)


class InvalidInput(SurefootError, ValueError):
    """A declaration or an argument that breaks a rule; nothing was changed."""


class UnknownLabel(SurefootError, LookupError):
    """A state, action or successor that the problem does not contain."""


class OutOfOrder(SurefootError, RuntimeError):
    """A call that does not fit the moment, such as acting before the episode began."""


class AssumptionBroken(SurefootError, RuntimeError):
    """The plant did what the declared knowledge excludes; safety can no longer be promised."""


class UnreadableFile(SurefootError, ValueError):
    """A file that is truncated, corrupted, hostile, or of a newer version."""


class UnwritableFile(SurefootError, OSError):
    """A disk that is full or failing; what was acknowledged before is safe, the call that failed did nothing."""
