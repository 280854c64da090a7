"""Gymnasium's unmodified FrozenLake: a random walker on slippery ice, first without a shield, then inside one."""

import gymnasium

import surefoot as sf


def fell(step: sf.Transition) -> float:
    return float(step.terminated and step.reward == 0)  # what is measured: 1 in a hole, else 0


env = gymnasium.make("FrozenLake-v1")
holes = set((env.get_wrapper_attr("desc").ravel() == b"H").nonzero()[0].tolist())
falling = sf.Limit("falling", bound=0.5, noise=0.1, norm=1.5)
lake = sf.worlds.from_gymnasium(env, horizon=30, cost=lambda s, a, s2, reward: float(s2 in holes), limit=falling)
shielded = sf.shield(env, sf.LsviNew(lake.problem), state=int, cost=fell)  # of the lake, the declaration alone

for name, walk in (("bare", env), ("shielded", shielded)):
    walk.action_space.seed(0)
    falls, begun = 0, walk.reset(seed=len(name))
    for _ in range(3000):
        seen, reward, terminated, truncated, info = walk.step(walk.action_space.sample())
        if terminated or truncated:
            falls, begun = falls + (seen in holes), walk.reset()
    print(f"{name}: {falls} falls in 3000 steps")
