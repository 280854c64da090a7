"""The results of comparing many agents on many worlds, before any drawing.

Per run two numbers, never one alone, because an unsafe learner can earn more than the best safe policy:

    earned      1 − (regret of all episodes)/(K·(best safe value − fallback's value)): the share of what a safe learner
                could have gained over the fallback, on average over the run; above 1 only by unsafe play
    violations  steps whose true cost broke a limit

Intervals are percentiles of 2,000 resamplings of the seeds, world by world (stratified bootstrap, 95 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import SurefootError
from surefoot.reports.statistics import RESAMPLES, csv_text
from surefoot.streams import stream
from surefoot.sweeps.folder import open_folder

LEVELS = np.round(np.linspace(0.0, 1.0, 101), 2)  #: of "earned", in profiles


@dataclass(frozen=True, eq=False)
class Cell:
    """One agent on one world: an entry per seed."""

    world: str
    label: str
    guaranteed: bool
    episodes: int
    seeds: tuple[int, ...]
    earned: NDArray[np.float64]
    closed: NDArray[np.float64]  # share of the gap that the last policy closes
    regret: NDArray[np.float64]
    violations: NDArray[np.int64]
    seconds: NDArray[np.float64]  # NaN where the time is not known


@dataclass(frozen=True)
class Overall:
    """One agent on all worlds, all of equal weight."""

    label: str
    guaranteed: bool
    runs: int
    earned: float
    earned_between: tuple[float, float]
    per_episode: float  # violating steps
    per_episode_between: tuple[float, float]
    unsafe_runs: int
    milliseconds: float  # per episode, median over runs; NaN where unknown


@dataclass(frozen=True, eq=False)
class Field:
    """Everything that a comparison shows."""

    worlds: tuple[str, ...]
    labels: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]  # by world and label

    def ranked(self) -> list[Overall]:
        """A line per agent: those that broke no limit first, then by what they earned."""
        return sorted(map(self._overall, self.labels), key=lambda row: (row.unsafe_runs > 0, -row.earned))

    def _overall(self, label: str) -> Overall:
        cells = [self.cells[world, label] for world in self.worlds if (world, label) in self.cells]
        earned = [cell.earned for cell in cells]
        rates = [cell.violations / cell.episodes for cell in cells]
        times = np.concatenate([1e3 * cell.seconds / cell.episodes for cell in cells])
        return Overall(
            label=label,
            guaranteed=all(cell.guaranteed for cell in cells),
            runs=sum(len(cell.seeds) for cell in cells),
            earned=_mean(earned),
            earned_between=bootstrap_interval(earned),
            per_episode=_mean(rates),
            per_episode_between=bootstrap_interval(rates),
            unsafe_runs=sum(int((cell.violations > 0).sum()) for cell in cells),
            milliseconds=float(np.nanmedian(times)) if np.isfinite(times).any() else float("nan"),
        )

    def profile(self, label: str, safe_only: bool) -> NDArray[np.float64]:
        """(levels,) the share of runs that earned at least each level; ``safe_only``: and broke no limit."""
        shares = []
        for world in self.worlds:
            if (cell := self.cells.get((world, label))) is not None:
                counts = cell.violations == 0 if safe_only else np.ones(len(cell.seeds), bool)
                shares.append(((cell.earned[:, None] >= LEVELS - 1e-12) & counts[:, None]).mean(axis=0))
        result: NDArray[np.float64] = np.mean(shares, axis=0)
        return result

    def csv(self) -> str:
        """A row per run."""
        head = ["world", "agent", "seed", "episodes", "earned", "gap_closed", "regret", "violations"]
        rows = []
        for cell in self.cells.values():
            columns = (cell.seeds, cell.earned.tolist(), cell.closed.tolist(), cell.regret.tolist(), cell.violations)
            for seed, earned, closed, regret, broken in zip(*columns, strict=True):
                rows.append([cell.world, cell.label, seed, cell.episodes, earned, closed, regret, int(broken)])
        return csv_text(head, rows)

    def markdown(self) -> str:
        """Two tables: all worlds together, and world by world."""
        return f"{overall_table(self)}\n\n{world_table(self)}\n"


def read_field(root: Path) -> Field:
    """The finished runs below a directory of ``surefoot compare``, a sweep per world."""
    cells: dict[tuple[str, str], Cell] = {}
    worlds: list[str] = []
    labels: dict[str, None] = {}
    for manifest in sorted(root.glob("*/sweep.json")):
        folder = open_folder(manifest.parent)
        world, times = str(folder.manifest["world"]["name"]), folder.times()
        worlds.append(world)
        for label in folder.labels:
            places = [place for place in folder.finished() if place.label == label]
            if not places:
                continue
            labels.setdefault(label)
            made = [folder.ledger(place).manifest for place in places]
            ends = [each["summary"] for each in made]
            episodes = int(folder.manifest["episodes"])
            regret = np.array([end["total_regret"] for end in ends])
            gap = np.array([end["best_value"] - end["fallback_value"] for end in ends])
            cells[world, label] = Cell(
                world=world,
                label=label,
                guaranteed=all(each["guaranteed"] for each in made),
                episodes=episodes,
                seeds=tuple(int(each["seed"]) for each in made),
                earned=np.where(gap > 0, 1.0 - regret / np.where(gap > 0, episodes * gap, 1.0), 1.0),
                closed=np.array([end["gap_closed"] for end in ends]),
                regret=regret,
                violations=np.array([end["violations"] for end in ends], np.int64),
                seconds=np.array([times[p.key]["seconds"] if p.key in times else np.nan for p in places]),
            )
    if not cells:
        raise SurefootError(
            "there are no runs of a comparison here", where=str(root), fix="Make them: surefoot compare"
        )
    return Field(tuple(worlds), tuple(labels), cells)


def _mean(groups: Sequence[NDArray[np.float64]]) -> float:
    """The mean over worlds of the mean over seeds."""
    return float(np.mean([group.mean() for group in groups]))


def bootstrap_interval(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """95 % interval of :func:`_mean`, resampling the seeds within each world."""
    rng = stream(0, "bootstrap")
    means = [group[rng.integers(len(group), size=(RESAMPLES, len(group)))].mean(axis=1) for group in groups]
    low, high = np.percentile(np.mean(means, axis=0), [2.5, 97.5])
    return float(low), float(high)


def overall_table(field: Field) -> str:
    """All worlds together; agents that broke no limit come first."""
    lines = [
        "| agent | earned | violating steps per episode | runs with a violation | ms per episode | promises |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for row in field.ranked():
        low, high = row.earned_between
        lines.append(
            f"| `{row.label}` | {two_digits(row.earned)} ({two_digits(low)} … {two_digits(high)}) | {_rate(row)} "
            f"| {row.unsafe_runs} of {row.runs} | {row.milliseconds:.2g} | {'every step' if row.guaranteed else '–'} |"
        )
    return "\n".join(lines)


def two_digits(number: float) -> str:
    """Two digits, and no minus sign before a zero."""
    return f"{round(number, 2) + 0.0:.2f}"


def _rate(row: Overall) -> str:
    if row.unsafe_runs == 0:
        return "0"
    low, high = row.per_episode_between
    return f"{row.per_episode:.2g} ({low:.2g} … {high:.2g})"


def world_table(field: Field) -> str:
    """World by world: earned, and in how many runs a limit was broken."""
    head = "| agent | " + " | ".join(f"{world}" for world in field.worlds) + " |"
    lines = [head, "|---|" + "---:|" * len(field.worlds)]
    for label in field.labels:
        shown = []
        for world in field.worlds:
            cell = field.cells.get((world, label))
            if cell is None:
                shown.append("")
                continue
            broken = int((cell.violations > 0).sum())
            shown.append(two_digits(float(cell.earned.mean())) + (f" · {broken}/{len(cell.seeds)} ✗" if broken else ""))
        lines.append(f"| `{label}` | " + " | ".join(shown) + " |")
    return "\n".join(lines)
