"""The frozen lake in words.

* `FrozenLakeFacts` - tiles by position and letter; size, destinations and actions from the task
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from drift_agents.errors import ArgumentError
from drift_agents.policy.facts import PlainFacts, without_meanings

_TASK = re.compile(
    r"of (?P<rows>\d+) rows x (?P<columns>\d+) columns.*?"
    r"total of (?P<destinations>\d+) destination\(s\): (?P<goals>[^.]*)\..*?Actions: (?P<meanings>.*)\.",
    re.DOTALL,
)


class FrozenLakeFacts(PlainFacts):
    """Tiles by position and letter; size, destinations and actions from the task.

    Example:
        >>> FrozenLakeFacts().describe_state('{"cur_pos": [1, 1], "tile_type": "H", "gold_collected": 0}')
        '[1, 1], tile H'
    """

    def describe_state(self, state: str) -> str:
        """Position and letter of the tile."""
        data = json.loads(state)
        return f"{data['cur_pos']}, tile {data['tile_type']}"

    def goal(self, task: str) -> str:
        """The task without what the actions do, which the template shows elsewhere."""
        return without_meanings(task)

    def task_fields(self, task: str) -> Mapping[str, str]:
        """`rows`, `columns`, `destinations` (their number), `goals` (where they are) and `meanings` of the actions.

        Raises:
            ArgumentError: if the task lacks one of them.
        """
        found = _TASK.search(task)
        if found is None:
            raise ArgumentError(f"the task of a lake should tell its size, destinations and actions. Received {task!r}")
        return found.groupdict()
