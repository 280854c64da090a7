"""The numbers of the regret theorem for a problem (spec 6, "The paper profile")."""

from __future__ import annotations

from surefoot import theory
from surefoot.checks import at_least, whole
from surefoot.errors import InvalidInput
from surefoot.model.problem import Problem


def paper_constants(
    problem: Problem,
    *,
    failure_probability: float,
    episodes: int | None,
    feature_bound: float | None,
    coverage_rate: float,
    value_radius_scale: float,
    lipschitz: float,
    ridge: float | None,
) -> theory.PaperConstants:
    """The paper's numbers for a problem (spec 6). One anchor per layer is required."""
    if episodes is None:
        raise InvalidInput("the paper profile needs the number of episodes", fix="Pass episodes=K.")
    graph = problem.graph
    costed = graph.anchors if graph.terminal.cost_features is not None else graph.anchors[:-1]
    anchor_costs = []
    for h, anchor in enumerate(costed):
        if anchor is None:
            raise InvalidInput("the paper profile needs an anchor at every step", where=f"step {h}", got="None")
        anchor_costs.append(anchor.cost.tolist())
    dimension = graph.cost_dim + (0 if graph.shared_features else graph.transition_dim)
    return theory.paper_constants(
        horizon=problem.horizon,
        episodes=whole("episodes", episodes, 1),
        bounds=[limit.bound for limit in problem.limits],
        cost_norms=[limit.norm for limit in problem.limits],
        noises=[limit.noise for limit in problem.limits],
        transition_norm=problem.transition_norm,
        anchor_costs=anchor_costs,
        largest_distance=graph.largest_feature_distance(),
        dimension=dimension,
        feature_bound=_feature_bound(problem, feature_bound),
        failure_probability=failure_probability,
        ridge=ridge,
        lambda_0=at_least("coverage_rate", coverage_rate, 0.0, strictly=True),
        b_beta=at_least("value_radius_scale", value_radius_scale, 0.0),
        delta_tilde=at_least("lipschitz", lipschitz, 0.0, strictly=True),
    )


def usual_paper_constants(problem: Problem, failure_probability: float, episodes: int) -> theory.PaperConstants:
    """The same with λ₀ = b_β = δ̃ = 1, and D and λ as they follow: what tables and charts show of a problem."""
    return paper_constants(
        problem,
        failure_probability=failure_probability,
        episodes=episodes,
        feature_bound=None,
        coverage_rate=1.0,
        value_radius_scale=1.0,
        lipschitz=1.0,
        ridge=None,
    )


def _feature_bound(problem: Problem, given: float | None) -> float:
    """D. β₁ is the safety radius too, so D must bound the cost features, whatever the user says."""
    largest = problem.graph.largest_cost_norm()
    if given is None:
        return max(problem.horizon * problem.graph.largest_feature_sum(), largest)
    bound = at_least("feature_bound", given, 0.0, strictly=True)
    if bound < largest:
        raise InvalidInput(
            "feature_bound is below the largest cost feature",
            got=f"{given!r} < {largest!r}",
            fix="The safety radius would be too small.",
        )
    return bound
