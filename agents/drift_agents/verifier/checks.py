"""Checks of what a user gives to a verifier; each names the option, the rule and the value.

* `count` - a positive whole number
* `inside` - a number in an interval
* `flag` - true or false
"""

from __future__ import annotations

from typing import Any

from drift_agents.errors import ArgumentError


def count(name: str, value: Any, *, at_least: int = 1) -> int:
    """A whole number, positive or not below `at_least`, or an error of ours.

    Raises:
        ArgumentError: if it is anything else; `True` is no number here.

    Example:
        >>> count("budget", 0)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `budget` should be a positive whole number. Received 0
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        rule = "a positive whole number" if at_least == 1 else f"a whole number of at least {at_least}"
        raise ArgumentError(f"`{name}` should be {rule}. Received {value!r}")
    return value


def inside(name: str, value: Any, low: float, high: float, *, closed: bool = False) -> float:
    """A number above `low` and below `high` (or equal to `high` when `closed`), or an error of ours.

    Raises:
        ArgumentError: if it is no number or lies outside.

    Example:
        >>> inside("delta", 1.2, 0.0, 1.0)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `delta` should be in the interval (0, 1). Received 1.2
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not (low < value < high or (closed and value == high)):
        bracket = "]" if closed else ")"
        raise ArgumentError(f"`{name}` should be in the interval ({low:g}, {high:g}{bracket}. Received {value!r}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """True or false, or an error of ours: a file's `"no"` is a string, and would count as true.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> flag("strict", "no")
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `strict` should be true or false. Received 'no'
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"`{name}` should be true or false. Received {value!r}")
    return value
