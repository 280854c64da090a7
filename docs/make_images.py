"""Make the pictures of the worlds in README and docs.

    python docs/make_images.py            # all of them, some minutes
    python docs/make_images.py thermal    # one

Each world is learned for some episodes with seed 0, while part of what is safe is not yet certified, so that the
picture has all three colours. The first picture of the README is made by ``surefoot demo``.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.reports.pictures.residuals import draw_residuals

IMAGES = Path(__file__).parent / "images"
FIELDS = {  # name -> world and episodes
    "thermal": ("thermal/small", 40),
    "driving": ("driving/small", 5),
    "rover": ("rover/small", 120),
    "power": ("power/testing", 20),
    "walk": ("walk/small", 12),
}


def draw_field(name: str) -> Path:
    size, episodes = FIELDS[name]
    world = sf.worlds.make(size)
    plan = sf.run(sf.LsviNew(world.problem), world, episodes=episodes, seed=0).plan
    path: Path = sf.draw(world, plan, IMAGES / f"world-{name}.png")
    return path


def draw_charger() -> Path:
    """The plant of examples/charger.py after 120 episodes, and its last trajectory."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import charger

    plant = charger.charger()
    agent = sf.PlantAgent(plant)
    run = sf.run(agent, plant.simulate(charger.truth), episodes=120, seed=0)
    path: Path = sf.draw(plant, agent.plan, IMAGES / "plant-charger.png", paths=run.paths[-1:])
    return path


def draw_guide() -> Path:
    """The residuals of the guide's log: its programs are run as far as the calibration."""
    page = (Path(__file__).parent / "declaring.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for source in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(source, names)
            if "found" in names:
                break
    return draw_residuals(names["found"], IMAGES / "residuals.png")


if __name__ == "__main__":
    others = {"charger": draw_charger, "residuals": draw_guide}
    for name in sys.argv[1:] or [*FIELDS, *others]:
        print(others[name]() if name in others else draw_field(name), flush=True)
