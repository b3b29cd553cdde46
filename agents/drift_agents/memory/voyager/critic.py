"""What Voyager asks a model about an attempt, and the rules that answer offline.

* `CRITIQUE` - the question to the critic: was it a success, and if not, what is to be done otherwise
* `SKILL` - the question about a success: what the skill is called and what it does
* `attempt_steps` - the steps of an attempt among what memory wrote meanwhile
* `tell_attempt` - the text of an attempt
* `highest_score` - the score that a success needs
* `TaskAttempt`, `read_attempt` - an attempt read back from its text
* `judge_attempt`, `describe_skill` - the rules that answer
* `tell_program` - actions in words
* `RULES` - the table for `drift_agents.llm.rules.RuleModel`

The critic is told the score at the end, as the world told the agent: so Voyager is supervised by
its own reward, whoever answers.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.llm.rules import Rule
from drift_agents.memory.diary import STEPS, tell_day
from drift_agents.types import Episode, Record

CRITIQUE: Mapping[str, Any] = {
    "title": "voyager_critique",
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "maxLength": 4000},
        "success": {"type": "boolean"},
        "critique": {"type": "string", "maxLength": 2000},
    },
    "required": ["reasoning", "success", "critique"],
    "additionalProperties": False,
}
SKILL: Mapping[str, Any] = {
    "title": "voyager_skill",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 2000},
    },
    "required": ["name", "description"],
    "additionalProperties": False,
}

RESULT = "\nResult: "
BEST = 1.0
"""The score that a success needs where the task names no highest one: scores lie in [0, 1]."""
LONGEST = 200
"""Characters of a state or a task that are quoted at the most: a shop's page is longer than a lesson."""
NAME_WORDS = 6
"""Words of the task that go into a skill's name."""
_HIGHEST = re.compile(r"highest score(?: there)?(?: is)?:? (\d+(?:\.\d+)?)", re.IGNORECASE)
_RESULT = re.compile(r"score (?P<score>\S+) after (?P<steps>\d+) steps?; (?P<end>the episode ended|time ran out)")
_STEP = re.compile(
    r'- in (?P<state>.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>.*) '
    r"\(score [^;()]+(?P<ended>; the episode ended)?\)"
)
_WORD = re.compile(r"[^\W_]+")


def tell_attempt(episode: Episode, steps: Iterable[Record]) -> str:
    """The text of an attempt.

    Args:
        episode: how it went.
        steps: what memory wrote of it, oldest first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "start", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(tell_attempt(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in start action "1" led to hole (score 0; the episode ended)
        Result: score 0 after 1 step; the episode ended
    """
    end = "the episode ended" if episode.terminated else "time ran out"
    count = "1 step" if episode.steps == 1 else f"{episode.steps} steps"
    return f"{tell_day(episode, steps)}{RESULT}score {episode.score:g} after {count}; {end}"


def attempt_steps(written: Iterable[Record], key: Callable[[str], Hashable]) -> list[Record]:
    """The steps of an attempt among what memory wrote meanwhile, in the order in which they were lived.

    A verified summary is a step where it stands for one: where a verifier dropped the experience in
    its favour. That is, it begins where the step before it led to, and the next step is not the same.

    Args:
        written: what was written during the episode.
        key: the matching rule's key of a state.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> ways = [("a", "b", False), ("b", "c", True), ("x", "y", True)]
        >>> records = [Record(i, s, "1", ((Outcome(t, 0.0, False), 1.0),), 1, AgentClock(0, i), v)
        ...            for i, (s, t, v) in enumerate(ways)]
        >>> [record.state for record in attempt_steps(records, str)]
        ['a', 'b']
    """
    ordered = sorted(written, key=lambda record: (record.now, record.id))
    steps: list[Record] = []
    for place, record in enumerate(ordered):
        if record.verified:
            following = ordered[place + 1] if place + 1 < len(ordered) else None
            lived = following is not None and (key(following.state), following.action) == (
                key(record.state),
                record.action,
            )
            if lived or (steps and key(steps[-1].outcome.state) != key(record.state)):
                continue
        steps.append(record)
    return steps


class TaskAttempt(NamedTuple):
    """An attempt, read back from its text.

    Args:
        task: the task in words.
        steps: what the steps say, one match each.
        score: the score at the end.
        length: how many steps there were.
        ended: whether it ended by itself.
    """

    task: str
    steps: tuple[re.Match[str], ...]
    score: float
    length: int
    ended: bool

    @property
    def highest(self) -> float:
        """The highest score, as the task names it."""
        return highest_score(self.task)


def highest_score(task: str) -> float:
    """The highest score, as a task names it; `BEST` where it names none.

    Args:
        task: the task in words.

    Example:
        >>> highest_score("Reach a goal. The highest score is 0.5."), highest_score("Buy a hat.")
        (0.5, 1.0)
    """
    named = _HIGHEST.search(task)
    return BEST if named is None else float(named[1])


def read_attempt(text: str) -> TaskAttempt:
    """Read an attempt back from its text.

    Args:
        text: what `tell_attempt` made.

    Raises:
        ArgumentError: if it is something else.
    """
    # The last marks are the true ones: a task may contain anything, the lines below it cannot.
    story, _, told = text.rpartition(RESULT)
    task, _, lines = story.rpartition(STEPS)
    result = _RESULT.fullmatch(told)
    if result is None:
        raise ArgumentError(f"an attempt should end with its result. Received {text[-80:]!r}")
    steps = tuple(step for line in lines.split("\n") if (step := _STEP.fullmatch(line)))
    ended = result["end"] == "the episode ended"
    return TaskAttempt(task.removeprefix("Task: "), steps, float(result["score"]), int(result["steps"]), ended)


def judge_attempt(text: str) -> dict[str, Any]:
    r"""The rule that answers `CRITIQUE` offline: a success has the highest score that the task names.

    Args:
        text: what `tell_attempt` made; nothing else is read.

    Returns:
        JSON by the schema `CRITIQUE`.

    Example:
        >>> steps = 'Steps:\n- in start action "1" led to hole (score 0; the episode ended)'
        >>> verdict = judge_attempt(f"Task: go.\n{steps}\nResult: score 0 after 1 step; the episode ended")
        >>> verdict["success"], verdict["critique"]
        (False, 'Do not take "1" in start: it ended the episode for nothing.')
    """
    attempt = read_attempt(text)
    highest = attempt.highest
    reasoning = f"The score is {attempt.score:g}, the highest is {highest:g}."
    if attempt.score >= highest:
        return {"reasoning": reasoning, "success": True, "critique": ""}
    if not attempt.ended:
        critique = f"Find a shorter way: time ran out after {attempt.length} steps."
    elif attempt.score > 0:
        critique = f"Look for another end: this one brought {attempt.score:g} where there is {highest:g}."
    elif attempt.steps and attempt.steps[-1]["ended"]:
        last = attempt.steps[-1]
        critique = f"Do not take {cut(last['action'])} in {cut(last['state'])}: it ended the episode for nothing."
    else:
        critique = "Do something else: the episode ended for nothing."
    return {"reasoning": reasoning, "success": False, "critique": critique}


def describe_skill(text: str) -> dict[str, str]:
    r"""The rule that answers `SKILL` offline: one name for each task; task, start and end as the description.

    Args:
        text: what `tell_attempt` made; nothing else is read.

    Returns:
        JSON by the schema `SKILL`.

    Raises:
        ArgumentError: if it is something else, or has no steps.

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
    way = f"From {cut(first['state'])} to {cut(last['after'])}. "
    return {
        # Tasks may begin alike and go on otherwise, so a hash of the whole of it goes with the words.
        "name": f"{name[:80]}_{zlib.crc32(attempt.task.encode('utf-8', 'surrogatepass')):08x}",
        "description": f"{attempt.task[:1000]} {way}Score {attempt.score:g} after {attempt.length} steps.",
    }


def tell_program(actions: Iterable[str]) -> str:
    """Actions in words, equal ones in a row together.

    Example:
        >>> tell_program(["1", "1", "2"])
        '"1" 2 times, "2"'
    """
    runs = ((json.dumps(action, ensure_ascii=False), len(list(run))) for action, run in groupby(actions))
    return ", ".join(action if times == 1 else f"{action} {times} times" for action, times in runs)


def cut(text: str) -> str:
    """The beginning of a text that is too long to be quoted."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


RULES: Mapping[str, Rule] = {CRITIQUE["title"]: judge_attempt, SKILL["title"]: describe_skill}
"""The table for `drift_agents.llm.rules.RuleModel`."""
