"""Variants: schedules that differ from another one by a few keys, written into its file and named by a suffix.

A file declares its variants under the key `variants`; `frozen_lake/explicit:family` is the variant `family` of
`frozen_lake/explicit`. The keys of a variant replace the same keys of the file as a whole.

* `split_suffix` - a name or path into that of the file and the suffix
* `is_suffix` - whether a text can be a suffix
* `choose_variant` - the content of a file, or of one of its variants
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from drift_envs.errors import Problem
from drift_envs.schedule.findings import Finding, key_path, show
from drift_envs.schedule.yaml12 import Document, Mark

FILE_ENDINGS = (".yaml", ".yml")
"""What the name of a schedule file ends with; a text that ends otherwise is a shipped name."""

SHIPPED = re.compile(r"[a-z0-9_]+/[a-z0-9_-]+\Z")
"""The form of a shipped name without its suffix."""

SECTION = "variants"
SUFFIX_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
"""The form of a suffix, as JSON Schema has it."""

FIXED_KEYS = ("version", "name", "extends", SECTION)
"""The keys that a variant cannot replace."""

_SUFFIX = re.compile(SUFFIX_PATTERN.rstrip("$") + r"\Z")


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
    if colon and not text.endswith(FILE_ENDINGS) and (name.endswith(FILE_ENDINGS) or SHIPPED.match(name)):
        return name, suffix
    return text, None


def is_suffix(value: Any) -> bool:
    """Whether a value can be a suffix: small letters and digits, in words joined by `-`."""
    return isinstance(value, str) and _SUFFIX.match(value) is not None


def choose_variant(document: Document, suffix: str | None) -> Document:
    """The content of a file without its section `variants`, or of one of its variants.

    Args:
        document: the content, with what it extends filled in.
        suffix: the variant; `None` for the file itself.

    Returns:
        The content, with what is wrong with the section among its problems. The name of a variant is that of the file
        with the suffix.

    Raises:
        KeyError: if there is no such variant; with the suffixes that there are.

    Example:
        >>> data = {"name": "mine", "base": {"slip": 0.1}, "variants": {"icy": {"base": {"slip": 0.3}}}}
        >>> choose_variant(Document(data, Mark("mine.yaml", None)), "icy").data
        {'name': 'mine:icy', 'base': {'slip': 0.3}}
    """
    data, mark = document.data, document.mark
    if not isinstance(data, Mapping) or SECTION not in data:
        if suffix is not None:
            raise KeyError(suffix)
        return document
    section = data[SECTION]
    rest = {key: value for key, value in data.items() if key != SECTION}
    problems = document.problems + [_problem(mark, path, rule) for path, rule in _findings(section)]
    document = replace(document, data=rest, problems=problems)
    if suffix is None:
        return document
    if not isinstance(section, Mapping) or suffix not in section:
        raise KeyError(suffix, *(section if isinstance(section, Mapping) else ()))
    own = section[suffix]
    if not isinstance(own, Mapping):
        return document  # which is among its problems
    own = {key: value for key, value in own.items() if key not in FIXED_KEYS}
    named = {"name": f"{rest['name']}:{suffix}"} if isinstance(rest.get("name"), str) else {}
    marks = {**mark.inside, **mark.find([SECTION, suffix]).inside}
    return replace(
        document,
        data={**rest, **named, **own},
        mark=Mark(mark.where, mark.line, marks),
        prefixes=dict.fromkeys(own, (SECTION, suffix)),
    )


def _findings(section: Any) -> Iterator[Finding]:
    """What is wrong with the section itself; the keys of a variant are checked when it is loaded."""
    if not isinstance(section, Mapping):
        yield (SECTION,), f"should be a mapping of suffixes to replaced keys. Received {show(section)}"
        return
    for suffix, own in section.items():
        if not is_suffix(suffix):
            rule = "should consist of small letters and digits, in words joined by `-`"
            yield (SECTION,), f"a suffix {rule}. Received {show(suffix)}"
        elif not isinstance(own, Mapping):
            yield (SECTION, suffix), f"should be a mapping of replaced keys. Received {show(own)}"
        else:
            for key in own:
                if key in FIXED_KEYS:
                    yield (SECTION, suffix, key), f"a variant cannot replace `{key}`, which is that of its file"


def _problem(mark: Mark, path: tuple[str | int, ...], rule: str) -> Problem:
    place = mark.find(path)
    return Problem(place.where, place.line, key_path(path), rule)
