"""SNO-MDP's random grids: who breaks a limit in how many worlds, and what is earned relative to SNO-MDP.

    python -m benchmarks.heights_table [--size published] [--worlds 100] [--episodes 60]
    python -m benchmarks.heights_table --worlds 0 --page docs/field.md       # write the table of what was recorded
    python -m benchmarks.heights_table --again 0 1 50    # does today's code give what was recorded?

Each agent learns on each world, with a constant and with a varying threshold. "sno-mdp, told a constant" is the
published learner, which has no notion of a threshold that changes, on the constant one; its steps are judged by the
varying one. Every world is a line of ``benchmarks/heights-SIZE.jsonl`` as soon as it is done; those that are there are
not played again, but for agents that they lack. PUBLISHED is Table 3 in appendix H of the paper on MASE.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sno-mdp": ("sno-mdp", {}),
    "sno-mdp-proved": ("sno-mdp", {"confidence": "proved", "successors": "all"}),
    "safe-exp-opt": ("safe-exp-opt", {}),
    "mase": ("mase", {"stop": 0}),  # staying is always safe
    "slucb-qvi": ("slucb-qvi", {}),
    "lsvi-new": ("lsvi-new", {}),
}
BLIND = "sno-mdp, told a constant"
KINDS = ("constant", "varying")
PUBLISHED = {
    "sno-mdp (as published)": ("0 of 100", "1.0", "87 of 100", "1.0"),
    "mase (as published)": ("0 of 100", "1.0", "0 of 100", "2.4 ± 1.0"),
}


def play(
    name: str, options: dict[str, Any], world: sf.World, judges: list[sf.World], episodes: int
) -> list[list[float]]:
    """By judge, all with the moves of the world: [episodes in which one of its limits was broken, mean value]."""
    seen: list[tuple[int, list[bool]]] = []

    def look(plan: sf.Plan, done: int) -> None:
        seen.append((done, [sf.exact.violations(judge, plan.values.action).expected > 0 for judge in judges]))

    run = sf.run(sf.agents.make(name, world.problem, **options), world, episodes, 0, on_plan=look, progress=False)
    ends = [*(done for done, _ in seen[1:]), episodes]
    spans = [(end - done, breaks) for (done, breaks), end in zip(seen, ends, strict=True)]
    value = round(float(run.value.mean()), 6)
    return [[sum(span for span, breaks in spans if breaks[i]), value] for i in range(len(judges))]


def measure(size: str, seed: int, episodes: int, found: dict[str, Any]) -> dict[str, Any]:
    """What ``found`` lacks of one world: by "agent/threshold" what :func:`play` gives."""
    steady, varying = (sf.worlds.make(f"heights/{size}", seed=seed, thresholds=kind) for kind in KINDS)
    for label, (name, options) in AGENTS.items():
        for kind, world in zip(KINDS, (steady, varying), strict=True):
            keys, judges = [f"{label}/{kind}"], [world]
            if keys == ["sno-mdp/constant"]:
                keys.append(f"{BLIND}/varying")
                judges.append(varying)
            if not found.keys() >= set(keys):
                found.update(zip(keys, play(name, options, world, judges, episodes), strict=True))
    return found


def table(worlds: list[dict[str, Any]]) -> str:
    """Markdown: worlds with a violation, and what was earned relative to sno-mdp on the same world."""
    head = "| agent | constant: worlds with a violation | earned | varying: worlds with a violation | earned |"
    lines = [head, "|---|---:|---:|---:|---:|"]
    for label in (*AGENTS, BLIND):
        cells: list[str] = []
        for kind in KINDS:
            runs = [
                (world[f"{label}/{kind}"], world[f"sno-mdp/{kind}"]) for world in worlds if f"{label}/{kind}" in world
            ]
            if not runs:
                cells += ["", ""]
                continue
            ratios = [own / base for (_, own), (_, base) in runs]
            broken = sum(episodes > 0 for (episodes, _), _ in runs)
            cells += [f"{broken} of {len(runs)}", f"{np.mean(ratios):.2f} ± {np.std(ratios):.2f}"]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    lines += [f"| *{label}* | " + " | ".join(cells) + " |" for label, cells in PUBLISHED.items()]
    return "\n".join(lines)


def read(path: Path) -> dict[int, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.pop("seed"): line for line in map(json.loads, lines)}  # of one seed the last line counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="published")
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--again", type=int, nargs="+", default=[], metavar="SEED")
    given = parser.parse_args()
    path = Path(__file__).with_name(f"heights-{given.size}.jsonl")
    done = read(path)
    for seed in given.again:
        now = measure(given.size, seed, given.episodes, {})
        other = {key: (done[seed].get(key), each) for key, each in now.items() if done[seed].get(key) != each}
        print(f"world {seed}: {len(now) - len(other)} of {len(now)} as recorded; others, before and now: {other}")
    if given.again:
        return
    for seed in range(given.worlds):
        found = dict(done.get(seed, {}))
        before = len(found)
        measure(given.size, seed, given.episodes, found)
        if len(found) > before:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": seed, **found}) + "\n")
            print(f"world {seed + 1} of {given.worlds}", flush=True)
    worlds = [world for _, world in sorted(read(path).items())]
    text = f"{table(worlds)}\n\n`heights/{given.size}`, {len(worlds)} worlds, {given.episodes} episodes."
    if given.page is None:
        print(text)
        return
    page = given.page.read_text(encoding="utf-8")
    begin, end = (f"<!-- {word}heights -->" for word in ("", "end of "))
    before_it, after = page.partition(begin)[0], page.partition(end)[2]
    given.page.write_text(f"{before_it}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
