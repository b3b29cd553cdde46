"""Recollections of a mountain car as numbers.

* `Evidence` - one recollection as numbers
* `read_evidence` - recollections into evidence, by action
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drift_agents.envs.mountain_car.matching import read_motion
from drift_agents.prompt.view import Recollection


class Evidence(NamedTuple):
    """One recollection as numbers.

    Args:
        x: position before.
        hill: cos(3x).
        change: change of velocity; zero where it was hidden.
        hidden: whether a wall or the speed limit hid it.
        x2: position after.
        v2: velocity after.
        n: the number of responses times their weight.
        last: when it was last written, in the agent's interactions.
        won: whether the episode ended there with a score.
    """

    x: float
    hill: float
    change: float
    hidden: bool
    x2: float
    v2: float
    n: float
    last: int
    won: bool


# Consecutive prompts share recollection objects, and hashing one costs more than parsing it. So they are cached by
# id; each is kept together with its evidence, so that its id is not used again.
_read: dict[int, tuple[Recollection, Evidence]] = {}
_KEPT = 1 << 16


def _make(item: Recollection) -> tuple[Recollection, Evidence]:
    motion = read_motion(item.state, item.outcome.state)
    hidden = motion.low != motion.high
    won = item.outcome.ended and item.outcome.score > 0
    change = 0.0 if hidden else motion.low
    made = Evidence(motion.x, motion.hill, change, hidden, motion.x2, motion.v2, item.support, item.last, won)
    if len(_read) >= _KEPT:
        _read.clear()
    _read[id(item)] = item, made
    return item, made


def read_evidence(recollections: Iterable[Recollection], actions: Sequence[str]) -> tuple[frozenset[Evidence], ...]:
    """Recollections into evidence, one set for each action; their order does not matter.

    Args:
        recollections: those of the prompt.
        actions: the admissible actions, as text; recollections of other actions are skipped.

    Raises:
        ArgumentError: if a state is not that of a car.
    """
    by_action: dict[str, list[Evidence]] = {action: [] for action in actions}
    for item in recollections:
        group = by_action.get(item.action)
        if group is not None:
            group.append((_read.get(id(item)) or _make(item))[1])
    return tuple(map(frozenset, by_action.values()))
