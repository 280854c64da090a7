"""``theory``, ``ablate``: what the paper promises, and which of its ideas does what."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options

if TYPE_CHECKING:
    from surefoot.model.problem import Problem
    from surefoot.theory import PaperConstants

Episodes = Annotated[int, typer.Option(min=1, help="K, the number of episodes.")]
Probability = Annotated[float, typer.Option(help="p, the failure probability.")]


def theory(
    world: Annotated[
        str,
        typer.Argument(help="A named world, or a problem file (.json, .npz).", autocompletion=options.world_names),
    ],
    episodes: Episodes = 10_000,
    failure_probability: Probability = 0.05,
    world_option: options.WorldOptions = None,
) -> None:
    """The paper's constants for a world, and the smallest K at which its schedule is usable."""
    from surefoot.cli.looking import make_world
    from surefoot.cli.table import print_table
    from surefoot.diagnosis.examine import describe_paper
    from surefoot.model.problem import Problem

    file = Path(world).suffix in (".json", ".npz")
    problem = Problem.load(world) if file else make_world(world, world_option).problem
    constants = _constants(problem, failure_probability, episodes)
    print_table(["constant", "value", "is"], _rows(constants), left=["is"])
    enough = describe_paper(problem, failure_probability, episodes).smallest_usable_episodes
    _say_usable(constants, enough)
    if enough is not None and enough > episodes:
        later = _constants(problem, failure_probability, enough).problems()
        typer.echo(f"At K = {enough:,} " + (f"still: {_first(later)}" if later else "every weight is defined."))


def _constants(problem: Problem, failure_probability: float, episodes: int) -> PaperConstants:
    from surefoot.checks import probability
    from surefoot.plan.paper_constants import usual_paper_constants

    return usual_paper_constants(problem, probability("failure_probability", failure_probability), episodes)


def _rows(known: PaperConstants) -> Iterator[list[str]]:
    from surefoot.cli.table import number

    yield ["K", number(known.episodes), "episodes"]
    yield ["H", number(known.horizon), "layers"]
    yield ["d", number(known.dimension), "dimension; costs and transitions together where they differ"]
    yield ["λ", number(known.ridge), "ridge"]
    yield ["D", number(known.feature_bound), "feature bound"]
    yield ["β₁", number(known.beta_1), "radius of the cost estimate"]
    yield ["β", number(known.beta), "radius of both estimates"]
    yield ["K′", number(known.initial_episodes), "episodes that play the fallback first"]
    yield ["κ", number(known.kappa), "what the first phase leaves uncertain"]
    yield ["Δ_φ", _span(known.delta_phi), "spread of costs within one support, over limits"]
    yield ["gap", _span(known.gaps), "slack of the fallback less the spread, over steps"]
    yield ["gap⁺", _span(known.future_gaps), "the same for all that follows"]
    weights: list[tuple[str, Callable[[], tuple[float, ...]], str]] = [
        ("ε₁", lambda: (known.epsilon_1,), "weight of optimism"),
        ("ε₂", lambda: known.epsilon_2, "weight of uncertain transitions (Idea II)"),
        ("ε₃", lambda: known.epsilon_3, "weight of uncertain futures (Idea III)"),
        ("ε₄", lambda: (known.epsilon_4,), "weight of uncertain pasts (Idea IV)"),
        ("regret ≤", lambda: (known.regret_bound(),), "eq:regret; says nothing above H·K"),
        ("regret ≥", lambda: (known.lower_bound().value,), "eq:lowerbound, claimed"),
    ]
    for name, value, what in weights:
        yield [name, _defined(value), what]
    yield ["H·K", number(known.total_steps), "all steps: no regret is larger"]


def _defined(value: Callable[[], tuple[float, ...]]) -> str:
    from surefoot.errors import InvalidInput

    try:
        return _span(value())
    except InvalidInput:
        return "not defined"


def _span(values: tuple[float, ...]) -> str:
    low, high = min(values), max(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} … {high:.6g}"


def _say_usable(known: PaperConstants, enough: int | None) -> None:
    reasons = known.problems()
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        typer.echo(f"At K = {known.episodes:,} its weights are not all defined: {_first(reasons)}{more}")
    if warning := known.cap_warning():
        typer.echo(f"At K = {known.episodes:,} {warning}")
    least = "above 10¹⁸" if enough is None else f"{enough:,}"
    typer.echo(f"The smallest K with K′ ≤ K: {least}.")


def _first(reasons: list[str]) -> str:
    return reasons[0].split(". ")[0].rstrip(".") + "."


def ablate(
    world: options.World,
    episodes: Episodes = 3000,
    seeds: options.Seeds = "0:3",
    out: Annotated[
        Path | None, typer.Option(help="Keep the runs in this directory.", show_default="thrown away")
    ] = None,
    world_option: options.WorldOptions = None,
    jobs: options.Jobs = None,
    force: options.Force = False,
) -> None:
    """The four ideas of the paper, dropped one by one: what does each of them do here?

    I looks ahead, II rewards uncertain transitions, III uncertain futures, IV uncertain pasts. Without I there is no
    safety guarantee.
    """
    from surefoot.agents.profiles import IDEAS
    from surefoot.cli import runs
    from surefoot.cli.settings import pairs_of, seeds_of
    from surefoot.sweeps.sweep import Contender, Spec

    variants = [Contender("lsvi-new", {}, "all-four")]
    for idea in IDEAS:
        kept = [each for each in IDEAS if each != idea]
        variants.append(Contender("lsvi-new", {"ideas": kept}, f"without-{idea}"))
    spec = Spec(world, variants, seeds_of(seeds), episodes, pairs_of(world_option or [], "--world-option"))
    if out is not None:
        runs.finish(runs.play(spec, out, jobs=jobs, force=force), strict=False, first="ideas")
        return
    with tempfile.TemporaryDirectory(prefix="surefoot-ablate-") as folder:
        outcome = runs.play(spec, Path(folder), jobs=jobs)
        if outcome.interrupted:
            typer.secho("interrupted; the runs were thrown away (use --out to keep them).", fg="yellow", err=True)
            raise typer.Exit(128 + (outcome.signal or 2))
        from surefoot.cli.table import print_summaries

        print_summaries(runs.summaries(outcome), "ideas")
