"""Calls of tools as JSON: how they are read, the forms of errors, what a schema takes, and the knobs of names."""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from drift_envs.checks import is_integer, is_number
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, Value, mapping_knob

ERRORS = ("words", "numbers", "terse")
"""Errors with a code and a message, with a number alone, or with no reason at all."""

ERROR_NUMBERS = {
    "invalid_call": 400,
    "unknown_tool": 404,
    "missing_argument": 421,
    "unexpected_argument": 422,
    "invalid_value": 423,
    "not_found": 440,
    "not_looked_up": 441,
    "conflict": 409,
    "redundant": 424,
    "policy": 403,
    "gone": 410,
}

NO_RECORD = "not_found", "there is no such record"
"""Code and message of the error for an id that there is not, which is also the answer to a call that was lost."""

MOST_CHARACTERS = 2000
"""The longest call that is read."""

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an answer can have."""


class Refusal(Exception):
    """A tool's error, which a client gets as an answer.

    Args:
        code: its code, a key of `ERROR_NUMBERS`.
        message: the message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def write_error(refusal: Refusal, form: str) -> dict[str, Any]:
    """A tool's error in a form.

    Args:
        refusal: the error.
        form: one of `ERRORS`.

    Example:
        >>> write_error(Refusal("not_found", "there is no such record"), "numbers")
        {'error': 440}
    """
    if form == "words":
        return {"error": refusal.code, "message": refusal.message}
    return {"error": ERROR_NUMBERS[refusal.code] if form == "numbers" else "failed"}


def read_call(text: str, most: int = MOST_CHARACTERS) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call.

    Args:
        text: the call as JSON.
        most: the most characters of a call.

    Raises:
        Refusal: it is no JSON object with `tool` and `arguments`.

    Example:
        >>> read_call('{"tool": "find_customer", "arguments": {"email": "a@example.org"}}')
        ('find_customer', {'email': 'a@example.org'})
    """
    if measure(text) > most:
        raise Refusal("invalid_call", f"a call should have at most {most} characters")
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or set(call) - {"tool", "arguments"}:
        raise Refusal("invalid_call", 'a call should be JSON: {"tool": NAME, "arguments": {...}}')
    given = call.get("arguments", {})
    if not isinstance(given, dict):
        raise Refusal("invalid_call", "`arguments` should be an object")
    return call["tool"], given


MOST_NUMBER = 10**12
"""The largest number in an argument."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PATH = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})?")


def check_path(knob: str, path: Any, is_argument: bool) -> None:
    """Refuse what names no tool or argument.

    Args:
        knob: the name of the knob.
        path: a tool, or tool.argument.
        is_argument: whether only an argument is allowed.

    Raises:
        KnobError: it has another form.
    """
    if not isinstance(path, str) or _PATH.fullmatch(path) is None or (is_argument and "." not in path):
        form = "arguments such as 'create_ticket.priority'" if is_argument else "tools, or arguments as 'cd.folder'"
        raise KnobError(f"`{knob}` should name {form}. Received {path!r}")


def parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools and arguments, and their new names.

    Args:
        value: the knob's value.

    Raises:
        KnobError: a name has another form.
    """
    for old, new in value.items():
        check_path("names", old, is_argument=False)
        if not isinstance(new, str) or _NAME.fullmatch(new) is None:
            raise KnobError(f"`names` should give {old!r} a name of letters, digits and `_`. Received {new!r}")
    return FrozenMapping(value)


CONFIRM = "confirm"
"""The argument that a package's tool may come to require."""


def parse_required(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools of a package, and the argument that each has come to require.

    Args:
        value: the knob's value.

    Raises:
        KnobError: a name has another form, or another argument is required.
    """
    for tool, extra in value.items():
        check_path("required", tool, is_argument=False)
        if extra != CONFIRM:
            raise KnobError(f"`required` should give {tool!r} `{CONFIRM}`. Received {extra!r}")
    return FrozenMapping(value)


MOST_SILENT = 3


def _parse_silent(check_tool: Callable[[str], None], value: Mapping[str, Any]) -> FrozenMapping:
    for tool, count in value.items():
        check_tool(tool)
        if not is_integer(count) or not 0 <= count <= MOST_SILENT:
            raise KnobError(
                f"`silent` should give {tool!r} a whole number in the interval [0, {MOST_SILENT}]. Received {count!r}"
            )
    return FrozenMapping(value)


def silent_knob(check_tool: Callable[[str], None]) -> Knob:
    """The knob `silent`.

    Args:
        check_tool: raises a `KnobError` for what names no tool that writes.
    """
    about = "tool: how many of its first writes in an episode report success and do nothing"
    return mapping_knob("silent", about, partial(_parse_silent, check_tool))


LOST_CALLS = Knob(
    "transient", 0.0, (0.0, 1.0), "probability that a call is lost and answered as if no record were there"
)


def unique_names(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """No two tools, and no two arguments of a tool, may get one name.

    Args:
        values: the values of all knobs.
    """
    given: dict[tuple[str, str], str] = {}
    for old, new in values["names"].items():
        place = old.rpartition(".")[0], new
        if place in given:
            yield "names", f"{given[place]} and {old} should not get one name. Received {new!r}"
        given[place] = old


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value is one of a schema, and its numbers are within `MOST_NUMBER`.

    Args:
        schema: the JSON Schema, without references.
        value: the value as JSON.

    Example:
        >>> fits({"type": "array", "items": {"type": "integer"}}, [1, 2]), fits({"type": "integer"}, True)
        (True, False)
    """
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    kind = schema["type"]
    if kind in ("integer", "number"):
        has_type = is_integer(value) if kind == "integer" else is_number(value)
        return has_type and math.isfinite(value) and abs(value) <= MOST_NUMBER
    if kind == "array":
        return isinstance(value, list) and all(fits(schema["items"], one) for one in value)
    if kind == "object":
        parts = schema["properties"]
        return (
            isinstance(value, dict)
            and all(name in value for name in schema.get("required", ()))
            and all(name in parts and fits(parts[name], one) for name, one in value.items())
        )
    return isinstance(value, {"string": str, "boolean": bool}[kind])


def name_type(schema: Mapping[str, Any]) -> str:
    """The type of a schema for an error.

    Args:
        schema: the JSON Schema.

    Example:
        >>> name_type({"type": "integer"}), name_type({"enum": ["yes", "no"]})
        ('a whole number', '"yes" or "no"')
    """
    words = {"integer": "a whole number", "number": "a number", "array": "a list", "object": "an object"}
    if "enum" in schema:
        return " or ".join(json.dumps(one) for one in schema["enum"])
    return {**words, "string": "a text", "boolean": "true or false"}[schema["type"]]


def measure(text: str) -> int:
    """The length of a text whose characters beyond ASCII are escaped, as observations have them.

    Args:
        text: the text.
    """
    return len(text) if text.isascii() else sum(1 if one < "\x80" else 6 if one < "\U00010000" else 12 for one in text)
