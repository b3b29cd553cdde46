r"""Episodes as text: what language models and the rules in their place read, in the same words everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable
from itertools import groupby

from drift_agents.errors import ArgumentError
from drift_agents.types import Episode, Outcome, Record

BEST = 1.0
"""The score that a success requires where the task names no highest one: scores lie in [0, 1]."""
LONGEST = 200
"""Characters after which `truncate` cuts a state or a task: the page of a shop is longer than a lesson."""
LONGEST_STATEMENT = 400
"""Characters after which a state in a statement is cut."""
STEPS = "\nSteps:\n"
"""The line between the task and its steps."""
RESULT = "\nResult: "
"""What is between the steps and the result."""
STEP = re.compile(
    r'- in (?P<state>.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>.*) '
    r"\(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?\)"
)
"""One step of `render_steps`."""
_HIGHEST = re.compile(r"highest score(?: there)?(?: is)?:? (\d+(?:\.\d+)?)", re.IGNORECASE)


def render_statement(
    state: str, action: str, outcomes: Iterable[tuple[Outcome, float]], verified: int | None = None
) -> str:
    """A transition as a statement of one line.

    Args:
        verified: how many responses a verified summary rests on; `None` for an experienced transition.

    Example:
        >>> render_statement("a", "1", [(Outcome("hole", 0.0, True), 1.0)])
        'In a action "1" led to hole (score 0; the episode ended)'
        >>> render_statement("a", "1", [(Outcome("b", 0.0, False), 1.0)], verified=4)
        'In a action "1" led to b (score 0; 4 of 4 responses, verified)'
    """
    parts = []
    for outcome, p in outcomes:
        end = "; the episode ended" if outcome.ended else ""
        count = "" if verified is None else f"; {p * verified:g} of {verified} responses, verified"
        parts.append(f"{quote_state(outcome.state)} (score {outcome.score:g}{end}{count})")
    return f"In {quote_state(state)} action {json.dumps(action, ensure_ascii=False)} led to {', or to '.join(parts)}"


def quote_state(state: str) -> str:
    """A state in one line, cut to `LONGEST_STATEMENT` characters."""
    return truncate(" ".join(state.splitlines()), LONGEST_STATEMENT)


def render_steps(episode: Episode, records: Iterable[Record]) -> str:
    """The task of an episode and its steps.

    Args:
        records: its steps, oldest first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "start", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(render_steps(Episode("Reach the goal.", 0.0, 1, True), [step]))
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


def read_steps(lines: str) -> tuple[re.Match[str], ...]:
    """The steps of `render_steps`, one match of `STEP` each; other lines are ignored.

    Args:
        lines: what follows `STEPS`.
    """
    return tuple(step for line in lines.split("\n") if (step := STEP.fullmatch(line)))


def render_result(episode: Episode) -> str:
    """The last line of an attempt: score and length."""
    return f"{RESULT}score {episode.score:g} after {count_steps(episode)}"


def split_attempt(text: str, result: re.Pattern[str]) -> tuple[str, str, re.Match[str]]:
    """Task, lines of steps, and result of an attempt as text.

    Args:
        text: `Task: `, the task, `STEPS`, the steps, and a line that begins with `render_result`.
        result: the form of that line, without `RESULT`.

    Raises:
        ArgumentError: if it does not end so.
    """
    # From the right, since a task may contain the markers and the lines below it cannot.
    body, _, last = text.rpartition(RESULT)
    task, _, lines = body.rpartition(STEPS)
    found = result.fullmatch(last)
    if found is None:
        raise ArgumentError(f"an attempt should end with its result. Received {text[-80:]!r}")
    return task.removeprefix("Task: "), lines, found


def count_steps(episode: Episode) -> str:
    """The number of steps in words: `1 step`, `3 steps`."""
    return "1 step" if episode.steps == 1 else f"{episode.steps} steps"


def render_program(actions: Iterable[str]) -> str:
    """Actions as text, runs of equal actions together.

    Example:
        >>> render_program(["1", "1", "2"])
        '"1" 2 times, "2"'
    """
    runs = count_runs(json.dumps(action, ensure_ascii=False) for action in actions)
    return ", ".join(action if times == 1 else f"{action} {times} times" for action, times in runs)


def count_runs(actions: Iterable[str]) -> list[tuple[str, int]]:
    """Runs of equal actions, each with its length.

    Example:
        >>> count_runs("aab")
        [('a', 2), ('b', 1)]
    """
    return [(action, len(list(run))) for action, run in groupby(actions)]


def truncate(text: str, longest: int = LONGEST) -> str:
    """A text cut to a length, with an ellipsis where something was cut."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def attempt_steps(written: Iterable[Record], key: Callable[[str], Hashable], episode: int) -> list[Record]:
    """The steps of an attempt among the records written meanwhile, in the order of experience.

    A verified summary counts as a step where a verifier wrote it in place of the experience: it begins
    where the step before it led to, and the next step has another state or action. A record of an earlier episode,
    which a verifier held back until now, is no step.

    Args:
        written: the records written during the episode.
        key: the matching rule's key of a state.
        episode: its number on the agent's clock.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> transitions = [("a", "b", False), ("b", "c", True), ("x", "y", True)]
        >>> records = [Record(i, s, "1", ((Outcome(t, 0.0, False), 1.0),), 1, AgentClock(0, i), v)
        ...            for i, (s, t, v) in enumerate(transitions)]
        >>> [record.state for record in attempt_steps(records, str, 0)]
        ['a', 'b']
    """
    own = (record for record in written if record.now.episode == episode)
    ordered = sorted(own, key=lambda record: (record.now, record.id))
    steps: list[Record] = []
    for place, record in enumerate(ordered):
        if record.verified:
            following = ordered[place + 1] if place + 1 < len(ordered) else None
            is_duplicate = following is not None and (key(following.state), following.action) == (
                key(record.state),
                record.action,
            )
            if is_duplicate or (steps and key(steps[-1].outcome.state) != key(record.state)):
                continue
        steps.append(record)
    return steps


def highest_score(task: str) -> float:
    """The highest score that a task names, or `BEST`.

    Example:
        >>> highest_score("Reach a goal. The highest score is 0.5."), highest_score("Buy a hat.")
        (0.5, 1.0)
    """
    named = _HIGHEST.search(task)
    return BEST if named is None else float(named[1])


def is_success(result: Episode) -> bool:
    """Whether an episode reached the highest score that its task names, or 1 where it names none.

    Example:
        >>> is_success(Episode("Reach a goal. The highest score is 0.5.", 0.5, 3, True))
        True
    """
    return result.score >= highest_score(result.task)
