"""The critic of Voyager: the text of an attempt, the schemas of the answers, and the rules that answer offline.

The text contains the score at the end, as the environment returned it: so Voyager is supervised by
its own reward, whether a model or a rule answers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Rule, object_schema
from drift_agents.memory.transcript import STEPS, count_steps, highest_score, read_steps, render_steps, truncate
from drift_agents.types import Episode, Record

CRITIQUE = object_schema(
    "voyager_critique",
    reasoning={"type": "string", "maxLength": 4000},
    success={"type": "boolean"},
    critique={"type": "string", "maxLength": 2000},
)
SKILL = object_schema(
    "voyager_skill",
    name={"type": "string", "minLength": 1, "maxLength": 100},
    description={"type": "string", "minLength": 1, "maxLength": 2000},
)

RESULT = "\nResult: "
NAME_WORDS = 6
"""The largest number of words of the task in a skill's name."""
_RESULT = re.compile(r"score (?P<score>\S+) after (?P<steps>\d+) steps?; (?P<end>the episode ended|time ran out)")
_WORD = re.compile(r"[^\W_]+")


def render_attempt(episode: Episode, steps: Iterable[Record]) -> str:
    """The text of an attempt.

    Args:
        episode: its task, score and length.
        steps: its records, oldest first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "start", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(render_attempt(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in start action "1" led to hole (score 0; the episode ended)
        Result: score 0 after 1 step; the episode ended
    """
    end = "the episode ended" if episode.terminated else "time ran out"
    return f"{render_steps(episode, steps)}{RESULT}score {episode.score:g} after {count_steps(episode)}; {end}"


class TaskAttempt(NamedTuple):
    """An attempt parsed from its text.

    Args:
        task: the task in words.
        steps: one match of `drift_agents.memory.transcript.STEP` for each.
        score: the score at the end.
        length: the number of steps.
        ended: whether it ended before the time limit.
    """

    task: str
    steps: tuple[re.Match[str], ...]
    score: float
    length: int
    ended: bool


def read_attempt(text: str) -> TaskAttempt:
    """Parse the text of an attempt.

    Args:
        text: the result of `render_attempt`.

    Raises:
        ArgumentError: if the text has another form.
    """
    # From the right, since a task may contain the markers and the lines below it cannot.
    body, _, result_line = text.rpartition(RESULT)
    task, _, lines = body.rpartition(STEPS)
    result = _RESULT.fullmatch(result_line)
    if result is None:
        raise ArgumentError(f"an attempt should end with its result. Received {text[-80:]!r}")
    ended = result["end"] == "the episode ended"
    return TaskAttempt(
        task.removeprefix("Task: "), read_steps(lines), float(result["score"]), int(result["steps"]), ended
    )


def judge_attempt(text: str) -> dict[str, Any]:
    r"""The rule that answers `CRITIQUE` offline: a success has the highest score that the task names.

    Args:
        text: the result of `render_attempt`.

    Returns:
        JSON by the schema `CRITIQUE`.

    Example:
        >>> steps = 'Steps:\n- in start action "1" led to hole (score 0; the episode ended)'
        >>> critique = judge_attempt(f"Task: go.\n{steps}\nResult: score 0 after 1 step; the episode ended")
        >>> critique["success"], critique["critique"]
        (False, 'Do not take "1" in start: it ended the episode for nothing.')
    """
    attempt = read_attempt(text)
    highest = highest_score(attempt.task)
    reasoning = f"The score is {attempt.score:g}, the highest is {highest:g}."
    if attempt.score >= highest:
        return {"reasoning": reasoning, "success": True, "critique": ""}
    if not attempt.ended:
        critique = f"Find a shorter way: time ran out after {attempt.length} steps."
    elif attempt.score > 0:
        critique = f"Look for another end: this one brought {attempt.score:g} where there is {highest:g}."
    elif attempt.steps and attempt.steps[-1]["ended"]:
        last = attempt.steps[-1]
        critique = (
            f"Do not take {truncate(last['action'])} in {truncate(last['state'])}: it ended the episode for nothing."
        )
    else:
        critique = "Do something else: the episode ended for nothing."
    return {"reasoning": reasoning, "success": False, "critique": critique}


def describe_skill(text: str) -> dict[str, str]:
    r"""The rule that answers `SKILL` offline: one name for each task; task, start and end as the description.

    Args:
        text: the result of `render_attempt`.

    Returns:
        JSON by the schema `SKILL`.

    Raises:
        ArgumentError: if the text has another form, or no steps.

    Example:
        >>> steps = 'Steps:\n- in start action "1" led to goal (score 1; the episode ended)'
        >>> describe_skill(f"Task: Reach the goal.\n{steps}\nResult: score 1 after 1 step; the episode ended")
        {'name': 'reachTheGoal_b4eef556', 'description': 'Reach the goal. From start to goal. Score 1 after 1 steps.'}
    """
    attempt = read_attempt(text)
    if not attempt.steps:
        raise ArgumentError(f"a skill should have steps. Received {text[-80:]!r}")
    words = _WORD.findall(attempt.task.lower())[:NAME_WORDS]
    name = "".join(word if place == 0 else word.capitalize() for place, word in enumerate(words))
    first, last = attempt.steps[0], attempt.steps[-1]
    path = f"From {truncate(first['state'])} to {truncate(last['after'])}. "
    return {
        # Different tasks may begin with the same words, so a hash of the whole task follows them.
        "name": f"{name[:80]}_{zlib.crc32(attempt.task.encode('utf-8', 'surrogatepass')):08x}",
        "description": f"{attempt.task[:1000]} {path}Score {attempt.score:g} after {attempt.length} steps.",
    }


RULES: Mapping[str, Rule] = {CRITIQUE["title"]: judge_attempt, SKILL["title"]: describe_skill}
"""The table for `drift_agents.llm.base.RuleModel`."""
