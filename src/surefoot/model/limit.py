"""A hard limit on one measured cost. Safe means cost ≤ bound (eq:defhardconstraint)."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.errors import InvalidInput
from surefoot.model.labels import shown
from surefoot.model.reals import constant


@dataclass(frozen=True, slots=True)
class Limit:
    """What is known about one cost: its bound, the noise of its measurements, how large it can be.

    ``cost = ⟨γ, x⟩ + η`` with ``‖γ‖ ≤ norm`` and ``|η| ≤ misspecification``; measurements of it carry
    zero-mean noise that is sub-Gaussian with scale ``noise``. (spec 2 and 3)

    Examples:
        >>> sf.Limit("stress", bound=0.7, noise=0.1, norm=1.0)
        Limit(name='stress', bound=0.7, noise=0.1, norm=1.0, misspecification=0.0)
    """

    name: str
    bound: float
    noise: float
    norm: float
    misspecification: float = 0.0

    def __post_init__(self) -> None:
        if type(self.name) is not str or not self.name:
            raise InvalidInput("a limit needs a name", got=shown(self.name), fix="Give it a word.")
        where = f"limit {self.name!r}"
        for field in ("bound", "noise", "norm", "misspecification"):
            number = constant(field, getattr(self, field), where)
            if field != "bound" and number < 0:
                fix = "It is a scale: give its size, or 0."
                raise InvalidInput(f"{field} is negative", where=where, got=repr(number), fix=fix)
            object.__setattr__(self, field, number)
