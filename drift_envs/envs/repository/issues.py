"""Issues in words, drawn from the project as it is, and the right change of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.envs.repository.project import (
    GUARDS,
    NAMES,
    SUFFIX_OF_NAMES,
    ChargeRule,
    Project,
    draw_rule,
)

KINDS = ("add", "change", "mend", "rename", "option", "move")
ISSUES_OF_A_PROJECT = 60
WORDINGS = 3
"""How many wordings each kind has; one more is held out."""

LOG = "HISTORY.md"
"""The file that only the maintainers write, when they merge."""

_STREAM = 0x4E92

_TITLES = {
    "add": "Add the {words}",
    "change": "Change the terms of the {words}",
    "mend": "Mend the {words}",
    "rename": "Call the {old_words} {words}",
    "option": "Let the settings cap the {words}",
    "move": "Move the {words} to {area}",
}

_TEXTS: dict[str, tuple[str, ...]] = {
    "add": (
        "Add a rule `{name}` to {area}: {terms}. A negative amount is refused.",
        "We need `{name}` in {area}. It charges {terms}, and refuses a negative amount.",
        "In {area} a rule is missing: `{name}`, which is {terms}. It should refuse negative amounts.",
        "Please write `{name}` for {area}; the price is {terms}, and amounts below zero are refused.",
    ),
    "change": (
        "`{name}` should be {terms} from now on.",
        "New terms for `{name}`: {terms}.",
        "Please change `{name}`: it is {terms}.",
        "The price list says {terms} for `{name}`; the code should follow.",
    ),
    "mend": (
        "`{name}` has a bug. {guard}",
        "A user reports a bug in `{name}`. This should hold: {guard}",
        "Please mend `{name}`, which does not do this yet: {guard}",
        "What should hold for `{name}`, and does not: {guard}",
    ),
    "rename": (
        "Rename `{old}` to `{name}`; the old name should be gone.",
        "`{old}` has a misleading name. Call it `{name}`, without leaving the old name behind.",
        "The rule `{old}` is now called `{name}`. Nothing should have the old name.",
        "Everybody says `{name}` for what the code calls `{old}`: please rename it, and drop the old name.",
    ),
    "option": (
        "`{name}` should have a highest charge, the setting `{name}_cap`, at first {cap}.",
        "Add an option: the setting `{name}_cap` ({cap} for now) is the most that `{name}` charges.",
        "Let `{name}` charge at most what the setting `{name}_cap` says; set it to {cap}.",
        "Customers complain about `{name}`. Cap it by a setting `{name}_cap`, which starts at {cap}.",
    ),
    "move": (
        "Move `{name}` from {old_area} to {area}; nothing should remain in {old_area}.",
        "`{name}` belongs to {area}, not to {old_area}. Please move the file.",
        "The file of `{name}` should stand in {area} and no longer in {old_area}.",
        "{old_area} does not deal with `{name}` any more; {area} does. Move its file there.",
    ),
}


class Issue(NamedTuple):
    """An issue.

    Args:
        number: which of the project's issues it is, at most `ISSUES_OF_A_PROJECT`.
        id: its number in the log, as in `#12`, which names its changelog fragment.
        kind: one of `KINDS`.
        text: the issue in words.
        title: of the change.
        before: the rule that it is about, as it is; `None` for a new one.
        rule: the rule as it should be.
    """

    number: int
    id: int
    kind: str
    text: str
    title: str
    before: ChargeRule | None
    rule: ChargeRule


def kind_of(number: int) -> str:
    """The kind of an issue, by its number."""
    return KINDS[number % len(KINDS)]


def draw_issue(project: Project, number: int, held_out: bool = False) -> Issue:
    """The issue of a number in the project as it is.

    Equal numbers give the same kind, and rules and terms that depend on what was merged before.

    Args:
        project: the project.
        number: of the issue, 0 to `ISSUES_OF_A_PROJECT` - 1.
        held_out: whether the wording is the one that is held out.

    Example:
        >>> from drift_envs.envs.repository.conventions import Conventions
        >>> from drift_envs.envs.repository.project import start_project
        >>> draw_issue(start_project(7, Conventions()), 3).text
        'Rename `scanning_fee` to `repair_charge`; the old name should be gone.'
    """
    rng = np.random.default_rng([_STREAM, project.number, number, project.next_number])
    kind = kind_of(number)
    able = [rule for rule in project.rules if _can(rule, kind)]
    if not able:
        kind, able = "change", list(project.rules)
    before = None if kind == "add" else able[int(rng.integers(len(able)))]
    rule = replace(_draw_rule_after(project, kind, before, rng), style=project.conventions.style)
    wording = WORDINGS if held_out else (number // len(KINDS) + project.next_number) % WORDINGS
    words = {"name": rule.name, "words": rule.words, "area": rule.area, "terms": rule.terms, "cap": rule.cap}
    if before is not None:
        words |= {"old": before.name, "old_words": before.words, "old_area": before.area}
        words["guard"] = "".join(GUARDS[one] for one in rule.guards if one not in before.guards)
    text = _TEXTS[kind][wording].format(**words)
    title = _TITLES[kind].format(**words)
    return Issue(number, project.next_number, kind, text[0].upper() + text[1:], title, before, rule)


def _can(rule: ChargeRule, kind: str) -> bool:
    """Whether there is still something to do of this kind."""
    return {"mend": len(rule.guards) < len(GUARDS), "option": rule.cap is None}.get(kind, True)


def _draw_rule_after(project: Project, kind: str, before: ChargeRule | None, rng: np.random.Generator) -> ChargeRule:
    """The rule after a change."""
    if before is None:
        return draw_rule(_draw_name(project, rng), project.areas[int(rng.integers(len(project.areas)))], rng)
    if kind == "mend":
        missing = [guard for guard in GUARDS if guard not in before.guards]
        guards = (*before.guards, missing[int(rng.integers(len(missing)))])
        return replace(before, guards=tuple(guard for guard in GUARDS if guard in guards))
    if kind == "rename":
        return replace(before, name=_draw_name(project, rng))
    if kind == "option":
        return replace(before, cap=Decimal(10 * int(rng.integers(5, 40))))
    if kind == "move":
        areas = [area for area in project.areas if area != before.area]
        return replace(before, area=areas[int(rng.integers(len(areas)))])
    while True:
        drawn = draw_rule(before.name, before.area, rng)
        if min(abs(drawn.percent - before.percent), abs(drawn.daily - before.daily)) and drawn.free != before.free:
            return replace(before, percent=drawn.percent, daily=drawn.daily, free=drawn.free)


def _draw_name(project: Project, rng: np.random.Generator) -> str:
    """The name of a rule that the project does not have and did not have lately."""
    taken = " ".join(one.title for one in project.log[-8:])
    taken += " " + " ".join(rule.words for rule in project.rules)
    free = [name for name in NAMES if f" {name} " not in f" {taken} "]  # at most 23 names are taken
    name = free[int(rng.integers(len(free)))]
    return f"{name}_{SUFFIX_OF_NAMES[int(rng.integers(len(SUFFIX_OF_NAMES)))]}"


def merge_issue(project: Project, issue: Issue) -> Project:
    """The project after the right change.

    Args:
        project: the project.
        issue: the issue.
    """
    return project.merge(issue.before.name if issue.before else None, issue.rule, issue.title)


def right_change(project: Project, issue: Issue) -> dict[str, str | None]:
    """What the right change writes: text by path, `None` for a file that it deletes.

    Args:
        project: the project.
        issue: the issue.
    """
    return dict(_list_right_changes(project, issue))


@lru_cache(maxsize=4096)
def _list_right_changes(project: Project, issue: Issue) -> tuple[tuple[str, str | None], ...]:
    changes = list_changes(project.files(), merge_issue(project, issue).files())
    return tuple(one for one in changes if one[0] != LOG)  # the maintainers write the log when they merge


def list_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The paths that differ between two states of a project, with the later text, `None` for a file that is gone.

    Args:
        before: all files of the former state.
        after: all files of the latter one.
    """
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            yield path, after.get(path)


def apply_change(files: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    """The files after a change.

    Args:
        files: all files before it.
        change: text by path, `None` for a file that it deletes.
    """
    return {path: text for path, text in {**files, **change}.items() if text is not None}
