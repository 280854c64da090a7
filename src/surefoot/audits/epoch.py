"""What the audit keeps of an episode, and of an epoch.

Part of the audit: imports nothing of surefoot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surefoot.audits.bounds import Confidence, Data
from surefoot.audits.chain import Record


@dataclass
class Position:
    number: int
    step: int
    state: int
    lost: bool = False  # an unknown action was applied
    strayed: bool = False  # an action was applied that may depend on an offset which the episode shares


@dataclass
class Epoch:
    """What begins anew when data are discarded."""

    number: int
    data: Data
    confidence: Confidence
    constants: Record
    rows: list[tuple[int, int, Any, Any]] = field(default_factory=list)  # (record, layer, x, cost)
    entered: int = 0  # rows that are in the data
    finished: int = 0  # episodes
    moments: set[int] = field(default_factory=set)  # records after which a plan may have been made
    firm: set[int] = field(default_factory=set)  # records after which one was surely made
    plan: tuple[int, int] = (1, 0)  # number and made_after of the last one seen
