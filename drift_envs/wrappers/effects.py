"""Effects that a wrapper has on what goes in and out of an environment, as knobs that need no attribute.

Noise and masks on observations, permuted or late actions, scaled or negated rewards, where the spaces allow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.errors import ArgumentError, KnobError
from drift_envs.knobs import FrozenMapping, Knob, Value
from drift_envs.wrappers.internal import InternalWrapper

LONGEST_DELAY = 16
"""Steps by which an action may come late."""

MASK_METHODS = (
    "action_mask",
    "action_masks",
    "get_action_mask",
    "get_action_masks",
    "get_legal_actions",
    "get_valid_actions",
    "legal_actions",
    "valid_action_mask",
    "valid_actions",
)
"""Methods or attributes that give masks of actions."""

_LISTS = (
    "available_actions",
    "avail_actions",
    "get_legal_actions",
    "get_valid_actions",
    "legal_actions",
    "legal_moves",
    "valid_actions",
)
"""Keys under which some packages give masks and others the allowed actions themselves."""

MASKS = frozenset((*MASK_METHODS, "avail_action_mask", "invalid_action_mask", *_LISTS))
"""Keys of `info` and of observations under which masks of actions are, as in Taxi, PettingZoo and RLlib."""

_NOISE_TAG = 0xD21F0B5
"""Makes the stream of the noise independent of all other streams of the same seed."""


def effect_knobs(env: gym.Env[Any, Any]) -> tuple[Knob, ...]:
    """The knobs that fit an environment's spaces.

    | knob | default | fits | meaning |
    |---|---|---|---|
    | `observation_noise` | 0.0 | `Box` of floats or of integers below 64 bits | standard deviation of the noise |
    | `observation_mask` | `""` | `Box` | one letter a component: `1` shown, `0` as near to zero as fits; `""`: all |
    | `action_permutation` | `{}` | `Discrete` | action: the action that is carried out in its place |
    | `action_delay` | 0 | all | steps by which an action comes late; until then the episode's first one counts |
    | `reward_scale` | 1.0 | all | factor of the reward |
    | `reward_sign` | `"+"` | all | `"-"` turns rewards into costs |

    Example:
        >>> [knob.name for knob in effect_knobs(gym.make("CartPole-v1"))]
        ['observation_noise', 'observation_mask', 'action_permutation', 'action_delay', 'reward_scale', 'reward_sign']
    """
    found = []
    seen, done = env.observation_space, env.action_space
    if isinstance(seen, spaces.Box) and _takes_noise(seen.dtype):
        found.append(Knob("observation_noise", 0.0, (0.0, 1e6), "standard deviation of the observation's noise"))
    if isinstance(seen, spaces.Box):
        count = int(np.prod(seen.shape))
        found.append(
            Knob(
                "observation_mask",
                "",
                None,
                "one letter a component: 1 shown, 0 shown as zero, or the bound nearest to it; empty shows all",
                kind="string",
                parse=_MaskParser(count),
            )
        )
    if isinstance(done, spaces.Discrete):
        found.append(permutation_knob(int(done.start), int(done.n)))
    found += [
        Knob("action_delay", 0, (0, LONGEST_DELAY), "steps by which an action comes late", kind="integer"),
        Knob("reward_scale", 1.0, (0.0, 1e6), "factor of the reward"),
        Knob("reward_sign", "+", ("+", "-"), "- turns rewards into costs", kind="string"),
    ]
    return tuple(found)


def _takes_noise(dtype: np.dtype[Any]) -> bool:
    """Whether sums with noise are exact enough: 64-bit integers have more digits than a float."""
    return np.issubdtype(dtype, np.floating) or (np.issubdtype(dtype, np.integer) and dtype.itemsize < 8)


def permutation_knob(first: int, count: int) -> Knob:
    """The knob `action_permutation`."""
    return Knob(
        "action_permutation",
        FrozenMapping({str(action): action for action in range(first, first + count)}),
        None,
        "action: the action that is carried out in its place; or a list of these, in the order of the actions",
        kind="mapping",
        prepare=_PermutationForms(first),
        parse=_PermutationParser(range(first, first + count)),
    )


@dataclass(frozen=True)
class _MaskParser:
    """Checks a mask against the number of components."""

    count: int

    def __call__(self, mask: str) -> str:
        if mask and (len(mask) != self.count or set(mask) - set("01")):
            raise KnobError(f"`observation_mask` should be {self.count} letters 0 or 1. Received {mask!r}")
        return mask


@dataclass(frozen=True)
class _PermutationForms:
    """Turns a list into a mapping, and integer keys into strings."""

    first: int

    def __call__(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return {str(self.first + place): instead for place, instead in enumerate(value)}
        return {str(key): instead for key, instead in value.items()} if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class _PermutationParser:
    """Completes a permutation and checks that it is one."""

    actions: range

    def __call__(self, permutation: Mapping[str, Any]) -> FrozenMapping:
        whole: dict[str, int] = {str(action): action for action in self.actions}
        for action, instead in permutation.items():
            if action not in whole or isinstance(instead, bool) or instead not in self.actions:
                raise KnobError(
                    f"`action_permutation` should map actions from {self.actions[0]} to {self.actions[-1]} to such. "
                    f"Received {action!r}: {instead!r}"
                )
            whole[action] = int(instead)
        if len(set(whole.values())) != len(whole):
            raise KnobError(f"`action_permutation` should use every action once. Received {dict(permutation)!r}")
        return FrozenMapping(whole)


class Effects(InternalWrapper):
    """Applies the knobs of `effect_knobs`."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._is_built_in = True
        self.knobs = effect_knobs(env)
        self._values: dict[str, Value] = {knob.name: knob.default for knob in self.knobs}
        self._done: deque[Any] = deque(maxlen=LONGEST_DELAY + 1)
        self.carried_out: Any = None
        """The action of the last step as the environment got it; `None` before the first one."""
        self.noise: np.random.Generator | None = None
        """Draws the noise of observations; `None` before the first reset."""

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values.

        Args:
            values: canonical values, by knob.
        """
        self._values.update(values)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob."""
        return dict(self._values)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; delayed actions of the last one are dropped.

        Args:
            seed: seeds the environment and the noise.
            options: passed to the environment.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self._done.clear()
        if seed is not None:
            self.noise = np.random.default_rng([seed, _NOISE_TAG])
        elif self.noise is None:
            own = self.env.unwrapped.np_random_seed
            self.noise = np.random.default_rng([own, _NOISE_TAG] if own is not None and own >= 0 else None)
        return self._seen(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out the permuted and delayed action."""
        values = self._values
        if "action_permutation" in values:
            # a `Discrete` action may be an array without dimensions or a boolean
            is_array = isinstance(action, (bool, np.ndarray)) and self.env.action_space.contains(action)
            action = values["action_permutation"].get(str(int(action) if is_array else action), action)
        delay, space = values["action_delay"], self.env.action_space
        if delay and not _can_wait(action, space):  # else it would be refused in the place of a later one
            raise wrong_action(action, space)
        action = np.copy(action) if isinstance(action, np.ndarray) else action
        waiting = min(delay, len(self._done))
        carried_out = self._done[-waiting] if waiting else action
        observation, reward, terminated, truncated, info = self.env.step(carried_out)
        self._done.append(action)  # after the step: a refused action is not done later either
        self.carried_out = carried_out
        if values["reward_scale"] != 1.0:
            reward = reward * values["reward_scale"]
        if values["reward_sign"] == "-":
            reward = -reward  # type: ignore[operator]
        return self._seen(observation), reward, terminated, truncated, info

    def save_episode(self) -> list[Any]:
        """The last actions, some of which may still be delayed."""
        return list(self._done)

    def load_episode(self, saved: list[Any]) -> None:
        """Continue with the actions of another episode.

        Args:
            saved: what `save_episode` gave.
        """
        self._done = deque(saved, maxlen=LONGEST_DELAY + 1)

    def save_own_progress(self) -> dict[str, Any]:
        """The last actions, and the generator of the noise."""
        return {"done": list(self._done), "carried_out": copy(self.carried_out), "noise": self.noise}

    def load_own_progress(self, saved: Any) -> None:
        """Go on where another one stood.

        Args:
            saved: from `save_own_progress`.
        """
        self.load_episode(saved["done"])
        self.carried_out, self.noise = saved["carried_out"], saved["noise"]

    def _seen(self, observation: Any) -> Any:
        """The observation with noise and mask applied."""
        noise, mask = self._values.get("observation_noise", 0.0), self._values.get("observation_mask", "")
        if not noise and not mask:
            return observation
        space = self.env.observation_space
        seen = np.array(observation, dtype=space.dtype, order="C")  # components of a mask are in this order
        if noise and self.noise is not None:
            low, high = space.low, space.high  # type: ignore[attr-defined]
            noisy = seen + noise * self.noise.standard_normal(seen.shape)
            noisy = np.rint(noisy) if np.issubdtype(seen.dtype, np.integer) else noisy
            seen = np.asarray(np.clip(noisy, low, high), space.dtype)  # a sum of arrays without dimensions is none
        if mask:
            hidden = [letter == "0" for letter in mask]
            nothing = np.clip(np.zeros_like(seen), space.low, space.high)  # type: ignore[attr-defined]
            seen.reshape(-1)[hidden] = nothing.reshape(-1)[hidden]
        return seen


def is_finite(action: Any) -> bool:
    """Whether an action of a `Box` has finite numbers alone; what is none is left to the environment."""
    try:
        return bool(np.isfinite(action).all())
    except (TypeError, ValueError):
        return True


def is_element(action: Any, space: gym.Space[Any]) -> bool:
    """Whether an action is one of a space, where a list counts as an array."""
    try:
        if isinstance(space, spaces.Box):
            return bool(np.asarray(action, space.dtype).shape == space.shape)
        return bool(space.contains(action))
    except (TypeError, ValueError, OverflowError):
        return False


class ActionCheck:
    """Refuses actions that environments of other packages would take for others, or answer by numbers that are none.

    Args:
        space: the space of actions.
        is_strict: whether arrays should have its shape; Gymnasium's Pendulum takes any.
    """

    def __init__(self, space: gym.Space[Any], is_strict: bool) -> None:
        self._space = space
        self._takes_reals = isinstance(space, spaces.Box) and bool(np.issubdtype(space.dtype, np.floating))
        self._is_strict = is_strict and self._takes_reals
        self._numbers = None
        if isinstance(space, spaces.Discrete):
            self._numbers = range(int(space.start), int(space.start + space.n))

    def __call__(self, action: Any) -> None:
        """Refuse an action.

        Raises:
            ArgumentError: if it is not finite, or no element of the space.
        """
        if self._takes_reals and not is_finite(action):
            raise ArgumentError(f"`action` should be finite numbers of {self._space}. Received {action!r}")
        if self._is_strict and not is_element(action, self._space):
            raise wrong_action(action, self._space)
        if self._numbers is not None and isinstance(action, (int, np.integer)) and action not in self._numbers:
            raise wrong_action(action, self._space)


def _can_wait(action: Any, space: gym.Space[Any]) -> bool:
    """Whether an action may be carried out later; environments answer any text."""
    return (
        isinstance(action, str) if isinstance(space, spaces.Text) else is_element(action, space) and is_finite(action)
    )


def wrong_action(action: Any, space: gym.Space[Any]) -> ArgumentError:
    """The error for an action that is no element of a space."""
    return ArgumentError(f"`action` should be an element of {space}. Received {action!r}")


def permute_masks(content: Any, permutation: Mapping[str, int]) -> Any:
    """An `info` or an observation whose masks of actions are in the order of the agent's actions.

    Args:
        content: the observation or `info`; only dictionaries have masks, also those of an agent in them.
        permutation: action: the action that is carried out in its place.
    """
    if not isinstance(content, dict):
        return content
    found = {}
    for name, value in content.items():
        if isinstance(value, dict) and name not in MASKS:
            found[name] = permute_masks(value, permutation)
        else:
            found[name] = permute_mask(name, value, permutation) if name in MASKS else value
    return found


def permute_mask(name: str, mask: Any, permutation: Mapping[str, int]) -> Any:
    """A mask of actions, or a list of those that are allowed, for the agent's actions.

    Args:
        name: what the environment calls it, one of `MASKS`.
        mask: an entry for each action, or the allowed actions.
        permutation: action: the action that is carried out in its place.

    Example:
        >>> permute_mask("action_mask", np.array([1, 1, 0]), {"0": 2, "1": 1, "2": 0}).tolist()
        [0, 1, 1]
        >>> permute_mask("legal_actions", [0, 1], {"0": 2, "1": 1, "2": 0})
        [2, 1]
    """
    if mask is None or not permutation:
        return mask
    if isinstance(mask, dict):  # of several agents
        return {agent: permute_mask(name, one, permutation) for agent, one in mask.items()}
    first = min(permutation.values())
    order = [
        instead - first for _, instead in sorted((int(action), instead) for action, instead in permutation.items())
    ]
    values = np.asarray(mask)
    if values.ndim and values.shape[-1] == len(order) and (name not in _LISTS or _is_mask(values)):
        permuted = values[..., order]
    else:
        inverse = {instead: int(action) for action, instead in permutation.items()}
        permuted = np.array([inverse.get(int(action), int(action)) for action in values.reshape(-1)], values.dtype)
    return permuted if isinstance(mask, np.ndarray) else type(mask)(permuted.tolist())


def _is_mask(values: np.ndarray) -> bool:
    """Whether this is an entry for each action, and no list of different actions."""
    return values.dtype == bool or (values.size > 2 and bool(np.isin(values, (0, 1)).all()))
