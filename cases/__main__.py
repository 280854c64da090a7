"""Run the case studies: ``python -m cases`` all of them, ``python -m cases reactor`` one; see ``make cases``.

Each has ``main(seed)``, which returns what is recorded in ``cases/NAME.json`` and the figures in ``docs/images``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import time
from pathlib import Path

NAMES = ("charging", "reactor", "office")
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cases", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--seed", type=int, default=1, help="of starts, weather and sensors")
    parser.add_argument("--episodes", type=int, help="of the learner; by default as recorded")
    options = parser.parse_args()
    for name in options.names or NAMES:
        if name not in NAMES:
            parser.error(f"no such case: {name}; there are {', '.join(NAMES)}")
        case, began = importlib.import_module(f"cases.{name}"), time.perf_counter()
        print(f"{name}: running, some minutes", flush=True)
        found, figures = case.main(options.seed, options.episodes or case.EPISODES)
        found = {"seed": options.seed, **found, "seconds": round(time.perf_counter() - began, 1)}
        text = re.sub(r"\s+(?=[^\[\]{}]*\])", " ", json.dumps(found, indent=1))  # lists of numbers on one line each
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        for title, figure in figures.items():
            figure.savefig(HERE.parent / "docs" / "images" / f"case-{title}.png", dpi=110)
        print(f"{name}: {found['seconds']:.0f} s, recorded in cases/{name}.json", flush=True)


if __name__ == "__main__":
    main()
