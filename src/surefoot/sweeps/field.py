"""The field, side by side: the learners and worlds that ``surefoot compare`` compares."""

from __future__ import annotations

from pathlib import Path

from surefoot.sweeps.spec import Contender

WORLDS: dict[str, str] = {
    "thermal/testing": "traps: too hot is too late",
    "driving/testing": "traps: too fast to stop",
    "rover/testing": "traps: rocks that slide, and a map to learn",
    "figure1": "traps: the paper's sketch",
    "ladder/testing": "traps: generated, star-convex",
    "toy-text/cliff-walking": "no traps: every cell has a safe way back",
    "ablation/stall": "no traps: one step, and a hundred trials that each cost a little",
    "lower-bound/2": "what pays most is safe, and no safe learner can find out",
}
"""Each world, and what it asks of a learner."""


def contenders(episodes: int) -> list[Contender]:
    """The learners: with published constants, unless these would play the fallback for ever; labels say so."""
    return [
        Contender("lsvi-new"),
        Contender("fallback"),
        Contender("slucb-qvi"),
        Contender("rslucb-qvi"),
        Contender("safe-lucb", {"episodes": episodes}),
        Contender("oplb"),
        Contender("ucrl-vtr"),
        Contender("ucrl-vtr-plus"),
        Contender("hf-ucrl-vtr-plus", {"episodes": episodes}),
        Contender("lsvi-ucb", {"episodes": episodes, "scale": 0.01}, "lsvi-ucb-tuned"),
        Contender("safe-mdp"),
        Contender("sno-mdp"),
        Contender("sno-mdp", {"confidence": "proved", "successors": "all"}, "sno-mdp-proved"),
        Contender("safe-exp-opt"),
        Contender("mase"),
        Contender("lsvi-ae"),
        Contender("opt-cmdp", {"episodes": episodes}),
        Contender("dope", {"episodes": episodes, "initial_episodes": 50, "scale": 0.05, "bonus": 0.0}, "dope-tuned"),
        Contender("opdop", {"episodes": episodes}),
        Contender("opt-primal-dual", {"episodes": episodes, "scale": 0.02, "step": 1000.0}, "opt-primal-dual-tuned"),
        Contender("crpo", {"episodes": episodes, "scale": 1000.0, "tolerance": 0.0}, "crpo-tuned"),
        Contender("opse-lcmdp"),
        Contender("static-shield"),
        Contender("oracle-shield"),
    ]


def folder_of(root: Path, world: str) -> Path:
    """The folder of the runs on one world."""
    return root / world.replace("/", "-")
