"""In which form a model is told to answer, and how its answer is read.

* `FORMS` - JSON by a schema that the server enforces, JSON, or text with tags
* `instruct` - messages with the instruction how to answer
* `response_format` - what a chat-completions server is sent
* `read_answer` - an answer in any of these forms as checked JSON, or what is wrong with it

The forms are tried in this order, since not every server knows the first two. Whichever was asked
for, an answer is read as generously as it can be without guessing: models put JSON into fences, talk
before they answer, and give numbers where a text was asked for.
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
_LENGTHS = frozenset({"minLength", "maxLength"})
"""Rules that servers refuse in a schema that they enforce; they are checked here."""


def instruct(messages: Sequence[Message], schema: Mapping[str, Any], form: str) -> list[Message]:
    r"""Messages with the instruction how to answer, at the end of the last one.

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
        text = f"Answer with JSON alone, by this schema: {json.dumps(_bare(schema), ensure_ascii=False)}"
    return [*before, Message(last.role, f"{last.content}\n\n{text}")]


def _tags(schema: Mapping[str, Any]) -> str:
    """The tags in which an answer is to be put."""
    properties = schema.get("properties", {})
    if properties and all(_is_scalar(rule) for rule in properties.values()):
        return "".join(f"<{name}>{_describe(rule)}</{name}>" for name, rule in properties.items())
    form = json.dumps(_bare(schema), ensure_ascii=False)
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


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what says nothing about the form."""
    return {
        key: {name: _bare(rule) for name, rule in value.items()}
        if key == "properties"
        else _bare(value)
        if key == "items"
        else value
        for key, value in schema.items()
        if key not in ANNOTATIONS
    }


def response_format(schema: Mapping[str, Any], form: str) -> dict[str, Any] | None:
    """What a chat-completions server is sent as `response_format`; `None` for text.

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
    bare = {key: value for key, value in _bare(schema).items() if key not in _LENGTHS}
    if "properties" in bare:
        bare["properties"] = {name: _enforceable(rule) for name, rule in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = _enforceable(bare["items"])
    return bare


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object names all its keys as required and allows no others, as strict schemas must."""
    if "items" in schema and not _is_strict(schema["items"]):
        return False
    if schema.get("type") != "object":
        return True
    properties = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
    return closed and all(map(_is_strict, properties.values()))


def read_answer(text: str, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    r"""An answer as checked JSON, or what is wrong with it.

    Read are, in this order: the whole text as JSON; the last JSON object in it that has the form;
    tags; for a form of one key its bare value. Thoughts between `<think>` tags are passed over.

    Args:
        text: the answer.
        schema: the form.

    Returns:
        The data and nothing wrong, or `None` and what is wrong with the best candidate.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}
        >>> read_answer('Down is safe.\n```json\n{"action": 1}\n```', schema)
        ({'action': '1'}, [])
        >>> read_answer("<action>1</action>", schema)
        ({'action': '1'}, [])
        >>> read_answer('{"action": "5"}', schema)
        (None, ["answer.action should be one of ['0', '1'], is '5'"])
    """
    said = _THOUGHTS.sub("", text).strip()
    wrong: list[str] = []
    for candidate in _candidates(said, schema):
        data = _coerced(candidate, schema)
        broken = violations(data, schema)
        if not broken:
            return data, []
        wrong = wrong or broken
    return None, wrong or ["it holds no answer in the form that was asked for" if said else "it is empty"]


def _candidates(text: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """What may be meant as the answer, most likely first."""
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
            value = _coerced(_unquoted(text), rule)
            if not violations(value, rule):
                yield {name: value}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object of a text that is not inside another one."""
    at = text.find("{")
    while at >= 0:
        try:
            data, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(data, dict):
                yield data
        at = text.find("{", end)


def _tagged(text: str, name: str, rule: Mapping[str, Any]) -> Any:
    """The value between the last tags of that name, `None` if there are none."""
    found = re.findall(rf"<{re.escape(name)}>(.*?)</{re.escape(name)}>", text, re.DOTALL)
    if not found:
        return None
    value = found[-1].strip()
    return value if _is_scalar(rule) else _as_json(value)


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'`*").rstrip(".").strip()


def _coerced(data: Any, schema: Mapping[str, Any]) -> Any:
    """The same in the type that was asked for, where only the type is another one."""
    if isinstance(data, dict) and "properties" in schema:
        return {key: _coerced(value, schema["properties"].get(key, {})) for key, value in data.items()}
    if isinstance(data, list) and "items" in schema:
        return [_coerced(value, schema["items"]) for value in data]
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
    """The one value that is meant: the same but for type, case and quotes; else the data as it is."""
    if data in allowed or isinstance(data, (bool, dict, list)):
        return data
    wanted = " ".join(_unquoted(str(data)).casefold().split())
    same = [value for value in allowed if " ".join(str(value).casefold().split()) == wanted]
    return same[0] if len(same) == 1 else data
