"""Records lifetimes with the truth about their drifts.

Every part is played in a new environment, from the seed of its lifetime and seeds of its episodes, so that parts are
equal byte for byte whether they were played in one go or after an interruption.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_integer, check_number, check_reward
from drift_envs.datasets.folder import DatasetFolder, column_names, encode, load_pyarrow, part_count
from drift_envs.envs.make import MOST_STEPS, make_from_schedule
from drift_envs.errors import ArgumentError, NoOracleError, StateError, UnknownChoiceError
from drift_envs.knobs import thaw
from drift_envs.registration import IDS
from drift_envs.schedule import Schedule, Timeline, load_schedule
from drift_envs.tasks.recurring_tasks import RecurringTasksEnv
from drift_envs.utils.lazy import find_callable
from drift_envs.utils.version import __version__

POLICIES = ("random", "optimal", "initial")
"""Random actions; the optimum of the present tick; the optimum of tick 0, which is kept whatever drifts."""

Act = Callable[[Any, dict[str, Any], int], Any]
Policy = Callable[[int], Act]


STEPS_PER_PART = 100_000
"""The most steps of a part, if episodes last until the limit."""

ROUNDING = 1e-9
"""The difference up to which two rewards are equal."""

EPISODE_STREAM = 0xDA7A
"""The key of the seeds of episodes among the streams of a lifetime's seed."""


@dataclass(frozen=True)
class DatasetOptions:
    """What is recorded.

    Args:
        env_id: an id of this package, or with a schedule of any environment of Gymnasium.
        schedule: what `load_schedule` takes; `None` for that of the id.
        policy: the name of one, see `drift_envs.datasets.recorder.make_policy`.
        episodes: of each lifetime.
        lifetimes: how many; lifetime i has the seed `seed + i`.
        seed: of the first lifetime.
        epsilon: the share of random actions, in [0, 1].

    Raises:
        ArgumentError: if one breaks a rule.

    Example:
        >>> DatasetOptions("DriftFrozenLake-v0", "frozen_lake/implicit", episodes=40).schedule_object().name
        'frozen_lake/implicit'
    """

    env_id: str
    schedule: Any = None
    policy: str = "random"
    episodes: int = 100
    lifetimes: int = 1
    seed: int = 0
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_integer("episodes", self.episodes, 1)
        check_integer("lifetimes", self.lifetimes, 1)
        check_integer("seed", self.seed, 0)
        check_number("epsilon", self.epsilon, 0, 1)
        if self.schedule is None and self.env_id not in IDS:
            raise ArgumentError(f"`schedule` should be given for an environment of another package, {self.env_id}")

    def schedule_object(self) -> Schedule:
        """The schedule, with the environment's id."""
        source = IDS[self.env_id].schedule if self.schedule is None else self.schedule
        loaded: Schedule = load_schedule(source)
        return loaded.model_copy(update={"env": self.env_id})


class ReplayedEpisode(NamedTuple):
    """An episode whose actions are replayed.

    Args:
        number: its number.
        seed: of its random stream.
        tick: the tick at its reset.
        actions: in the form of the action space.
        rewards: of its steps; `None` where they are not known.
    """

    number: int
    seed: int
    tick: int
    actions: Sequence[Any]
    rewards: Sequence[float | None]


class _Episode(NamedTuple):
    """An episode to play; `steps` is where it ends if the environment does not end it."""

    number: int
    seed: int
    tick: int
    act: Act
    steps: int | None = None


class _Step(NamedTuple):
    """A transition that was played."""

    observation: Any
    action: Any
    reward: float
    terminated: bool
    truncated: bool
    following: Any
    tick: int


def write_dataset(
    options: DatasetOptions,
    out: str | os.PathLike[str],
    replayed: Sequence[ReplayedEpisode] | None = None,
    progress: Callable[[int, int], object] = lambda done, steps: None,
) -> DatasetFolder:
    """Play the parts that are missing in a folder, and write them.

    Args:
        options: what is recorded.
        out: the folder; a data set that was begun with the same options is completed.
        replayed: episodes that are replayed instead of asking a policy, which is then a name alone.
        progress: gets the episodes of each part that is there, and the steps of those that were played; return values
            are ignored.

    Returns:
        The folder.

    Raises:
        ArgumentError: if an option breaks a rule, or the folder has another data set.
        NoOracleError: if the policy needs an optimum that is not known.
        MissingDependencyError: without PyArrow.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as out:
        ...     options = DatasetOptions("DriftFrozenLake-v0", "frozen_lake/implicit", "optimal", episodes=21)
        ...     (table,) = write_dataset(options, out).tables(0)
        >>> table.select(["episode", "reward", "phase"]).slice(table.num_rows - 1).to_pylist()
        [{'episode': 20, 'reward': 1.0, 'phase': 'reversal'}]
    """
    load_pyarrow()
    schedule = options.schedule_object()
    manifest = _describe(options, schedule)
    _check_playable(options, manifest, replayed is None)  # before anything is written
    folder = DatasetFolder(out)
    folder.begin(manifest)
    size = manifest["episodes_per_part"]
    for lifetime in range(options.lifetimes):
        tick = 0
        for part in range(part_count(manifest)):
            numbers = range(part * size, min((part + 1) * size, options.episodes))
            if folder.part(lifetime, part).exists():
                if schedule.clock == "step":
                    tick = folder.last_tick(lifetime, part) + 1
                progress(len(numbers), 0)
                continue
            player = _PartPlayer(options, manifest, lifetime, tick)
            columns = player.play(numbers, replayed)
            folder.write_part(lifetime, part, columns)
            tick = player.tick
            progress(len(numbers), len(columns["tick"]))
    return folder


def episode_seeds(seed: int, number: int) -> tuple[int, int]:
    """The seeds of an episode: of the environment's reset, and of the policy.

    Args:
        seed: of the lifetime.
        number: of the episode.

    Example:
        >>> episode_seeds(0, 0) == episode_seeds(0, 0) != episode_seeds(0, 1)
        True
    """
    environment, policy = np.random.SeedSequence([seed, EPISODE_STREAM, number]).generate_state(2).tolist()
    return environment, policy


def make_dataset_env(manifest: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """The environment of a data set."""
    env = make_from_schedule(dict(manifest["schedule"]), text=manifest["text"])
    env.set_wrapper_attr("warns_of_end", False)  # a part of a lifetime may lie before its first drift
    return env


def _describe(options: DatasetOptions, schedule: Schedule) -> dict[str, Any]:
    """The manifest."""
    content = schedule.to_dict()
    env = make_from_schedule(content)
    try:
        text = _needs_text(options, env)
        limit = env.spec.max_episode_steps if env.spec is not None else None
        driven = env.get_wrapper_attr("timeline").names
        _check_optimum(options, driven)
        knobs = {name: thaw(value) for name, value in env.get_wrapper_attr("knobs_at")(0).items() if name not in driven}
    finally:
        env.close()
    return {
        "version": 1,
        "package": __version__,
        "env": options.env_id,
        "schedule": content,
        "schedule_hash": schedule.content_hash(),
        "text": text,
        "policy": options.policy,
        "epsilon": options.epsilon,
        "seed": options.seed,
        "lifetimes": options.lifetimes,
        "episodes": options.episodes,
        "episodes_per_part": max(1, STEPS_PER_PART // (limit or MOST_STEPS)),
        "constant_knobs": knobs,
    }


def _check_playable(options: DatasetOptions, manifest: Mapping[str, Any], asks_policy: bool) -> None:
    """Refuse spaces that have no form as columns, and a policy that cannot be made."""
    env = make_dataset_env(manifest)
    try:
        env.reset(seed=options.seed)
        column_names("observation", env.observation_space)
        column_names("action", env.action_space)
        if asks_policy:
            make_policy(options.policy, env, options.epsilon)
    finally:
        env.close()


def _needs_text(options: DatasetOptions, env: gym.Env[Any, Any]) -> bool:
    """Whether the environment acts in words, or its oracle reads texts alone."""
    parts = IDS.get(options.env_id)
    if parts is None or parts.text_mode is not None:
        return parts is not None
    reads = options.policy in ("optimal", "initial") and isinstance(env.observation_space, gym.spaces.Dict)
    return reads and parts.text is not None


def _check_optimum(options: DatasetOptions, driven: Sequence[str]) -> None:
    """Refuse an optimum that is not known, as with knobs of the wrapper, which no oracle models."""
    if options.policy not in ("optimal", "initial"):
        return
    parts = IDS.get(options.env_id)
    strange = [name for name in driven if parts is not None and name not in parts.knob_table]
    if parts is None or parts.oracle is None or not parts.knows_optimum or strange:
        because = f", since it does not model {', '.join(strange)}" if strange else ""
        raise NoOracleError(f"there is no oracle for {options.env_id} with this schedule{because}; use `random`")


class _PartPlayer:
    """Plays a part of a lifetime in a new environment.

    Args:
        options: what is recorded.
        manifest: of the data set.
        lifetime: its number.
        tick: the tick of the first step; it counts on while the clock is `step`.
    """

    def __init__(self, options: DatasetOptions, manifest: Mapping[str, Any], lifetime: int, tick: int) -> None:
        self._options, self._manifest, self._lifetime, self.tick = options, manifest, lifetime, tick
        self._seed = options.seed + lifetime
        self._steps: list[_Step] = []

    def play(self, numbers: range, replayed: Sequence[ReplayedEpisode] | None) -> dict[str, Any]:
        """Play episodes; returns the columns of their steps.

        Args:
            numbers: of the episodes of this part.
            replayed: all episodes of the data set, if they are replayed.

        Raises:
            StateError: if a reward differs from that of the replayed episode.
        """
        env = make_dataset_env(self._manifest)
        try:
            env.reset(seed=self._seed)  # fixes the drifts
            self._clock = env.get_wrapper_attr("timeline").schedule.clock
            if isinstance(env.unwrapped, RecurringTasksEnv):
                for number in range(numbers.start):  # tasks come in an order in which each reset is a step
                    seed = replayed[number].seed if replayed else episode_seeds(self._seed, number)[0]
                    env.reset(seed=seed, options={"drift_clock": "continue"})
            policy = None if replayed else make_policy(self._options.policy, env, self._options.epsilon)
            counts, played = [], []
            for number in numbers:
                begin = len(self._steps)
                episode = self._plan(policy, number) if policy else _plan_replay(replayed[number])  # type: ignore[index]
                counts.append(self._play_episode(env, episode))
                played.append(episode.number)
                if replayed:
                    _check_rewards(replayed[number], [step.reward for step in self._steps[begin:]])
            return self._columns(env, np.repeat(played, counts), counts)
        finally:
            env.close()

    def _plan(self, policy: Policy, number: int) -> _Episode:
        seed, own_seed = episode_seeds(self._seed, number)
        tick = {"episode": number, "step": self.tick, "episode_step": 0}[self._clock]
        return _Episode(number, seed, tick, policy(own_seed))

    def _play_episode(self, env: gym.Env[Any, Any], episode: _Episode) -> int:
        """Play an episode; returns the number of its steps."""
        options = {"drift_clock": "continue", "drift_tick": episode.tick}
        observation, info = env.reset(seed=episode.seed, options=options)
        observation = _copy(observation)
        act, tick, advance, step = episode.act, episode.tick, int(self._clock != "episode"), env.step
        done, count = False, 0
        while not done and count != episode.steps:
            action = act(observation, info, tick)
            following, reward, terminated, truncated, info = step(action)
            following = _copy(following)
            self._steps.append(
                _Step(observation, _copy(action), check_reward(reward), terminated, truncated, following, tick)
            )
            observation, done, tick, count = following, terminated or truncated, tick + advance, count + 1
        self.tick = tick
        return count

    def _columns(self, env: gym.Env[Any, Any], episodes: np.ndarray, counts: list[int]) -> dict[str, Any]:
        pyarrow = load_pyarrow()
        steps = self._steps
        ticks = np.array([step.tick for step in steps], np.int64)
        starts = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
        return {
            "lifetime": pyarrow.array(np.full(len(ticks), self._lifetime, np.int32)),
            "seed": pyarrow.array(np.full(len(ticks), self._seed, np.int64)),
            "episode": pyarrow.array(episodes.astype(np.int32)),
            "step": pyarrow.array((np.arange(len(ticks)) - starts).astype(np.int32)),
            **encode("observation", env.observation_space, [step.observation for step in steps]),
            **encode("action", env.action_space, [step.action for step in steps]),
            "reward": pyarrow.array(np.array([step.reward for step in steps], np.float64)),
            "terminated": pyarrow.array(np.array([step.terminated for step in steps], bool)),
            "truncated": pyarrow.array(np.array([step.truncated for step in steps], bool)),
            **encode("next_observation", env.observation_space, [step.following for step in steps]),
            "tick": pyarrow.array(ticks),
            **make_labels(env.get_wrapper_attr("timeline"), ticks),
        }


def make_labels(timeline: Timeline, ticks: np.ndarray) -> dict[str, Any]:
    """The truth about each step as columns: phase, a column `knob.NAME` for each driven knob, `drift_log`.

    `drift_log` has the changes of knobs at the step's tick, on the first step of that tick, and nothing elsewhere.
    Knobs that are no numbers are JSON.

    Args:
        timeline: the timeline of the lifetime.
        ticks: of the steps, in the order of play, shape `(N,)`.

    Raises:
        MissingDependencyError: without PyArrow.
    """
    pyarrow = load_pyarrow()
    if not len(ticks):
        raise StateError("`ticks` should hold at least 1 tick. Received 0")
    first, last = int(ticks.min()), int(ticks.max())
    offsets = ticks - first
    names = timeline.names
    values = timeline.columns(first, last - first + 1) if names else ()
    labels = {"phase": _as_words(_phases(timeline, first, last), offsets)}
    for name, column in zip(names, values, strict=True):
        if isinstance(column, np.ndarray):
            labels[f"knob.{name}"] = pyarrow.array(column[offsets])
        else:
            labels[f"knob.{name}"] = _as_words([_as_json(value) for value in column], offsets)
    at: dict[int, list[dict[str, str]]] = {}
    for change in timeline.changes(max(first - 1, 0), last + 1):
        plain = {"knob": change.knob, "old": _as_json(change.old), "new": _as_json(change.new), "drift": change.drift}
        at.setdefault(change.tick, []).append(plain)
    log: list[list[dict[str, str]]] = [[] for _ in range(len(ticks))]
    begins = np.flatnonzero(np.concatenate([[True], ticks[1:] != ticks[:-1]]))
    for row in begins[np.isin(ticks[begins], list(at))].tolist():
        log[row] = at[int(ticks[row])]
    entry = pyarrow.struct([(key, pyarrow.string()) for key in ("knob", "old", "new", "drift")])
    return {**labels, "drift_log": pyarrow.array(log, pyarrow.list_(entry))}


def _phases(timeline: Timeline, first: int, last: int) -> list[str]:
    """The phase of each tick."""
    names: list[str] = []
    tick = first
    while tick <= last:
        phase = timeline.phase(tick)
        stop = min(phase.stop, last + 1)
        names += [phase.id] * (stop - tick)
        tick = stop
    return names


def _as_words(words: Sequence[str], offsets: np.ndarray) -> Any:
    """Few different texts as a dictionary column."""
    pyarrow = load_pyarrow()
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    codes = np.array([numbers[word] for word in words], np.int32)
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes[offsets]), pyarrow.array(list(numbers)))


def _copy(value: Any) -> Any:
    """An observation or action that stays as it is: an environment may write the next one into the same arrays."""
    if isinstance(value, Mapping):
        return {key: _copy(part) for key, part in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def _as_json(value: Any) -> str:
    return json.dumps(thaw(value), ensure_ascii=False)


def _check_rewards(recorded: ReplayedEpisode, rewards: Sequence[Any]) -> None:
    for step, (before, now) in enumerate(zip(recorded.rewards, rewards, strict=False)):
        if before is not None and abs(before - float(now)) > ROUNDING:
            raise StateError(
                f"episode {recorded.number}, step {step}: the reward was {before}, here it is {float(now)}: the "
                "environment is not that of the run (another version?)"
            )


def _plan_replay(recorded: ReplayedEpisode) -> _Episode:
    actions = iter(recorded.actions)
    return _Episode(
        recorded.number,
        recorded.seed,
        recorded.tick,
        lambda observation, info, tick: next(actions),
        len(recorded.actions),
    )


def make_policy(name: str, env: gym.Env[Any, Any], epsilon: float = 0.0) -> Policy:
    """The policy of a name.

    Args:
        name: one of `POLICIES`, or `module:name` of a function `make(observation_space, action_space)` that returns a
            function `act(observation, info, rng)`, where `rng` is the NumPy generator of the episode.
        env: the environment, after a reset.
        epsilon: the share of actions that are random instead.

    Raises:
        UnknownChoiceError: if there is no such policy.
        NoOracleError: if no optimum is known for the environment.
        ArgumentError: if the function cannot be found or called.
    """
    wanders = _make_random(env)
    if name == "random":
        return wanders
    follows = _make_own(name, env) if ":" in name else _make_oracle(name, env)
    return _mix(follows, wanders, epsilon) if epsilon else follows


def _make_random(env: gym.Env[Any, Any]) -> Policy:
    """Uniform over the actions: of `info["actions"]` where actions are texts."""
    space = env.action_space
    if isinstance(space, gym.spaces.Text):

        def begin_texts(seed: int) -> Act:
            rng = random.Random(seed)
            space.seed(seed)
            return lambda observation, info, tick: rng.choice(info["actions"]) if "actions" in info else space.sample()

        return begin_texts

    def begin(seed: int) -> Act:
        space.seed(seed)
        return lambda observation, info, tick: space.sample()

    return begin


def _make_oracle(name: str, env: gym.Env[Any, Any]) -> Policy:
    if name not in POLICIES:
        raise UnknownChoiceError(
            f"`policy` should be one of {', '.join(POLICIES)}, 'module:name' of a function, or a file of a run's "
            f"folder `traces`. Received {name!r}"
        )
    oracle: Any = env.get_wrapper_attr("oracle") if env.has_wrapper_attr("oracle") else None
    if not hasattr(oracle, "action"):
        raise NoOracleError(f"the optimum of {env} is not known; use the policy `random` or a function")
    act: Act
    if name == "initial":
        act = lambda observation, info, tick: oracle.action(observation, 0)  # noqa: E731
    else:
        act = lambda observation, info, tick: oracle.action(observation, tick)  # noqa: E731
    return lambda seed: act


def _make_own(name: str, env: gym.Env[Any, Any]) -> Policy:
    own = find_callable("policy", name)(env.observation_space, env.action_space)
    if not callable(own):
        raise ArgumentError(f"`{name}` should return a function `act(observation, info, rng)`. Received {own!r}")

    def begin(seed: int) -> Act:
        rng = np.random.default_rng(seed)
        return lambda observation, info, tick: own(observation, info, rng)

    return begin


def _mix(follows: Policy, wanders: Policy, epsilon: float) -> Policy:
    def begin(seed: int) -> Act:
        # seeds of their own: of one seed, the coin that chooses a random action would decide which one it is
        own, others = np.random.SeedSequence(seed).generate_state(2).tolist()
        rng = random.Random(own)
        usual, other = follows(seed), wanders(others)
        return lambda *seen: other(*seen) if rng.random() < epsilon else usual(*seen)

    return begin
