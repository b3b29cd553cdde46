"""Native vector environments: time, resets, limits and `info` of all sub-environments; no dynamics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import TimeLimit

from drift_envs.checks import LARGEST_COUNT, check_flag, check_integer, is_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.schedule import Schedule, Timeline
from drift_envs.vector.clocks import Clocks
from drift_envs.vector.dynamics import EpisodeDraws, StepDraws, refuse_poison
from drift_envs.vector.knob_pool import KnobPool
from drift_envs.vector.resumable import ResumableVectorEnv
from drift_envs.vector.sub_environment import (
    DriftInfos,
    SubEnvironment,
    final_infos,
    merge_infos,
)
from drift_envs.wrappers.clock import (
    MOST_TRIED,
    NO_JUMP,
    ClockJump,
    TimeWarnings,
    first_drift,
    read_options,
    watch_end,
)
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.internal import write_plain_arguments

MOST_READ = 64
"""Sub-environments whose random times are read for a warning."""


def make_vector(
    build: Callable[..., gym.Env[Any, Any]],
    native: type[DriftVectorEnv],
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    share_timeline: bool = False,
    **arguments: Any,
) -> VectorEnv[Any, Any, Any]:
    """Build a vector environment.

    Text observations, frames with an overlay or a window, and knobs of the wrapper (such as
    `action_delay`) have no vectorized form: with these the result is a `SyncVectorEnv`.

    Args:
        build: builds a single environment.
        native: the class of the native vector environment.
        num_envs: the number of sub-environments, at least 1.
        max_episode_steps: the step limit of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all sub-environments follow the timeline of the first; the native form alone can.
        **arguments: the arguments of the single environment.

    Raises:
        ArgumentError: an argument breaks a rule.
    """
    autoreset_mode = _check_arguments(num_envs, max_episode_steps, autoreset_mode, share_timeline)
    single_env = build(**arguments)
    draws_no_window = single_env.render_mode in (None, "rgb_array")
    if isinstance(single_env, DriftWrapper) and single_env.env is single_env.unwrapped and draws_no_window:
        return native(
            single_env, num_envs, max_episode_steps, autoreset_mode, share_timeline, arguments.get("notify", "none")
        )
    single_env.close()
    if share_timeline:
        raise ArgumentError(
            "`share_timeline` should be False with text, an overlay, a window or knobs of the wrapper, which have no "
            "vectorized form. Received True"
        )

    def build_with_limit() -> gym.Env[Any, Any]:
        env = build(**arguments)
        return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)

    return SyncVectorEnv([build_with_limit] * num_envs, autoreset_mode=autoreset_mode)


def _check_arguments(
    num_envs: int, max_episode_steps: int | None, autoreset_mode: str | AutoresetMode, share_timeline: bool
) -> AutoresetMode:
    """Refuse wrong arguments of a vector environment; gives its mode.

    Raises:
        ArgumentError: an argument breaks a rule.
    """
    check_integer("num_envs", num_envs, 1, LARGEST_COUNT)
    check_integer("max_episode_steps", max_episode_steps, 1, LARGEST_COUNT, optional=True)
    check_flag("share_timeline", share_timeline)
    modes = [mode.value for mode in AutoresetMode]
    if not isinstance(autoreset_mode, AutoresetMode) and autoreset_mode not in modes:
        raise ArgumentError(f"`autoreset_mode` should be one of {modes}. Received {autoreset_mode!r}")
    return AutoresetMode(autoreset_mode)


class DriftVectorEnv(ResumableVectorEnv):
    """N copies of one drifting environment, computed together.

    Each sub-environment has its own clock and its own timeline; the timeline of sub-environment `i` has the
    seed `seed + i`, as in `SyncVectorEnv`. One random generator is drawn in rows of N numbers, of which
    column `i` belongs to sub-environment `i`: a run is reproducible for a seed and a number of
    sub-environments, and the random streams are independent.

    | option of `reset` | meaning |
    |---|---|
    | `reset_mask` | booleans of shape `(N,)`: the sub-environments that start an episode |
    | `drift_clock`, `drift_tick`, `drift_phase` | as in `DriftWrapper`, for all that start an episode |

    A seed together with a mask rewinds the schedules of the sub-environments in the mask; the state of the
    shared generator does not change.

    Args:
        single_env: the single environment of which all sub-environments are copies.
        num_envs: the number of sub-environments, at least 1.
        max_episode_steps: the step limit of an episode, at least 1, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep`, `Disabled`, or Gymnasium's enumeration of these.
        share_timeline: whether all sub-environments follow the timeline of the first.
        notify: the contents of `info["drift"]`: `none`, `change` or `full`.

    Raises:
        ArgumentError: if an argument is invalid.
    """

    autoreset_mode: AutoresetMode
    warns_of_end: bool = True
    """As in `DriftWrapper`."""

    _spec: EnvSpec | None = None
    _begun: int = 0  # the count at the last rewind
    _is_reset: bool = False
    _is_torn: bool = False  # while a step or reset changes the state, and after one that did not end

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Let an assignment to the name of a knob, `envs.slip = 0.5`, do what `set_attr` does; it would do nothing."""
        super().__init_subclass__(**arguments)
        for name in cls.kind.knobs if "kind" in vars(cls) else ():
            setattr(cls, name, _knob(name))

    def __init__(
        self,
        single_env: DriftWrapper,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        share_timeline: bool = False,
        notify: str = "none",
    ) -> None:
        self.autoreset_mode = _check_arguments(num_envs, max_episode_steps, autoreset_mode, share_timeline)
        self.num_envs, self.max_episode_steps = int(num_envs), max_episode_steps
        self.render_mode = single_env.render_mode
        self.metadata = {**single_env.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_env, self.schedule = single_env, single_env.schedule
        self.single_observation_space = single_env.observation_space
        self.single_action_space = single_env.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        if not isinstance(single_env.unwrapped, self.kind):
            raise ArgumentError(f"`single_env` should be a drifting `{self.kind.__name__}`. Received {single_env}")
        schedule = single_env.schedule or Schedule(version=1, name="no-drift")
        self.driven = frozenset(single_env.timeline.names)
        poison = getattr(single_env.unwrapped, "poison_after", 0)
        refuse_poison(f"the schedule {schedule.name}" if "poison_after" in self.driven else poison)
        self._shares_timeline = bool(share_timeline)
        self.pool = KnobPool(schedule, single_env.knob_table, self._make_columns(), self._encode, share_timeline)
        self.clocks = Clocks(
            self.pool,
            max_episode_steps,
            self.autoreset_mode is AutoresetMode.NEXT_STEP,
            self._update_derived if self._has_derived_arrays() else None,
        )
        self._time_warnings = TimeWarnings()
        watch_end(self)
        self._ended = np.zeros(self.num_envs, bool)
        self._has_ended = False
        self._start_draws = EpisodeDraws(0, self.num_envs)
        self._response_draws = StepDraws(self.num_envs)
        # Columns of random numbers are drawn if they may ever be needed, so that the streams stay aligned.
        self._has_false_responses = "transient" in self.driven or bool(self.pool.columns["transient"].any())
        self._all_mask = np.ones(self.num_envs, bool)
        self.envs = tuple(SubEnvironment(self, index) for index in range(self.num_envs))
        self._drift_infos: DriftInfos | None = None
        if notify != "none":
            self._drift_infos = DriftInfos(self.pool.columns, self.envs, notify, self._add_info)
        self._make_arrays()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | Sequence[dict[str, Any] | None] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all sub-environments, or in those of a mask.

        Args:
            seed: the seed of the generator; it also rewinds the schedules, with the seed `seed + i` for
                sub-environment `i`. A list has one seed for each, where `None` does not rewind.
            options: see the table above; others are options of the environment. A list has a dictionary, or `None`,
                for each sub-environment; it has no `reset_mask`.

        Returns:
            Observations of all sub-environments, and `info` in Gymnasium's vector form.

        Raises:
            ArgumentError: if the seed or an option is invalid; the environment has not changed then.
            StateError: if an earlier step or reset was interrupted; the environment is closed then.

        Warns:
            DriftWarning: once, if a seed rewinds a schedule after ticks have passed, or ten times before its first
                drift.
        """
        self._refuse_torn()
        own_seed = None if self._is_reset else self._generator_seed()
        request = read_request(seed, options, self.num_envs, own_seed, self._shares_timeline, self._timeline_of)
        for own in request.options if isinstance(request.options, list) else [request.options]:
            self._check_options(own)
        indices, seeds = request.indices, request.seeds
        if seeds and self._is_reset and request.jumps == NO_JUMP and not self._time_warnings.is_over:
            index, last = self._furthest(seeds)
            self._time_warnings.rewind(last, self.steps, self.pool.timeline(index), 2)
        if self.clocks.moves:
            request = self._with_moves(request)
        self._is_torn = True
        if request.entropy is not None:
            super().reset(seed=request.entropy)
        if request.entropy is not None or not self._is_reset:
            self._restart_draws()
        rewinding = np.fromiter(seeds, np.int64, len(seeds))
        if len(rewinding):
            self._begun = self.clocks.count
            self.pool.reseed(rewinding, list(seeds.values()))
            self.clocks.rewind(rewinding)
        if isinstance(request.jumps, list):
            for some, jump in self.clocks.next_jumps(indices, request.jumps):
                self.clocks.start_at(some, jump)
        else:
            self.clocks.start_at(indices, request.jumps)
        mask = np.zeros(self.num_envs, bool)
        mask[indices] = True
        self._is_reset = True
        self._ended &= ~mask
        self._has_ended = bool(self._ended.any())
        if isinstance(request.options, dict):
            self._start_episodes(mask, request.options)
        else:
            for index, own in zip(indices.tolist(), request.options, strict=True):
                self._start_episodes(np.arange(self.num_envs) == index, own)
        infos = self._reset_infos(mask)
        if self._drift_infos is not None:
            self._drift_infos.rewind(rewinding)
            infos.update(self._drift_infos.collect(mask))
        observations = self._observe()
        self._is_torn = False
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all sub-environments; those whose episode has ended are reset according to `autoreset_mode`.

        Args:
            actions: an element of `action_space`.

        Returns:
            Observations, rewards (float64), terminations and truncations (shape `(N,)`), and `info`.

        Raises:
            ArgumentError: if an action is invalid.
            StateError: before the first `reset`, after the end of an episode with autoreset disabled, or if an earlier
                step or reset was interrupted, as by Ctrl-C; the environment is closed then.
        """
        self._refuse_torn()
        resetting = self._ended if self._has_ended else None
        self._check_step(resetting)
        checked, clocks = self._check_actions(actions), self.clocks
        self._is_torn = True
        if clocks.is_moving:
            clocks.move()
        if resetting is not None:
            clocks.start_next(resetting, in_reset_step=True)
        observations, rewards, terminations, infos = self._transition(checked, resetting)
        truncations = clocks.tick()
        if truncations is None:
            truncations = np.zeros(self.num_envs, bool)
            np.copyto(self._ended, terminations)
        else:
            np.logical_or(terminations, truncations, out=self._ended)
            self._mark_truncated(truncations)
        self._has_ended = bool(np.count_nonzero(self._ended))
        if self._drift_infos is not None:
            infos.update(self._drift_infos.collect(self._all_mask))
        if self._has_ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            last = final_infos(infos, observations, self._ended)
            clocks.start_next(self._ended)
            self._start_episodes(self._ended, {})
            observations = self._observe()
            reset_infos = self._reset_infos(self._ended)
            if self._drift_infos is not None:
                reset_infos.update(self._drift_infos.collect(self._ended))
            infos = {**merge_infos(infos, reset_infos, self._ended), **last}
            self._ended, self._has_ended = np.zeros(self.num_envs, bool), False
        self._is_torn = False
        return observations, rewards, terminations, truncations, infos

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """What `gym.make_vec` was given, as plain data."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = write_plain_arguments(spec)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the single environment, which renders the frames.

        Args:
            **kwargs: not used.

        Warns:
            DriftWarning: if it was stepped, and closed before the first drift of any sub-environment.
        """
        self.single_env.close()
        self.warn_of_end()

    def warn_of_end(self, least: int = MOST_TRIED) -> bool:
        """Warn if nothing has drifted in more steps than `least`; returns whether the warning was given."""
        if not (self.warns_of_end and self._is_reset and self.pool.can_change):
            return False
        index, last = self._furthest(range(self.num_envs))
        return self._time_warnings.close(last, self.steps, self.pool.timeline(index), 4, least)

    @property
    def steps(self) -> int:
        """The calls of `step` since the last rewind."""
        return self.clocks.count - self._begun

    def _refuse_torn(self) -> None:
        """Close the environment if a step or reset has not ended: some of its arrays have changed and some have not."""
        if self._is_torn:
            self.close()
            raise StateError(
                "a `step` or `reset` was interrupted, so that the sub-environments are in no valid state; the "
                "environment is closed, make a new one"
            )

    def _check_step(self, ended: np.ndarray | None) -> None:
        """Raise an error if no step is possible.

        Args:
            ended: whether the episode has ended, booleans of shape `(N,)`; `None` if none has.
        """
        if not self._is_reset:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if ended is not None and self.autoreset_mode is AutoresetMode.DISABLED:
            raise StateError(
                f"sub-environment {int(ended.argmax())} has ended its episode and autoreset is disabled; "
                "call `reset(options={'reset_mask': terminations | truncations})`"
            )

    def _timeline_of(self, index: int, seed: int | None) -> Timeline:
        """The timeline of a sub-environment, or that of another seed if one is given."""
        return self.pool.timeline(index) if seed is None else Timeline(self.pool.schedule, self.pool.table, seed)

    def _with_moves(self, request: ResetRequest) -> ResetRequest:
        """The request with one clock option for each sub-environment, whose moves of time are possible."""
        indices, jumps = request.indices.tolist(), request.jumps
        for index in indices:
            if (move := self.clocks.moves.get(index)) is not None:
                move.jump(self._timeline_of(index, request.seeds.get(index)).first_tick)
        return request._replace(jumps=jumps if isinstance(jumps, list) else [jumps] * len(indices))

    def _furthest(self, indices: Iterable[int]) -> tuple[int, int]:
        """The sub-environment whose time has come closest to its first drift since the last rewind, and its tick."""
        lasts = {index: self.clocks.visited(index).last for index in indices}
        if not any(drift.rate or drift.jitter for drift in self.pool.schedule.drifts):  # one time for all
            nearest = max(lasts, key=lasts.__getitem__)
            return nearest, lasts[nearest]
        some = list(lasts)[:MOST_READ]
        nearest = min(some, key=lambda index: first_drift(self.pool.timeline(index)) - lasts[index])
        return nearest, lasts[nearest]

    def _generator_seed(self) -> int:
        """The seed of the generator, or a new one if it is not known."""
        own = self.np_random_seed
        if own is None or own < 0:  # `np_random` was set to a generator, whose seed is not known
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return int(own)

    def _restart_draws(self) -> None:
        """Discard all numbers drawn ahead, after a change of the generator."""
        self._start_draws = EpisodeDraws(self._generator_seed(), self.num_envs)
        self._response_draws.restart()


def _knob(name: str) -> property:
    """The values of a knob in all copies."""
    return property(
        lambda envs: envs.get_attr(name),
        lambda envs, values: envs.set_attr(name, values),
        doc=f"The knob `{name}` of each copy; set as by `set_attr`.",
    )


class ResetRequest(NamedTuple):
    """The parsed arguments of a reset.

    Args:
        indices: the sub-environments that start an episode, shape `(K,)`.
        seeds: the seed of each timeline that is rewound, by sub-environment.
        entropy: the seed of the generator, `None` to keep its state.
        jumps: the clock options: one for all, or one for each of `indices`.
        options: the options of the environment: one for all, or one for each of `indices`.
    """

    indices: np.ndarray
    seeds: dict[int, int]
    entropy: int | None
    jumps: ClockJump | list[ClockJump]
    options: dict[str, Any] | list[dict[str, Any]]


def read_request(
    seed: int | Sequence[int | None] | None,
    options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
    number: int,
    own_seed: int | None,
    is_shared: bool,
    timeline: Callable[[int, int | None], Timeline],
) -> ResetRequest:
    """Parse and check the arguments of a reset.

    Args:
        seed: one seed, one for each sub-environment, or `None`.
        options: the options of `reset`.
        number: the number of sub-environments.
        own_seed: at the first reset that of the generator, then `None`.
        is_shared: whether all sub-environments follow the timeline of the first.
        timeline: returns the timeline of a sub-environment, with another seed if one is given.

    Raises:
        ArgumentError: if a seed or an option is invalid.
        StateError: if the first reset has a mask.
    """
    each = _read_options(options, number)
    left = each[0]
    is_reset = own_seed is None
    mask = left.pop("reset_mask", None) if len(each) == 1 else None
    indices = np.arange(number) if mask is None else _read_mask(mask, number)
    if not is_reset and len(indices) < number:
        raise StateError("the first `reset` should have no `reset_mask`: all sub-environments have to start")
    given = _read_seeds(seed, number)
    clocks = [own.get("drift_clock") for own in each]
    goes_on = [is_reset and isinstance(clock, str) and clock == "continue" for clock in clocks]
    seeds: dict[int, int] = {}
    if seed is not None and len(each) > 1:
        seeds = {index: own for index, own in enumerate(given) if own is not None and not goes_on[index]}
    elif seed is not None and not goes_on[0]:
        seeds = {index: own for index in indices.tolist() if (own := given[index]) is not None}
    entropy = None
    if mask is None and seed is not None and any(own is not None for own in given):
        drawn = np.random.SeedSequence([own or 0 for own in given]).generate_state(1, np.uint64)
        entropy = int(seed) if is_integer(seed) else int(drawn[0])
    if own_seed is not None:  # sub-environments without a seed derive it from that of the generator
        base = own_seed if entropy is None else entropy
        seeds = {index: seeds.get(index, base + index) for index in range(number)}
    if is_shared and seeds:
        if len(seeds) < number:
            raise ArgumentError(
                f"`seed` should rewind all sub-environments or none, since they share a timeline. Received seeds of "
                f"{len(seeds)} of {number}"
            )
        seeds = dict.fromkeys(seeds, seeds[0])
    if len(each) == 1 and left.get("drift_phase") is None:
        jump, rest = read_options(left, lambda phase, argument: 0)
        return ResetRequest(indices, seeds, entropy, jump, rest)
    read = [
        read_options(each[index % len(each)], timeline(index, seeds.get(index)).first_tick)
        for index in indices.tolist()
    ]
    options_of = [rest for _, rest in read] if len(each) > 1 else read[0][1]
    return ResetRequest(indices, seeds, entropy, [jump for jump, _ in read], options_of)


def _read_options(options: Any, number: int) -> list[dict[str, Any]]:
    """The options of all sub-environments, or those of each."""
    if isinstance(options, (Mapping, NoneType)):
        return [dict(options or {})]
    if not isinstance(options, (list, tuple)) or not all(isinstance(one, (Mapping, NoneType)) for one in options):
        raise ArgumentError(f"`options` should be a dictionary, None, or a list of such. Received {options!r}")
    if len(options) != number:
        raise ArgumentError(
            f"`options` should have one dictionary for each of {number} sub-environments. Received {len(options)}"
        )
    if any("reset_mask" in (one or {}) for one in options):
        raise ArgumentError("`options` should have no `reset_mask` where each sub-environment has its own")
    return [dict(one or {}) for one in options]


def _read_mask(mask: Any, number: int) -> np.ndarray:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (number,) or not mask.any():
        raise ArgumentError(
            f"`reset_mask` should be an array of booleans of shape ({number},), at least one of them true. "
            f"Received {mask!r}"
        )
    return mask.nonzero()[0]


def _read_seeds(seed: Any, number: int) -> list[int | None]:
    if seed is None:
        return [None] * number
    if is_integer(seed) and seed >= 0:
        return [int(seed) + index for index in range(number)]
    if isinstance(seed, (list, tuple)):
        if len(seed) != number:
            raise ArgumentError(
                f"`seed` should have one seed for each of {number} sub-environments. Received {len(seed)}"
            )
        if all(own is None or (is_integer(own) and own >= 0) for own in seed):
            return [None if own is None else int(own) for own in seed]
    raise ArgumentError(f"`seed` should be a whole number of at least 0, or a list of such. Received {seed!r}")
