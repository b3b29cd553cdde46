"""The oracle of classic control and MuJoCo: exact responses by a second instance, no optimum.

* `TransitionOracle` - what an action leads to at any tick, and whether that differs between two
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from drift_envs.envs.attributes import AttributeEnv
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.oracle.base import Response
from drift_envs.wrappers.binding import KnobBinder


class TransitionOracle:
    """Exact responses of an environment whose knobs are attributes.

    A second instance is set to the state, with the knobs of the tick, and steps. A state is an observation, or
    what `save_state` of the environment gave, which is exact where observations are rounded or cut. Both ticks of
    `changed` use the same state and random numbers. There is no optimum: `value`, `action` and `effect` refuse.

    Args:
        wrapper: the `DriftWrapper` around the environment.

    Raises:
        NoOracleError: if the schedule drives a knob that acts on more than one step, `action_delay`, or the noise
            of observations.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftCartPole-v0", schedule="cart_pole/explicit")
        >>> observation, _ = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> oracle.changed(observation, 1, 0, 19), oracle.changed(observation, 1, 0, 20)
        (False, True)
    """

    def __init__(self, wrapper: Any) -> None:
        hidden = [name for name in wrapper.timeline.names if name in ("action_delay", "observation_noise")]
        if hidden:
            raise NoOracleError(f"no oracle is known for {wrapper.unwrapped} while its schedule turns `{hidden[0]}`")
        self._world = wrapper
        self._base: AttributeEnv = copy.deepcopy(wrapper.unwrapped)
        self._base.hold(())
        self._base.render_mode = None  # type: ignore[attr-defined]
        self._binder = KnobBinder(self._base, wrapper.schedule)  # type: ignore[arg-type]

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action in this state differ between two ticks.

        Args:
            state: an observation, or from `save_state`.
            action: the action.
            t0: one tick.
            t1: the other tick.
        """
        return self._step(state, action, t0) != self._step(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """The response; of random ones, that of the generator of seed 0.

        Args:
            state: an observation, or from `save_state`.
            action: the action.
            tick: the tick.
        """
        seen, reward, ended = self._step(state, action, tick)
        return (Response(json.dumps(seen), reward, ended, 1.0),)

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int) -> bool:
        """Whether this is the response.

        Args:
            state: an observation, or from `save_state`.
            action: the action.
            outcome: the next observation as a JSON list.
            ended: whether the episode was over.
            tick: the tick.
        """
        seen, _, over = self._step(state, action, tick)
        return over == ended and np.array_equal(json.loads(outcome), seen)

    def action(self, state: Any, tick: int, left: int | None = None) -> NoReturn:
        """There is no optimum.

        Raises:
            NoOracleError: always.
        """
        self._refuse()

    def value(self, tick: int) -> NoReturn:
        """There is no optimum.

        Raises:
            NoOracleError: always.
        """
        self._refuse()

    def effect(self, t0: int, t1: int) -> NoReturn:
        """There is no optimum.

        Raises:
            NoOracleError: always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoOracleError(f"no optimum is known for {type(self._base).__name__}; `changed` and `response` are exact")

    def _step(self, state: Any, action: Any, tick: int) -> tuple[list[float], float, bool]:
        knobs = self._world.knobs_at(tick)
        self._binder.turn({name: knobs[name] for name in self._world.timeline.names})
        if isinstance(state, Mapping):
            self._base.load_state(copy.deepcopy(dict(state)))
        else:
            try:
                self._base.set_state_seen(np.asarray(state, float))
            except (TypeError, ValueError, IndexError) as error:
                raise ArgumentError(f"`state` should be an observation. Received {str(state)[:200]!r}") from error
        self._base.np_random = np.random.default_rng(0)  # type: ignore[attr-defined]
        seen, reward, ended, *_ = self._binder.env.step(action)
        return np.asarray(seen).tolist(), float(reward), bool(ended)
