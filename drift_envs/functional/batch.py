"""The steps and resets of N functional environments as compiled code, with drifts and autoreset.

* `Batch` - compiles them
* `ResetOrders`, `Held` - what a reset does, and the sub-environments in which it stops time
* `select` - a choice between two trees of arrays
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from gymnasium.vector import AutoresetMode

from drift_envs.envs.frozen_lake.functional import side_of
from drift_envs.functional.base import FunctionalEnv, Lifetime
from drift_envs.functional.drift_carry import DriftCarry
from drift_envs.functional.drift_params import CLOCKS
from drift_envs.functional.drift_state import jump_to, number_of, restart_clock, start_drift


class Held(NamedTuple):
    """Sub-environments in which time is stopped, and the drift with which it goes on."""

    mask: Any
    resume: DriftCarry


class ResetOrders(NamedTuple):
    """What a reset does to each sub-environment."""

    mask: Any  # whether an episode begins
    rewinds: Any
    ended: Any  # whether the episode before has ended by itself
    holds: Any
    ticks: Any  # the tick to jump to, or -1
    keys: Any  # of the schedules


def select(condition: Any, one: Any, other: Any) -> Any:
    """Where the condition holds one tree of arrays, otherwise the other."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


class Batch:
    """Compiles the step and the reset of N sub-environments.

    Args:
        functional: the functional form of a sub-environment.
        number: the number of sub-environments, N.
        autoreset_mode: what happens at the end of an episode.
        shows_prob: whether steps return the probability of each transition, for lakes.
    """

    def __init__(self, functional: FunctionalEnv, number: int, autoreset_mode: AutoresetMode, shows_prob: bool) -> None:
        self.functional, self._number, self._mode, self._shows_prob = functional, number, autoreset_mode, shows_prob
        self.step = jax.jit(self._step)
        self.reset = jax.jit(self._reset)

    def _step(self, params: Any, states: Lifetime, held: Held | None, resetting: Any, actions: Any, key: Any) -> Any:
        """The step of all sub-environments: observations, states, the drift of the step, and the rest."""
        env, mode = self.functional, self._mode
        draws = env.draw(key, (self._number,), params)
        has_ended = resetting is not None

        def one(params: Any, state: Lifetime, held: Any, resetting: Any, draws: Any, action: Any) -> Any:
            last, after, reward, terminated, truncated = env.transition(draws, state, action, params)
            if held is not None:
                drift = select(held.mask, state.drift, after.drift)
                after = after._replace(drift=select(held.mask & (terminated | truncated), held.resume, drift))
            shown, observation = state.drift, last
            if has_ended and mode is AutoresetMode.NEXT_STEP:
                after = select(resetting, env.begin_episode(draws, state, params), after)
                reward = jnp.where(resetting, 0.0, reward)
                terminated, truncated = terminated & ~resetting, truncated & ~resetting
                observation = select(resetting, env.observe(after, params), last)
            elif mode is AutoresetMode.SAME_STEP:
                ended = terminated | truncated
                after = select(ended, env.begin_episode(draws, after, params), after)
                shown = select(ended, after.drift, shown)
                observation = env.observe(after, params)
            return observation, after, shown, reward, terminated, truncated, last

        axes = (self.functional.axis(params), 0, None if held is None else 0, 0 if has_ended else None, 0, 0)
        found = jax.vmap(one, in_axes=axes)(params, states, held, resetting, draws, actions)
        return *found, self._probabilities(params, states, resetting, draws)

    def _probabilities(self, params: Any, states: Lifetime, resetting: Any, draws: Any) -> Any:
        """The probability of each transition of a lake without schedule, as Gymnasium's `info` shows it."""
        if not self._shows_prob:
            return None
        slip = number_of(params.drift, states.drift, "slip")
        found = jnp.where(side_of(draws[0], slip) != 0, 0.5 * slip, 1.0 - slip)
        return found if resetting is None else jnp.where(resetting, 1.0, found)

    def _reset(
        self, params: Any, states: Lifetime, shown: DriftCarry, held: Held | None, orders: ResetOrders, key: Any
    ) -> Any:
        """The reset of the sub-environments of a mask: observations, states, their drift, and the held ones."""
        env = self.functional
        draws = env.draw(key, (self._number,), params)

        def one(params: Any, state: Lifetime, shown: Any, held: Any, orders: ResetOrders, draws: Any) -> Any:
            drift = params.drift
            first = start_drift(drift, orders.keys)
            plain = select(orders.ended, state.drift, restart_clock(drift, state.drift))
            if held is not None:
                plain = select(held.mask, held.resume, plain)
            plain = select(orders.rewinds, first, plain)
            present = select(orders.rewinds, first, shown)
            there = jump_to(drift, orders.keys, jnp.maximum(orders.ticks, 0))
            jumps = orders.ticks >= 0
            now = select(jumps, there, select(orders.holds, present, plain))
            begun = env.begin_episode(draws, state._replace(drift=now), params)
            # the clock `episode_step` is at 0 again when it goes on
            resume = select(jumps & (drift.clock != CLOCKS["episode_step"]), there, plain)
            after = select(orders.mask, begun, state)
            seen = select(orders.mask, now, shown)
            return env.observe(after, params), after, seen, resume

        axes = (self.functional.axis(params), 0, 0, None if held is None else 0, 0, 0)
        observations, states, shown, resume = jax.vmap(one, in_axes=axes)(params, states, shown, held, orders, draws)
        before = jnp.zeros(self._number, bool) if held is None else held.mask
        mask = jnp.where(orders.mask, orders.holds, before)
        kept = resume if held is None else jax.vmap(select)(orders.mask, resume, held.resume)
        return observations, states, shown, Held(mask, kept)
