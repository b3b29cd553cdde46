"""Reads schedule files: shipped names, paths, and what they extend.

* `read_named` - a shipped name or a path to a `Document`, with what it extends filled in
* `read_mapping` - the same for data that a program hands over
* `shipped_schedules` - the names of the schedules that come with the package
* `variants_of` - the suffixes that a schedule file declares
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift_envs.errors import Problem, ScheduleError, UnknownScheduleError
from drift_envs.schedule.findings import nearest, show
from drift_envs.schedule.variants import FILE_ENDINGS, SECTION, SHIPPED, choose_variant, is_suffix, split_suffix
from drift_envs.schedule.yaml12 import MAX_BYTES, Document, Mark, YamlError, parse_yaml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_MOST_EXTENDED = 8
_LONGEST_PATH = 4096


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
    where, file, is_shipped = _locate(source, None)
    data = (_parse_shipped(where) if is_shipped else _parse(file, where, None)).data
    section = data.get(SECTION) if isinstance(data, dict) else None
    return tuple(filter(is_suffix, section)) if isinstance(section, dict) else ()


def read_named(source: str | os.PathLike[str]) -> Document:
    """Read a shipped schedule or a file, with what it extends.

    Args:
        source: a shipped name such as `frozen_lake/explicit`, or the path of a file, either with the suffix of a
            variant.

    Raises:
        ScheduleError: if it can't be found or read, or is no YAML; an `UnknownScheduleError` if there is none of that
            name.
    """
    return _Reader().read(source)


def read_mapping(data: Mapping[Any, Any]) -> Document:
    """Fill in what the data of a program extend; there, `extends` takes a shipped name.

    Raises:
        ScheduleError: if what is extended can't be read.
    """
    document = Document({"name": "unnamed", **data}, Mark("<dict>", None))
    return choose_variant(_Reader().extend(document, None), None)


class _Reader:
    """Reads one schedule and the chain of what it extends."""

    def __init__(self) -> None:
        self._chain: list[str] = []

    def read(self, source: str | os.PathLike[str], extending: Mark | None = None) -> Document:
        """Read a shipped name or a path; `extending` is the mark of the key `extends` that names it."""
        suffix = None
        if isinstance(source, str):
            source, suffix = split_suffix(source)
        where, file, is_shipped = _locate(source, extending)
        # `realpath`, since `Path.resolve` raises where links go round in a circle
        identity = os.path.realpath(file) if isinstance(file, Path) and not is_shipped else where
        if identity in self._chain:
            raise _error(extending or Mark(where, None), f"goes round in a circle, back to {where}")
        self._chain.append(identity)
        if len(self._chain) > _MOST_EXTENDED:
            raise _error(extending or Mark(where, None), f"a chain of `extends` may have {_MOST_EXTENDED} files")
        document = _parse_shipped(where) if is_shipped else _parse(file, where, extending)
        if isinstance(document.data, dict):
            document = replace(document, data={"name": _default_name(source), **document.data})
        document = self.extend(document, file)
        try:
            return choose_variant(document, suffix)
        except KeyError as error:
            own = os.fspath(source)
            known = nearest(f"{own}:{suffix}", [f"{own}:{one}" for one in error.args[1:]])
            raise _unknown(extending, f"`{own}` has no variant {show(suffix)}. {known}") from None

    def extend(self, document: Document, file: Path | Traversable | None) -> Document:
        """Fill in what the document extends: its own top-level keys replace those of the other."""
        data, mark = document.data, document.mark
        if not isinstance(data, dict) or "extends" not in data:
            return document
        target, extending = data["extends"], mark.find(["extends"])
        if not isinstance(target, str) or not target:
            raise _error(extending, f"should be the name or the path of a schedule. Received {show(target)}")
        other = self.read(_relative(target, file, extending), extending)
        if not isinstance(other.data, dict):
            raise _error(extending, f"`{target}` is no mapping of keys")
        own = {key: value for key, value in data.items() if key != "extends"}
        inherited = {key: value for key, value in other.data.items() if key != "name"}
        marks = {**other.mark.inside, **mark.inside}
        return Document({**inherited, **own}, Mark(mark.where, mark.line, marks), other.problems + document.problems)


def _locate(source: str | os.PathLike[str], extending: Mark | None) -> tuple[str, Path | Traversable, bool]:
    """What messages call a schedule, its file, and whether it comes with the package."""
    text = os.fspath(source)
    if isinstance(source, str) and not text.endswith(FILE_ENDINGS):
        if _is_shipped(text):
            return f"{text}.yaml", _shipped_root() / f"{text}.yaml", True
        # what a file extends must not reach beyond its folder, so only programs and people may leave the suffix out
        if extending is not None or "\0" in text or len(text) > _LONGEST_PATH or not os.path.isfile(text):
            folder = text.partition("/")[0] + "/"
            names = shipped_schedules()
            beside = [name for name in names if name.startswith(folder)]
            known = nearest(text, beside or names)
            if not beside and known.startswith("Known"):  # too many to list
                known = f"They begin with {', '.join(dict.fromkeys(name.partition('/')[0] for name in names))}"
            rule = f"there is no shipped schedule {show(text)} (the path of a file ends in .yaml). {known}"
            raise _unknown(extending, rule)
    if "\0" in text:
        raise _error(extending or Mark("", None), f"a path can't hold a null character. Received {show(text)}")
    return text, Path(text), False


def _relative(target: str, file: Path | Traversable | None, extending: Mark) -> str | Path:
    target, suffix = split_suffix(target)
    if not target.endswith(FILE_ENDINGS):
        return target if suffix is None else f"{target}:{suffix}"
    if not isinstance(file, Path) or file.is_relative_to(str(_shipped_root())):
        raise _error(
            extending, f"only a file can extend another by its path; a shipped name is needed here: {target!r}"
        )
    folder = file.parent
    if "\0" in target or "\\" in target or os.path.isabs(target) or ".." in Path(target).parts:
        raise _error(extending, f"should stay in the folder of the file that extends. Received {target!r}")
    path = folder / target
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise _error(extending, f"should stay in the folder of the file that extends, {target!r} leads out of it")
    return path if suffix is None else f"{path}:{suffix}"


def _parse(file: Path | Traversable, where: str, extending: Mark | None) -> Document:
    try:
        return parse_yaml(_read_text(file, where, extending), where)
    except YamlError as error:
        raise ScheduleError([Problem(where, error.line, "", error.text)]) from None


@lru_cache(maxsize=128)
def _parse_shipped(where: str) -> Document:
    """Parse a file of the package once per process; its content can't change, and no caller changes the document."""
    return _parse(_shipped_root() / where, where, None)


def _read_text(file: Path | Traversable, where: str, extending: Mark | None) -> str:
    here = extending or Mark(where, None)
    shown = "" if extending is None else f"`{where}` "
    try:
        if isinstance(file, Path):
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe or a device could be read for ever
                raise _error(here, f"{shown}is no file{', but a folder' if stat.S_ISDIR(status.st_mode) else ''}")
            if status.st_size > MAX_BYTES:
                raise _error(here, f"{shown}should have at most {MAX_BYTES} bytes. Received {status.st_size}")
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _error(here, f"{shown}should have at most {MAX_BYTES} bytes. Received more")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScheduleError([Problem(where, line, "", f"should be UTF-8, byte {error.start + 1} is not")]) from None
    except (OSError, ValueError) as error:
        if isinstance(error, ScheduleError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _error(here, f"{shown}can't be read: {reason}") from None


def _default_name(source: str | os.PathLike[str]) -> str:
    text = os.fspath(source)
    if not text.endswith(FILE_ENDINGS) and SHIPPED.match(text):
        return text
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(text).stem).strip("-._") or "unnamed"


@lru_cache(maxsize=128)
def _is_shipped(name: str) -> bool:
    return SHIPPED.match(name) is not None and (_shipped_root() / f"{name}.yaml").is_file()


@lru_cache(maxsize=1)
def _shipped_root() -> Traversable:
    return resources.files("drift_schedules")


def _unknown(extending: Mark | None, text: str) -> ScheduleError:
    """The error for a name that there is not; in a file that extends it, the file is what cannot be used."""
    return UnknownScheduleError([Problem("", None, "", text)]) if extending is None else _error(extending, text)


def _error(mark: Mark, text: str) -> ScheduleError:
    return ScheduleError([Problem(mark.where, mark.line, "extends" if mark.line is not None else "", text)])
