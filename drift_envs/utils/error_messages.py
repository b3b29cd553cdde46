"""How messages of errors write keys, values and known names, and what pydantic found wrong with data.

* `describe_os_error` - why a file or a folder cannot be written
* `represent`, `show` - a value as Python writes it, and as YAML does
* `key_path`, `nearest` - the way to a value, and the known names that are most like an unknown one
* `broken_rule`, `describe_invalid` - what is wrong with data that a pydantic model refuses
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

_MOST_BITS = 1000
"""Longer whole numbers are shown by their length: Python refuses to write those of more than 4,300 digits."""

_MOST_CHARACTERS = 60
"""The longest value that `show` writes."""

_MOST_NAMES = 20
"""Of more names, `nearest` lists the nearest ones only."""


def represent(value: object) -> str:
    """A value as Python writes it; a very long whole number by its length.

    Example:
        >>> represent("B"), represent(10**400)
        ("'B'", 'a whole number of 1329 bits')
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a whole number of {value.bit_length()} bits"
    return repr(value)


def show(value: Any) -> str:
    """A value as YAML writes it, cut to a readable length.

    Example:
        >>> show(None), show(True), show("B")
        ('null', 'true', "'B'")
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = represent(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 4]} ..."


def describe_os_error(error: OSError) -> str:
    """Why a file or a folder cannot be written.

    Example:
        >>> describe_os_error(FileExistsError(17, "File exists"))
        'a file or a broken link has the name of a folder'
    """
    if isinstance(error, (FileExistsError, NotADirectoryError)):  # from making folders
        return "a file or a broken link has the name of a folder"
    return error.strerror or str(error)


def key_path(path: Iterable[str | int]) -> str:
    """A path in the notation of messages.

    Example:
        >>> key_path(("drifts", 1, "set", "map"))
        'drifts[1].set.map'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggests the known name that is most like an unknown one, or lists them all, of many names the nearest.

    Example:
        >>> nearest("slipp", ["map", "slip"])
        'Did you mean `slip`?'
        >>> nearest("gravity", ["map", "slip"])
        'Known: `map`, `slip`'
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean `{close[0]}`?"
    if len(names) > _MOST_NAMES:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0)
        return f"The nearest of {len(names)}: {', '.join(f'`{name}`' for name in near)}"
    return f"Known: {', '.join(f'`{name}`' for name in names)}" if names else "There are none"


_RULES = {
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
    "dict_type": "should be a mapping",
    "extra_forbidden": "is no key that belongs here",
    "model_type": "should be a mapping",
    "model_attributes_type": "should be a mapping",
    "tuple_type": "should be a list",
    "string_too_short": "should have at least {min_length} characters",
    "string_pattern_mismatch": "should consist of letters, digits, `_`, `-` and `.`, and begin with a letter or digit; "
    "letters are a to z and A to Z",
    "greater_than": "should be more than {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be at most {le}",
    "literal_error": "should be {expected}",
    "too_short": "should have at least {min_length} entries",
    "too_long": "should have at most {max_length} entries",
}
"""The words of this package for the errors of pydantic, by type."""


def broken_rule(found: Mapping[str, Any]) -> str:
    """What is wrong with one value, after one of the errors of a pydantic `ValidationError`: rule, value and advice.

    Example:
        >>> broken_rule({"type": "greater_than_equal", "ctx": {"ge": 1}, "input": 0, "msg": "..."})
        'should be at least 1. Received 0'
    """
    kind, received, context = found["type"], found["input"], found.get("ctx", {})
    if kind == "missing":
        return "is missing"
    message = found["msg"].removeprefix("Input ")
    rule = _RULES[kind].format_map(context) if kind in _RULES else message[0].lower() + message[1:]
    if kind == "json_invalid":  # the message says where; the value is the whole text
        return rule
    text = f"{rule}. Received {len(received) if kind in ('too_short', 'too_long') else show(received)}"
    if kind == "literal_error" and isinstance(received, str):
        options = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        close = difflib.get_close_matches(received, options, n=1)
        text += f". Did you mean '{close[0]}'?" if close else ""
    return text


def describe_invalid(error: Any) -> str:
    """The first finding of a pydantic `ValidationError` on one line: the key, the rule and the value.

    Example:
        >>> from pydantic import TypeAdapter, ValidationError
        >>> try:
        ...     TypeAdapter(dict[str, list[int]]).validate_json('{"goals": [1, null]}')
        ... except ValidationError as error:
        ...     print(describe_invalid(error))
        `goals[1]` should be a whole number. Received null
    """
    first = error.errors(include_url=False)[0]
    place = key_path(first["loc"])
    return f"{f'`{place}` ' if place else ''}{broken_rule(first)}"
