"""YAML 1.2 as schedules need it: plain data, the line of every key, and nothing that can blow up.

PyYAML alone follows YAML 1.1: it reads `6e-4` as a string, `No` as false and `0123` as 83. Here PyYAML
only cuts the text into events. Scalars follow the core schema of YAML 1.2.2 (chapter 10.3), keys are the
text that was written, tags are refused, and aliases count with everything that they stand for.

* `parse_yaml` - a text to a `Document`
* `Document` - plain data, its `Mark`, and the keys that stand twice
* `Mark` - where a value stands, and the marks of what is inside
* `YamlError` - what is wrong with the text, and on which line
* `MAX_NODES`, `MAX_DEPTH`, `MAX_BYTES` - the bounds
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from drift_envs.errors import Problem

MAX_BYTES = 1_000_000
"""The largest file that is read; a drift with a map of its own takes about 200 bytes."""

MAX_NODES = 100_000
"""The most values that a file may hold, each alias counted with all that it stands for."""

MAX_DEPTH = 24
"""The deepest nesting."""

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"(?:0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"([-+]?)\.(?:inf|Inf|INF)\Z")
_NOT_A_NUMBER = re.compile(r"\.(?:nan|NaN|NAN)\Z")
_MOST_DIGITS = 400  # Python refuses to read more than 4300, with an error message of its own
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(Exception):
    """The text is not the YAML that schedules allow.

    Args:
        line: the line, counted from 1, or `None` where the text as a whole is meant.
        text: the rule and what breaks it.
    """

    def __init__(self, line: int | None, text: str) -> None:
        self.line, self.text = line, text
        super().__init__(f"line {line}: {text}" if line else text)


@dataclass
class Mark:
    """Where a value stands, and the marks of what is inside it.

    Args:
        where: the file, as the user wrote it.
        line: the line of the value's key, or of the value itself in a list; counted from 1.
        inside: the marks by key or by position.
    """

    where: str
    line: int | None
    inside: dict[str | int, Mark] = field(default_factory=dict)

    def find(self, path: Iterable[str | int]) -> Mark:
        """The mark at the end of a path, or of the last part of the path that exists."""
        mark = self
        for part in path:
            if part not in mark.inside:
                break
            mark = mark.inside[part]
        return mark


@dataclass
class Document:
    """What a text holds.

    Args:
        data: dictionaries with string keys, lists, strings, numbers, booleans and `None`; parts that an
            anchor names are shared, not copied.
        mark: where it stands.
        problems: the keys that stand twice.
        prefixes: top-level key -> the path in front of it in the file, for keys of a variant.
    """

    data: Any
    mark: Mark
    problems: list[Problem] = field(default_factory=list)
    prefixes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def parse_yaml(text: str, where: str) -> Document:
    r"""Read a text of one document.

    Args:
        text: the text.
        where: what the marks call it.

    Raises:
        YamlError: if the text is not YAML, or uses what schedules do not allow.

    Example:
        >>> document = parse_yaml("force: 6e-4\nlabels: [No, 0o17, '0123']", "a.yaml")
        >>> document.data
        {'force': 0.0006, 'labels': ['No', 15, '0123']}
        >>> document.mark.find(["labels", 1]).line
        2
    """
    try:
        return _Builder(where).build(_events(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YamlError(line, f"is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(None, f"is not YAML: {' '.join(str(error).split())}") from None


def read_scalar(text: str) -> Any:
    """The value of a scalar without quotes, after the core schema of YAML 1.2.

    Raises:
        ValueError: if a number has more digits than can be meant.

    Example:
        >>> [read_scalar(text) for text in ("6e-4", "No", "0123", "0x1F", "~", "TRUE", "1_000")]
        [0.0006, 'No', 123, 31, None, True, '1_000']
    """
    if _NULL.match(text):
        return None
    if _BOOLEAN.match(text):
        return text.lower() == "true"
    if len(text) > _MOST_DIGITS and (_DECIMAL.match(text) or _BASED.match(text) or _FLOAT.match(text)):
        raise ValueError(f"a number may have {_MOST_DIGITS} digits. Received one of {len(text)}")
    if _DECIMAL.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.match(text):
        return float(text)
    if match := _INFINITE.match(text):
        return float(f"{match[1]}inf")
    return float("nan") if _NOT_A_NUMBER.match(text) else text


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except (ValueError, OverflowError) as error:
        # PyYAML's own scanner lets an impossible escape such as "\UFFFFFFFF" through to `chr`
        raise YamlError(None, f"is not YAML: {error}") from None


@dataclass
class _Open:
    """A collection that has begun and not ended."""

    data: Any
    mark: Mark
    anchor: str | None
    before: int  # how many nodes there were when it began
    key: str | None = None  # the key that waits for its value
    key_line: int = 0


class _Builder:
    """Builds the data from the events with a stack of its own, so that nesting can't exhaust Python's."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._stack: list[_Open] = []
        self._nodes = 0
        self._anchors: dict[str, tuple[Any, Mark, int] | None] = {}
        self._document = Document(None, Mark(where, None))

    def build(self, events: Iterable[Any]) -> Document:
        documents = 0
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError(line, "should be one document, a second one begins here")
            elif isinstance(event, yaml.AliasEvent):
                self._alias(str(event.anchor), line)
            elif isinstance(event, yaml.NodeEvent):
                self._node(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
        return self._document

    def _node(self, event: Any, line: int) -> None:
        if event.tag not in (None, "!"):
            raise YamlError(line, f"tags are not allowed. Received `{event.tag}`")
        self._count(1, line)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
            return
        if self._wants_key():
            raise YamlError(line, "a key should be a word or a quoted string, not a list or a mapping")
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(line, f"is nested deeper than {MAX_DEPTH} levels")
        data: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor:
            self._anchors[event.anchor] = None  # until it is closed, so that it can't hold itself
        self._stack.append(_Open(data, Mark(self._where, line), event.anchor, self._nodes - 1))

    def _scalar(self, event: Any, line: int) -> None:
        if self._wants_key():
            self._key(event.value, line)
            value: Any = event.value
        else:
            try:
                value = read_scalar(event.value) if event.implicit[0] and not event.tag else event.value
            except ValueError as error:
                raise YamlError(line, str(error)) from None
            self._put(value, Mark(self._where, line))
        if event.anchor:
            self._anchors[event.anchor] = (value, Mark(self._where, line), 1)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise YamlError(line, f"there is no anchor `&{anchor}` before this")
        known = self._anchors[anchor]
        if known is None:
            raise YamlError(line, f"`*{anchor}` stands inside of what it stands for")
        value, mark, size = known
        self._count(size, line)
        if not self._wants_key():
            self._put(value, Mark(self._where, line, mark.inside))
        elif isinstance(value, str):
            self._key(value, line)
        else:
            raise YamlError(line, f"a key should be a word or a quoted string. `*{anchor}` is not")

    def _close(self) -> None:
        done = self._stack.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.data, done.mark, self._nodes - done.before)
        self._put(done.data, done.mark)

    def _wants_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].data, dict) and self._stack[-1].key is None

    def _key(self, key: str, line: int) -> None:
        top = self._stack[-1]
        if key in top.data:
            first = top.mark.inside[key].line
            self._document.problems.append(Problem(self._where, line, key, f"stands twice, first on line {first}"))
        top.key, top.key_line = key, line

    def _put(self, value: Any, mark: Mark) -> None:
        if not self._stack:
            self._document.data, self._document.mark = value, mark
            return
        top = self._stack[-1]
        if isinstance(top.data, dict) and top.key is not None:
            mark.line = top.key_line
            top.mark.inside[top.key] = mark
            top.data[top.key] = value
            top.key = None
        else:
            top.mark.inside[len(top.data)] = mark
            top.data.append(value)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YamlError(line, f"holds more than {MAX_NODES} values, aliases counted with what they stand for")
