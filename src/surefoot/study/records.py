"""The journal's records: their form, and the meaning of each entry. Version 6.

``journal.jsonl`` holds one record per line: compact JSON (no spaces, ASCII, no NaN, no key twice) and ``\\n``::

    {"n":0,"time":"2026-07-01T08:00:00.000000Z","kind":"open", …,"previous":"<64 hex>","hash":"<64 hex>"}

``n``         0, 1, 2, … without a gap: the number of the line, counted from 0.
``time``      UTC with six decimals; earlier than that of the record before only in a record "clock".
``kind``      one of the words below, which decides the entries after it.
``previous``  the ``hash`` of the record before; 64 zeros in the first.
``hash``      sha256, in hex, of the bytes of the same record without its hash: of the line up to ``,"hash":"``
              (not included) followed by ``}``.

The keys are in this order: n, time, kind, the kind's own in the order given below, previous, hash. Floats are written
so that they come back to the bit (Python's ``repr``). Labels of states and actions are those of the problem; a tuple is
written as a JSON array. A cost is a list of one number per limit, in the order of ``problem.limits``, or null if it was
not measured.

**open** (the first record)
    ``version`` 6 · ``surefoot`` its version · ``problem`` digest of the Problem · ``problem_file`` its file beside the
    journal · ``plant`` null, or for a study of a plant its ``file`` and that file's ``sha256`` ·
    ``failure_probability`` p of the whole study · ``false_alarm`` α of the whole study · ``agent`` its name, "lsvi-new"
    or "lsvi-new-paper" · ``options`` of the agent, as given · ``share`` the failure probability of epoch 0, p/2 ·
    ``constants`` of the agent in epoch 0 (``agent.constants``: failure_probability = share, ridges, shaped, …) ·
    ``despite`` null, or, if :func:`surefoot.check` finds errors in the problem, its ``findings`` and the ``reason`` to
    begin the study anyway.
**begin** (an episode; none is under way)
    ``episode`` 1, 2, 3, … · ``start`` label · ``epoch`` · ``plan`` number of the plan in force, from 1 in each epoch ·
    ``made_after`` number of the record after which that plan was made, from the epoch's rows up to and including that
    record · ``safe_mode`` true if only the fallback's actions are offered · ``certified`` how many pairs the plan
    certifies · ``to_gain`` how much can still be gained at most by its own bounds (``plan.to_gain``), null if that is
    not finite · ``point`` null, or the exact start.
**ask** (an action is offered; no other ask is pending)
    ``ask`` its id, ``"<n>-<first 8 of previous>"`` · ``episode`` · ``step`` · ``state`` · ``action`` ·
    ``intensity`` null, or in a problem with rays (spec 9) the one offered, 1 for an action that has none ·
    ``certificate``, see :mod:`surefoot.study.certificate` · ``point`` null, or for a plant the exact ``state``, the
    ``input``, ``features`` (rows whose convex hull contains those of the costs there; one row, unless they depend on
    the next state), ``boxes`` of next states, ``[low, high]`` per model, and the ``cells`` they meet.
**tell** (what the pending ask led to; it is no longer pending)
    ``ask`` · ``step`` · ``state`` · ``action`` that was applied · ``intensity`` at which it was applied, as in an ask;
    null for an action that the problem does not know · ``override`` true if they are not those that were offered ·
    ``next_state`` · ``cost`` · ``raw_cost`` null, or the told numbers as text if one of them was not finite; ``cost``
    is then null and an alarm of kind "cost" follows · ``unused`` null if the row is used; ``"action"`` if the applied
    action is not one of the state's (the episode can then only be aborted); ``"successor"`` if the next state is
    outside the declared support (the episode is over, and an alarm of kind "successor" follows) · ``ends`` true if
    the episode is over with this record · ``point`` null, or for a plant the exact next ``state``, and for the action
    that was applied its ``features`` at the exact state before, which enter the data, and its ``boxes``; both null if
    the action is not one of the plant's. A next state outside all boxes is outside the declared support.
**doubt** (of a plant: a next state outside all boxes was told, and not as sure; the ask stays pending, nothing counts)
    as a tell. A tell of the same ask answers it; an abort before that raises an alarm of kind "successor", as the tell
    would have.
**terminal** (the cost of the episode's last state, if the problem declares one; the episode is over)
    ``episode`` · ``state`` · ``cost`` · ``raw_cost`` as above.
**abort** (the episode is over; a pending ask is void; what was told before counts)
    ``episode`` · ``step`` · ``state`` · ``ask`` the pending one or null · ``reason``.
**alarm** (the study is in safe mode from here on)
    ``alarm`` kind: "successor", "cost", "contradiction" (the bounds of a new plan exclude each other, spec 3; the plan
    before it stays), "plan" (none can be computed from the data), "computation" (a row cannot be entered into the
    data), or one of the monitor's: "residual", "limit" · ``record`` number of the record that raised it · ``message`` ·
    ``details``. What answers each is in :mod:`surefoot.study.alarms`.
**acknowledge** (a person ends the safe mode; between episodes)
    ``reason`` · ``alarms`` numbers of the alarm records it answers · ``discard`` true if all rows so far are dropped ·
    ``epoch`` from here on: one more after a discard, otherwise as before · ``share`` the failure probability of that
    epoch k, p·2^-(k+1) · ``monitor`` number of the monitor that starts here, 1, 2, …; monitor i (0 from the first
    record on) works at the false-alarm level α·2^-(i+1) · ``constants`` of the agent from here on; with another problem
    and the data kept, ridges, shaped and ridge_ratios stay, since they are fixed before any data · ``problem`` digest
    of the declaration from here on · ``problem_file`` its file: the one before, or ``problem-<n>.json`` or ``.npz`` ·
    ``changes`` a list of: "data discarded", "larger noise", "wider support", "larger norm or misspecification",
    "anchors dropped", "anchors trusted" (kept over a discard: a person vouches) · ``despite`` as in the opening, for
    the declaration from here on; as before if the declaration is.
**import** (logged rows; between episodes, never in safe mode)
    ``source`` · ``digest`` sha256, in hex, of the compact JSON of ``rows`` · ``episodes`` null, or for each row the
    id of its episode in the log · ``different`` null, or why a person says that rows which are like others
    (:mod:`surefoot.study.importing`) are different measurements; each row then has an episode · ``repeated`` how many
    rows are like one before them, told or imported, in any epoch; 0 if no limit has noise, or ``different`` is null ·
    ``since`` the earliest time at which a row was measured, null if some row does not say; once data were discarded it
    must be later than that · ``rows`` a list; a transition is ``[step, state, action, next_state, cost]``, in a problem
    with rays ``[step, state, action, next_state, intensity, cost]``, the cost of a last state ``[step, state, cost]``.
**grow** (the graph has grown, spec 9; between episodes, never in safe mode; a plan is made from all rows so far)
    ``problem`` digest of the larger graph · ``problem_file`` its file, ``problem-<n>.json`` or ``.npz`` · ``expanded``
    the pairs that were expanded, in order, ``[step, pair]`` as numbered in the files · ``refused`` those for which
    there was no room.
**snapshot** (nothing changes; a file from which replay can start)
    ``file`` in ``snapshots/`` · its ``sha256``, in hex. It holds the state after the records before this one.
**clock** (nothing changes; the wall clock was set back, and times count from here)
    ``expected`` the time it must have been at least, by the records before and the process's own clock.

**Which rows count.** The data of a plan are the rows of its epoch (records after the last acknowledge with ``discard``,
or all) up to ``made_after``: each tell with ``unused`` null, each terminal, each row of an import. A row without a cost
counts for transitions only. Plans are made: for epoch 0 after record 0; after an acknowledge; after an import; when the
graph grows; and, outside safe mode, after a record that ends an episode if the data have grown enough. A plan never
changes inside an episode, and in safe mode the plan from before the alarm stays.

**Which actions are offered.** Outside safe mode the plan's greedy certified action (during ``initial_episodes`` the
fallback's, if it has one). In safe mode the fallback's action; if the fallback has none, the certified action of the
plan from before the alarm.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model.labels import shown
from surefoot.storage.documents import parse_line

VERSION = 6
FIRST = "0" * 64  #: in place of a hash before the first record

Record = dict[str, Any]

_TOLD = (
    *("ask", "step", "state", "action", "intensity", "override", "next_state", "cost", "raw_cost", "unused"),
    *("ends", "point"),
)

FIELDS: dict[str, tuple[str, ...]] = {
    "open": (
        *("version", "surefoot", "problem", "problem_file", "plant", "failure_probability", "false_alarm"),
        *("agent", "options", "share", "constants", "despite"),
    ),
    "begin": ("episode", "start", "epoch", "plan", "made_after", "safe_mode", "certified", "to_gain", "point"),
    "ask": ("ask", "episode", "step", "state", "action", "intensity", "certificate", "point"),
    "tell": _TOLD,
    "doubt": _TOLD,
    "terminal": ("episode", "state", "cost", "raw_cost"),
    "abort": ("episode", "step", "state", "ask", "reason"),
    "alarm": ("alarm", "record", "message", "details"),
    "acknowledge": (
        *("reason", "alarms", "discard", "epoch", "share", "monitor", "constants"),
        *("problem", "problem_file", "changes", "despite"),
    ),
    "import": ("source", "digest", "episodes", "different", "repeated", "since", "rows"),
    "grow": ("problem", "problem_file", "expanded", "refused"),
    "snapshot": ("file", "sha256"),
    "clock": ("expected",),
}

_SEAL = re.compile(rb',"previous":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\n\Z')
_SEAL_BYTES = 154  # of the above: a record ends in a tail of fixed length
_HASH_BYTES = 76  # ,"hash":"…"} and the line's end
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")
_TIME_BYTES = 27
_CLOCK = b'","kind":"clock",'  # what follows the time of a record that may go back


def share(total: float, number: int) -> float:
    """The part of a probability that epoch or monitor ``number`` may spend: total·2^-(number+1)."""
    return math.ldexp(total, -(number + 1))


def reason_given(rule: str, text: object) -> str:
    """A reason that a person gives, which must be text and not blank."""
    if type(text) is not str or not text.strip():
        raise InvalidInput(rule, got=shown(text), fix="It is kept in the journal.")
    return text


def compact(value: object) -> str:
    """The one way JSON is written here."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def encode(n: int, time: str, kind: str, entries: Record, previous: str) -> bytes:
    """The line of a record."""
    if tuple(entries) != FIELDS[kind]:
        raise ValueError(f"{kind} takes {FIELDS[kind]}, not {tuple(entries)}")  # a mistake in this package
    body = compact({"n": n, "time": time, "kind": kind, **entries, "previous": previous}).encode("ascii")
    return body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode("ascii") + b'"}\n'


def verify(line: bytes, n: int, previous: str, earliest: bytes) -> str | None:
    """What is wrong with a complete line that must be record n, None if nothing is. Nothing is parsed."""
    seal = _SEAL.search(line, max(0, len(line) - _SEAL_BYTES))
    if seal is None:
        return "not the line of a record"
    if not line.startswith(prefix(n)):
        return f"record {n} is expected here, the line begins with {shown(line[:60])}"
    if seal[1].decode("ascii") != previous:
        return "it does not follow from the record before: one was changed, dropped or swapped"
    digest = hashlib.sha256(line[:-_HASH_BYTES])
    digest.update(b"}")
    if digest.hexdigest().encode("ascii") != seal[2]:
        return "its content does not match its hash"
    if time_in(line, n) < earliest and not line.startswith(_CLOCK, len(prefix(n)) + _TIME_BYTES):
        return "its time is earlier than that of the record before"
    return None


def prefix(n: int) -> bytes:
    """How the line of record n begins."""
    return b'{"n":%d,"time":"' % n


def time_in(line: bytes, n: int) -> bytes:
    start = len(prefix(n))
    return line[start : start + _TIME_BYTES]


def hash_in(line: bytes) -> str:
    return line[-67:-3].decode("ascii")


def decode(line: bytes) -> Record:
    """The record of a verified line, with the entries of its kind and no others."""
    record = parse_line(line)
    kind = record.get("kind")
    if type(kind) is not str or kind not in FIELDS:
        raise UnreadableFile("no such kind of record", got=shown(kind), fix="Upgrade surefoot to read it.")
    expected = ("n", "time", "kind", *FIELDS[kind], "previous", "hash")
    if tuple(record) != expected:
        raise UnreadableFile(f"a record {kind!r} has other entries", got=f"{sorted(set(record) ^ set(expected))}")
    if type(record["time"]) is not str or not _TIME.match(record["time"]):
        raise UnreadableFile("not a time", got=shown(record["time"]))
    return record


# --- times ----------------------------------------------------------------------------------------------


def time_text(seconds: float) -> str:
    """Seconds since 1970 as a record's time."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        raise InvalidInput("the clock gives no time", got=repr(seconds)) from None
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"  # strftime writes the year 68 as 68


def time_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# --- ids ------------------------------------------------------------------------------------------------

_ASK = re.compile(r"(0|[1-9]\d{0,17})-([0-9a-f]{8})\Z")


def ask_id(n: int, previous: str) -> str:
    """Names a record and the one before it, so that an id from another study is never mistaken for one of this
    study."""
    return f"{n}-{previous[:8]}"


def ask_number(name: object) -> int:
    """The number of the record that an ask id names."""
    match = _ASK.match(name) if type(name) is str else None
    if match is None:
        raise InvalidInput("not an ask id", got=shown(name), fix="Use the ask_id of the offer.")
    return int(match[1])
