r"""Grammars of llama.cpp, which restrict a model on a small machine to the answers of one question.

* `make_grammar` - the grammar of a schema, without free whitespace

JSON schemas leave the model free to insert whitespace; of the 29 tokens of an answer of a small model 22 were blanks.
Their texts have no greatest length; a small model repeats itself until it is cut off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

LONGEST_STRING = 1000
"""Characters of a string in a grammar; a model that repeats itself would not end it."""
MOST_ITEMS = 50
"""Items of a list in a grammar."""
MOST_CHOICES = 200
"""Whole numbers that are listed one by one."""
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
"""A character of a string."""


def make_grammar(schema: Mapping[str, Any]) -> str | None:
    r"""A grammar in GBNF for the answers to one question; `None` for a schema that it cannot express.

    Args:
        schema: the form of the answer; objects have all their properties, in the order of the schema.

    Example:
        >>> make_grammar({"type": "object", "properties": {"action": {"enum": ["0", "1"]}}})
        'root ::= "{" "\\"action\\":" ("\\"0\\"" | "\\"1\\"") "}"'
    """
    # What is repeated is a rule of its own: llama.cpp refuses a grammar in which a bound times the number of parts of
    # what it repeats exceeds 2,000.
    items: list[str] = []
    rule = _rule(schema, items)
    if rule is None:
        return None
    grammar = "\n".join([f"root ::= {rule}", *(f"item{number} ::= {item}" for number, item in enumerate(items))])
    return f"{grammar}\n{_CHARACTER}" if "char{" in grammar else grammar


def _rule(schema: Mapping[str, Any], items: list[str]) -> str | None:
    """The right side of a rule; those of the items of lists are added to `items`."""
    if "enum" in schema:
        return f"({' | '.join(_literal(value) for value in schema['enum'])})"
    kind, low, high = schema.get("type"), schema.get("minimum"), schema.get("maximum")
    if kind == "object":
        return _object_rule(schema, items)
    if kind == "array":
        item, most = _rule(schema.get("items", {}), items), min(schema.get("maxItems", MOST_ITEMS), MOST_ITEMS)
        least = schema.get("minItems", 0)
        if item is None or not 1 <= most >= least:
            return None
        items.append(item)
        name = f"item{len(items) - 1}"
        rule = f'{name} ("," {name}){{{max(least - 1, 0)},{most - 1}}}'
        return f'"[" {rule} "]"' if least else f'"[" ({rule})? "]"'
    if kind == "string":
        least, most = schema.get("minLength", 0), min(schema.get("maxLength", LONGEST_STRING), LONGEST_STRING)
        return rf'"\"" char{{{least},{most}}} "\""' if least <= most else None
    if kind == "integer" and low is not None and high is not None and 0 <= high - low < MOST_CHOICES:
        return f"({' | '.join(_literal(value) for value in range(math.ceil(low), math.floor(high) + 1))})"
    if kind == "number" and (low, high) == (0, 1):
        return '("0" ("." [0-9]{1,15})? | "1")'
    sign = "" if low is not None and low >= 0 else '"-"? '
    integer = f'{sign}("0" | [1-9] [0-9]{{0,15}})'
    return {
        "integer": f"({integer})",
        "number": f'({integer} ("." [0-9]{{1,15}})?)',
        "boolean": '("true" | "false")',
        "null": '"null"',
    }.get(str(kind))


def _object_rule(schema: Mapping[str, Any], items: list[str]) -> str | None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    rules = {name: _rule(rule, items) for name, rule in properties.items()}
    if not rules or None in rules.values():
        return None
    members = [f"{_literal(name, ':')} {rule}" for name, rule in rules.items()]
    return '"{" ' + ' "," '.join(members) + ' "}"'


def _literal(value: Any, after: str = "") -> str:
    """A text of the grammar: the JSON of a value."""
    return json.dumps(json.dumps(value, ensure_ascii=False) + after, ensure_ascii=False)
