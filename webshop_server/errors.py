"""The errors that a user of `webshop_server` can cause, and checks of arguments that name argument, rule and value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import TypeVar

_SHOWN = 200
"""The characters of a value that an error shows."""


class ShopError(Exception):
    """The base class of the errors of this package."""


class CatalogueError(ShopError, OSError):
    """A catalogue file or its search index cannot be used; the message says which, why, and what to do."""


class ImportProblem(ShopError, ValueError):
    """The files to import cannot be read; the message names the file, the place and the reason."""


class SettingsError(ShopError, ValueError):
    """A setting does not exist or does not allow the value; the message says name, rule and value."""


class ArgumentError(ShopError, ValueError):
    """An argument breaks a rule; the message says which argument, which rule and which value."""


class StateFileError(ShopError, OSError):
    """The file of sessions and orders, or the log of a session, cannot be used; the message says which and why."""


class SessionError(ShopError, RuntimeError):
    """A session does not exist, or it is over."""


E = TypeVar("E", bound=ShopError)


def refuse(name: str, rule: str, value: object, error: type[E]) -> E:
    """Return the error of an argument that breaks a rule; the caller raises it.

    Example:
        >>> refuse("port", "a number", "x", ArgumentError)
        ArgumentError("`port` should be a number. Received 'x'")
    """
    text = repr(value)
    return error(f"`{name}` should be {rule}. Received {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}")


def check_integer(
    name: str, value: object, low: int, high: int | None = None, error: type[ShopError] = ArgumentError
) -> int:
    """Return an integer of any type, NumPy's included, as an `int`; `bool` is refused.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        low: the smallest value allowed.
        high: the largest value allowed, if there is a limit.
        error: the class of the error.

    Raises:
        ShopError: it is anything else; of the class `error`.

    Example:
        >>> check_integer("threads", 8, 1, 256)
        8
        >>> check_integer("threads", True, 1, 256)
        Traceback (most recent call last):
        webshop_server.errors.ArgumentError: `threads` should be a whole number in the interval [1, 256]. Received True
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if low <= number and (high is None or number <= high):
            return number
    rule = f"a whole number, at least {low}" if high is None else f"a whole number in the interval [{low}, {high}]"
    raise refuse(name, rule, value, error)


def check_number(name: str, value: object, low: float, high: float, error: type[ShopError] = ArgumentError) -> float:
    """Return an `int` or `float` of the closed interval, unchanged; `bool` is refused.

    Args:
        name: the argument's name, as the message shows it.
        value: the argument.
        low: the lower bound.
        high: the upper bound.
        error: the class of the error.

    Raises:
        ShopError: it is anything else; of the class `error`.

    Example:
        >>> check_number("price_factor", 0, 0.01, 100)
        Traceback (most recent call last):
        webshop_server.errors.ArgumentError: `price_factor` should be in the interval [0.01, 100]. Received 0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise refuse(name, "a number", value, error)
    if not low <= value <= high:
        raise refuse(name, f"in the interval [{low}, {high}]", value, error)
    return value


def check_flag(name: str, value: object, error: type[ShopError] = ArgumentError) -> bool:
    """Return `True` or `False`; strings and numbers are refused.

    Raises:
        ShopError: it is anything else; of the class `error`.
    """
    if not isinstance(value, bool):
        raise refuse(name, "true or false", value, error)
    return value


def check_choice(name: str, value: object, choices: Iterable[str], error: type[ShopError] = ArgumentError) -> str:
    """Return one of the choices.

    Raises:
        ShopError: it is anything else; of the class `error`.

    Example:
        >>> check_choice("split", "dev", ("test", "eval", "train"))
        Traceback (most recent call last):
        webshop_server.errors.ArgumentError: `split` should be one of test, eval, train. Received 'dev'
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise refuse(name, f"one of {', '.join(choices)}", value, error)
    return value


def describe_write_error(error: OSError) -> str:
    """Why a file or a folder cannot be written.

    Example:
        >>> describe_write_error(FileExistsError(17, "File exists"))
        'a file or a broken link has the name of a folder'
    """
    if isinstance(error, (FileExistsError, NotADirectoryError)):  # from making folders
        return "a file or a broken link has the name of a folder"
    return str(error)
