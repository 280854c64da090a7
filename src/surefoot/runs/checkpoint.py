"""Checkpoints of runs: exact to the bit, written atomically, without pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from surefoot.agents.agent import Agent
from surefoot.agents.blocks import draws
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked
from surefoot.runs.record import EpisodeTable, PlanTable
from surefoot.runs.run import describe
from surefoot.storage import archive as npz
from surefoot.storage.documents import reading
from surefoot.worlds.world import World

if TYPE_CHECKING:
    from surefoot.runs.session import Session

VERSION = 6
DECISIVE = ("problem", "limits", "world", "noise", "agent", "constants")  # of a manifest: what decides the run


@dataclass(frozen=True, eq=False)
class Saved:
    """What a checkpoint holds."""

    episodes: int
    done: int
    table: dict[str, NDArray[Any]]  # columns, ``done`` rows
    plans: dict[str, NDArray[Any]]
    agent: dict[str, NDArray[Any]]


def save_checkpoint(path: Path, session: Session) -> None:
    """Write a session's state between two episodes."""
    agent, done = session.agent, session.done
    groups = {
        "table": {name: column[:done] for name, column in session.table.columns().items()},
        "plans": session.plans.columns(),
        "agent": agent.checkpoint(),
    }
    header = {
        "format": "surefoot-checkpoint",
        "version": VERSION,
        "manifest": session.manifest(),
        "shapes": npz.shapes_of(groups),
    }
    npz.save_archive(path, header, npz.flattened(groups))


def load_checkpoint(path: Path, agent: Agent, world: World) -> Saved:
    """Read a checkpoint; refuse one of another problem, agent or constant."""
    with reading(path, "the checkpoint cannot be read"):
        manifest, saved = _read(path)
        made_with = {name: manifest[name] for name in DECISIVE}
    _same(made_with, describe(agent, world, 0, saved.episodes, saved.done, {}))
    return saved


def _read(path: Path) -> tuple[dict[str, Any], Saved]:
    with npz.opened(path) as (header, open_members):
        checked.of_format(header, "a checkpoint", "surefoot-checkpoint", VERSION, "Run anew.")
        groups = open_members().groups(header["shapes"], ("table", "plans", "agent"))
    manifest = header["manifest"]
    saved = Saved(int(manifest["episodes"]), int(manifest["done"]), **groups)
    for name, column in EpisodeTable.blank(0, len(manifest["limits"])).columns().items():
        found = saved.table[name]
        if found.shape != (saved.done, *column.shape[1:]) or found.dtype != column.dtype:
            raise UnreadableFile("a column has the wrong shape", where=name, got=f"{found.shape}, {found.dtype}")
    PlanTable.of(saved.plans)
    drawn = draws.from_array(saved.agent["draws"])
    if drawn is None or drawn.played < saved.done or drawn.seeds[-1] != manifest["seed"]:
        raise UnreadableFile("its streams are not those of the run", got=f"{drawn!r:.200}")
    return manifest, saved


def _same(saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Versions may differ; whatever decides the run may not, and the error names the difference."""
    for name in DECISIVE:
        there, here = saved[name], json.loads(json.dumps(now[name]))
        if there == here:
            continue
        if isinstance(there, dict) and isinstance(here, dict):
            differ = [key for key in {**there, **here} if there.get(key) != here.get(key)]
            there, here = ({key: side.get(key) for key in differ} for side in (there, here))
        raise InvalidInput(
            f"the checkpoint was made with another {name}",
            got=f"{_short(there)} there, {_short(here)} here",
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."
