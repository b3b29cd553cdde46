"""A `VectorEnv` over the functional form: `gym.make_vec(id, ..., backend="jax")`.

* `FunctionalVectorEnv` - the vector environment
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.envs.classic_control import utils
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from drift_envs.errors import ArgumentError, StateError
from drift_envs.functional.base import FunctionalEnv, load_all
from drift_envs.functional.batch import Batch, ResetOrders
from drift_envs.functional.compiler import compile_schedules
from drift_envs.functional.drift_carry import DriftCarry
from drift_envs.functional.drift_state import name_values
from drift_envs.knobs import Value
from drift_envs.schedule import Phase, Timeline
from drift_envs.vector.checked import CheckedVectorEnv
from drift_envs.vector.dynamics import IntegerActions, check_forces
from drift_envs.vector.infos import DriftInfos, final_infos, merge_infos
from drift_envs.vector.knob_pool import draws_values
from drift_envs.vector.reset_request import ResetRequest, read_request
from drift_envs.vector.sub_environment import SubEnvironment, SubEnvironmentAccess, VectorRenderer
from drift_envs.wrappers.clock import IdleRewinds
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.records import DriftState, VisitedTicks

_NO_TICK = -1
_RESET_STREAM = 2**31 - 1  # folded into the key for the draws of `reset`; steps fold in their number


class FunctionalVectorEnv(SubEnvironmentAccess, CheckedVectorEnv):
    """N copies of one drifting environment, stepped by compiled code in double precision.

    It has the interface of `DriftVectorEnv`: autoreset modes, options of `reset`, `info`, attributes and frames.
    Schedules without random parts have the timeline of the seed; random parts come from `jax.random` and have the
    same laws, but other numbers than `Timeline` draws, so that `timeline`, `drift_log`, `oracle` and phases raise an
    error for them. Knobs can't be set from outside.

    Args:
        single_env: the single environment of which all sub-environments are copies.
        functional: its functional form.
        num_envs: the number of sub-environments, at least 1.
        max_episode_steps: the step limit of an episode, at least 1, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep`, `Disabled`, or Gymnasium's enumeration of these.
        share_timeline: whether all sub-environments follow the timeline of the first.
        notify: the contents of `info["drift"]`: `none`, `change` or `full`.

    Example:
        >>> import drift_envs, gymnasium as gym
        >>> lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=3, backend="jax")
        >>> lakes.reset(seed=0)
        (array([0, 0, 0]), {})
        >>> lakes.step(np.array([0, 1, 1]))[0].tolist()
        [0, 6, 6]
    """

    def __init__(
        self,
        single_env: DriftWrapper,
        functional: FunctionalEnv,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        share_timeline: bool = False,
        notify: str = "none",
    ) -> None:
        self._set_up(single_env, num_envs, max_episode_steps, autoreset_mode)
        self.functional = functional
        (self._loaded,) = load_all([self.schedule], functional.knobs)
        self._driven = frozenset(single_env.timeline.names)
        self._is_shared = share_timeline
        self._draws_values = draws_values(self._loaded, functional.knobs)
        self._is_lake = isinstance(self.single_action_space, Discrete) and self.single_action_space.n == 4
        self._seeds = np.zeros(self.num_envs, np.int64)
        self._set_params()
        features = self._params.drift.features
        self._is_random = features.random or features.gradual or features.walk or features.choice
        self._integer_actions = (
            IntegerActions(self.num_envs, int(self.single_action_space.n))
            if isinstance(self.single_action_space, Discrete)
            else None
        )
        self._count = 0
        self._ended = np.zeros(self.num_envs, bool)
        self._episodes = np.full(self.num_envs, -1, np.int64)
        self._visits = [VisitedTicks() for _ in range(self.num_envs)]
        self._since = np.zeros(self.num_envs, np.int64)
        self._last_actions = np.full(self.num_envs, -1, np.int64)
        self._idle_rewinds = IdleRewinds(self._loaded.name)
        self.envs = tuple(_FunctionalSubEnvironment(self, index) for index in range(self.num_envs))
        self._renderer = VectorRenderer(self, self.envs)  # type: ignore[arg-type]
        self._knobs: dict[str, np.ndarray] | None = None
        self._notify = notify
        self._drift_infos: DriftInfos | None = None
        self._columns = {name: np.zeros(self.num_envs) for name in self._names()}
        if notify != "none":
            self._drift_infos = DriftInfos(self._columns, self.envs, notify, self._add_info)
        shows_prob = getattr(single_env.unwrapped, "shows_prob", False)
        self._batch = Batch(functional, self.num_envs, self.autoreset_mode, shows_prob)

    # the interface of Gymnasium

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all sub-environments, or in those of a mask; see `DriftVectorEnv.reset`.

        Args:
            seed: one seed, of which sub-environment `i` takes `seed + i`, or one for each.
            options: `reset_mask`, `drift_clock`, `drift_tick`, `drift_phase`; of cars `low` and `high`.

        Raises:
            ArgumentError: if the seed or an option is invalid; the environment has not changed then.

        Warns:
            DriftWarning: at the tenth rewind if no sub-environment has reached its first change.
        """
        request = read_request(seed, options, self.num_envs, self._is_reset, self._timeline_of)
        bounds = None if self._is_lake else utils.maybe_parse_reset_bounds(request.options, -0.6, -0.4)
        if request.entropy is not None:
            super().reset(seed=request.entropy)
        if request.entropy is not None or not self._is_reset:
            self._count = 0
        seeds = dict(request.seeds)
        if not self._is_reset:
            own = self.np_random_seed
            base = int(np.random.SeedSequence().generate_state(1)[0]) if own is None or own < 0 else int(own) % 2**31
            self._stream = jax.random.key(base)
            seeds = {index: seeds.get(index, base + index) for index in range(self.num_envs)}
        elif request.entropy is not None:
            self._stream = jax.random.key(request.entropy % 2**31)
        rewinds = np.zeros(self.num_envs, bool)
        rewinds[list(seeds)] = True
        if self._is_reset and seeds and not self._idle_rewinds.is_over and not self._is_random and self._driven:
            self._idle_rewinds.count(any(map(self._has_changed, seeds)), stacklevel=2)
        for index, own in seeds.items():
            self._seeds[index] = next(iter(seeds.values())) if self._is_shared else own
        if seeds and self._draws_values:
            self._set_params()
        mask = np.zeros(self.num_envs, bool)
        mask[request.indices] = True
        self._begin(request, mask, rewinds, bounds)
        infos = self._reset_infos(mask)
        if self._drift_infos is not None:
            self._drift_infos.rewind(rewinds.nonzero()[0])
            infos |= self._drift_infos.collect(mask)
        return self._observations.copy(), infos

    def _begin(
        self, request: ResetRequest, mask: np.ndarray, rewinds: np.ndarray, bounds: tuple[float, float] | None
    ) -> None:
        """Begin the episodes of a request."""
        jumps = request.jumps if isinstance(request.jumps, list) else [request.jumps] * len(request.indices)
        ticks, holds = np.full(self.num_envs, _NO_TICK, np.int32), np.zeros(self.num_envs, bool)
        for index, jump in zip(request.indices.tolist(), jumps, strict=True):
            ticks[index] = _NO_TICK if jump.tick is None else jump.tick
            holds[index] = jump.hold
        present = None if not self._is_reset else self._shown_ticks()
        with jax.enable_x64(True):
            keys = jax.vmap(jax.random.PRNGKey)(jnp.asarray(self._seeds % 2**31))
            orders = ResetOrders(mask, rewinds | (not self._is_reset), self._ended, holds, ticks, keys)
            if not self._is_reset:
                axis = self.functional.axis(self._params)
                self._states = jax.jit(jax.vmap(self.functional.reset, in_axes=(0, axis)))(keys, self._params)[1]
                self._shown, self._held = self._states.drift, None
            key = jax.random.fold_in(jax.random.fold_in(self._stream, _RESET_STREAM), self._count)
            found = self._batch.reset(self._params, self._states, self._shown, self._held, orders, key)
            observations, self._states, self._shown, held = found
            if bounds is not None and request.options.keys() & {"low", "high"}:
                low, high = bounds
                world = self._states.world
                drawn = low + (high - low) * (world.position + 0.6) / 0.2
                position = jnp.where(mask, drawn.astype(jnp.float32), world.position).astype(world.position.dtype)
                self._states = self._states._replace(world=world._replace(position=position))
                observations = observations.at[:, 0].set(position.astype(observations.dtype))
        self._count += 1
        self._held = held if np.asarray(held.mask).any() else None
        self._observations = np.array(observations, self.single_observation_space.dtype)
        self._ended = self._ended & ~mask
        self._is_reset = True
        self._episodes[rewinds] = -1
        self._episodes[mask] += 1
        self._last_actions[mask] = -1
        self._record(mask, rewinds, present)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all sub-environments; those whose episode has ended are reset according to `autoreset_mode`.

        Args:
            actions: an element of `action_space`.

        Returns:
            Observations, rewards (float64), terminations and truncations (shape `(N,)`), and `info`.

        Raises:
            ArgumentError: if an action is invalid.
            StateError: before the first `reset`, or after the end of an episode with autoreset disabled.
        """
        resetting = self._ended if self._ended.any() else None
        self._check_step(resetting)
        checked = self._check_actions(actions)
        present = self._shown_ticks() if self._keeps_visits() else None
        with jax.enable_x64(True):
            key = jax.random.fold_in(self._stream, self._count)
            found = self._batch.step(self._params, self._states, self._held, resetting, checked, key)
        used = self._states.drift
        observations, self._states, self._shown, *others, last, prob = found
        self._count += 1
        rewards, terminations, truncations = (np.array(each) for each in others)
        self._observations = np.array(observations, self.single_observation_space.dtype)
        ended = terminations | truncations
        begun = ended if self.autoreset_mode is AutoresetMode.SAME_STEP else resetting
        if self._integer_actions is not None:
            self._last_actions = checked.copy()
        if begun is not None:
            self._episodes[begun] += 1
            self._last_actions[begun] = -1
        if self._held is not None:
            left = self._held.mask & ~ended
            self._held = self._held._replace(mask=left) if np.asarray(left).any() else None
        self._knobs = None
        if present is not None:
            self._record(
                np.zeros(self.num_envs, bool) if begun is None else begun, np.zeros(self.num_envs, bool), present
            )
        infos: dict[str, Any] = {} if prob is None else _prob_infos(np.array(prob), np.ones(self.num_envs, bool))
        is_same = self.autoreset_mode is AutoresetMode.SAME_STEP
        if is_same and ended.any():
            infos = self._same_step_infos(infos, np.array(last, self._observations.dtype), ended, used)
        elif self._drift_infos is not None:
            self._fill_columns()
            infos |= self._drift_infos.collect(np.ones(self.num_envs, bool))
        self._ended = np.zeros(self.num_envs, bool) if is_same else ended
        return self._observations.copy(), rewards, terminations, truncations, infos

    def _same_step_infos(
        self, infos: dict[str, Any], last: np.ndarray, ended: np.ndarray, used: DriftCarry
    ) -> dict[str, Any]:
        """`info` of a step with the drift `used`, in which episodes have ended and begun."""
        others = self._reset_infos(ended)
        if self._drift_infos is not None:
            begun, self._shown = self._shown, used
            self._fill_columns()
            infos |= self._drift_infos.collect(np.ones(self.num_envs, bool))
            self._shown = begun
            self._fill_columns()
            others |= self._drift_infos.collect(ended)
        return {**merge_infos(infos, others, ended), **final_infos(infos, last, ended)}

    def _reset_infos(self, mask: np.ndarray) -> dict[str, Any]:
        """The `info` of the environment's own `reset` for the sub-environments of a mask."""
        shows = getattr(self.single_env.unwrapped, "shows_prob", False)
        return _prob_infos(np.where(mask, 1.0, 0.0), mask.copy()) if shows else {}

    # for `SubEnvironment` and `VectorRenderer`

    @property
    def state_names(self) -> tuple[str, ...]:
        """The attributes that hold the state of an episode."""
        return ("s", "lastaction") if self._is_lake else ("state",)

    def read_knob(self, index: int, name: str) -> Value:
        """The value of a knob in a sub-environment."""
        if self._knobs is None:
            with jax.enable_x64(True):
                shown = name_values(self._params.drift, self._shown)
                self._knobs = {each: np.asarray(values) for each, values in shown.items()}
        found = self._knobs[name][index]
        if not self.functional.knobs[name].is_numeric:
            objects = self._objects[index if len(self._objects) > 1 else 0]
            return objects[name][int(found)]
        return int(found) if self.functional.knobs[name].kind == "integer" else float(found)

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Knobs come from the schedule alone.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(
            f'`{name}` should be set by the schedule with `backend="jax"`, whose knobs are compiled. Received {value!r}'
        )

    def read_state(self, index: int, name: str) -> Any:
        """A part of the state of an episode, one of `state_names`."""
        if name == "lastaction":
            return None if self._last_actions[index] < 0 else int(self._last_actions[index])
        world = self._states.world
        return int(world.tile[index]) if self._is_lake else (float(world.position[index]), float(world.velocity[index]))

    def write_state(self, index: int, name: str, value: Any) -> None:
        """Set a part of the state of an episode, in the form of `read_state`.

        Raises:
            ArgumentError: if it is not in the observation space.
        """
        space = self.single_observation_space
        given = int(value) if self._is_lake else np.array(value, np.float32)
        if name == "lastaction" or not space.contains(given):
            raise ArgumentError(f"`{name}` should be a state in {space}. Received {value!r}")
        world: Any = self._states.world
        with jax.enable_x64(True):
            if self._is_lake:
                world = world._replace(tile=world.tile.at[index].set(given))
            else:
                parts = zip(world, value, strict=True)
                world = type(world)(*(part.at[index].set(number) for part, number in parts))
        self._states = self._states._replace(world=world)

    def pose(self, env: Any, index: int) -> None:
        """Copy the state of a sub-environment to the innermost single environment."""
        for name in self.state_names:
            setattr(env, name, self.read_state(index, name))

    def drift_state_of(self, index: int, phase: str) -> DriftState:
        """Phase, tick, episode, step and knob values of a sub-environment."""
        step = int(self._states.time[index])
        knobs = {name: self.read_knob(index, name) for name in self.functional.knobs}
        return DriftState(phase, self.tick_of(index), max(int(self._episodes[index]), 0), step, knobs)

    def tick_of(self, index: int) -> int:
        """The tick of the last transition of a sub-environment, or of the next one after a reset."""
        return int(self._shown.tick[index])

    def timeline_of(self, index: int) -> Timeline:
        """The timeline of a sub-environment.

        Raises:
            StateError: if the schedule has random parts, which are drawn from other numbers here.
        """
        if self._is_random:
            raise StateError(
                f'the schedule `{self._loaded.name}` has random parts, which `backend="jax"` draws from `jax.random`: '
                "there is no timeline, drift log, oracle or phase"
            )
        return Timeline(self._loaded, self.functional.knobs, int(self._seeds[index]))

    def visited_of(self, index: int) -> VisitedTicks:
        """The ticks that a sub-environment has visited since its last rewind."""
        visited = VisitedTicks(list(self._visits[index].spans))
        if self._episodes[index] >= 0:
            visited.add(int(self._since[index]), max(self.tick_of(index), int(self._since[index])))
        return visited

    # the rest

    def _set_params(self) -> None:
        """Compile the schedule, for each seed where it draws values from the seed."""
        own = self._draws_values and not self._is_shared
        seeds = [int(seed) for seed in (self._seeds if own else self._seeds[:1])]
        limit = 2**30 if self.max_episode_steps is None else self.max_episode_steps
        with jax.enable_x64(True):
            params = self.functional.params_of([self._loaded] * len(seeds), max_steps=limit, seed=seeds)
            self._params = params if own else jax.tree.map(lambda part: part[0], params)
            self._objects = compile_schedules([self._loaded] * len(seeds), self.functional.knobs, seeds)[1]
        self._knobs = None

    def _names(self) -> tuple[str, ...]:
        drift = self._params.drift
        return (*drift.names, *drift.object_names)

    def _fill_columns(self) -> None:
        self._knobs = None
        with jax.enable_x64(True):
            shown = name_values(self._params.drift, self._shown)
        for name, column in self._columns.items():
            np.copyto(column, np.asarray(shown[name]))

    def _check_actions(self, actions: Any) -> np.ndarray:
        if self._integer_actions is not None:
            return self._integer_actions.check(actions)
        return check_forces(actions, self.num_envs)[0]

    def _timeline_of(self, index: int, seed: int | None) -> Timeline:
        """The timeline of a sub-environment or of another seed, for the phases of reset options."""
        if seed is None:
            return self.timeline_of(index)
        self.timeline_of(index)  # refuses random parts
        return Timeline(self._loaded, self.functional.knobs, seed)

    def _has_changed(self, index: int) -> bool:
        return self.visited_of(index).last >= self.timeline_of(index).valid_until(0)

    def _shown_ticks(self) -> np.ndarray:
        return np.asarray(self._shown.tick).astype(np.int64)

    def _keeps_visits(self) -> bool:
        """Whether visited ticks may have gaps, so that each step has to look: only with rewound or stopped clocks."""
        return bool(self._held is not None or 2 in self._params.drift.features.clocks)

    def _record(self, started: np.ndarray, rewinds: np.ndarray, present: np.ndarray | None) -> None:
        """Record the visited span of ticks of sub-environments whose time is not continuous."""
        self._knobs = None
        if self._drift_infos is not None:
            self._fill_columns()
        now = self._shown_ticks()
        before = now if present is None else present
        for index in (started | rewinds).nonzero()[0].tolist():
            if rewinds[index] or present is None:
                self._visits[index] = VisitedTicks()
                self._since[index] = now[index]
            elif now[index] not in (before[index], before[index] + 1):
                self._visits[index].add(int(self._since[index]), int(before[index]))
                self._since[index] = now[index]


class _FunctionalSubEnvironment(SubEnvironment):
    """The attributes of one sub-environment of compiled code."""

    _vector: Any

    def __init__(self, vector: Any, index: int) -> None:
        super().__init__(vector, index)

    @property
    def timeline(self) -> Timeline:
        """The timeline of this sub-environment. For evaluators."""
        return self._vector.timeline_of(self._index)  # type: ignore[no-any-return]

    @property
    def tick(self) -> int:
        """The tick of the last transition, or of the next one after a reset."""
        return self._vector.tick_of(self._index)  # type: ignore[no-any-return]

    @property
    def phase(self) -> Phase:
        """The current phase. For evaluators."""
        return self.timeline.phase(self.tick)

    @property
    def drift_state(self) -> DriftState:
        """Phase, tick, episode, step and knob values; the phase is empty for random schedules. For evaluators."""
        phase = "" if self._vector._is_random else self.phase.id
        return self._vector.drift_state_of(self._index, phase)  # type: ignore[no-any-return]

    def _visited(self) -> VisitedTicks:
        return self._vector.visited_of(self._index)  # type: ignore[no-any-return]


def _prob_infos(prob: np.ndarray, mask: np.ndarray) -> dict[str, Any]:
    return {"prob": prob, "_prob": mask}
