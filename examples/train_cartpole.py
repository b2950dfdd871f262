"""Trains a small policy on CartPole with REINFORCE, and logs all of it through the service.

logger-service serve --data-dir data --listen 127.0.0.1:50051
python examples/train_cartpole.py 127.0.0.1:50051
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import torch
from tensordict import TensorDict
from torch import nn

from logger_client import GrpcLogger


@dataclasses.dataclass(frozen=True)
class Config:
    """What the run depends on; logged as its hyperparameters."""

    seed: int = 0
    updates: int = 30
    steps_per_update: int = 500
    learning_rate: float = 0.01
    discount: float = 0.99
    hidden: tuple[int, ...] = (64,)
    evaluate_every: int = 5
    evaluation_episodes: int = 3


def make_policy(config: Config) -> nn.Module:
    """Returns a network from an observation to the logits of the two actions."""
    layers: list[nn.Module] = []
    width = 4
    for hidden in config.hidden:
        layers += [nn.Linear(width, hidden), nn.Tanh()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, 2))


def collect(env: gymnasium.Env, policy: nn.Module, config: Config, logger: Any) -> tuple[torch.Tensor, ...]:
    """Plays whole episodes and returns the log-probabilities, entropies and returns of their steps."""
    log_probabilities, entropies, returns = [], [], []
    while len(returns) < config.steps_per_update:
        observation, _ = env.reset()
        rewards: list[float] = []
        over = False
        while not over:
            action_logits = policy(torch.as_tensor(observation))
            distribution = torch.distributions.Categorical(logits=action_logits, validate_args=False)
            action = distribution.sample()
            observation, reward, terminated, truncated, _ = env.step(action.item())
            over = terminated or truncated
            rewards.append(float(reward))
            log_probabilities.append(distribution.log_prob(action))
            entropies.append(distribution.entropy())
            # One point for every step of the environment; without a step the server counts.
            logger.log_scalar("policy/entropy", entropies[-1])
        logger.log_scalar("episode/return", sum(rewards))
        returns += discounted(rewards, config.discount)
    return torch.stack(log_probabilities), torch.stack(entropies), torch.tensor(returns)


def discounted(rewards: list[float], discount: float) -> list[float]:
    """Returns, for each step of an episode, the discounted sum of the rewards from it on."""
    returns, following = [], 0.0
    for reward in reversed(rewards):
        following = reward + discount * following
        returns.append(following)
    return returns[::-1]


@torch.no_grad()
def evaluate(env: gymnasium.Env, policy: nn.Module, episodes: int) -> list[float]:
    """Returns what the greedy policy earns in each of some episodes."""
    totals = []
    for _ in range(episodes):
        observation, _ = env.reset()
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(
                policy(torch.as_tensor(observation)).argmax().item()
            )
            total += float(reward)
            over = terminated or truncated
        totals.append(total)
    return totals


def train(logger: Any, config: Config, on_update: Callable[[int], None] = lambda update: None) -> None:
    """Trains a policy.

    Args:
        logger: A `Logger`, or anything with its methods.
        config: What the run depends on.
        on_update: Called after every update with its number, from 0 on.
    """
    torch.manual_seed(config.seed)
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=config.seed)
    policy = make_policy(config)
    optimizer = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)
    evaluation = logger.with_prefix("eval")

    logger.log_hparams(config)
    logger.log_str("notes", "REINFORCE with normalised returns, CartPole-v1", step=0)
    for update in range(config.updates):
        log_probabilities, entropies, returns = collect(env, policy, config, logger)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(log_probabilities * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        gradient_norm = nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()

        metrics = {"loss": loss, "entropy": entropies.mean(), "gradient_norm": gradient_norm, "return": returns.mean()}
        logger.log_metrics(TensorDict({"train": TensorDict(metrics)}).detach(), step=update)
        if (update + 1) % config.evaluate_every == 0:
            totals = evaluate(env, policy, config.evaluation_episodes)
            evaluation.log_metrics({"return": sum(totals) / len(totals), "best": max(totals)}, step=update)
            evaluation.log_str("episodes", f"returns {totals}", step=update)
        on_update(update)
    env.close()


def main() -> None:
    """Trains against the server that the command line names."""
    with GrpcLogger("cartpole", sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051") as logger:
        train(logger, Config(), lambda update: print(f"update {update}"))
        print(logger.flush())


if __name__ == "__main__":
    main()
