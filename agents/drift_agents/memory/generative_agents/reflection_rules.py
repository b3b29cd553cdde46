"""The rules that reflect offline, in the place of a language model.

* `Grade` - how important the rules find what happened
* `rate`, `choose_questions`, `infer_insights` - the rules; they read text and nothing else
* `RULES` - their table for `drift_agents.llm.rules.RuleModel`

They repeat what the statements say and notice when statements contradict each other. Results that
rest on them show that the mechanism works; they are no evidence about introspection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from drift_agents.llm.rules import Rule
from drift_agents.memory.reflection import IMPORTANCE, INSIGHTS, QUESTIONS, ask_about

TOLD = 3
"""Outcomes that an insight tells at the most, the last ones."""
STATEMENTS = "\nStatements:\n"
_STATEMENT = re.compile(
    r'(?P<number>\d+)\. In (?P<state>.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<outcomes>.*)'
)
_OUTCOME = re.compile(
    r"(?P<after>.*?) \(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?"
    r"(?:; [^;()]+ responses, verified)?\)(?:, or to |$)"
)
_DETAIL = re.compile(r"\(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?")
_AT_MOST = re.compile(r"^At most: (\d+)$", re.MULTILINE)


class Grade(IntEnum):
    """How important the rules find what happened, from 1 (mundane) to 10 (poignant)."""

    NOTHING = 1
    """The state stayed as it was."""
    MOVED = 2
    """Something else is to be seen, as nearly always."""
    GAIN = 6
    """There is a score, and the episode goes on."""
    END = 10
    """The episode ended, well or badly."""


class _After(NamedTuple):
    """One outcome as it stands in a statement."""

    state: str
    score: float
    ended: bool

    @property
    def told(self) -> str:
        end = "; the episode ended" if self.ended else ""
        return f"{self.state} (score {self.score:g}{end})"

    def grade(self, before: str | None) -> Grade:
        if self.ended:
            return Grade.END
        if self.score > 0:
            return Grade.GAIN
        return Grade.NOTHING if self.state == before else Grade.MOVED


class _Statement(NamedTuple):
    """A statement of a numbered list, read back."""

    number: int
    state: str
    action: str
    outcomes: tuple[_After, ...]

    @property
    def grade(self) -> Grade:
        return max(after.grade(self.state) for after in self.outcomes)


def _read(text: str) -> Iterator[_Statement]:
    """The statements of a list that tell a transition; what says something else is passed over."""
    for line in text.split("\n"):
        found = _STATEMENT.fullmatch(line)
        if found is None:
            continue
        outcomes = tuple(
            _After(part["after"], _score(part["score"]), part["ended"] is not None)
            for part in _OUTCOME.finditer(found["outcomes"])
        )
        if outcomes:
            yield _Statement(int(found["number"]), found["state"], found["action"], outcomes)


def _score(text: str) -> float:
    """A score, nothing where a text merely looks like one."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def rate(text: str) -> dict[str, int]:
    """The rule that answers `IMPORTANCE` offline: the gravest thing that is told.

    Args:
        text: a statement or an insight; insights tell outcomes in the same words.

    Returns:
        JSON by the schema `IMPORTANCE`.

    Example:
        >>> rate('Memory: In a action "1" led to hole (score 0; the episode ended)'), rate("Memory: Mind the ice.")
        ({'importance': 10}, {'importance': 2})
    """
    memory = text.removeprefix("Memory: ")
    statements = [statement.grade for statement in _read(f"1. {memory}")]
    told = [_After("", _score(part["score"]), part["ended"] is not None) for part in _DETAIL.finditer(memory)]
    grades = statements or [after.grade(None) for after in told] or [Grade.MOVED]
    return {"importance": int(max(grades))}


def choose_questions(text: str) -> dict[str, list[str]]:
    """The rule that answers `QUESTIONS` offline: the places where most of importance happened.

    Args:
        text: how many questions at most, and the statements.

    Returns:
        JSON by the schema `QUESTIONS`.

    Example:
        >>> text = '''At most: 1
        ... Statements:
        ... 1. In a action "1" led to b (score 0)
        ... 2. In c action "1" led to hole (score 0; the episode ended)'''
        >>> choose_questions(text)
        {'questions': ['What follows from each action in c?']}
    """
    head, _, body = f"\n{text}".partition(STATEMENTS)
    weights: dict[str, int] = {}
    for statement in _read(body):
        weights[statement.state] = weights.get(statement.state, 0) + statement.grade
    ranked = sorted(weights, key=lambda state: -weights[state])
    return {"questions": [ask_about(state) for state in ranked[: _at_most(head)]]}


def infer_insights(text: str) -> dict[str, list[dict[str, Any]]]:
    """The rule that answers `INSIGHTS` offline: what each action led to, contradictions first.

    Args:
        text: the question, how many insights at most, and the statements. What the rule can say
            stands in the statements; the question chose them.

    Returns:
        JSON by the schema `INSIGHTS`.

    Example:
        >>> text = '''At most: 5
        ... Statements:
        ... 1. In a action "1" led to b (score 0)
        ... 2. In a action "1" led to hole (score 0; the episode ended)'''
        >>> (insight,) = infer_insights(text)["insights"]
        >>> insight["because_of"]
        [1, 2]
        >>> print(insight["insight"])
        Action "1" in a is not certain: it led to b (score 0), and last to hole (score 0; the episode ended).
    """
    head, _, body = f"\n{text}".partition(STATEMENTS)
    groups: dict[tuple[str, str], list[_Statement]] = {}
    for statement in _read(body):
        groups.setdefault((statement.state, statement.action), []).append(statement)
    found = [_conclude(group) for group in groups.values()]
    found.sort(key=lambda conclusion: conclusion[0])
    return {
        "insights": [{"insight": insight, "because_of": numbers} for _, insight, numbers in found[: _at_most(head)]]
    }


def _conclude(group: Sequence[_Statement]) -> tuple[tuple[bool, int, int], str, list[int]]:
    """What the statements about one (state, action) come to: its rank, the insight, the numbers."""
    state, action = group[0].state, group[0].action
    # By the last mention, so that an insight ends with how things are now.
    outcomes = list(dict.fromkeys(after.told for one in reversed(group) for after in reversed(one.outcomes)))[::-1]
    last = group[-1].outcomes[0]
    grade = max(statement.grade for statement in group)
    if len(outcomes) > 1:
        *others, newest = outcomes[-TOLD:]
        insight = f"Action {action} in {state} is not certain: it led to {', to '.join(others)}, and last to {newest}."
    elif last.ended and last.score <= 0:
        insight = f"Avoid action {action} in {state}: it led to {last.told}."
    elif last.ended or last.score > 0:
        insight = f"Action {action} in {state} pays: it led to {last.told}."
    elif last.state == state:
        insight = f"Action {action} in {state} changes nothing: {last.told}."
    else:
        insight = f"Action {action} in {state} leads to {last.told}."
    return (len(outcomes) == 1, -grade, -len(group)), insight, [statement.number for statement in group]


def _at_most(head: str) -> int:
    """How many answers were asked for."""
    found = _AT_MOST.search(head)
    return int(found[1]) if found else 1


RULES: Mapping[str, Rule] = {
    IMPORTANCE["title"]: rate,
    QUESTIONS["title"]: choose_questions,
    INSIGHTS["title"]: infer_insights,
}
"""The table for `drift_agents.llm.rules.RuleModel`."""
