"""The conventions of a project: knobs, the invented words that stand for their values, and what a text says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.tasks.invented_words import make_word, read_words

MOST_PROJECTS = 1_000_000
MOST_LAG = 30
"""Documents lag at most so many episodes behind."""

LAST_VERSION = 15
"""The largest number of a value of an explicit convention."""

EXPLICIT = {
    "helper": "which function enters results; each value has another name and another module",
    "layout": "the folder of the package",
    "fragment": "the folder and the suffix of changelog fragments",
    "register": "the file in which functions are registered",
    "check_command": "the command of the checks, which a fragment has to name",
    "setting": "the section of the settings that rules read",
}
"""Conventions that a look at the present files shows."""

ROUNDINGS = ("ROUND_HALF_UP", "ROUND_HALF_EVEN", "ROUND_HALF_DOWN", "ROUND_DOWN", "ROUND_UP")
ERRORS = 5
"""How many exceptions a project has, of which one is accepted."""

IMPLICIT = {
    "rounding": (len(ROUNDINGS), "which of the project's functions rounds"),
    "error": (ERRORS, "which of the project's exceptions refuses a value"),
    "unit": (2, "whether results are units or cents"),
    "order": (2, "whether the amount comes before the days"),
}
"""Conventions that stand in no document: the number of their values, and what they are."""

NAMED = (*EXPLICIT, "rounding", "error")
"""The conventions whose values have invented words."""

HELPER_MODULES = ("journal", "records", "books")
"""The module of the helper, in turn."""
SUFFIXES = ("md", "rst", "txt")
"""The suffix of fragments, in turn."""

_STREAM = 0x4E90
_WORDS = 64
"""The distance between the first words of two conventions."""

REPOSITORY_KNOBS = KnobTable(
    (
        Knob("project", 0, (0, MOST_PROJECTS), "number of the project; 0 draws one from the seed", "integer"),
        *(Knob(name, 0, (0, LAST_VERSION), doc, "integer") for name, doc in EXPLICIT.items()),
        *(Knob(name, 0, (0, count - 1), doc, "integer") for name, (count, doc) in IMPLICIT.items()),
        Knob("old_helper", "gone", ("gone", "kept"), "whether the helper before the present one still works", "string"),
        Knob("docs_lag", 0, (0, MOST_LAG), "episodes by which the documents lag behind the code", "integer"),
        Knob(
            "flaky",
            0.0,
            (0.0, 1.0),
            "probability that continuous integration refuses what is right, as if another convention were in force",
        ),
        Knob("rerun_price", 0.0, (0.0, 1 / 3), "what an unchanged submission costs; a changed one costs 1/3"),
    )
)


class Style(NamedTuple):
    """The implicit conventions with which code was written."""

    rounding: int = 0
    error: int = 0
    unit: int = 0
    order: int = 0


DEFAULT_STYLE = Style()


@dataclass(frozen=True)
class Conventions:
    """The value of each convention, by its number; which word it has depends on the project.

    Example:
        >>> now = Conventions(helper=1)
        >>> now.word(7, "helper"), Conventions().word(7, "helper"), now.style
        ('fitunu', 'fegege', Style(rounding=0, error=0, unit=0, order=0))
    """

    helper: int = 0
    layout: int = 0
    fragment: int = 0
    register: int = 0
    check_command: int = 0
    setting: int = 0
    rounding: int = 0
    error: int = 0
    unit: int = 0
    order: int = 0
    old_helper: str = "gone"

    @classmethod
    def of(cls, knobs: Mapping[str, Value]) -> Conventions:
        """The conventions under knob values; those that are left out are at their defaults.

        Args:
            knobs: the values.
        """
        return cls(**{one.name: knobs[one.name] for one in fields(cls) if one.name in knobs})

    @property
    def style(self) -> Style:
        """The implicit ones."""
        return Style(self.rounding, self.error, self.unit, self.order)

    def word(self, project: int, name: str) -> str:
        """The word of a convention's present value.

        Args:
            project: the number of the project.
            name: one of `NAMED`.
        """
        return find_word(project, name, getattr(self, name))


@lru_cache(maxsize=4096)
def find_word(project: int, name: str, version: int) -> str:
    """The word of a value of a convention.

    Args:
        project: the number of the project.
        name: the convention, one of `NAMED`.
        version: the number of the value.
    """
    return make_word(project, NAMED.index(name) * _WORDS + version)


@lru_cache(maxsize=256)
def list_words(project: int) -> Mapping[str, tuple[str, int]]:
    """All words of a project: the convention and the number of the value that each stands for.

    Args:
        project: the number of the project.
    """
    return {
        find_word(project, name, version): (name, version)
        for name in NAMED
        for version in range(LAST_VERSION + 1 if name in EXPLICIT else IMPLICIT[name][0])
    }


@lru_cache(maxsize=256)
def permute(project: int) -> tuple[tuple[int, ...], bool, bool]:
    """What the implicit values mean in a project: the places in `ROUNDINGS`, cents first, days first.

    Args:
        project: the number of the project.
    """
    rng = np.random.default_rng([_STREAM, 0, project])
    return tuple(int(one) for one in rng.permutation(len(ROUNDINGS))), bool(rng.integers(2)), bool(rng.integers(2))


class Statement(NamedTuple):
    """What a statement of a text says about a convention.

    Args:
        line: the number of the statement, from 0.
        convention: one of `NAMED`.
        kind: `present`, `former`, `mixed` (the present value beside another one), or `never` for a value that was
            not in force so far.
    """

    line: int
    convention: str
    kind: str


def read_statements(text: str, project: int, history: tuple[Conventions, ...]) -> Iterator[Statement]:
    r"""What a text, such as what an agent has kept, says about the conventions, by `drift_envs.metrics`.

    Args:
        text: the text.
        project: the number of the project.
        history: the conventions that were in force, the present ones last.

    Example:
        >>> text = "Use `fegege`.\nNot `fegege` any more but `fitunu`."
        >>> [one.kind for one in read_statements(text, 7, (Conventions(), Conventions(helper=1)))]
        ['former', 'mixed']
    """
    # The metrics take longer to import than all of the environment, which does without them.
    from drift_envs.metrics.statements import classify_statement, split_statements

    words = list_words(project)
    for number, statement in enumerate(split_statements(text)):
        named = dict.fromkeys(words[word][0] for word in read_words(statement) if word in words)
        for name in named:
            present, before = getattr(history[-1], name), {getattr(one, name) for one in history}
            values: dict[str, list[str]] = {"present": [], "stale": [], "never": []}
            for word, (convention, version) in words.items():
                if convention == name:
                    kind = "present" if version == present else "stale" if version in before else "never"
                    values[kind].append(word)
            said = classify_statement(statement, **values)
            if said is not None:
                yield Statement(number, name, "former" if said == "stale" else said)
