"""Reflection: the schemas of a model's answers, and the rules that answer offline.

* `IMPORTANCE`, `QUESTIONS`, `INSIGHTS` - the schemas of the answers
* `number_statements`, `question_about` - statements as a numbered list, and the question about a state
* `Grade` - the importance that the rules give to a transition
* `rate`, `choose_questions`, `infer_insights` - the rules; they read the text and nothing else
* `RULES` - their table for `drift_agents.llm.rules.RuleModel`

The rules repeat the statements and report contradictions between them. Results that depend on them show
that the mechanism works; they are no evidence about the reflection of a language model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from drift_agents.llm.rules import Rule
from drift_agents.memory.transcript import quote_state

IMPORTANCE: Mapping[str, Any] = {
    "title": "importance",
    "type": "object",
    "properties": {"importance": {"type": "integer", "minimum": 1, "maximum": 10}},
    "required": ["importance"],
    "additionalProperties": False,
}
QUESTIONS: Mapping[str, Any] = {
    "title": "reflection_questions",
    "type": "object",
    "properties": {"questions": {"type": "array", "items": {"type": "string", "minLength": 1}}},
    "required": ["questions"],
    "additionalProperties": False,
}
INSIGHTS: Mapping[str, Any] = {
    "title": "insights",
    "type": "object",
    "properties": {
        "insights": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "insight": {"type": "string", "minLength": 1, "maxLength": 4000},
                    "because_of": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["insight", "because_of"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["insights"],
    "additionalProperties": False,
}

OUTCOMES = 3
"""The largest number of outcomes in an insight, the last ones."""
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


def question_about(state: str) -> str:
    """The question about a state.

    Example:
        >>> question_about("a")
        'What follows from each action in a?'
    """
    return f"What follows from each action in {quote_state(state)}?"


def number_statements(statements: Iterable[str]) -> str:
    """Statements as a numbered list.

    Example:
        >>> print(number_statements(["one", "two"]))
        1. one
        2. two
    """
    return "\n".join(f"{place}. {' '.join(text.splitlines())}" for place, text in enumerate(statements, 1))


class Grade(IntEnum):
    """The importance that the rules give to a transition, from 1 (mundane) to 10 (poignant)."""

    NOTHING = 1
    """The state did not change."""
    MOVED = 2
    """The state changed."""
    GAIN = 6
    """The score is positive, and the episode continues."""
    END = 10
    """The episode ended, with or without a score."""


class _ParsedOutcome(NamedTuple):
    """One outcome of a statement."""

    state: str
    score: float
    ended: bool

    @property
    def text(self) -> str:
        end = "; the episode ended" if self.ended else ""
        return f"{self.state} (score {self.score:g}{end})"

    def grade(self, before: str | None) -> Grade:
        if self.ended:
            return Grade.END
        if self.score > 0:
            return Grade.GAIN
        return Grade.NOTHING if self.state == before else Grade.MOVED


class _Statement(NamedTuple):
    """A statement parsed from a numbered list."""

    number: int
    state: str
    action: str
    outcomes: tuple[_ParsedOutcome, ...]

    @property
    def grade(self) -> Grade:
        return max(after.grade(self.state) for after in self.outcomes)


def _read(text: str) -> Iterator[_Statement]:
    """The statements of a list about transitions; other lines are ignored."""
    for line in text.split("\n"):
        found = _STATEMENT.fullmatch(line)
        if found is None:
            continue
        outcomes = tuple(
            _ParsedOutcome(part["after"], _score(part["score"]), part["ended"] is not None)
            for part in _OUTCOME.finditer(found["outcomes"])
        )
        if outcomes:
            yield _Statement(int(found["number"]), found["state"], found["action"], outcomes)


def _score(text: str) -> float:
    """A score; 0 where a text only looks like one."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def rate(text: str) -> dict[str, int]:
    """The rule that answers `IMPORTANCE` offline: the highest grade of its outcomes.

    Args:
        text: a statement or an insight; both have outcomes in the same form.

    Returns:
        JSON by the schema `IMPORTANCE`.

    Example:
        >>> rate('Memory: In a action "1" led to hole (score 0; the episode ended)'), rate("Memory: Mind the ice.")
        ({'importance': 10}, {'importance': 2})
    """
    memory = text.removeprefix("Memory: ")
    statements = [statement.grade for statement in _read(f"1. {memory}")]
    outcomes = [
        _ParsedOutcome("", _score(part["score"]), part["ended"] is not None) for part in _DETAIL.finditer(memory)
    ]
    grades = statements or [after.grade(None) for after in outcomes] or [Grade.MOVED]
    return {"importance": int(max(grades))}


def choose_questions(text: str) -> dict[str, list[str]]:
    """The rule that answers `QUESTIONS` offline: the states with the highest sum of importance.

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
    return {"questions": [question_about(state) for state in ranked[: _at_most(head)]]}


def infer_insights(text: str) -> dict[str, list[dict[str, Any]]]:
    """The rule that answers `INSIGHTS` offline: the outcomes of each action, contradictions first.

    Args:
        text: the question, how many insights at most, and the statements, which were chosen for the question.

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
    """The rank, insight and statement numbers of one (state, action)."""
    state, action = group[0].state, group[0].action
    # By the last mention, so that the latest outcome comes last.
    outcomes = list(dict.fromkeys(after.text for one in reversed(group) for after in reversed(one.outcomes)))[::-1]
    last = group[-1].outcomes[0]
    grade = max(statement.grade for statement in group)
    if len(outcomes) > 1:
        *others, newest = outcomes[-OUTCOMES:]
        insight = f"Action {action} in {state} is not certain: it led to {', to '.join(others)}, and last to {newest}."
    elif last.ended and last.score <= 0:
        insight = f"Avoid action {action} in {state}: it led to {last.text}."
    elif last.ended or last.score > 0:
        insight = f"Action {action} in {state} pays: it led to {last.text}."
    elif last.state == state:
        insight = f"Action {action} in {state} changes nothing: {last.text}."
    else:
        insight = f"Action {action} in {state} leads to {last.text}."
    return (len(outcomes) == 1, -grade, -len(group)), insight, [statement.number for statement in group]


def _at_most(head: str) -> int:
    """The number of answers that the text allows."""
    found = _AT_MOST.search(head)
    return int(found[1]) if found else 1


RULES: Mapping[str, Rule] = {
    IMPORTANCE["title"]: rate,
    QUESTIONS["title"]: choose_questions,
    INSIGHTS["title"]: infer_insights,
}
"""The table for `drift_agents.llm.rules.RuleModel`."""
