"""The live page in a real browser: it follows a study that another process drives over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from tests.served import Caller, Served, served
from tests.studies import Plant

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=x onerror=alert(1)>"


def oven() -> sf.World:
    """Labels that would like to be markup; going hot has to be learnt."""

    def name(text: str) -> str:
        return text + HOSTILE

    problem = sf.Problem.from_functions(
        horizon=4,
        start=name("cold"),
        actions=lambda h, s: [name("wait"), name("heat")],
        successors=lambda h, s, a: [name("cold")] if a == name("wait") else [name("cold"), name("hot")],
        reward=lambda h, s, a: 0.1 if a == name("wait") else 0.9,
        cost_features=lambda h, s, a, s2: [1.0, 0.5 * (a == name("heat")) + 0.5 * (s2 == name("hot"))],
        transition_features=lambda h, s, a, s2: [1.0 if a == name("wait") else 0.5],
        fallback=lambda h, s: name("wait"),
        anchor=lambda h: ([1.0, 0.0], 0.1),
        limits=[sf.Limit(name("stress"), bound=0.7, noise=0.02, norm=0.6)],
        stationary_costs=True,
    )
    return sf.World(problem, [1.0], [[0.1, 0.3]])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("live") / "oven.study", oven().problem) as found:
        drive(found.caller("plant"), 25)
        yield found


def drive(plant: Caller, episodes: int, seed: int = 0) -> None:
    from tests.served import go_on

    go_on(plant, Plant(oven(), seed), plant.status()["episodes"] + episodes)


@contextmanager
def opened(browser: Any, server: Served, **options: Any) -> Iterator[Any]:
    """The page, connected by the keyboard alone; at the end nothing was complained about, nothing asked of others."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    tab = context.new_page()
    complaints: list[str] = []
    fetched: list[str] = []
    tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto(server.base + "/")
    assert not tab.locator("main").is_visible()  # nothing but headings is there yet
    tab.keyboard.press("Tab")
    tab.keyboard.type(server.tokens["operator"])
    tab.keyboard.press("Enter")
    tab.locator("#connection", has_text="● live").wait_for()
    assert tab.locator("main").is_visible()
    tab.wait_for_selector("#picture svg")
    yield tab
    assert all(url.startswith(server.base + "/") for url in fetched), fetched
    assert not any(token in url for url in fetched for token in server.tokens.values())
    context.close()
    assert [words for words in complaints if "ERR_" not in words] == []


def test_it_follows_and_an_operator_acknowledges(browser: Any, server: Served) -> None:
    """An alarm shows within a second of its tell; by keyboard alone it is acknowledged, and safe mode ends."""
    plant = server.caller("plant")
    with opened(browser, server) as tab:
        before = tab.inner_text(".lead")
        assert "Normal" in before
        drive(plant, 1)
        tab.locator(".lead", has_text=f"{plant.status()['episodes']} episodes").wait_for(timeout=5000)
        assert tab.inner_text(".lead") != before
        plant.call("begin")
        offer = plant.call("ask")
        tab.wait_for_selector("#part-offer .act", timeout=5000)
        assert tab.inner_text("#part-offer .act") == offer["action"]
        assert offer["state"] in tab.inner_text("#part-offer")
        for row in offer["certificate"]["successors"]:
            assert f"{row['upper'][0]:.4g}" in tab.inner_text("#part-offer")
        raised = plant.call("tell", ask_id=offer["ask_id"], next_state=offer["state"], cost=float("nan"))
        told = time.monotonic()
        assert raised["safe_mode"] is True
        tab.wait_for_selector("#part-alarms .alarm", timeout=5000)
        assert time.monotonic() - told < 1.0
        assert "Safe mode" in tab.inner_text(".lead")
        assert "SAFE MODE" in tab.title()
        answered(tab, "#abort-form input[name=reason]", "the oven is at rest", "#acknowledge-form")
        answered(tab, "#acknowledge-form textarea", "thermocouple replaced", "#part-alarms .good")
        tab.locator(".lead", has_text="Normal").wait_for(timeout=5000)
        assert "thermocouple replaced" in tab.inner_text("#part-events")
        drive(plant, 1)
    assert plant.status()["safe_mode"] is False


def answered(tab: Any, place: str, words: str, then: str) -> None:
    """Fill a form by keyboard and send it with its button; ``then``: what appears."""
    tab.wait_for_selector(place, timeout=5000)
    for _ in range(200):
        if tab.evaluate("place => document.activeElement === document.querySelector(place)", place):
            break
        tab.keyboard.press("Tab")
    else:
        pytest.fail(f"no way to {place} by keyboard")
    tab.keyboard.type(words)
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.type === 'submit'"):
            break
    tab.keyboard.press("Enter")
    tab.wait_for_selector(then, timeout=8000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_labels_stay_text(browser: Any, server: Served, scheme: str, width: int) -> None:
    with opened(browser, server, viewport={"width": width, "height": 844}, color_scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
        assert tab.locator("img").count() == 0
        assert HOSTILE in tab.inner_text("#safe")
        assert HOSTILE in tab.inner_text("#why")
        size = tab.evaluate("document.querySelector('.plot text').getBoundingClientRect().height")
        assert size >= 8


def test_it_answers_three_questions(browser: Any, server: Served) -> None:
    status = server.caller("operator").status()
    with opened(browser, server) as tab:
        assert status["promise"] in tab.inner_text(".lead")
        assert "No alarm" in tab.inner_text("#safe")
        assert "earned" in tab.inner_text("#better")
        assert tab.locator("#better svg.plot").count() == 3
        assert tab.locator("#next").inner_text().strip()
        tab.click("#picture rect.hit[data-pair='1']")
        assert "Action heat" in tab.inner_text("#why-title")
        assert "In truth" not in tab.inner_text("#why")


def test_a_page_that_hears_nothing_says_so(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path / "oven.study", oven().problem) as server, opened(browser, server) as tab:
        server.kill()
        tab.locator("#connection", has_text="not live").wait_for(timeout=9000)
        server.start()
        tab.locator("#connection", has_text="● live").wait_for(timeout=20000)


def test_a_wrong_token_shows_nothing(browser: Any, server: Served) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(server.base + "/")
    tab.fill("#token", server.tokens["plant"])
    tab.keyboard.press("Enter")
    tab.locator("#connection", has_text="may not").wait_for()
    assert "Normal" not in tab.inner_text("body")
    assert tab.locator("#login").is_visible()
    context.close()
