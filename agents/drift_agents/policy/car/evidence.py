"""What recollections say about a car on a hill, in numbers.

* `Evidence` - one recollection in numbers
* `read_evidence` - recollections into evidence, by action
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drift_agents.matching.grid import read_motion
from drift_agents.prompt.view import Recollection


class Evidence(NamedTuple):
    """One recollection in numbers.

    Args:
        x: position before.
        hill: cos(3x).
        change: change of velocity; zero where it was hidden.
        hidden: whether a wall or the speed limit hid it.
        x2: position after.
        v2: velocity after.
        n: how many responses speak for it, each as strong as memory recalls it.
        last: when it was last written, in the agent's own interactions.
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


# Recollections come back prompt after prompt as the same objects, and looking for one of many numbers costs more
# than reading it. Each stands here with its evidence, so that no other one can have its number.
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
        recollections: what the prompt says about past steps.
        actions: the admissible actions, as text; others are passed over.

    Raises:
        ArgumentError: if a state is not that of a car.
    """
    by_action: dict[str, list[Evidence]] = {action: [] for action in actions}
    for item in recollections:
        group = by_action.get(item.action)
        if group is not None:
            group.append((_read.get(id(item)) or _make(item))[1])
    return tuple(map(frozenset, by_action.values()))
