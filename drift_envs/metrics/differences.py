"""What differs between two phases of a schedule, and how well a statement about it agrees.

A statement is plain data: `{"changes": [{"knob": "slip", "old": 0.0, "new": 0.6}]}`; `old` may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from drift_envs.checks import is_number
from drift_envs.errors import ArgumentError
from drift_envs.knobs import thaw
from drift_envs.schedule import Timeline
from drift_envs.utils.error_messages import show
from drift_envs.wrappers.overlay import describe_change

TOLERANCE = 1e-9
"""The relative difference up to which two numbers are the same value."""


class KnobDifference(NamedTuple):
    """A knob whose values differ.

    Args:
        knob: its name.
        old: its value before, as plain data.
        new: its value after, as plain data.
        words: the change in a few words.
    """

    knob: str
    old: Any
    new: Any
    words: str


class StatementScore(NamedTuple):
    """How well a statement agrees with what differs.

    Args:
        precision: the share of stated knobs that changed; `None` if none is stated.
        recall: the share of changed knobs that are stated; `None` if none changed.
        exact: the share of changed knobs that are stated whose values are right; `None` without such a knob.
        agreement: for each of these knobs the share of its new value that is right: tiles of a map, keys of a
            mapping, all or nothing of anything else.
    """

    precision: float | None
    recall: float | None
    exact: float | None
    agreement: dict[str, float]


def compare_phases(timeline: Timeline, before: str, after: str) -> tuple[KnobDifference, ...]:
    """The knobs whose values differ between two phases, each at its first tick of full weight, or its last tick.

    Args:
        timeline: of the schedule, with a seed.
        before: the id of a phase, as `source` or `drift-1#2`.
        after: the id of the other one.

    Raises:
        ArgumentError: if there is no such phase.

    Example:
        >>> from drift_envs.envs.make import knob_table_of
        >>> from drift_envs.schedule import load_schedule
        >>> schedule = load_schedule("frozen_lake/implicit")
        >>> timeline = Timeline(schedule, knob_table_of("DriftFrozenLake-v0"), seed=0)
        >>> compare_phases(timeline, "source", "reversal")[0].words
        'goal_rewards 3,5: 1 -> 0.5, goal_rewards 5,5: 0.5 -> 1'
    """
    phases = timeline.phase_named(before, "before"), timeline.phase_named(after, "after")
    old, new = (timeline.values(timeline.full_tick(phase)) for phase in phases)
    return tuple(
        KnobDifference(name, thaw(old[name]), thaw(new[name]), describe_change(name, old[name], new[name]))
        for name in timeline.names
        if old[name] != new[name]
    )


def score_statement(differences: Sequence[KnobDifference], statement: object) -> StatementScore:
    """Compare a statement with what differs.

    Args:
        differences: what differs.
        statement: plain data, see the module.

    Raises:
        ArgumentError: if the statement has another form, or names a knob twice.

    Example:
        >>> truth = [KnobDifference("map", ["SF", "FG"], ["SH", "FG"], ""), KnobDifference("slip", 0.0, 0.5, "")]
        >>> score_statement(truth, {"changes": [{"knob": "map", "new": ["SF", "FG"]}, {"knob": "transient", "new": 1}]})
        StatementScore(precision=0.5, recall=0.5, exact=0.0, agreement={'map': 0.75})
    """
    stated = _read(statement)
    changed = {difference.knob: difference for difference in differences}
    hits = [name for name in changed if name in stated]
    right = [name for name in hits if _is_exact(changed[name], stated[name])]
    return StatementScore(
        precision=len(hits) / len(stated) if stated else None,
        recall=len(hits) / len(changed) if changed else None,
        exact=len(right) / len(hits) if hits else None,
        agreement={name: _agreement(changed[name].new, stated[name].get("new")) for name in hits},
    )


def _read(statement: object) -> dict[str, Mapping[str, Any]]:
    """The stated changes by their knobs."""
    changes = statement.get("changes") if isinstance(statement, Mapping) else None
    if not isinstance(changes, list):
        raise ArgumentError(f"`statement` should be an object with a list `changes`. Received {show(statement)}")
    stated: dict[str, Mapping[str, Any]] = {}
    for number, change in enumerate(changes):
        name = change.get("knob") if isinstance(change, Mapping) else None
        if not isinstance(name, str):
            raise ArgumentError(
                f"`changes[{number}]` of the statement should be an object with `knob`. Received {show(change)}"
            )
        if name in stated:
            raise ArgumentError(f"`changes` of the statement should name each knob once. Received {name!r} twice")
        stated[name] = change
    return stated


def _is_exact(truth: KnobDifference, change: Mapping[str, Any]) -> bool:
    """Whether the new value is right, and the old one too if it is stated."""
    return _agree(truth.new, change.get("new")) and ("old" not in change or _agree(truth.old, change["old"]))


def _agree(truth: Any, value: Any) -> bool:
    if isinstance(truth, Mapping):
        return (
            isinstance(value, Mapping) and set(truth) == set(value) and all(_agree(truth[k], value[k]) for k in truth)
        )
    if isinstance(truth, list):
        return isinstance(value, list) and len(truth) == len(value) and all(map(_agree, truth, value))
    if is_number(truth) and is_number(value):
        return math.isclose(truth, value, rel_tol=TOLERANCE)
    return type(truth) is type(value) and bool(truth == value)


def _agreement(truth: Any, value: Any) -> float:
    """The share of a new value that is right."""
    if isinstance(truth, Mapping) and truth and isinstance(value, Mapping):
        return sum(key in value and _agree(truth[key], value[key]) for key in truth) / len(truth)
    if _is_map(truth) and _is_map(value) and [len(row) for row in truth] == [len(row) for row in value]:
        tiles, stated = "".join(truth), "".join(value)
        return sum(map(str.__eq__, tiles, stated)) / len(tiles)
    return float(_agree(truth, value))


def _is_map(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, str) and row for row in value)
