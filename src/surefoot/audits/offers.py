"""The audit's look at a certificate (:mod:`surefoot.study.certificate`): does it say what the audit finds?"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from surefoot.audits.bounds import Bounds
from surefoot.audits.certified import Plan
from surefoot.audits.chain import Record
from surefoot.audits.points import Proof
from surefoot.audits.problem import label

NOTHING_PROMISED = "no safety guarantee", "an alarm has put the declared knowledge in doubt"  #: how such words begin


def counted_as(fallback: bool, sure: bool, possible: bool, of_ray: bool, alarm: bool, guaranteed: bool) -> str:
    """The kind of an offer among the audit's counts; '' if it must not be made."""
    if fallback:
        return "offers of the fallback"
    if alarm and guaranteed and possible:
        return "offers of a plan before an alarm"
    if sure:
        return "offers by estimate"
    if possible:
        return "offers opened to a limit" if of_ray else "offers within rounding"
    return "" if guaranteed else "offers without a guarantee"


class Certificate:
    """What was written when an action was offered, against what the audit finds."""

    def __init__(self, plan: Plan, wrong: Callable[[str], None], written: Record) -> None:
        self._problem, self._plan, self._say, self._written = plan.problem, plan, wrong, written

    def check(self, h: int, state: int, pair: int, facts: Record, proof: Proof | None) -> None:
        problem, layer, written = self._problem, self._problem.layers[h], self._written
        for key in ("epoch", "plan", "failure_probability", "share", "safe_mode", "why", "restored", "despite"):
            self._same(key, facts[key])
        self._promise(facts)
        self._same("fallback", pair == layer.fallback[state])
        self._same("limits", [limit.name for limit in problem.limits])
        self._same("bounds", problem.bounds[h])
        sure, possible = (sets.pairs[h][pair] for sets in self._plan.both)
        if proof is None:
            edges = enumerate(layer.after(pair), layer.pair_ptr[pair])
            ahead = [(after, self._plan.rows[h].part(layer.rows(pair, e))) for e, after in edges]
            safe_by = self._safe_by(h, state, pair, facts)
        else:  # at the exact state: what may follow from there, with the bounds there
            ahead = [(after, proof.bounds) for after in proof.states]
            sure, possible = sure or proof.sure, possible or proof.possible
            safe_by = _safe_at(proof, pair == layer.fallback[state], facts)
        if len(written["successors"]) != len(ahead):
            self._wrong("leaves out a possible successor")
            return
        margins: list[float | None] = []
        for (after, bounds), item in zip(ahead, written["successors"], strict=True):
            margins += self._successor(h, after, bounds, (sure, possible), item, facts)
        proved = [margin for margin in margins if margin is not None]
        self._same("margin", min(proved) if len(proved) == len(margins) else None)
        if facts["looks_ahead"] and written["safe_by"] not in safe_by:
            self._wrong(f"says {written['safe_by']!r}, found is {' or '.join(safe_by)!r}")

    def check_opening(self, h: int, pair: int, intensity: float | None, exact: bool) -> None:
        """Check what is written of how far a ray may be opened, and what may happen beyond. ``exact``: nothing is."""
        layer, said = self._problem.layers[h], self._written["opening"]
        of_ray = pair in layer.rays and not exact
        if not of_ray or said is None:
            if said is not None or of_ray:
                self._wrong(f"says {said!r} of how far the action may be opened")
            return
        names, beyond = [limit.name for limit in self._problem.limits], said["beyond"]
        if said["to"] != intensity or (beyond is None) != (intensity == 1.0):
            self._wrong(f"says {said!r}, offered is {intensity!r}")
        elif beyond is not None:
            j, there = names.index(said["limit"]), self._plan.at(h, layer.rows_at(pair, beyond))
            upper = there.upper[:, j].max()
            if not said["to"] < beyond <= 1.0 or not abs(said["upper"] - upper) <= there.slop[:, j].max():
                self._wrong(f"says {said!r}, found is an upper bound of {upper!r}")

    def _wrong(self, what: str) -> None:
        self._say(f"its certificate {what}")

    def _same(self, key: str, found: Any) -> None:
        if self._written[key] != found or type(self._written[key]) is not type(found):
            self._wrong(f"says {key} {self._written[key]!r}, found is {found!r}")

    def _promise(self, facts: Record) -> None:
        """The words of what is promised, since when and with which probability; or that nothing is."""
        said, since = str(self._written["promise"]), facts["restored"]
        if facts["guaranteed"] and not facts["safe_mode"]:
            steps = "of the study" if since is None else f"since record {since['record']}"
            by = "" if since is None else f" ({', '.join(since['by'])})"
            found = f"every step {steps} safe with probability {_promised(facts['failure_probability'])}{by}"
            fits = said == found
        else:
            found, fits = "no promise", said.startswith(NOTHING_PROMISED)
        if not fits:
            self._wrong(f"promises {said!r}, found is {found!r}")

    def _successor(
        self, h: int, state: int, bounds: Bounds, certified: tuple[bool, bool], item: Record, facts: Record
    ) -> list[float | None]:
        """Checks one possible next state; returns its margins as written."""
        problem, plan = self._problem, self._plan
        at = f"successor {problem.states[h + 1][state]!r}"
        if label(item["state"]) != problem.states[h + 1][state]:
            self._wrong(f"names {item['state']!r} where {at} follows")
        self._numbers(at, item["upper"], bounds.upper.max(axis=0), bounds.slop.max(axis=0))
        self._margins(at, h, item["upper"], item["margin"], *certified)
        found, said = [sets.states[h + 1][state] for sets in plan.both], item["certified"]
        if facts["looks_ahead"] and (type(said) is not bool or said not in found):
            self._wrong(f"says of {at}: certified {said!r}, found is {found[1]}")
        margins = list(item["margin"])
        if h + 1 == problem.horizon - 1 and problem.has_cost[state] and plan.last is not None:
            last = plan.last
            self._numbers(f"last {at}", item["last_upper"], last.upper[state], last.slop[state])
            self._margins(f"last {at}", h + 1, item["last_upper"], item["last_margin"], *certified)
            margins += item["last_margin"]
        elif item["last_upper"] is not None or item["last_margin"] is not None:
            self._wrong(f"gives a last cost of {at}, which has none")
        if h + 1 < problem.horizon - 1 and item["next_action"] is not None and facts["looks_ahead"]:
            follows = problem.pair(h + 1, state, label(item["next_action"]))
            if follows is None or not plan.possible.pairs[h + 1][follows]:
                self._wrong(f"continues from {at} with {item['next_action']!r}, not certified")
        return margins

    def _margins(self, at: str, h: int, upper: Any, margin: Any, surely: bool, possibly: bool) -> None:
        """bound − upper as written; null in place of a negative one of a certified action."""
        for value, written, bound in zip(upper, margin, self._problem.bounds[h], strict=True):
            room = None if value is None else bound - value
            hidden = room is not None and room < 0.0 and possibly
            if not (written == room and not (hidden and surely)) and not (written is None and hidden):
                self._wrong(f"gives a margin of {at} of {written!r}, not bound - upper")

    def _numbers(self, at: str, upper: Any, found: Any, slop: Any) -> None:
        """Compare upper bounds as written with those found; null means no bound at all."""
        for j, limit in enumerate(self._problem.limits):
            value, least = upper[j], float(found[j])
            missing = value is None and math.isinf(least)
            if not missing and (value is None or not abs(value - least) <= slop[j]):
                self._wrong(f"bounds {limit.name!r} of {at} by {value!r}, found is {least!r}")

    def _safe_by(self, h: int, state: int, pair: int, facts: Record) -> list[str]:
        """What the safety of the offer rests on; two answers where rounding decides."""
        problem, plan, layer = self._problem, self._plan, self._problem.layers[h]
        if facts["safe_mode"] and pair == layer.fallback[state]:
            return ["assumption"]
        after, found = layer.after(pair), []
        for sets in plan.both:
            good = plan.proves(sets, h, plan.rows[h].part(layer.pair_rows(pair)), after)
            if good and h + 1 == problem.horizon - 1 and plan.last is not None:
                ends = plan.last.keep(problem.bounds[-1], sets.side)
                good = all(ends[s] or not problem.has_cost[s] for s in after)
            if not (facts["guaranteed"] and sets.pairs[h][pair]):
                found.append("nothing")
            elif facts["safe_mode"]:
                found.append("estimate before the alarm")
            else:
                found.append("estimate" if good else "assumption")
        return found


def _safe_at(proof: Proof, own: bool, facts: Record) -> list[str]:
    """What the safety of an offer at an exact state rests on; two answers where rounding decides."""
    found = []
    for proved in (proof.sure, proof.possible):
        if not facts["guaranteed"] or not (proved or own):
            found.append("nothing")
        elif facts["safe_mode"]:
            found.append("assumption" if own else "estimate before the alarm")
        else:
            found.append("estimate" if proved else "assumption")
    return found


def _promised(failure_probability: float) -> str:
    """1 − p in words, never rounded up: to six digits of p."""
    p = Context(prec=6, rounding=ROUND_CEILING).plus(Decimal(repr(float(failure_probability)))).normalize()
    return f"≥ 1 − {p:e}" if p < Decimal("1e-4") else f"≥ {(1 - p).normalize():f}"
