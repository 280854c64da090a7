"""What the audit keeps of an episode and of an epoch, and what the constants of an epoch must be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from surefoot.audits.bounds import Confidence, Data
from surefoot.audits.chain import Record
from surefoot.audits.problem import Problem
from surefoot.audits.rows import default_ridge, default_shaped, ridge_ratio

DEVIATIONS = frozenset({"fallback", "radius", "guard"})  #: of the paper's learner, which the bounds here have

_RIDGES = 1e-6  # relative: two programs sum them in another order, beside anchors that may be nearly parallel


@dataclass
class Position:
    number: int
    step: int
    state: int
    lost: bool = False  # an unknown action was applied
    doubt: Record | None = None  # a tell of the pending ask that was refused
    strayed: bool = False  # an action was applied that may depend on an offset which the episode shares


@dataclass
class Epoch:
    """What starts afresh when data are discarded."""

    number: int
    data: Data
    confidence: Confidence
    constants: Record
    rows: list[tuple[int, int, Any, Any]] = field(default_factory=list)  # (record, layer, x, cost)
    entered: int = 0  # rows that are in the data
    counted_from: int = 0  # the record since which model errors are declared
    finished: int = 0  # episodes
    moments: set[int] = field(default_factory=set)  # records after which a plan may have been made
    firm: set[int] = field(default_factory=set)  # records after which one was surely made
    plan: tuple[int, int] = (1, 0)  # number and made_after of the last one seen

    @property
    def fixed(self) -> Record:
        """The ridges, as options: they stay as long as data are kept, and for good in a graph that grows (spec 9)."""
        own = self.confidence
        return {"ridges": list(own.ridges), "shaped": own.shaped, "ridge_ratios": list(own.ratios)}

    def data_until(self, made_after: int, problem: Problem, paper: bool) -> Data:
        """The data of all rows up to a record."""
        if self.entered and self.rows[self.entered - 1][0] > made_after:
            self.start_over(problem, paper, self.counted_from)  # only when plans went backwards
        while self.entered < len(self.rows) and self.rows[self.entered][0] <= made_after:
            n, h, x, cost = self.rows[self.entered]
            self.data.add(h, x, cost, n >= self.counted_from)
            self.entered += 1
        return self.data

    def start_over(self, problem: Problem, paper: bool, counted_from: int) -> None:
        """Enter the same rows again, as a problem declares them. The shape of their ridge stays."""
        self.data, self.entered, self.counted_from = Data(problem, paper, self.data.since), 0, counted_from

    def surely_plans(self, n: int) -> None:
        """After this record a plan is made."""
        self.moments.add(n)
        self.firm.add(n)

    def never_plans(self, n: int) -> None:
        """After this record none is made."""
        self.moments.discard(n)
        self.firm.discard(n)


def confidence_of(
    problem: Problem, opened: Record, number: int, record: Record, options: Record
) -> tuple[Confidence, list[str]]:
    """What the bounds of an epoch are made with, and where it differs from what the opening declares."""
    constants, faults = record["constants"], list[str]()

    def expect(condition: bool, otherwise: str) -> None:
        if not condition:
            faults.append(otherwise)

    p = math.ldexp(opened["failure_probability"], -(number + 1))
    expect(record["share"] == p, f"its share is {record['share']!r}, p·2^-{number + 1} is {p!r}")
    claimed = constants["failure_probability"]
    expect(claimed == p, f"its bounds work with p = {claimed!r}, the share is {p!r}")
    agent, paper = opened["agent"], opened["agent"] == "lsvi-new-paper"
    expect(paper or agent == "lsvi-new", f"its agent is {agent!r}, whose bounds are not known here")
    wanted = options.get("ridges") or [default_ridge(problem, paper)]
    ridges = _fixed(constants["ridges"], wanted, "its ridges are {}, {} are declared", faults)
    shaped = 0.0 if paper else _shaped(constants.get("shaped"), problem, options, faults)
    wanted = options.get("ridge_ratios") or [1.0 if paper else ridge_ratio(problem, one) for one in problem.known]
    found = wanted if paper else constants["ridge_ratios"]
    ratios = _fixed(found, wanted, "its ridges are multiplied by {}, not by {}", faults)
    scale, wanted = constants["safety_radius_scale"], options.get("safety_radius_scale", 1.0)
    expect(scale == wanted, f"its radius is scaled by {scale!r}, {wanted!r} is declared")
    beta, multipliers = None, tuple[float, ...]()
    if not paper:  # whatever they are: (S3) holds for all at once
        wanted = options.get("multipliers") or [0.01, 0.1, 1.0, 10.0]
        multipliers = _fixed(constants["multipliers"], wanted, "its multipliers are {}, {} are declared", faults)
    if paper:
        left = sorted(DEVIATIONS - set(constants["deviations"]))
        expect(not left, f"its learner leaves out {left}: such bounds are not known here")
        bound, wanted = constants["feature_bound"], options.get("feature_bound")
        wanted = paper_feature_bound(problem) if wanted is None else wanted
        expect(_close(bound, wanted), f"its features are bounded by {bound!r}, not by {wanted!r}")
        beta = paper_beta(problem, constants)
        expect(_close(beta, constants["beta"]), f"its β is {constants['beta']!r}, not {beta!r}")
    return Confidence(ridges, shaped, ratios, multipliers, p, scale, beta), faults


def paper_feature_bound(problem: Problem) -> float:
    """D = H·max Σ‖φ‖ of the paper's learner (spec 6), or the longest cost feature where that is longer."""
    return max(problem.horizon * problem.largest_sum, problem.longest)


def paper_beta(problem: Problem, constants: dict[str, Any]) -> float:
    """β of the paper's learner (spec 6): max(β₁, b_β·d·H·√log(dT/p)), with p/(mH) in β₁."""
    p, bound, ridge = constants["failure_probability"], constants["feature_bound"], float(constants["ridges"][0])
    dim, total = problem.dim + problem.transition_dim, problem.horizon * int(constants["episodes"])
    inside = (2 + 2 * total * bound * bound / ridge) * len(problem.limits) * problem.horizon / p
    norm = max(*(known.norm for known in problem.known), problem.transition_norm)
    noise = max(problem.noise(j, problem.rows_of_an_episode) for j in range(len(problem.limits)))
    beta_1 = noise * math.sqrt(dim * math.log(inside)) + math.sqrt(ridge) * norm
    scale = float(constants["value_radius_scale"])
    return max(beta_1, scale * dim * problem.horizon * math.sqrt(math.log(dim * total / p)))


def _shaped(found: object, problem: Problem, options: Record, faults: list[str]) -> float:
    """How many times the ridge is taken in the shape of the features, 0 for an even one. Where something else is on
    record than was declared, what was declared."""
    given, own = options.get("shaped"), options.get("ridges") is None
    wanted = float((default_shaped(problem) if own else 0.0) if given is None else given)
    if type(found) in (int, float) and math.isclose(found, wanted, rel_tol=_RIDGES):  # type: ignore[arg-type]
        return float(found)  # type: ignore[arg-type]
    faults.append(f"its ridge is taken {found!r} times in the shape of the features, {wanted!r} is declared")
    return wanted


def _fixed(found: list[float], wanted: list[float], words: str, faults: list[str]) -> tuple[float, ...]:
    """Numbers that are fixed before any data, as they are on record; where these are wrong, as they should be."""
    same = len(found) == len(wanted) and all(
        math.isclose(a, b, rel_tol=_RIDGES) and a > 0 for a, b in zip(found, wanted, strict=True)
    )
    faults += [] if same else [words.format(found, wanted)]
    return tuple(found if same else wanted)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-12)
