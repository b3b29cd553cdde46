"""YAML 1.2 as schedules need it: plain data, the line of every key, and the words of messages about them.

PyYAML alone follows YAML 1.1: it reads `6e-4` as a string, `No` as false and `0123` as 83. Here PyYAML
only cuts the text into events. Scalars follow the core schema of YAML 1.2.2 (chapter 10.3), keys are the
text that was written, tags are refused, and aliases count with everything that they stand for.

* `parse_yaml` - a text to a `Document`: plain data, its `Mark`, and the keys that stand twice
* `YamlError` - what is wrong with the text, and on which line
* `Finding` - a path to a key and the rule that it breaks
* `key_path`, `show`, `nearest` - a path, a value and a suggestion as messages write them
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from drift_envs.errors import Problem

Path = tuple[str | int, ...]
Finding = tuple[Path, str]

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
_MAX_SHOWN = 60
_MANY = 20  # above so many names a message names the nearest ones only
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


_NO_BLANK = re.compile(r"^[\s-]*([A-Za-z_]\w*):(?![\s/]|$)")
"""A key at the beginning of a line whose colon has no blank behind it."""


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
        return _Reader(text, where).read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YamlError(line, f"is not YAML: {error.problem or error.context}{_hint(text, error)}") from None
    except yaml.YAMLError as error:
        raise YamlError(None, f"is not YAML: {' '.join(str(error).split())}") from None


def _hint(text: str, error: yaml.MarkedYAMLError) -> str:
    """What people usually mean where a text is not YAML: a tab, a missing blank, another indentation."""
    mark, lines = error.problem_mark, text.splitlines()
    if mark is None or mark.line >= len(lines):
        return ""
    line, before = lines[mark.line], lines[mark.line - 1] if mark.line else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return ". Indent with blanks instead of tabs"
    for one in (line, before):
        if missing := _NO_BLANK.search(one):
            return f". Put a blank behind the colon of `{missing[1]}:`"
    problem = str(error.problem)
    if "did not find expected" in problem or "mapping values" in problem:
        return ". Keys of one mapping, and the dashes of one list, are indented alike; close brackets and quotes"
    return ""


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


class _Reader:
    """Reads one value after the other from the events; `MAX_DEPTH` bounds the recursion."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._events = _events(text)
        self._nodes = 0
        self._anchors: dict[str, tuple[Any, Mark, int] | None] = {}
        self._problems: list[Problem] = []

    def read(self) -> Document:
        data, mark, documents = None, Mark(self._where, None), 0
        for event in self._events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError(line, "should be one document, a second one begins here")
            elif isinstance(event, yaml.NodeEvent):
                data, mark = self._value(event, 0)
        return Document(data, mark, self._problems)

    def _value(self, event: Any, depth: int, is_key: bool = False) -> tuple[Any, Mark]:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), line, is_key)
        if event.tag not in (None, "!"):
            raise YamlError(line, f"tags are not allowed. Received `{event.tag}`")
        before, mark = self._nodes, Mark(self._where, line)
        self._count(1, line)
        if isinstance(event, yaml.ScalarEvent):
            value = event.value if is_key else self._scalar(event, line)
        elif is_key:
            raise YamlError(line, "a key should be a word or a quoted string, not a list or a mapping")
        elif depth >= MAX_DEPTH:
            raise YamlError(line, f"is nested deeper than {MAX_DEPTH} levels")
        else:
            if event.anchor:
                self._anchors[event.anchor] = None  # until it is closed, so that it can't hold itself
            read = self._mapping if isinstance(event, yaml.MappingStartEvent) else self._list
            value = read(mark, depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = (value, mark, self._nodes - before)
        return value, mark

    def _mapping(self, mark: Mark, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            key, place = self._value(event, depth, is_key=True)
            if key in data:
                text = f"stands twice, first on line {mark.inside[key].line}"
                self._problems.append(Problem(self._where, place.line, key, text))
            data[key], inner = self._value(next(self._events), depth)
            mark.inside[key] = Mark(self._where, place.line, inner.inside)
        return data

    def _list(self, mark: Mark, depth: int) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            value, mark.inside[len(data)] = self._value(event, depth)
            data.append(value)
        return data

    def _scalar(self, event: Any, line: int) -> Any:
        try:
            return read_scalar(event.value) if event.implicit[0] and not event.tag else event.value
        except ValueError as error:
            raise YamlError(line, str(error)) from None

    def _alias(self, anchor: str, line: int, is_key: bool) -> tuple[Any, Mark]:
        if anchor not in self._anchors:
            raise YamlError(line, f"there is no anchor `&{anchor}` before this")
        known = self._anchors[anchor]
        if known is None:
            raise YamlError(line, f"`*{anchor}` stands inside of what it stands for")
        value, mark, size = known
        self._count(size, line)
        if is_key and not isinstance(value, str):
            raise YamlError(line, f"a key should be a word or a quoted string. `*{anchor}` is not")
        return value, Mark(self._where, line, mark.inside)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YamlError(line, f"holds more than {MAX_NODES} values, aliases counted with what they stand for")


def key_path(path: Iterable[str | int]) -> str:
    """A path in the notation of messages.

    Example:
        >>> key_path(("drifts", 1, "set", "map"))
        'drifts[1].set.map'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def show(value: Any) -> str:
    """A value as YAML writes it, cut to a readable length.

    Example:
        >>> show(None), show(True), show("B")
        ('null', 'true', "'B'")
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 4]} ..."


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggests the known name that is most like an unknown one, or lists them all, of many names the nearest.

    Example:
        >>> nearest("slipp", ["map", "slip"])
        'Did you mean `slip`?'
        >>> nearest("gravity", ["map", "slip"])
        'Known: `map`, `slip`'
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean `{close[0]}`?"
    if len(names) > _MANY:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0)
        return f"The nearest of {len(names)}: {', '.join(f'`{name}`' for name in near)}"
    return f"Known: {', '.join(f'`{name}`' for name in names)}" if names else "There are none"
