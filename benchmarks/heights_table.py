"""SNO-MDP's random grids: who breaks a limit in how many worlds, and what is earned relative to SNO-MDP.

    python -m benchmarks.heights_table [--size small] [--worlds 20] [--episodes 60]

Each agent learns on each world, with a constant and with a varying threshold. "sno-mdp, told a constant" is the
published learner, which has no notion of a threshold that changes, on the constant one; its steps are judged by the
varying one. The published table (of MASE, which refers to the same worlds) has 0 and 87 of 100 for it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import surefoot as sf

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sno-mdp": ("sno-mdp", {}),
    "sno-mdp-proved": ("sno-mdp", {"confidence": "proved", "successors": "all"}),
    "safe-exp-opt": ("safe-exp-opt", {}),
    "slucb-qvi": ("slucb-qvi", {}),
    "lsvi-new": ("lsvi-new", {}),
}
BLIND = "sno-mdp, told a constant"


def play(name: str, options: dict[str, Any], world: sf.World, judge: sf.World, episodes: int) -> tuple[bool, float]:
    """(was a limit of ``judge`` broken, the mean value of the episodes); both worlds have the same moves."""
    broken = False

    def look(plan: sf.Plan, done: int) -> None:
        nonlocal broken
        broken = broken or sf.exact.violations(judge, plan.values.action).expected > 0

    run = sf.run(sf.agents.make(name, world.problem, **options), world, episodes, 0, on_plan=look, progress=False)
    return broken, float(run.value.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="small")
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=60)
    given = parser.parse_args()
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for seed in range(given.worlds):
        steady, varying = (
            sf.worlds.make(f"heights/{given.size}", seed=seed, thresholds=kind) for kind in ("constant", "varying")
        )
        for label, (name, options) in AGENTS.items():
            for kind, world in (("constant", steady), ("varying", varying)):
                found.setdefault((label, kind), []).append(play(name, options, world, world, given.episodes))
        found.setdefault((BLIND, "varying"), []).append(play("sno-mdp", {}, steady, varying, given.episodes))
    print(f"heights/{given.size}, {given.worlds} worlds, {given.episodes} episodes\n")
    print("| agent | constant: worlds with a violation | earned | varying: worlds with a violation | earned |")
    print("|---|---:|---:|---:|---:|")
    for label in (*AGENTS, BLIND):
        cells = []
        for kind in ("constant", "varying"):
            runs, base = found.get((label, kind), []), found["sno-mdp", kind]
            if not runs:
                cells += ["", ""]
                continue
            ratios = [value / of for (_, value), (_, of) in zip(runs, base, strict=True)]
            cells += [f"{sum(b for b, _ in runs)} of {len(runs)}", f"{np.mean(ratios):.2f} ± {np.std(ratios):.2f}"]
        print(f"| {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
