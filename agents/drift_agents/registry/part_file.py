"""Parts in Python files of one's own."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, PartError

_PART_FILE = re.compile(r"(?P<path>.+\.py):(?P<attribute>\w+)(?:@(?P<sha256>[0-9a-f]{64}))?", re.ASCII | re.DOTALL)

_MODULE = "drift_agents_part_"
"""How the names of the files' modules begin."""


class PartFile(NamedTuple):
    """A part in a Python file of one's own.

    Experiments hold it as the text `mine.py:MyRule@` and the SHA-256 of the file, so that every process that plays
    loads the same file. The file is a module of its own: it imports installed packages, and no file beside it.

    Args:
        path: the file.
        attribute: the class or function in it that makes the part.
        sha256: of the file's content, 64 hexadecimal digits; empty where it is not known yet.

    Example:
        >>> PartFile.read("mine.py:MyRule")
        PartFile(path='mine.py', attribute='MyRule', sha256='')
        >>> PartFile.read("vanilla") is None
        True
    """

    path: str
    attribute: str
    sha256: str = ""

    @classmethod
    def read(cls, text: str) -> PartFile | None:
        """The part that a text names; `None` if it names no file."""
        found = _PART_FILE.fullmatch(text)
        return None if found is None else cls(**found.groupdict(""))

    @property
    def text(self) -> str:
        """The text that names the part."""
        return f"{self.path}:{self.attribute}{f'@{self.sha256}' if self.sha256 else ''}"

    def pin(self) -> PartFile:
        """The part with the hash of the file as it is now.

        Raises:
            PartError: if the file cannot be read.
        """
        return self._replace(sha256=hashlib.sha256(self._read()).hexdigest())

    def load(self) -> Any:
        """The class or function; the file is executed once in each process.

        Raises:
            PartError: if the file cannot be read, is not the one with that hash, raises an exception, or has no such
                class or function.
        """
        content = self._read()
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise PartError(f"{self.path}: was changed: its SHA-256 should be {self.sha256}. Received {found}")
        name = f"{_MODULE}{found}"
        if name not in sys.modules:
            sys.modules[name] = self._execute(name, content)
        module = sys.modules[name]
        if not hasattr(module, self.attribute):
            raise PartError(f"{self.path}: has no class or function {self.attribute!r}")
        part = getattr(module, self.attribute)
        try:
            signature(part)
        except (TypeError, ValueError) as error:
            raise PartError(
                f"{self.path}: {self.attribute!r} should be a class or a function. Received {part!r}"
            ) from error
        return part

    def _read(self) -> bytes:
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise PartError(f"{self.path}: cannot be read: {error.strerror}") from error

    def _execute(self, name: str, content: bytes) -> ModuleType:
        """The module of the file's content: of the bytes that were hashed, and of no cached bytecode."""
        module = ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module  # dataclasses and pickle look it up
        try:
            exec(compile(content, self.path, "exec"), module.__dict__)  # nosec B102  # what the user named
        except BaseException as error:
            del sys.modules[name]
            if is_interruption(error):
                raise
            raise PartError(f"{self.path}: raises at import: {describe_error(error)}") from error
        return module


def part_files(data: Any) -> dict[str, PartFile]:
    """All texts of plain data that name a part of a Python file, with what they name.

    Args:
        data: of an experiment, or any other.
    """
    found = {text: PartFile.read(text) for _, text in texts_in(data)}
    return {text: part for text, part in found.items() if part is not None}


def texts_in(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """All keys and values of plain data that are texts, and where they stand."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from texts_in(key, (*path, str(key)))
            yield from texts_in(value, (*path, str(key)))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from texts_in(value, (*path, place))


def is_interruption(error: BaseException) -> bool:
    """Whether an exception of foreign code is none of its errors, but ends the program, as Ctrl-C does.

    All others are errors of that code, whatever their base: a panic of an extension written in Rust, for one, is no
    `Exception`.
    """
    return isinstance(error, (KeyboardInterrupt, GeneratorExit))


def describe_error(error: BaseException) -> str:
    """An exception in one line, with its kind if it is not one of ours.

    Example:
        >>> describe_error(ZeroDivisionError("division by zero"))
        'ZeroDivisionError: division by zero'
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - foreign code too
        text = "its text cannot be read"
    return text if isinstance(error, ArgumentError) else f"{type(error).__name__}: {text}"


def describe_failure(error: BaseException) -> str:
    """An exception that was caught, in one line, with its kind if it is not one of ours.

    If it comes from a part's file, the last line that ran there stands behind it, as in `(mine.py:6)`.

    Example:
        >>> describe_failure(KeyError("office"))
        "KeyError: 'office'"
    """
    own = [
        f" ({frame.f_code.co_filename}:{line})"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith(_MODULE)
    ]
    return describe_error(error) + ("" if isinstance(error, ArgumentError) or not own else own[-1])


def show_class(part: Any) -> str:
    """The class of a part for a message, with its file: `mine.py:Memory`.

    Example:
        >>> show_class("a text")
        'str'
    """
    kind = type(part)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) if kind.__module__.startswith(_MODULE) else None
    return kind.__name__ if file is None else f"{file}:{kind.__name__}"
