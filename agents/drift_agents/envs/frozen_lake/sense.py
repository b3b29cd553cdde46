"""Common sense on the frozen lake, for rule-based message policies.

* `FrozenLakeSense` - towards a destination, away from known holes and from where the episode has been
"""

from __future__ import annotations

import re

from drift_agents.policy.message_reader.common_sense import CommonSense
from drift_agents.policy.message_reader.text import KnownOutcome, MessageText

_POSITION = re.compile(r"\[(\d+), (\d+)\]")
_TILE = re.compile(r"^- (\[\d+, \d+\])$", re.MULTILINE)
"""A tile of the episode, in the format `brief`."""
_DIRECTIONS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}

ENDS, BLOCKED, REPEATED = 100.0, 90.0, 4.0
"""Costs, in tiles, of an action that led to an end without score, that changed nothing, and of each repetition."""
STALE = REPEATED
"""The cost of an action that led to an end without score before memory was contradicted: it may have changed."""


class FrozenLakeSense(CommonSense):
    """Directions towards a destination, away from known holes and from where the episode has been."""

    def choose(self, read: MessageText) -> list[str]:
        """The directions that cost least, in the order of the messages.

        Args:
            read: the parsed messages.
        """
        here, goals, size = _read_lake(read.text)
        dead = _dead_ends(read)
        paid = [known for known in read.elsewhere if known.ended and known.score > 0]
        paying = {place for known in paid for place in _places(known.outcome)}
        targets = [goal for goal in goals if goal not in paying] or goals
        walked = [place for move in read.moves for place in _places(move.before)]
        walked += [place for line in _TILE.findall(read.text) for place in _places(line)]
        costs: dict[str, float] = {}
        for action, name in re.findall(r"(\d) (left|down|right|up)\b", read.text):
            if action not in read.actions or action in costs:
                continue
            row, column = here[0] + _DIRECTIONS[name][0], here[1] + _DIRECTIONS[name][1]
            is_inside = 0 <= row < size[0] and 0 <= column < size[1]
            cost = float(min((abs(row - r) + abs(column - c) for r, c in targets), default=0))
            cost += max(0.0 if is_inside else BLOCKED, _newest_cost(read, action, dead.get((row, column), (-1, 0.0))))
            been = max([walked.count((row, column)), *(known.visits for known in read.known if known.action == action)])
            costs[action] = cost + REPEATED * read.times(action) + 2 * been
        return [action for action, cost in costs.items() if cost == min(costs.values())]


def _known_cost(read: MessageText, known: KnownOutcome) -> float:
    if known.ended and known.score == 0:
        return STALE if read.is_stale(known) else ENDS
    return BLOCKED if "nothing changed" in known.outcome else 0.0


def _newest_cost(read: MessageText, action: str, dead: tuple[int, float]) -> float:
    """The cost of what was seen last: of an action, or of the tile that it leads to from another one."""
    seen = [dead, *((known.last, _known_cost(read, known)) for known in read.known if known.action == action)]
    newest = max(last for last, _ in seen)
    return max(cost for last, cost in seen if last == newest)


def _dead_ends(read: MessageText) -> dict[tuple[int, int], tuple[int, float]]:
    """When a tile was last seen to end an episode without score, and what that costs."""
    found: dict[tuple[int, int], tuple[int, float]] = {}
    for known in read.elsewhere:
        if known.ended and known.score == 0:
            for place in _places(known.outcome):
                found[place] = max(found.get(place, (-1, 0.0)), (known.last, _known_cost(read, known)))
    return found


def _places(words: str) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in _POSITION.findall(words)]


def _read_lake(text: str) -> tuple[tuple[int, int], list[tuple[int, int]], tuple[int, int]]:
    """The present position, the destinations, and the number of rows and columns."""
    at = re.search(r"(?:[Cc]urrent [Pp]osition: |current observation is: \{\"cur_pos\": )(\[\d+, \d+\])", text)
    goals = re.search(r"(?:Destinations: |destination\(s\): )((?:\[\d+, \d+\](?:, )?)+)", text)
    size = re.search(r"(\d+) rows x (\d+) columns", text)
    return (
        _places(at[1])[0] if at else (0, 0),
        _places(goals[1]) if goals else [],
        (int(size[1]), int(size[2])) if size else (99, 99),
    )
