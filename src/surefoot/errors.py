"""The errors that surefoot raises on purpose.

Every message has the same parts: the rule that was broken, the place (step, state, action, …), what was found there,
and what to do about it. Each part is also an attribute of the error.

Examples:
    >>> try:
    ...     sf.Limit("stress", bound=0.7, noise=-0.1, norm=1.0)
    ... except sf.errors.InvalidInput as error:
    ...     print(error)
    ...     print((error.rule, error.where, error.got))
    noise is negative: limit 'stress': -0.1. It is a scale: give its size, or 0.
    ('noise is negative', "limit 'stress'", '-0.1')
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
    """The base of every error below."""

    def __init__(self, rule: str, *, where: str = "", got: str = "", fix: str = "") -> None:
        self.rule, self.where, self.got, self.fix = rule, where, got, fix
        message = ": ".join(part for part in (rule, where, got) if part)
        super().__init__(f"{message}. {fix}" if fix else message)


class InvalidInput(SurefootError, ValueError):
    """A declaration or an argument breaks a rule; nothing was changed."""


class UnknownLabel(SurefootError, LookupError):
    """A state, action or successor that the problem does not contain."""


class OutOfOrder(SurefootError, RuntimeError):
    """A call at the wrong moment, such as acting before the episode began."""


class AssumptionBroken(SurefootError, RuntimeError):
    """The plant did something that the declaration rules out; safety can no longer be promised."""


class UnreadableFile(SurefootError, ValueError):
    """A file that is truncated, corrupted, hostile, or of a newer version."""


class UnwritableFile(SurefootError, OSError):
    """A disk that is full or failing; everything acknowledged before is safe, and the failed call changed nothing."""
