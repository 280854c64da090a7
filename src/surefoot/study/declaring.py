"""What a study declares: examined before it is used, kept beside the journal, and changed after an alarm.

A declaration that a person gives, at the opening or with an acknowledgement, passes :func:`surefoot.check` or comes
with a reason. A new one only widens the one before (:mod:`surefoot.study.comparing`).

**A graph that has grown** keeps its functions, and so its support; everything else of a new declaration is adopted
(:func:`on_graph`). Its ridges stay for good: they are those of the first graph.

**Anchors** were measured before. When data are discarded, they are dropped too, unless a person trusts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot.diagnosis import check
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import files
from surefoot.model.labels import shown
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.storage.disk import FileLayer, writing
from surefoot.study.alarms import Raised, unanswered
from surefoot.study.comparing import other_prior, refuse_narrower
from surefoot.study.records import Record, reason_given

Declarations = Callable[[Record], Problem]
"""The problem that a record names, by ``problem`` and ``problem_file``."""

_PROBLEM_FILE = re.compile(r"problem(-[1-9]\d{0,17})?\.(json|npz)\Z")


def _of_plant(given: object) -> str:
    keeps = "A study keeps its plant: begin a new one with the wider plant, or give discard_data or noise alone."
    return keeps if isinstance(given, Plant) else ""


def revised(problem: Problem, noise: Any, given: Problem | None, discard: bool, trust_anchors: bool) -> Problem:
    """The declaration from here on: the one given, or with other noise; after a discard without anchors."""
    if noise is not None and given is not None:
        raise InvalidInput("give other noise or another problem, not both", fix="The problem declares the noise.")
    if given is not None and not isinstance(given, Problem):
        raise InvalidInput("a declaration is a Problem", got=f"a {type(given).__name__}", fix=_of_plant(given))
    if trust_anchors and not discard:
        raise InvalidInput("anchors are in doubt only when data are discarded", fix="Leave trust_anchors out.")
    new = given or (problem if noise is None else _with_noise(problem, noise))
    return new if not discard or trust_anchors else _without_anchors(new)


def on_graph(graph_of: Problem, said: Problem) -> Problem:
    """The graph of one problem with everything else that another one declares."""
    graph = replace(graph_of.graph, anchors=said.graph.anchors)
    return replace(graph_of, graph=graph, limits=said.limits, transition_norm=said.transition_norm)


def _with_noise(problem: Problem, noise: Any) -> Problem:
    names = [limit.name for limit in problem.limits]
    scales = noise if isinstance(noise, Mapping) else {names[0]: noise}
    if not isinstance(noise, Mapping) and len(names) > 1:
        raise InvalidInput("say which limit's noise it is", got=shown(noise), fix=f"Use noise={{{names[0]!r}: …}}.")
    for name in scales:
        if name not in names:
            raise InvalidInput("no such limit", got=shown(name), fix=f"The limits are {', '.join(names)}.")
    limits = tuple(replace(limit, noise=scales.get(limit.name, limit.noise)) for limit in problem.limits)
    return replace(problem, limits=limits)


def _without_anchors(problem: Problem) -> Problem:
    if not _anchored(problem):
        return problem
    return replace(problem, graph=replace(problem.graph, anchors=(None,) * problem.horizon))


def _anchored(problem: Problem) -> bool:
    return any(anchor is not None for anchor in problem.graph.anchors)


def changes(old: Problem, new: Problem, discard: bool) -> list[str]:
    """What an acknowledgement changes, in words."""
    pairs = list(zip(old.limits, new.limits, strict=True))
    larger = any(b.misspecification > a.misspecification for a, b in pairs)
    larger |= any(b.norm > a.norm or other_prior(a, b) for a, b in zip(old.priors, new.priors, strict=True))
    found = {
        "data discarded": discard,
        "larger noise": any(b.noise > a.noise or b.episode_noise > a.episode_noise for a, b in pairs),
        "wider support": _edges(new) > _edges(old),
        "larger norm or misspecification": larger or new.transition_norm > old.transition_norm,
        "anchors dropped": _anchored(old) and not _anchored(new),
        "anchors trusted": discard and _anchored(new),
    }
    return [words for words, true in found.items() if true]


def _edges(problem: Problem) -> int:
    return sum(layer.n_edges for layer in problem.graph.layers)


def refuse_unanswered(raised: list[Raised], old: Problem, new: Problem, discard: bool, outside: Iterable[str]) -> None:
    """Raises unless the declaration only widens, and answers every alarm."""
    refuse_narrower(old, new, discard)
    missing = unanswered(raised, new, discard, outside)
    if missing:
        said, fix = "; ".join(alarm.message for alarm in raised), f"Acknowledge with {'; '.join(missing)}."
        raise InvalidInput("an alarm has disproved what is declared, or the data are in doubt", got=said, fix=fix)


# --- before it is used, and beside the journal ----------------------------------------------------------


def examined(problem: Problem | Plant, failure_probability: float, despite: str | None) -> Record | None:
    """Refuse a declaration in which ``check`` finds errors, unless there is a reason to use it; returns both."""
    if despite is not None:
        reason_given("say why the declaration is right", despite)
    errors = check(problem, failure_probability).errors
    if errors and despite is None:
        raise InvalidInput(
            "the declaration has errors",
            got=" ".join(errors).rstrip("."),
            fix='Correct it; sf.check(problem) says more. If it is right anyway, give despite="why"; the reason is '
            "kept in the journal, and certificates and audit show it.",
        )
    return {"reason": despite, "findings": errors} if errors else None


def refuse_sparse(problem: Problem, *, of_plant: bool) -> None:
    """The monitor and the audit keep d × d matrices, which sparse features are meant to avoid. And only a plant has the
    exact features of a cost if its action has several rows."""
    layer = problem.graph.layers[0]
    if problem.graph.several_rows and not of_plant:
        raise InvalidInput(
            "a study takes one cost row per action, or one per triplet",
            got="some action has several",
            fix="Open it with a Plant, or drive the agent itself, with agent.observe(…, features=…).",
        )
    for name in ("cost_features", "transition_features"):
        if isinstance(getattr(layer, name), SparseRows):
            raise InvalidInput(
                "a study takes dense features only",
                got=f"sparse {name} with {getattr(layer, name).dim} columns",
                fix="Declare the problem with ….toarray(), and with fewer columns if there are many.",
            )


def keep_problem(path: Path, problem: Problem, layer: FileLayer, stem: str = "problem") -> str:
    """Save the problem beside the journal, durably; returns the file's name."""
    name = files.file_for(problem, stem)
    other = f"{stem}.npz" if name.endswith(".json") else f"{stem}.json"
    with writing(path / name):
        files.save_problem(problem, path / name, layer)
        layer.remove(path / other)  # of an attempt that never wrote its first record
        layer.fsync_dir(path)
    return name


def declaration(path: Path, record: Record) -> Problem:
    """The problem that a record names, from its file beside the journal."""
    name = record["problem_file"]
    if type(name) is not str or not _PROBLEM_FILE.match(name):
        raise UnreadableFile("not the name of a problem's file", where=str(path), got=repr(name))
    try:
        problem = Problem.load(path / name)
    except OSError as error:
        raise UnreadableFile("the study's problem cannot be read", where=str(path / name), got=str(error)) from error
    if problem.digest != record["problem"]:
        raise UnreadableFile(
            "the problem beside the journal is not the one that the study was begun with",
            where=str(path / name),
            got=f"digest {problem.digest}, the journal says {record['problem']}",
            fix="Restore the file from a copy.",
        )
    return problem
