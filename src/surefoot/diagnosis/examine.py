"""``sf.check``: every part of a diagnosis, put together."""

from __future__ import annotations

from dataclasses import replace

from surefoot import theory
from surefoot.checks import probability, whole
from surefoot.diagnosis.before_data import before_data
from surefoot.diagnosis.cold_start import Remedies, certified_moves, describe_cold_start
from surefoot.diagnosis.diagnosis import Diagnosis, LayerReport, LimitReport, PaperReport
from surefoot.diagnosis.findings import judge
from surefoot.diagnosis.forced import describe_forced, find_fallback_fault, lost_actions, lost_sets
from surefoot.diagnosis.rank import describe_features
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostData, bound_costs
from surefoot.estimate.families import families
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify
from surefoot.plan.confidence import cost_confidence
from surefoot.plan.paper import usual_setting


def check(problem: Problem, failure_probability: float = 0.05, episodes: int = 10_000) -> Diagnosis:
    """Diagnose a problem before running it: sizes, slack, whether learning can start, and what would help.

    Args:
        problem: what is declared.
        failure_probability: p, as the agent will get it.
        episodes: K, for the paper's constants only.

    Examples:
        >>> diagnosis = sf.check(sf.worlds.make("thermal/testing").problem)
        >>> diagnosis.cold_start.can_move, diagnosis.problems
        (True, [])
    """
    if not isinstance(problem, Problem):
        raise InvalidInput(
            "check needs a Problem", got=f"a {type(problem).__name__}", fix="For a World, pass world.problem."
        )
    p = probability("failure_probability", failure_probability)
    episodes = whole("episodes", episodes, 1)
    graph = problem.graph
    confidence = cost_confidence(problem, failure_probability=p, ridges=None, scale=1.0)
    nothing = CostData(problem, min(confidence.ridges), families(problem))  # no data yet
    bounds = bound_costs(problem, nothing, confidence)
    certified = certify(graph, bounds, problem.bounds)
    lost = lost_sets(problem, bounds)
    remedies = Remedies(problem, bounds, before_data(problem))
    found = Diagnosis(
        failure_probability=p,
        horizon=problem.horizon,
        limits=tuple(_limit(problem, remedies, j) for j in range(len(problem.limits))),
        layers=_layers(problem, certified, lost),
        features=describe_features(problem),
        cold_start=describe_cold_start(problem, bounds, certified, remedies),
        forced=describe_forced(problem, lost),
        fallback_fault=find_fallback_fault(problem, bounds),
        unreachable_states=int(sum((~mask).sum() for mask in graph.reachable)),
        paper=describe_paper(problem, p, episodes),
        findings=(),
    )
    return replace(found, findings=judge(found))


def _limit(problem: Problem, remedies: Remedies, j: int) -> LimitReport:
    limit = problem.limits[j]
    return LimitReport(
        name=limit.name,
        bound=float(problem.bounds[:, j].max()),
        noise=float(problem.noises[j]),
        norm=problem.priors[j].norm,
        prior=limit.prior is not None,
        misspecification=limit.misspecification,
        smallest_bound=remedies.smallest_bound(j),
        largest_norm=remedies.largest_norm(j),
        least_norm=remedies.least_norm(j),
    )


def _layers(problem: Problem, certified: Certified, lost: Certified) -> tuple[LayerReport, ...]:
    graph = problem.graph
    moves = (*certified_moves(graph, certified), 0)
    reports = []
    for h in range(graph.horizon):
        anchor = graph.anchors[h]
        layer = graph.layers[h] if h < len(graph.layers) else None
        reports.append(
            LayerReport(
                step=h,
                states=graph.n_states(h),
                reachable=int(graph.reachable[h].sum()),
                fallback_states=int(graph.terminal.fallback_reached.sum())
                if layer is None
                else len(layer.fallback_pairs()),
                actions=0 if layer is None else layer.n_pairs,
                triplets=0 if layer is None else layer.n_edges,
                moves=moves[h],
                never_states=int((lost.states[h] & graph.reachable[h]).sum()),
                never_actions=0 if layer is None else lost_actions(problem, lost, h),
                slack=None if anchor is None else tuple((problem.bounds[h] - anchor.cost[0]).tolist()),
            )
        )
    return tuple(reports)


def describe_paper(problem: Problem, failure_probability: float, episodes: int) -> PaperReport:
    """The paper's constants with λ₀ = b_β = δ̃ = 1 (spec 6), and whether a run could use them."""
    try:
        setting = usual_setting(problem, failure_probability)
        constants = theory.paper_constants(setting, episodes)
    except InvalidInput as error:
        return PaperReport(episodes, False, (str(error),), None)
    cap = constants.cap_warning()
    reasons = (*constants.problems(), *([] if cap is None else [cap]))
    return PaperReport(
        episodes=episodes,
        usable=not reasons,
        reasons=reasons,
        smallest_usable_episodes=theory.smallest_usable_episodes(setting),
        dimension=setting.dimension,
        ridge=setting.ridge,
        feature_bound=setting.feature_bound,
        beta=constants.beta,
        initial_episodes=constants.initial_episodes,
        kappa=constants.kappa,
        delta_phi=constants.delta_phi,
        gaps=constants.gaps,
        future_gaps=constants.future_gaps,
    )
