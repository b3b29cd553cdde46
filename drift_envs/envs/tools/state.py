"""Where an episode at the desk stands, and one call in progress.

* `DeskState` - what was looked up and written so far
* `Transaction` - a call in progress: reads, writes, and what is looked up
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from drift_envs.envs.tools.database import Database
from drift_envs.envs.tools.rules import DeskRules

Changes = tuple[tuple[tuple[int, str], Any], ...]
"""The fields that differ from the database before any write, sorted by id and field."""

MOST_STALE = 5
"""The largest number of calls that reads can lag behind."""


class DeskState(NamedTuple):
    """What was looked up and written so far.

    Args:
        seen: the ids that a read has returned.
        changes: what was written.
        swallowed: by tool, how many writes reported success and did nothing.
        past: `changes` before each of the last calls, at most `MOST_STALE`, the last one last.
        ended: `finish` or `hand_over` once the episode is over, else empty.
    """

    seen: frozenset[int] = frozenset()
    changes: Changes = ()
    swallowed: tuple[tuple[str, int], ...] = ()
    past: tuple[Changes, ...] = ()
    ended: str = ""


class Transaction:
    """A call in progress.

    Args:
        database: the records before any write.
        rules: the rules in force.
        state: the state before the call.
    """

    def __init__(self, database: Database, rules: DeskRules, state: DeskState) -> None:
        self.database, self.rules = database, rules
        self.records: dict[int, dict[str, Any]] = {}
        """What reads have shown, by id."""
        self.seen = set(state.seen)
        self.writes = dict(state.changes)
        lag = rules.stale
        shown = state.changes if not lag else state.past[-lag] if len(state.past) >= lag else ()
        self._shown = dict(shown)

    def get(self, key: int, field: str) -> Any:
        """The value of a field now."""
        return self.writes[key, field] if (key, field) in self.writes else self.database.records[key].get(field)

    def shown(self, key: int, field: str) -> Any:
        """The value of a field as reads show it."""
        return self._shown[key, field] if (key, field) in self._shown else self.database.records[key].get(field)

    def set(self, key: int, field: str, value: Any) -> None:
        """Write a field; a value as before any write is no change."""
        if value == self.database.records[key].get(field):
            self.writes.pop((key, field), None)
        else:
            self.writes[key, field] = value

    def note(self, key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Show a record, with the ids in it.

        Args:
            key: the id of the record.
            fields: its fields as shown; keys that end in `_id` have ids.

        Returns:
            The fields.
        """
        shown = dict(fields)
        self.records[key] = {**self.records.get(key, {}), **shown}
        self.seen |= ids_in(shown)
        return shown

    @property
    def changes(self) -> Changes:
        """All writes, sorted."""
        return tuple(sorted(self.writes.items(), key=lambda pair: pair[0]))


def ids_in(value: Any) -> set[int]:
    """The ids in a record as shown: all values of keys that end in `_id`.

    Example:
        >>> sorted(ids_in({"order_id": 2001, "items": [{"item_id": 3000, "price": 5.0}]}))
        [2001, 3000]
    """
    found: set[int] = set()
    if isinstance(value, dict):
        for key, one in value.items():
            if key.endswith("_id"):
                found.add(one)
            else:
                found |= ids_in(one)
    elif isinstance(value, list):
        for one in value:
            found |= ids_in(one)
    return found
