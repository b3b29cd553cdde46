"""Tabular Q-learning on 1,024 drifting lakes at once, and how long it takes to recover from each drift.

    python examples/q_learning.py --out recovery.png

Every lake has its own agent, which receives no signal of a change. The maps change after 100 and
after 200 episodes. All agents are one table of shape (lakes, states, actions), so that a step of all of them is a
few lines of NumPy. Printed: the success rate before each drift, right after it, and the episodes until it has come
back to nine tenths of what it was. The picture needs `pip install "drift-envs[plots]"`.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs
from drift_envs import load_schedule

SOURCE = "frozen_lake/explicit"
SPAN = 100
"""Episodes of a phase."""


def slower(source: str, span: int) -> dict[str, Any]:
    """A shipped schedule whose drifts come every `span` episodes instead.

    Args:
        source: the schedule.
        span: episodes of a phase.
    """
    plan: dict[str, Any] = load_schedule(source).to_dict()  # type: ignore[union-attr]
    plan["name"] = f"{plan['name']}-slower"
    plan["drifts"] = [{**drift, "at": span * number} for number, drift in enumerate(plan["drifts"], start=1)]
    return plan


def learn(
    lakes: gym.vector.VectorEnv, episodes: int, seed: int, rate: float = 0.5, discount: float = 0.95, hope: float = 1.0
) -> np.ndarray:
    """Learn on all lakes at once.

    Args:
        lakes: the lakes.
        episodes: how many episodes of each are recorded.
        seed: seeds the lakes and the choices.
        rate: how far a value moves to what was just seen.
        discount: of what comes a step later.
        hope: the value of what was never tried, so that it is tried.

    Returns:
        The success of each episode, shape `(lakes, episodes)`.
    """
    number, states = lakes.num_envs, int(lakes.single_observation_space.n)  # type: ignore[attr-defined]
    values = np.full((number, states, 4), hope)
    score, episode = np.zeros((number, episodes)), np.zeros(number, int)
    everyone, rng = np.arange(number), np.random.default_rng(seed)
    state, _ = lakes.reset(seed=seed)
    begins = np.zeros(number, bool)  # with Gymnasium's default the step after an end only resets
    while episode.min() < episodes:
        guess = rng.random((number, 4)) * 1e-6  # breaks ties
        action = (values[everyone, state] + guess).argmax(axis=1)
        explores = rng.random(number) < 0.02
        action[explores] = rng.integers(4, size=int(explores.sum()))
        following, reward, terminated, truncated, _ = lakes.step(action)
        target = reward + discount * np.where(terminated, 0.0, values[everyone, following].max(axis=1))
        seen = everyone[~begins]
        here = seen, state[seen], action[seen]
        values[here] += rate * (target[seen] - values[here])
        ended = (terminated | truncated) & (episode < episodes)
        score[ended, episode[ended]] = reward[ended]
        begins = terminated | truncated
        episode += begins
        state = following
    return score


def recovery_time(rates: np.ndarray, drift: int, share: float = 0.9, window: int = 5) -> int | None:
    """Episodes until the success rate is back.

    Args:
        rates: the success rate of each episode.
        drift: the episode of the drift.
        share: of the rate before the drift that counts as back.
        window: episodes that are averaged.

    Returns:
        Their number, `None` if it does not come back before the end.
    """
    before = rates[max(drift - 10, 0) : drift].mean()
    smooth = np.convolve(rates[drift:], np.ones(window) / window, "valid")
    back = np.flatnonzero(smooth >= share * before)
    return int(back[0]) + window if len(back) else None


def plot(rates: np.ndarray, span: int, out: str) -> None:
    """Draw the success rate over episodes, with the drifts.

    Args:
        rates: the success rate of each episode.
        span: episodes between two drifts.
        out: the file.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.5))
    axes.plot(rates)
    for drift in range(span, len(rates), span):
        axes.axvline(drift, linestyle="--", color="gray")
        time = recovery_time(rates, drift)
        back = "never back" if time is None else f"back after\n{time} episodes"
        axes.annotate(back, (drift, 0.5), xytext=(-4, 0), textcoords="offset points", ha="right")
    axes.set(xlabel="episode", ylabel="success rate", ylim=(0, 1), title="Q-learning on drifting lakes")
    figure.tight_layout()
    figure.savefig(out)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> np.ndarray:
    """Learn, print and draw.

    Args:
        arguments: those of the command line.

    Returns:
        The success rate of each episode.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--lakes", type=int, default=1024, help="how many (default: %(default)s)")
    parser.add_argument("--span", type=int, default=SPAN, help="episodes of a phase (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="file for the picture")
    given = parser.parse_args(arguments)
    lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=given.lakes, schedule=slower(SOURCE, given.span))
    rates: np.ndarray = learn(lakes, 3 * given.span, given.seed).mean(axis=0)
    print(f"drift-envs {drift_envs.__version__}, {given.lakes} lakes")
    for drift in (given.span, 2 * given.span):
        before, after = rates[drift - 10 : drift].mean(), rates[drift : drift + 5].mean()
        time = recovery_time(rates, drift)
        back = "does not come back" if time is None else f"is back after {time} episodes"
        print(f"drift at episode {drift}: success {before:.2f} falls to {after:.2f} and {back}")
    if given.out:
        plot(rates, given.span, given.out)
    return rates


if __name__ == "__main__":
    main()
