"""What the native vector environments share: time, resets, limits and information; no dynamics.

* `DriftVectorEnv` - the base class
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from drift_envs.errors import ArgumentError, DrivenKnobError, StateError
from drift_envs.schedule import Schedule, Timeline
from drift_envs.vector.clocks import Clocks
from drift_envs.vector.draws import EpisodeDraws
from drift_envs.vector.dynamics import Dynamics
from drift_envs.vector.infos import DriftInfos, finals, merged
from drift_envs.vector.knob_pool import KnobPool
from drift_envs.vector.rendering import VectorRenderer
from drift_envs.vector.reset_request import read_wishes
from drift_envs.vector.view import SubEnvironment
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.rewinds import IdleRewinds


class DriftVectorEnv(Dynamics, VectorEnv[Any, Any, np.ndarray]):
    """Many copies of one drifting environment, computed together.

    Each sub-environment has its own clock, and its own timeline: that of sub-environment `i` is seeded
    with `seed + i`, as `SyncVectorEnv` does. There is one random generator: column `i` of its numbers
    belongs to sub-environment `i`, so that a run is reproducible for a seed and a number of
    sub-environments, and no sub-environment changes the luck of another.

    | option of `reset` | meaning |
    |---|---|
    | `reset_mask` | booleans of shape `(N,)`: only these sub-environments begin an episode |
    | `drift_clock`, `drift_tick`, `drift_phase` | as in `DriftWrapper`, for all that begin an episode |

    A seed together with a mask starts the schedule of those sub-environments from its beginning, while
    the generator, which belongs to all, goes on.

    Args:
        world: the single environment; says everything about a sub-environment.
        num_envs: how many sub-environments, N.
        max_episode_steps: the steps of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep`, `Disabled`, or Gymnasium's enumeration of these.
        share_timeline: whether all sub-environments follow the timeline of the first.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.

    Raises:
        ArgumentError: if an argument breaks a rule.
    """

    def __init__(
        self,
        world: DriftWrapper,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        share_timeline: bool = False,
        notify: str = "none",
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
            raise ArgumentError(f"`num_envs` should be a whole number, at least 1. Received {num_envs!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ArgumentError(f"`max_episode_steps` should be at least 1. Received {max_episode_steps!r}")
        modes = [mode.value for mode in AutoresetMode]
        if not isinstance(autoreset_mode, AutoresetMode) and autoreset_mode not in modes:
            raise ArgumentError(f"`autoreset_mode` should be one of {modes}. Received {autoreset_mode!r}")
        if not isinstance(world.unwrapped, self.kind):
            raise ArgumentError(f"`world` should be a drifting `{self.kind.__name__}`. Received {world}")
        self.world = world
        self.num_envs = int(num_envs)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.render_mode = world.render_mode
        self.metadata = {**world.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = world.observation_space
        self.single_action_space = world.action_space
        self.observation_space = batch_space(world.observation_space, self.num_envs)
        self.action_space = batch_space(world.action_space, self.num_envs)
        self.schedule: Schedule | None = world.schedule
        plan = world.schedule or Schedule(version=1, name="no-drift")
        self._driven = frozenset(world.timeline.names)
        self.flow = KnobPool(plan, world.knob_table, self._columns(), self._encode, share_timeline)
        self.clocks = Clocks(
            self.flow,
            max_episode_steps,
            self.autoreset_mode is AutoresetMode.NEXT_STEP,
            self._turned if self._follows_knobs() else None,
        )
        self.max_episode_steps = max_episode_steps
        self._idle_rewinds = IdleRewinds(plan.name)
        self._ended = np.zeros(self.num_envs, bool)
        self._has_ended = False
        self._is_reset = False
        self._starts = EpisodeDraws(0, self.num_envs)
        self._all = np.ones(self.num_envs, bool)
        self._news = None if notify == "none" else DriftInfos(self, notify)
        self._painter: VectorRenderer | None = None
        self.envs = tuple(SubEnvironment(self, index) for index in range(self.num_envs))
        self._build()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes, in all sub-environments or in those of a mask.

        Args:
            seed: seeds the generator and starts the schedules from their beginning: sub-environment `i` gets
                `seed + i`, or its own from a list, where `None` lets its time go on.
            options: see the table above; others go to the environment.

        Returns:
            Observations of all sub-environments, and `info` in Gymnasium's vector form.

        Raises:
            ArgumentError: if the seed or an option breaks a rule; nothing has changed then.

        Warns:
            DriftWarning: at the tenth rewind before which nothing had drifted anywhere.
        """
        wishes = read_wishes(seed, options, self.num_envs, self._is_reset, self._timeline_of)
        self._check_options(wishes.options)
        if wishes.entropy is not None:
            super().reset(seed=wishes.entropy)
        if wishes.entropy is not None or not self._is_reset:
            self._restart_draws()
        indices, keys = wishes.indices, dict(wishes.keys)
        if not self._is_reset:  # those without a seed take the one that the generator gave itself
            base = self._first_key()
            keys = {index: keys.get(index, base + index) for index in range(self.num_envs)}
        rewinding = np.fromiter(keys, np.int64, len(keys))
        if len(rewinding):
            if self._is_reset and self.flow.can_change and not self._idle_rewinds.is_over:
                self._idle_rewinds.count(any(map(self._has_changed, keys)), stacklevel=2)
            self.flow.rekey(rewinding, list(keys.values()))
            self.clocks.rewind(rewinding)
        if isinstance(wishes.jumps, list):
            for index, jump in zip(indices.tolist(), wishes.jumps, strict=True):
                self.clocks.begin_at(np.array([index]), jump)
        else:
            self.clocks.begin_at(indices, wishes.jumps)
        mask = np.zeros(self.num_envs, bool)
        mask[indices] = True
        self._is_reset = True
        self._ended &= ~mask
        self._has_ended = bool(self._ended.any())
        self._place(mask, wishes.options)
        infos = self._reset_infos(mask)
        if self._news is not None:
            self._news.forget(rewinding)
            infos.update(self._news.tell(mask))
        return self._observe(), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all sub-environments; those whose episode has ended are reset as `autoreset_mode` says.

        Args:
            actions: one for each sub-environment, in the form of `action_space`.

        Returns:
            Observations, rewards (float64), terminations and truncations (shape `(N,)`), and `info`.

        Raises:
            ArgumentError: if an action is none of the space.
            StateError: before the first `reset`, or after the end of an episode where autoreset is disabled.
        """
        if not self._is_reset:
            raise StateError("`step` was called before `reset`; call `reset` first")
        checked = self._check_actions(actions)
        clocks = self.clocks
        dead: np.ndarray | None = None
        if self._has_ended:
            if self.autoreset_mode is AutoresetMode.DISABLED:
                raise StateError(
                    f"sub-environment {int(self._ended.argmax())} has ended its episode and autoreset is disabled; "
                    "call `reset(options={'reset_mask': terminations | truncations})`"
                )
            dead = self._ended
        if clocks.is_moving:
            clocks.move()
        if dead is not None:
            clocks.begin(dead, dead=True)
        observations, rewards, terminations, infos = self._transition(checked, dead)
        truncations = clocks.tick()
        if truncations is None:
            truncations = np.zeros(self.num_envs, bool)
            np.copyto(self._ended, terminations)
        else:
            np.logical_or(terminations, truncations, out=self._ended)
            self._strand(truncations)
        self._has_ended = bool(np.count_nonzero(self._ended))
        if self._news is not None:
            infos.update(self._news.tell(self._all))
        if self._has_ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            last = finals(infos, observations, self._ended)
            clocks.begin(self._ended)
            self._place(self._ended, {})
            observations = self._observe()
            begun = self._reset_infos(self._ended)
            if self._news is not None:
                begun.update(self._news.tell(self._ended))
            infos = {**merged(infos, begun, self._ended), **last}
            self._has_ended = False
        return observations, rewards, terminations, truncations, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of every sub-environment, or `None` without a `render_mode`.

        Raises:
            StateError: before the first `reset`.
        """
        if not self._is_reset:
            raise StateError("`render` was called before `reset`; call `reset` first")
        if self.render_mode is None:
            return None
        if self._painter is None:
            self._painter = VectorRenderer(self)
        return self._painter.frames()

    def render_grid(self, columns: int | None = None, most: int = 64) -> np.ndarray:
        """One picture with the sub-environments side by side.

        Args:
            columns: how many stand in a row; about as many as there are rows by default.
            most: only the first so many are drawn.

        Returns:
            Pixels of shape `(height, width, 3)`, `uint8`.

        Raises:
            StateError: before the first `reset`, or if `render_mode` is not `rgb_array`.
        """
        if self.render_mode != "rgb_array" or not self._is_reset:
            raise StateError("`render_grid` needs `render_mode='rgb_array'` and a first `reset`")
        if self._painter is None:
            self._painter = VectorRenderer(self)
        return self._painter.grid(columns, most)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every sub-environment, or read an attribute.

        Args:
            name: its name, see `SubEnvironment`.
            *args: handed to the method.
            **kwargs: handed to the method.
        """
        found = (getattr(env, name) for env in self.envs)
        return tuple(item(*args, **kwargs) if callable(item) else item for item in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every sub-environment.

        Args:
            name: its name, see `SubEnvironment`.
        """
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Set an attribute of every sub-environment.

        Args:
            name: a knob that the schedule does not drive, or what says where an episode stands.
            values: a list or tuple with one value for each, or one value for all.

        Raises:
            ArgumentError: if there are more or fewer values than sub-environments.
            DrivenKnobError: if the schedule drives that knob.
        """
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ArgumentError(
                f"`values` should have one value for each of {self.num_envs} sub-environments. Received {len(values)}"
            )
        if name in self._driven:
            raise DrivenKnobError.of(name, values[0])
        for env, value in zip(self.envs, values, strict=True):
            setattr(env, name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close what draws the pictures.

        Args:
            **kwargs: not used.
        """
        self.world.close()

    def _timeline_of(self, index: int, key: int | None) -> Timeline:
        """The timeline of a sub-environment, with another seed if there is one."""
        if key is not None:
            return Timeline(self.flow.schedule, self.flow.table, key)
        return self.flow.timeline(index) if self._is_reset else self.world.timeline

    def _has_changed(self, index: int) -> bool:
        """Whether a sub-environment has reached the first change since its last rewind."""
        return self.clocks.visited(index).last >= self.flow.timeline(index).valid_until(0)

    def _first_key(self) -> int:
        """The seed of the first timeline where nobody gave one."""
        own = self.np_random_seed
        if own is None or own < 0:  # somebody handed in a generator: its seed is not known
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return int(own)

    def _restart_draws(self) -> None:
        """Begin with the numbers of a new generator."""
        self._starts = EpisodeDraws(self._first_key(), self.num_envs)
