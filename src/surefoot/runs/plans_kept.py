"""Snapshots: some plans of a run, which show how the certified set grew.

One file per plan, ``plan-000017.npz`` for plan 17: an archive as :mod:`surefoot.storage.archive` writes it
(``numpy.load`` reads it too), the same bytes for the same plan. Its ``header.json``::

    {"format": "surefoot-plan", "version": 3, "problem": digest,
     "number": 17, "first_episode": 16, "consistent": true,
     "hope": "the best that may still be hoped for is …", "purposes": ["to narrow the bound of …", …]}

``first_episode`` counts from 0; in the last file it may equal the number of episodes, for a plan made at the very end.
The arrays hold all layers one after the other, in graph order (:mod:`surefoot.model.graph`):

    certified_pairs   bool  (ΣN,)     decision layers      an action, and all that may follow, is proved safe
    certified_states  bool  (ΣS,)     all H layers
    upper, lower      f8    (ΣR, m)   decision layers      bounds on the cost of every row (spec 9)
    q                 f8    (ΣN,)     decision layers      optimistic values, unclipped, certified or not
    value             f8    (ΣS,)     all H layers
    action            i8    (ΣS,)     decision layers      the pair played, numbered within its layer; -1: none
    purpose           i8    (ΣS,)     decision layers      why an exploring action is played, -1: not exploring
    intensity         f8    (ΣN,)     decision layers      only with rays: that of bounds and values
    terminal_upper, terminal_lower  f8 (S, m)   only where the last layer has a cost; -inf in states without one

:func:`load_snapshot` splits them into layers again. Nobody knows in advance how many plans a run will make, so the
:class:`Recorder` keeps every plan and, beyond ``MOST``, drops the one whose neighbours are closest: in the logarithm of
the episode and in the number of certified pairs, each as a share of the range so far. The first and the last are never
dropped. The choice depends only on the run's table of plans, so a resumed run keeps the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.growing import grown_as_saved, saved_growth
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL
from surefoot.plan.plan import Plan
from surefoot.plan.purpose import NOT_EXPLORING, purposes
from surefoot.runs.record import PlanTable
from surefoot.storage import archive as npz
from surefoot.storage import disk
from surefoot.storage.documents import reading

VERSION = 3  #: of a snapshot
MOST = 24  #: files per run
UNREADABLE = "the snapshot cannot be read"
MOST_TRIPLETS = 20_000  #: of all layers of a problem; larger ones keep no snapshots


#: by array: what it has an entry for
_OF = {
    **{"certified_pairs": "pairs", "certified_states": "states", "upper": "rows", "lower": "rows", "q": "pairs"},
    **{"value": "states", "action": "deciding", "purpose": "deciding", "intensity": "pairs"},
}


def why_not_kept(problem: Problem) -> str:
    """Why runs of this problem keep no snapshots; empty if they do."""
    triplets = sum(layer.n_edges for layer in problem.graph.layers)
    if triplets <= MOST_TRIPLETS:
        return ""
    return f"the report's explorer takes up to {MOST_TRIPLETS:,} triplets, and there are {triplets:,}"


def file_name(number: int) -> str:
    return f"plan-{number:06d}.npz"


# --- reading --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A plan as it was kept; tuples have an entry per layer."""

    number: int
    first_episode: int
    consistent: bool
    certified_pairs: tuple[BoolArray, ...]  # H-1 of (N,)
    certified_states: tuple[BoolArray, ...]  # H of (S,)
    upper: tuple[FloatArray, ...]  # H-1 of (E, m)
    lower: tuple[FloatArray, ...]
    q: tuple[FloatArray, ...]  # H-1 of (N,)
    value: tuple[FloatArray, ...]  # H of (S,)
    action: tuple[IntArray, ...]  # H-1 of (S,)
    purpose: tuple[IntArray, ...]  # H-1 of (S,)
    purposes: tuple[str, ...]
    hope: str
    terminal_upper: FloatArray | None  # (S, m)
    terminal_lower: FloatArray | None
    intensity: tuple[FloatArray, ...] | None = None  # H-1 of (N,), with rays (spec 9)

    def on(self, problem: Problem) -> Snapshot:
        """The same on a graph that has grown since. What was added is not certified and worth nothing, and its costs
        are bounded as before any data."""
        sizes, far = _sizes(problem.graph, None), problem.largest_costs
        if problem.growth is None or [len(part) for part in self.certified_states] == sizes["states"]:
            return self
        unknown = {"q": 0.0, "value": 0.0, "action": NO_ACTION, "purpose": NOT_EXPLORING, "intensity": FULL}
        rest = {"certified_pairs": False, "certified_states": False, "upper": far, "lower": -far, **unknown}
        kept = {name: parts for name in rest if (parts := getattr(self, name)) is not None}
        later: dict[str, Any] = {name: _longer(kept[name], sizes[_OF[name]], rest[name]) for name in kept}
        for name, least in (("terminal_upper", far), ("terminal_lower", -far)):
            if (table := getattr(self, name)) is not None:
                later[name] = _longer([table], sizes["states"][-1:], least)[0]
        return replace(self, **later)


def _longer(parts: Sequence[Any], sizes: Sequence[int], rest: Any) -> tuple[Any, ...]:
    """Each part, filled up to its size with ``rest``."""
    more = (np.broadcast_to(rest, (n - len(part), *part.shape[1:])) for part, n in zip(parts, sizes, strict=True))
    return tuple(np.concatenate([part, add.astype(part.dtype)]) for part, add in zip(parts, more, strict=True))


def load_all(folder: Path, problem: Problem) -> list[Snapshot]:
    """The snapshots in a folder, by plan number; an empty list where there is no folder."""
    return [load_snapshot(path, problem) for path in sorted(folder.glob("plan-*.npz"))]


def grown_in(folder: Path, problem: Problem) -> Problem:
    """The problem; one that grows as large as in the last snapshot of a folder."""
    paths = sorted(folder.glob("plan-*.npz"))
    if problem.growth is None or not paths:
        return problem
    with reading(paths[-1], UNREADABLE):
        arrays = _read(paths[-1], problem)[1]
    return grown_as_saved(problem, {name.replace("growth_", "growth/"): array for name, array in arrays.items()})


def load_snapshot(path: Path, problem: Problem) -> Snapshot:
    """Read a snapshot of a plan of this problem, or of a smaller graph that it has grown out of: nothing that was added
    is certified."""
    with reading(path, UNREADABLE):
        return _cut(*_read(path, problem), problem)


def _read(path: Path, problem: Problem) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with npz.opened(path) as (header, open_members):
        arrays = dict(open_members())
    checked.of_format(header, "a plan", "surefoot-plan", VERSION, "Run anew.")
    if header["problem"] != problem.first.digest:
        raise UnreadableFile("the snapshot is of another problem")
    return header, arrays


def _cut(header: dict[str, Any], arrays: dict[str, NDArray[Any]], problem: Problem) -> Snapshot:
    sizes = _sizes(problem.graph, arrays.get("growth_states"))
    parts = dict[str, Any]()
    for name, of in _OF.items():
        if name == "intensity" and not problem.has_rays:
            continue
        if len(arrays[name]) != sum(sizes[of]):
            raise InvalidInput(f"{name} has the wrong length", got=str(len(arrays[name])))
        parts[name] = tuple(np.split(arrays[name], np.cumsum(sizes[of])[:-1]))
    texts = tuple(checked.string(text, "$.purposes") for text in checked.sequence(header["purposes"], "$.purposes"))
    if any(((part < NOT_EXPLORING) | (part >= len(texts))).any() for part in parts["purpose"]):
        raise InvalidInput("purpose has a number without a text", got=f"{len(texts)} texts")
    found = Snapshot(
        number=int(header["number"]),
        first_episode=int(header["first_episode"]),
        consistent=bool(header["consistent"]),
        purposes=texts,
        hope=checked.string(header["hope"], "$.hope"),
        terminal_upper=arrays.get("terminal_upper"),
        terminal_lower=arrays.get("terminal_lower"),
        **parts,
    )
    return found.on(problem)


def _sizes(graph: LayeredGraph, states: Any) -> dict[str, list[int]]:
    """The numbers of states in every layer, of all or of the first ``states``, and of their pairs and cost rows."""
    most = [graph.n_states(h) for h in range(graph.horizon)]
    own = most if states is None else [min(int(n), most[h]) for h, n in enumerate(states)]
    pairs = [int(layer.state_ptr[n]) for layer, n in zip(graph.layers, own, strict=False)]
    rows = [int(layer.row_ptr[n]) for layer, n in zip(graph.layers, pairs, strict=True)]
    return {"states": own, "deciding": own[:-1], "pairs": pairs, "rows": rows}


# --- writing --------------------------------------------------------------------------------------------


def snapshot_of(plan: Plan, first_episode: int) -> Snapshot:
    """A plan in memory, as it would be read back."""
    bounds, why = plan.bounds, purposes(plan)
    return Snapshot(
        number=plan.number,
        first_episode=first_episode,
        consistent=plan.consistent,
        certified_pairs=plan.certified_sets.pairs,
        certified_states=plan.certified_sets.states,
        upper=bounds.upper,
        lower=bounds.lower,
        q=tuple(plan.q_row(h) for h in range(plan.problem.horizon - 1)),
        value=plan.values.value,
        action=plan.values.action,
        purpose=why.number,
        purposes=tuple(why.texts),
        hope=why.hope,
        terminal_upper=bounds.terminal_upper,
        terminal_lower=bounds.terminal_lower,
        intensity=plan.intensities,
    )


def save_snapshot(plan: Plan, first_episode: int, path: Path) -> None:
    """Write a plan, atomically."""
    kept = snapshot_of(plan, first_episode)
    header = {
        "format": "surefoot-plan",
        "version": VERSION,
        "problem": plan.declared.first.digest,
        "number": kept.number,
        "first_episode": first_episode,
        "consistent": kept.consistent,
        "hope": kept.hope,
        "purposes": list(kept.purposes),
    }
    arrays = {name: np.concatenate(parts) for name in _OF if (parts := getattr(kept, name)) is not None}
    arrays["action"] = arrays["action"].astype(np.int64)
    for name in ("terminal_upper", "terminal_lower"):
        if (table := getattr(kept, name)) is not None:
            arrays[name] = table
    if plan.declared.growth is not None:
        arrays["growth_states"] = np.array(list(map(len, kept.certified_states)))
        arrays |= {name.replace("/", "_"): array for name, array in saved_growth(plan.declared).items()}
    npz.save_archive(path, header, arrays)


@dataclass
class _Kept:
    number: int
    first_episode: int
    certified: int
    plan: Plan | None  # None: written in an earlier session


class Recorder:
    """Keeps some of the plans of one run, in memory until :meth:`flush` and then in a folder, if it has one."""

    def __init__(self, folder: Path | None = None, most: int = MOST) -> None:
        self._folder, self._most = Path() if folder is None else folder, most
        self._kept: list[_Kept] = []

    @property
    def numbers(self) -> list[int]:
        """The numbers of the plans that are kept."""
        return [kept.number for kept in self._kept]

    def in_memory(self, last: Plan, episodes: int) -> tuple[tuple[Plan, int], ...]:
        """The kept plans that are not written yet and the run's last one, with the number of episodes before each."""
        found = self._ended(last, episodes)
        return tuple((kept.plan, kept.first_episode) for kept in found if kept.plan is not None)

    def __call__(self, plan: Plan, first_episode: int) -> None:
        """The runner's hook: a new plan."""
        if why_not_kept(plan.problem):  # its graph has grown beyond what is kept
            self._kept = []
        elif not self._kept or self._kept[-1].number != plan.number:
            self._add(_Kept(plan.number, first_episode, plan.n_certified(), plan))

    def replay(self, plans: PlanTable) -> None:
        """After a run is restored: choose again among the plans that it has made so far."""
        self._kept = []
        for number, first, certified in zip(plans.number, plans.first_episode, plans.certified_pairs, strict=True):
            self._add(_Kept(number, first, certified, None))

    def flush(self) -> None:
        """Write what is not yet on disk, before a checkpoint."""
        disk.DISK.mkdir(self._folder)
        for kept in self._kept:
            if kept.plan is not None:
                save_snapshot(kept.plan, kept.first_episode, self._folder / file_name(kept.number))
                kept.plan = None

    def tidy(self) -> None:
        """Remove what is no longer kept, after a checkpoint, since the previous one may have needed it."""
        wanted = {file_name(kept.number) for kept in self._kept}
        for path in self._folder.iterdir():
            if path.name not in wanted:
                path.unlink()

    def export(self, folder: Path, last: Plan, episodes: int) -> None:
        """Write the kept plans and the run's last one, which may be from after the last episode, to a new folder."""
        disk.DISK.mkdir(folder)
        for kept in self._ended(last, episodes):
            name = file_name(kept.number)
            if kept.plan is not None:
                save_snapshot(kept.plan, kept.first_episode, folder / name)
            elif (self._folder / name).exists():
                disk.DISK.replace(folder / name, (self._folder / name).read_bytes())

    def _ended(self, last: Plan, episodes: int) -> list[_Kept]:
        ended = Recorder(self._folder, self._most)
        ended._kept = list(self._kept)
        ended(last, episodes)
        return ended._kept

    def _add(self, new: _Kept) -> None:
        self._kept.append(new)
        if len(self._kept) > self._most:
            gaps = [_distance(self._kept, i - 1, i + 1) for i in range(1, len(self._kept) - 1)]
            del self._kept[1 + gaps.index(min(gaps))]


def _distance(kept: list[_Kept], i: int, j: int) -> float:
    """Between two plans, in log episodes and in certified pairs, each as a share of the range so far."""
    first, last, a, b = kept[0], kept[-1], kept[i], kept[j]
    way = math.log1p(last.first_episode) - math.log1p(first.first_episode)
    growth = abs(last.certified - first.certified)
    later = math.log1p(b.first_episode) - math.log1p(a.first_episode)
    return later / (way or 1.0) + abs(b.certified - a.certified) / (growth or 1.0)
