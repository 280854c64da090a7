"""What can be said of a problem before it is run: is it consistent, can it move, what would help.

`check(problem)` gives a :class:`Diagnosis`: print it to read it, take its fields or `to_dict()` to use it.
Everything follows from the declaration alone. Where a statement is about all data that may ever come
("never", "impossible"), it holds on the event of (S3), hence with probability at least 1 − p.
"""

from __future__ import annotations

from surefoot.diagnosis.diagnosis import Diagnosis
from surefoot.diagnosis.examine import check

__all__ = ["Diagnosis", "check"]
