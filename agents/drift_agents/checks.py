"""Checks of arguments; each error names the argument, the rule and the value.

* `check_integer`, `check_number`, `check_flag`, `check_choice` - return the value, or raise `ArgumentError`
* `LARGEST_COUNT`, `LARGEST_SEED` - the limits of whole numbers
* `is_integer`, `is_number` - the same type tests as predicates; `True` and `False` are neither
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, TypeGuard, overload

from drift_agents.errors import ArgumentError

LARGEST_COUNT = 1_000_000
"""The largest count of anything, where no other limit is stated: more would not fit into memory, or never end."""

LARGEST_SEED = 2**63 - 1

MOST_BITS = 1000
"""Whole numbers up to this length can be converted to `float`."""


def is_integer(value: object) -> TypeGuard[int]:
    """Whether the value is an `int` and no `bool`.

    Example:
        >>> is_integer(1), is_integer(True), is_integer(1.0)
        (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is an `int` or a `float`, NaN and infinity included, and no `bool`; huge `int` do not count.

    Example:
        >>> is_number(1), is_number(0.5), is_number(True), is_number("1"), is_number(10**400)
        (True, True, False, False, False)
    """
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= MOST_BITS
    return isinstance(value, float)


@overload
def check_integer(
    name: str, value: Any, least: int = ..., most: int | None = ..., *, optional: Literal[False] = ...
) -> int: ...


@overload
def check_integer(
    name: str, value: Any, least: int = ..., most: int | None = ..., *, optional: Literal[True]
) -> int | None: ...


def check_integer(
    name: str, value: Any, least: int = 1, most: int | None = None, *, optional: bool = False
) -> int | None:
    """Return a whole number of the range.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        least: the smallest value allowed; by default, the number is positive.
        most: the largest value allowed; by default, `LARGEST_COUNT`.
        optional: whether `None` is allowed too.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_integer("budget", 3)
        3
        >>> check_integer("budget", 0)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `budget` should be a whole number, at least 1. Received 0
        >>> check_integer("k", "5", most=9, optional=True)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `k` should be a whole number in the interval [1, 9], or None. Received '5'
        >>> check_integer("k", 10**7)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `k` should be a whole number in the interval [1, 1000000]. Received 10000000
    """
    if value is None and optional:
        return None
    if is_integer(value) and least <= value <= (LARGEST_COUNT if most is None else most):
        return value
    if most is None and is_integer(value) and value >= least:
        most = LARGEST_COUNT
    rule = f"a whole number, at least {least}" if most is None else f"a whole number in the interval [{least}, {most}]"
    raise ArgumentError(f"`{name}` should be {rule}{', or None' if optional else ''}. Received {_show(value)}")


def _show(value: object) -> str:
    """The value for a message; Python refuses to write whole numbers of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a whole number of {value.bit_length()} bits"
    return repr(value)


@overload
def check_number(name: str, value: Any, interval: str, *, optional: Literal[False] = ...) -> float: ...


@overload
def check_number(name: str, value: Any, interval: str, *, optional: Literal[True]) -> float | None: ...


def check_number(name: str, value: Any, interval: str, *, optional: bool = False) -> float | None:
    """Return a number of an interval, as a float; NaN is in no interval.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        interval: as in `[0, 1]`, `(0, 1]` or `[0, inf)`; a parenthesis excludes the bound.
        optional: whether `None` is allowed too.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_number("delta", 1, "[0, 1]")
        1.0
        >>> check_number("delta", 1.2, "(0, 1)")
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `delta` should be in the interval (0, 1). Received 1.2
    """
    if value is None and optional:
        return None
    low, high, open_below, open_above = _parse_interval(interval)
    if is_number(value) and low <= value <= high:
        excluded = (open_below and value == low) or (open_above and value == high)
        if not excluded:
            return float(value)
    raise ArgumentError(
        f"`{name}` should be in the interval {interval}{', or None' if optional else ''}. Received {_show(value)}"
    )


@lru_cache
def _parse_interval(interval: str) -> tuple[float, float, bool, bool]:
    """The bounds of an interval, and whether each is excluded."""
    match = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", interval)
    if match is None:
        raise ArgumentError(f"`interval` should be written as in '[0, 1)'. Received {interval!r}")
    left, low, high, right = match.groups()
    return float(low), float(high), left == "(", right == ")"


def check_flag(name: str, value: Any) -> bool:
    """Return true or false; the string `"no"` of a file is refused, since it would count as true.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_flag("strict", "no")
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `strict` should be true or false. Received 'no'
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"`{name}` should be true or false. Received {value!r}")
    return value


@overload
def check_choice(name: str, value: Any, known: Iterable[str], *, optional: Literal[False] = ...) -> str: ...


@overload
def check_choice(name: str, value: Any, known: Iterable[str], *, optional: Literal[True]) -> str | None: ...


def check_choice(name: str, value: Any, known: Iterable[str], *, optional: bool = False) -> str | None:
    """Return one of the known names.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        known: the names allowed.
        optional: whether `None` is allowed too.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_choice("order", "random", ("oldest", "newest"))
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `order` should be one of oldest, newest. Received 'random'
    """
    known = tuple(known)
    if value is None and optional:
        return None
    if isinstance(value, str) and value in known:
        return value
    allowed = f"one of {', '.join(known)}{', or None' if optional else ''}"
    raise ArgumentError(f"`{name}` should be {allowed}. Received {value!r}")
