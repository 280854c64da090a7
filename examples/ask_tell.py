"""A study on a plant: ask for an action with its certificate, tell what happened.

    python examples/ask_tell.py

Kill it at any moment and start it again: it continues where it stopped. The plant is simulated here; in your program,
``apply`` talks to the machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import surefoot as sf
from surefoot import worlds
from surefoot.study.episode import Episode

world = worlds.make("thermal/small")  # stands in for the plant; the study sees its problem only
problem, plant = world.problem, world.sampler(seed=0)


def apply(offer: sf.Offer) -> tuple[int, float]:
    """Apply the action and read the sensors: the machine's state, and the measured cost."""
    h, pair = offer.step, problem.pair_index(offer.step, offer.state, offer.action)
    edge = plant.step(h, pair)
    return problem.states(h + 1)[int(problem.graph.layers[h].successor[edge])], float(plant.measure(h, edge)[0])


def play(episode: Episode) -> None:
    with episode as ep:
        while not ep.done:
            offer = ep.ask()
            receipt = ep.tell(*apply(offer))
            if receipt.alarm:
                print(f"episode {ep.number}: {receipt.alarm}")


def main(folder: Path, episodes: int) -> None:
    with sf.Study.open(folder, problem, failure_probability=0.05) as study:
        for remark in study.recovered:
            print(remark)
        if study.next_call != "begin":
            play(study.resume())
        for _ in range(episodes):
            if study.safe_mode:
                print("safe mode: find the cause, then call study.acknowledge(reason, …)")
                break
            play(study.episode())
        status = study.status()
        study.export_policy(folder / "policy.py")
    print(f"{status['episodes']} episodes, {status['certified_pairs']} of {status['pairs']} actions certified")
    print(f"promise: {status['promise']}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "thermal.study"), int(sys.argv[2]) if len(sys.argv) > 2 else 50)
