r"""Answers that a server restricts to a schema in its own way.

* `make_grammar` - llama.cpp: a grammar of one question's answers, without free whitespace
* `make_structured_outputs` - vLLM: the answers of one question, or a schema without free whitespace
* `only_choice`, `choose_by_probability` - servers with log-probabilities: the most probable admissible value

JSON schemas leave the model free to insert whitespace; of the 29 tokens of an answer of a small model 22 were blanks.
A grammar has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LONGEST_STRING = 1000
"""Characters of a string in a grammar; a model that repeats itself would not end it."""
MOST_ITEMS = 50
"""Items of a list in a grammar."""
MOST_CHOICES = 200
"""Answers that are listed one by one."""
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
"""A character of a string."""


class OnlyChoice(NamedTuple):
    """The only property of a schema, whose values are listed."""

    name: str
    values: tuple[str, ...]


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


def make_structured_outputs(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The field `structured_outputs` of a request to vLLM.

    Args:
        schema: the form of the answer, without annotations.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}
        >>> make_structured_outputs(schema)
        {'choice': ['{"action":"0"}', '{"action":"1"}']}
    """
    choice = only_choice(schema)
    if choice is not None and len(choice.values) <= MOST_CHOICES:
        answers = ({choice.name: value} for value in choice.values)
        return {"choice": [json.dumps(answer, ensure_ascii=False, separators=(",", ":")) for answer in answers]}
    return {"json": dict(schema), "disable_any_whitespace": True}


def only_choice(schema: Mapping[str, Any]) -> OnlyChoice | None:
    """The only property of a schema, if it is one of several texts.

    Args:
        schema: the form of the answer.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    if len(properties) != 1:
        return None
    ((name, rule),) = properties.items()
    values = rule.get("enum", ())
    return OnlyChoice(name, tuple(values)) if values and all(isinstance(value, str) for value in values) else None


def is_told_apart(values: Sequence[str]) -> bool:
    """Whether the first characters of some texts differ, so that one token tells them apart.

    Example:
        >>> is_told_apart(["0", "1"]), is_told_apart(["click[A]", "click[B]"])
        (True, False)
    """
    return all(values) and len({value[0] for value in values}) == len(values)


def choose_by_probability(values: Sequence[str], tokens: Sequence[tuple[str, float]]) -> str | None:
    """The most probable admissible value; `None` if no token begins one.

    Args:
        values: the admissible values, distinguished by their first characters.
        tokens: candidates for the first token of the answer, with their log-probabilities.

    Example:
        >>> choose_by_probability(["0", "1"], [("I", -0.1), (" 1", -2.5), ("0", -3.0), ("1", -3.5)])
        '1'
    """
    sums = dict.fromkeys(values, 0.0)
    for token, logarithm in tokens:
        text = token.strip().lstrip("\"'")
        begun = [value for value in values if text and (value.startswith(text) or text.startswith(value))]
        if len(begun) == 1 and logarithm <= 0:  # false for NaN, too
            sums[begun[0]] += math.exp(logarithm)
    best = max(values, key=lambda value: sums[value])
    return best if sums[best] > 0 else None
