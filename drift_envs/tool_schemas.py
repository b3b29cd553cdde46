"""What environments with another package's tools share: names of tools in knobs, and values checked by JSON Schema.

* `check_path` - refuses what names no tool or argument in a knob
* `parse_names`, `unique_names` - the knob `names`, and its rule
* `fits` - whether a value is one of a schema
* `name_type` - the type of a schema for an error
* `measure` - the length of a text as observations have it
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from drift_envs.checks import is_integer, is_number
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Value

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
