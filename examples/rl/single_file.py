"""Another kind of learner: one file, no library but torch, eight environments at a time. In the style of CleanRL.

Actor and critic are two small networks. The vector shield's masks go into the policy itself, as −∞ among its logits, so
the sampled action is the one that is played.
"""

import sys

import gymnasium
import torch
from torch import nn

import surefoot as sf

ENVS, ROLL, GAMMA, LAMBDA, CLIP, ENTROPY = 8, 32, 1.0, 0.95, 0.2, 0.01


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


def distribution(logits: torch.Tensor, masks: torch.Tensor) -> torch.distributions.Categorical:
    return torch.distributions.Categorical(logits=logits.masked_fill(~masks, -1e9))


def train(steps: int = 8000, seed: int = 0, world: str = "thermal-testing") -> list[sf.exact.Witness]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    witnesses: list[sf.exact.Witness] = []

    def make() -> gymnasium.Env:
        witnesses.append(sf.exact.Witness(gymnasium.make(f"surefoot/{world}-v0", observation="onehot").unwrapped))
        return witnesses[-1]

    same_step = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = sf.shield(gymnasium.vector.SyncVectorEnv([make] * ENVS, autoreset_mode=same_step))
    inputs, n = envs.single_observation_space.shape[0], envs.single_action_space.n
    actor, critic = network(inputs, n), network(inputs, 1)
    optimiser = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=2.5e-3)

    seen = torch.tensor(envs.reset(seed=seed)[0])
    for _ in range(steps // (ENVS * ROLL)):
        rows = []
        for _ in range(ROLL):
            masks = torch.tensor(envs.action_masks())
            with torch.no_grad():
                policy = distribution(actor(seen), masks)
                action = policy.sample()
                value = critic(seen).squeeze(1)
            after, reward, terminated, truncated, _ = envs.step(action.numpy())
            over = torch.tensor(terminated | truncated)
            rows.append((seen, masks, action, policy.log_prob(action), value, torch.tensor(reward).float(), over))
            seen = torch.tensor(after)
        update(actor, critic, optimiser, rows, critic(seen).detach().squeeze(1))
    overruled = envs.replacements
    print(f"{sum(w.steps for w in witnesses)} steps, {sum(w.violations for w in witnesses)} violations,")
    print(f"{overruled} actions overruled; {envs.learner}")
    return witnesses


def update(actor, critic, optimiser, rows, last) -> None:  # type: ignore[no-untyped-def]
    """Four passes of the clipped objective over one roll-out, advantages by GAE."""
    seen, masks, action, old, value, reward, over = (torch.stack(column) for column in zip(*rows, strict=True))
    advantage, running = torch.zeros_like(reward), torch.zeros(reward.shape[1])
    for t in reversed(range(len(rows))):
        following = last if t == len(rows) - 1 else value[t + 1]
        delta = reward[t] + GAMMA * following * ~over[t] - value[t]
        running = delta + GAMMA * LAMBDA * ~over[t] * running
        advantage[t] = running
    goal = advantage + value
    flat = [part.flatten(0, 1) for part in (seen, masks, action, old, advantage, goal)]
    for _ in range(4):
        for batch in torch.randperm(len(flat[0])).split(64):
            s, m, a, before, gain, target = (part[batch] for part in flat)
            policy = distribution(actor(s), m)
            ratio = (policy.log_prob(a) - before).exp()
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            loss = (
                -surrogate + 0.5 * (critic(s).squeeze(1) - target).square().mean() - ENTROPY * policy.entropy().mean()
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


if __name__ == "__main__":
    steps, seed = sys.argv[1:3] or (8000, 0)
    train(int(steps), int(seed))
