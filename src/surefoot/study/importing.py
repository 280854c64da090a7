"""A warm start: transitions that were logged before the study, most often of the seed, enter the estimators.

A row has ``layer``, ``state``, ``action``, ``next_state`` and ``cost`` (a number, one per limit, or empty; with
several limits also one column ``cost.NAME`` per limit), and, if known, ``episode``, an id of the logged episode. The
cost of a last state is a row with ``layer`` H−1, ``state`` and ``cost`` alone. Other columns are left aside. All rows
are checked before any is used; one bad row, and nothing is imported. An import is one record of the journal, so it is
there whole or not.

**Why partial logs are allowed.** (S3) needs of row i only that its features are known before its noise ξ_i is drawn,
and that given them and the past ξ_i has mean zero and is sub-Gaussian. Whole episodes, the order of layers, the policy
play no part. So these are fine: parts of episodes; rows left out; a cost that was not measured (the row then counts for
transitions alone); actions of any policy, the seed's or an operator's, that did not know the noise in advance.

**What is not allowed, and cannot be seen in the rows.** Whether a row or its cost is in the log must not depend on
its noise: a log of alarms only, or a sensor that is silent when its reading is high, has noise of another mean, and
no bound holds. When some limits' costs of a row are missing, all of that row's are left out, for the limits share one
Gram matrix; the same condition covers that.

**Duplicates are refused.** A measurement that is entered twice counts its noise twice, and every bound would be too
narrow. With ``episode``, a pair (episode, layer) is one measurement, and may be imported once. Without, two rows with
the same layer, labels and cost are taken for one measurement that was copied, among the rows, against former imports
and against what was told to this study; where a coarse sensor makes equal rows likely, give each row its ``episode``.
The same list of rows is refused in any case. Rows without a cost touch only values, never safety, and are not
compared.

**Rows from before a drift are refused.** Once data were discarded, a row needs its ``time``: when it was measured, as
text with a time zone (``2026-07-01T08:00:00Z``) or in seconds since 1970. It must be later than the discard.

**Values.** The value regression pairs φ_V with V(s'), for a V that must not depend on s'. Rows that were logged
earlier may share an episode with rows imported before, from which plans were made; so all imports use the V of the
epoch's first plan, which depends on no data at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput, SurefootError, UnknownLabel
from surefoot.model.labels import Label, shown
from surefoot.model.problem import Problem
from surefoot.study import journal as journals
from surefoot.study import logs
from surefoot.study.filelayer import FileLayer
from surefoot.study.measured import measured
from surefoot.study.records import Record, compact, label_of
from surefoot.study.standing import Standing

_MOST_FAULTS = 10
_LABELS = ("state", "action", "next_state")


@dataclass(frozen=True)
class Imported:
    """What an import brought."""

    rows: int
    with_cost: int
    partly_measured: int  # rows whose costs were left out because some limit's was missing
    certified_pairs: int  # after the plan that was made from them
    alarm: str | None  # what the monitor says to the rows

    @classmethod
    def of(cls, record: Record, partly: int, standing: Standing) -> Imported:
        rows = record["rows"]
        alarm = next((item.message for item in standing.raised if item.record == record["n"]), None)
        measured_rows = sum(row[-1] is not None for row in rows)
        return cls(len(rows), measured_rows, partly, standing.agent.plan.n_certified(), alarm)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def prepare(
    problem: Problem,
    rows: str | Path | Iterable[Mapping[str, Any]],
    source: str,
    journal: Path,
    layer: FileLayer,
    discarded_at: str,
) -> tuple[Record, int]:
    """The entries of the import's record, every row checked, and how many rows were measured in part."""
    reader, measured_at = _Reader(problem), _Times(discarded_at)
    for i, row in enumerate(logs.read(rows)):
        if i == logs.MOST_ROWS:
            raise InvalidInput("too many rows for one import", got=f"more than {i}", fix="Import them in parts.")
        reader.take(i + 1, row)
        measured_at.take(i + 1, row)
    reader.refuse_faults()
    if not reader.rows:
        raise InvalidInput("there are no rows to import")
    reader.refuse_known(_past(journal, layer, problem.horizon - 1))
    reader.refuse_faults()
    return {
        "source": source or (str(rows) if isinstance(rows, (str, Path)) else "rows"),
        "digest": _digest(reader.rows),
        "episodes": reader.episodes,
        "since": measured_at.earliest,
        "rows": reader.rows,
    }, reader.partly


def _digest(rows: list[Any]) -> str:
    return hashlib.sha256(compact(rows).encode("ascii")).hexdigest()


def _key(row: Any) -> bytes:
    return hashlib.blake2b(compact(row).encode("ascii"), digest_size=16).digest()


@dataclass(frozen=True)
class _Past:
    """What the journal already holds."""

    digests: frozenset[str]
    steps: frozenset[bytes]  # (episode, layer) of former imports
    rows: frozenset[bytes]  # with a cost, told or imported


def _past(path: Path, layer: FileLayer, last: int) -> _Past:
    digests: set[str] = set()
    steps: set[bytes] = set()
    known: set[bytes] = set()
    for line in journals.read(path, layer):
        head = line.text[:80]
        if not any(kind in head for kind in (b'"kind":"tell"', b'"kind":"terminal"', b'"kind":"import"')):
            continue
        record = line.record(path)
        if record["kind"] == "tell":
            if record["cost"] is not None:
                known.add(_key([record[key] for key in ("layer", *_LABELS, "cost")]))
        elif record["kind"] == "terminal":
            if record["cost"] is not None:
                known.add(_key([last, record["state"], record["cost"]]))
        else:
            digests.add(record["digest"])
            known.update(_key(row) for row in record["rows"] if row[-1] is not None)
            for episode, row in zip(record["episodes"] or (), record["rows"], strict=False):
                steps.add(_key([episode, row[0]]))
    return _Past(frozenset(digests), frozenset(steps), frozenset(known))


class _Times:
    """When rows were measured; after a discard each must say so, and must be later."""

    def __init__(self, discarded_at: str) -> None:
        self._discarded_at = discarded_at
        self._known: list[str] = []
        self._all = True  # rows say when

    @property
    def earliest(self) -> str | None:
        return min(self._known) if self._known and self._all else None

    def take(self, i: int, row: Mapping[str, Any]) -> None:
        given, text = row.get("time"), None
        if given is not None and (self._discarded_at or self._all):
            text = logs.moment(given)
        if self._discarded_at and (text is None or text <= self._discarded_at):
            raise InvalidInput(
                "data were discarded: rows from before are of another plant, and nothing was imported",
                where=f"row {i}",
                got=f"time {shown(given)}, data were discarded at {self._discarded_at}",
                fix="Import rows measured later, each with its time, such as 2026-07-01T08:00:00Z.",
            )
        if text is None:
            self._all = False
        else:
            self._known.append(text)


class _Reader:
    """Checks rows one by one and keeps them as the journal will."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.rows: list[list[Any]] = []
        self._ids: list[Any] = []
        self._finished: set[bytes] = set()  # ids of episodes whose rows have ended
        self.partly = 0
        self._faults: list[str] = []

    @property
    def episodes(self) -> list[Any] | None:
        return self._ids or None

    def take(self, i: int, row: Mapping[str, Any]) -> None:
        try:
            taken = self._taken(row)
            self._follow(i, row, taken)
        except SurefootError as error:
            self._fault(i, str(error))
            return
        self.rows.append(taken)

    def _fault(self, i: int, text: str) -> None:
        self._faults.append(f"row {i}: {text}")
        if len(self._faults) == _MOST_FAULTS:
            self.refuse_faults()

    def refuse_faults(self) -> None:
        if self._faults:
            raise InvalidInput(
                "nothing was imported", got="; ".join(self._faults), fix="Correct or remove these rows and try again."
            )

    # --- one row ----------------------------------------------------------------------------------------

    def _taken(self, row: Mapping[str, Any]) -> list[Any]:
        problem, h = self._problem, logs.whole(_entry(row, "layer"))
        if type(h) is not int or not 0 <= h < problem.horizon:
            raise UnknownLabel("no such layer", got=f"{shown(h)}, layers are 0 … {problem.horizon - 1}")
        states = problem.naming.states
        i = self._known(row, "state", lambda label: states[h].index(label, f"layer {h}"))
        state, cost = states[h][i], self._cost(row)
        if h == problem.horizon - 1:
            if not problem.graph.terminal.has_cost[i]:
                raise InvalidInput("the problem declares no cost for this last state", got=repr(state))
            if any(row.get(name) is not None for name in _LABELS[1:]):
                raise InvalidInput("nothing follows the last layer", got="an action or a next state")
            return [h, state, cost]
        layer = problem.graph.layers[h]
        pair = self._known(row, "action", lambda label: problem.naming.pair(layer, h, i, label))
        action = problem.naming.action(layer, h, pair)
        edge = self._known(row, "next_state", lambda label: problem.edge_index(h, state, action, label))
        return [h, state, action, states[h + 1][int(layer.successor[edge])], cost]

    @staticmethod
    def _known(row: Mapping[str, Any], name: str, find: Any) -> int:
        """The index that a cell means; exactly one of its readings must be known."""
        found: set[int] = set()
        refusal: SurefootError | None = None
        for reading in logs.readings(_entry(row, name, null=True)):
            try:
                found.add(find(label_of(reading, name)))
            except SurefootError as error:
                refusal = refusal or error
        if not found and refusal is not None:
            raise refusal
        if len(found) != 1:
            raise InvalidInput(f"the {name} can be read in two ways", got=repr(row[name]), fix="Use JSON lines.")
        return found.pop()

    def _cost(self, row: Mapping[str, Any]) -> list[float] | None:
        names = [limit.name for limit in self._problem.limits]
        columns = [f"cost.{name}" for name in names if f"cost.{name}" in row]
        if "cost" in row and columns:
            raise InvalidInput("the cost is given twice", got=f"cost and {columns[0]}")
        if columns:
            value: Any = [logs.number(row.get(f"cost.{name}")) for name in names]
        else:
            value = logs.number(_entry(row, "cost", null=True))
        if isinstance(value, (list, tuple)) and any(part is None for part in value):
            self.partly += any(part is not None for part in value)
            value = None
        numbers, raw = measured(self._problem, value, "")
        if raw is not None:
            raise InvalidInput("a cost is not finite", got=", ".join(raw), fix="Leave it empty if it was not measured.")
        return numbers

    def _follow(self, i: int, row: Mapping[str, Any], taken: list[Any]) -> None:
        """With episode ids: each episode in one piece, layer after layer, each state where the row before led."""
        episode = row.get("episode")
        if (episode is None) != (not self._ids) and (self.rows or self._ids):
            raise InvalidInput("give every row its episode, or none")
        if episode is None:
            return
        name: Label = label_of(str(episode) if isinstance(episode, logs.Text) else episode, "episode")
        before, last = (self._ids[-1], self.rows[-1]) if self.rows else (None, None)
        if last is None or before != name:
            if last is not None:
                self._finished.add(_key(before))
            if _key(name) in self._finished:
                raise InvalidInput("the rows of an episode stand apart", got=f"episode {name!r} came to its end before")
        elif taken[0] <= last[0]:
            raise InvalidInput("the layers of an episode go up", got=f"layer {taken[0]} after layer {last[0]}")
        elif taken[0] == last[0] + 1 and taken[1] != last[3]:
            got = f"state {taken[1]!r} after a row that led to {last[3]!r}"
            raise InvalidInput("a row does not follow from the one before", got=got)
        self._ids.append(name)

    # --- against what is there ---------------------------------------------------------------------------

    def refuse_known(self, past: _Past) -> None:
        if _digest(self.rows) in past.digests:
            raise InvalidInput("these rows were imported before", fix="Twice the same noise would void every bound.")
        seen: set[bytes] = set()
        for i, key in self._identities():
            if key in seen:
                self._fault(i, "the same measurement twice among these rows")
            elif key in past.steps or (not self._ids and key in past.rows):
                self._fault(i, "this measurement is in the study already")
            seen.add(key)

    def _identities(self) -> Iterator[tuple[int, bytes]]:
        """What makes each row one measurement: its episode and layer, or else all that it says."""
        for i, row in enumerate(self.rows):
            if self._ids:
                yield i + 1, _key([self._ids[i], row[0]])
            elif row[-1] is not None:
                yield i + 1, _key(row)


def _entry(row: Mapping[str, Any], name: str, *, null: bool = False) -> Any:
    if name not in row or (row[name] is None and not null):
        raise InvalidInput(f"the {name} is missing")
    return row[name]
