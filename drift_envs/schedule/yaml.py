"""Schedule files: shipped names and paths, what they extend, their variants, and YAML 1.2 with the line of every key.

A file declares its variants under the key `variants`; `frozen_lake/explicit:family` is the variant `family` of
`frozen_lake/explicit`. The keys of a variant replace the same keys of the file as a whole.

PyYAML alone follows YAML 1.1: it reads `6e-4` as a string, `No` as false and `0123` as 83. Here PyYAML only cuts the
text into events. Scalars follow the core schema of YAML 1.2.2 (chapter 10.3), keys are the text that was written, tags
are refused, and aliases count with everything that they stand for.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from drift_envs.errors import Problem, ScheduleError, UnknownScheduleError
from drift_envs.utils.error_messages import key_path, nearest, show

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

KeyPath = tuple[str | int, ...]
Finding = tuple[KeyPath, str]

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

_NO_BLANK = re.compile(r"^[\s-]*([A-Za-z_]\w*):(?![\s/]|$)")
"""A key at the beginning of a line whose colon has no blank behind it."""

_UNQUOTED = re.compile(r"""[{,]\s*[\w"']+:\s+([^\s"'\[{,}][^"'\[{,}]*\[[^\]]*\][^\s,}]*)""")
"""A value with brackets in a mapping that is written in braces, without quotes."""

FILE_ENDINGS = (".yaml", ".yml")
"""What the name of a schedule file ends with; a text that ends otherwise is a shipped name."""

SECTION = "variants"

SUFFIX_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
"""The form of a suffix, as JSON Schema has it."""

FIXED_KEYS = ("version", "name", "extends", SECTION)
"""The keys that a variant cannot replace."""

_SUFFIX = re.compile(SUFFIX_PATTERN.rstrip("$") + r"\Z")
_SHIPPED = re.compile(r"[a-z0-9_]+/[a-z0-9_-]+\Z")  # the form of a shipped name without its suffix
_MOST_EXTENDED = 8


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


class YamlError(Exception):
    """The text is not the YAML that schedules allow.

    Args:
        line: the line, counted from 1, or `None` where the text as a whole is meant.
        text: the rule and what breaks it.
    """

    def __init__(self, line: int | None, text: str) -> None:
        self.line, self.text = line, text
        super().__init__(f"line {line}: {text}" if line else text)


@lru_cache(maxsize=1)
def shipped_schedules() -> tuple[str, ...]:
    """The names of the schedules that come with the package, those of variants with their suffix, sorted.

    Example:
        >>> "frozen_lake/explicit" in shipped_schedules(), "frozen_lake/explicit:family" in shipped_schedules()
        (True, True)
    """
    files = [
        f"{folder.name}/{file.name.removesuffix('.yaml')}"
        for folder in _shipped_root().iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".yaml")
    ]
    return tuple(sorted([*files, *(f"{name}:{suffix}" for name in files for suffix in variants_of(name))]))


def variants_of(source: str | os.PathLike[str]) -> tuple[str, ...]:
    """The suffixes that a schedule file declares, in the order of the file; none if it is a variant itself.

    Args:
        source: a shipped name, or the path of a file.

    Raises:
        ScheduleError: if it can't be found or read, or is no YAML.

    Example:
        >>> variants_of("frozen_lake/slippery")
        ('family', 'long')
    """
    if isinstance(source, str) and split_suffix(source)[1] is not None:
        return ()
    where, file = _locate(source, None)
    data = _parse(where, file, None).data
    section = data.get(SECTION) if isinstance(data, dict) else None
    return tuple(filter(_SUFFIX.match, section)) if isinstance(section, dict) else ()


def split_suffix(text: str) -> tuple[str, str | None]:
    """Split a name or a path into that of the file and the suffix.

    Args:
        text: a shipped name or a path, with or without a suffix.

    Returns:
        The name or path, and the suffix; `None` without one.

    Example:
        >>> split_suffix("frozen_lake/explicit:family")
        ('frozen_lake/explicit', 'family')
        >>> split_suffix("lakes/mine.yaml:windy"), split_suffix("C:/lakes/mine.yaml")
        (('lakes/mine.yaml', 'windy'), ('C:/lakes/mine.yaml', None))
    """
    name, colon, suffix = text.rpartition(":")
    if colon and not text.endswith(FILE_ENDINGS) and (name.endswith(FILE_ENDINGS) or _SHIPPED.match(name)):
        return name, suffix
    return text, None


def read_named(source: str | os.PathLike[str]) -> Document:
    """Read a shipped schedule or a file, with what it extends.

    Args:
        source: a shipped name such as `frozen_lake/explicit`, or the path of a file, either with the suffix of a
            variant.

    Raises:
        ScheduleError: if it can't be found or read, or is no YAML; an `UnknownScheduleError` if there is none of that
            name.
    """
    return _read(source, (), None)


def read_document(where: str, file: Path | Traversable) -> Document:
    """Read a YAML file of another kind than schedules: it extends nothing, and has no variants.

    Args:
        where: what messages call the file.
        file: the file.

    Raises:
        ScheduleError: if it can't be read, is no YAML, or has a key twice.
    """
    try:
        document = parse_yaml(_read_text(where, file, None), where)
    except YamlError as error:
        raise ScheduleError([Problem(where, error.line, "", error.text)]) from None
    if document.problems:
        raise ScheduleError(document.problems)
    return document


def read_variants(source: str | os.PathLike[str]) -> Iterator[tuple[str, Document]]:
    """Read a file once, for itself and each of its variants, with what it extends.

    Args:
        source: a shipped name or the path of a file, without a suffix.

    Yields:
        The name or the path, with the suffix of a variant, and the content.

    Raises:
        ScheduleError: as `read_named` does.
    """
    whole = _read_whole(source, (), None)
    yield os.fspath(source), choose_variant(whole, None)
    section = whole.data.get(SECTION) if isinstance(whole.data, dict) else None
    for suffix in filter(_SUFFIX.match, section if isinstance(section, dict) else ()):
        yield f"{os.fspath(source)}:{suffix}", choose_variant(whole, suffix)


def read_mapping(data: Mapping[Any, Any]) -> Document:
    """Fill in what the data of a program extend; there, `extends` takes a shipped name.

    Raises:
        ScheduleError: if what is extended can't be read.
    """
    document = _check_section(Document({"name": "unnamed", **data}, Mark("<dict>", None)))
    return choose_variant(_extend(document, None, ()), None)


def choose_variant(document: Document, suffix: str | None) -> Document:
    """The content of a file without its section `variants`, or of one of its variants.

    Args:
        document: the content, with what it extends filled in.
        suffix: the variant; `None` for the file itself.

    Returns:
        The content. The name of a variant is that of the file with the suffix.

    Raises:
        KeyError: if there is no such variant; with the suffixes that there are.

    Example:
        >>> data = {"name": "mine", "base": {"slip": 0.1}, "variants": {"icy": {"base": {"slip": 0.3}}}}
        >>> choose_variant(Document(data, Mark("mine.yaml", None)), "icy").data
        {'name': 'mine:icy', 'base': {'slip': 0.3}}
    """
    data, mark = document.data, document.mark
    section = data.get(SECTION, {}) if isinstance(data, Mapping) else {}
    if suffix is not None and (not isinstance(section, Mapping) or suffix not in section):
        raise KeyError(suffix, *(section if isinstance(section, Mapping) else ()))
    if not isinstance(data, Mapping) or SECTION not in data:
        return document
    rest = {key: value for key, value in data.items() if key != SECTION}
    document = replace(document, data=rest)
    if suffix is None or not isinstance(section[suffix], Mapping):  # the latter is among the problems
        return document
    own = {key: value for key, value in section[suffix].items() if key not in FIXED_KEYS}
    named = {"name": f"{rest['name']}:{suffix}"} if isinstance(rest.get("name"), str) else {}
    marks = {**mark.inside, **mark.find([SECTION, suffix]).inside}
    return replace(
        document,
        data={**rest, **named, **own},
        mark=Mark(mark.where, mark.line, marks),
        prefixes=dict.fromkeys(own, (SECTION, suffix)),
    )


def _check_section(document: Document) -> Document:
    """The content with what is wrong with the section `variants` among its problems."""
    if not isinstance(document.data, Mapping) or SECTION not in document.data:
        return document
    problems = list(document.problems)
    for path, rule in _section_findings(document.data[SECTION]):
        place = document.mark.find(path)
        problems.append(Problem(place.where, place.line, key_path(path), rule))
    return replace(document, problems=problems)


def _section_findings(section: Any) -> Iterator[Finding]:
    """What is wrong with the section itself; the keys of a variant are checked when it is loaded."""
    if not isinstance(section, Mapping):
        yield (SECTION,), f"should be a mapping of suffixes to replaced keys. Received {show(section)}"
        return
    for suffix, own in section.items():
        if not isinstance(suffix, str) or not _SUFFIX.match(suffix):
            rule = "should consist of small letters and digits, in words joined by `-`"
            yield (SECTION,), f"a suffix {rule}. Received {show(suffix)}"
        elif not isinstance(own, Mapping):
            yield (SECTION, suffix), f"should be a mapping of replaced keys. Received {show(own)}"
        else:
            for key in filter(FIXED_KEYS.__contains__, own):
                yield (SECTION, suffix, key), f"a variant cannot replace `{key}`, which is that of its file"


def _read(source: str | os.PathLike[str], chain: tuple[str, ...], extending: Mark | None) -> Document:
    """Read a shipped name or a path, or the variant that its suffix names.

    Args:
        source: the name or the path, with or without a suffix.
        chain: the files that extend it, the first one first.
        extending: the mark of the key `extends` that names it.
    """
    suffix = None
    if isinstance(source, str):
        source, suffix = split_suffix(source)
    document = _read_whole(source, chain, extending)
    try:
        return choose_variant(document, suffix)
    except KeyError as error:
        own = os.fspath(source)
        known = nearest(f"{own}:{suffix}", [f"{own}:{one}" for one in error.args[1:]])
        raise _unknown(extending, f"`{own}` has no variant {show(suffix)}. {known}") from None


def _read_whole(source: str | os.PathLike[str], chain: tuple[str, ...], extending: Mark | None) -> Document:
    """Read a file with its section `variants`, and what it extends."""
    where, file = _locate(source, extending)
    # `realpath`, since `Path.resolve` raises where links go round in a circle
    identity = os.path.realpath(file) if isinstance(file, Path) else where
    if identity in chain:
        raise _error(extending or Mark(where, None), f"goes round in a circle, back to {where}")
    if len(chain) >= _MOST_EXTENDED:
        raise _error(extending or Mark(where, None), f"a chain of `extends` may have {_MOST_EXTENDED} files")
    document = _parse(where, file, extending)
    if isinstance(document.data, dict):
        document = replace(document, data={"name": _default_name(os.fspath(source)), **document.data})
    return _extend(document, file, (*chain, identity))


def _extend(document: Document, file: Path | Traversable | None, chain: tuple[str, ...]) -> Document:
    """Fill in what the document extends: its own top-level keys replace those of the other."""
    data, mark = document.data, document.mark
    if not isinstance(data, dict) or "extends" not in data:
        return document
    target, extending = data["extends"], mark.find(["extends"])
    if not isinstance(target, str) or not target:
        raise _error(extending, f"should be the name or the path of a schedule. Received {show(target)}")
    other = _read(_relative(target, file, extending), chain, extending)
    if not isinstance(other.data, dict):
        raise _error(extending, f"`{target}` is no mapping of keys")
    own = {key: value for key, value in data.items() if key != "extends"}
    inherited = {key: value for key, value in other.data.items() if key != "name"}
    marks = {**other.mark.inside, **mark.inside}
    return Document({**inherited, **own}, Mark(mark.where, mark.line, marks), other.problems + document.problems)


def _locate(source: str | os.PathLike[str], extending: Mark | None) -> tuple[str, Path | Traversable]:
    """What messages call a schedule, and its file."""
    text = os.fspath(source)
    if isinstance(source, str) and not text.endswith(FILE_ENDINGS):
        if _is_shipped(text):
            return f"{text}.yaml", _shipped_root() / f"{text}.yaml"
        # what a file extends must not reach beyond its folder, so only programs and people may leave the suffix out
        if extending is not None or not os.path.isfile(text):
            rule = f"there is no shipped schedule {show(text)} (the path of a file ends in .yaml)"
            files = _files_like(text)
            rule = f"{rule}. {f'Did you mean `{files[0]}`?' if files else _nearest_shipped(text)}"
            raise _unknown(extending, rule)
    if "\0" in text:
        raise _error(extending or Mark("", None), f"a path can't hold a null character. Received {show(text)}")
    return text, Path(text)


def _nearest_shipped(text: str) -> str:
    """Suggests a shipped schedule of the nearest folder, or lists that folder's."""
    names = shipped_schedules()
    files = [name for name in names if ":" not in name]  # a list of all variants would be too long
    folder, _, own = text.partition("/")
    near = difflib.get_close_matches(folder, dict.fromkeys(name.partition("/")[0] for name in files), n=1)
    if not near:
        return nearest(text, files)
    home = f"{near[0]}/"
    close = difflib.get_close_matches(own, [name.removeprefix(home) for name in names if name.startswith(home)], n=1)
    return f"Did you mean `{home}{close[0]}`?" if close else nearest("", [one for one in files if one.startswith(home)])


def _files_like(text: str) -> list[str]:
    """Schedule files of the same folder whose name is near; the nearest first."""
    folder, name = os.path.split(text)
    beside = sorted(os.listdir(folder or ".")) if os.path.isdir(folder or ".") else []
    stems = {one.rpartition(".")[0]: one for one in beside if one.endswith(FILE_ENDINGS)}
    stem = name.rpartition(".")[0] if name.endswith(FILE_ENDINGS) else name
    return [os.path.join(folder, stems[one]) for one in difflib.get_close_matches(stem, stems, cutoff=0.8)]


def _relative(target: str, file: Path | Traversable | None, extending: Mark) -> str | Path:
    target, suffix = split_suffix(target)
    if not target.endswith(FILE_ENDINGS):
        return target if suffix is None else f"{target}:{suffix}"
    if not isinstance(file, Path) or file.is_relative_to(str(_shipped_root())):
        rule = f"only a file can extend another by its path; a shipped name is needed here: {target!r}"
        raise _error(extending, rule)
    rule = "should stay in the folder of the file that extends"
    if "\0" in target or "\\" in target or os.path.isabs(target) or ".." in Path(target).parts:
        raise _error(extending, f"{rule}. Received {target!r}")
    path = file.parent / target
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(file.parent)):
        raise _error(extending, f"{rule}, {target!r} leads out of it")
    return path if suffix is None else f"{path}:{suffix}"


def _parse(where: str, file: Path | Traversable, extending: Mark | None) -> Document:
    try:
        return _parse_text(_read_text(where, file, extending), where)
    except YamlError as error:
        raise ScheduleError([Problem(where, error.line, "", error.text)]) from None


@lru_cache(maxsize=128)
def _parse_text(text: str, where: str) -> Document:
    """The content of a file, which is read for each of its variants; no caller changes the document."""
    return _check_section(parse_yaml(text, where))


def _read_text(where: str, file: Path | Traversable, extending: Mark | None) -> str:
    here = extending or Mark(where, None)
    shown = "" if extending is None else f"`{where}` "
    size = 0
    try:
        if isinstance(file, Path):
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe or a device could be read for ever
                raise _error(here, f"{shown}is no file{', but a folder' if stat.S_ISDIR(status.st_mode) else ''}")
            size = status.st_size
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        size = max(size, len(content))
        if size > MAX_BYTES:
            raise _error(here, f"{shown}should have at most {MAX_BYTES} bytes. Received {size}")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScheduleError([Problem(where, line, "", f"should be UTF-8, byte {error.start + 1} is not")]) from None
    except ScheduleError:
        raise
    except (OSError, ValueError) as error:
        close = _files_like(os.fspath(file)) if isinstance(error, FileNotFoundError) and isinstance(file, Path) else []
        advice = f". Did you mean `{close[0]}`?" if close else ""
        raise _error(here, f"{shown}can't be read: {getattr(error, 'strerror', None) or error}{advice}") from None


def _default_name(text: str) -> str:
    if _SHIPPED.match(text):
        return text
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(text).stem).strip("-._") or "unnamed"


@lru_cache(maxsize=128)
def _is_shipped(name: str) -> bool:
    return _SHIPPED.match(name) is not None and (_shipped_root() / f"{name}.yaml").is_file()


@lru_cache(maxsize=1)
def _shipped_root() -> Traversable:
    return resources.files("drift_schedules")


def _unknown(extending: Mark | None, text: str) -> ScheduleError:
    """The error for a name that there is not; in a file that extends it, the file is what cannot be used."""
    return UnknownScheduleError([Problem("", None, "", text)]) if extending is None else _error(extending, text)


def _error(mark: Mark, text: str) -> ScheduleError:
    return ScheduleError([Problem(mark.where, mark.line, "extends" if mark.line is not None else "", text)])


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
    mark = error.problem_mark
    lines = [] if mark is None else [line for line in text.splitlines()[: mark.line + 1] if line.strip()]
    if not lines:
        return ""
    line, before = lines[-1], lines[-2] if len(lines) > 1 else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return ". Indent with blanks instead of tabs"
    for one in (line, before):
        if missing := _NO_BLANK.search(one):
            return f". Put a blank behind the colon of `{missing[1]}:`"
        if unquoted := _UNQUOTED.search(one):
            quote = "'" if '"' in unquoted[1] else '"'
            return f". Quote a path or text with brackets: {quote}{unquoted[1]}{quote}"
    problem = str(error.problem)
    if "did not find expected" in problem or "mapping values" in problem:
        return ". Keys of one mapping, and the dashes of one list, are indented alike; close brackets and quotes"
    return ""


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
