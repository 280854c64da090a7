"""When two rows are one measurement: a measurement that is entered twice counts its noise twice, and no bound holds.

Two rows are *alike* when they have the same state, action and next state, at whatever step and intensity, and costs
that agree to twelve digits. A sensor that gives all the digits of a number practically never does that by chance: not
once among a hundred thousand measurements of one transition, as a rule. A copy always does, also one that was permuted,
given other episode ids or another step, cut in parts, or converted to other units and back; not one whose costs were
rounded or altered on the way, against which only ids help. With a coarse sensor different measurements are alike quite
often, and nothing in the rows tells them from copies: then a person must say so (``different``).

Two rows with the same episode and step are one measurement whatever anybody says. Ids are compared as a person reads
them: ``"1"``, ``1``, ``1.0`` and ``" 01"`` are one id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.logs.rows import episode_key
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study.records import Record, compact

_DIGITS = 12
_KINDS = tuple(f'"kind":"{kind}"'.encode() for kind in ("tell", "terminal", "import"))
_plain = json.JSONEncoder(separators=(",", ":")).encode  # a tuple and a JSON array give the same


def rows_digest(rows: list[Any]) -> str:
    return hashlib.sha256(compact(rows).encode("ascii")).hexdigest()


def content(row: Sequence[Any]) -> str | None:
    """What two rows share when they are alike; None without a cost, which touches values only, never safety."""
    if row[-1] is None:
        return None
    return _plain(
        [*row[1 : min(4, len(row) - 1)], [f"{cost + 0.0:.{_DIGITS}g}" for cost in row[-1]]]
    )  # + 0.0: there is no minus zero


def _step(episode: Any, row: Sequence[Any]) -> str:
    return f"{row[0]} {episode_key(episode)}"


@dataclass
class KnownRows:
    """All measurements so far, and where each stands."""

    digests: set[str] = field(default_factory=set)  # of former imports
    steps: dict[str, str] = field(default_factory=dict)  # (episode, step) of imported rows
    episodes: dict[str, str] = field(default_factory=dict)  # of imported rows
    rows: dict[str, str] = field(default_factory=dict)  # by content

    @classmethod
    def of(cls, path: Path, layer: FileLayer, last: int) -> KnownRows:
        """What a journal holds, of every epoch; ``last`` is the last step, H−1."""
        known = cls()
        for line in journals.read_lines(path, layer):
            if any(kind in line.text[:80] for kind in _KINDS):
                known._enter(line.record(path), last)
        return known

    def _enter(self, record: Record, last: int) -> None:
        n = record["n"]
        if record["kind"] == "tell":
            if record["unused"] is None:
                row = [record[key] for key in ("step", "state", "action", "next_state", "cost")]
                self._enter_row(row, f"the tell of record {n}")
        elif record["kind"] == "terminal":
            self._enter_row([last, record["state"], record["cost"]], f"the last cost of record {n}")
        else:
            self.digests.add(record["digest"])
            where = f"a row of the import of record {n}"
            for row in record["rows"]:
                self._enter_row(row, where)
            for episode, row in zip(record["episodes"] or (), record["rows"], strict=False):
                self.steps.setdefault(_step(episode, row), where)
                self.episodes.setdefault(episode_key(episode), where)

    def _enter_row(self, row: Sequence[Any], where: str) -> None:
        key = content(row)
        if key is not None:
            self.rows.setdefault(key, where)

    def same_steps(self, episodes: Sequence[Any], rows: Sequence[Any], offsets: bool) -> Iterator[tuple[int, str]]:
        """(row, where it stands already) for each row whose episode and step were imported before.

        ``offsets``: the rows of an episode share one; then the rest of an episode is refused too, since plans that were
        made in between have seen it (spec 3)."""
        for i, (episode, row) in enumerate(zip(episodes, rows, strict=True)):
            where = self.episodes.get(episode_key(episode)) if offsets else self.steps.get(_step(episode, row))
            if where is not None:
                yield i, where

    def alike(self, rows: Sequence[Any], places: Sequence[str]) -> Iterator[tuple[int, str]]:
        """(row, which one it is like) for each row that is like one before it, here or in the journal."""
        here: dict[str, int] = {}
        for i, row in enumerate(rows):
            key = content(row)
            if key is None:
                continue
            if key in self.rows:
                yield i, self.rows[key]
            elif key in here:
                yield i, places[here[key]]
            else:
                here[key] = i
