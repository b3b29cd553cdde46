"""The planner for repositories: what it believes of conventions, where it looks, and which edit it chooses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_agents.envs.repository.states import (
    DOCUMENT,
    EXPLICIT,
    HISTORY,
    IMPLICIT,
    Says,
    ShownRepository,
    read_change,
    read_repository_state,
    read_text,
)
from drift_agents.policy.base import ParsedPlanner, pick
from drift_agents.prompt.view import PromptView, Recollection, believe_newer

SUBMIT = '{"tool": "submit", "arguments": {}}'
LIST = '{"tool": "list_files", "arguments": {}}'

_SIGNS = {
    "fragment": r"no changelog fragment",
    "check_command": r"does not say that the checks were run",
    "error": r"which reviewers refuse",
    "order": r"is not refused",
    "helper": r"was not entered|No module|cannot import",
    "setting": r"failed: KeyError|settings",
    "register": r"is missing",
    "layout": r"is missing",
}
"""By convention, what a log says where it may have been broken."""
_FIGURES = re.compile(r"\(([^()]*)\)[^:\n]*: expected (-?[\d.]+), got (-?[\d.]+)")
_MODES = re.compile(r"def (\w+)\(.*?rounding=\"(\w+)\"", re.DOTALL)
_TERMS = re.compile(r'Decimal\("([\d.]+)"\) \+ Decimal\("([\d.]+)"\) \* max\(days - (\d+), 0\)')


class FileCall(NamedTuple):
    """A call about a file.

    Args:
        call: the call as text.
        tool: its tool.
        path: of the file.
        text: the new content, `None` if it is read or deleted.
        role: the role of a written file in a change.
        says: what the content says of conventions.
    """

    call: str
    tool: str
    path: str
    text: str | None
    role: str
    says: Says


@lru_cache(maxsize=8192)
def _read_call(call: str) -> FileCall | None:
    try:
        data = json.loads(call)
        path, text = str(data["arguments"]["path"]), data["arguments"].get("text")
        return FileCall(call, data["tool"], path, text, *read_text(path, text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def read_blame(log: str) -> tuple[str, ...]:
    """The conventions that a log of continuous integration may be about.

    Args:
        log: the log.

    Example:
        >>> read_blame("a_fee(120, 3) raised Kilepo, which reviewers refuse")
        ('error',)
        >>> read_blame("a_fee(120, 3): expected 5, got 500"), read_blame("a_fee(120, 3): expected 5.01, got 5.02")
        (('unit',), ('rounding',))
    """
    found = [name for name, sign in _SIGNS.items() if re.search(sign, log)]
    figures = [(Decimal(expected), Decimal(got)) for _, expected, got in _FIGURES.findall(log)]
    if any(got and expected / got in (100, Decimal("0.01")) for expected, got in figures):
        found = [*(name for name in found if name != "order"), "unit"]
    elif any(abs(expected - got) > 1 for expected, got in figures):
        found.append("order")
    elif figures and "order" not in found:
        found.append("rounding")
    return tuple(dict.fromkeys(found))


class ConventionEvidence(NamedTuple):
    """What a recollection shows of a convention.

    Args:
        convention: its name.
        value: a value of it.
        holds: whether the value is in force.
        issue: the number of the issue in which it was submitted; `None` where it was read.
    """

    convention: str
    value: str
    holds: bool
    issue: int | None = None


@lru_cache(maxsize=8192)
def read_evidence(item: Recollection) -> tuple[ConventionEvidence, ...]:
    """What a recollection shows of conventions: a file that was read, or a submission.

    Args:
        item: the recollection.
    """
    before, after = read_repository_state(item.state), read_repository_state(item.outcome.state)
    if before is None or after is None:
        return ()
    if item.action != SUBMIT:
        return tuple(ConventionEvidence(name, value, True) for name, value in after.shows.items())
    if after.answer.get("accepted"):
        return tuple(ConventionEvidence(name, value, True, before.number) for name, value in before.says.items())
    return tuple(
        ConventionEvidence(name, before.says[name], False, before.number)
        for name in read_blame(after.log)
        if name in before.says
    )


class ConventionBeliefs:
    """What is believed of conventions.

    What was last seen before memory was contradicted counts only where nothing newer is known, and is not trusted. What
    was accepted counts more than what was read, which may lag behind; what was refused in the present issue is not
    restored by reading the same again.

    Args:
        view: the prompt.
        shown: the state.
        conflict: how contradicting evidence is weighed (`drift_agents.prompt.view`).

    Attributes:
        found: by convention, the value that is believed, and whether it is trusted.
        refused: conventions with values that are known not to hold.
        has_refusal: whether memory shows the last submission as refused.
        has_acceptance: whether memory shows one like it as accepted.
    """

    def __init__(self, view: PromptView, shown: ShownRepository, conflict: str) -> None:
        doubt, last = view.trusted_since, {} if shown.submitted is None else read_change(shown.submitted)[0]
        self.refused: set[tuple[str, str]] = set()
        self.has_refusal = self.has_acceptance = False
        judged: dict[tuple[str, str], list[tuple[bool, float, int]]] = {}
        holds: dict[str, list[tuple[str, float, int]]] = {}
        accepted: dict[str, list[tuple[str, float, int]]] = {}
        items = (*view.elsewhere, *view.here)
        seen = [(one, item.support, item.last) for item in items for one in read_evidence(item)]
        seen += [(ConventionEvidence(name, value, True), 1.0, view.step) for name, value in shown.shows.items()]
        for (name, value, does_hold, issue), support, step in seen:
            if issue == shown.number and not does_hold:
                if last.get(name) != value:  # the last refusal may have another reason
                    self.refused.add((name, value))
                continue
            judged.setdefault((name, value), []).append((does_hold, support, step))
            if does_hold:
                holds.setdefault(name, []).append((value, support, step))
                if issue is not None and step >= doubt:
                    accepted.setdefault(name, []).append((value, support, step))
        for item in items:
            before, after = read_repository_state(item.state), read_repository_state(item.outcome.state)
            if item.action == SUBMIT and before is not None and after is not None and before.says == last:
                self.has_acceptance |= bool(after.answer.get("accepted"))
                self.has_refusal |= not after.answer.get("accepted") and before.number == shown.number
        self.refused |= {key for key, ones in judged.items() if believe_newer(ones, doubt, conflict) == (False, True)}
        self.found: dict[str, tuple[str, bool]] = {}
        for name in holds:
            of_name = (
                [one for one in ones.get(name, ()) if (name, one[0]) not in self.refused] for ones in (accepted, holds)
            )
            if known := next(filter(None, of_name), None):
                self.found[name] = believe_newer(known, doubt, conflict)

    def is_sure(self) -> bool:
        """Whether a trusted value of every convention is believed."""
        return all(self.found.get(name, ("", False))[1] for name in (*EXPLICIT, *IMPLICIT))


class RepositoryPlanner(ParsedPlanner[ShownRepository]):
    """Chooses among the edits that are offered by what it believes of conventions, and looks where it does not.

    * Where the value of a convention is not believed, or was last seen before memory was found wrong, it looks: the
      practice in the change that was merged last, everything else in the document.
    * A refusal that memory does not hold, while it holds that such a change was accepted, is answered by submitting the
      same again. Otherwise it looks at the files themselves; if they agree with what was submitted, it tries another
      value of the conventions that the log is about.
    * Of equal edits the first is chosen, which is the one with the words that were read last.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": {}, "submitted": null, '
        >>> at += '"log": "", "answer": {}}'
        >>> RepositoryPlanner().decide(PromptView("", at, (LIST, SUBMIT)), np.random.default_rng(0)).text == LIST
        True
    """

    name, shows = "repository", "one of a repository"
    parse = staticmethod(read_repository_state)

    def _choose(self, shown: ShownRepository, view: PromptView, rng: np.random.Generator) -> str:
        calls = [call for call in map(_read_call, view.actions) if call is not None]
        beliefs = ConventionBeliefs(view, shown, self.conflict)
        wanted = SUBMIT
        is_refused, is_draft = shown.submitted is not None, shown.written != (shown.submitted or {})
        if not (is_refused and not is_draft and beliefs.has_acceptance and not beliefs.has_refusal):
            edits = [call for call in calls if call.tool == "write_file"]
            reads = {one.path: one.call for one in calls if one.tool == "read_file" and one.path not in shown.written}
            needs_look = is_refused or not edits or not beliefs.is_sure()
            look = "" if is_draft or not needs_look else _look(shown, reads)
            wanted = look or _write(shown, edits, beliefs)
        return wanted if wanted in view.actions else pick(view.actions, rng)


def _look(shown: ShownRepository, reads: Mapping[str, str]) -> str:
    """The next read: all paths, the log of changes, the rule that was merged last, and then the document.

    After a refusal, in place of the document, what else there is to choose from; empty at the end.
    """
    answer = shown.answer
    if "files" in answer:
        return reads.get(HISTORY, "")
    path = str(answer.get("path", ""))
    if path == HISTORY:
        for line in str(answer.get("text", "")).splitlines()[1:]:
            words = f" {line.rpartition(' (')[0]} "
            for one, call in reads.items():
                stem = one.rpartition("/")[2].removesuffix(".py").replace("_", " ")
                if one.endswith(".py") and f" {stem} " in words:
                    return call
    if read_text(path, str(answer.get("text", "")))[0] == "rule" or path == HISTORY:
        if shown.submitted is None:
            return reads.get(DOCUMENT, "")
        blamed = read_blame(shown.log)
        module = "/rounding.py" if "rounding" in blamed else "/errors.py" if "error" in blamed else "\0"
        return next((call for one, call in reads.items() if one.endswith(module)), "")
    return "" if path else LIST


def _write(shown: ShownRepository, edits: list[FileCall], beliefs: ConventionBeliefs) -> str:
    """The next edit of the change that is believed to be right; a submission if all of it is written."""
    believed, refused = {name: value for name, (value, _) in beliefs.found.items()}, dict[str, str]()
    if shown.submitted is not None:
        last = read_change(shown.submitted)[0]
        believed |= {name: value for name, value in shown.says.items() if last.get(name) != value}
        if all(believed.get(name, value) == value for name, value in last.items()):
            refused = {name: last[name] for name in read_blame(shown.log) if name in last}
            believed = {name: value for name, value in believed.items() if refused.get(name) != value}
            if "rounding" in refused and (fitting := _find_rounding(shown, refused["rounding"])):
                believed["rounding"] = fitting

    bad = beliefs.refused | set(refused.items())

    def rate(edit: FileCall) -> int:
        return sum(1 if believed.get(one[0]) == one[1] else -2 * (one in bad) for one in edit.says.items())

    by_role: dict[str, FileCall] = {}
    for edit in sorted(edits, key=rate, reverse=True):
        by_role.setdefault(edit.role, edit)
    for edit in by_role.values():
        is_same = edit.path in shown.written and shown.written[edit.path] == edit.text
        is_idle = shown.answer.get("written") == edit.path and edit.path not in shown.written
        if not is_same and not is_idle:
            return edit.call
    return SUBMIT


def _find_rounding(shown: ShownRepository, wrong: str) -> str | None:
    """The function that rounds as a log expects, where the answer shows them all."""
    modes = dict(_MODES.findall(str(shown.answer.get("text", ""))))
    submitted: Mapping[str, str | None] = shown.submitted or {}
    rules = [text for path, text in submitted.items() if text and read_text(path, text)[0] == "rule"]
    terms = _TERMS.search(rules[0]) if rules else None
    if terms is None:
        return None
    figures = list(_read_figures(shown.log, "(days, amount)" in rules[0], tuple(map(Decimal, terms.groups()))))
    fitting = (
        word
        for word, mode in modes.items()
        if word != wrong and all(exact.quantize(unit, mode) == expected for exact, expected, unit in figures)
    )
    return next(fitting, None)


def _read_figures(
    log: str, is_days_first: bool, terms: tuple[Decimal, ...]
) -> Iterator[tuple[Decimal, Decimal, Decimal]]:
    """Exact results, what was expected instead, and the unit to which both are rounded."""
    share, daily, free = terms
    for arguments, expected, got in _FIGURES.findall(log):
        try:
            first, second = (Decimal(one.strip(" '").replace(",", "")) for one in arguments.split(", ", 1))
        except (ArithmeticError, ValueError):
            continue
        amount, days = (second, first) if is_days_first else (first, second)
        exact = amount * share + daily * max(days - free, Decimal(0))
        scale = 1 if "." in got else 100
        if abs(exact * scale - Decimal(got)) < 1:  # otherwise the least or the highest charge hides the rounding
            yield exact * scale, Decimal(expected), Decimal("0.01") if scale == 1 else Decimal(1)
