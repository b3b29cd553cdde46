"""A lifetime of an environment for programs that play in texts, and the scores of its episodes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_integer, check_reward
from drift_envs.envs.make import make_from_schedule
from drift_envs.errors import ArgumentError, StateError, UnknownChoiceError
from drift_envs.metrics.adaptation import Recovery, recovery, summarise_recoveries
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.text import read_action

OWN = "explicit"
"""The schedule of every id by default: the environment's explicit one."""


def open_log(log: str | os.PathLike[str] | None) -> Path | None:
    """The file of `log=`, which is created.

    Args:
        log: its path, or `None`.

    Raises:
        ArgumentError: it cannot be written.
    """
    if log is None:
        return None
    try:
        Path(log).open("a", encoding="utf-8").close()
    except (OSError, TypeError, ValueError) as error:
        raise ArgumentError(f"`log` should be a file that can be written: {error}") from error
    return Path(log)


class TextLifetime:
    """An environment as text: actions are strings, results are dictionaries of plain data.

    The first `reset` seeds the environment and starts its schedule; all later ones go on. An agent can neither seed
    nor move the clock.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts; by default that of the id; `None` for nothing.
        seed: of the instance.
        on_episode: called with a dictionary at the end of every episode that was begun: `episode`, `phase`, `tick`,
            `score`, `steps`, `ended` (`terminated`, `truncated` or `abandoned`).
        log: a file to which a line of JSON is appended at the same time, for `drift-agents import-lines`: the same
            with environment, schedule and seed; phase and tick are those of the episode's first step.
        rounds: play the first so many episodes of every phase and jump on, as experiments do; the lifetime is over
            then.
        episodes: play so many episodes, during which time goes on; with neither, the lifetime has no end.

    Attributes:
        planned: the phase of each of its episodes, for evaluators; empty without an end, and where the clock counts
            steps, so that only playing shows it.

    Raises:
        ArgumentError: an argument breaks a rule, or the log cannot be written.
        ScheduleError: the schedule cannot be used.

    Example:
        >>> life = TextLifetime("DriftFrozenLake-v0", seed=0)
        >>> life.reset()["observation"]
        '{"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}'
        >>> result = life.act("1")
        >>> result["step"], result["score"], result["ended"]
        (1, 0.0, False)
    """

    def __init__(
        self,
        env_id: str,
        schedule: Source = OWN,
        seed: int = 0,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
        *,
        log: str | os.PathLike[str] | None = None,
        rounds: int | None = None,
        episodes: int | None = None,
    ) -> None:
        if env_id not in IDS and (schedule is None or (isinstance(schedule, str) and schedule == OWN)):
            raise UnknownChoiceError(
                f"`env_id` should be one of {', '.join(IDS)}, or come with a `schedule` (a file, or a dictionary) for "
                f"an environment of another package. Received {env_id!r}"
            )
        if on_episode is not None and not callable(on_episode):
            raise ArgumentError(f"`on_episode` should be a function or None. Received {on_episode!r}")
        self._seed = check_integer("seed", seed)
        check_integer("rounds", rounds, 1, optional=True)
        check_integer("episodes", episodes, 1, optional=True)
        if rounds is not None and episodes is not None:
            raise ArgumentError("`rounds` and `episodes` exclude each other. Received both")
        self._env = _make_env(env_id, schedule)
        self._env.set_wrapper_attr("warns_of_end", False)  # a client may leave at any time
        self._on_episode, self._log = on_episode, open_log(log)
        self._ticks: list[int] | None = None
        self._length = episodes
        self.planned: tuple[str, ...] = ()
        played = self._env.get_wrapper_attr("schedule")
        counts_episodes = played is None or played.clock == "episode"
        if rounds is not None or (episodes is not None and counts_episodes):
            self._env.reset(seed=self._seed)  # the first episode rewinds again
            timeline = self._env.get_wrapper_attr("timeline")
            if rounds is not None:
                self._ticks = [tick for _, tick in timeline.rounds(rounds)]
                self._length = len(self._ticks)
            self.planned = tuple(timeline.phase(tick).id for tick in self._ticks or range(self._length or 0))
        self._episode = -1
        self._step = 0
        self._going = False
        self._result: dict[str, Any] | None = None

    @classmethod
    def of_schedule(
        cls,
        schedule: str,
        seed: int = 0,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
        *,
        log: str | os.PathLike[str] | None = None,
        rounds: int | None = None,
        episodes: int | None = None,
    ) -> TextLifetime:
        """Make a lifetime in the environment that a schedule is written for, with an end.

        Args:
            schedule: the name of a shipped schedule, or the path of a file, with its key `env`.
            seed: of the instance.
            on_episode: see the class.
            log: see the class.
            rounds: see the class; 2 if neither this nor `episodes` is given.
            episodes: see the class.

        Raises:
            ArgumentError: an argument breaks a rule, or the schedule names no environment.
            ScheduleError: the schedule cannot be used.

        Example:
            >>> TextLifetime.of_schedule("frozen_lake/explicit:family", seed=3).planned
            ('source', 'source', 'drift-1', 'drift-1', 'drift-2', 'drift-2')
        """
        loaded = load_schedule(schedule, table=None)
        env_id = None if loaded is None else loaded.env
        if env_id is None:
            raise ArgumentError(f"{schedule} should name its environment under `env`. Received none")
        rounds = 2 if rounds is None and episodes is None else rounds
        return cls(env_id, schedule, seed, on_episode, log=log, rounds=rounds, episodes=episodes)

    @property
    def schedule(self) -> str | None:
        """The full name of its schedule, `None` if nothing drifts."""
        found = self._env.get_wrapper_attr("schedule")
        return None if found is None else str(found.name)

    @property
    def length(self) -> int | None:
        """The number of its episodes, `None` without an end."""
        return self._length

    @property
    def is_over(self) -> bool:
        """Whether the last of its episodes has ended."""
        return self._length is not None and self._episode + 1 >= self._length and not self._going

    def reset(self) -> dict[str, Any]:
        """Begin the next episode; an unfinished one counts as abandoned.

        Returns:
            `observation`, `task`, `actions` (the admissible ones), `score` so far, `reward` of the last action,
            `ended`, `episode` and `step`; `error` if the last action was refused by the environment; `tools` with
            the JSON Schemas of those of a service desk.

        Raises:
            StateError: the lifetime is over.
        """
        self._finish("abandoned")
        if self.is_over:
            raise StateError(f"the lifetime is over after {self._length} episodes; make another one")
        self._episode += 1
        options = None if self._ticks is None else {"drift_tick": self._ticks[self._episode]}
        observation, info = self._env.reset(seed=self._seed if self._episode == 0 else None, options=options)
        self._step = 0
        self._going = True
        self._begin = self._env.get_wrapper_attr("drift_state")
        return self._show(observation, info, 0.0, False)

    def act(self, action: str | float | Mapping[str, Any]) -> dict[str, Any]:
        """Take an action.

        Args:
            action: an action as text, such as `2`, `-0.5` or `click[buy now]`, as a number, or as the mapping that
                a call at a service desk is.

        Returns:
            What `reset` returns.

        Raises:
            StateError: no episode is going on.
            ArgumentError: it is no action; nothing has changed.
        """
        if not self._going:
            raise StateError("no episode is going on; call `reset` to begin the next one")
        chosen = self._parse(_spell(action))
        observation, reward, terminated, truncated, info = self._env.step(chosen)
        self._step += 1
        result = self._show(observation, info, check_reward(reward), bool(terminated or truncated))
        if result["ended"]:
            self._finish("terminated" if terminated else "truncated")
        return result

    def observe(self) -> dict[str, Any]:
        """The present state again, without any effect.

        Raises:
            StateError: no episode was begun.
        """
        if self._result is None:
            raise StateError("no episode was begun; call `reset`")
        return self._result

    def abandon(self) -> None:
        """End the present episode where it is."""
        self._finish("abandoned")

    def close(self) -> None:
        """End the lifetime; an unfinished episode counts as abandoned."""
        self._finish("abandoned")
        self._env.close()

    def _finish(self, ended: str) -> None:
        if not self._going:
            return
        self._going = False
        if self._result is None:
            return
        played = {"score": self._result["score"], "steps": self._step, "ended": ended}
        if self._on_episode is not None:
            state = self._env.get_wrapper_attr("drift_state")
            self._on_episode({"episode": self._episode, "phase": state.phase, "tick": state.tick, **played})
        if self._log is not None:
            schedule = self._env.get_wrapper_attr("schedule")
            spec = self._env.spec
            about = {"env": None if spec is None else spec.id, "schedule": schedule and schedule.name}
            about |= {"schedule_hash": schedule and schedule.content_hash(), "seed": self._seed}
            when = {"episode": self._episode, "phase": self._begin.phase, "tick": self._begin.tick}
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**about, **when, **played}) + "\n")

    def _show(self, observation: str, info: dict[str, Any], reward: float, ended: bool) -> dict[str, Any]:
        self._result = {
            "observation": observation,
            "task": info["task"],
            "actions": list(info["actions"]),
            "score": float(info["score"]),
            "reward": reward,
            "ended": ended,
            "episode": self._episode,
            "step": self._step,
        }
        if "tools" in info:
            self._result["tools"] = info["tools"]
        if info.get("last_action_error"):
            self._result["error"] = info["last_action_error"]
        return self._result

    def _parse(self, action: str) -> Any:
        """The action as an element of the action space."""
        space = self._env.action_space
        if isinstance(space, gym.spaces.Text):
            return action
        try:
            number = float(action)
        except ValueError:
            number = np.nan
        if isinstance(space, gym.spaces.Discrete):
            if not number.is_integer() or not space.contains(int(number)):
                last = int(space.start + space.n - 1)
                raise ArgumentError(f"`action` should be a number from {space.start} to {last}. Received {action!r}")
            return int(number)
        if not isinstance(space, gym.spaces.Box) or action.lstrip().startswith("["):
            return read_action(space, action)
        low, high = float(space.low.min()), float(space.high.max())
        if not low <= number <= high:
            raise ArgumentError(f"`action` should be a number from {low:g} to {high:g}. Received {action!r}")
        return np.full(space.shape or (1,), number, dtype=space.dtype)


def _make_env(env_id: str, schedule: Source) -> gym.Env[Any, Any]:
    """The environment as text."""
    if env_id in IDS:
        return gym.make(env_id, text=True, schedule=schedule)
    loaded = load_schedule(schedule, table=None)
    if loaded is None:  # only `None` gives `None`
        raise ArgumentError("`schedule` should be a schedule. Received None")
    return make_from_schedule(loaded.model_copy(update={"env": env_id}), text=True)


def _spell(action: Any) -> str:
    """An action as text."""
    if isinstance(action, str):
        return action
    if isinstance(action, Mapping):
        try:
            return json.dumps(action)
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentError(f"`action` should be data that JSON has: {error}") from error
    if isinstance(action, bool) or not isinstance(action, (int, float)):
        raise ArgumentError(f"`action` should be a text, a number or a mapping. Received {type(action).__name__}")
    try:
        number = float(action)
    except OverflowError:
        number = math.inf
    return str(int(number)) if number.is_integer() else str(number)


def spread_lifetimes(schedules: Sequence[str], lifetimes: int, first_seed: int = 0) -> list[tuple[str, int]]:
    """Schedules and seeds of lifetimes to train or evaluate on: the schedules in turn, each time with the next seed.

    Args:
        schedules: at least one.
        lifetimes: how many, at least 1.
        first_seed: the seed of the first round.

    Returns:
        A schedule and a seed for each lifetime.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> spread_lifetimes(["webshop/explicit", "house/explicit"], 3, first_seed=7)
        [('webshop/explicit', 7), ('house/explicit', 7), ('webshop/explicit', 8)]
    """
    check_integer("lifetimes", lifetimes, 1)
    check_integer("first_seed", first_seed)
    if not schedules or isinstance(schedules, str):
        raise ArgumentError(f"`schedules` should be a list of at least one schedule. Received {schedules!r}")
    return [(schedules[index % len(schedules)], first_seed + index // len(schedules)) for index in range(lifetimes)]


def lifetime_reward(lines: Sequence[Mapping[str, Any]], length: int) -> float:
    """Mean score of all episodes of a lifetime, with 0 for those that were not played.

    What a trainer gives for a lifetime: an agent gains nothing by ending it early.

    Args:
        lines: what `on_episode` of `TextLifetime` received.
        length: the number of its episodes.

    Example:
        >>> lifetime_reward([{"phase": "source", "score": 1.0}], 4)
        0.25
    """
    return sum(float(line["score"]) for line in lines) / length


def lifetime_scores(
    lines: Sequence[Mapping[str, Any]], planned: Sequence[str] = (), window: int = 3
) -> dict[str, float]:
    """Score by phase, and recovery from the drifts.

    A phase counts as recovered as `drift_envs.metrics.recovery` has it, with the mean score of the last `window`
    episodes of the first phase as reference. An agent whose reference is 0 has nothing to recover, and counts as not
    recovered.

    Args:
        lines: what `on_episode` of `TextLifetime` received.
        planned: `TextLifetime.planned`; episodes that were not played, because a limit was reached, have the score 0.
        window: the episodes of a window; fewer in shorter phases.

    Returns:
        `score`, the mean of all episodes; `score_PHASE`, that of each phase; where there are several phases,
        `recovered`, the share of the later phases that did, and `recovery_episodes`, the mean of the episodes until
        then, with a phase's length where it did not.

    Example:
        >>> scores = [("source", 1.0), ("source", 1.0), ("ice", 0.0), ("ice", 1.0), ("ice", 1.0), ("ice", 1.0)]
        >>> found = lifetime_scores([{"phase": phase, "score": score} for phase, score in scores], window=2)
        >>> for name, value in found.items():
        ...     print(name, round(value, 3))
        score 0.833
        score_source 1.0
        score_ice 0.75
        recovered 1.0
        recovery_episodes 1.0
        >>> lifetime_scores([{"phase": "source", "score": 1.0}], planned=["source", "source"])
        {'score': 0.5, 'score_source': 0.5}
    """
    played = [(str(line["phase"]), float(line["score"])) for line in lines]
    played += [(phase, 0.0) for phase in planned[len(played) :]]
    phases: dict[str, list[float]] = {}
    for phase, score in played:
        phases.setdefault(phase, []).append(score)
    found = {"score": float(np.mean([score for _, score in played])) if played else 0.0}
    found |= {f"score_{phase}": float(np.mean(scores)) for phase, scores in phases.items()}
    first, *later = phases.values() if phases else [[]]
    if later:
        reference = float(np.mean(first[-window:]))
        times = [
            recovery(scores, reference, window=min(window, len(scores)), stay=1)
            if reference > 0
            else Recovery(len(scores), is_censored=True)
            for scores in later
        ]
        summary = summarise_recoveries(times)
        found |= {"recovered": summary.share, "recovery_episodes": summary.restricted_mean}
    return found
