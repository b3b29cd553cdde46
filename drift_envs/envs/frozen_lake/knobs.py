"""The knobs of the frozen lake, with the rules between their values, and maps drawn from a seed.

A map is drawn until it meets every condition of the arguments; the number of attempts is bounded, and giving up is an
error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import MAPS

from drift_envs.checks import check_flag, check_integer, check_number, is_number
from drift_envs.envs.frozen_lake.dynamics import (
    Map,
    breaks_shortest_paths,
    discounted_values,
    distances,
    greedy_actions,
    horizon_values,
    share_of_open_paths,
    shortest_path,
    tiles,
    transitions,
)
from drift_envs.envs.poison import poison_knob, poison_rule
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value

ATTEMPTS = 5000
"""Maps that are drawn before giving up."""

HORIZON = 100
"""The step limit that values on slippery ice refer to."""


@dataclass(frozen=True)
class NewMap:
    """The arguments of a map that is drawn from nothing.

    Args:
        size: rows and columns.
        holes: how many holes.
        goals: the goals as `"row,column"`; the far corner by default. Each must be reachable
            without crossing another.
        slip: slip of the ice that `optimum` refers to.
        optimum: the least probability with which the best policy reaches a goal within 100 steps.
    """

    size: int = 6
    holes: int = 9
    goals: tuple[str, ...] = ()
    slip: float = 0.0
    optimum: float = 0.0

    @property
    def goal_states(self) -> list[int]:
        """The goals as states."""
        pairs = [tuple(int(part) for part in goal.split(",")) for goal in self.goals]
        return sorted(row * self.size + column for row, column in pairs) or [self.size * self.size - 1]


@dataclass(frozen=True)
class MovedHoles:
    """The arguments of a map that comes from the one beneath.

    Args:
        move: how many holes go elsewhere.
        break_shortest_paths: whether every shortest path of the map beneath must be cut.
        open_paths: the least and the largest share of the shortest paths of the map beneath that must stay walkable.
        slip: slip of the ice that the next two refer to.
        optimum: the least probability with which the best policy reaches a goal within 100 steps.
        old_at_most: the share of the new optimum that any policy which was optimal on the map
            beneath may still reach, whatever way it breaks ties.
        old_at_least: the share that one of them must still reach.
    """

    move: int
    break_shortest_paths: bool = False
    open_paths: tuple[float, float] = (0.0, 1.0)
    slip: float = 0.0
    optimum: float = 0.0
    old_at_most: float = 1.0
    old_at_least: float = 0.0


def draw_map(arguments: Mapping[str, Any], below: Map | None, generator: np.random.Generator) -> Map:
    """A map drawn from the seed.

    Args:
        arguments: with `move` those of `MovedHoles`, otherwise those of `NewMap`.
        below: the map that the layers beneath give; `MovedHoles` needs one.
        generator: every draw comes from it.

    Returns:
        A map on which every goal is reachable and that meets all conditions.

    Raises:
        KnobError: if an argument breaks a rule, or no map was found.

    Example:
        >>> old = draw_map({"size": 5, "holes": 5}, None, np.random.default_rng(0))
        >>> new = draw_map({"move": 2, "break_shortest_paths": True}, old, np.random.default_rng(1))
        >>> "".join(old).count("H"), "".join(new).count("H"), breaks_shortest_paths(old, new)
        (5, 5, True)
    """
    if "move" in arguments:
        if below is None:
            raise KnobError("`draw.move` needs a map beneath it, a base has none. Name `size` and `holes` instead")
        moved = _moved_holes(arguments, below)
        return _search(arguments, lambda: _move(moved, below, generator), lambda lake: _is_fair(moved, below, lake))
    new = _new_map(arguments)
    return _search(arguments, lambda: _scatter(new, generator), lambda lake: _is_good(new, lake))


@lru_cache(maxsize=1024)
def ice_value(lake: Map, slip: float) -> float:
    """The probability with which the best policy reaches a goal within `HORIZON` steps.

    Args:
        lake: the map.
        slip: probability of not moving as intended.

    Example:
        >>> ice_value(("SFFG",), 0.0)
        1.0
    """
    values = horizon_values(transitions(lake, slip=slip), HORIZON)
    return float(values[HORIZON, tiles(lake).index("S")])


@lru_cache(maxsize=256)
def _best_actions(lake: Map, slip: float) -> np.ndarray:
    """Every action that some optimal policy takes; the discount prefers the shorter of two sure ways."""
    return greedy_actions(discounted_values(transitions(lake, slip=slip))[1])


def _search(arguments: Mapping[str, Any], propose: Callable[[], Map], accept: Callable[[Map], bool]) -> Map:
    """The first proposal that is accepted."""
    for _ in range(ATTEMPTS):
        lake = propose()
        if accept(lake):
            return lake
    raise KnobError(f"no map meets {dict(arguments)!r} within {ATTEMPTS} attempts; relax the conditions")


def _scatter(new: NewMap, generator: np.random.Generator) -> Map:
    """Holes on random tiles."""
    letters = ["F"] * (new.size * new.size)
    letters[0] = "S"
    for goal in new.goal_states:
        letters[goal] = "G"
    free = [state for state, letter in enumerate(letters) if letter == "F"]
    for hole in generator.choice(len(free), size=new.holes, replace=False):
        letters[free[hole]] = "H"
    return _fold(letters, new.size)


def _move(moved: MovedHoles, below: Map, generator: np.random.Generator) -> Map:
    """Some holes taken away, and as many made where there were none."""
    letters = list(tiles(below))
    holes = [state for state, letter in enumerate(letters) if letter == "H"]
    free = [state for state, letter in enumerate(letters) if letter == "F"]
    closed = generator.choice(len(holes), size=moved.move, replace=False)
    opened = generator.choice(len(free), size=moved.move, replace=False)
    for place in closed:
        letters[holes[place]] = "F"
    for place in opened:
        letters[free[place]] = "H"
    return _fold(letters, len(below[0]))


def _fold(letters: list[str], columns: int) -> Map:
    return tuple("".join(letters[first : first + columns]) for first in range(0, len(letters), columns))


def _is_solvable(lake: Map) -> bool:
    """Whether every goal can be reached without crossing another."""
    found = distances(lake)
    return all(found[state] >= 0 for state, letter in enumerate(tiles(lake)) if letter == "G")


def _is_good(new: NewMap, lake: Map) -> bool:
    return _is_solvable(lake) and (not new.optimum or ice_value(lake, new.slip) >= new.optimum)


def _is_fair(moved: MovedHoles, below: Map, lake: Map) -> bool:
    """Whether the new map meets every condition; the cheap ones are checked first."""
    if not _is_solvable(lake) or (moved.break_shortest_paths and not breaks_shortest_paths(below, lake)):
        return False
    least, most = moved.open_paths
    if (least, most) != (0.0, 1.0) and not least <= share_of_open_paths(below, lake) <= most:
        return False
    if not moved.optimum and moved.old_at_most >= 1.0 and not moved.old_at_least:
        return True
    best = ice_value(lake, moved.slip)
    if best < moved.optimum:
        return False
    if moved.old_at_most >= 1.0 and not moved.old_at_least:
        return True
    # The best of all policies that were optimal beneath: backward induction over their actions alone.
    old = horizon_values(transitions(lake, slip=moved.slip), HORIZON, _best_actions(below, moved.slip))
    carried = float(old[HORIZON, tiles(lake).index("S")])
    return moved.old_at_least * best <= carried <= moved.old_at_most * best


def _new_map(arguments: Mapping[str, Any]) -> NewMap:
    """The arguments of a new map, checked."""
    given = _known(arguments, NewMap)
    goals = given.pop("goals", ())
    if not isinstance(goals, (list, tuple)) or not all(isinstance(goal, str) for goal in goals):
        raise KnobError(f"`draw.goals` should be a list of 'row,column'. Received {goals!r}")
    size = _whole("size", given.get("size", NewMap.size), 2, 32)
    _whole("holes", given.get("holes", NewMap.holes), 0, size * size - 2)
    for goal in goals:
        parts = goal.split(",")
        if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) < size for part in parts):
            raise KnobError(f"`draw.goals` should lie on the {size} x {size} map as 'row,column'. Received {goal!r}")
        if all(int(part) == 0 for part in parts):
            raise KnobError(f"`draw.goals` should not lie on the start. Received {goal!r}")
    new = NewMap(**given, goals=tuple(goals))
    if new.holes > size * size - 1 - len(new.goal_states):
        raise KnobError(f"`draw.holes` should leave start and goals free. Received {new.holes}")
    _shares(slip=new.slip, optimum=new.optimum)
    return new


def _moved_holes(arguments: Mapping[str, Any], below: Map) -> MovedHoles:
    """The arguments of moved holes, checked against the map beneath."""
    given = _known(arguments, MovedHoles)
    shares = given.pop("open_paths", MovedHoles.open_paths)
    if not isinstance(shares, (list, tuple)) or len(shares) != 2:
        raise KnobError(f"`draw.open_paths` should be two shares, the least and the largest. Received {shares!r}")
    least, most = shares
    _shares(open_paths=least)
    check_number("draw.open_paths", most, least, 1, error=KnobError)
    moved = MovedHoles(**given, open_paths=(float(least), float(most)))
    letters = tiles(below)
    _whole("move", moved.move, 1, min(letters.count("H"), letters.count("F")))
    check_flag("draw.break_shortest_paths", moved.break_shortest_paths, error=KnobError)
    _shares(slip=moved.slip, optimum=moved.optimum, old_at_most=moved.old_at_most, old_at_least=moved.old_at_least)
    return moved


def _known(arguments: Mapping[str, Any], form: type) -> dict[str, Any]:
    """The arguments, when all of them are known."""
    known = [field.name for field in fields(form)]
    for name in arguments:
        if name not in known:
            raise KnobError(f"`draw` should have no other keys than {', '.join(known)}. Received {name!r}")
    return dict(arguments)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    return check_integer(f"draw.{name}", value, low, high, error=KnobError)


def _shares(**values: Any) -> None:
    for name, value in values.items():
        check_number(f"draw.{name}", value, 0, 1, error=KnobError)


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
