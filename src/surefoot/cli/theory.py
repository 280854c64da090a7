"""``surefoot theory``: the constants of the paper for a world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options

if TYPE_CHECKING:
    from surefoot.model.problem import Problem
    from surefoot.theory import PaperConstants

Probability = Annotated[float, typer.Option(help="p, the failure probability.")]


def theory_command(
    world: Annotated[
        str,
        typer.Argument(help="A named world, or a problem file (.json, .npz).", autocompletion=options.world_names),
    ],
    episodes: options.Episodes = 10_000,
    failure_probability: Probability = 0.05,
    world_option: options.WorldOptions = None,
) -> None:
    """Print the paper's constants for a world, and the smallest K for which they are usable."""
    from surefoot.cli.table import print_table
    from surefoot.diagnosis.examine import describe_paper

    problem = options.problem_of(world, world_option)
    constants = _constants(problem, failure_probability, episodes)
    print_table(["constant", "value", "is"], _rows(constants), left=["is"])
    enough = describe_paper(problem, failure_probability, episodes).smallest_usable_episodes
    _say_usable(constants, enough)
    if enough is not None and enough > episodes:
        later = _constants(problem, failure_probability, enough).problems()
        typer.echo(f"At K = {enough:,} " + (f"still: {_first(later)}" if later else "every weight is defined."))


def _constants(problem: Problem, failure_probability: float, episodes: int) -> PaperConstants:
    from surefoot.checks import probability
    from surefoot.plan.paper import usual_setting
    from surefoot.theory import paper_constants

    setting = usual_setting(problem, probability("failure_probability", failure_probability))
    return paper_constants(setting, episodes)


def _rows(known: PaperConstants) -> Iterator[list[str]]:
    from surefoot.cli.table import shown_number

    yield ["K", shown_number(known.episodes), "episodes"]
    yield ["H", shown_number(known.setting.horizon), "steps"]
    yield ["d", shown_number(known.setting.dimension), "dimension; of costs and transitions together if they differ"]
    yield ["λ", shown_number(known.setting.ridge), "ridge"]
    yield ["D", shown_number(known.setting.feature_bound), "feature bound"]
    yield ["β₁", shown_number(known.beta_1), "radius of the cost estimate"]
    yield ["β", shown_number(known.beta), "radius of both estimates"]
    yield ["K′", shown_number(known.initial_episodes), "initial episodes, which play the fallback"]
    yield ["κ", shown_number(known.kappa), "uncertainty left after the initial episodes"]
    yield ["Δ_φ", _span(known.delta_phi), "spread of costs within one support, over limits"]
    yield ["gap", _span(known.gaps), "slack of the fallback less the spread, over steps"]
    yield ["gap⁺", _span(known.future_gaps), "the same for the steps that follow"]
    weights: list[tuple[str, Callable[[], tuple[float, ...]], str]] = [
        ("ε₁", lambda: (known.epsilon_1,), "weight of optimism"),
        ("ε₂", lambda: known.epsilon_2, "weight of uncertain transitions (Idea II)"),
        ("ε₃", lambda: known.epsilon_3, "weight of uncertain futures (Idea III)"),
        ("ε₄", lambda: (known.epsilon_4,), "weight of uncertain pasts (Idea IV)"),
        ("regret ≤", lambda: (known.regret_bound(),), "eq:regret; vacuous above H·K"),
        ("regret ≥", lambda: (known.lower_bound().value,), "eq:lowerbound, claimed"),
    ]
    for name, value, what in weights:
        yield [name, _defined(value), what]
    yield ["H·K", shown_number(known.total_steps), "total steps, the largest possible regret"]


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
        typer.echo(f"At K = {known.episodes:,} the weights are not all defined: {_first(reasons)}{more}")
    if warning := known.cap_warning():
        typer.echo(f"At K = {known.episodes:,} {warning}")
    least = "above 10¹⁸" if enough is None else f"{enough:,}"
    typer.echo(f"The smallest K with K′ ≤ K: {least}.")


def _first(reasons: list[str]) -> str:
    return reasons[0].split(". ")[0].rstrip(".") + "."
