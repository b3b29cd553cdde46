"""How a form of answer is requested, and how an answer is parsed.

* `FORMS` - JSON by a schema that the server enforces, JSON, or text with tags
* `instruct` - adds instructions for the form of the answer to messages
* `response_format` - the field of that name in a request to a chat-completions server
* `read_answer` - parses an answer in any of these forms, and checks it against a schema

The forms are tried in this order, since not every server supports the first two. Whichever was requested, the parser
accepts all of them and common deviations that are unambiguous: JSON in fences, text before the answer, numbers in
the place of strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drift_agents.llm.base import Message
from drift_agents.llm.schema import ANNOTATIONS, violations

FORMS = ("json_schema", "json_object", "text")
"""JSON by a schema that the server enforces, any JSON object, text with tags."""

ANSWER_TAG = "answer"
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_DECODER = json.JSONDecoder()
_SCALARS = ("string", "integer", "number", "boolean")
_NOT_ENFORCEABLE = frozenset({"minLength", "maxLength"})
"""Rules that servers refuse in a schema that they enforce; they are checked after parsing."""


def instruct(messages: Sequence[Message], schema: Mapping[str, Any], form: str) -> list[Message]:
    r"""Add instructions for the form of the answer to the last message.

    Args:
        messages: the conversation so far; the last message is the user's.
        schema: the form of the answer.
        form: one of `FORMS`.

    Example:
        >>> schema = {"title": "action", "type": "object", "properties": {"action": {"enum": ["0", "1"]}}}
        >>> instruct([Message("user", "Where to?")], schema, "text")[0].content
        'Where to?\n\nEnd your answer with: <action>one of "0", "1"</action>'
    """
    *before, last = messages
    if form == "text":
        text = f"End your answer with: {_tags(schema)}"
    else:
        text = f"Answer with JSON alone, by this schema: {json.dumps(_without_annotations(schema), ensure_ascii=False)}"
    return [*before, Message(last.role, f"{last.content}\n\n{text}")]


def _tags(schema: Mapping[str, Any]) -> str:
    """The tags of the form `text`, with a description of each value."""
    properties = schema.get("properties", {})
    if properties and all(_is_scalar(rule) for rule in properties.values()):
        return "".join(f"<{name}>{_describe(rule)}</{name}>" for name, rule in properties.items())
    form = json.dumps(_without_annotations(schema), ensure_ascii=False)
    return f"<{ANSWER_TAG}>JSON by this schema: {form}</{ANSWER_TAG}>"


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


def _without_annotations(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without annotations."""
    return {
        key: {name: _without_annotations(rule) for name, rule in value.items()}
        if key == "properties"
        else _without_annotations(value)
        if key == "items"
        else value
        for key, value in schema.items()
        if key not in ANNOTATIONS
    }


def response_format(schema: Mapping[str, Any], form: str) -> dict[str, Any] | None:
    """The field `response_format` of a request to a chat-completions server; `None` for text.

    Args:
        schema: the form of the answer.
        form: one of `FORMS`.

    Example:
        >>> response_format({"title": "action", "type": "object"}, "json_object")
        {'type': 'json_object'}
    """
    if form == "text":
        return None
    if form == "json_object":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "answer")))[:64]
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": _enforceable(schema), "strict": _is_strict(schema)},
    }


def _enforceable(schema: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: value for key, value in _without_annotations(schema).items() if key not in _NOT_ENFORCEABLE}
    if "properties" in bare:
        bare["properties"] = {name: _enforceable(rule) for name, rule in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = _enforceable(bare["items"])
    return bare


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
    first; tags; for a schema with one key the bare value. Text between `<think>` tags is skipped.

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
    answer = _THOUGHTS.sub("", text).strip()
    first_errors: list[str] = []
    for candidate in _candidates(answer, schema):
        data = _coerce(candidate, schema)
        errors = violations(data, schema)
        if not errors:
            return data, []
        first_errors = first_errors or errors
    # These sentences become part of the next request, so recorded replies depend on them.
    return None, first_errors or ["it holds no answer in the form that was asked for" if answer else "it is empty"]


def _candidates(text: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Possible values of the answer, most likely first."""
    is_object = schema.get("type", "object") == "object"
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
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
    """The outermost JSON objects of a text, in order."""
    start = text.find("{")
    while start >= 0:
        try:
            data, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if isinstance(data, dict):
                yield data
        start = text.find("{", end)


def _tagged(text: str, name: str, rule: Mapping[str, Any]) -> Any:
    """The value between the last tags of that name, `None` if there are none."""
    found = re.findall(rf"<{re.escape(name)}>(.*?)</{re.escape(name)}>", text, re.DOTALL)
    if not found:
        return None
    value = found[-1].strip()
    if _is_scalar(rule):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


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
    if kind in ("integer", "number") and isinstance(data, str) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", data):
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
