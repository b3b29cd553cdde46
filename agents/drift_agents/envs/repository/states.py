"""States of a repository: what files say of its conventions, when two states are the same, and words."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.matching import ParsedMatching
from drift_agents.policy.ranked import PlainFacts
from drift_agents.types import Transition

Says = dict[str, str]
"""By convention, its value in words."""

DOCUMENT, HISTORY = "CONTRIBUTING.md", "HISTORY.md"
EXPLICIT = ("helper", "layout", "fragment", "register", "check_command", "setting")
"""Conventions that documents and files show."""
IMPLICIT = ("rounding", "error", "unit", "order")
"""Conventions that only the practice of merged code shows."""

_DOCUMENTED = {
    "layout": r"package stands in `(\w+)/",
    "register": r"register in `\S*?(\w+)\.txt`",
    "helper": r"result with `(\w+)`",
    "setting": r"section `(\w+)` of",
    "fragment": r"`(\w+/)<issue>(\.\w+)`",
    "check_command": r"Run `python (\w+)\.py`",
}
_LISTED = {
    "layout": r"^(\w+)/\w+/__init__\.py$",
    "register": r"^\w+/\w+/(\w+)\.txt$",
    "fragment": r"^(\w+/)\d+(\.\w+)$",
    "check_command": r"^(\w+)\.py$",
}
_CODED = {
    "helper": r"^from \w+\.(?!errors|rounding|settings)\w+ import (\w+)$",
    "setting": r'section\("(\w+)"\)',
    "rounding": r"\.rounding import (\w+)$",
    "error": r"\.errors import (\w+)$",
    "order": r"^def \w+\((\w+), ",
}
_RULE = re.compile(r"(\w+)/\w+/\w+/\w+\.py")


def _search(patterns: Mapping[str, str], text: str) -> Says:
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: "*".join(one.groups()) for name, one in found.items() if one is not None}


@lru_cache(maxsize=8192)
def _read_text(path: str, text: str) -> tuple[str, Says]:
    if path == DOCUMENT:
        return "document", _search(_DOCUMENTED, text)
    is_rule = _RULE.fullmatch(path)
    if is_rule is not None and "\ndef " in text:
        unit = "cents" if "* 100)" in text else "units"
        return "rule", {"layout": is_rule[1], "unit": unit, **_search(_CODED, text)}
    if path == "settings.json":
        return "settings", _search({"setting": r'^  "(\w+)": \{'}, text)
    if "Checked: " in text:
        return "fragment", _search({"fragment": _LISTED["fragment"]}, path) | _search(
            {"check_command": r"^Checked: python (\w+)\.py$"}, text
        )
    listed = _search({"register": _LISTED["register"]}, path)
    return ("register", listed | {"layout": path.partition("/")[0]}) if listed else ("", {})


def read_text(path: str, text: str | None) -> tuple[str, Says]:
    r"""The role of a file in a change, and what it says of conventions.

    Args:
        path: its path.
        text: its content; `None` for a file that is deleted.

    Returns:
        `document`, `rule`, `settings`, `fragment`, `register`, `deleted`, or an empty text for any other file; and the
        value of each convention that it shows.

    Example:
        >>> read_text("domika/6.md", "Mend the repair fee.\n\nChecked: python daroku.py\n")
        ('fragment', {'fragment': 'domika/*.md', 'check_command': 'daroku'})
    """
    return ("deleted", {}) if text is None else _read_text(path, text)


def _read_answer(answer: Mapping[str, Any], written: Mapping[str, str | None]) -> Says:
    """What an answer says of conventions: a file that was read, or all paths; without what was written."""
    if "files" in answer:
        return _search(_LISTED, "\n".join(str(path) for path in answer["files"] if path not in written))
    path = str(answer.get("path", ""))
    return {} if path in written else read_text(path, str(answer.get("text", "")))[1]


_KINDS = {
    "option": r"_cap`",
    "rename": r"`(\w+)`.*`(?!\1)\w+`",
    "add": r"% of the amount.*(?:refuse|below zero)",
    "change": r"% of the amount",
    "mend": r"\b(?:bug|mend|should hold)\b",
}
"""By kind of issue, a pattern of its words; the first that is found decides, and an issue without any moves a file."""


@lru_cache(maxsize=1024)
def read_kind(issue: str) -> str:
    """The kind of an issue in words.

    Example:
        >>> read_kind("Rename `scanning_fee` to `repair_charge`; the old name should be gone.")
        'rename'
    """
    return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, issue, re.DOTALL)), "move")


class ShownRepository(NamedTuple):
    """A state, parsed from its JSON text.

    Args:
        project: the number of the project.
        number: that of the issue.
        issue: the issue in words.
        written: text by path, `None` for a file that was deleted.
        submitted: the same at the last submission, `None` before the first one.
        log: of continuous integration.
        answer: the last answer.
        says: what the written files say of conventions.
        roles: what was written.
        shows: what the answer says of conventions, beside the written files.
    """

    project: int
    number: int
    issue: str
    written: Mapping[str, str | None]
    submitted: Mapping[str, str | None] | None
    log: str
    answer: Mapping[str, Any]
    says: Says
    roles: tuple[str, ...]
    shows: Says


def read_change(files: Mapping[str, str | None]) -> tuple[Says, tuple[str, ...]]:
    """What the files of a change say of conventions, where they do not contradict each other; and their roles.

    Args:
        files: text by path.
    """
    read = [read_text(path, text) for path, text in files.items()]
    said: dict[str, set[str]] = {}
    for name, value in (pair for _, says in read for pair in says.items()):
        said.setdefault(name, set()).add(value)
    says = {name: next(iter(values)) for name, values in said.items() if len(values) == 1}
    return says, tuple(sorted({role for role, _ in read}))


@lru_cache(maxsize=4096)
def read_repository_state(state: str) -> ShownRepository | None:
    """Parse a state; `None` if the text is no state of this environment.

    Args:
        state: the text state.

    Example:
        >>> text = '{"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": {"settings.json": "{}"}, '
        >>> text += '"submitted": null, "log": "", "answer": {"files": ["daroku.py", "domika/5.md"]}}'
        >>> shown = read_repository_state(text)
        >>> shown.roles, shown.shows
        (('settings',), {'fragment': 'domika/*.md', 'check_command': 'daroku'})
    """
    try:
        shown = json.loads(state)
        written, submitted = dict(shown["written"]), shown["submitted"]
        submitted = None if submitted is None else dict(submitted)
        project, number, answer = int(shown["project"]), int(shown["number"]), dict(shown["answer"])
        issue, log = str(shown["issue"]), str(shown["log"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    says, roles = read_change(written)
    shows = _read_answer(answer, written)
    return ShownRepository(project, number, issue, written, submitted, log, answer, says, roles, shows)


NEEDS = {
    "add": {"register"},
    "rename": {"register", "deleted"},
    "move": {"register", "deleted"},
    "option": {"settings"},
}
"""By kind of issue, what has to be written beside the rule and the fragment."""


class RepositoryMatching(ParsedMatching[ShownRepository]):
    """The conventions by which files were written, and what the kind of the issue still needs.

    Wording, names and numbers do not count; before anything was written the issue does not count at all.

    Submissions have the same outcome if both were accepted or both refused; reads, if they say the same of conventions.
    What a submission scores depends on those before, so that scores are not compared.

    Texts that are no states of this environment are compared as they are.

    Example:
        >>> rule = RepositoryMatching()
        >>> one = '{"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": {}, "submitted": null, '
        >>> one += '"log": "", "answer": {}}'
        >>> rule.state_key(one) == rule.state_key(one.replace("6", "9").replace("mend `a", "move `b"))
        True
    """

    name = "repository"
    parse = staticmethod(read_repository_state)

    def key(self, shown: ShownRepository) -> Hashable:
        """Project, what was written by which conventions, and what is missing."""
        if not shown.roles:
            return (shown.project,)
        missing = {"rule", "fragment", *NEEDS.get(read_kind(shown.issue), ())}.difference(shown.roles)
        return shown.project, tuple(sorted(shown.says.items())), tuple(sorted(missing))

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether both were accepted, or neither, and the answers say the same."""
        one, other = self.parse(a.outcome.state), self.parse(b.outcome.state)
        if one is None or other is None:
            return super().same_outcome(a, b)
        return (one.answer.get("accepted"), one.shows) == (other.answer.get("accepted"), other.shows)

    def is_relevant(self, here: ShownRepository, there: ShownRepository) -> bool:
        """Those in which files were read, and those in which a change was submitted."""
        return not there.roles or {"rule", "fragment"} <= set(there.roles)


class RepositoryFacts(PlainFacts):
    """The issue, what was written, and the last answer.

    Example:
        >>> state = '{"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": {"settings.json": "{}"}, '
        >>> state += '"submitted": null, "log": "", "answer": {"written": "settings.json"}}'
        >>> RepositoryFacts().describe_state(state)
        'issue #6 (mend), written: settings.json, the last answer: settings.json was written'
    """

    best_score = 1.0
    cut_states = ('{"project": ', "a state of the repository")

    def describe_state(self, state: str) -> str:
        """The number and kind of the issue, what was written, and the last answer; another text as it is."""
        shown = read_repository_state(state)
        if shown is None:
            return state
        changes = [path + (" (deleted)" if text is None else "") for path, text in shown.written.items()]
        words = ", ".join(changes) or "nothing"
        about = f"issue #{shown.number} ({read_kind(shown.issue)})"
        return f"{about}, written: {words}, the last answer: {_describe_answer(shown)}"


def _describe_answer(shown: ShownRepository) -> str:
    answer, says = shown.answer, ", ".join(f"{name} {value}" for name, value in shown.shows.items())
    if "accepted" in answer:
        return "accepted" if answer["accepted"] else f"refused, {answer.get('log', '')}"
    if "text" in answer or "files" in answer:
        return f"{answer.get('path', 'the paths of all files')} was read" + (f", with {says}" if says else "")
    done = next((word for word in ("written", "deleted") if word in answer), "")
    return f"{answer[done]} was {done}" if done else json.dumps(dict(answer)) if answer else "none"
