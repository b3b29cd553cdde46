"""Minigrid's environments in words.

* `MinigridFacts` - place, direction, hand, what is ahead, and the things in view
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.envs.minigrid.matching import FACINGS, NOTHING, ShownRoom, read_room_state
from drift_agents.policy.facts import PlainFacts, without_meanings

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
