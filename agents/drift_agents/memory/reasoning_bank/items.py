"""What ReasoningBank asks a model about an episode, and the rule that answers offline.

* `ITEMS` - the question: an episode in, at most three items out
* `ReasoningItem` - title, description, content
* `tell_episode` - the text of an episode
* `make_items` - the rule that answers offline
* `RULES` - the table for `drift_agents.llm.rules.RuleModel`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.llm.rules import Rule
from drift_agents.memory.voyager.critic import highest_score
from drift_agents.prompt.lessons import build_trajectories, render_trajectory
from drift_agents.prompt.view import Recollection, parse_line
from drift_agents.types import Episode, Record

MOST_ITEMS = 3
"""Items that are made of an episode, at the most."""

HORIZON = 20
"""Steps of a way that an item tells, at the most: as many as a strategy of AdaMEM's."""

ITEMS: Mapping[str, Any] = {
    "title": "reasoning_bank_items",
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "maxItems": MOST_ITEMS,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": 200},
                    "description": {"type": "string", "maxLength": 1000},
                    "content": {"type": "string", "minLength": 1, "maxLength": 100000},
                },
                "required": ["title", "description", "content"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}

STEPS, RESULT = "\nSteps:\n", "\nResult: "
_RESULT = re.compile(r"score (?P<score>\S+) after (?P<steps>\d+) steps?")


class ReasoningItem(NamedTuple):
    """A piece of reasoning: title, description, content.

    Example:
        >>> ReasoningItem("Hurry.", "Time is short.", "Run.").text
        'Hurry. Time is short. Run.'
    """

    title: str
    description: str
    content: str

    @property
    def text(self) -> str:
        """What stands in a prompt."""
        return " ".join(part for part in self if part)


def tell_episode(episode: Episode, steps: Iterable[Record]) -> str:
    """The text of an episode.

    Args:
        episode: how it went.
        steps: what memory wrote of it, in order.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "[1]", "1", ((Outcome("[2]", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(tell_episode(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in [1] action "1" led to [2] (the episode ended; score 0; seen once; last at step 0)
        Result: score 0 after 1 step
    """
    lines = "\n".join(
        Recollection(
            one_line(record.state),
            record.action,
            record.outcome._replace(state=one_line(record.outcome.state)),
            1.0,
            record.now.step,
        ).line()
        for record in steps
    )
    count = "1 step" if episode.steps == 1 else f"{episode.steps} steps"
    return f"Task: {episode.task}{STEPS}{lines}{RESULT}score {episode.score:g} after {count}"


def one_line(text: str) -> str:
    """A text in one line."""
    return " ".join(text.splitlines()) if "\n" in text else text


def make_items(text: str) -> dict[str, Any]:
    r"""The rule that answers `ITEMS` offline: of a success the way, of a failure the step that ended it.

    Args:
        text: what `tell_episode` made; nothing else is read.

    Returns:
        JSON by the schema `ITEMS`; no item where nothing can be told.

    Raises:
        ArgumentError: if it is something else.

    Example:
        >>> step = '- in [1] action "1" led to [2] (the episode ended; score 0; seen once; last at step 4)'
        >>> make_items(f"Task: go.\nSteps:\n{step}\nResult: score 0 after 1 step")["items"][0]["content"]
        'From [1] do "1" to get to [2]: score 0, the end, last seen at step 4.'
    """
    # The last marks are the true ones: a task may contain anything, the lines below it cannot.
    story, _, told = text.rpartition(RESULT)
    task, _, lines = story.rpartition(STEPS)
    result = _RESULT.fullmatch(told)
    if result is None:
        raise ArgumentError(f"an episode should end with its result. Received {text[-80:]!r}")
    steps: list[Recollection] = []
    for line in lines.split("\n"):
        with suppress(ArgumentError):  # a state that is no JSON text is not told as a way
            steps.append(parse_line(line))
    if not steps:
        return {"items": []}
    score = float(result["score"])
    if score >= highest_score(task):
        ways = " ".join(render_trajectory(way) for way in build_trajectories(steps[:HORIZON]))
        item = ReasoningItem("A way that worked.", f"It reached a score of {score:g} in {len(steps)} steps.", ways)
        items = [item]
        if len(steps) > HORIZON:
            (last,) = build_trajectories(steps[-1:])
            items.append(ReasoningItem("How it ended.", "The last step of that way.", render_trajectory(last)))
    elif steps[-1].outcome.ended:
        (last,) = build_trajectories(steps[-1:])
        items = [
            ReasoningItem(
                "What ended an attempt.", f"It ended with a score of {score:g} only.", render_trajectory(last)
            )
        ]
    else:
        items = []
    return {"items": [item._asdict() for item in items]}


RULES: Mapping[str, Rule] = {ITEMS["title"]: make_items}
"""The table for `drift_agents.llm.rules.RuleModel`."""
