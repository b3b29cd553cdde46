"""The data that a text holds, by a JSON Schema, and the action that a message names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drift_envs.messages.content import ARGUMENTS, read_arguments, read_message, without_thoughts
from drift_envs.messages.wordings import NOUNS, REACT, Wordings, find_last_line
from drift_envs.utils.json_schema import (
    coerce,
    find_objects,
    nearest,
    parse_json,
    parse_object,
    violations,
    without_surrogates,
)

ANSWER_TAG = "answer"
SCALARS = ("string", "integer", "number", "boolean")
LONGEST_ERROR = 500
"""Characters of one sentence about an invalid answer; sentences become part of the next request."""
NOTHING = "it holds no answer in the form that was asked for"
_DEEPEST = 6
"""Objects in objects, and texts that are JSON in JSON, in which an answer is looked for."""


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

    The first valid candidate counts: JSON objects, the last one first; tags and calls; a line with the name of the key.
    For a schema with one key, or with one choice, sentences are read, too (see the module). Thoughts are skipped, and
    further keys are left out. An answer whose valid candidates differ in a value that the schema lists, as in two
    different actions, is refused.

    NaN and infinity are read as null, lone surrogates as the replacement character; the data can be encoded as UTF-8.

    Args:
        text: the answer.
        schema: its form, with the rules of `drift_envs.utils.json_schema.violations`.

    Returns:
        The data, or the errors of the first candidate.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "additionalProperties": False}
        >>> read_answer('Down is safe.\n```json\n{"action": 1, "sure": true}\n```', schema)
        ParsedAnswer(data={'action': '1'}, errors=[])
        >>> read_answer("<action>1</action>", schema).data, read_answer("So the answer is 1.", schema).data
        ({'action': '1'}, {'action': '1'})
        >>> read_answer('{"action": "0"} or {"action": "1"}', schema).errors
        ["it holds two different answers, ['1'] and ['0']"]
    """
    answer = without_thoughts(without_surrogates(text), schema.get("properties", {}))
    return _Reader(answer, schema).read()


def read_action(message: Any, actions: Sequence[str], is_open: bool = True) -> ParsedAnswer:
    r"""The action that a message names.

    Args:
        message: a message of a language model, see `read_message`.
        actions: the admissible actions that are shown.
        is_open: whether others may be taken, too: then what stands at an action's place is the action, such as a
            search in one's own words, and the last line where nothing else is.

    Returns:
        The text of the action, or why there is none.

    Example:
        >>> read_action("Holes lie to the right.\n**Action:** 1", ["0", "1"]).data
        '1'
        >>> read_action("<think>Action: 0</think>I choose 1.", ["0", "1"]).data
        '1'
        >>> read_action("Action: search[red mug]", ["click[back]"]).data
        'search[red mug]'
        >>> read_action("<think>Action: 0", ["0", "1"])
        ParsedAnswer(data=None, errors=['it is empty'])
    """
    schema = {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": list(actions)}},
        "required": ["action"],
        "additionalProperties": False,
    }
    answer = without_thoughts(without_surrogates(read_message(message)))
    data, errors = _Reader(answer, schema, is_open).read()
    return ParsedAnswer(None if data is None else data["action"], errors)


def read_named(reply: str, actions: Sequence[str]) -> str | None:
    """The admissible action that the reply of a policy names, `None` if it names none or several.

    Args:
        reply: its text.
        actions: the admissible actions.

    Example:
        >>> read_named(" 1 ", ["0", "1"]), read_named("0 or 1", ["0", "1"])
        ('1', None)
    """
    text = reply.strip()
    found: str | None = text if text in actions else read_action(text, actions, is_open=False).data
    return found


def ends_with_answer(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text ends with a valid answer, and not with words about one.

    Args:
        text: the text.
        schema: the form of the answer.

    Example:
        >>> schema = {"type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}
        >>> ends_with_answer('Down is safe. {"action": "1"}', schema)
        True
        >>> ends_with_answer('Not {"action": "1"}, there is a hole.', schema)
        False
    """
    reader = _Reader(without_thoughts(without_surrogates(text), schema.get("properties", {})), schema)
    ends_with_form = text.rstrip().endswith(("}", ">", "```")) or not re.search(r"[{<]", text)
    return ends_with_form and reader.read(is_thought=True).data is not None


class _Reader:
    """One answer and its schema.

    Args:
        text: the answer, without thoughts.
        schema: its form.
        is_open: whether values that a choice does not list may be meant, see `read_action`.
    """

    def __init__(self, text: str, schema: Mapping[str, Any], is_open: bool = False) -> None:
        self._text, self._schema, self._is_open = text, schema, is_open
        self._properties: Mapping[str, Any] = schema.get("properties", {})
        self._is_object = schema.get("type", "object") == "object"
        self._choice, self._rule = self._find_choice()
        self._words = Wordings(self._rule, is_open)
        shown = map(parse_object, self._rule.get("enum", ()))
        self._keys = {frozenset(one) for one in shown if isinstance(one, dict)}
        objects = list(find_objects(text))
        self._objects = [data for data, _, _ in objects]
        self._prose = _without_spans(text, [(start, end) for _, start, end in objects])

    def _find_choice(self) -> tuple[str | None, Mapping[str, Any]]:
        """The property that sentences can give: the only one, or the only one whose values are listed."""
        listed = [(name, rule) for name, rule in self._properties.items() if "enum" in rule]
        if len(listed) == 1:
            return listed[0]
        if len(self._properties) == 1:
            ((name, rule),) = self._properties.items()
            if rule.get("type") in ("integer", "number", "boolean"):
                return name, rule
        return None, {}

    def read(self, is_thought: bool = False) -> ParsedAnswer:
        """The data, or why there is none.

        Args:
            is_thought: whether the text is a thought, in which no sentence and no line acts.
        """
        errors: list[str] = []
        is_tried = False
        levels = (self._formal, self._whole) if is_thought else (self._structured, self._stated, self._mentioned)
        for level in levels:
            found: list[Any] = []
            free: list[Any] = []
            for candidate in level():
                data = coerce(candidate, self._schema)
                wrong = violations(data, self._schema)
                if not wrong:
                    found.append(data)
                elif self._is_open and (meant := self._as_open(data)) is not None:
                    free.append(meant)
                else:
                    errors = errors or [_shorten(error) for error in wrong]
                    is_tried = is_tried or (isinstance(data, dict) and self._choice in data)
            first, *others = found or free or [None]
            for other in others:
                if self._choices(other) != self._choices(first):
                    both = f"{self._choices(first)!r} and {self._choices(other)!r}"
                    return ParsedAnswer(None, [_shorten(f"it holds two different answers, {both}")])
            if first is not None:
                return ParsedAnswer(first, [])
            if is_tried:
                break
        if self._is_open and self._text and not is_tried:
            return ParsedAnswer({self._choice: self._text.splitlines()[-1].strip(" \t*`_")}, [])
        # These sentences become part of the next request, so recorded replies depend on them.
        return ParsedAnswer(None, errors or [NOTHING if self._text else "it is empty"])

    def _choices(self, data: Any) -> list[Any]:
        """The values of the properties whose values the schema lists."""
        return [data.get(name) for name, rule in self._properties.items() if "enum" in rule]

    def _as_open(self, data: Any) -> Any:
        """Data that name an action that is not listed, `None` if they name none."""
        value = data.get(self._choice) if isinstance(data, dict) else None
        text = value if isinstance(value, str) else json.dumps(value)
        return {self._choice: text.strip("\"' ")} if value and text.strip("\"' ") and value is not True else None

    def _structured(self) -> Iterator[Any]:
        """JSON, tags, calls and the last line with the name of the key, most likely first."""
        yield from self._formal()
        if self._choice is not None and not isinstance(parse_json(self._text), dict):
            yield from self._lines()

    def _formal(self) -> Iterator[Any]:
        """JSON, tags and calls."""
        whole: Any = parse_json(self._text)
        for _ in range(2):
            whole = parse_json(whole) if isinstance(whole, str) and whole.lstrip()[:1] in ("{", '"') else whole
        if whole is not None and (isinstance(whole, dict) or not self._is_object):
            yield from self._holders(whole)
            return
        for data in reversed(self._objects):
            yield from self._holders(data)
        if not self._is_object:
            return
        tagged = {name: found for name, rule in self._properties.items() if (found := _tagged(self._text, name, rule))}
        if tagged:
            last = {name: values[-1] for name, values in tagged.items()}
            yield last
            yield from ({**last, name: value} for name, values in tagged.items() for value in values[:-1])

    def _holders(self, data: Any, depth: int = 0) -> list[Any]:
        """An object, or where it has none of the keys the objects in it that do, as in `{"answer": {"action": 1}}`.

        An object that is itself an admissible action, as at a service desk, holds it.
        """
        if not isinstance(data, dict):
            return [data]
        if data.keys() & self._properties.keys():
            return [data]
        action, inner = self._as_action(data), self._inner(data, depth)
        if action is None and not inner and isinstance(data.get("name"), str):
            given: Any = next((data[key] for key in ARGUMENTS if key in data), {})
            action = self._as_action({"tool": data["name"], "arguments": given})
        return inner or [data] if action is None else [{self._choice: action}]

    def _inner(self, data: Any, depth: int) -> list[Any]:
        """The holders in an object or a list, the last one first."""
        if depth == _DEEPEST:
            return []
        found: list[Any] = []
        for value in list(data.values() if isinstance(data, dict) else data)[::-1]:
            inner = read_arguments(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"') else value
            if isinstance(inner, dict):
                found += [one for one in self._holders(inner, depth + 1) if one.keys() & self._properties.keys()]
            elif isinstance(inner, list):
                found += self._inner(inner, depth + 1)
        return found

    def _as_action(self, data: Mapping[str, Any]) -> str | None:
        """The action that an object is at a service desk, `None` if it is none."""
        if set(data) not in self._keys:
            return None
        call = {name: read_arguments(value) if name == "arguments" else value for name, value in data.items()}
        listed = nearest(call, self._rule["enum"])
        if isinstance(listed, str):
            return listed
        return json.dumps(call) if self._is_open else None

    def _lines(self) -> Iterator[Any]:
        """What stands behind the last `Action:`."""
        own = str(self._choice).lower()
        line = find_last_line(self._text, {*NOUNS, own} if "enum" in self._rule else {own})
        if line is None:
            return
        before, rest = line
        value = rest.split("\n", 1)[0].strip(" \t\r*`_")
        data, start, _ = next(find_objects(rest), ({}, -1, 0))
        if start == 0:
            value = self._as_action(data) or value
        if value:
            yield self._complete(self._words.shorten(value), before)

    def _whole(self) -> Iterator[Any]:
        """The value alone."""
        if self._choice is not None:
            yield from (self._complete(value, "") for value in self._words.read_alone(self._text))

    def _stated(self) -> Iterator[Any]:
        """Lines and marked words that are the action alone, and sentences such as "The answer is ..."."""
        yield from self._whole()
        if "enum" in self._rule:
            before = REACT.sub("", self._prose)
            yield from (self._complete(value, before) for value in self._words.find_stated(self._prose))

    def _mentioned(self) -> Iterator[Any]:
        """Actions of several words, or with brackets, among other words."""
        before = REACT.sub("", self._prose)
        yield from (self._complete(value, before) for value in self._words.find_mentioned(self._prose))

    def _complete(self, value: Any, before: str) -> dict[str, Any]:
        """The value with the words before it as its reasons, if the schema has one text for them."""
        others = [name for name in self._schema.get("required", ()) if name != self._choice]
        words = before.strip()
        if len(others) == 1 and words and self._properties[others[0]].get("type") == "string":
            return {others[0]: words, self._choice: value}
        return {str(self._choice): value}


def _without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text without its JSON, up to where JSON begins that does not end."""
    parts, last = [], 0
    for start, end in spans:
        parts.append(text[last:start])
        last = end
    parts.append(text[last:])
    return re.split(r"\{\s*[\"']", " ".join(parts), maxsplit=1)[0]


def is_scalar(rule: Mapping[str, Any]) -> bool:
    """Whether a rule is that of a text, a number or a truth value.

    Args:
        rule: the schema of a property.
    """
    return "enum" in rule or rule.get("type") in SCALARS


def _tagged(text: str, name: str, rule: Mapping[str, Any]) -> list[Any]:
    """The values between tags of that name, and behind it in a call, in order."""
    values: list[str] = []
    for opening, closing in ((f"<{name}>", f"</{name}>"), (f"<parameter={name}>", "</parameter>")):
        parts = (part.rpartition(opening) for part in text.split(closing)[:-1])
        values += [value.strip() for _, tag, value in parts if tag]
    if "enum" in rule:
        values += [found[2] for found in re.finditer(rf"\b{re.escape(name)}\s*=\s*(['\"])(.{{0,500}}?)\1", text)]
        values += [found[2] for found in re.finditer(rf"'{re.escape(name)}'\s*:\s*(['\"])(.{{0,500}}?)\1", text)]
    if is_scalar(rule):
        return values
    return [value if (data := parse_json(value)) is None else data for value in values]


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."
