"""The subset of JSON Schema that answers of models are checked against.

* `violations` - the rules that some JSON breaks

The package `jsonschema` does not replace this, for reasons that the tests hold: its messages differ, and a message
becomes part of the next request, which recorded replies are looked up by; NaN, which Python's JSON reader lets
through, passes its bounds; and it ignores keywords that it does not support, where a schema with a misspelt rule is
refused here. The rules of a run without any language model are checked here too, without a further dependency. A
test compares both on generated data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_agents.errors import ArgumentError

TYPES: Mapping[str, tuple[type, ...]] = {
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
BOUNDS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"})
RULES = BOUNDS | {"type", "enum", "items", "properties", "required", "additionalProperties"}


def violations(data: Any, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """Describe every rule of a schema that some JSON breaks.

    Supported are `type` (one name), `enum`, `minimum`, `maximum`, `minLength`, `maxLength`,
    `minItems`, `maxItems`, `items`, `properties`, `required` and `additionalProperties`
    (true or false), beside annotations.

    Args:
        data: parsed JSON.
        schema: its form.
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
    unknown = sorted(set(schema) - RULES - ANNOTATIONS)
    kind = schema.get("type")
    if unknown or not (kind is None or (isinstance(kind, str) and kind in TYPES)):
        raise ArgumentError(
            f"a schema should use the types {', '.join(TYPES)} and the rules {', '.join(sorted(RULES))} alone. "
            f"Received {dict(schema)!r}"
        )
    # True is a number to Python, not to JSON.
    if kind is not None and (not isinstance(data, TYPES[kind]) or (isinstance(data, bool) and kind != "boolean")):
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
