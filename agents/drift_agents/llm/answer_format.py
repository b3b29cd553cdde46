"""How a form of answer is requested; `drift_envs.messages` reads the answers, whichever form was requested."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from drift_agents.llm.base import Message
from drift_envs.messages import ANSWER_TAG, is_scalar
from drift_envs.utils.json_schema import ANNOTATIONS

FORMS = ("json_schema", "json_object", "text")
"""JSON by a schema that the server enforces, any JSON object, text with tags."""
TOOL = "tool"
"""The arguments of a function that the model calls."""

_NOT_ENFORCED = ANNOTATIONS | {"minLength", "maxLength"}
"""Left out of a schema that a server enforces: some refuse rules for lengths, which are checked after parsing."""


def instruct(messages: Sequence[Message], schema: Mapping[str, Any], form: str, trusted: bool = False) -> list[Message]:
    r"""Add instructions for the form of the answer to the last message.

    Args:
        messages: the conversation so far; the last message is the user's.
        schema: the form of the answer.
        form: one of `FORMS`, or `TOOL`.
        trusted: whether the server is known to enforce, or not known to ignore, the schema that it gets: what it
            enforces is not repeated in words.

    Example:
        >>> schema = {"title": "action", "type": "object", "properties": {"action": {"enum": ["0", "1"]}}}
        >>> instruct([Message("user", "Where to?")], schema, "text")[0].content
        'Where to?\n\nEnd your answer with: <action>one of "0", "1"</action>'
    """
    *before, last = messages
    if form == "text":
        text = f"End your answer with: {_tags(schema)}"
    elif trusted and is_enforced(schema, form):
        keys = [json.dumps(key, ensure_ascii=False) for key in schema["properties"]]
        text = f"Answer with a JSON object alone, with the {'key' if len(keys) == 1 else 'keys'} {', '.join(keys)}."
    elif form == TOOL:
        text = f"Answer by calling the function `{function_name(schema)}`."
    else:
        text = f"Answer with JSON alone, by this schema: {_to_json(schema)}"
    return [*before, Message(last.role, f"{last.content}\n\n{text}")]


def is_enforced(schema: Mapping[str, Any], form: str) -> bool:
    """Whether a server that enforces a form enforces all of a schema.

    In JSON by a schema, if the schema is strict and has no rule that is not sent (`constrain`).

    Example:
        >>> schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
        >>> schema["additionalProperties"] = False
        >>> is_enforced(schema, "json_schema"), is_enforced(schema, "json_object")
        (True, False)
    """
    is_whole = _without(schema, _NOT_ENFORCED) == _without(schema, ANNOTATIONS)
    return form == "json_schema" and is_whole and schema.get("type") == "object" and _is_strict(schema)


def _tags(schema: Mapping[str, Any]) -> str:
    """The tags of the form `text`, with a description of each value."""
    properties = schema.get("properties", {})
    if properties and all(is_scalar(rule) for rule in properties.values()):
        return "".join(f"<{name}>{_describe(rule)}</{name}>" for name, rule in properties.items())
    return f"<{ANSWER_TAG}>JSON by this schema: {_to_json(schema)}</{ANSWER_TAG}>"


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


def function_name(schema: Mapping[str, Any]) -> str:
    """The name of a schema at a server; in the form `TOOL` that of the function.

    Example:
        >>> function_name({"title": "next action"})
        'next_action'
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", ANSWER_TAG)))[:64]


def constrain(schema: Mapping[str, Any], form: str) -> dict[str, Any]:
    """The fields of a request to a chat-completions server that enforce the form.

    Args:
        schema: the form of the answer.
        form: one of `FORMS`, or `TOOL`.

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
    name, enforced, is_strict = function_name(schema), _without(schema, _NOT_ENFORCED), _is_strict(schema)
    if form == TOOL:
        function = {"name": name, "parameters": enforced, "strict": is_strict}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
    form_of_answer = {"name": name, "schema": enforced, "strict": is_strict}
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
