"""Whether the board's finding holds for PPO of Stable-Baselines3 on environments that are not in JAX.

* `play_table` - plays the lifetimes that are missing, in several processes
* `play_lifetime` - one of them
* `ENVIRONMENTS`, `LEARNERS` - what is played, in the regime `REGIME`

A lifetime is as on the board: eight copies that are stepped together, with one late drift, and nothing tells of it.
No option was tuned for these environments.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd

from baselines.board import BoardFolder, Report, bin_scores, lines_of
from baselines.environments import LANES, REGIMES, Knobs, schedule_of
from baselines.measures import read_lines
from drift_envs.errors import MissingDependencyError

try:
    import torch
    from river.drift import PageHinkley
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
except ImportError as error:
    raise MissingDependencyError.of([error.name or "torch"], ["baselines"]) from error

REGIME = "late"
STEPS = 128
"""Steps of a round in each copy."""
LIMIT = {"room": 100, "pole": 200}
"""Steps of an episode."""
TOLERANCE, THRESHOLD = 0.005, 1.0
"""Of Page-Hinkley: river's default, and the second of the three values that the board tries."""
PLAIN, TOLD, DETECTS = LEARNERS = ("sb3_ppo", "sb3_ppo_told", "sb3_ppo_page_hinkley")
"""Plain; restarted at drifts (privileged); restarted by Page-Hinkley on the scores of rounds."""


@dataclass(frozen=True)
class GymEnv:
    """An environment of this table.

    Args:
        make: from a schedule to one copy.
        phases: the knob values of both phases; the seed draws which is first.
        unit: the return that is the score 1.
    """

    make: Callable[[dict[str, Any]], gym.Env[Any, Any]]
    phases: tuple[Knobs, Knobs]
    unit: float


def _make_room(schedule: dict[str, Any]) -> gym.Env[Any, Any]:
    from minigrid.wrappers import ImgObsWrapper

    env = gym.make("DriftMiniGrid-Empty-v0", schedule=schedule, max_episode_steps=LIMIT["room"])
    return gym.wrappers.FlattenObservation(ImgObsWrapper(env))


def _make_pole(schedule: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make("DriftInvertedPendulum-v0", schedule=schedule, max_episode_steps=LIMIT["pole"])


_GOALS = {"layout": 1, "objects": {"1,6": "blue goal"}}
ENVIRONMENTS = {
    "room": GymEnv(_make_room, ({**_GOALS, "words": {}}, {**_GOALS, "words": {"green": "blue"}}), 1.0),
    "pole": GymEnv(_make_pole, ({"gain": 1.0}, {"gain": -1.0}), float(LIMIT["pole"])),
}
"""MiniGrid's empty room with two goals, of which one pays, and MuJoCo's inverted pendulum, whose force has a sign."""


class _Rounds(BaseCallback):  # type: ignore[misc]
    """Scores of rounds, and restarts.

    Args:
        unit: the return that is the score 1.
        drifts: the rounds at whose start the learner is told to restart.
        detector: gets the score of each round; `None` for none.
    """

    def __init__(self, unit: float, drifts: frozenset[int], detector: Any) -> None:
        super().__init__()
        self.scores: list[float] = []
        self.restarts: list[int] = []
        self._unit, self._drifts, self._detector = unit, drifts, detector
        self._returns: list[float] = []
        self._fires = False

    def _on_rollout_start(self) -> None:
        if self._fires or len(self.scores) in self._drifts:
            self.restarts.append(len(self.scores))
            model = self.model
            spaces = (model.observation_space, model.action_space)
            model.policy = model.policy_class(*spaces, model.lr_schedule, **model.policy_kwargs)

    def _on_step(self) -> bool:
        self._returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True

    def _on_rollout_end(self) -> None:
        score = float(np.mean(self._returns)) / self._unit if self._returns else np.nan
        self._fires = False  # a detector that gets no value still says what it said before
        if self._detector is not None and self._returns:
            self._detector.update(score)
            self._fires = self._detector.drift_detected
        self.scores.append(score)
        self._returns = []


def play_lifetime(environment: str, learner: str, seed: int) -> tuple[np.ndarray, list[int]]:
    """Play a lifetime.

    Args:
        environment: one of `ENVIRONMENTS`.
        learner: one of `LEARNERS`.
        seed: of the lifetime.

    Returns:
        The score of each round, NaN where no episode ended, and the rounds at whose start the learner was restarted.
    """
    torch.set_num_threads(1)
    env, regime = ENVIRONMENTS[environment], REGIMES[REGIME]
    first = int(np.random.default_rng([seed, 0x5B3]).integers(2))
    phases = [env.phases[(first + number) % 2] for number in regime.order]
    schedule = schedule_of(phases, [int(start) * STEPS for start in regime.starts])
    lanes = VecMonitor(DummyVecEnv([lambda: env.make(schedule)] * LANES))
    drifts = frozenset(map(int, regime.starts[1:])) if learner == TOLD else frozenset()
    detector = PageHinkley(min_instances=5, delta=TOLERANCE, threshold=THRESHOLD, mode="down")
    rounds = _Rounds(env.unit, drifts, detector if learner == DETECTS else None)
    model = PPO(
        "MlpPolicy",
        lanes,
        learning_rate=1e-3,
        n_steps=STEPS,
        batch_size=STEPS * LANES // 4,
        n_epochs=4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    model.learn(regime.length * STEPS * LANES, callback=rounds)
    lanes.close()
    return np.array(rounds.scores), rounds.restarts


@dataclass(frozen=True)
class _Plan:
    table: str = "sb3"
    steps: int = STEPS
    regime: str = REGIME


def _play_part(arguments: tuple[Path, str, str, int]) -> str:
    path, environment, learner, seed = arguments
    folder = BoardFolder(path, _Plan())
    scores, restarts = play_lifetime(environment, learner, seed)
    regime = REGIMES[REGIME]
    lines = lines_of(learner, environment, regime, [seed], bin_scores(scores[None], regime))
    folder.save(lines, learner, environment, str(seed))
    after = scores[regime.starts[1] :]
    return f"{learner} in {environment}, {seed}: {np.nanmean(after):.2f} after the drift, restarts at {restarts}"


def _play_parts(todo: list[tuple[Path, str, str, int]], jobs: int) -> Iterator[str]:
    if jobs == 1:
        yield from map(_play_part, todo)
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            yield from pool.imap_unordered(_play_part, todo)


def play_table(path: Path, seeds: int, jobs: int = 1, report: Report = lambda line: None) -> pd.DataFrame:
    """Play the lifetimes that are missing.

    Args:
        path: the folder of the parts.
        seeds: lifetimes of each learner in each environment.
        jobs: processes.
        report: gets a line for each lifetime; return values are ignored.

    Returns:
        Lines as those of the board.

    Raises:
        ArgumentError: if the folder holds parts of something else.
    """
    folder = BoardFolder(path, _Plan())
    parts = [(learner, name, str(seed)) for seed in range(seeds) for name in ENVIRONMENTS for learner in LEARNERS]
    todo = [(path, name, learner, int(seed)) for learner, name, seed in parts if not folder.has(learner, name, seed)]
    for done, line in enumerate(_play_parts(todo, jobs), start=1):
        report(f"{done} of {len(todo)}: {line}")
    return pd.concat([read_lines(folder.file(*part, "part.parquet")) for part in parts], ignore_index=True)
