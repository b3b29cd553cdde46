"""A day of an agent's life in words, and what is worth keeping of it.

* `DAY` - the question to a model: one day in, one summary out
* `tell_day` - the text of a day
* `summarise_day` - the rule that answers offline
* `RULES` - the table for `drift_agents.llm.rules.RuleModel`

MemoryBank condenses the conversations of a day into a summary; here a day is an episode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from drift_agents.llm.rules import Rule
from drift_agents.types import Episode, Record

DAY: Mapping[str, Any] = {
    "title": "memory_bank_day",
    "type": "object",
    "properties": {"summary": {"type": "string", "minLength": 1, "maxLength": 2000}},
    "required": ["summary"],
    "additionalProperties": False,
}

STEPS = "\nSteps:\n"
MOVES = 12
"""Runs of equal actions that a summary names at the most; a longer way is told by its length."""
LONGEST = {"state": 200, "action": 60}
"""Characters that a summary quotes at the most: a shop's page is longer than a lesson."""
_STEP = re.compile(
    r'- in (?P<state>.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>.*) '
    r"\(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?\)"
)


def tell_day(episode: Episode, records: Iterable[Record]) -> str:
    """The text of a day.

    Args:
        episode: how it went.
        records: what memory wrote on that day, oldest first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "start", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(tell_day(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in start action "1" led to hole (score 0; the episode ended)
    """
    lines = []
    for record in records:
        outcome, action = record.outcome, json.dumps(record.action, ensure_ascii=False)
        end = "; the episode ended" if outcome.ended else ""
        before, after = (" ".join(state.splitlines()) for state in (record.state, outcome.state))
        lines.append(f"- in {before} action {action} led to {after} (score {outcome.score:g}{end})")
    return f"Task: {episode.task}{STEPS}" + "\n".join(lines)


def summarise_day(text: str) -> dict[str, str]:
    r"""The rule that answers `DAY` offline: the way taken, its score, and the step that ended it for nothing.

    Args:
        text: what `tell_day` made; nothing else is read.

    Returns:
        JSON by the schema `DAY`.

    Example:
        >>> summarise_day('Task: go.\nSteps:\n- in start action "1" led to hole (score 0; the episode ended)')
        {'summary': 'From start "1" led to score 0. Avoid "1" in start: the episode ended there for nothing.'}
    """
    # The last mark is the true one: a task may contain anything, the lines below it cannot.
    steps = [found for line in text.rpartition(STEPS)[2].split("\n") if (found := _STEP.fullmatch(line))]
    if not steps:
        return {"summary": "Nothing happened."}
    runs = [(action, len(list(run))) for action, run in groupby(_quote(step, "action") for step in steps)]
    if len(runs) > MOVES:
        way = f"a way of {len(steps)} steps"
    else:
        way = ", ".join(action if times == 1 else f"{times} times {action}" for action, times in runs)
    last = steps[-1]
    told = f"From {_quote(steps[0], 'state')} {way} led to score {last['score']}"
    if not last["ended"]:
        told += ", without an end"
    elif float(last["score"]) <= 0:
        told += f". Avoid {_quote(last, 'action')} in {_quote(last, 'state')}: the episode ended there for nothing"
    return {"summary": f"{told}."}


def _quote(step: re.Match[str], part: str) -> str:
    """A part of a step, cut when it is long."""
    text, longest = step[part], LONGEST[part]
    return text if len(text) <= longest else f"{text[:longest]}..."


RULES: Mapping[str, Rule] = {DAY["title"]: summarise_day}
"""The table for `drift_agents.llm.rules.RuleModel`."""
