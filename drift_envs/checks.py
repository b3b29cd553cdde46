"""Checks of arguments; each error names the argument, the rule and the value.

* `check_integer`, `check_number`, `check_flag`, `check_choice` - return the value, or raise `ArgumentError`
* `check_action`, `check_force` - actions of a `Discrete` space, and of a `Box` of one number
* `is_integer`, `is_number` - the same type tests as predicates; NumPy's numbers count, `True` and `False` do not
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, TypeGuard, overload

import numpy as np

from drift_envs.errors import ArgumentError, DriftEnvsError

LARGEST_COUNT = 1_000_000
"""The largest count of goals, resamples, sub-environments and the like."""

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
        f"`{name}` should be a whole number{comma} {rule}{', or None' if optional else ''}. Received {_show(value)}"
    )


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
    raise error(f"`{name}` should be a number{rule}. Received {_show(value)}")


def _show(value: object) -> str:
    """The value for a message; Python refuses to write whole numbers of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a whole number of {value.bit_length()} bits"
    return repr(value)


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


def check_choice(name: str, value: Any, options: Iterable[str], *, error: type[DriftEnvsError] = ArgumentError) -> str:
    """Return one of several strings.

    Raises:
        ArgumentError: if it is none of them, or the class given by `error`.

    Example:
        >>> check_choice("notify", "all", ("none", "change", "full"))
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `notify` should be one of none, change, full. Received 'all'
    """
    known = list(options)
    if not isinstance(value, str) or value not in known:
        raise error(f"`{name}` should be one of {', '.join(known)}. Received {value!r}")
    return value


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
