"""JSON files that are larger than memory, one entry at a time.

* `JsonEntry` - one entry: where it stands, and its value or what is wrong with it
* `stream_entries` - the entries of a file whose outermost value is a list or an object
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from webshop_server.errors import ImportProblem

CHUNK = 1 << 20
MAX_ENTRY = 8 << 20
"""The characters that one entry may have; a larger one is reported and left out."""

_SPACE = " \t\r\n"
_BETWEEN = _SPACE + ","
_STRUCTURE = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"', re.DOTALL)
_FIRST_KEY = re.compile(r'\{\s*("(?:[^"\\]|\\.)*")')
_LONGEST_NUMBER = 400


class JsonEntry(NamedTuple):
    """One entry.

    Args:
        number: its place, from 0.
        end: the byte behind it; a later call can begin there.
        key: its key in an object, or "".
        value: its value, or `None`.
        problem: what is wrong with it, or "".
        start: the byte where it begins.
    """

    number: int
    end: int
    key: str
    value: Any
    problem: str = ""
    start: int = 0


def stream_entries(path: str | os.PathLike[str], offset: int = 0, number: int = 0) -> Iterator[JsonEntry]:
    """Give the entries of a file whose outermost value is a list or an object.

    Only about a chunk of the file is in memory at a time. An entry that is no JSON is given as a
    problem, and reading goes on behind it.

    Args:
        path: the file, in UTF-8.
        offset: the `end` of the last entry that was read before; 0 begins at the beginning.
        number: the number of the first entry given.

    Raises:
        ImportProblem: the file cannot be read, or is neither a list nor an object.
    """
    try:
        with open(path, "rb") as file:
            yield from _Reader(Path(path), file).entries(offset, number)
    except OSError as error:
        raise ImportProblem(f"`{path}` cannot be read: {error.strerror or error}") from error


class _Reader:
    """A window on the file: `text` holds what has been read; the byte `base` is where its place `at` is."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        self.decode = json.JSONDecoder().raw_decode
        self.bytes = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text, self.at, self.base = "", 0, 0
        self.is_over = False
        self.mark: re.Pattern[str] | None = None

    def more(self) -> bool:
        """Read on; tell whether there was anything."""
        if self.is_over:
            return False
        data = self.file.read(CHUNK)
        self.is_over = not data
        self.text += self.bytes.decode(data, final=self.is_over)
        return not self.is_over

    def consume(self, upto: int) -> None:
        """Go to a place, and forget what lies before it from time to time."""
        self.base += len(self.text[self.at : upto].encode("utf-8", "surrogateescape"))
        self.at = upto
        if upto > CHUNK:  # seldom, since it copies the window
            self.text, self.at = self.text[upto:], 0

    def after(self, at: int, between: str) -> int:
        """Give the next place from `at` on whose sign is not one of `between`; the end if there is none."""
        while True:
            while at < len(self.text) and self.text[at] in between:
                at += 1
            if at < len(self.text) or not self.more():
                return at

    def value(self, at: int) -> tuple[Any, int, str]:
        """Give the value that begins at `at`, where it ends, and what is wrong with it."""
        while True:
            try:
                value, end = self.decode(self.text, at)
                if end + _LONGEST_NUMBER <= len(self.text) or not self.more():  # a number may go on
                    return value, end, ""
            except (ValueError, RecursionError) as error:
                if len(self.text) - at > MAX_ENTRY or not self.more():
                    return None, self.behind(at), f"{type(error).__name__}: {str(error)[:120]}"

    def behind(self, at: int) -> int:
        """Find where a damaged value ends.

        Entries of one file begin alike, so that the next one that begins as the good ones did is the
        place to go on; without such a mark it is the value's closing bracket, else the end.
        """
        if self.mark is not None:
            while True:
                found = self.mark.search(self.text, at + 1)
                if found:
                    return found.start(1)
                if len(self.text) - at > MAX_ENTRY or not self.more():
                    break
        if self.text[at] not in "{[":
            comma = self.text.find(",", at)
            return comma if comma >= 0 else len(self.text)
        depth = 0
        for found in _STRUCTURE.finditer(self.text, at):
            if found[0] in "{[":
                depth += 1
            elif found[0] in "}]":
                depth -= 1
                if depth <= 0:
                    return found.end()
        return len(self.text)

    def learn(self, start: str, value: object, *, is_keyed: bool) -> None:
        """Remember how a good entry begins, from its text."""
        first = _FIRST_KEY.match(start)
        if self.mark is None and isinstance(value, dict) and first:
            key = re.escape(first[1])
            entry = rf"\{{\s*{key}\s*:"
            self.mark = re.compile(rf',\s*("[^"\\]*"\s*:\s*{entry})' if is_keyed else rf",\s*({entry})")

    def entries(self, offset: int, number: int) -> Iterator[JsonEntry]:
        if self.file.read(3) != b"\xef\xbb\xbf":
            self.file.seek(0)
        else:
            self.base = 3
        self.consume(self.after(0, _SPACE))
        opening = self.text[self.at : self.at + 1]
        if opening not in ("[", "{"):
            raise ImportProblem(f"`{self.path}` should hold a JSON list or object. Its first sign is {opening!r}")
        self.consume(self.at + 1)
        if offset:
            self.file.seek(offset)
            self.bytes.reset()
            self.text, self.at, self.base, self.is_over = "", 0, offset, False
        is_keyed = opening == "{"
        while True:
            self.consume(self.after(self.at, _BETWEEN))
            sign = self.text[self.at : self.at + 1]
            if sign == ("}" if is_keyed else "]"):
                return
            if not sign:
                yield JsonEntry(number, self.base, "", None, "the file ends too early", self.base)
                return
            start = self.base
            key, value, end, problem = self.entry(self.at, is_keyed=is_keyed)
            self.consume(max(end, self.at + 1))
            yield JsonEntry(number, self.base, key, value, problem, start)
            number += 1

    def entry(self, at: int, *, is_keyed: bool) -> tuple[str, Any, int, str]:
        """Give key and value of the entry that begins at `at`, where it ends, and what is wrong with it."""
        key = ""
        if is_keyed:
            name, end, problem = self.value(at)
            if problem:
                return "", None, end, problem
            colon = self.after(end, _SPACE)
            if not isinstance(name, str) or self.text[colon : colon + 1] != ":":
                return "", None, self.behind(at), "an entry should begin with a key and a colon"
            key, at = name, self.after(colon + 1, _SPACE)
        value, end, problem = self.value(at)
        if not problem:
            self.learn(self.text[at : at + 200], value, is_keyed=is_keyed)
        return key, value, end, problem
