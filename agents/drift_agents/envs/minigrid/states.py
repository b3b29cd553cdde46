"""Minigrid's states: what is in view, when two states are the same, and words."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import NamedTuple

from drift_agents.envs.matching import ParsedMatching
from drift_agents.policy.ranked import PlainFacts, without_meanings

FACINGS = ("east", "south", "west", "north")
"""The directions, in the order in which one turns right."""

STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Column and row of a step in each direction."""

NOTHING = "nothing"
"""An empty cell, and an empty hand."""

_LETTERS = {".": NOTHING, "#": "wall", "~": "lava"}

Place = tuple[int, int]


class ShownRoom(NamedTuple):
    """A state of one of Minigrid's environments, parsed from its JSON text.

    Args:
        place: column and row of the agent.
        facing: the number of its direction in `FACINGS`.
        carries: the thing that it carries, or `nothing`.
        changed: the cells that it has changed in this episode, with what is there now.
        seen: the cells in view, with what is there.
    """

    place: Place
    facing: int
    carries: str
    changed: Mapping[Place, str]
    seen: Mapping[Place, str]

    @property
    def ahead(self) -> Place:
        """The cell before the agent."""
        return cell_ahead(self.place, self.facing)


def cell_ahead(place: Place, facing: int) -> Place:
    """The cell before a place, by the number of a direction."""
    across, down = STEPS[facing]
    return place[0] + across, place[1] + down


@lru_cache(maxsize=32768)
def read_room_state(state: str) -> ShownRoom | None:
    """Parse a state; `None` if the text is no state of one of these environments.

    Args:
        state: the text state.

    Example:
        >>> text = '{"pos": [1, 1], "facing": "east", "carries": "nothing", "changed": {}, "corner": [0, 1], '
        >>> read_room_state(text + '"rows": ["#.o"], "things": {"2,1": "green goal"}}').seen
        {(0, 1): 'wall', (1, 1): 'nothing', (2, 1): 'green goal'}
    """
    try:
        shown = json.loads(state)
        column, row = (int(number) for number in shown["corner"])
        things = {_read_place(cell): str(thing) for cell, thing in shown["things"].items()}
        seen = {}
        for down, line in enumerate(shown["rows"]):
            for across, letter in enumerate(line):
                place = (column + across, row + down)
                if letter in _LETTERS:
                    seen[place] = _LETTERS[letter]
                elif letter == "o":
                    seen[place] = things[place]
        x, y = (int(number) for number in shown["pos"])
        changed = {_read_place(cell): str(thing) for cell, thing in shown["changed"].items()}
        return ShownRoom((x, y), FACINGS.index(shown["facing"]), str(shown["carries"]), changed, seen)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _read_place(cell: str) -> Place:
    column, row = cell.split(",")
    return int(column), int(row)


class MinigridMatching(ParsedMatching[ShownRoom]):
    """Place, direction, hand, and the cells that the agent has changed.

    What is seen does not belong to the state, but to the outcome: two outcomes differ if a cell that both show has
    another content. Texts that are no such states are compared as they are.

    Example:
        >>> rule = MinigridMatching()
        >>> one = '{"pos": [1, 1], "facing": "east", "carries": "nothing", "changed": {}, "corner": [1, 1], '
        >>> one += '"rows": [".#"], "things": {}}'
        >>> rule.state_key(one) == rule.state_key(one.replace("#", "."))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("east", "west"))
        False
    """

    name = "minigrid"
    parse = staticmethod(read_room_state)

    def key(self, shown: ShownRoom) -> Hashable:
        """Place, direction, hand and changed cells."""
        return shown.place, shown.facing, shown.carries, tuple(sorted(shown.changed.items()))

    def is_same(self, one: ShownRoom, other: ShownRoom) -> bool:
        """Whether the keys, and what both show, are the same."""
        if self.key(one) != self.key(other):
            return False
        return all(one.seen[cell] == other.seen[cell] for cell in one.seen.keys() & other.seen.keys())


_UNLISTED = (NOTHING, "wall")
"""What is not listed among the things in view."""


class MinigridFacts(PlainFacts):
    """Place, direction, hand, what is ahead, and the things in view.

    Example:
        >>> state = '{"pos": [1, 1], "facing": "east", "carries": "nothing", "changed": {}, "corner": [0, 0], '
        >>> state += '"rows": ["####", "#.o#", "####"], "things": {"2,1": "green goal"}}'
        >>> MinigridFacts().describe_state(state)
        '[1, 1] facing east, carrying nothing; ahead: green goal'
    """

    cut_states = ('{"pos": ', "a place")

    def describe_state(self, state: str) -> str:
        """Place, direction, hand, what is ahead, and what the agent has changed; another text as it is."""
        shown = read_room_state(state)
        if shown is None:
            return state
        changed = ", ".join(f"{thing} at {list(place)}" for place, thing in sorted(shown.changed.items()))
        after = f"; changed: {changed}" if changed else ""
        return f"{_pose(shown)}, carrying {shown.carries}; ahead: {_ahead(shown)}{after}"

    def goal(self, task: str) -> str:
        """The task without what the actions do, which the template shows elsewhere."""
        return without_meanings(task)

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`pose`, `hand`, `ahead` and `view`, the things in view with their places."""
        shown = read_room_state(state)
        if shown is None:
            return {"pose": state, "hand": "unknown", "ahead": "unknown", "view": "unknown"}
        things = [f"{thing} at {list(place)}" for place, thing in sorted(shown.seen.items()) if thing not in _UNLISTED]
        free = [str(list(place)) for place, thing in sorted(shown.seen.items()) if thing == NOTHING]
        view = [*things, *([f"free cells {', '.join(free)}"] if free else [])]
        return {
            "pose": _pose(shown),
            "hand": shown.carries,
            "ahead": _ahead(shown),
            "view": "; ".join(view) or NOTHING,
        }


def _pose(shown: ShownRoom) -> str:
    return f"{list(shown.place)} facing {FACINGS[shown.facing]}"


def _ahead(shown: ShownRoom) -> str:
    return shown.seen.get(shown.ahead, "not in view")
