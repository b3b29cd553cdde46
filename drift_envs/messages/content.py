"""A message of any shape as text, with its tool calls and without its thoughts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from drift_envs.utils.json_schema import parse_json

_THOUGHT = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|reflection|scratchpad|seed:think)(?:\s[^<>]*)?>"
    r"|\[(?P<end2>/?)THINK\]|\u25c1(?P<end3>/?)think\u25b7"
    r"|(?P<channel><\|channel\|>\s*analysis\b[^<]*<\|message\|>)|(?P<final><\|end\|>|<\|channel\|>[^<]*<\|message\|>)",
    re.IGNORECASE,
)
"""Where thoughts begin and end: tags, Mistral, Kimi, and the channels of gpt-oss."""

_CALLS = ("tool_use", "tool_call", "function")
"""Types of parts that are tool calls."""
ARGUMENTS = ("arguments", "args", "input", "parameters")
"""Keys under which libraries keep the arguments of a call."""


def read_message(message: Any) -> str:
    r"""A message as text: its content, and each of its tool calls as a line of JSON.

    Args:
        message: a text; or a message as mappings or objects of a library: OpenAI's (`content`, `tool_calls`, each with
            a `function`), Anthropic's parts, Inspect's or LangChain's. Parts that are thoughts are left out.

    Example:
        >>> call = {"function": {"name": "act", "arguments": '{"action": "1"}'}}
        >>> read_message({"role": "assistant", "content": None, "tool_calls": [call]})
        '{"name": "act", "arguments": {"action": "1"}}'
    """
    if isinstance(message, Mapping) and not message.keys() & {"content", "tool_calls"}:
        return read_content(message)
    if isinstance(message, (str, list, tuple, int, float)):
        return read_content(message)
    content, calls = _get(message, "content"), _get(message, "tool_calls")
    written = list(map(write_call, calls)) if isinstance(calls, (list, tuple)) else []
    text = read_content(content)
    return "\n".join(filter(None, [without_thoughts(text), *written])) if written else text


def read_content(content: Any) -> str:
    """The content of a message as text; parts that are thoughts or pictures have none.

    Args:
        content: one text, a part or a list of parts with texts, a number, or JSON that was parsed.

    Example:
        >>> read_content([{"type": "reasoning", "text": "0?"}, {"type": "text", "text": "1"}])
        '1'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "".join(read_content(part) for part in content if not isinstance(part, (int, float)))
    if isinstance(content, (int, float)):
        return "" if isinstance(content, bool) else json.dumps(content)
    kind = _get(content, "type")
    if kind in _CALLS:
        return f"\n{write_call(content)}\n"
    inner = next((found for key in ("text", "value") if (found := _get(content, key)) is not None), None)
    if inner is not None:
        return read_content(inner) if kind in (None, "text", "output_text") else ""
    return json.dumps(content, default=str) if isinstance(content, Mapping) and kind is None else ""


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def write_call(call: Any) -> str:
    """A tool call of any library as JSON with `name` and `arguments`.

    Args:
        call: with `name` and `arguments` (or `args`, `input`, `parameters`), or with a `function` that is the name or
            has both.

    Example:
        >>> write_call({"name": "act", "args": {"action": "1"}})
        '{"name": "act", "arguments": {"action": "1"}}'
    """
    inner = _get(call, "function")
    name = inner if isinstance(inner, str) else _get(call if inner is None else inner, "name")
    holder = call if inner is None or isinstance(inner, str) else inner
    given: Any = next((found for key in ARGUMENTS if (found := _get(holder, key)) is not None), {})
    return json.dumps({"name": name, "arguments": read_arguments(given)}, default=str)


def without_thoughts(text: str, fields: Sequence[str] | Mapping[str, Any] = ()) -> str:
    """Return an answer without the model's thoughts, and without spaces around it.

    A thought ends with its closing tag. Servers often leave out the opening tag, which is part of the prompt of some
    models: everything before a closing tag without one is thought. So is everything after an opening tag without an
    end.

    Args:
        text: the text of a message.
        fields: names of tags that are part of the answer.

    Example:
        >>> without_thoughts("<think>Left or right?</think> 1"), without_thoughts("Or right?</think> 1")
        ('1', '1')
        >>> without_thoughts("1 <think>Or")
        '1'
    """
    kept: list[str] = []
    start, is_thought = 0, False
    for tag in _THOUGHT.finditer(text):
        if tag["name"] is not None and tag["name"].lower() in fields:
            continue
        if tag["channel"] or not (tag["end"] or tag["end2"] or tag["end3"] or tag["final"]):
            if not is_thought:
                kept.append(text[start : tag.start()])
            is_thought = True
        else:
            if not is_thought:
                kept.clear()
            start, is_thought = tag.end(), False
    if not is_thought:
        kept.append(text[start:])
    return "".join(kept).strip()


def read_arguments(given: Any) -> Any:
    r"""The arguments of a tool call: an object, its JSON, or the JSON of its JSON.

    Args:
        given: what a server sends.

    Returns:
        The object; what is none is returned as it is.

    Example:
        >>> read_arguments('"{\\"action\\": \\"1\\"}"'), read_arguments("left")
        ({'action': '1'}, 'left')
    """
    found = given
    for _ in range(3):
        if not isinstance(found, str):
            break
        found = parse_json(found)
    return found if isinstance(found, (dict, list)) else given
