"""When two states of a text house, and what they lead to, count as the same.

* `HouseMatching` - place, hand, and what was done so far; the task while something was done
* `ShownHouse` - a state of a house as its JSON text shows it
* `read_house_state` - from the text to that
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from drift_agents.matching import Exact
from drift_agents.types import Transition

NOTHING = "nothing"
"""What a state shows for an empty hand, and as the place before the first step."""

_TEXTS = ("task", "at", "door", "holds", "says")
_LISTS = ("sees", "done", "opened", "visited")


class ShownHouse(NamedTuple):
    """A state of a house, parsed from its JSON text.

    Args:
        house: the number of the house.
        task: the task in words.
        at: the furniture where the agent stands, or `nothing`.
        door: `open`, `closed` or `locked`, or `none` where it has no door.
        holds: the thing in the hand, or `nothing`.
        says: the last answer, where the other fields do not show it.
        sees: the things that are seen.
        done: the commands of this episode that had an effect.
        opened: the furniture that is open.
        visited: the furniture into which the agent has looked in this episode.
    """

    house: int
    task: str
    at: str
    door: str
    holds: str
    says: str
    sees: tuple[str, ...]
    done: tuple[str, ...]
    opened: tuple[str, ...]
    visited: tuple[str, ...]

    @property
    def is_seen(self) -> bool:
        """Whether the agent sees into or onto the furniture where it stands."""
        return self.at != NOTHING and self.door in ("none", "open")


@lru_cache(maxsize=32768)
def read_house_state(state: str) -> ShownHouse | None:
    """Parse a state; `None` if the text is no state of a house.

    Args:
        state: the text state.

    Example:
        >>> text = '{"house": 7, "task": "put a mug in bed", "at": "bed 1", "door": "none", "sees": ["book 1"], '
        >>> shown = read_house_state(text + '"holds": "nothing", "done": [], "opened": [], "visited": [], "says": ""}')
        >>> shown.at, shown.sees, shown.is_seen
        ('bed 1', ('book 1',), True)
    """
    try:
        shown = json.loads(state)
        texts = [str(shown[name]) for name in _TEXTS]
        lists = [tuple(map(str, shown[name])) for name in _LISTS]
        return ShownHouse(int(shown["house"]), *texts, *lists)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class HouseMatching(Exact):
    """Place, hand and what was done so far; the task while something was done.

    With an empty hand and nothing done, no command can complete a task, so that records of one task apply to all
    others in the same house. As soon as something was done the task belongs to the state. What was opened and
    visited before does not: it decides what is seen of furniture, so an outcome that shows a closed door is the
    same as one that shows what is behind it.

    Texts that are no states of a house are compared as they are.

    Example:
        >>> rule = HouseMatching()
        >>> one = '{"house": 7, "task": "put a mug in bed", "at": "bed 1", "door": "none", "sees": [], '
        >>> one += '"holds": "nothing", "done": [], "opened": [], "visited": ["bed 1"], "says": ""}'
        >>> rule.state_key(one) == rule.state_key(one.replace("a mug", "a cup"))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("bed 1", "sofa 1"))
        False
    """

    name = "house"

    def state_key(self, state: str) -> Hashable:
        """House, place, hand and what was done; the task if anything was done."""
        shown = read_house_state(state)
        if shown is None:
            return super().state_key(state)
        return (shown.house, shown.at, shown.holds, shown.done, shown.task if shown.done else "")

    def path_key(self, state: str) -> Hashable:
        """The key with the task and what is open: a path leads to the score of its own task, through opened doors."""
        shown = read_house_state(state)
        return super().state_key(state) if shown is None else (self.state_key(state), shown.task, shown.door)

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score, end, place, hand, what was done and what is seen are the same."""
        if a.outcome.score != b.outcome.score or a.outcome.ended != b.outcome.ended:
            return False
        one, other = read_house_state(a.outcome.state), read_house_state(b.outcome.state)
        if one is None or other is None:
            return super().same_outcome(a, b)
        if (one.at, one.holds, one.done, one.says) != (other.at, other.holds, other.done, other.says):
            return False
        if not (one.is_seen and other.is_seen):
            return "locked" not in (one.door, other.door) or one.door == other.door
        return set(one.sees) == set(other.sees)

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`.

        In the same house they are where nothing was done yet, where something was treated, and under the same task;
        in another house where nothing was done, since kinds of things are kept in like places.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_house_state(state), read_house_state(other)
        if here is None or there is None or not there.done:
            return True
        return here.house == there.house or len(there.done) > 1
