"""What a report says, before any drawing: a headline per agent, charts as plain numbers, and plans to explore.

The page, the figures (SVG, PNG) and the tables (CSV) are all made from these, so they cannot disagree.
:func:`read_sweep` takes the directory of a sweep (:mod:`surefoot.sweeps.sweep`) and reads its finished runs;
:func:`read_runs` takes runs in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from surefoot.checks import of_kind
from surefoot.errors import InvalidInput, SurefootError
from surefoot.reports import charts
from surefoot.reports.charts import Chart, Curve, paper_bound
from surefoot.reports.classes import View, classify
from surefoot.reports.statistics import Price, Summary, prices, summarise
from surefoot.runs import plans_kept
from surefoot.runs.ledger import Ledger
from surefoot.runs.plans_kept import Snapshot
from surefoot.runs.run import Run
from surefoot.sweeps.folder import Folder, open_folder
from surefoot.worlds import registry as worlds
from surefoot.worlds.world import World


@dataclass(frozen=True)
class Headline(Summary):
    """One agent, all its finished runs together."""

    slope: float | None  # of log regret over log episodes, in the last decade; None if that has no meaning


@dataclass(frozen=True, eq=False)
class KeptPlans:
    """The plans of one run that the explorer shows."""

    label: str = ""
    seed: int = 0
    plans: Sequence[Snapshot] = ()
    why_none: str = "no finished run kept plans"


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page says about some runs on one world."""

    name: str
    description: str
    world: World
    world_options: Mapping[str, Any]
    agents: tuple[tuple[str, str, Mapping[str, Any]], ...]  # label, agent, options
    versions: Mapping[str, str]
    episodes: int
    seeds: tuple[int, ...]
    fallback_value: float
    best_value: float
    headlines: tuple[Headline, ...]
    charts: tuple[Chart, ...]
    explored: KeptPlans
    prices: tuple[Price, ...]  # of safety
    notes: tuple[str, ...] = field(default_factory=tuple)

    @cached_property
    def view(self) -> View:
        """The world by its last kept plan; without one, by the fallback."""
        return classify(self.world, self.explored.plans[-1] if self.explored.plans else None)


@dataclass(frozen=True, eq=False)
class _Course:
    """A run, from a ledger or from memory."""

    ledger: Ledger
    seconds: float | None
    marks: Sequence[Any] = ()


def read_sweep(directory: str | Path) -> Report:
    """The report of the finished runs in a directory."""
    folder = open_folder(directory)
    done: dict[str, list[_Course]] = {}
    times = folder.times()
    for place in folder.finished():
        spent = times.get(place.key, {"seconds": None, "marks": []})
        done.setdefault(place.label, []).append(_Course(folder.ledger(place), spent["seconds"], spent["marks"]))
    if not done:
        fix = f"Continue with: surefoot resume {folder.root}"
        raise SurefootError("no run is finished yet", where=str(folder.root), fix=fix)
    manifest, total = folder.manifest, len(folder.places())
    missing = total - sum(map(len, done.values()))
    options = {each["label"]: (each["agent"], each["options"]) for each in manifest["agents"]}
    explored, world = _kept_plans(folder, folder.world(), done)
    return _summed_up(
        done,
        world,
        options,
        name=str(manifest["world"]["name"]),
        description="a world of your own" if manifest["world"]["file"] else worlds.described(manifest["world"]["name"]),
        world_options=manifest["world"]["options"],
        versions=manifest["versions"],
        seeds=tuple(manifest["seeds"]),
        explored=explored,
        notes=(f"{missing} of {total} runs are not finished and are left out.",) if missing else (),
    )


def _kept_plans(folder: Folder, world: World, done: Mapping[str, Sequence[_Course]]) -> tuple[KeptPlans, World]:
    """The plans to explore: of the first agent with a guarantee, otherwise of the first that kept any; and the world,
    as large as it is in the last of them."""
    found = [place for place in folder.finished() if any((place.folder / "snapshots").glob("plan-*.npz"))]
    if not found:
        return KeptPlans(why_none=str(folder.manifest["snapshots"].get("note") or KeptPlans.why_none)), world
    place = min(found, key=lambda place: not done[place.label][0].ledger.manifest["guaranteed"])
    kept = place.folder / "snapshots"
    problem = plans_kept.grown_in(kept, world.problem)
    world = world if problem is world.problem else world.on(problem)
    return KeptPlans(place.label, place.seed, plans_kept.load_all(kept, problem)), world


# --- runs in memory -------------------------------------------------------------------------------------

Runs = Run | Sequence[Run] | Mapping[str, Sequence[Run]]

_GIVE = "Give what sf.run returns."


def read_runs(runs: Runs) -> Report:
    """The report of runs on one world. The keys of a mapping are labels; otherwise runs of one agent go together."""
    groups = _labelled(runs)
    every = [run for group in groups.values() for run in group]
    world = every[0].world
    for run in every:
        if run.world.digest != world.digest:
            got = f"{run.world.digest[:12]}… and {world.digest[:12]}…"
            raise InvalidInput("a report is about one world", got=got, fix="Write a report for each.")
        if not run.episodes:
            raise InvalidInput("a run without an episode has nothing to report", got=repr(run))
    done = {label: [_Course(Ledger.of(run), run.seconds) for run in group] for label, group in groups.items()}
    first = every[0].manifest
    options = {label: (group[0].manifest["agent"], _different(group[0], every)) for label, group in groups.items()}
    name = world.name or "your own world"
    explored, world = _kept_in_memory(groups, world)
    return _summed_up(
        done,
        world,
        options,
        name=name,
        description=worlds.described(name) if name in worlds.names() else "a world of your own",
        world_options={},
        versions=first["versions"],
        seeds=tuple(dict.fromkeys(run.manifest["seed"] for run in every)),
        explored=explored,
        notes=(),
    )


def _labelled(runs: Runs) -> dict[str, list[Run]]:
    if isinstance(runs, Mapping):
        groups = {str(label): list(group) for label, group in runs.items()}
    else:
        groups, known = dict[str, list[Run]](), list[tuple[str, Any]]()
        for run in [runs] if isinstance(runs, Run) else list(runs):
            of_kind(run, Run, "a report is about runs", _GIVE)
            look = run.manifest["agent"], run.manifest["constants"]
            known += [] if look in known else [look]
            same = [each for each in known if each[0] == look[0]]
            number = same.index(look) + 1
            groups.setdefault(look[0] if number == 1 else f"{look[0]} ({number})", []).append(run)
    if not any(groups.values()) or not all(groups.values()):
        raise InvalidInput("a report needs a run", fix=_GIVE)
    return groups


def _different(run: Run, every: Sequence[Run]) -> dict[str, Any]:
    """The constants in which runs of the same agent differ."""
    mine = run.manifest["constants"]
    others = [each.manifest["constants"] for each in every if each.manifest["agent"] == run.manifest["agent"]]
    return {name: value for name, value in mine.items() if any(other.get(name) != value for other in others)}


def _kept_in_memory(groups: Mapping[str, Sequence[Run]], world: World) -> tuple[KeptPlans, World]:
    found = [(not run.guaranteed, n, label, run) for n, (label, group) in enumerate(groups.items())
             for run in group if run.kept]  # fmt: skip
    if not found:
        return KeptPlans(why_none=plans_kept.why_not_kept(world.problem) or "no agent here makes plans"), world
    _, _, label, run = min(found, key=lambda entry: entry[:2])
    plans = [plans_kept.snapshot_of(plan, before).on(run.world.problem) for plan, before in run.kept]
    return KeptPlans(label, run.manifest["seed"], plans), run.world


# --- both -----------------------------------------------------------------------------------------------


def _summed_up(
    done: Mapping[str, Sequence[_Course]],
    world: World,
    options: Mapping[str, tuple[str, Mapping[str, Any]]],
    **said: Any,
) -> Report:
    groups = {label: [course.ledger for course in courses] for label, courses in done.items()}
    agents = {label: agent for label, (agent, _) in options.items()}
    episodes = max(len(ledger.regret) for ledgers in groups.values() for ledger in ledgers)
    summary = next(iter(groups.values()))[0].manifest["summary"]
    values = float(summary["fallback_value"]), float(summary["best_value"])
    regret = charts.regret_lines(groups, agents)
    bound = paper_bound(world.problem, _failure_probability(groups), episodes)
    marks = {label: [course.marks for course in courses if course.marks] for label, courses in done.items()}
    return Report(
        world=world,
        agents=tuple((label, *options[label]) for label in options),
        episodes=episodes,
        fallback_value=values[0],
        best_value=values[1],
        headlines=tuple(_headline(line, done[line.label]) for line in regret),
        charts=(
            *charts.regret_charts(regret, bound),
            charts.value_chart(groups, agents, values),
            charts.violations_chart(groups, agents),
            charts.certified_chart(groups, agents),
            *charts.margin_charts(groups, agents),
            *charts.time_charts(marks, agents),
        ),
        prices=prices({label: [ledger.manifest for ledger in ledgers] for label, ledgers in groups.items()}),
        **said,
    )


def _failure_probability(groups: Mapping[str, Sequence[Ledger]]) -> float:
    for ledgers in groups.values():
        value = ledgers[0].manifest["constants"].get("failure_probability")
        if ledgers[0].manifest["guaranteed"] and isinstance(value, float):
            return value
    return 0.05


def _headline(line: Curve, courses: Sequence[_Course]) -> Headline:
    seconds = [course.seconds for course in courses if course.seconds is not None]
    summary = summarise(line.label, [course.ledger.manifest for course in courses], seconds)
    return Headline(**vars(summary), slope=charts.fitted_slope(line))
