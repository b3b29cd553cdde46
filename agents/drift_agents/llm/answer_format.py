"""How a form of answer is requested, and how an answer is parsed.

Whichever form was requested, the parser accepts all of them and common deviations that are unambiguous: JSON in fences
or between other text, further keys, numbers in the place of strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from drift_agents.llm.base import ANNOTATIONS, Message, violations

FORMS = ("json_schema", "json_object", "text")
"""JSON by a schema that the server enforces, any JSON object, text with tags."""
TOOL = "tool"
"""The arguments of a function that the model calls."""

ANSWER_TAG = "answer"
THINK, END_THINK = "<think>", "</think>"
LONGEST_ERROR = 500
"""Characters of one sentence about an invalid answer; sentences become part of the next request."""
_NUMBER = re.compile(r"\s*-?\d{1,30}(\.\d{1,30})?\s*")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SCALARS = ("string", "integer", "number", "boolean")
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
        text = f"Answer with a JSON object alone, with {_keys(schema)}."
    elif form == TOOL:
        text = f"Answer by calling the function `{function_name(schema)}`."
    else:
        text = f"Answer with JSON alone, by this schema: {_to_json(schema)}"
    return [*before, Message(last.role, f"{last.content}\n\n{text}")]


def _keys(schema: Mapping[str, Any]) -> str:
    names = [json.dumps(name, ensure_ascii=False) for name in schema["properties"]]
    return f"the {'key' if len(names) == 1 else 'keys'} {', '.join(names)}"


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


class ParsedAnswer(NamedTuple):
    """An answer as it was read.

    Args:
        data: what satisfies the schema, or `None`.
        errors: why there is none; empty where there is.
    """

    data: Any
    errors: list[str]


def read_answer(text: str, schema: Mapping[str, Any]) -> ParsedAnswer:
    r"""Parse an answer, and check it against a schema.

    The first valid candidate counts, in this order: the JSON objects in the text, the last one first; tags; for a
    schema with one key the bare value. Thoughts are skipped (`without_thoughts`), further keys are left out. An answer
    whose valid candidates differ in a value that the schema lists, as in two different actions, is refused.

    NaN and infinity are read as null, lone surrogates as the replacement character; the data can be encoded as UTF-8.

    Returns:
        The data, or the errors of the first candidate.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "additionalProperties": False}
        >>> read_answer('Down is safe.\n```json\n{"action": 1, "sure": true}\n```', schema)
        ParsedAnswer(data={'action': '1'}, errors=[])
        >>> read_answer("<action>1</action>", schema).data
        {'action': '1'}
        >>> read_answer('{"action": "0"} or {"action": "1"}', schema).errors
        ["it holds two different answers, ['1'] and ['0']"]
    """
    answer = without_thoughts(without_surrogates(text))
    first_errors: list[str] = []
    found: Any = None
    for candidate in _candidates(answer, schema):
        data = _coerce(candidate, schema)
        errors = violations(data, schema)
        if errors:
            first_errors = first_errors or [_shorten(error) for error in errors]
        elif found is None:
            found = data
        elif _choices(data, schema) != _choices(found, schema):
            both = f"{_choices(found, schema)!r} and {_choices(data, schema)!r}"
            return ParsedAnswer(None, [_shorten(f"it holds two different answers, {both}")])
    if found is not None:
        return ParsedAnswer(found, [])
    # These sentences become part of the next request, so recorded replies depend on them.
    nothing = "it holds no answer in the form that was asked for" if answer else "it is empty"
    return ParsedAnswer(None, first_errors or [nothing])


def ends_with_answer(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text ends with a valid answer, and not with words about one.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}
        >>> ends_with_answer('Down is safe. {"action": "1"}', schema)
        True
        >>> ends_with_answer('Not {"action": "1"}, there is a hole.', schema)
        False
    """
    ends_with_form = text.rstrip().endswith(("}", ">", "```")) or not re.search(r"[{<]", text)
    return ends_with_form and read_answer(text, schema).data is not None


def _choices(data: Any, schema: Mapping[str, Any]) -> list[Any]:
    """The values of the properties whose values a schema lists."""
    return [data.get(name) for name, rule in schema.get("properties", {}).items() if "enum" in rule]


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


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
"""JSON does not have NaN and infinity, which Python's parser accepts."""


def _parse(text: str) -> Any:
    """The JSON of a whole text, `None` if it is none."""
    try:
        return _clean(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _clean(data: Any) -> Any:
    """JSON without lone surrogates, which escapes can produce."""
    return json.loads(without_surrogates(json.dumps(data, ensure_ascii=False)))


def _candidates(text: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Possible values of the answer, most likely first."""
    is_object = schema.get("type", "object") == "object"
    properties: Mapping[str, Any] = schema.get("properties", {})
    whole = _parse(text)
    if whole is not None and (isinstance(whole, dict) or not is_object):
        yield from _holders(whole, properties)
        return
    for data in reversed(list(_objects(text))):
        yield from _holders(data, properties)
    if not is_object:
        return
    tagged = {name: values for name, rule in properties.items() if (values := _tagged(text, name, rule))}
    if tagged:
        last = {name: values[-1] for name, values in tagged.items()}
        yield last
        yield from ({**last, name: value} for name, values in tagged.items() for value in values[:-1])
    if len(properties) == 1:
        ((name, rule),) = properties.items()
        if "enum" in rule or rule.get("type") in ("integer", "number", "boolean"):
            value = _coerce(_unquote(text), rule)
            if not violations(value, rule):
                yield {name: value}


def _holders(data: Any, properties: Mapping[str, Any]) -> Sequence[Any]:
    """An object, or where it has none of the keys the objects in it that do, as in `{"answer": {"action": "1"}}`."""
    if not isinstance(data, dict) or data.keys() & properties.keys():
        return [data]
    inner = [value for value in data.values() if isinstance(value, dict) and value.keys() & properties.keys()]
    return inner[::-1] or [data]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects of a text, in order."""
    start = text.find("{")
    while start >= 0:
        try:
            data, end = _DECODER.raw_decode(text, start)
            data = _clean(data)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield data
        start = text.find("{", end)


def _tagged(text: str, name: str, rule: Mapping[str, Any]) -> list[Any]:
    """The values between tags of that name, in order."""
    opening, closing = f"<{name}>", f"</{name}>"
    parts = (part.rpartition(opening) for part in text.split(closing)[:-1])
    values = [value.strip() for _, tag, value in parts if tag]
    if _is_scalar(rule):
        return values
    return [value if (data := _parse(value)) is None else data for value in values]


def _unquote(text: str) -> str:
    return text.strip().strip("\"'`*").rstrip(".").strip()


def _coerce(data: Any, schema: Mapping[str, Any]) -> Any:
    """Convert to the types of the schema, where nothing but the type differs, and leave out further keys."""
    if isinstance(data, dict) and "properties" in schema:
        properties, is_closed = schema["properties"], schema.get("additionalProperties", True) is False
        return {
            key: _coerce(value, properties.get(key, {}))
            for key, value in data.items()
            if not is_closed or key in properties
        }
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
