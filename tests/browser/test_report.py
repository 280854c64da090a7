"""The report in a real browser: it opens from disk, reacts, and shows the numbers of the plans.

Needs Chromium (Debian: apt-get install chromium); without one they are skipped, which under CI=true is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.plan.why import Explanation, Kind, explain, reasons
from surefoot.reports import page as html
from surefoot.reports.explorer import known_of
from surefoot.reports.wording import Wording, label_text, with_words, wording_of
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.plans_kept import Snapshot
from tests.sweeps import make_runs
from tests.unit.test_feature_names import world as world_of
from tests.unit.test_priors import limit, press

pytestmark = pytest.mark.browser

WORLDS = ("thermal/testing", "driving/testing")  # columns by step; a map with panels


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    return {world: html.write_page(make_runs(root / world.replace("/", "-"), world, ("lsvi-new",))) for world in WORLDS}


@contextmanager
def opened(browser: Any, page: Path, **options: Any) -> Iterator[Any]:
    """The page, from file://; at the end nothing was complained about and nothing was fetched."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
    tab = context.new_page()
    complaints: list[str] = []
    fetched: list[str] = []
    tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto(page.as_uri())
    yield tab
    context.close()
    assert complaints == []
    assert [url for url in fetched if not url.startswith(("data:", "about:"))] == [page.as_uri()]


def plans_of(page: Path, world: sf.World) -> list[Snapshot]:
    return snapshots.load_all(page.parent / "runs/lsvi-new/seed-0000/snapshots", world.problem)


def slide(tab: Any, name: str, value: int) -> None:
    tab.evaluate(
        "([name, value]) => { const s = document.getElementById(name); s.value = value; "
        "s.dispatchEvent(new Event('input')); }",
        [name, str(value)],
    )


def near(shown: str, number: float) -> bool:
    """Four decimals, as the page writes them."""
    if not np.isfinite(number):
        return shown == ("∞" if number > 0 else "−∞")
    return abs(float(shown.replace("−", "-")) - number) < 6e-5


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_from_disk(browser: Any, pages: dict[str, Path], world: str, scheme: str) -> None:
    with opened(browser, pages[world], color_scheme=scheme) as tab:
        assert world in tab.title()
        assert tab.locator("#picture .cell").count() > 0
        assert tab.locator("#charts figure svg").count() >= 6
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
        # The charts follow: an axis label of a figure has the page's ink.
        ink = tab.evaluate("getComputedStyle(document.querySelector('#chart-regret svg text')).fill")
        assert ink == tab.evaluate("getComputedStyle(document.body).color")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_a_phone(browser: Any, pages: dict[str, Path], world: str, width: int) -> None:
    with opened(browser, pages[world], viewport={"width": width, "height": 844}) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        size = tab.evaluate("document.querySelector('#chart-regret svg text').getBoundingClientRect().height")
        assert size >= 8  # can be read


def test_it_prints(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["thermal/testing"], color_scheme="dark") as tab:
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.locator("nav").is_visible()


@pytest.mark.parametrize("name", WORLDS)
def test_the_slider_shows_the_certified_set_grow(browser: Any, pages: dict[str, Path], name: str) -> None:
    world = sf.worlds.make(name)
    safe = np.concatenate(sf.exact.safe_sets(world)[1])
    kept = plans_of(pages[name], world)
    with opened(browser, pages[name]) as tab:
        assert int(tab.get_attribute("#plan", "max")) == len(kept) - 1
        pictures = []
        for i in (0, len(kept) // 2, len(kept) - 1):
            slide(tab, "plan", i)
            status = tab.inner_text("#status")
            certified = np.concatenate(kept[i].certified_pairs)
            assert f"{int((certified & safe).sum()):,} of {int(safe.sum()):,} truly safe actions certified" in status
            assert f"Plan {kept[i].number:,}," in status
            pictures.append(tab.inner_html("#picture"))
            # Every mark has the class of its pair.
            wanted = np.where(certified, np.where(safe, 0, 3), np.where(safe, 1, 2))
            shown = tab.eval_on_selector_all(
                "#picture path.dot", "marks => marks.map(m => [Number(m.dataset.pair), m.getAttribute('class')])"
            )
            assert shown
            for pair, classes in shown:
                assert f"c{wanted[pair]}" in classes.split()
        assert len(set(pictures)) > 1


def test_play_runs_to_the_last_plan(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["thermal/testing"]) as tab:
        last = int(tab.get_attribute("#plan", "max"))
        slide(tab, "plan", last - 1)
        tab.click("#play")
        tab.wait_for_function(f"document.getElementById('plan').value === '{last}'")
        tab.wait_for_function("document.getElementById('play').textContent.includes('play')")


def test_pointing_at_an_action_shows_its_bounds(browser: Any, pages: dict[str, Path]) -> None:
    world = sf.worlds.make("thermal/testing")
    graph = world.problem.graph
    kept = plans_of(pages["thermal/testing"], world)
    first = sum(layer.n_pairs for layer in graph.layers[:2])
    with opened(browser, pages["thermal/testing"]) as tab:
        for i in (1, len(kept) - 1):
            slide(tab, "plan", i)
            for pair in range(graph.layers[2].n_pairs):
                tab.hover(f"#picture rect.hit[data-pair='{first + pair}']")
                assert not tab.locator("#tip").evaluate("tip => tip.hidden")
                edges = range(int(graph.layers[2].pair_ptr[pair]), int(graph.layers[2].pair_ptr[pair + 1]))
                rows = [row.inner_text().split() for row in tab.locator("#tip tbody tr").all()]
                assert len(rows) == len(edges)
                for row, edge in zip(rows, edges, strict=True):
                    successor = world.problem.naming.states[3][int(graph.layers[2].successor[edge])]
                    assert row[0] == label_text(successor)
                    numbers = kept[i].lower[2][edge, 0], world.costs[2][edge, 0], kept[i].upper[2][edge, 0]
                    assert all(near(shown, value) for shown, value in zip(row[2:5], numbers, strict=True))


@pytest.mark.parametrize("name", WORLDS)
def test_choosing_an_action_says_why(browser: Any, pages: dict[str, Path], name: str) -> None:
    """As ``plan.why`` does: the same chain of states, actions, limits and numbers."""
    world = sf.worlds.make(name)
    graph, kept, wording = world.problem.graph, plans_of(pages[name], world), wording_of(world.problem, name)
    i, seen = len(kept) - 1, set()
    with opened(browser, pages[name]) as tab:
        slide(tab, "plan", i)
        offset = 0
        whys = reasons(world.problem, *known_of(kept[i]))
        for h, layer in enumerate(graph.layers):
            if name.startswith("driving"):
                slide(tab, "layer", h)
            by_kind = [np.flatnonzero(whys.kinds[h] == kind)[:4] for kind in Kind]
            sample = np.arange(0, layer.n_pairs, 1 + layer.n_pairs // 10)
            for pair in np.unique(np.concatenate([sample, *by_kind])).tolist():
                tab.evaluate(
                    "pair => document.querySelector(`#picture rect.hit[data-pair='${pair}']`)"
                    ".dispatchEvent(new MouseEvent('click', {bubbles: true}))",
                    offset + pair,
                )
                found = explain(world.problem, *known_of(kept[i]), whys, h, pair)
                check_panel(tab, found, wording)
                seen.update(step.kind for step in found.chain)
            offset += layer.n_pairs
    assert {Kind.FALLBACK, Kind.PROVED, Kind.COST, Kind.FUTURE} <= seen


def check_panel(tab: Any, found: Explanation, wording: Wording) -> None:
    def state(label: Any) -> str:
        return with_words(label, wording.state(label))

    def action(step: Any) -> str:
        return with_words(step.action, wording.action(step.step, step.state, step.action))

    first = found.chain[0]
    verdict = "certified" if found.certified else "not certified"
    assert tab.inner_text("#why h3") == f"Step {first.step}, state {state(first.state)}"
    assert tab.inner_text("#why-title") == f"Action {action(first)}: {verdict}"
    lines = tab.locator("#why-steps li").all_inner_texts()
    assert len(lines) == len(found.chain)
    for n, (line, step) in enumerate(zip(lines, found.chain, strict=True)):
        if n:
            assert f"At step {step.step}, in state {state(step.state)}" in line
            assert f"action {action(step)}:" in line
        if step.kind in (Kind.COST, Kind.PROVED, Kind.FUTURE):
            assert state(step.successor) in line
        if step.kind in (Kind.COST, Kind.PROVED):
            assert step.limit in line
            assert f"the limit is {step.bound:g}" in line
            shown = re.search(r"(?:at most|may be|at least) (−?[\d.]+|∞)", line)
            assert shown is not None
            assert near(shown[1].rstrip("."), step.lower if "at least" in line else step.upper)


def test_a_real_click_and_the_keyboard_choose(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["thermal/testing"]) as tab:
        tab.click("#picture rect.hit[data-pair='0']")
        assert tab.inner_text("#why-title") == "Action 0 (power 0): certified"
        tab.click("#why button[data-choose='2']")
        assert tab.inner_text("#why-title").startswith("Action 2 (power 1):")
        tab.focus("#picture rect.cell[data-state='1']")
        tab.keyboard.press("Enter")
        assert tab.inner_text("#why h3").startswith("Step 1")
        assert tab.locator("#why-title").count() == 0  # a state is chosen, no action yet


def test_on_a_phone_a_tap_chooses(browser: Any, pages: dict[str, Path]) -> None:
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with opened(browser, pages["thermal/testing"], **options) as tab:
        tab.tap("#picture rect.hit[data-pair='1']")
        assert tab.inner_text("#why-title").startswith("Action 1 (power 0.5):")
        assert tab.locator("#tip").evaluate("tip => tip.hidden")


def test_features_are_called_by_their_names(browser: Any, tmp_path: Path) -> None:
    """As `plan.why` says them of the same pair."""
    problem = press(limit(prior=[(0.0, 0.2), (0.0, 2.0), 0.4], bound=0.9))
    made = sf.run(sf.LsviNew(problem), world_of(problem), episodes=2, seed=0, progress=False)
    with opened(browser, made.report(tmp_path / "named.html")) as tab:
        said = tab.inner_text("#why-steps")
    assert re.search(r"strain may be [\d.]+ with bias=1, pressure=0.4, speed=0.5; the limit", said), said
