"""A chart as a small SVG, drawn quickly and without matplotlib: a plant may have to wait for the page of a study.

Everything has a class, so that the page's style sheet can colour it for light and dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from surefoot.reports.charts import Chart
from surefoot.reports.html import encodable

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 34
LETTER = 9.5  #: how wide a digit is where the page's letters are largest
MOST_POINTS = 400  #: of a line; of more, each stretch shows its least and its most


def line_chart(chart: Chart) -> str:
    """The chart, without its title and caption."""
    shown = [value for line in chart.lines for value in line.middle if math.isfinite(value)]
    shown += [level for _, level in chart.levels]
    if not shown:
        return "<p class=quiet>Nothing to show yet.</p>"
    low, high = _room(min(shown), max(shown), chart.floor)
    first = min(line.episodes[0] for line in chart.lines if line.episodes)
    last = max(line.episodes[-1] for line in chart.lines if line.episodes)
    parts, names = [_axes(chart, low, high, first, last)], list[str]()
    for name, level in chart.levels:
        y = _y(level, low, high)
        parts.append(f"<line class=level x1={LEFT} x2={WIDTH - RIGHT} y1={y:.1f} y2={y:.1f} />")
        names.append(f"<text class=over x={WIDTH - RIGHT - 2} y={y - 4:.1f} text-anchor=end>{_word(name)}</text>")
    for n, line in enumerate(chart.lines):
        for stretch in _stretches(line.episodes, line.middle):
            points = " ".join(f"{_x(k, first, last):.1f},{_y(v, low, high):.1f}" for k, v in stretch)
            parts.append(f'<polyline class="line l{n}" points="{points}" />')
            if len(stretch) == 1:
                (k, v) = stretch[0]
                parts.append(f'<circle class="point l{n}" cx={_x(k, first, last):.1f} cy={_y(v, low, high):.1f} r=3 />')
    keys = "".join(
        f'<li><svg viewBox="0 0 28 10" aria-hidden=true><path class="line l{n}" d="M1 5H27" /></svg>'
        f"{_word(line.label)}</li>"
        for n, line in enumerate(chart.lines)
    )
    legend = f"<ul class=legend>{keys}</ul>" if len(chart.lines) > 1 else ""
    label = escape(f"{chart.title}: {chart.y} over episodes", quote=True)
    body = "".join(parts + names)  # names last, so that no line runs through them
    return (
        f'<svg class=plot viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{encodable(label)}">{body}</svg>{legend}'
    )


def _word(text: str) -> str:
    """Any name as text: what cannot be shown becomes its number."""
    return escape(encodable("".join(c if c.isprintable() else repr(c)[1:-1] for c in text)))


def _axes(chart: Chart, low: float, high: float, first: int, last: int) -> str:
    parts = []
    for tick in _ticks(low, high):
        y = _y(tick, low, high)
        parts.append(f"<line class=rule x1={LEFT} x2={WIDTH - RIGHT} y1={y:.1f} y2={y:.1f} />")
        parts.append(f"<text x={LEFT - 6} y={y + 4:.1f} text-anchor=end>{_number(tick)}</text>")
    wide = 1.5 * LETTER * len(f"{last:,}") + LETTER  # the ends are always named; what stands too close to them is not
    room = (last - first) * wide / (WIDTH - LEFT - RIGHT)
    between = (int(t) for t in _ticks(first, last) if first + room < t < last - room and t == int(t))
    for k in sorted({first, last, *between}):
        x = _x(k, first, last)
        anchor = "start" if k == first and last > first else "end" if k == last and last > first else "middle"
        parts.append(f"<text x={x:.1f} y={HEIGHT - BOTTOM + 16} text-anchor={anchor}>{k:,}</text>")
    parts.append(f"<text class=small x={(LEFT + WIDTH) / 2:.0f} y={HEIGHT - 4} text-anchor=middle>episode</text>")
    turn = f'transform="rotate(-90 12 {HEIGHT / 2:.0f})"'
    parts.append(f"<text class=small x=12 y={HEIGHT / 2:.0f} text-anchor=middle {turn}>{_word(chart.y)}</text>")
    return "".join(parts)


def _x(k: float, first: float, last: float) -> float:
    share = 0.5 if last == first else (k - first) / (last - first)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(value: float, low: float, high: float) -> float:
    share = (min(max(value, low), high) - low) / (high - low)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _room(low: float, high: float, floor: float | None) -> tuple[float, float]:
    """The range of the axis, with some margin; never empty, and never finer than a float can resolve."""
    low = low if floor is None else min(low, floor)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (low if floor is not None and low == floor else low - air), high + air


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers."""
    step = (high - low) / 5
    if not (step > 0 and math.isfinite(step)):
        return [low]
    power = 10.0 ** math.floor(math.log10(step))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step)
    start = math.ceil(low / step) * step
    return [0.0 if abs(value) < step * 1e-9 else value for i in range(12) if (value := start + i * step) <= high]


def _number(value: float) -> str:
    return (f"{value:,.0f}" if abs(value) >= 1000 and abs(value) < 1e7 else f"{value:.4g}").replace("-", "−")


def _stretches(episodes: Sequence[int], values: Sequence[float]) -> list[list[tuple[int, float]]]:
    """The points of a line, cut where one is missing; thinned so that no peak is lost."""
    found: list[list[tuple[int, float]]] = [[]]
    for k, value in zip(episodes, values, strict=True):
        if math.isfinite(value):
            found[-1].append((k, value))
        elif found[-1]:
            found.append([])
    return [_thinned(stretch) for stretch in found if stretch]


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    if len(points) <= MOST_POINTS:
        return points
    size, kept = -(-2 * len(points) // MOST_POINTS), [points[0]]
    for first in range(1, len(points) - 1, size):
        part = points[first : first + size]
        kept += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
    return [*kept, points[-1]]
