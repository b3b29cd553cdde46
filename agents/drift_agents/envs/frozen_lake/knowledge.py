"""The frozen lake in words: tiles by position and letter, and what the task says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from drift_agents.errors import ArgumentError
from drift_agents.policy.ranked import PlainFacts, without_meanings
from drift_agents.prompt.view import PromptView, Recollection

_TASK = re.compile(
    r"of (?P<rows>\d+) rows x (?P<columns>\d+) columns.*?"
    r"total of (?P<destinations>\d+) destination\(s\): (?P<goals>[^.]*)\..*?Actions: (?P<meanings>.*)\.",
    re.DOTALL,
)

_PLACE = re.compile(r"\[(\d+), (\d+)\]")
_Place = tuple[int, int]
HOLE = "H"


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

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """`lake`: size, destinations and highest score; the task where it does not have them."""
        found, highest = _TASK.search(view.task), self.highest_score(view.task)
        if found is None:
            return {"lake": self.goal(view.task)}
        pays = "" if highest is None else f"; highest score {highest:g}"
        return {"lake": f"{found['rows']} rows x {found['columns']} columns. Destinations: {found['goals']}{pays}."}

    def brief_outcome(self, item: Recollection) -> str:
        """The position."""
        return _place_of(item.outcome.state)

    def brief_end(self, item: Recollection) -> str:
        """The position where it ended."""
        return _place_of(item.outcome.state)

    def brief_move(self, item: Recollection) -> str:
        """The position before the step."""
        return _place_of(item.state)

    def find_barriers(self, view: PromptView) -> Mapping[str, int] | None:
        """The holes that are known, where each way to a destination leads through one; tiles never seen are open.

        Without size and destinations in the task it is not known.
        """
        task = _TASK.search(view.task)
        if task is None:
            return None
        rows, columns = int(task["rows"]), int(task["columns"])
        seen: dict[_Place, tuple[int, str]] = {}
        for item in (*view.here, *view.elsewhere):
            place, letter = _read_tile(item.outcome.state)
            seen[place] = max(seen.get(place, (-1, "")), (item.last, letter))
        holes = {place: last for place, (last, letter) in seen.items() if letter == HOLE}
        goals = {(int(row), int(column)) for row, column in _PLACE.findall(task["goals"])}
        start = _read_tile(view.state)[0]
        reached, queue = {start}, [start]
        for row, column in queue:
            for place in ((row, column - 1), (row + 1, column), (row, column + 1), (row - 1, column)):
                is_inside = 0 <= place[0] < rows and 0 <= place[1] < columns
                if is_inside and place not in reached and place not in holes:
                    reached.add(place)
                    queue.append(place)
        return None if goals & reached else {str(list(place)): last for place, last in sorted(holes.items())}

    def task_fields(self, task: str) -> Mapping[str, str]:
        """`rows`, `columns`, `destinations` (their number), `goals` (where they are) and `meanings` of the actions.

        Raises:
            ArgumentError: if the task lacks one of them.
        """
        found = _TASK.search(task)
        if found is None:
            raise ArgumentError(f"the task of a lake should tell its size, destinations and actions. Received {task!r}")
        return found.groupdict()


def _place_of(state: str) -> str:
    return str(list(_read_tile(state)[0]))


@lru_cache(maxsize=8192)
def _read_tile(state: str) -> tuple[_Place, str]:
    """The position and the letter of a state."""
    data = json.loads(state)
    row, column = data["cur_pos"]
    return (row, column), data["tile_type"]
