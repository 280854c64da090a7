"""Plants, disks that fail, and what it means that two studies are in the same state. For the tests of studies."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.audits.bounds import Confidence
from surefoot.errors import OutOfOrder
from surefoot.monitor.monitor import Alarm, Monitor
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals
from surefoot.study import records
from surefoot.study.standing import Standing
from surefoot.study.study import Study
from tests.forgery import sealed
from tests.made_worlds import hand_world

# --- plants ---------------------------------------------------------------------------------------------


def kettle(wider: bool = False) -> sf.World:
    """Three layers, labels of several kinds, two starts, costs in some last states. That heating is safe, is learnt.

    ``wider``: the support also holds that heating ``s`` may leave it cold.
    """
    warm, cold = ("warm", 1), "cold"
    further: Any = {(0, "s"): {cold: (0.0, 0.2)}} if wider else {}
    made = hand_world(
        {
            (0, "s"): {
                "wait": (0.1, {"s": (1.0, 0.1)}),
                "heat": (0.6, {**further.get((0, "s"), {}), "s": (0.5, 0.2), warm: (0.5, 0.25)}),
            },
            (0, cold): {"wait": (0.1, {"s": (1.0, 0.1)}), "heat": (0.9, {warm: (1.0, 0.2)})},
            (1, "s"): {"wait": (0.1, {"s": (1.0, 0.1)}), "heat": (0.8, {"s": (0.5, 0.2), warm: (0.5, 0.3)})},
            (1, warm): {"wait": (0.1, {"s": (1.0, 0.1)}), "heat": (0.9, {warm: (0.8, 0.3), "melt": (0.2, 0.9)})},
            **({(1, cold): {"wait": (0.1, {"s": (1.0, 0.1)})}} if wider else {}),
        },
        {"s": (0.0, None), warm: (0.3, 0.15), "melt": (1.0, 0.95)},
        start=["s", cold],
    )
    known = made.problem
    limits = (sf.Limit("limit 0", bound=0.5, noise=0.05, norm=3.0),)
    return sf.World(sf.Problem(known.graph, known.naming, limits, 1.0, False, False), transition=[1.0], cost=[1.0])


def off_the_fallback(norm: float = 1.0) -> sf.World:
    """The fallback never comes to ``b``; a learner soon does, unless the norm is large."""
    made = hand_world(
        {
            (0, "s"): {"stay": (0.1, {"a": (1.0, 0.1)}), "go": (0.9, {"b": (1.0, 0.1)})},
            (1, "a"): {"stay": (0.1, {"a": (1.0, 0.1)}), "go": (0.1, {"a": (1.0, 0.1)})},
            (1, "b"): {"stay": (0.1, {"b": (1.0, 0.1)}), "go": (0.9, {"b": (1.0, 0.2)})},
        },
        {"a": (0.0, None), "b": (0.5, None)},
    )
    known, limits = made.problem, (sf.Limit("limit 0", bound=0.5, noise=0.1, norm=norm),)
    return sf.World(sf.Problem(known.graph, known.naming, limits, 1.0, False, False), transition=[1.0], cost=[1.0])


class Plant:
    """A world whose answer depends on the episode and the layer alone: after a crash it answers the same again."""

    def __init__(self, world: sf.World, seed: int) -> None:
        self.world, self.seed = world, seed

    def answer(self, episode: int, h: int, state: Any, action: Any, intensity: float = 1.0) -> tuple[Any, list[float]]:
        """The next state and the measured cost."""
        problem, rng = self.world.problem, np.random.default_rng([self.seed, episode, h])
        world = self.world.at(intensity)
        layer, pair = problem.graph.layers[h], problem.pair_index(h, state, action)
        first, end = int(layer.pair_ptr[pair]), int(layer.pair_ptr[pair + 1])
        edge = first + int(np.searchsorted(world.cumulative[h][first:end], rng.random(), side="right"))
        after = problem.naming.states[h + 1][int(layer.successor[edge])]
        return after, self._measured(world.costs[h][layer.row_of(edge)], rng)

    def last_cost(self, episode: int, state: Any) -> list[float]:
        problem = self.world.problem
        assert self.world.terminal_costs is not None
        truth = self.world.terminal_costs[problem.state_index(problem.horizon - 1, state)]
        return self._measured(truth, np.random.default_rng([self.seed, episode, problem.horizon]))

    def _measured(self, truth: Any, rng: np.random.Generator) -> list[float]:
        scales = [limit.noise for limit in self.world.problem.limits]
        return [float(c + scale * rng.standard_normal()) for c, scale in zip(truth, scales, strict=True)]

    def start(self, episode: int) -> Any:
        starts = self.world.problem.starts
        return starts[episode % len(starts)]


def go_on(study: Study, plant: Plant, episodes: int, seen: Any = None) -> None:
    """Whatever call is due, until so many episodes are over. ``seen(what, content)`` hears every answer."""
    seen = seen or (lambda what, content: None)
    while True:
        due = study.next_call
        if due == "begin":
            if study.standing.episodes >= episodes:
                return
            seen("begin", study.begin(plant.start(study.standing.episodes + 1)))
        elif due in ("ask", "tell"):
            offer = study.ask()
            seen("ask", offer.to_dict())
            after, cost = plant.answer(offer.episode, offer.step, offer.state, offer.action, offer.intensity)
            seen("about to tell", [offer.ask_id, after, cost])
            study.tell(offer.ask_id, after, cost)
            seen("tell", [offer.ask_id, after, cost])
        else:
            place = study.standing.place
            assert place is not None
            cost = plant.last_cost(place.episode, study.problem.naming.states[place.step][place.state])
            study.tell_terminal(cost)
            seen("tell_terminal", [place.episode, cost])


def tell_again(study: Study, attempt: Any, seen: Any) -> None:
    """What a caller does that died, or whose study died, before a tell was acknowledged: it says it once more."""
    with contextlib.suppress(OutOfOrder):  # the ask itself was not acknowledged, and is gone
        study.tell(*attempt)
        seen("tell", attempt)


class Calm(Monitor):
    """A monitor that never minds; it counts, so that its state can be compared."""

    def __init__(self, problem: sf.Problem, false_alarm: float) -> None:
        self.false_alarm, self.seen = false_alarm, 0

    def observe(self, h: int, features: Any, cost: Any) -> Alarm | None:
        self.seen += 1
        return None

    def beyond(self, h: int, cost: Any) -> Alarm | None:
        return None

    def arrays(self) -> dict[str, Any]:
        return {"seen": np.array([self.seen])}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.seen = int(arrays["seen"][0])


class Nervous(Calm):
    """Raises an alarm at chosen measurements."""

    at: Mapping[int, str] = {}

    def observe(self, h: int, features: Any, cost: Any) -> Alarm | None:
        self.seen += 1
        kind = self.at.get(self.seen)
        return None if kind is None else Alarm(kind, f"a {kind} alarm", {"why": kind})


def nervous(at: Mapping[int, str]) -> type[Nervous]:
    """A monitor whose n-th measurement raises an alarm of this kind."""
    return type("Nervous", (Nervous,), {"at": dict(at)})


# --- the same state -------------------------------------------------------------------------------------


def fingerprint(study: Study) -> dict[str, Any]:
    """All state of a study, arrays as their bytes."""
    standing, agent = study.standing, study.standing.agent
    plan = agent.plan
    arrays = {
        **{f"data {name}": array for name, array in agent._data().items()},
        **{f"planned {name}": array for name, array in agent._planned_data.items()},
        **{f"monitor {name}": array for name, array in standing.monitor.arrays().items()},
        **{f"upper {h}": array for h, array in enumerate(plan.bounds.upper)},
        **{f"q {h}": array for h, array in enumerate(plan.values.q)},
        **{f"action {h}": array for h, array in enumerate(plan.values.action)},
    }
    scalars = ("epoch", "monitor_number", "episodes", "tells", "share", "made_after")
    return {
        **{name: np.ascontiguousarray(array).tobytes() for name, array in arrays.items()},
        **{name: getattr(standing, name) for name in scalars},
        "agent": (agent.episodes, agent.replans, agent.replan_growth, agent._new_data),
        "agent's place": None if agent.place is None else (agent.place.step, agent.place.state),
        "place": standing.place,
        "pending": timeless(standing.pending),
        "raised": standing.raised,
    }


def timeless(record: Any) -> Any:
    """A record without what depends on when it was written."""
    if record is None:
        return None
    return {key: value for key, value in record.items() if key not in ("time", "previous", "hash", "ask")}


def lines_of(path: Path) -> list[bytes]:
    return (path / journals.NAME).read_bytes().splitlines(keepends=True)


def records_of(path: Path) -> list[records.Record]:
    return [records.decode(line) for line in lines_of(path)]


def rewritten(path: Path, changed: list[records.Record]) -> None:
    """Put other records into a journal, every hash right: what a careful forger, or a bug, would write."""
    previous, lines = records.FIRST, []
    for n, record in enumerate(changed):
        lines.append(sealed({**record, "n": n, "previous": previous}))
        previous = records.hash_in(lines[-1])
    (path / journals.NAME).write_bytes(b"".join(lines))


# --- disks ----------------------------------------------------------------------------------------------


class Quick(FileLayer):
    """A disk that need not be waited for; for tests in which nothing crashes."""

    def fsync(self, file: int) -> None:
        pass

    def fsync_dir(self, path: Path) -> None:
        pass


class FullDisk(Quick):
    """Takes so many more bytes into the journal, then is full until room is made."""

    def __init__(self, room: int) -> None:
        self.room = room

    def append(self, file: int, data: bytes | memoryview) -> int:
        taken = os.write(file, data[: self.room]) if self.room else 0
        self.room -= taken
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken


class PowerCut(BaseException):
    """The lights go out."""


class LossyDisk(FileLayer):
    """Remembers what has been synced, directory entries too; :meth:`after_power_cut` keeps that and nothing else.

    The power fails at the ``calls``-th touch of the disk. Of what was written and not synced a part may survive: none,
    all, a beginning, or all with a hole of zeros, as the ``rng`` likes.
    """

    def __init__(self, calls: int, rng: np.random.Generator) -> None:
        self._left, self._rng = calls, rng
        self._content: dict[int, bytes] = {}  # inode -> synced bytes
        self._entries: dict[Path, int | None] = {}  # synced entries; None for a folder

    def revive(self, calls: int) -> None:
        """Only the process died: what it wrote can be read, but is no more on disk than before."""
        self._left = calls

    def adopt(self, root: Path) -> None:
        """Everything below this folder is on disk, if there is anything."""
        for path in [root, *root.rglob("*")] if root.exists() else []:
            self._entries[path] = None if path.is_dir() else path.stat().st_ino
            if path.is_file():
                self._content[path.stat().st_ino] = path.read_bytes()

    def _touch(self) -> bool:
        """True when the power fails during this call; afterwards it is off."""
        if self._left <= 0:
            raise PowerCut
        self._left -= 1
        return self._left == 0

    def append(self, file: int, data: bytes | memoryview) -> int:
        if self._touch():
            os.write(file, data[: int(self._rng.integers(0, len(data) + 1))])
            raise PowerCut
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        if self._touch():
            raise PowerCut
        self._content[os.fstat(file).st_ino] = os.pread(file, os.fstat(file).st_size, 0)

    def truncate(self, file: int, size: int) -> None:
        if self._touch():
            raise PowerCut
        os.ftruncate(file, size)

    def fsync_dir(self, path: Path) -> None:
        if self._touch():
            raise PowerCut
        for known in [entry for entry in self._entries if entry.parent == path]:
            del self._entries[known]
        for entry in path.iterdir():
            self._entries[entry] = None if entry.is_dir() else entry.stat().st_ino

    def move(self, source: Path, target: Path) -> None:
        """What was synced in a folder goes with it."""
        super().move(source, target)
        below = {path: target / path.relative_to(source) for path in self._entries if path.is_relative_to(source)}
        self._entries = {below.get(path, path): inode for path, inode in self._entries.items()}

    def after_power_cut(self, root: Path, target: Path) -> None:
        """Lay out below ``target`` what is left of ``root``."""
        live = {p.stat().st_ino: p.read_bytes() for p in root.rglob("*") if p.is_file()} if root.exists() else {}
        if root not in self._entries:
            return
        for path in sorted(self._entries, key=lambda p: len(p.parts)):
            inode = self._entries[path]
            if not path.is_relative_to(root):
                continue
            copy = target / path.relative_to(root)
            if inode is None:
                if copy.parent.is_dir():
                    copy.mkdir(exist_ok=True)
            elif copy.parent.is_dir():
                synced = self._content.get(inode, b"")
                copy.write_bytes(self._survivor(synced, live.get(inode, synced)))

    def _survivor(self, synced: bytes, written: bytes) -> bytes:
        if not written.startswith(synced):
            return synced
        new = written[len(synced) :]
        kind = int(self._rng.integers(4))
        cut = int(self._rng.integers(0, len(new) + 1))
        if kind == 0 or not new:
            return synced
        if kind == 1:
            return written
        if kind == 2:
            return synced + new[:cut]
        hole = int(self._rng.integers(0, len(new) - cut + 1))
        return synced + new[:cut] + bytes(hole) + new[cut + hole :]


@contextlib.contextmanager
def until_power_cut() -> Any:
    with contextlib.suppress(PowerCut):
        yield


def standing_of(study: Study) -> Standing:
    return study.standing


WARM = ("warm", 1)


def opener(path: Path, world: sf.World) -> Callable[..., sf.Study]:
    """Opens one study again and again, quickly and without alarms unless told otherwise."""

    def open_it(**options: Any) -> sf.Study:
        return sf.Study.open(path, world.problem, **{"files": Quick(), "monitor_factory": Calm, **options})

    return open_it


def learnt(study: sf.Study, world: sf.World, episodes: int = 80, seed: int = 0) -> sf.Study:
    """A study that has seen enough to leave the fallback."""
    go_on(study, Plant(world, seed), episodes)
    return study


def confidence_of(agent: sf.LsviNew) -> Confidence:
    """What the audit makes bounds with, of an agent on its own."""
    own, options = agent.constants, agent.options
    given = [tuple(own[name]) for name in ("ridges", "ridge_ratios", "multipliers")]
    return Confidence(
        given[0], own["shaped"], given[1], given[2], options.failure_probability, own["safety_radius_scale"], None
    )
