"""Stable-Baselines3 on drifting environments; needs the extra `rl`.

`drift_envs.wrappers.PhaseReturns` stores the returns of single environments by phase.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from drift_envs.checks import check_integer, check_single
from drift_envs.errors import ArgumentError, DriftWarning, needs_extra
from drift_envs.integrations.sb3_checkpoints import CheckpointCallback as CheckpointCallback
from drift_envs.integrations.sb3_checkpoints import warn_of_new_time
from drift_envs.registration import IDS
from drift_envs.schedule import NEVER, Timeline
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.wrappers.clock import first_drift, silence_ends
from drift_envs.wrappers.records import EpisodeReturns, HeldClock, PhaseReturn, group_by_phase

with needs_extra("stable_baselines3", "rl"):
    from stable_baselines3.common import callbacks, env_util, vec_env
    from stable_baselines3.common.monitor import Monitor


MOST_TRIED = 1_000
"""Steps of a trial: no warning is given after so few."""


def make_vec_env(env_id: str, n_envs: int = 1, seed: int | None = None, **arguments: Any) -> VecEnv:
    """Make the native vector environment of an id for Stable-Baselines3.

    Args:
        env_id: an id with a native vector environment.
        n_envs: the number of sub-environments.
        seed: seeds the first reset, as `VecEnv.seed` does.
        **arguments: the arguments of `gym.make_vec`: `schedule`, `share_timeline` and so on.

    Raises:
        ArgumentError: if there is no native vector environment for these arguments, or one is an argument of
            Stable-Baselines3's `make_vec_env` alone, such as `env_kwargs`, or of the other forms of `gym.make_vec`.

    Example:
        >>> cars = make_vec_env("DriftMountainCar-v0", n_envs=4, seed=0, schedule="mountain_car/explicit")
        >>> cars.reset().shape
        (4, 2)
    """
    env_id = env_id.removeprefix("drift_envs:") if isinstance(env_id, str) else env_id  # the module that registers it
    if not isinstance(env_id, str) or env_id not in IDS or IDS[env_id].vector is None:
        known = ", ".join(name for name, entry in IDS.items() if entry.vector is not None)
        raise ArgumentError(
            f"`env_id` should have a native vector environment: one of {known}. Received {env_id!r}; "
            "`make_vec_env` of `stable_baselines3.common.env_util` takes any id"
        )
    for name in arguments.keys() & inspect.signature(env_util.make_vec_env).parameters:
        raise ArgumentError(
            f"`{name}` is an argument of Stable-Baselines3's `make_vec_env`, which takes this id too. "
            f"Received {name}={arguments[name]!r}; here the arguments of the environment are passed as they are: "
            f'`make_vec_env("{env_id}", schedule=...)`, and `by_phase()` needs no wrapper'
        )
    for name in arguments.keys() & ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers"):
        raise ArgumentError(
            f"`{name}` should not be given: the native vector environment has `n_envs` copies, without wrappers. "
            f"Received {name}={arguments[name]!r}"
        )
    check_integer("seed", seed, optional=True)
    envs: Any = gym.make_vec(
        env_id,
        num_envs=n_envs,
        vectorization_mode="vector_entry_point",
        **{"autoreset_mode": AutoresetMode.SAME_STEP, **arguments},
    )
    made = VecEnv(envs)
    if seed is not None:
        made.seed(seed)
    return made


class VecEnv(vec_env.VecEnv):  # type: ignore[misc, unused-ignore]
    """A native vector environment as Stable-Baselines3 expects it.

    `info` of a finished episode has the keys that Stable-Baselines3 reads: `episode` (`r` the return, `l` the
    length), `terminal_observation` and `TimeLimit.truncated`. `Monitor` and `VecMonitor` are not needed.

    `seed` rewinds the schedules at the next reset, with the seed `seed + i` for sub-environment `i`; later
    resets continue them. `set_options` takes one dictionary for all, or a list with one for each; as everywhere in
    Stable-Baselines3 they are those of the next `reset` of all. `drift_envs.move_time` moves time from the next episode
    on, `save_progress` and `restore_progress` take this class too.

    Args:
        envs: a native vector environment with `autoreset_mode="SameStep"`.

    Attributes:
        episodes: the finished episodes of all sub-environments by phase, for evaluators.

    Raises:
        ArgumentError: if it is another environment, or has another autoreset mode.

    Example:
        >>> lakes = make_vec_env("DriftFrozenLake-v0", n_envs=2, schedule=None, seed=0)
        >>> lakes.reset()
        array([0, 0])
        >>> observations, rewards, dones, infos = lakes.step(np.array([1, 2]))
        >>> rewards.dtype, len(infos)
        (dtype('float32'), 2)
    """

    def __init__(self, envs: DriftVectorEnv) -> None:
        if not isinstance(envs, DriftVectorEnv):
            raise ArgumentError(
                f"`envs` should be a native vector environment of drift-envs. Received {type(envs).__name__}; "
                "`make_vec_env` makes one from an id, and that of Stable-Baselines3 is for all others"
            )
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ArgumentError(f"`autoreset_mode` should be 'SameStep'. Received {envs.autoreset_mode.value!r}")
        self.envs = envs
        self.episodes = EpisodeReturns()
        self._episodes_of = [EpisodeReturns() for _ in range(envs.num_envs)]
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Any = None
        self._begins: list[tuple[str, int]] = [("", 0)] * envs.num_envs
        self._scores = np.zeros(envs.num_envs)
        self._steps = np.zeros(envs.num_envs, np.int64)

    def reset(self) -> Any:
        """Start episodes in all sub-environments, with the seed and the options that were set before.

        Raises:
            ArgumentError: if a seed or an option breaks a rule.
        """
        seeds = self._seeds
        alike = all(other == self._options[0] for other in self._options)
        options: Any = self._options[0] if alike else list(self._options)
        first = seeds[0]
        in_order = first is not None and seeds == [first + index for index in range(self.num_envs)]
        seed = first if in_order else None if set(seeds) == {None} else seeds
        observations, infos = self.envs.reset(seed=seed, options=options or None)
        self.reset_infos = [_info_of(infos, index) for index in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        self._begin_episodes(range(self.num_envs))
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for `step_wait`.

        Args:
            actions: one action for each sub-environment.
        """
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all sub-environments.

        Returns:
            Observations (the first of the next episode where one has ended), rewards (float32), whether the
            episode has ended, and one `info` for each.
        """
        observations, rewards, terminations, truncations, found = self.envs.step(self._actions)
        self._scores += rewards
        self._steps += 1
        dones = terminations | truncations
        last, final = found.pop("final_obs", None), found.pop("final_info", {})
        infos = [_info_of(found, index) for index in range(self.num_envs)] if found else [{} for _ in rewards]
        ended = dones.nonzero()[0].tolist()
        for index in ended:
            score, steps = float(self._scores[index]), int(self._steps[index])
            phase, tick = self._begins[index]
            episode = PhaseReturn(phase, tick, score, steps)
            self.episodes.append(episode)
            self._episodes_of[index].append(episode)
            infos[index] = {
                **_info_of(final, index),
                "terminal_observation": last[index],
                "TimeLimit.truncated": bool(truncations[index] and not terminations[index]),
                "episode": {"r": score, "l": steps, "t": 0.0},
            }
        self._begin_episodes(ended)
        return observations, rewards.astype(np.float32), dones, infos

    def by_phase(self) -> dict[str, list[float]]:
        """The returns of each phase. For evaluators."""
        return group_by_phase(self.episodes)

    def close(self) -> None:
        """Close the vector environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Read an attribute of sub-environments, see `SubEnvironment`.

        Args:
            attr_name: the attribute; `episodes` are those of each sub-environment, as with `PhaseReturns`.
            indices: the sub-environments, by default all.
        """
        if attr_name == "episodes":
            return [self._episodes_of[index] for index in self._get_indices(indices)]
        return [getattr(self.envs.envs[index], attr_name) for index in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set a knob that the schedule does not drive, or a part of the state.

        Args:
            attr_name: the attribute.
            value: its value.
            indices: the sub-environments, by default all.
        """
        for index in self._get_indices(indices):
            setattr(self.envs.envs[index], attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of sub-environments.

        Args:
            method_name: the method.
            *args: its arguments.
            indices: the sub-environments, by default all.
            **kwargs: its keyword arguments.
        """
        return [method(*args, **kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None) -> list[bool]:
        """Whether sub-environments are inside of a wrapper.

        Args:
            wrapper_class: the class; `Monitor` counts, since `info["episode"]` is present.
            indices: the sub-environments, by default all.
        """
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """A frame of each sub-environment, `None` without a render mode."""
        return self.envs.render() or [None] * self.num_envs

    def _begin_episodes(self, indices: Iterable[int]) -> None:
        for index in indices:
            env = self.envs.envs[index]
            self._begins[index] = (env.phase.id, env.tick)
            self._scores[index] = self._steps[index] = 0


def _info_of(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """The `info` of one sub-environment from Gymnasium's vector form."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if not key.startswith("_") and (mask is None or mask[index]):
            found[key] = _info_of(value, index) if isinstance(value, dict) else value[index]
    return found


def _bases(envs: vec_env.VecEnv) -> set[int]:
    """The innermost environments that are in this process."""
    base = envs.unwrapped
    return {id(env.unwrapped) for env in base.envs} if isinstance(base, vec_env.DummyVecEnv) else set()


class EvalCallback(callbacks.EvalCallback):  # type: ignore[misc, unused-ignore]
    """Evaluates at the tick and with the drifts of the training environment.

    Stable-Baselines3's own callback evaluates in an environment with a clock of its own, which is in another
    phase after a few evaluations. Here, before each evaluation, the evaluation environment gets the seed of the
    drifts and the tick of one training environment, and time is held there until the evaluation is over.

    The logger gets `eval/drift_tick` beside what the base class records, and the file of `log_path` the arrays
    `ticks` and `phases`. As in the base class, the episodes of one evaluation have different starts: a seed given to
    `eval_env` is that of the first, and later evaluations go on with the same generator.

    Args:
        eval_env: a single drifting environment, or a vector environment of Stable-Baselines3 whose single
            environments have a `HeldClock` inside.
        follow: the index of the training environment that gives the tick.
        **arguments: those of Stable-Baselines3's `EvalCallback`.

    Attributes:
        evaluations_phases: the phase of each evaluation, of the schedule of the evaluation environment.
        evaluations_ticks: its tick.

    Raises:
        ArgumentError: if the evaluation environment can't be held; when training begins, if it is one of the training
            environments, these do not drift, or there is none with the index `follow`.

    Warns:
        DriftWarning: once, if the training environments are in different phases, or the schedule of the evaluation
            environment is another one, or a training of more than a thousand steps ends before the first drift.

    Example:
        >>> from stable_baselines3 import PPO
        >>> cars = make_vec_env("DriftMountainCar-v0", n_envs=2, seed=0)
        >>> callback = EvalCallback(gym.make("DriftMountainCar-v0"), eval_freq=32, n_eval_episodes=1, verbose=0)
        >>> _ = PPO("MlpPolicy", cars, n_steps=32, batch_size=32, n_epochs=1, seed=0).learn(64, callback)
        >>> callback.evaluations_phases
        ['source']
    """

    def __init__(self, eval_env: gym.Env[Any, Any] | vec_env.VecEnv, *, follow: int = 0, **arguments: Any) -> None:
        check_integer("follow", follow)
        if not isinstance(eval_env, vec_env.VecEnv):
            check_single(eval_env, "eval_env")
            if not eval_env.has_wrapper_attr("drift_state"):
                raise ArgumentError(f"`eval_env` should have a `DriftWrapper` inside. Received {eval_env}")
            held = eval_env if eval_env.has_wrapper_attr("hold_at") else HeldClock(eval_env)
            eval_env = vec_env.DummyVecEnv([lambda: Monitor(held)])
        elif not all(eval_env.env_is_wrapped(HeldClock)):
            raise ArgumentError(
                f"`eval_env` should have a `HeldClock` in each environment. Received a {type(eval_env).__name__} "
                "without one; pass a single environment, or `DummyVecEnv([lambda: HeldClock(gym.make(...))])`"
            )
        super().__init__(eval_env, **arguments)
        self.evaluations_phases: list[str] = []
        self.evaluations_ticks: list[int] = []
        self._follow = follow
        self._warned = self._warned_of_schedule = self._warned_of_end = False

    def _init_callback(self) -> None:
        trained = self.training_env
        if self._follow >= trained.num_envs:
            raise ArgumentError(
                f"`follow` should be the index of a training environment, at most {trained.num_envs - 1}. "
                f"Received {self._follow}"
            )
        if not all(trained.env_method("has_wrapper_attr", "drift_state")):
            raise ArgumentError(
                "the training environments should each have a `DriftWrapper` inside, since evaluation follows their "
                "tick; without drifts use Stable-Baselines3's own `EvalCallback`"
            )
        if _bases(trained) & _bases(self.eval_env):
            raise ArgumentError(
                "`eval_env` should be another environment than that of training, whose clock and episodes it would "
                "change; make a second one with the same schedule"
            )
        with warnings.catch_warnings():  # the types differ on purpose: training is vectorized, evaluation is not
            warnings.filterwarnings("ignore", "Training and eval env are not of the same type")
            super()._init_callback()

    def _on_rollout_start(self) -> None:
        others = getattr(self.locals.get("callback"), "callbacks", [])
        if not self.n_calls and not any(isinstance(one, CheckpointCallback) for one in others):  # which warns itself
            warn_of_new_time(self.model)

    def _on_step(self) -> bool:
        if self.eval_freq > 0 and self.n_calls % self.eval_freq == 0:
            self._place()
        goes_on = bool(super()._on_step())
        if self.log_path is not None and self.eval_freq > 0 and self.n_calls % self.eval_freq == 0:
            with np.load(f"{self.log_path}.npz") as stored:
                content = dict(stored)
            np.savez(self.log_path, **content, ticks=self.evaluations_ticks, phases=self.evaluations_phases)
        return goes_on

    def _on_training_end(self) -> None:
        """Warn of a training that has ended before the first drift; `learn` does not close its environments."""
        super()._on_training_end()
        if self.num_timesteps <= MOST_TRIED or self._warned_of_end:
            return
        timelines = self.training_env.env_method("get_wrapper_attr", "timeline")
        states = self.training_env.env_method("get_wrapper_attr", "drift_state")
        firsts = [first_drift(timeline) for timeline in timelines]
        if all(state.tick < first < NEVER for state, first in zip(states, firsts, strict=True)):
            self._warned_of_end = True
            silence_ends(timelines[0].schedule)
            if not isinstance(self.training_env.unwrapped, VecEnv):  # those in processes of their own
                self.training_env.env_method("set_wrapper_attr", "warns_of_end", False)
            last = max(state.tick for state in states)
            warnings.warn(
                f"the training has ended at tick {last} of the schedule `{timelines[0].schedule.name}`, whose first "
                f"drift comes at tick {min(firsts)}: nothing has drifted; with `clock: step`, a tick is a step of one "
                f"copy, of which there are {len(states)}",
                DriftWarning,
                stacklevel=2,
            )

    def _place(self) -> None:
        """Give the evaluation environment the tick and the drifts of a training environment."""
        states = self.training_env.env_method("get_wrapper_attr", "drift_state")
        state = states[self._follow]
        (timeline,) = self.training_env.env_method("get_wrapper_attr", "timeline", indices=[self._follow])
        evaluated = self.eval_env.env_method("get_wrapper_attr", "timeline")[0]
        phase = state.phase
        if evaluated.schedule != timeline.schedule:
            phase = Timeline(evaluated.schedule, evaluated.table, timeline.seed).phase(state.tick).id
            if not self._warned_of_schedule:
                self._warned_of_schedule = True
                warnings.warn(
                    f"the evaluation environment has the schedule `{evaluated.schedule.name}`, that of training "
                    f"has `{timeline.schedule.name}`; pass `schedule=` to both",
                    DriftWarning,
                    stacklevel=2,
                )
        phases = {other.phase for other in states}
        if len(phases) > 1 and not self._warned:
            self._warned = True
            warnings.warn(
                f"the training environments are in the phases {', '.join(sorted(phases))}; "
                f"evaluation follows environment {self._follow}",
                DriftWarning,
                stacklevel=2,
            )
        for hold_at in self.eval_env.env_method("get_wrapper_attr", "hold_at"):
            hold_at(state.tick, timeline.seed)
        self.evaluations_phases.append(phase)
        self.evaluations_ticks.append(state.tick)
        self.logger.record("eval/drift_tick", state.tick)
