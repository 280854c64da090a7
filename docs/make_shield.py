"""Write the tables of docs/shield.md from what was measured.

    python docs/make_shield.py

The runs are made by ``examples/rl/compare.py`` (which also draws the picture) and ``python -m tests.rl.million``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "shield.md"
COMPARED = ROOT / "examples" / "rl" / "compared.json"
MILLION = ROOT / "tests" / "rl" / "million.json"
KINDS = ("bare", "penalised", "shielded", "LSVI-NEW")
LAST = 4  # bins of steps that the last rewards are taken from


def compared() -> str:
    """Reward at the end and violations on the way, means over seeds."""
    found = json.loads(COMPARED.read_text(encoding="utf-8"))
    seeds = sorted({key.split()[-1] for key in found["runs"]}, key=int)
    rows = [
        "| world | fallback | best safe | " + " | ".join(KINDS) + " |",
        "|---|---:|---:" + "|---:" * len(KINDS) + "|",
    ]
    for world, values in found["values"].items():
        cells = []
        for kind in KINDS:
            runs = [found["runs"][f"{world} {kind} {seed}"] for seed in seeds]
            reward = sum(sum(run["reward"][-LAST:]) / LAST for run in runs) / len(runs)
            broken = sum(run["violations"][-1] for run in runs) / len(runs)
            cells.append(f"{reward:.2f}, {broken:,.0f} broken")
        rows.append(f"| {world} | {values['fallback']:.2f} | {values['best safe']:.2f} | {' | '.join(cells)} |")
    end = f"Reward per episode in the last {LAST / len(runs[0]['reward']):.0%} of {found['steps']:,} steps, and steps"
    return "\n".join([*rows, "", f"{end} that truly broke a limit, per run; means over {len(seeds)} seeds."])


def million() -> str:
    """What a million steps inside the shield have broken."""
    found = json.loads(MILLION.read_text(encoding="utf-8"))
    head = "| world | steps inside | violations | bounds held | violations without the shield |"
    rows = [head, "|---|---:|---:|---:|---:|"]
    names = ("steps", "violations", "events", "runs", "bare")
    whole = {name: sum(row[name] for row in found.values()) for name in names}
    for world, row in [*found.items(), ("**all**", whole)]:
        held = f"{row['events']} of {row['runs']} runs"
        rows.append(f"| {world} | {row['steps']:,} | {row['violations']:,} | {held} | {row['bare']:,} |")
    return "\n".join(rows)


def page() -> str:
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("compared", compared()), ("million", million())):
        place = re.compile(rf"(?<=<!-- {name})([^\n]*-->\n).*?(?=\n<!-- end -->)", re.DOTALL)
        text = place.sub(lambda found: found[1] + table, text)  # noqa: B023 (called at once)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
