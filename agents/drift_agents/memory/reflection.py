"""How a memory stream is rated and reflected upon: statements in words, and the forms of the answers.

* `tell` - a transition as a statement
* `number` - statements as a numbered list
* `ask_about` - the question that a place raises
* `IMPORTANCE`, `QUESTIONS`, `INSIGHTS` - the forms of a model's answers

`drift_agents.memory.generative_agents.reflection_rules` answers offline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from drift_agents.types import Outcome

LONGEST = 400
"""Characters of a state that a statement quotes at the most: a shop's page is longer than a memory."""

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


def tell(state: str, action: str, outcomes: Iterable[tuple[Outcome, float]], verified: int | None = None) -> str:
    """A transition as a statement of one line.

    Args:
        state: the state before.
        action: the action.
        outcomes: what followed, with probabilities.
        verified: how many responses a verified summary rests on; `None` for a lived transition.

    Example:
        >>> tell("a", "1", [(Outcome("hole", 0.0, True), 1.0)])
        'In a action "1" led to hole (score 0; the episode ended)'
        >>> tell("a", "1", [(Outcome("b", 0.0, False), 1.0)], verified=4)
        'In a action "1" led to b (score 0; 4 of 4 responses, verified)'
    """
    told = []
    for outcome, p in outcomes:
        end = "; the episode ended" if outcome.ended else ""
        count = "" if verified is None else f"; {p * verified:g} of {verified} responses, verified"
        told.append(f"{_quote(outcome.state)} (score {outcome.score:g}{end}{count})")
    return f"In {_quote(state)} action {json.dumps(action, ensure_ascii=False)} led to {', or to '.join(told)}"


def _quote(state: str) -> str:
    """A state in one line, cut when it is long."""
    text = " ".join(state.splitlines())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def ask_about(state: str) -> str:
    """The question that a place raises.

    Example:
        >>> ask_about("a")
        'What follows from each action in a?'
    """
    return f"What follows from each action in {_quote(state)}?"


def number(statements: Iterable[str]) -> str:
    """Statements as a numbered list.

    Example:
        >>> print(number(["one", "two"]))
        1. one
        2. two
    """
    return "\n".join(f"{place}. {' '.join(text.splitlines())}" for place, text in enumerate(statements, 1))
