"""PPO in one file, in the manner of CleanRL, on many drifting lakes as one native vector environment.

    pip install ".[rl,plots]"
    python examples/ppo_vector.py --out ppo_vector.png

All lakes share a clock of steps, and the learner observes nothing but the number of its tile. Of the two schedules that
are played by default, one exchanges the rewards of two goals, the other moves holes into every path that was shortest.
Printed: the mean return at the beginning and at the end of each phase. PPO is that of Schulman et al., Proximal policy
optimization algorithms (2017), with generalized advantage estimation (Schulman et al., 2016).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import drift_envs
from drift_envs import load_schedule

SOURCES = ("frozen_lake/implicit", "frozen_lake/explicit")


class Settings(NamedTuple):
    """The parameters of PPO; the defaults of CleanRL where the lake needs no other.

    Args:
        rollout: steps of each lake between two updates.
        epochs: passes over a rollout.
        batches: mini-batches of a pass.
        rate: of Adam.
        discount: of what comes a step later.
        trace: the lambda of generalized advantage estimation.
        clip: the largest change of the ratio of probabilities that is rewarded.
        entropy: the weight of the policy's entropy.
        value: the weight of the value's error.
    """

    rollout: int = 32
    epochs: int = 4
    batches: int = 4
    rate: float = 1e-3
    discount: float = 0.97
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.02
    value: float = 0.5


class ActorCritic(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of the actions and the value of one-hot states.

    Args:
        states: how many there are.
        actions: how many there are.
    """

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.states = states
        self.body = nn.Sequential(nn.Linear(states, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, actions), nn.Linear(64, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # all actions are equally probable at the start

    def forward(self, states: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """The policy and the value.

        Args:
            states: numbers of shape `(N,)`.
        """
        hidden = self.body(nn.functional.one_hot(states, self.states).float())
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def stepwise(source: str, span: int) -> dict[str, Any]:
    """A shipped schedule whose drifts come every `span` steps of the environment.

    Args:
        source: the schedule.
        span: steps of a phase.
    """
    plan: dict[str, Any] = load_schedule(source).to_dict()  # type: ignore[union-attr]
    plan |= {"name": f"{plan['name']}-stepwise", "clock": "step"}
    plan["drifts"] = [{**drift, "at": span * number} for number, drift in enumerate(plan["drifts"], start=1)]
    return plan


def advantages(
    rewards: torch.Tensor, values: torch.Tensor, following: torch.Tensor, ends: torch.Tensor, given: Settings
) -> torch.Tensor:
    """Generalized advantage estimates of a rollout.

    Args:
        rewards: shape `(rollout, N)`, as are all of these.
        values: of the states in which was acted.
        following: the values of the states that followed; 0 where the episode terminated, and the value of the
            last state, not of the next episode's first, where it was truncated.
        ends: 1.0 where an episode ended.
        given: discount and trace.
    """
    errors = rewards + given.discount * following - values
    found, later = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        later = errors[step] + given.discount * given.trace * (1 - ends[step]) * later
        found[step] = later
    return found


def train(lakes: gym.vector.VectorEnv, updates: int, seed: int, given: Settings) -> np.ndarray:
    """Train through all phases.

    Args:
        lakes: a vector environment with the autoreset mode `SameStep`.
        updates: how many rollouts are collected.
        seed: seeds the lakes, the network and the actions.
        given: the settings.

    Returns:
        The mean return of the episodes that ended during each update, `nan` where none did; shape `(updates,)`.
    """
    torch.manual_seed(seed)
    number = lakes.num_envs
    model = ActorCritic(int(lakes.single_observation_space.n), int(lakes.single_action_space.n))  # type: ignore[attr-defined]
    optimizer = torch.optim.Adam(model.parameters(), lr=given.rate, eps=1e-5)
    shape = (given.rollout, number)
    returns, scores = np.full(updates, np.nan), np.zeros(number)
    observation, _ = lakes.reset(seed=seed)
    for update in range(updates):
        states, actions = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
        logs, rewards, values, following, ends = (torch.zeros(shape) for _ in range(5))
        finished: list[float] = []
        for step in range(given.rollout):
            states[step] = torch.as_tensor(observation)
            with torch.no_grad():
                policy, values[step] = model(states[step])
                actions[step] = policy.sample()
                logs[step] = policy.log_prob(actions[step])
                observation, reward, terminated, truncated, info = lakes.step(actions[step].numpy())
                ended = terminated | truncated
                last = np.array(observation)
                if ended.any():  # `observation` is then the first of the next episode
                    last[ended] = np.stack(info["final_obs"][ended])
                _, after = model(torch.as_tensor(last))
            following[step] = after * torch.as_tensor(~terminated)
            rewards[step], ends[step] = torch.as_tensor(reward), torch.as_tensor(ended)
            scores += reward
            finished += scores[ended].tolist()
            scores[ended] = 0.0
        if finished:
            returns[update] = np.mean(finished)
        gains = advantages(rewards, values, following, ends, given)
        rows = [part.flatten() for part in (states, actions, logs, gains, gains + values)]
        for _ in range(given.epochs):
            for chosen in torch.randperm(len(rows[0])).chunk(given.batches):
                state, action, log, gain, target = (row[chosen] for row in rows)
                policy, value = model(state)
                ratio = (policy.log_prob(action) - log).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                clipped = ratio.clamp(1 - given.clip, 1 + given.clip)
                loss = -torch.minimum(ratio * gain, clipped * gain).mean()
                loss = loss + given.value * ((value - target) ** 2).mean() / 2 - given.entropy * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
    return returns


def plot(curves: dict[str, np.ndarray], rollout: int, span: int, out: str) -> None:
    """Draw the mean return over the steps of a lake, with the drifts.

    Args:
        curves: for each schedule a row for each seed, shape `(seeds, updates)`.
        rollout: steps of an update.
        span: steps of a phase.
        out: the file.
    """
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(len(curves), 1, figsize=(8, 2.6 * len(curves)), sharex=True, squeeze=False)
    for axes, (source, rows) in zip(panels[:, 0], curves.items(), strict=True):
        steps = np.arange(1, rows.shape[1] + 1) * rollout
        for row in rows:
            axes.plot(steps, row, color="tab:blue", alpha=0.3, linewidth=0.8)
        axes.plot(steps, np.ma.masked_invalid(rows).mean(axis=0), color="tab:blue", label=f"mean of {len(rows)} seeds")
        for drift in range(span, int(steps[-1]), span):
            axes.axvline(drift, linestyle="--", color="gray", label="drift" if drift == span else None)
        axes.set(ylabel="mean return", ylim=(-0.02, 1.04), title=f"PPO on {source}")
    panels[0, 0].legend(loc="lower right", frameon=False)
    panels[-1, 0].set(xlabel="steps of each lake")
    figure.tight_layout()
    figure.savefig(out)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, np.ndarray]:
    """Train, print and draw.

    Args:
        arguments: those of the command line.

    Returns:
        For each schedule the mean return during each update, shape `(seeds, updates)`.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--schedules", nargs="+", default=list(SOURCES), help="shipped schedules of the lake")
    parser.add_argument("--lakes", type=int, default=256, help="how many in parallel (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=120, help="rollouts of a phase (default: %(default)s)")
    parser.add_argument("--entropy", type=float, default=Settings().entropy, help="its weight (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="how many (default: %(default)s)")
    parser.add_argument("--out", help="file for the picture")
    given = parser.parse_args(arguments)
    if given.out:
        Path(given.out).parent.mkdir(parents=True, exist_ok=True)  # before the training, which takes long
    torch.set_num_threads(1)  # with more, a network this small is slower
    settings = Settings(entropy=given.entropy)
    span, few = given.updates * settings.rollout, min(5, given.updates)
    print(f"drift-envs {drift_envs.__version__}, {given.lakes} lakes, {given.seeds} seeds")
    curves = {}
    for source in given.schedules:
        schedule = stepwise(source, span)
        phases = ["source", *(drift["name"] for drift in schedule["drifts"])]
        rows = []
        for seed in range(given.seeds):
            lakes = gym.make_vec(
                "DriftFrozenLake-v0", num_envs=given.lakes, schedule=schedule, autoreset_mode="SameStep"
            )
            rows.append(train(lakes, len(phases) * given.updates, seed, settings))
            lakes.close()
        curves[source] = np.array(rows)
        for number, phase in enumerate(phases):
            part = curves[source][:, number * given.updates : (number + 1) * given.updates]
            begin, end = (float(np.ma.masked_invalid(piece).mean()) for piece in (part[:, :few], part[:, -few:]))
            print(f"{source}, {phase}: return {begin:.2f} in the first {few} updates, {end:.2f} in the last {few}")
    if given.out:
        plot(curves, settings.rollout, span, given.out)
    return curves


if __name__ == "__main__":
    main()
