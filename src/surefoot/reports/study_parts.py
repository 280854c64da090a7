"""The parts of a study's page, as HTML: is it safe, is it better, what next. They are the same in a file and on a live
page.

Every word that comes from a problem, a journal or a person goes through :func:`_words`, so that it stays text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from surefoot.model.arrays import FloatArray
from surefoot.model.labels import Label, label_of
from surefoot.model.problem import Problem
from surefoot.model.rays import at_intensity
from surefoot.plan.plan import Plan
from surefoot.plan.rays import opening_in_words
from surefoot.plan.why import Explanation, Kind, Link, explain, reasons
from surefoot.reports.charts import Chart, Curve
from surefoot.reports.html import encodable, figure, table
from surefoot.reports.pictures.svg import line_chart
from surefoot.reports.statistics import mean_over_runs
from surefoot.reports.study_history import Course, History
from surefoot.reports.wording import Wording, label_text, with_words
from surefoot.study.status import IN_DOUBT, in_words
from surefoot.tolerances import VIOLATION

RECENT = 20  #: episodes that count as "now" and as "at first"
NEAREST = 5  #: actions that are shown as next
MOST_LOOKED_AT = 2000  #: pairs, in the order of the steps
EVENTS_SHOWN = 50

_DRAWN = 1e150  # a cost beyond this is in the journal and in the alarm, but no axis can hold it


def _words(value: object) -> str:
    return escape(encodable(str(value)), quote=True)


def _label(label: Label) -> str:
    """A label as a person reads it."""
    return _words(label_text(label))


def _number(value: float | None, digits: int = 4) -> str:
    if value is None or not math.isfinite(value):
        return "not known"
    return f"{value:.{digits}g}".replace("-", "−")


# --- is it safe? ----------------------------------------------------------------------------------------


def lead(status: dict[str, Any]) -> str:
    """One sentence about the current state."""
    if status["safe_mode"]:
        return (
            "<b class=bad>⚠ Safe mode:</b> nothing is promised, and only the fallback's actions are offered (where it "
            "has none, what the last plan before the alarm certified), until a person acknowledges the alarm."
        )
    share = status["certified_pairs"] / max(1, status["pairs"])
    return (
        f"<b class=good>✓ Normal.</b> {status['episodes']:,} episodes, {status['tells']:,} measurements told; "
        f"{share:.0%} of all actions certified. Promise: <b>{_words(status['promise'])}</b>, given what the problem "
        "declares."
    )


def alarms(status: dict[str, Any]) -> str:
    """The alarms that wait for a person, and what answers them."""
    if not status["alarms"]:
        return "<p class=good>✓ No alarm.</p>"
    rows = "".join(
        f"<li><b>{_words(item['alarm'])}</b> (raised by record {item['record']}): {_words(item['message'])}</li>"
        for item in status["alarms"]
    )
    needed = "".join(f"<li>{_words(in_words(answer))}</li>" for answer in status["answers"])
    answer = "<p>To acknowledge it, give a reason.</p>"
    if needed:
        answer = f"<p>Acknowledging it requires:</p><ul>{needed}</ul>"
    count = f"<p class=bad>⚠ {len(status['alarms'])} not acknowledged</p>"
    return f"<div role=alert class=alarm>{count}<ul>{rows}</ul>{answer}</div>"


def offer(status: dict[str, Any], problem: Problem, history: History, wording: Wording) -> str:
    """The action offered now, with its certificate; for rays, how far it may be opened and last was (spec 9)."""
    told = history.told if problem.has_rays else None
    last = "" if told is None or told["point"] is not None else _last_opened(told)  # of a plant the input says all
    return _offered(status, problem, wording) + last


def _last_opened(told: dict[str, Any]) -> str:
    by = "by an operator, not as offered" if told["override"] else "as offered"
    played = f"<b>{_label(label_of(told['action']))}{at_intensity(told['intensity'])}</b>"
    return f"<p>Last played: {played}, {by} (step {told['step']}).</p>"


def _offered(status: dict[str, Any], problem: Problem, wording: Wording) -> str:
    pending = status["pending"]
    if pending is None:
        place, where = status["episode"], ""
        if place is not None:
            where = f" Episode {place['number']}, step {place['step']}, state {_label(place['state'])}."
        return f"<p>No offer is pending; next comes <b>{_words(status['next'])}</b>.{where}</p>"
    known, here = pending["certificate"], problem.bounds[pending["step"]].tolist()
    limits = [f"{_words(limit.name)} ≤ {bound:g}" for limit, bound in zip(problem.limits, here, strict=True)]
    rows = [_successor(row, here, pending["step"] + 1, wording) for row in known["successors"]]
    following = table(["may follow", *limits, "then"], rows, left=("then",))
    by = {"estimate": "Certified by estimate", "assumption": "Safe by your assumption: the fallback's"}
    why = by.get(known["safe_by"], f"Rests on {known['safe_by']}")
    if further := opening_in_words(known["opening"], dict(zip(known["limits"], known["bounds"], strict=True))):
        why += f"; it {further}"
    state, action = map(_words, wording.offered(pending["state"], pending["action"]))
    where, at = f"Episode {pending['episode']}, step {pending['step']}", at_intensity(pending["intensity"])
    take = f"<p class=offer>{where}, state <b>{state}</b>: take <b class=act>{action}{at}</b></p>"
    if status["doubt"] is not None:
        take = f"<p class=bad>⚠ Told, but cannot have followed: {_words(status['doubt'])}; {_words(IN_DOUBT)}</p>"
    return f"{take}<p>{_words(why)}. Whatever follows:</p>{following}"


def _successor(row: dict[str, Any], bounds: Sequence[float], h: int, wording: Wording) -> list[str]:
    state, then = label_of(row["state"]), label_of(row["next_action"])
    cells = [_words(with_words(state, wording.state(state)))]
    for upper, bound in zip(row["upper"], bounds, strict=True):
        kept = upper is not None and upper <= bound
        sign = "<span class=good>✓</span>" if kept else "<span class=bad>!</span>"
        cells.append(f"{sign} at most {_number(upper)}")
    return [*cells, "the end" if then is None else _words(with_words(then, wording.action(h, state, then)))]


def margin_table(history: History, problem: Problem) -> str:
    """Per limit: how close the certificates and the measurements came, lately and ever."""
    courses = history.courses
    if not courses:
        return "<p>Nothing has been told yet.</p>"
    rows = []
    for j, limit in enumerate(problem.limits):
        late, ever = _highest(courses[-RECENT:], j), _highest(courses, j)
        levels = _levels(problem.bounds[:, j])
        said = " … ".join(f"{level:g}" for _, level in levels)
        beyond = "" if ever is None or ever <= levels[0][1] else "<small>with noise</small>"
        bound = _largest(course.promised[j] for course in courses[-RECENT:] if course.own == course.asks)
        rows.append([_words(limit.name), said, _number(bound), _number(late), f"{_number(ever)}{beyond}"])
    head = ["limit", "bound", "certified at most, lately", "measured at most, lately", "ever"]
    note = (
        f"Lately: in the last {RECENT} episodes. Measurements are noisy, so one may lie above a "
        "limit although the cost does not. Episodes in which the fallback acted are left out of the certified bound: "
        "the fallback's actions are safe by your assumption, whatever their bound."
    )
    return f"{table(head, rows, name='margins')}<p class=quiet>{note}</p>"


def _highest(courses: Sequence[Course], j: int) -> float | None:
    return _largest(course.highest[j] for course in courses)


def _largest(values: Any) -> float | None:
    return max((value for value in values if math.isfinite(value)), default=None)


def limit_charts(problem: Problem, history: History) -> list[Chart]:
    """Per limit: the highest measured cost and the largest certified bound, episode by episode."""
    courses = history.courses
    at = tuple(course.number for course in courses)

    def line(label: str, values: list[float]) -> Curve:
        numbers = tuple(value if abs(value) < _DRAWN else math.nan for value in values)
        return Curve(label, "", at, numbers, numbers, numbers)

    caption = (
        "The highest measured cost of each episode, and the largest upper bound among the certificates of its offers. "
        "Measurements are noisy, so they may lie above the limit although the cost does not. The fallback's actions "
        "are safe by your assumption, whatever their bound."
    )
    return [
        Chart(
            name=f"limit-{j}",
            title=f"Limit: {limit.name}",
            y=limit.name,
            caption=caption,
            lines=(
                line("measured", [course.highest[j] for course in courses]),
                line("certified upper bound", [course.promised[j] for course in courses]),
            ),
            levels=_levels(problem.bounds[:, j]),
            statistic="value",
        )
        for j, limit in enumerate(problem.limits)
    ]


def _levels(bounds: FloatArray) -> tuple[tuple[str, float], ...]:
    """The bound of a limit, or the lowest and highest of its steps."""
    low, high = float(bounds.min()), float(bounds.max())
    return (("limit", low),) if low == high else (("lowest limit", low), ("highest limit", high))


def chart_figures(drawn: Sequence[Chart]) -> str:
    return "\n".join(figure(chart, line_chart(chart)) for chart in drawn)


# --- is it better? --------------------------------------------------------------------------------------


def better(history: History, status: dict[str, Any]) -> str:
    """Whether the plant earns more than at first, in a sentence and three charts."""
    ended = [course for course in history.courses if course.ended]
    if not ended:
        return "<p>No episode has finished yet.</p>"
    first, last = ended[:RECENT], ended[-RECENT:]
    now = mean_over_runs([course.reward for course in last])
    text = f"The last {len(last)} episodes earned {now.text(3)} each (mean, 95% bootstrap interval)"
    if len(ended) >= 2 * RECENT:
        then = mean_over_runs([course.reward for course in first])
        verdict = "It is better" if now.low > then.high else "It is worse" if now.high < then.low else "No clear change"
        change = f"{now.mean - then.mean:+.3g}".replace("-", "−")
        text += f", the first {len(first)} {then.text(3)}. <b>{verdict}: {change} per episode.</b>"
    else:
        text += f"; once there are {2 * RECENT}, they are compared with the first {RECENT}."
    if (left := status["to_gain"]) is not None:
        text += f" By the learner's own bounds, at most {_number(left, 3)} per episode can still be gained."
    figures = chart_figures(progress_charts(history, ended, status["pairs"]))
    return f"<p>{text}</p><div class='grid three'>{figures}</div>"


def progress_charts(history: History, ended: Sequence[Course], pairs: int) -> list[Chart]:
    """Reward with its running mean, the share certified, and what is still to be gained."""
    at = tuple(course.number for course in ended)
    rewards = tuple(course.reward for course in ended)
    n = min(RECENT, len(rewards))
    running = (math.nan,) * (n - 1) + tuple(np.convolve(rewards, np.ones(n) / n, mode="valid").tolist())
    every = tuple(course.number for course in history.courses)
    shares = tuple(100 * course.certified / max(1, pairs) for course in history.courses)
    gains = tuple(math.nan if course.to_gain is None else course.to_gain for course in history.courses)

    def chart(
        name: str, title: str, y: str, caption: str, *lines: tuple[str, tuple[int, ...], tuple[float, ...]]
    ) -> Chart:
        curves = tuple(Curve(label, "", x, v, v, v) for label, x, v in lines)
        return Chart(name, title, y, caption, curves, floor=0.0, statistic="value")

    return [
        chart(
            "reward",
            "Reward per episode",
            "reward",
            "Finished episodes only.",
            ("reward", at, rewards),
            (f"mean of the last {n}", at, running),
        ),
        chart(
            "share",
            "Actions certified",
            "% of all actions",
            "Share of all actions, over all states and steps, that the plan in force certifies.",
            ("certified", every, shares),
        ),
        chart(
            "to-gain",
            "Still to be gained",
            "reward, at most",
            "By the learner's own bounds, no safe policy earns more than this above the current one.",
            ("to gain", every, gains),
        ),
    ]


# --- what next? -----------------------------------------------------------------------------------------


def following(plan: Plan, wording: Wording) -> str:
    """What is closest to being certified, and what blocks it."""
    found = closest(plan)
    if not found:
        return "<p>Every action that a certified one may lead to is certified, or is proved unsafe.</p>"
    head = ["nearest", "step, state, action", "what blocks it"]
    rows = [_blocked(why, wording, plan.problem) for why in found]
    return (
        "<p>The actions closest to being certified, among those that certified ones may lead to. Data that narrow the "
        f"bound would certify them.</p>{table(head, rows, left=head[1:], name='next')}"
    )


def closest(plan: Plan) -> list[Explanation]:
    """The actions closest to their certificate, each with its chain of reasons."""
    problem, graph = plan.problem, plan.problem.graph
    if not plan.consistent:
        return []
    here = graph.reached_along(plan.certified_sets.pairs)
    found = reasons(problem, plan.bounds, plan.certified_sets)
    looked: list[tuple[float, int, Explanation]] = []
    for h, layer in enumerate(graph.layers):
        open_to = ~plan.certified_sets.pairs[h] & here[h][layer.pair_state()]
        open_to &= np.isin(found.kinds[h], [Kind.COST, Kind.FUTURE])
        for pair in np.flatnonzero(open_to).tolist():
            if len(looked) >= MOST_LOOKED_AT:
                break
            why = explain(problem, plan.bounds, plan.certified_sets, found, h, pair)
            excess = why.cause.upper - why.cause.bound
            if math.isfinite(excess) and not why.cause.lower > why.cause.bound:
                looked.append((excess, len(looked), why))
    return [why for _, _, why in sorted(looked)[:NEAREST]]


def _blocked(why: Explanation, wording: Wording, problem: Problem) -> list[str]:
    def state(label: Label) -> str:
        return _words(with_words(label, wording.state(label)))

    first, cause = why.chain[0], why.cause
    place = "" if cause is first else f"at step {cause.step}, in state {state(cause.state)}, "
    to = "" if cause.kind == Kind.LAST else f" towards {state(cause.successor)}"
    highest = cause.highest.replace("-", "−")
    what = f"{place}{_words(cause.limit)} may be {highest}{to}; the limit is {_number(cause.bound)}"
    action = _words(with_words(first.action, wording.action(first.step, first.state, first.action)))
    where = f"step {first.step}, state {state(first.state)}, action <b>{action}</b>"
    return [_over(cause, problem), where, what]


def _over(cause: Link, problem: Problem) -> str:
    """By how much an upper bound exceeds its limit; what is only rounding is no number that anybody wants to see."""
    scales = {limit.name: scale for limit, scale in zip(problem.limits, problem.cost_scales, strict=True)}
    excess = cause.upper - cause.bound
    return "on the limit" if excess <= VIOLATION * scales[cause.limit] else f"{_number(excess, 2)} over"


# --- the rest -------------------------------------------------------------------------------------------


def events(history: History) -> str:
    """Alarms, acknowledgements, aborts and clock changes, the newest first."""
    if not history.events:
        return "<p>No alarm, no abort, nothing to acknowledge.</p>"
    newest = reversed(history.events[-EVENTS_SHOWN:])
    rows = [[_words(f"{event.time[:19]}Z"), _words(event.kind), _words(event.words)] for event in newest]
    older = len(history.events) - EVENTS_SHOWN
    note = f"<p class=quiet>{older} older ones are in the journal.</p>" if older > 0 else ""
    return table(["time", "what", "words"], rows, left=("what", "words"), name="events") + note


def details(status: dict[str, Any]) -> str:
    """More numbers."""
    rows = {
        "next call": status["next"],
        "plan in force": f"number {status['plan']}, made after record {status['made_after']}",
        "certified actions": f"{status['certified_pairs']} of {status['pairs']}",
        "failure probability": f"{status['failure_probability']:g}; {status['share']:g} in epoch {status['epoch']}",
        "promise": status["promise"],
        "false-alarm probability": f"{status['false_alarm']:g}",
        "records": f"{status['records']:,}",
        "problem": status["problem"],
    }
    if status["despite"] is not None:
        rows["begun despite errors"] = f"{status['despite']['reason']} ({' '.join(status['despite']['findings'])})"
    cells = "".join(
        f"<tr><th scope=row>{_words(n)}</th><td class=left>{_words(text)}</td></tr>" for n, text in rows.items()
    )
    return f"<table class=details>{cells}</table>"
