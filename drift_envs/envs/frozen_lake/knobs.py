"""The knobs of the frozen lake: what may be set, and the rules that hold between the values.

* `FROZEN_LAKE_KNOBS` - the table: map, slip, goal_rewards, transient, poison_after
* `parse_map` - the canonical form of a map, or what is wrong with it
* `parse_goal_rewards` - the canonical form of rewards by goal
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gymnasium.envs.toy_text.frozen_lake import MAPS

from drift_envs.checks import is_number
from drift_envs.envs.frozen_lake.maps import draw_map
from drift_envs.envs.frozen_lake.model import Map, shortest_path
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value
from drift_envs.visits import poison_knob, poison_rule

LARGEST = 64
"""Rows and columns that a map may have; a larger one is hardly meant."""

MOST_REWARD = 1e6


def parse_map(rows: Sequence[str]) -> Map:
    """The canonical form of a map.

    Args:
        rows: strings of `S` (start), `F` (ice), `H` (hole) and `G` (goal).

    Raises:
        KnobError: if rows differ in length, a letter is unknown, or start or goal is missing.

    Example:
        >>> parse_map(["SF", "HG"])
        ('SF', 'HG')
    """
    return _parse_map(tuple(str(row) for row in rows))


@lru_cache(maxsize=1024)
def _parse_map(lake: Map) -> Map:
    if not lake or not lake[0]:
        raise KnobError(f"`map` should have at least one row and one column. Received {list(lake)!r}")
    columns = len(lake[0])
    for number, row in enumerate(lake, start=1):
        if len(row) != columns:
            raise KnobError(f"rows must have equal length, row {number} has {len(row)} of {columns}")
        unknown = sorted(set(row) - set("SFHG"))
        if unknown:
            raise KnobError(f"tiles must be one of S, F, H, G, row {number} has {', '.join(map(repr, unknown))}")
    if max(len(lake), columns) > LARGEST:
        raise KnobError(f"a map may have {LARGEST} rows and columns. Received {len(lake)} x {columns}")
    for letter, name in (("S", "start"), ("G", "goal")):
        if not any(letter in row for row in lake):
            raise KnobError(f"a map needs a {name} ({letter}). Received {list(lake)!r}")
    if shortest_path(lake) is None:
        raise KnobError(f"a goal must be reachable from the start. Received {list(lake)!r}")
    return lake


def parse_goal_rewards(rewards: Mapping[str, Any]) -> FrozenMapping:
    """The canonical form of rewards by goal.

    Args:
        rewards: rewards by `"row,column"`, both counted from 0.

    Raises:
        KnobError: if a key is no such pair or a reward no finite number.

    Example:
        >>> parse_goal_rewards({"3, 5": 1})
        FrozenMapping({'3,5': 1.0})
    """
    canonical: dict[str, float] = {}
    for key, reward in rewards.items():
        parts = str(key).split(",")
        if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
            raise KnobError(f"keys should be 'row,column', counted from 0. Received {key!r}")
        place = ",".join(str(int(part)) for part in parts)
        if place in canonical:
            raise KnobError(f"a goal should be named once. Received {key!r} twice")
        if not is_number(reward) or not abs(reward) <= MOST_REWARD:
            raise KnobError(
                f"rewards should be numbers in the interval [-{MOST_REWARD:g}, {MOST_REWARD:g}]. "
                f"Received {reward!r} for {key!r}"
            )
        canonical[place] = float(reward)
    return FrozenMapping(canonical)


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """The rule of `poison_after`, and every key of `goal_rewards` is a goal of the map."""
    yield from poison_rule(values)
    lake = values["map"]
    for place in values["goal_rewards"]:
        row, column = (int(part) for part in place.split(","))
        if row >= len(lake) or column >= len(lake[0]):
            yield (
                "goal_rewards",
                f"keys must be goal tiles of the map, {place!r} lies outside of its {len(lake)} x {len(lake[0])}",
            )
        elif lake[row][column] != "G":
            yield "goal_rewards", f"keys must be goal tiles of the map, {place!r} is {lake[row][column]!r}"


FROZEN_LAKE_KNOBS = KnobTable(
    (
        Knob(
            "map",
            tuple(MAPS["4x4"]),
            None,
            "rows of `S` (start), `F` (ice), `H` (hole) and `G` (goal); a goal must be reachable",
            kind="rows",
            parse=parse_map,
            draw=draw_map,
        ),
        Knob(
            "slip",
            0.0,
            (0.0, 1.0),
            "probability of not moving as intended but sideways, half to each side; Gymnasium's `is_slippery` is 2/3",
        ),
        Knob(
            "goal_rewards",
            FrozenMapping(),
            None,
            'reward of single goals by `"row,column"`; the others pay 1',
            kind="mapping",
            parse=parse_goal_rewards,
        ),
        Knob(
            "transient",
            0.0,
            (0.0, 1.0),
            "probability that a move leads to another free neighbouring tile, in this step only",
        ),
        poison_knob("break the ice of a tile"),
    ),
    rule=_rule,
)
