"""The oracle of classic control and MuJoCo: exact responses by a second instance, reference controllers, no optimum.

* `TransitionOracle` - what an action leads to at any tick, and whether that differs between two
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces

from drift_envs.envs.attributes import AttributeEnv
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.oracle.base import Response
from drift_envs.oracle.controllers import REFERENCES, Reference
from drift_envs.wrappers.binding import KnobBinder
from drift_envs.wrappers.field_text import FieldDescriber, FieldText, find_field_text

CLOSE = 1e-3
"""Texts whose numbers differ by less show the same state: they have six decimals, and a step enlarges the rounding."""
PAID = 2e-6
"""The same for what a step adds to the score: both scores are rounded."""
EPISODES = 10
"""The episodes, from the seeds 0 to 9, over which the reference controller's score is averaged."""


class TransitionOracle:
    """Exact responses of an environment whose knobs are attributes.

    A second instance is set to the state, with the knobs of the tick, and steps. A state is an observation, a state
    as text, or what `save_state` of the environment gave, which is exact where observations are rounded or cut. Both
    ticks of `changed` use the same state and random numbers.

    No optimum is known. `action` is that of a reference controller that reads the knobs of the tick
    (`drift_envs.oracle.controllers`), and `value` its mean score; where there is none, both refuse. `effect` refuses.

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
        self._values: dict[str, float] = {}

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action in this state differ between two ticks.

        Args:
            state: an observation, a text, or from `save_state`.
            action: the action, or its text.
            t0: one tick.
            t1: the other tick.
        """
        return self._step(state, action, t0) != self._step(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """The response; of random ones, that of the generator of seed 0.

        Args:
            state: an observation, a text, or from `save_state`.
            action: the action, or its text.
            tick: the tick.

        Returns:
            The next observation as a JSON list, with the reward as score.
        """
        seen, reward, ended = self._step(state, action, tick)
        return (Response(json.dumps(seen), reward, ended, 1.0),)

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the response.

        Args:
            state: an observation, a text, or from `save_state`.
            action: the action, or its text.
            outcome: the next observation as a JSON list; the next state as text where `state` is a text.
            ended: whether the episode was over.
            tick: the tick.
            score: not used, since the next state shows it.
        """
        seen, reward, over = self._step(state, action, tick)
        if not isinstance(state, str):
            return over == ended and np.array_equal(json.loads(outcome), seen)
        text = self._text
        (_, before), (shown, after) = text.read(state), text.read(outcome)
        is_close = np.allclose(text.to_observation(text.to_fields(seen)), shown, rtol=0.0, atol=CLOSE)
        return over == ended and is_close and abs(after - before - text.pay(reward, over)) <= PAID

    def action(self, state: Any, tick: int, left: int | None = None) -> Any:
        """The action of the reference controller.

        Args:
            state: an observation, or a text.
            tick: the tick.
            left: not used.

        Raises:
            NoOracleError: if there is no reference controller.
        """
        reference, knobs = self._reference(tick), self._world.knobs_at(tick)
        seen = np.asarray(self._text.read(state)[0] if isinstance(state, str) else state, float)
        action = reference.act(seen, knobs)
        carried_out = knobs.get("action_permutation")
        if carried_out is not None:
            action = next(int(given) for given, instead in carried_out.items() if instead == action)
        return action

    def value(self, tick: int) -> float:
        """The mean score of the reference controller in `EPISODES` episodes at the knobs of the tick.

        Args:
            tick: the tick.

        Raises:
            NoOracleError: if there is no reference controller.
        """
        self._reference(tick)
        return self._mean_score(json.dumps(self._world.knobs_at(tick), sort_keys=True, default=str), tick)

    def effect(self, t0: int, t1: int) -> NoReturn:
        """There is no optimum.

        Raises:
            NoOracleError: always.
        """
        self._refuse()

    @property
    def _text(self) -> FieldText:
        """The text form."""
        text = find_field_text(self._base)
        if text is None:
            raise ArgumentError(f"`state` should be no text, since {type(self._base).__name__} has no text form")
        return text

    def _reference(self, tick: int) -> Reference:
        """The reference controller for the knobs of a tick."""
        reference = REFERENCES.get(type(self._base).__name__)
        if reference is None or not reference.plays(self._world.knobs_at(tick)):
            self._refuse()
        return reference

    def _refuse(self) -> NoReturn:
        raise NoOracleError(f"no optimum is known for {type(self._base).__name__}; `changed` and `response` are exact")

    def _mean_score(self, knobs: str, tick: int) -> float:
        """The mean score of the reference controller; `knobs` is the key of the cache."""
        if knobs not in self._values:
            reference, describer = self._reference(tick), FieldDescriber(self._base, self._text)
            env, scores = self._binder.env, []
            for seed in range(EPISODES):
                self._turn(tick)
                seen, _ = env.reset(seed=seed)
                score, steps, over = 0.0, 0, False
                while not over and steps < reference.limit:
                    seen, reward, over, *_ = env.step(self.action(seen, tick))
                    score, steps = describer.score(score, float(reward), bool(over)), steps + 1
                scores.append(score)
            self._values[knobs] = float(np.mean(scores))
        return self._values[knobs]

    def _turn(self, tick: int) -> None:
        knobs = self._world.knobs_at(tick)
        self._binder.turn({name: knobs[name] for name in self._world.timeline.names})

    def _step(self, state: Any, action: Any, tick: int) -> tuple[list[float], float, bool]:
        self._turn(tick)
        if isinstance(state, Mapping):
            self._base.load_state(copy.deepcopy(dict(state)))
        else:
            seen = self._text.read(state)[0] if isinstance(state, str) else state
            try:
                self._base.set_state_seen(np.asarray(seen, float))
            except (TypeError, ValueError, IndexError) as error:
                raise ArgumentError(f"`state` should be an observation. Received {str(state)[:200]!r}") from error
        self._base.np_random = np.random.default_rng(0)  # type: ignore[attr-defined]
        seen, reward, ended, *_ = self._binder.env.step(_read_action(action, self._binder.env.action_space))
        return np.asarray(seen).tolist(), float(reward), bool(ended)


def _read_action(action: Any, space: spaces.Space[Any]) -> Any:
    """An action of the space; `action` may be its text."""
    if not isinstance(action, str):
        return action
    try:
        given = json.loads(action)
        return int(given) if isinstance(space, spaces.Discrete) else np.array(given, space.dtype).reshape(space.shape)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"`action` should be an action as text. Received {action!r}") from error
