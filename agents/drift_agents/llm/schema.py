"""JSON Schema, as much of it as the questions to small models need.

* `violations` - what is wrong with some JSON
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
RULES = frozenset(
    {
        "type",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "items",
        "properties",
        "required",
        "additionalProperties",
    }
)


def violations(data: Any, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """What is wrong with some JSON.

    Known are `type` (one name), `enum`, `minimum`, `maximum`, `minLength`, `maxLength`,
    `minItems`, `maxItems`, `items`, `properties`, `required` and `additionalProperties`
    (true or false), beside annotations.

    Args:
        data: parsed JSON.
        schema: its form.
        where: how messages name the data.

    Returns:
        One sentence for every rule that is broken; empty when all hold.

    Raises:
        ArgumentError: if the schema has a rule that is not known here.

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
    wrong = []
    if "enum" in schema and data not in schema["enum"]:
        wrong.append(f"{where} should be one of {schema['enum']!r}, is {data!r}")
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        wrong += _bounds(where, data, schema.get("minimum"), schema.get("maximum"))
    elif isinstance(data, str):
        wrong += _bounds(f"the length of {where}", len(data), schema.get("minLength"), schema.get("maxLength"))
    elif isinstance(data, list):
        wrong += _bounds(f"the length of {where}", len(data), schema.get("minItems"), schema.get("maxItems"))
        for i, item in enumerate(data):
            wrong += violations(item, schema.get("items", {}), f"{where}[{i}]")
    elif isinstance(data, dict):
        properties = schema.get("properties", {})
        wrong += [f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in data]
        for key, value in data.items():
            if key in properties:
                wrong += violations(value, properties[key], f"{where}.{key}")
            elif schema.get("additionalProperties", True) is False:
                wrong.append(f"{where}.{key} should not be there")
    return wrong


def _bounds(where: str, value: float, low: float | None, high: float | None) -> list[str]:
    """One sentence for a value outside its bounds; a value that is not a number is outside."""
    if low is not None and not value >= low:
        return [f"{where} should be at least {low}, is {value!r}"]
    if high is not None and not value <= high:
        return [f"{where} should be at most {high}, is {value!r}"]
    return []
