"""What can be said about a problem before running it: is it consistent, can learning start, what would help?

`check(problem)` returns a :class:`Diagnosis`: print it, or use its fields or `to_dict()`. It follows from the
declaration alone. A statement about all future data ("never", "impossible") holds on the event of (S3), hence with
probability at least 1 − p.
"""

from __future__ import annotations

from surefoot.diagnosis.calibration.calibrate import calibrate
from surefoot.diagnosis.calibration.result import Calibration
from surefoot.diagnosis.diagnosis import Diagnosis
from surefoot.diagnosis.examine import check

__all__ = ["Calibration", "Diagnosis", "calibrate", "check"]
