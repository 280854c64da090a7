"""Alarms: what each disproves, and what answers it.

"cost", "plan"      a person's reason: a cost that is not finite, or a plan that cannot be computed, disproves nothing
"limit"             a noise scale that explains the measurement, or all data discarded; if the action was not certified
                    (an operator's or a logged one), a reason is enough
"successor"         a support with this transition; or, once for each transition, all data discarded (a typing error, or
                    the plant was repaired). For a plant only the latter: its functions cannot be declared again
any other kind      all data discarded: what was learned cannot be trusted any more

All but the first row disprove what was declared: the promise ends, and returns with the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from surefoot.errors import SurefootError
from surefoot.model.labels import label_of
from surefoot.model.problem import Problem
from surefoot.study.records import Record, compact

REASON, NOISE, SUPPORT, DISCARD = "reason", "noise", "support", "discard"  #: what answers an alarm

_ANSWERS = {"cost": REASON, "plan": REASON, "limit": NOISE, "successor": SUPPORT}  # of all others: DISCARD


@dataclass(frozen=True)
class Raised:
    """An alarm, before or after it is journalled."""

    kind: str
    record: int  # that raised it
    message: str
    details: dict[str, Any]

    @classmethod
    def of(cls, entries: Record) -> Raised:
        return cls(entries["alarm"], entries["record"], entries["message"], entries["details"])

    def entries(self) -> Record:
        return {"alarm": self.kind, "record": self.record, "message": self.message, "details": self.details}

    @property
    def answer(self) -> str:
        """The least that answers it: REASON, NOISE, SUPPORT or DISCARD."""
        found, details = _ANSWERS.get(self.kind, DISCARD), self.details
        if found == NOISE and details.get("certified") is False:
            return REASON
        cannot = (found == NOISE and not details.get("noise_needed")) or (found == SUPPORT and "exact" in details)
        return DISCARD if cannot else found

    @property
    def disproves(self) -> bool:
        """True when something that was declared cannot be so."""
        return self.answer != REASON

    @property
    def transition(self) -> str:
        """What an alarm "successor" saw, as one text."""
        return compact([self.details.get(key) for key in ("step", "state", "action", "next_state")])

    def declared_in(self, problem: Problem) -> bool:
        """Is the transition in the support? For a plant never: its cell may be declared, but its box is wrong."""
        if "exact" in self.details:
            return False
        try:
            names = [label_of(self.details[key]) for key in ("state", "action", "next_state")]
            problem.edge_index(self.details["step"], *names)
        except (SurefootError, KeyError):
            return False
        return True

    def asks(self, new: Problem, discard: bool, outside: Iterable[str]) -> str:
        """What it still requires under a declaration, in words; ``outside``: transitions already answered by a
        discard."""
        if not self.disproves:
            return ""
        if self.kind == "successor":
            if self.declared_in(new) or (discard and self.transition not in outside):
                return ""
            if self.answer == DISCARD:
                return "a new study of a plant with larger disturbance" if discard else "discard_data=True"
            seen = f"a problem in which {self.details.get('next_state')!r} may follow"
            again = " (discard_data does not answer it a second time)"
            return f"{seen}{again}" if discard else f"{seen}, or discard_data=True"
        if discard:
            return ""
        if self.answer == DISCARD:
            return "discard_data=True"
        needed, noises = self.details["noise_needed"], {limit.name: limit.noise for limit in new.limits}
        if all(noises.get(name, -1.0) >= scale for name, scale in needed.items()):
            return ""
        scales = ", ".join(f"{name!r}: {scale * (1 + 1e-5):.6g}" for name, scale in needed.items())
        return f"noise of at least {{{scales}}}, or discard_data=True"


def unanswered(raised: Iterable[Raised], new: Problem, discard: bool, outside: Iterable[str]) -> list[str]:
    """What the alarms still require, in words."""
    return [words for alarm in raised if (words := alarm.asks(new, discard, outside))]


def answered_by_discard(raised: Iterable[Raised], new: Problem) -> list[str]:
    """Undeclared transitions that are not in the new declaration either."""
    return [alarm.transition for alarm in raised if alarm.kind == "successor" and not alarm.declared_in(new)]


def join(details: Record, further: Record, certified: bool) -> None:
    """One alarm stands for all rows of an import: its answer must explain each of them."""
    needed: dict[str, float] = details.get("noise_needed", {})
    for name, scale in further.get("noise_needed", {}).items() if needed else ():
        needed[name] = max(scale, needed.get(name, 0.0))
    details["certified"] = details["certified"] or certified
