"""Strategies: the schema of the model's answer, and the rule without a model.

* `STRATEGY` - the question: the present state and what was retrieved in, a strategy out
* `Strategy` - a strategy in force, and what it rests on
* `FollowedStrategy` - how far the trajectories of a strategy have been followed
* `tell_exemplars` - what was retrieved, in words
* `make_strategy` - the rule that answers offline
* `ITEMS`, `HORIZON` - the maximum number of bullets of a strategy, and of steps of a bullet
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Exemplar
from drift_agents.prompt.lessons import build_trajectories, parse_trajectories, render_trajectory
from drift_agents.prompt.view import Recollection, parse_line
from drift_agents.types import RecordId

ITEMS = 3
"""Bullets of a strategy, at the most (AdaMEM, appendix B.2: 1 to 3)."""

HORIZON = 20
"""The maximum number of steps of a bullet."""

STRATEGY: Mapping[str, Any] = {
    "title": "adamem_strategy",
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "maxLength": 8000},
        "strategy": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 100000},
            "minItems": 1,
            "maxItems": ITEMS,
        },
    },
    "required": ["reasoning", "strategy"],
    "additionalProperties": False,
}

RETRIEVED = "\nRetrieved experiences:\n"
_HEAD = re.compile(r"Experience \d+ \(similarity (?P<like>\S+); final outcome: .*\):")


class Strategy(NamedTuple):
    """A strategy in force, and what it rests on.

    Args:
        text: its words.
        evidence: the records of what was retrieved.
    """

    text: str
    evidence: frozenset[RecordId]


class FollowedStrategy:
    """How far the trajectories of a strategy have been followed: the step after the last one that was taken is next.

    Args:
        text: the strategy; what is no trajectory is ignored.

    Example:
        >>> followed = FollowedStrategy('From [1] do "0" to get to [2], then do "1" to get to [3]: score 1, the end, '
        ...                             'last seen at step 7.')
        >>> followed.take("0")
        >>> followed.next_steps()
        {'1'}
    """

    def __init__(self, text: str) -> None:
        self._trajectories = parse_trajectories(text)
        self._places = [0] * len(self._trajectories)

    def take(self, action: str) -> None:
        """An action is executed; steps before it are no longer next."""
        for number, trajectory in enumerate(self._trajectories):
            rest = trajectory.actions[self._places[number] :]
            if action in rest:
                self._places[number] += rest.index(action) + 1

    def next_steps(self) -> set[str]:
        """The next action of each trajectory that has not come to its end."""
        pairs = zip(self._trajectories, self._places, strict=True)
        return {one.actions[place] for one, place in pairs if place < len(one.actions)}

    def foresees(self, state: str, matching: Matching) -> bool:
        """Whether a trajectory contains the state."""
        key = matching.state_key
        return key(state) in {key(one) for trajectory in self._trajectories for one in trajectory.states}


def tell_exemplars(exemplars: Sequence[Exemplar]) -> str:
    """What was retrieved, in words: past state, past action, remaining trajectory, final outcome.

    Args:
        exemplars: the best first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome, Record
        >>> step = Record(0, "[1]", "0", (((Outcome("[2]", 1.0, True)), 1.0),), 1, AgentClock(0, 4))
        >>> print(tell_exemplars([Exemplar((step,), 1.0)]))
        Experience 1 (similarity 1; final outcome: score 1):
        - in [1] action "0" led to [2] (the episode ended; score 1; seen once; last at step 4)
    """
    lines = []
    for number, exemplar in enumerate(exemplars, 1):
        lines.append(
            f"Experience {number} (similarity {exemplar.similarity:.3g}; final outcome: score {exemplar.score:g}):"
        )
        for record in exemplar.steps:
            item = Recollection(record.state, record.action, record.outcome, float(record.n), record.now.step)
            lines.append(item._replace(verified=record.verified).line())
    return "\n".join(lines) if lines else "None."


def make_strategy(text: str, horizon: int = HORIZON) -> dict[str, Any]:
    r"""The rule that answers `STRATEGY` offline: one bullet for each of the first experiences, its trajectory.

    Args:
        text: the question: what stands after `RETRIEVED` is read, and nothing else.
        horizon: the maximum number of steps of a bullet.

    Returns:
        JSON by the schema `STRATEGY`.

    Example:
        >>> step = '- in [1] action "0" led to [2] (score 0; seen once; last at step 3)'
        >>> text = f"{RETRIEVED}Experience 1 (similarity 0.9; final outcome: score 1):\n{step}"
        >>> make_strategy(text)["strategy"][0][:61]
        'What worked before (similarity 0.9): From [1] do "0" to get t'
    """
    groups: list[tuple[str, list[Recollection]]] = []
    # The last mark is the true one: what stands before it may contain anything, the lines below it cannot.
    for line in text.rpartition(RETRIEVED)[2].split("\n"):
        if head := _HEAD.fullmatch(line):
            groups.append((head["like"], []))
        elif line.startswith("- in ") and groups:
            with suppress(ArgumentError):  # a state that is no JSON text is left out
                groups[-1][1].append(parse_line(line))
    bullets = []
    for like, steps in groups[:ITEMS]:
        trajectories = " ".join(map(render_trajectory, build_trajectories(steps[:horizon])))
        if trajectories:
            bullets.append(f"What worked before (similarity {like}): {trajectories}")
    if not bullets:
        return {"reasoning": "Nothing like it is remembered.", "strategy": ["Nothing like this is remembered."]}
    reasoning = f"{len(groups)} past experiences were retrieved; the most similar ones are told as ways to go."
    return {"reasoning": reasoning, "strategy": bullets}
