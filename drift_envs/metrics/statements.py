"""What a text says about something that changes: its present value, a former one, both, or one that was never true.

The values of one subject have to be words that mean nothing else, as the conventions of `DriftRepository-v0` or the
facts of `DriftFacts-v0`: they are found in any wording, without a language model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

KINDS_OF_STATEMENTS = ("present", "stale", "mixed", "never")

_MARKED = re.compile(r"\s*(?:[-*+] |\d+[.)] |#{1,6} |\|)")
"""How a list item, a heading or a row of a table begins."""
_WRAPPED = 60
"""A line of so many letters that does not end a sentence goes on in the next line."""


class StatementCounts(NamedTuple):
    """How many statements are of which kind; those that name no value are not counted.

    Args:
        present: name the present value and no other one.
        stale: name a former value and not the present one.
        mixed: name the present value and another one.
        never: name values alone that were never true.
    """

    present: int = 0
    stale: int = 0
    mixed: int = 0
    never: int = 0


def classify_statement(
    statement: str, present: Collection[str], stale: Collection[str] = (), never: Collection[str] = ()
) -> str | None:
    """What one statement says about one subject.

    Case does not count. A value is found as a whole word, and of values that contain each other the longest. A
    statement that names the present value beside another one is `mixed`, whatever stands between them: "NEW (formerly
    OLD)" and "OLD (not NEW)" cannot be told apart without a language model.

    Args:
        statement: the text.
        present: the present value in all its spellings; empty if there is none any more.
        stale: former values. One that is present again is not stale.
        never: other values, which the subject never had.

    Returns:
        `present`, `stale`, `mixed`, `never`, or `None` if it names no value.

    Example:
        >>> values = {"present": ["InvalidEntry"], "stale": ["ValueError"], "never": ["KeyError"]}
        >>> for text in ("Raise `InvalidEntry`.", "raise valueerror", "InvalidEntry, no ValueError", "no KeyErrors"):
        ...     print(classify_statement(text, **values))
        present
        stale
        mixed
        None
    """
    kinds = dict.fromkeys(map(str.casefold, never), "never")
    kinds |= dict.fromkeys(map(str.casefold, stale), "stale") | dict.fromkeys(map(str.casefold, present), "present")
    kinds.pop("", None)
    named = {kinds[value] for value in _pattern(frozenset(kinds)).findall(statement.casefold())} if kinds else set()
    if "present" in named:
        return "mixed" if len(named) > 1 else "present"
    return "stale" if "stale" in named else "never" if named else None


@lru_cache(maxsize=1024)
def _pattern(values: frozenset[str]) -> re.Pattern[str]:
    def bound(value: str) -> str:
        start, end = (r"\b" if re.match(r"\w", edge) else "" for edge in (value[0], value[-1]))
        return f"{start}{re.escape(value)}{end}"

    return re.compile("|".join(map(bound, sorted(values, key=lambda value: (-len(value), value)))))


def count_statements(
    statements: Iterable[str], present: Collection[str], stale: Collection[str] = (), never: Collection[str] = ()
) -> StatementCounts:
    r"""Count what statements say about one subject; of several subjects, call it for each.

    Args:
        statements: texts; of a document, `split_statements(document)`.
        present: as in `classify_statement`.
        stale: as in `classify_statement`.
        never: as in `classify_statement`.

    Example:
        >>> memory = "# Notes\n- helper: money.to_cents\n- helper: money.cents (from Monday)\n- be polite\n"
        >>> count_statements(split_statements(memory), ["money.cents"], ["money.to_cents"])
        StatementCounts(present=1, stale=1, mixed=0, never=0)
    """
    found = [classify_statement(statement, present, stale, never) for statement in statements]
    return StatementCounts(*(found.count(kind) for kind in KINDS_OF_STATEMENTS))


def split_statements(document: str) -> list[str]:
    r"""The statements of a document, as a memory in a file: lines, with the lines that go on with them.

    A line goes on with the one before if it is indented without being an item of a list, or if that one is wrapped: at
    least 60 letters long, and not the end of a sentence.

    Example:
        >>> split_statements("- helper: money.cents\n  (formerly to_cents)\n- error: InvalidEntry\n\nBe polite.")
        ['- helper: money.cents (formerly to_cents)', '- error: InvalidEntry', 'Be polite.']
    """
    statements: list[str] = []
    before = ""
    for line in document.splitlines():
        is_wrapped = len(before) >= _WRAPPED and not before.endswith((".", "!", "?", "|"))
        goes_on = bool(before) and (line[:1].isspace() or is_wrapped) and not _MARKED.match(line)
        before = line.rstrip()
        if before and goes_on:
            statements[-1] += f" {before.lstrip()}"
        elif before:
            statements.append(before.lstrip())
    return statements
