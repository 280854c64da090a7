"""The directory of a sweep: what to run, where each run is, what is finished. Format: :mod:`…sweep`."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import InvalidInput, SurefootError, UnreadableFile
from surefoot.model import checked
from surefoot.storage import disk, documents
from surefoot.storage.disk import write_text, writing
from surefoot.storage.lock import Lock
from surefoot.sweeps.spec import FORMAT, MOST, VERSION, Contender, Spec
from surefoot.worlds import registry as worlds
from surefoot.worlds.files import save_world
from surefoot.worlds.world import World

if TYPE_CHECKING:
    from surefoot.runs.ledger import Ledger

MANIFEST, TIMES, RUNS = "sweep.json", "times.json", "runs"
POLICY, EXPLOITING = "policy.json", "policy-exploit.json"  # of a finished run
WORLD_FILES = ("world.json", "world.npz")
LOCK, WORKERS = ".lock", ".workers"  # who works here
PATIENCE = 30.0  # seconds for the workers of a killed process to end

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_LONGEST = 1e10  # seconds, three hundred years


@dataclass(frozen=True)
class RunPlace:
    """Where one run is."""

    root: Path
    label: str
    seed: int

    @property
    def key(self) -> str:
        return f"{self.label}/seed-{self.seed:04d}"

    @property
    def folder(self) -> Path:
        return self.root / RUNS / self.label / f"seed-{self.seed:04d}"

    @property
    def checkpoint(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.checkpoint")

    @property
    def snapshots(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.snapshots")

    @property
    def finished(self) -> bool:
        return self.folder.is_dir()

    @property
    def begun(self) -> bool:
        return self.checkpoint.exists()

    @contextlib.contextmanager
    def appearing(self) -> Iterator[Path]:
        """A folder to fill; it is then moved to the run's place, and what only a restart needs is removed."""
        beside = self.folder.with_name(f".{self.folder.name}-{secrets.token_hex(4)}")
        try:
            yield beside
            disk.DISK.move(beside, self.folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """What a finished run no longer needs."""
        self.checkpoint.unlink(missing_ok=True)
        if self.snapshots.exists():
            shutil.rmtree(self.snapshots)


@dataclass(frozen=True)
class Folder:
    """A directory with a manifest."""

    root: Path
    manifest: dict[str, Any]

    @property
    def spec(self) -> Spec:
        part = self.manifest
        contenders = [Contender(each["agent"], each["options"], each["label"]) for each in part["agents"]]
        world, kept = part["world"], len(part["snapshots"]["seeds"])
        which = world["name"] if world["file"] is None else str(self.root / world["file"])
        return Spec(which, contenders, part["seeds"], part["episodes"], world["options"], kept)

    def world(self) -> World:
        """The world, made again; refused if it is not the one of these runs."""
        known, source = self.manifest["world"], str(self.root / MANIFEST)
        try:
            world = self.spec.make_world().named(known["name"])
        except (SurefootError, OSError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
            raise UnreadableFile("the world cannot be made again", where=source, got=str(error)[:300]) from error
        if world.digest != known["digest"]:
            raise UnreadableFile(
                "the world is no longer the one of these runs",
                where=str(self.root),
                got=f"{known['name']} has digest {world.digest[:12]}…, the runs {known['digest'][:12]}…",
                fix=f"Use surefoot {self.manifest['versions'].get('surefoot')}, or run anew.",
            )
        return world

    @property
    def labels(self) -> list[str]:
        return [each["label"] for each in self.manifest["agents"]]

    def places(self) -> list[RunPlace]:
        """Every run, finished or not: all seeds of the first agent, then of the next."""
        return [RunPlace(self.root, label, seed) for label in self.labels for seed in self.manifest["seeds"]]

    def finished(self) -> list[RunPlace]:
        return [place for place in self.places() if place.finished]

    def ledger(self, place: RunPlace) -> Ledger:
        """The ledger of a finished run; refused if it is damaged or belongs to another run."""
        from surefoot.runs import ledger

        agent = next(each["agent"] for each in self.manifest["agents"] if each["label"] == place.label)
        episodes, world = self.manifest["episodes"], self.manifest["world"]["digest"]
        wanted = {"agent": agent, "seed": place.seed, "episodes": episodes, "done": episodes, "world": world}
        try:
            found = ledger.load_ledger(place.folder)
            for name, value in wanted.items():
                if found.manifest[name] != value:
                    got = f"{name} {checked.short(found.manifest[name])} where {checked.short(value)} is expected"
                    raise UnreadableFile("the run is not the one of this place", where=str(place.folder), got=got)
        except UnreadableFile as error:
            fix = error.fix or f"Remove {place.folder} to play this run anew."
            raise UnreadableFile(error.rule, where=error.where, got=error.got, fix=fix) from error
        return found

    def ledgers(self) -> dict[str, list[Ledger]]:
        """The ledgers of all finished runs, by label; a label without any is left out."""
        found: dict[str, list[Ledger]] = {}
        for place in self.finished():
            found.setdefault(place.label, []).append(self.ledger(place))
        return found

    # --- wall times -------------------------------------------------------------------------------------

    def times(self) -> dict[str, Any]:
        """Wall times by ``LABEL/seed-0003``; empty if there are none that can be read."""
        with contextlib.suppress(OSError, UnreadableFile):
            document = checked.entries(documents.read_json(self.root / TIMES)[0], "$", ("runs",))
            runs = checked.entries(document["runs"], "$.runs", ())
            known = {place.key for place in self.places()}
            return {key: entry for key, entry in runs.items() if key in known and _is_time(entry)}
        return {}

    def add_time(self, place: RunPlace, seconds: float, marks: Sequence[tuple[int, float]]) -> None:
        """Add a session of a run; marks of earlier sessions come first."""
        runs = self.times()
        before = runs.get(place.key, {"seconds": 0.0, "marks": []})
        spent = before["seconds"]
        later = [[done, round(spent + at, 4)] for done, at in marks]
        earlier = [mark for mark in before["marks"] if not later or mark[0] < later[0][0]]
        runs[place.key] = {"seconds": round(spent + seconds, 4), "marks": earlier + later}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(runs[key])}" for key in sorted(runs))
        text = f'{{"format": "surefoot-times", "version": 1, "runs": {{\n{lines}\n}}}}\n'
        write_text(self.root / TIMES, text)


def _is_time(entry: Any) -> bool:
    """Is this seconds, and marks in increasing order? Times are optional: anything else is ignored."""
    try:
        part = checked.entries(entry, "", ("seconds", "marks"))
        marks = [checked.sequence(mark, "", 2) for mark in checked.sequence(part["marks"], "")]
        done = [checked.integer(mark[0], "") for mark in marks]
        seconds = [checked.finite(mark[1], "") for mark in marks]
        total = checked.finite(part["seconds"], "")
    except UnreadableFile:
        return False
    growing = all(a <= b for row in (done, seconds) for a, b in pairwise(row))
    return growing and all(0 < n <= MOST for n in done) and all(0 <= t <= _LONGEST for t in (total, *seconds))


# --- opening and creating -------------------------------------------------------------------------------


def open_folder(root: str | Path) -> Folder:
    """A sweep's directory; anything else is an error."""
    root = Path(root)
    source = root / MANIFEST
    if not source.is_file():
        got = f"it has no {MANIFEST}" if root.is_dir() else "no such directory"
        raise UnreadableFile("not a directory of runs", where=str(root), got=got, fix=_MAKE_ONE)
    with documents.reading(source, "the manifest is damaged"):
        folder = Folder(root, _checked(documents.read_json(source)[0]))
        if not set(folder.manifest["snapshots"]["seeds"]) <= set(folder.spec.seeds):
            raise UnreadableFile("snapshots of a seed that is not run", where="$.snapshots.seeds")
    return folder


def _checked(document: object) -> dict[str, Any]:
    """The manifest, with all types checked; :class:`Spec` checks what the values mean."""
    checked.of_format(document, "a sweep", FORMAT, VERSION, "Run anew.")
    keys = ("world", "agents", "seeds", "episodes", "snapshots", "versions")
    manifest = checked.entries(document, "$", keys)
    world = checked.entries(manifest["world"], "$.world", ("name", "options", "digest", "file"))
    if world["file"] not in (None, *WORLD_FILES):
        raise checked.wrong("$.world.file", f"null or {' or '.join(WORLD_FILES)}", world["file"])
    if world["file"] is None and worlds.is_file_name(world["name"]):
        raise checked.wrong("$.world.file", "the copy of a world that is a file", None)
    checked.entries(world["options"], "$.world.options", ())
    checked.string(world["name"], "$.world.name")
    if not _DIGEST.match(checked.string(world["digest"], "$.world.digest")):
        raise checked.wrong("$.world.digest", "a sha256 in hex", world["digest"])
    for i, each in enumerate(checked.sequence(manifest["agents"], "$.agents")):
        at = f"$.agents[{i}]"
        part = checked.entries(each, at, ("label", "agent", "options"))
        checked.entries(part["options"], f"{at}.options", ())
        for name in ("label", "agent"):
            if not checked.string(part[name], f"{at}.{name}"):
                raise checked.wrong(f"{at}.{name}", "a name", part[name])
    snapshots = checked.entries(manifest["snapshots"], "$.snapshots", ("seeds", "note"))
    checked.string(snapshots["note"], "$.snapshots.note")
    for at, seeds in (("$.seeds", manifest["seeds"]), ("$.snapshots.seeds", snapshots["seeds"])):
        for seed in checked.sequence(seeds, at):
            checked.integer(seed, at)
    for name, number in checked.entries(manifest["versions"], "$.versions", ()).items():
        checked.string(number, f"$.versions.{name}")
    json.dumps(document, ensure_ascii=False).encode()  # half a character could not be written again
    return manifest


_MAKE_ONE = "Make one with: surefoot run WORLD --out DIR."


def refuse_taken(root: Path, force: bool) -> None:
    """Refuse to overwrite runs unless forced, and anything else always."""
    if not root.exists() or (root.is_dir() and not _content(root)):
        return
    if not root.is_dir():
        raise InvalidInput("a file is where the directory should be", got=str(root), fix="Choose another directory.")
    if not (root / MANIFEST).is_file():
        raise InvalidInput(
            "the directory is not empty and holds no runs", got=str(root), fix="Choose a new or an empty directory."
        )
    if not force:
        try:
            known = open_folder(root)
            state = f"{len(known.finished())} of {len(known.places())} runs are finished"
        except UnreadableFile:
            state = "its manifest cannot be read"
        raise InvalidInput(
            "there are runs already",
            where=str(root),
            got=state,
            fix=f"Continue with: surefoot resume {root}, or replace them with --force.",
        )


def _content(root: Path) -> list[str]:
    """What is in a directory, except locks that a refused or killed process left."""
    return [path.name for path in root.iterdir() if path.name not in (LOCK, WORKERS)]


def create(root: Path, manifest: dict[str, Any], world: World) -> Folder:
    """Write the manifest, and a world that no registry can make; earlier runs are moved away first."""
    with writing(root):
        if (root / RUNS).exists():
            disk.DISK.move(root / RUNS, root / f".old-{secrets.token_hex(4)}")
        for name in (TIMES, *WORLD_FILES):
            (root / name).unlink(missing_ok=True)
        if manifest["world"]["file"] is not None:
            save_world(world, root / manifest["world"]["file"])
        write_text(root / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        disk.DISK.mkdir(root / RUNS)
    return Folder(root, manifest)


def clean(folder: Folder) -> None:
    """Remove what a killed process left behind. Only the holder of the lock may call it."""
    with contextlib.suppress(OSError):
        for path in _leftovers(folder):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for place in folder.finished():
            place.remove_leftovers()


def _leftovers(folder: Folder) -> Iterator[Path]:
    root = folder.root
    for pattern in (".old-*", f"{disk.BESIDE}*"):
        yield from root.glob(pattern)
    for label in folder.labels:
        for pattern in (".seed-*", f"{disk.BESIDE}*", f"seed-*.snapshots/{disk.BESIDE}*"):
            yield from (root / RUNS / label).glob(pattern)


# --- one process at a time -----------------------------------------------------------------------------


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Work in the folder alone, or refuse.

    Workers share a second lock: if the process that runs a sweep is killed, they may live on for a moment, and the next
    process waits until they are gone.
    """
    fix = "Wait for it to end, or choose another directory."
    with Lock(folder / LOCK, busy="another process works in this directory", fix=fix):
        with _workers(folder, patience=PATIENCE):
            pass
        yield


def working(folder: Path) -> Lock:
    """The lock that a worker process holds while it lives."""
    return _workers(folder, shared=True)


def _workers(folder: Path, *, shared: bool = False, patience: float = 0.0) -> Lock:
    busy, fix = "workers of a process that was killed are still running", "End them, or wait for them."
    return Lock(folder / WORKERS, busy=busy, fix=fix, shared=shared, patience=patience)
