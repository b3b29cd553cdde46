"""Checks of arguments; each error names the argument, the rule and the value.

* `is_integer`, `is_number` - tests of types; NumPy's numbers count, `True` and `False` do not
* `check_integer`, `check_count`, `check_number`, `check_interval` - return a number, or raise `ArgumentError`
* `check_flag`, `check_choice` - return a truth value, or one of several strings
* `check_single` - refuses what is no single environment
* `check_reward`, `check_action`, `check_force` - rewards and actions of spaces
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, TypeGuard, overload

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, DriftEnvsError
from drift_envs.utils.error_messages import represent

LARGEST_COUNT = 1_000_000
"""The largest count of goals, resamples, sub-environments and the like."""

LARGEST_SEED = 2**63 - 1

MOST_BITS = 1000
"""Whole numbers up to this length can be converted to `float`."""


def is_integer(value: object) -> TypeGuard[int]:
    """Whether the value is a whole number, of Python or NumPy, and no boolean.

    Example:
        >>> is_integer(1), is_integer(np.int64(1)), is_integer(True), is_integer(1.0)
        (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a number, of Python or NumPy, and no boolean; NaN and infinity count, huge `int` do not.

    Example:
        >>> is_number(1), is_number(np.float32(0.5)), is_number(True), is_number("1"), is_number(10**400)
        (True, True, False, False, False)
    """
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= MOST_BITS
    return isinstance(value, (float, np.integer, np.floating))


@overload
def check_integer(
    name: str,
    value: Any,
    least: int = ...,
    most: int | None = ...,
    *,
    optional: Literal[False] = ...,
    error: type[DriftEnvsError] = ...,
) -> int: ...


@overload
def check_integer(
    name: str,
    value: Any,
    least: int = ...,
    most: int | None = ...,
    *,
    optional: Literal[True],
    error: type[DriftEnvsError] = ...,
) -> int | None: ...


def check_integer(
    name: str,
    value: Any,
    least: int = 0,
    most: int | None = None,
    *,
    optional: bool = False,
    error: type[DriftEnvsError] = ArgumentError,
) -> int | None:
    """Return a whole number of the range as an `int`.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        least: the smallest value allowed.
        most: the largest value allowed, if there is a limit.
        optional: whether `None` is allowed too.
        error: what is raised.

    Raises:
        ArgumentError: if it is anything else, or the class given by `error`.

    Example:
        >>> check_integer("seed", np.int64(3))
        3
        >>> check_integer("seed", -1)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `seed` should be a whole number, at least 0. Received -1
        >>> check_integer("pool", "5", 1, 9, optional=True)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `pool` should be a whole number in the interval [1, 9], or None. Received '5'
    """
    if value is None and optional:
        return None
    if is_integer(value) and value >= least and (most is None or value <= most):
        return int(value)
    rule = f"at least {least}" if most is None else f"in the interval [{least}, {most}]"
    comma = "," if most is None else ""
    raise error(
        f"`{name}` should be a whole number{comma} {rule}{', or None' if optional else ''}. Received {represent(value)}"
    )


@overload
def check_count(
    name: str, value: Any, least: int = ..., most: int | None = ..., *, optional: Literal[False] = ...
) -> int: ...


@overload
def check_count(
    name: str, value: Any, least: int = ..., most: int | None = ..., *, optional: Literal[True]
) -> int | None: ...


def check_count(
    name: str, value: Any, least: int = 1, most: int | None = None, *, optional: bool = False
) -> int | None:
    """Return a whole number, as `check_integer` does; by default at least 1 and at most `LARGEST_COUNT`.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_count("budget", 0)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `budget` should be a whole number, at least 1. Received 0
        >>> check_count("k", 10**7)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `k` should be a whole number in the interval [1, 1000000]. Received 10000000
    """
    if most is None and is_integer(value) and value > LARGEST_COUNT:
        most = LARGEST_COUNT
    if optional:
        return check_integer(name, value, least, most, optional=True)
    return check_integer(name, value, least, most)


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    error: type[DriftEnvsError] = ArgumentError,
) -> float:
    """Return a number of a closed interval as a `float`; NaN is in no interval.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        low: the smallest value allowed.
        high: the largest value allowed.
        error: what is raised.

    Raises:
        ArgumentError: if it is anything else, or the class given by `error`.

    Example:
        >>> check_number("slip", 1, 0, 1)
        1.0
        >>> check_number("slip", 1.2, 0, 1)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `slip` should be a number in the interval [0, 1]. Received 1.2
    """
    if is_number(value) and low <= value <= high:
        return float(value)
    if math.isfinite(low) and math.isfinite(high):
        rule = f" in the interval [{low:g}, {high:g}]"
    elif math.isfinite(low) or math.isfinite(high):
        rule = f", at least {low:g}" if math.isfinite(low) else f", at most {high:g}"
    else:
        rule = ""
    raise error(f"`{name}` should be a number{rule}. Received {represent(value)}")


@overload
def check_interval(name: str, value: Any, interval: str, *, optional: Literal[False] = ...) -> float: ...


@overload
def check_interval(name: str, value: Any, interval: str, *, optional: Literal[True]) -> float | None: ...


def check_interval(name: str, value: Any, interval: str, *, optional: bool = False) -> float | None:
    """Return a number of an interval, as a float; NaN is in no interval.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        interval: as in `[0, 1]`, `(0, 1]` or `[0, inf)`; a parenthesis excludes the bound.
        optional: whether `None` is allowed too.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_interval("delta", 1, "[0, 1]")
        1.0
        >>> check_interval("delta", 1.2, "(0, 1)")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `delta` should be in the interval (0, 1). Received 1.2
    """
    if value is None and optional:
        return None
    low, high, open_below, open_above = _parse_interval(interval)
    if is_number(value) and low <= value <= high:
        excluded = (open_below and value == low) or (open_above and value == high)
        if not excluded:
            return float(value)
    raise ArgumentError(
        f"`{name}` should be in the interval {interval}{', or None' if optional else ''}. Received {represent(value)}"
    )


@lru_cache
def _parse_interval(interval: str) -> tuple[float, float, bool, bool]:
    """The bounds of an interval, and whether each is excluded."""
    match = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", interval)
    if match is None:
        raise ArgumentError(f"`interval` should be written as in '[0, 1)'. Received {interval!r}")
    left, low, high, right = match.groups()
    return float(low), float(high), left == "(", right == ")"


def check_flag(name: str, value: Any, *, error: type[DriftEnvsError] = ArgumentError) -> bool:
    """Return true or false; the string `"no"` of a file is refused, since it would count as true.

    Raises:
        ArgumentError: if it is anything else, or the class given by `error`.

    Example:
        >>> check_flag("overlay", "no")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `overlay` should be true or false. Received 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"`{name}` should be true or false. Received {value!r}")
    return bool(value)


@overload
def check_choice(name: str, value: Any, options: Iterable[str], *, optional: Literal[False] = ...) -> str: ...


@overload
def check_choice(name: str, value: Any, options: Iterable[str], *, optional: Literal[True]) -> str | None: ...


def check_choice(name: str, value: Any, options: Iterable[str], *, optional: bool = False) -> str | None:
    """Return one of several strings.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        options: the strings allowed.
        optional: whether `None` is allowed too.

    Raises:
        ArgumentError: if it is none of them.

    Example:
        >>> check_choice("notify", "all", ("none", "change", "full"))
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `notify` should be one of none, change, full. Received 'all'
    """
    known = tuple(options)
    if value is None and optional:
        return None
    if isinstance(value, str) and value in known:
        return value
    raise ArgumentError(
        f"`{name}` should be one of {', '.join(known)}{', or None' if optional else ''}. Received {value!r}"
    )


def check_single(env: Any, name: str = "env", otherwise: str = "") -> None:
    """Refuse what is no single environment, such as an id or a vector environment.

    Args:
        env: what a wrapper is put around.
        name: the argument.
        otherwise: what there is for vector environments, as the end of the message.

    Raises:
        ArgumentError: if it is no `gymnasium.Env`.

    Example:
        >>> check_single("DriftCartPole-v0")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `env` should be a single environment, a `gymnasium.Env`. Received \
'DriftCartPole-v0'; make it first: `gym.make('DriftCartPole-v0')`
    """
    if not isinstance(env, gym.Env):
        is_vector = isinstance(env, gym.vector.VectorEnv)
        advice = f"; make it first: `gym.make({env!r})`" if isinstance(env, str) else otherwise if is_vector else ""
        raise ArgumentError(f"`{name}` should be a single environment, a `gymnasium.Env`. Received {env!r}{advice}")


def check_reward(reward: Any) -> float:
    """Return a reward as one number.

    Args:
        reward: of an environment; a number, or an array that holds one.

    Raises:
        ArgumentError: if it is a vector, as in environments of several objectives.

    Example:
        >>> check_reward(np.array([0.5]))
        0.5
        >>> check_reward(np.array([1.0, -1.0]))
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: the reward should be one number: wrap the environment so that it weighs its \
objectives. Received [1.0, -1.0]
    """
    if reward.__class__ is float:  # the usual one, at the cost of a comparison
        return reward  # type: ignore[no-any-return]
    if isinstance(reward, (bool, np.bool_)) or is_number(reward):
        return float(reward)
    shown = reward.tolist() if isinstance(reward, np.ndarray) else reward
    if isinstance(reward, np.ndarray) and reward.size == 1:
        return float(reward.item())
    raise ArgumentError(
        f"the reward should be one number: wrap the environment so that it weighs its objectives. Received {shown!r}"
    )


def check_action(action: Any, count: int) -> int:
    """Return an action of a `Discrete` space as an `int`; all that `Discrete.contains` accepts is accepted.

    Args:
        action: an integer of Python or NumPy, or an integer array without dimensions.
        count: the number of actions.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_action(np.array(1), 4)
        1
        >>> check_action(1.0, 4)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `action` should be one of 0, 1, 2, 3. Received 1.0
    """
    if isinstance(action, int) or (
        isinstance(action, (np.generic, np.ndarray)) and action.shape == () and action.dtype.kind in "iu"
    ):
        number = int(action)
        if 0 <= number < count:
            return number
    raise ArgumentError(f"`action` should be one of {', '.join(map(str, range(count)))}. Received {action!r}")


def check_force(action: Any) -> Any:
    """Return an action of a `Box` with one component unchanged.

    Args:
        action: a sequence or array of shape `(1,)`.

    Raises:
        ArgumentError: if it is anything else, or the number is not finite.

    Example:
        >>> check_force([0.5])
        [0.5]
        >>> check_force({1: 2})
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `action` should be a sequence of one finite number. Received {1: 2}
    """
    try:
        array = np.asarray(action) if isinstance(action, (list, tuple, np.ndarray)) else None
    except (ValueError, TypeError, OverflowError):  # a ragged list, for example
        array = None
    if array is None or array.shape != (1,) or array.dtype.kind not in "biuf" or not np.isfinite(array[0]):
        raise ArgumentError(f"`action` should be a sequence of one finite number. Received {action!r}")
    return action
