"""How a form of answer is requested, and how an answer is parsed.

* `FORMS`, `ALL_FORMS` - the forms that are tried with every server, and these with llama.cpp's
* `instruct` - adds instructions for the form of the answer to messages
* `make_grammar` - a grammar of llama.cpp, which restricts a model to the answers of one question
* `constrain` - the fields of a request to a chat-completions server that enforce the form
* `read_answer` - parses an answer in any of these forms, and checks it against a schema
* `without_thoughts` - an answer without the model's thoughts
* `without_surrogates` - text that can be encoded

The forms are tried in this order, since not every server supports the first ones. Whichever was requested, the parser
accepts all of them and common deviations that are unambiguous: JSON in fences, text before the answer, numbers in
the place of strings.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from drift_agents.llm.base import Message
from drift_agents.llm.schema import ANNOTATIONS, violations

FORMS = ("json_schema", "json_object", "text")
"""JSON by a schema that the server enforces, any JSON object, text with tags."""
ALL_FORMS = ("grammar", *FORMS)
"""The form of llama.cpp, which is tried first where the server names it, and the others."""

ANSWER_TAG = "answer"
THINK, END_THINK = "<think>", "</think>"
LONGEST_ERROR = 500
"""Characters of one sentence about an invalid answer; sentences become part of the next request."""
MOST_DIGITS = 300
"""Digits of a number in an answer. A longer one is read as null: Python refuses to convert some thousands of them."""
_MOST_FAILURES, _MOST_RESCANS = 1000, 20
"""Opening braces without an object, and characters read again for them in lengths of the text, per answer."""
_NUMBER = re.compile(rf"\s*-?\d{{1,{MOST_DIGITS}}}(\.\d{{1,{MOST_DIGITS}}})?\s*")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SCALARS = ("string", "integer", "number", "boolean")
LONGEST_STRING = 1000
"""Characters of a string in a grammar; a model that repeats itself would not end it."""
MOST_ITEMS = 50
"""Items of a list in a grammar."""
MOST_CHOICES = 200
"""Whole numbers that are listed one by one."""
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
"""A character of a string."""
_NOT_ENFORCED = ANNOTATIONS | {"minLength", "maxLength"}
"""Left out of a schema that a server enforces: some refuse rules for lengths, which are checked after parsing."""


def instruct(messages: Sequence[Message], schema: Mapping[str, Any], form: str) -> list[Message]:
    r"""Add instructions for the form of the answer to the last message.

    Args:
        messages: the conversation so far; the last message is the user's.
        schema: the form of the answer.
        form: one of `ALL_FORMS`.

    Example:
        >>> schema = {"title": "action", "type": "object", "properties": {"action": {"enum": ["0", "1"]}}}
        >>> instruct([Message("user", "Where to?")], schema, "text")[0].content
        'Where to?\n\nEnd your answer with: <action>one of "0", "1"</action>'
    """
    *before, last = messages
    if form == "text":
        text = f"End your answer with: {_tags(schema)}"
    else:
        text = f"Answer with JSON alone, by this schema: {_to_json(schema)}"
    return [*before, Message(last.role, f"{last.content}\n\n{text}")]


def _tags(schema: Mapping[str, Any]) -> str:
    """The tags of the form `text`, with a description of each value."""
    properties = schema.get("properties", {})
    if properties and all(_is_scalar(rule) for rule in properties.values()):
        return "".join(f"<{name}>{_describe(rule)}</{name}>" for name, rule in properties.items())
    return f"<{ANSWER_TAG}>JSON by this schema: {_to_json(schema)}</{ANSWER_TAG}>"


def _is_scalar(rule: Mapping[str, Any]) -> bool:
    return "enum" in rule or rule.get("type") in _SCALARS


def _describe(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return f"one of {', '.join(json.dumps(value, ensure_ascii=False) for value in rule['enum'])}"
    low, high = rule.get("minimum"), rule.get("maximum")
    bounds = f" from {low} to {high}" if low is not None and high is not None else ""
    return {"string": "text", "integer": f"whole number{bounds}", "number": f"number{bounds}"}.get(
        rule["type"], "true or false"
    )


def _to_json(schema: Mapping[str, Any]) -> str:
    return json.dumps(_without(schema, ANNOTATIONS), ensure_ascii=False)


def _without(schema: Mapping[str, Any], keywords: Set[str]) -> dict[str, Any]:
    """The schema without some keywords, at any depth."""
    bare = {key: value for key, value in schema.items() if key not in keywords}
    if "properties" in bare:
        bare["properties"] = {name: _without(rule, keywords) for name, rule in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = _without(bare["items"], keywords)
    return bare


def make_grammar(schema: Mapping[str, Any]) -> str | None:
    r"""A grammar of llama.cpp for the answers to one question; `None` for a schema that it cannot express.

    JSON schemas leave the model free to insert whitespace (of the 29 tokens of an answer of a small model 22 were
    blanks) and servers refuse bounds of texts in them, so that a small model repeats itself until it is cut off.

    Args:
        schema: the form of the answer; objects have all their properties, in the order of the schema.

    Example:
        >>> make_grammar({"type": "object", "properties": {"action": {"enum": ["0", "1"]}}})
        'root ::= "{" "\\"action\\":" ("\\"0\\"" | "\\"1\\"") "}"'
    """
    # What is repeated is a rule of its own: llama.cpp refuses a grammar in which a bound times the number of parts of
    # what it repeats exceeds 2,000.
    items: list[str] = []
    rule = _grammar_rule(schema, items)
    if rule is None:
        return None
    grammar = "\n".join([f"root ::= {rule}", *(f"item{number} ::= {item}" for number, item in enumerate(items))])
    return f"{grammar}\n{_CHARACTER}" if "char{" in grammar else grammar


def _grammar_rule(schema: Mapping[str, Any], items: list[str]) -> str | None:
    """The right side of a rule; those of the items of lists are added to `items`."""
    if "enum" in schema:
        return f"({' | '.join(_literal(value) for value in schema['enum'])})"
    kind, low, high = schema.get("type"), schema.get("minimum"), schema.get("maximum")
    if kind == "object":
        return _object_rule(schema, items)
    if kind == "array":
        item, most = _grammar_rule(schema.get("items", {}), items), min(schema.get("maxItems", MOST_ITEMS), MOST_ITEMS)
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
    rules = {name: _grammar_rule(rule, items) for name, rule in properties.items()}
    if not rules or None in rules.values():
        return None
    members = [f"{_literal(name, ':')} {rule}" for name, rule in rules.items()]
    return '"{" ' + ' "," '.join(members) + ' "}"'


def _literal(value: Any, after: str = "") -> str:
    """A text of the grammar: the JSON of a value."""
    return json.dumps(json.dumps(value, ensure_ascii=False) + after, ensure_ascii=False)


def constrain(schema: Mapping[str, Any], form: str) -> dict[str, Any] | None:
    """The fields of a request to a chat-completions server that enforce the form; `None` if the form cannot.

    Args:
        schema: the form of the answer.
        form: one of `ALL_FORMS`.

    Example:
        >>> constrain({"title": "action", "type": "object"}, "json_object")
        {'response_format': {'type': 'json_object'}}
        >>> constrain({"title": "action", "type": "object"}, "text")
        {}
    """
    if form == "text":
        return {}
    if form == "json_object":
        return {"response_format": {"type": "json_object"}}
    if form == "grammar":
        grammar = make_grammar(schema)
        return None if grammar is None else {"grammar": grammar}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "answer")))[:64]
    form_of_answer = {"name": name, "schema": _without(schema, _NOT_ENFORCED), "strict": _is_strict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": form_of_answer}}


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object requires all its keys and allows no others: the condition of the server's strict mode."""
    if "items" in schema and not _is_strict(schema["items"]):
        return False
    if schema.get("type") != "object":
        return True
    properties = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
    return closed and all(map(_is_strict, properties.values()))


def read_answer(text: str, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    r"""Parse an answer, and check it against a schema.

    The first valid candidate counts, in this order: the whole text as JSON; the JSON objects in it, the last one
    first; tags; for a schema with one key the bare value. Thoughts are skipped (`without_thoughts`).

    The time is linear in the length of the text: objects are no longer searched for after 1,000 opening braces
    without one. NaN, infinite numbers and numbers of more than 300 digits are read as null, lone surrogates as the
    replacement character; the data can be written as JSON in UTF-8.

    Args:
        text: the answer.
        schema: the form.

    Returns:
        The data and no errors, or `None` and the errors of the first candidate.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}
        >>> read_answer('Down is safe.\n```json\n{"action": 1}\n```', schema)
        ({'action': '1'}, [])
        >>> read_answer("<action>1</action>", schema)
        ({'action': '1'}, [])
        >>> read_answer('{"action": "5"}', schema)
        (None, ["answer.action should be one of ['0', '1'], is '5'"])
    """
    answer = without_thoughts(without_surrogates(text))
    first_errors: list[str] = []
    for candidate in _candidates(answer, schema):
        data = _coerce(candidate, schema)
        errors = violations(data, schema)
        if not errors:
            return data, []
        first_errors = first_errors or [_shorten(error) for error in errors]
    # These sentences become part of the next request, so recorded replies depend on them.
    return None, first_errors or ["it holds no answer in the form that was asked for" if answer else "it is empty"]


def without_thoughts(text: str) -> str:
    """Return an answer without the model's thoughts, and without spaces around it.

    Thoughts end with the last `</think>`; servers often leave out the opening tag, which is part of the prompt of
    some models. After an opening tag without an end everything is thought.

    Example:
        >>> without_thoughts("<think>Left or right?</think> 1"), without_thoughts("Or right?</think> 1")
        ('1', '1')
        >>> without_thoughts("1 <think>Or")
        '1'
    """
    before, tag, after = text.rpartition(END_THINK)
    kept = after if tag else text
    if tag and not after.strip():
        kept = before.partition(THINK)[0] if THINK in before else ""
    return kept.partition(THINK)[0].strip()


def without_surrogates(text: str) -> str:
    r"""Return a text that can be encoded as UTF-8.

    Example:
        >>> without_surrogates("a\ud800b")
        'a\ufffdb'
    """
    return _SURROGATES.sub("\ufffd", text)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."


def _read_integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None


def _read_number(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _replace_constant(_: str) -> None:
    """NaN, Infinity and -Infinity, which Python's parser accepts and JSON does not have."""


_DECODER = json.JSONDecoder(parse_int=_read_integer, parse_float=_read_number, parse_constant=_replace_constant)


def _parse(text: str) -> Any:
    """The JSON of a whole text, `None` if it is none."""
    try:
        return _clean(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _clean(data: Any) -> Any:
    """JSON without lone surrogates, which escapes can produce."""
    if isinstance(data, str):
        return without_surrogates(data)
    if isinstance(data, list):
        return [_clean(value) for value in data]
    if isinstance(data, dict):
        return {without_surrogates(key): _clean(value) for key, value in data.items()}
    return data


def _candidates(text: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Possible values of the answer, most likely first."""
    is_object = schema.get("type", "object") == "object"
    whole = _parse(text)
    if whole is not None and (isinstance(whole, dict) or not is_object):
        yield whole
        return
    yield from reversed(list(_objects(text)))
    if not is_object:
        return
    properties: Mapping[str, Any] = schema.get("properties", {})
    tagged = {name: value for name, rule in properties.items() if (value := _tagged(text, name, rule)) is not None}
    if tagged:
        yield tagged
    if len(properties) == 1:
        ((name, rule),) = properties.items()
        if "enum" in rule or rule.get("type") in ("integer", "number", "boolean"):
            value = _coerce(_unquote(text), rule)
            if not violations(value, rule):
                yield {name: value}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects of a text, in order, as far as they are found in linear time."""
    start, failures, reread = text.find("{"), 0, 0
    while start >= 0:
        try:
            data, end = _DECODER.raw_decode(text, start)
            data = _clean(data)
        except (ValueError, RecursionError) as error:
            end = start + 1
            failures += 1
            reread += (error.pos if isinstance(error, json.JSONDecodeError) else len(text)) - start
            if failures > _MOST_FAILURES or reread > _MOST_RESCANS * len(text):
                return
        else:
            if isinstance(data, dict):
                yield data
        start = text.find("{", end)


def _tagged(text: str, name: str, rule: Mapping[str, Any]) -> Any:
    """The value between the last tags of that name, `None` if there are none."""
    opening, closing = f"<{name}>", f"</{name}>"
    start = text.rfind(opening, 0, max(text.rfind(closing), 0))
    if start < 0:
        return None
    start += len(opening)
    value = text[start : text.find(closing, start)].strip()
    if _is_scalar(rule):
        return value
    data = _parse(value)
    return value if data is None else data


def _unquote(text: str) -> str:
    return text.strip().strip("\"'`*").rstrip(".").strip()


def _coerce(data: Any, schema: Mapping[str, Any]) -> Any:
    """Convert to the types of the schema, where nothing but the type differs."""
    if isinstance(data, dict) and "properties" in schema:
        return {key: _coerce(value, schema["properties"].get(key, {})) for key, value in data.items()}
    if isinstance(data, list) and "items" in schema:
        return [_coerce(value, schema["items"]) for value in data]
    if "enum" in schema:
        return _nearest(data, schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number") and isinstance(data, str) and _NUMBER.fullmatch(data):
        data = float(data) if "." in data else int(data)
    if kind == "integer" and isinstance(data, float) and data.is_integer():
        return int(data)
    if kind == "boolean" and isinstance(data, str) and data.strip().lower() in ("true", "false", "yes", "no"):
        return data.strip().lower() in ("true", "yes")
    return data


def _nearest(data: Any, allowed: Sequence[Any]) -> Any:
    """The only allowed value that differs in type, case, spaces and quotes alone; else the data unchanged."""
    if data in allowed or isinstance(data, (bool, dict, list)):
        return data
    normalized = " ".join(_unquote(str(data)).casefold().split())
    equal = [value for value in allowed if " ".join(str(value).casefold().split()) == normalized]
    return equal[0] if len(equal) == 1 else data
