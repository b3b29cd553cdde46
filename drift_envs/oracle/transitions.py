"""The oracle of classic control and MuJoCo: exact responses by a second instance, reference controllers, no optimum."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from drift_envs.attributes.env import AttributeEnv
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import Value
from drift_envs.oracle.base import Response
from drift_envs.registration import parts_of
from drift_envs.wrappers.binding import KnobBinder
from drift_envs.wrappers.text import FieldDescriber, FieldText, read_action

CLOSE = 1e-3
"""Texts whose numbers differ by less show the same state: they have six decimals, and a step enlarges the rounding."""
PAID = 2e-6
"""The same for what a step adds to the score: both scores are rounded."""
EPISODES = 10
"""The episodes, from the seeds 0 to 9, over which the reference controller's score is averaged."""

Knobs = Mapping[str, Value]


class Reference(NamedTuple):
    """A controller that reads the knobs of a tick.

    Args:
        act: the action for an observation and the knobs.
        limit: the steps of an episode.
        reads_sign: whether it plays for costs where `reward_sign` turns rewards into costs.
    """

    act: Callable[[np.ndarray, Knobs], Any]
    limit: int
    reads_sign: bool = False

    def plays(self, knobs: Knobs) -> bool:
        """Whether it has an answer to these knobs.

        Args:
            knobs: of a tick.
        """
        return self.reads_sign or knobs.get("reward_sign", "+") != "-"


def scale_action(action: np.ndarray, gain: float, limit: float) -> np.ndarray:
    """The action that has the given effect under a gain; beyond the limit it is cut.

    Args:
        action: the action without the gain.
        gain: the factor that the environment applies.
        limit: the largest action.
    """
    return action if gain in (0.0, 1.0) else np.clip(action / gain, -limit, limit).astype(np.float32)


class TransitionOracle:
    """Exact responses of an environment whose knobs are attributes.

    A second instance is set to the state, with the knobs of the tick, and steps. A state is an observation, a state
    as text, or what `save_state` of the environment gave, which is exact where observations are rounded or cut. Both
    ticks of `changed` use the same state and random numbers.

    No optimum is known. `action` is that of a reference controller that reads the knobs of the tick
    (`REFERENCES` in the environment's folder), and `value` its mean score; where there is none, both
    refuse. `effect` refuses.

    Args:
        wrapper: the `DriftWrapper` around the environment.
        reference: the reference controller, if there is one.

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

    def __init__(self, wrapper: Any, reference: Reference | None = None) -> None:
        hidden = [name for name in wrapper.timeline.names if name in ("action_delay", "observation_noise")]
        if hidden:
            raise NoOracleError(f"no oracle is known for {wrapper.unwrapped} while its schedule sets `{hidden[0]}`")
        self._source, self._controller = wrapper, reference
        self._base: AttributeEnv = copy.deepcopy(wrapper.unwrapped)
        self._base.hold(())
        self._base.render_mode = None  # type: ignore[attr-defined]
        self._binder = KnobBinder(self._base, wrapper.schedule)  # type: ignore[arg-type]
        self._values: dict[str, float] = {}

    @classmethod
    def among(
        cls, references: Mapping[str, Reference], wrapper: Any, begin: Callable[[], Any], limit: int
    ) -> TransitionOracle:
        """The oracle of a drifting environment, with the reference controller of its class, if there is one.

        Args:
            references: the controllers, by the name of the class.
            wrapper: the `DriftWrapper`.
            begin: returns the innermost environment.
            limit: not used, since a controller has its own.
        """
        return cls(wrapper, references.get(type(begin()).__name__))

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
        reference, knobs = self._reference(tick), self._source.knobs_at(tick)
        seen = np.asarray(self._text.read(state)[0] if isinstance(state, str) else state, float)
        action = reference.act(seen, knobs)
        carried_out = knobs.get("action_permutation")
        if carried_out is not None:
            action = next(int(given) for given, instead in carried_out.items() if instead == action)
        return action

    def value(self, tick: int) -> float:
        """The mean score of the reference controller in `EPISODES` episodes at the knobs of the tick.

        Raises:
            NoOracleError: if there is no reference controller.
        """
        self._reference(tick)
        return self._mean_score(json.dumps(self._source.knobs_at(tick), sort_keys=True, default=str), tick)

    def effect(self, t0: int, t1: int) -> NoReturn:
        """There is no optimum.

        Raises:
            NoOracleError: always.
        """
        self._refuse()

    @property
    def _text(self) -> FieldText:
        """The text form."""
        parts = parts_of(self._base)  # type: ignore[arg-type]
        if parts is None or parts.text is None:
            raise ArgumentError(f"`state` should be no text, since {type(self._base).__name__} has no text form")
        describer: FieldDescriber = parts.load("text")(self._base)
        return describer.text

    def _reference(self, tick: int) -> Reference:
        """The reference controller for the knobs of a tick."""
        reference = self._controller
        if reference is None or not reference.plays(self._source.knobs_at(tick)):
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
                self._set_knobs(tick)
                seen, _ = env.reset(seed=seed)
                score, steps, over = 0.0, 0, False
                while not over and steps < reference.limit:
                    seen, reward, over, *_ = env.step(self.action(seen, tick))
                    score, steps = describer.score(score, float(reward), bool(over)), steps + 1
                scores.append(score)
            self._values[knobs] = float(np.mean(scores))
        return self._values[knobs]

    def _set_knobs(self, tick: int) -> None:
        knobs = self._source.knobs_at(tick)
        self._binder.set_knobs({name: knobs[name] for name in self._source.timeline.names})

    def _step(self, state: Any, action: Any, tick: int) -> tuple[list[float], float, bool]:
        self._set_knobs(tick)
        if isinstance(state, Mapping):
            self._base.load_state(copy.deepcopy(dict(state)))
        else:
            seen = self._text.read(state)[0] if isinstance(state, str) else state
            try:
                self._base.set_state_seen(np.asarray(seen, float))
            except (TypeError, ValueError, IndexError) as error:
                raise ArgumentError(f"`state` should be an observation. Received {str(state)[:200]!r}") from error
        self._base.np_random = np.random.default_rng(0)  # type: ignore[attr-defined]
        if isinstance(action, str):
            action = read_action(self._binder.env.action_space, action)
        seen, reward, ended, *_ = self._binder.env.step(action)
        return np.asarray(seen).tolist(), float(reward), bool(ended)
