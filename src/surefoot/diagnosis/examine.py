"""``sf.check``: puts a diagnosis together from its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from surefoot import theory
from surefoot.checks import of_kind, probability, whole
from surefoot.diagnosis.before_data import (
    before_data,
    describe_forced,
    describe_sense,
    find_fallback_fault,
    lost_actions,
    lost_sets,
)
from surefoot.diagnosis.cold_start import Remedies, certified_moves, describe_cold_start
from surefoot.diagnosis.diagnosis import Diagnosis, Finding, LayerReport, LimitReport, PaperReport, Sense
from surefoot.diagnosis.findings import judge
from surefoot.diagnosis.possible import no_fallback, no_probabilities
from surefoot.diagnosis.rank import describe_features
from surefoot.diagnosis.warm_up import episodes_to_open
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostData, bound_costs
from surefoot.estimate.ellipsoids import MULTIPLIERS
from surefoot.estimate.families import families
from surefoot.model.graph import OUTSIDE
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL
from surefoot.plan.certify import Certified, certify
from surefoot.plan.confidence import cost_confidence
from surefoot.plan.growth import grown_by
from surefoot.plan.paper import usual_setting
from surefoot.plan.rays import open_rays


def check(
    problem: Problem | Plant,
    failure_probability: float = 0.05,
    episodes: int = 10_000,
    progress: Callable[[str], None] | None = None,
) -> Diagnosis:
    """Diagnose a problem before running it: what is wrong with it, whether learning can start, and what would help.

    Args:
        problem: a problem or a plant. What samples of a plant refute (``plant.check``) is an error.
        failure_probability: p, the same as for the agent.
        episodes: K, the number you plan: for the warning about noise, and for the paper's constants.
        progress: called with a few words before each part.

    Examples:
        >>> diagnosis = sf.check(sf.worlds.make("thermal/testing").problem)
        >>> diagnosis.cold_start.can_move, diagnosis.errors
        (True, [])
    """
    plant = problem if isinstance(problem, Plant) else None
    if isinstance(problem, Plant):
        problem = problem.problem
    of_kind(problem, Problem, "check needs a Problem", "For a World, pass world.problem.")
    p = probability("failure_probability", failure_probability)
    episodes = whole("episodes", episodes, 1)
    say = progress or (lambda words: None)
    expanded = None
    say("bounds before any data")
    confidence = cost_confidence(
        problem, failure_probability=p, multipliers=MULTIPLIERS, scale=1.0, ridges=None, shaped=None
    )
    nothing = CostData(problem, min(confidence.ridges), families(problem), shaped=confidence.shaped)  # no data yet
    declared, problem = problem, problem.at(FULL)  # rays are judged at full intensity, except where learning may start
    bounds = bound_costs(problem, nothing, confidence)
    if problem.growth is not None:
        say("what may be expanded before any data")
        try:
            declared = grown_by(declared, bounds)
        except InvalidInput as error:
            raise error if plant is None else plant.told(error) from None
        expanded = (*declared.expanded_actions, declared.graph.n_all_states)
        declared = _outside_safe(declared)
        problem = declared.at(FULL)
        bounds = bound_costs(problem, nothing, confidence)
    graph, opened, opened_bounds = problem.graph, problem, bounds
    if declared.has_rays:
        opened, opened_bounds = open_rays(declared, nothing, confidence)[1:3]
    certified = certify(opened.graph, opened_bounds, problem.bounds)
    lost = lost_sets(problem, bounds)
    say("what would help")
    remedies = Remedies(problem, bounds, before_data(problem))
    senses = describe_sense(problem, bounds, p, confidence)
    start = describe_cold_start(opened, opened_bounds, certified, remedies)
    if start.can_move_later and not start.can_move:
        say("the fallback's own data")
        start = replace(start, episodes_of_fallback=episodes_to_open(opened, confidence))
    limits = tuple(_limit(problem, remedies, j, senses[j]) for j in range(len(problem.limits)))
    say("the features")
    features = describe_features(problem)
    say("is any truth possible")
    fault = find_fallback_fault(problem, bounds)
    found = Diagnosis(
        failure_probability=p,
        horizon=problem.horizon,
        limits=limits,
        layers=_layers(problem, certified, lost),
        features=features,
        cold_start=start,
        forced=describe_forced(problem, lost),
        fallback_fault=fault,
        no_fallback=None if fault is not None else no_fallback(problem),
        no_probabilities=no_probabilities(problem),
        unreachable_states=0 if plant else int(sum((~mask).sum() for mask in graph.reachable)),  # it makes its own
        paper=describe_paper(problem, p, episodes),
        findings=(),
        expanded=expanded,
    )
    findings = judge(found)
    if plant is not None:
        say("samples of the plant")
        refuted = (
            Finding("error", f"{each.rule}: {each.where}: {each.got}.", each.fix) for each in plant.check().refutations
        )
        findings = (*refuted, *(replace(each, text=plant.in_words(each.text)) for each in findings))
    return replace(found, findings=findings)


def _outside_safe(problem: Problem) -> Problem:
    """The problem as if what is not expanded were safe, as the fallback is: it shows whether an action's own costs keep
    it from being certified. Nobody acts on it."""
    graph = problem.graph
    free = [graph.known_forbidden(h) for h in range(graph.horizon)]
    layers = [replace(layer, forbidden=mask) for layer, mask in zip(graph.layers, free, strict=False)]
    for h, layer in enumerate(layers[1:], start=1):
        fallback = layer.fallback.copy()
        fallback[OUTSIDE] = OUTSIDE
        layers[h] = replace(layer, fallback=fallback)
    ends = graph.terminal.fallback_reached.copy()
    ends[OUTSIDE] = True
    terminal = replace(graph.terminal, forbidden=free[-1], fallback_reached=ends)
    return replace(problem, graph=replace(graph, layers=tuple(layers), terminal=terminal), growth=None)


def _limit(problem: Problem, remedies: Remedies, j: int, sense: Sense) -> LimitReport:
    limit, widest, least = problem.limits[j], remedies.largest_width(j), remedies.least_width(j)
    prior = limit.prior is not None
    return LimitReport(
        name=limit.name,
        bound=float(problem.bounds[:, j].max()),
        noise=limit.noise,
        episode_noise=limit.episode_noise,
        norm=problem.priors[j].norm,
        prior=prior,
        coefficients=_coefficients(problem, j),
        misspecification=limit.misspecification,
        smallest_bound=remedies.smallest_bound(j),
        largest_norm=None if prior else widest,
        prior_factor=widest if prior else None,
        least_norm=0.0 if prior else least,
        sense=sense,
    )


def _coefficients(problem: Problem, j: int) -> tuple[tuple[float, float], ...] | None:
    """What a limit's prior, or its list of features, says about every coefficient."""
    limit, prior = problem.limits[j], problem.priors[j]
    if limit.prior is None and limit.features is None:
        return None
    if not isinstance(limit.prior, tuple):  # a norm, for some of the features
        return tuple((-prior.norm, prior.norm) if width > 0.0 else (0.0, 0.0) for width in prior.width.tolist())
    names = limit.features or problem.features or range(problem.graph.cost_dim)
    given = dict(zip(names, limit.prior, strict=True))
    columns = problem.features or range(problem.graph.cost_dim)
    return tuple(given.get(name, (0.0, 0.0)) for name in columns)


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
