"""JSON in texts, and the rules of JSON Schema that it is checked by.

* `violations` - the rules of a schema that some JSON breaks
* `parse_json`, `parse_object`, `find_objects` - the JSON that a text is, or holds
* `coerce`, `nearest` - JSON whose types alone differ from those of a schema

The package `jsonschema` does not replace `violations`, for reasons that the tests hold: its messages differ, and a
message becomes part of the next request, which recorded replies are looked up by; NaN, which Python's JSON reader lets
through, passes its bounds; and it ignores keywords that it does not support, where a schema with a misspelt rule is
refused here. The rules of a run without any language model are checked too, without a further dependency. A test
compares both on generated data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drift_envs.errors import ArgumentError

NUMBER = re.compile(r"\s*-?\d{1,30}(\.\d{1,30})?\s*")
"""A number in words of its own."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
ANNOTATIONS = frozenset({"title", "description", "examples", "default", "$schema"})
"""Keywords without an effect on what is valid."""
_BOUNDS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"})
_RULES = _BOUNDS | {"type", "enum", "items", "properties", "required", "additionalProperties"}


def violations(data: Any, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """Describe every rule of a schema that some JSON breaks.

    Supported are `type` (one name), `enum`, `minimum`, `maximum`, `minLength`, `maxLength`,
    `minItems`, `maxItems`, `items`, `properties`, `required` and `additionalProperties`
    (true or false), beside annotations.

    Args:
        data: parsed JSON.
        where: the name of the data in messages.

    Returns:
        One sentence for every broken rule; empty when the data is valid.

    Raises:
        ArgumentError: if the schema has a rule that is not supported.

    Example:
        >>> form = {"type": "object", "properties": {"importance": {"type": "integer", "maximum": 10}}}
        >>> violations({"importance": 7}, form)
        []
        >>> violations({"importance": 11}, form)
        ['answer.importance should be at most 10, is 11']
    """
    unknown = sorted(set(schema) - _RULES - ANNOTATIONS)
    kind = schema.get("type")
    if unknown or not (kind is None or (isinstance(kind, str) and kind in _TYPES)):
        raise ArgumentError(
            f"a schema should use the types {', '.join(_TYPES)} and the rules {', '.join(sorted(_RULES))} alone. "
            f"Received {dict(schema)!r}"
        )
    # True is a number to Python, not to JSON.
    if kind is not None and (not isinstance(data, _TYPES[kind]) or (isinstance(data, bool) and kind != "boolean")):
        return [f"{where} should be of type {kind}, is {data!r}"]
    errors = []
    if "enum" in schema and data not in schema["enum"]:
        errors.append(f"{where} should be one of {schema['enum']!r}, is {data!r}")
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        errors += _check_bounds(where, data, schema.get("minimum"), schema.get("maximum"))
    elif isinstance(data, str):
        errors += _check_bounds(f"the length of {where}", len(data), schema.get("minLength"), schema.get("maxLength"))
    elif isinstance(data, list):
        errors += _check_bounds(f"the length of {where}", len(data), schema.get("minItems"), schema.get("maxItems"))
        for i, item in enumerate(data):
            errors += violations(item, schema.get("items", {}), f"{where}[{i}]")
    elif isinstance(data, dict):
        properties = schema.get("properties", {})
        errors += [f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in data]
        for key, value in data.items():
            if key in properties:
                errors += violations(value, properties[key], f"{where}.{key}")
            elif schema.get("additionalProperties", True) is False:
                errors.append(f"{where}.{key} should not be there")
    return errors


def _check_bounds(where: str, value: float, low: float | None, high: float | None) -> list[str]:
    """At most one sentence; NaN is outside of any bounds."""
    if low is not None and not value >= low:
        return [f"{where} should be at least {low}, is {value!r}"]
    if high is not None and not value <= high:
        return [f"{where} should be at most {high}, is {value!r}"]
    return []


def without_surrogates(text: str) -> str:
    r"""Return a text that can be encoded as UTF-8.

    Args:
        text: the text.

    Example:
        >>> without_surrogates("a\ud800b")
        'a\ufffdb'
    """
    return _SURROGATES.sub("\ufffd", text)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
"""JSON does not have NaN and infinity, which Python's parser accepts."""


def parse_json(text: str) -> Any:
    """The JSON of a whole text, `None` if it is none.

    Args:
        text: the text.
    """
    try:
        return _clean(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _clean(data: Any) -> Any:
    """JSON without lone surrogates, which escapes can produce."""
    return json.loads(without_surrogates(json.dumps(data, ensure_ascii=False)))


def find_objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The outermost JSON objects of a text, in order, each with where it begins and ends.

    Args:
        text: the text.

    Example:
        >>> list(find_objects('either {"a": 1} or {'))
        [({'a': 1}, 7, 15)]
    """
    start = text.find("{")
    while start >= 0:
        try:
            data, end = _DECODER.raw_decode(text, start)
            data = _clean(data)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield data, start, end
        start = text.find("{", end)


def parse_object(text: Any) -> Any:
    """The JSON object or list that a text is, `None` if it is none.

    Args:
        text: a text, or anything else.
    """
    return parse_json(text) if isinstance(text, str) and text.lstrip()[:1] in ("{", "[") else None


def coerce(data: Any, schema: Mapping[str, Any]) -> Any:
    """Convert to the types of the schema, where nothing but the type differs, and leave out further keys.

    Args:
        data: parsed JSON.
        schema: the form.

    Example:
        >>> coerce({"n": "3", "more": 1}, {"properties": {"n": {"type": "integer"}}, "additionalProperties": False})
        {'n': 3}
    """
    if isinstance(data, dict) and "properties" in schema:
        properties, is_closed = schema["properties"], schema.get("additionalProperties", True) is False
        return {
            key: coerce(value, properties.get(key, {}))
            for key, value in data.items()
            if not is_closed or key in properties
        }
    if isinstance(data, list) and "items" in schema:
        return [coerce(value, schema["items"]) for value in data]
    if "enum" in schema:
        return nearest(data, schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number") and isinstance(data, str) and NUMBER.fullmatch(data):
        data = float(data) if "." in data else int(data)
    if kind == "integer" and isinstance(data, float) and data.is_integer():
        return int(data)
    if kind == "boolean" and isinstance(data, str) and data.strip().lower() in ("true", "false", "yes", "no"):
        return data.strip().lower() in ("true", "yes")
    return data


def nearest(data: Any, allowed: Sequence[Any]) -> Any:
    """The only allowed value that differs in type, case, spaces, quotes and order alone; else the data unchanged.

    Args:
        data: parsed JSON.
        allowed: the values.

    Example:
        >>> nearest("CLICK[buy  now]", ["click[Buy Now]", "1"]), nearest(1.0, ["1"]), nearest({"a": 1}, ['{"a":1}'])
        ('click[Buy Now]', '1', '{"a":1}')
    """
    if data in allowed or isinstance(data, bool):
        return data
    given = data if isinstance(data, (dict, list)) else parse_object(data)
    if given is not None:
        equal = [value for value in allowed if parse_object(value) == given]
    else:
        number = int(data) if isinstance(data, float) and data.is_integer() else data
        normalized = " ".join(unquote(str(number)).casefold().split())
        equal = [value for value in allowed if " ".join(str(value).casefold().split()) == normalized]
    return equal[0] if len(equal) == 1 else data


def unquote(text: str) -> str:
    """A text without quotes, marks and a full stop around it.

    Args:
        text: the text.
    """
    return text.strip().strip("\"'`*").rstrip(".").strip()
