"""Entries of a JSON file that may be larger than memory and may be damaged, one at a time."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from webshop_server.errors import ImportProblem

CHUNK = 1 << 20

MAX_ENTRY = 1 << 28
"""The maximum length of an entry, in characters; a longer one is reported and skipped."""

_SEARCHED = 8 << 20
"""The end of an invalid entry is searched in so many characters."""

_LONGEST_TOKEN = 16
"""The maximum length of what a decoder needs to see whole besides texts: names such as `-Infinity`, escapes."""

_SPACE = " \t\r\n"
_BETWEEN = _SPACE + ","
_STRUCTURE = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"', re.DOTALL)
_FIRST_KEY = re.compile(r'\{\s*("(?:[^"\\]|\\.)*")')
_LONGEST_NUMBER = 400


class JsonEntry(NamedTuple):
    """One entry.

    Args:
        number: its index, from 0.
        end: the offset after it, in bytes; a later call can start there.
        key: its key in an object, or "".
        value: its value, or `None`.
        problem: why it is invalid, or "".
        start: its offset, in bytes.
        is_cut: whether the outermost list or object is not closed, or closed before the file's end.
    """

    number: int
    end: int
    key: str
    value: object
    problem: str = ""
    start: int = 0
    is_cut: bool = False


def stream_entries(path: str | os.PathLike[str], offset: int = 0, number: int = 0) -> Iterator[JsonEntry]:
    """Iterate over the entries of a file whose outermost value is a list or an object.

    About one chunk of the file is in memory at a time. An invalid entry is yielded with a `problem`, and
    reading continues after it. The last entry of a truncated file is `is_cut`.

    Args:
        path: the file, in UTF-8.
        offset: the `end` of the last entry that was read before; 0 is the start of the file.
        number: the number of the first entry.

    Raises:
        ImportProblem: the file cannot be read, or is neither a list nor an object.
    """
    try:
        with open(path, "rb") as file:
            yield from _Reader(Path(path), file).entries(offset, number)
    except OSError as error:
        raise ImportProblem(f"`{path}` cannot be read: {error.strerror or error}") from error


class _Reader:
    """A window on the file: `text` holds the decoded part; index `at` in it is byte `base` of the file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.decode = json.JSONDecoder().raw_decode
        self.bytes = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text, self.at, self.base = "", 0, 0
        self.is_over = False
        self.mark: re.Pattern[str] | None = None

    def more(self, size: int = 0) -> bool:
        """Read the next chunk, or more bytes; return whether there were any."""
        if self.is_over:
            return False
        data = self.file.read(max(size, CHUNK))
        self.is_over = not data
        self.text += self.bytes.decode(data, final=self.is_over)
        return not self.is_over

    def consume(self, upto: int) -> None:
        """Move to an index, and drop the text before it from time to time."""
        self.base += len(self.text[self.at : upto].encode("utf-8", "surrogateescape"))
        self.at = upto
        if upto > CHUNK:  # rarely, since it copies the window
            self.text, self.at = self.text[upto:], 0

    def after(self, at: int, between: str) -> int:
        """Return the next index from `at` on whose character is not in `between`, or the end."""
        while True:
            while at < len(self.text) and self.text[at] in between:
                at += 1
            if at < len(self.text) or not self.more():
                return at

    def value(self, at: int) -> tuple[object, int, str]:
        """Return the value that starts at `at`, its end, and the problem with it."""
        while True:
            try:
                value, end = self.decode(self.text, at)
                if end + _LONGEST_NUMBER <= len(self.text) or not self.more():  # a number may continue
                    return value, end, ""
            except (ValueError, RecursionError) as error:
                # As much again each time, so that the work is linear in the length of the entry.
                length = len(self.text) - at
                if not self.is_cut(error) or length > MAX_ENTRY or not self.more(length):
                    return None, self.behind(at), f"{type(error).__name__}: {str(error)[:120]}"

    def is_cut(self, error: Exception) -> bool:
        """Whether more text could mend an error, since it stands at the end of the window."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos + _LONGEST_TOKEN >= len(self.text)

    def behind(self, at: int) -> int:
        """Find the end of an invalid value.

        Entries of one file start with the same key: the next start like that of valid entries is the end.
        Without one it is the value's closing bracket, else the end of the text.
        """
        if self.mark is not None:
            while True:
                found = self.mark.search(self.text, at + 1)
                if found:
                    return found.start(1)
                if len(self.text) - at > _SEARCHED or not self.more():
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
        """Store the start of a valid entry as a pattern."""
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
            raise ImportProblem(f"`{self.path}` should hold a JSON list or object. Its first character is {opening!r}")
        self.consume(self.at + 1)
        if offset:
            self.file.seek(offset)
            self.bytes.reset()
            self.text, self.at, self.base, self.is_over = "", 0, offset, False
        is_keyed = opening == "{"
        while True:
            self.consume(self.after(self.at, _BETWEEN))
            char = self.text[self.at : self.at + 1]
            if char == ("}" if is_keyed else "]"):
                self.consume(self.after(self.at + 1, _SPACE))
                if self.at < len(self.text):
                    problem = "text follows the end of the outermost list or object"
                    if is_keyed and self.text[self.at] == "{":
                        problem = "an object follows another one; JSON lines should be the elements of one list"
                    yield JsonEntry(number, self.base, "", None, problem, self.base, is_cut=True)
                return
            if not char:
                yield JsonEntry(number, self.base, "", None, "the file ends too early", self.base, is_cut=True)
                return
            start = self.base
            key, value, end, problem = self.entry(self.at, is_keyed=is_keyed)
            self.consume(max(end, self.at + 1))
            yield JsonEntry(number, self.base, key, value, problem, start)
            number += 1

    def entry(self, at: int, *, is_keyed: bool) -> tuple[str, object, int, str]:
        """Return key and value of the entry that starts at `at`, its end, and the problem with it."""
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
