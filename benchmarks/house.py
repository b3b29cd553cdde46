"""What a native vector form of the house could save at most: all of a step but its texts.

`python -m benchmarks.house` steps as many houses as a vector environment would have, in one process, with admissible
commands drawn uniformly: single environments in a loop, and Gymnasium's `SyncVectorEnv`. Then it only writes what a
step returns in words: the answer, the state as JSON where it is the observation, and the list of admissible commands.
A form that computed everything else in no time would still write these, so that the last columns bound its ratio to
the loop and to `SyncVectorEnv`.

The cases are interleaved, and medians of processor time are printed, so that other work on the machine has little
effect on the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.envs import House
from drift_envs.envs.house.episode import HouseEpisode
from drift_envs.envs.house.state import Command, HouseState

ID, SCHEDULE = "DriftHouse-v0", "house/explicit"
PAYS_FROM = 3.0
"""The ratio from which a native form would pay."""


class Houses:
    """Houses in a loop, or in a `SyncVectorEnv`.

    Args:
        number: how many.
        text: whether observations are the state as JSON, not the answer in words.
    """

    def __init__(self, number: int, text: bool) -> None:
        self._rng, self._text = np.random.default_rng(0), text
        self._single = [gym.make(ID, schedule=SCHEDULE, text=text) for _ in range(number)]
        self._actions: list[Any] = [env.reset(seed=index)[1]["actions"] for index, env in enumerate(self._single)]
        self._vector = gym.make_vec(ID, num_envs=number, schedule=SCHEDULE, text=text)
        self._vector_actions: Any = self._vector.reset(seed=0)[1]["actions"]
        self._chosen: list[tuple[HouseEpisode, HouseState, Command | None, HouseState | None]] = []

    def step_singles(self) -> None:
        """Step all in a loop; those that ended are reset at once."""
        draws = self._rng.random(len(self._single)).tolist()
        for index, (env, draw) in enumerate(zip(self._single, draws, strict=True)):
            actions = self._actions[index]
            _, _, terminated, truncated, info = env.step(actions[int(draw * len(actions))])
            if terminated or truncated:
                _, info = env.reset()
            self._actions[index] = info["actions"]

    def step_vector(self) -> None:
        """Step the `SyncVectorEnv`; where an episode ended, any command resets."""
        draws = self._rng.random(len(self._single)).tolist()
        commands = tuple(
            actions[int(draw * len(actions))] if actions else "look"
            for actions, draw in zip(self._vector_actions, draws, strict=True)
        )
        self._vector_actions = self._vector.step(commands)[4]["actions"]

    def choose(self) -> None:
        """Choose one more command for each single house, and compute its effect; `write_texts` describes it."""
        draws = self._rng.random(len(self._single)).tolist()
        self._chosen = []
        for env, actions, draw in zip(self._single, self._actions, draws, strict=True):
            house = env.unwrapped
            if not isinstance(house, House):
                raise TypeError(f"{ID} should be a `House`. Received {house}")
            model, before = house.episode.model, house.episode.state
            command = model.parse(actions[int(draw * len(actions))])
            self._chosen.append((house.episode, before, command, model.apply(before, command)))

    def write_texts(self) -> None:
        """Write what a step returns in words, and nothing else."""
        for episode, before, command, after in self._chosen:
            episode.model.describe(before, command, after)
            if self._text:
                episode.write_state()
            episode.model.admissible(after or before)


def seconds(do: Callable[[], None], rounds: int) -> float:
    """Processor time of one round."""
    start = time.process_time()
    for _ in range(rounds):
        do()
    return (time.process_time() - start) / rounds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.house --number 1024"
    )
    parser.add_argument("--number", type=int, default=1024, help="houses (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="steps of each a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each case (default: %(default)s)")
    arguments = parser.parse_args()
    print(f"{arguments.number} houses, microseconds a step; a native form pays from a ratio of {PAYS_FROM:g}")
    print(f"{'':<50}{'at most, relative to':>20}")
    print(f"{'observation':<14}{'SyncVectorEnv':>15}{'loop':>8}{'texts alone':>13}{'loop':>8}{'SyncVectorEnv':>15}")
    for name, text in (("words", False), ("JSON", True)):
        houses = Houses(arguments.number, text)
        times: dict[str, list[float]] = {"vector": [], "loop": [], "texts": []}
        for _ in range(arguments.repeats):
            times["vector"].append(seconds(houses.step_vector, arguments.steps))
            times["loop"].append(seconds(houses.step_singles, arguments.steps))
            houses.choose()
            times["texts"].append(seconds(houses.write_texts, arguments.steps))
        bounds = [
            statistics.median(a / b for a, b in zip(times[form], times["texts"], strict=True))
            for form in ("loop", "vector")
        ]
        vector, loop, texts = (statistics.median(found) * 1e6 / arguments.number for found in times.values())
        print(f"{name:<14}{vector:>15.1f}{loop:>8.1f}{texts:>13.1f}{bounds[0]:>8.1f}{bounds[1]:>15.1f}")


if __name__ == "__main__":
    main()
