"""Make the pictures of README and docs anew: one per field, and the report in a browser.

    python docs/make_images.py            # all of them, some minutes
    python docs/make_images.py thermal    # one

Each field is learnt for some episodes with seed 0, and the plan drawn is one in which some of what is safe is not yet
certified, so that all three colours can be seen. The report needs Playwright and Chromium (apt-get install chromium).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import surefoot as sf
from surefoot.plan.plan import Plan
from surefoot.report import page as html
from surefoot.sweeps.sweep import Contender, Spec, sweep

IMAGES = Path(__file__).parent / "images"
FIELDS = {  # name -> world and episodes
    "thermal": ("thermal/small", 150),
    "driving": ("driving/small", 12),
    "rover": ("rover/small", 500),
    "power": ("power/testing", 60),
}


def learnt(world: sf.World, episodes: int) -> Plan:
    plan = sf.run(sf.LsviNew(world.problem), world, episodes=episodes, seed=0).plan
    assert plan is not None
    return plan


def draw_field(name: str) -> Path:
    world = sf.worlds.make(FIELDS[name][0])
    path: Path = sf.draw(world, learnt(world, FIELDS[name][1]), IMAGES / f"world-{name}.png")
    return path


def photograph_report() -> Path:
    """A report on the quick start, as a browser shows it on light paper."""
    from playwright.sync_api import sync_playwright

    agents = [Contender(name) for name in ("lsvi-new", "fallback", "slucb-qvi", "ucrl-vtr")]
    path = IMAGES / "report-light.png"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        runs = Path(folder) / "thermal"
        sweep(Spec("thermal/small", agents, range(3), 20_000), runs, progress=False)
        page = html.write_page(runs)
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        tab.goto(page.as_uri())
        box = tab.locator("#charts").bounding_box()
        assert box is not None
        clip = {"x": 0.0, "y": 0.0, "width": 1200.0, "height": float(box["y"]) - 10}
        tab.screenshot(path=path, full_page=True, clip=clip)
        browser.close()
    return path


def main() -> None:
    wanted = sys.argv[1:] or [*FIELDS, "report"]
    for name in wanted:
        print(photograph_report() if name == "report" else draw_field(name), flush=True)


if __name__ == "__main__":  # spawned processes come here, too
    main()
