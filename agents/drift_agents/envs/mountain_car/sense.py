"""Common sense in the valley, for rule-based message policies.

* `MountainCarSense` - the push in the direction of the motion, by what pushes did to the velocity
"""

from __future__ import annotations

import re

import numpy as np

from drift_agents.policy.message_reader.common_sense import CommonSense
from drift_agents.policy.message_reader.text import KnownOutcome, MessageText

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
_MOTION = re.compile(rf"[Pp]osition\W*? {_NUMBER}\W+(?:Current )?[Vv]elocity\W*? {_NUMBER}")

_CHANGE = re.compile(r"velocity ([+-]\d+\.\d+)")
"""What an action did to the velocity, in the format `brief`."""


class MountainCarSense(CommonSense):
    """The push in the direction of the motion, by what pushes did to the velocity in the messages."""

    follows_scores = False
    """A score that is reachable from a cell does not say from which motion in it."""

    def choose(self, read: MessageText) -> list[str]:
        """The push in the direction of the motion; all actions if none is recognised.

        Args:
            read: the parsed messages.
        """
        current = re.search(rf"Current [Pp]osition: {_NUMBER}\W+Current [Vv]elocity: {_NUMBER}", read.text)
        found = current or _MOTION.search(read.text.rpartition("current observation is")[2])
        velocity = float(found[2]) if found else 0.0
        fresh = [known for known in (*read.known, *read.elsewhere) if not read.is_stale(known)]
        direction = _push_direction([*fresh, *read.moves], float(found[1]) if found else 0.0)
        names = dict(re.findall(r"(\d) push (left|right)", read.text))
        wanted = "right" if (velocity >= 0) == (direction >= 0) else "left"
        return [action for action in read.actions if names.get(action) == wanted] or list(read.actions)


def _push_direction(steps: list[KnownOutcome], position: float) -> float:
    """How much a push to the right changes the velocity: a straight line through the steps of the messages."""
    rows, changes = [], []
    for step in steps:
        if (change := _CHANGE.match(step.outcome)) and step.action in ("0", "1", "2"):
            rows.append((np.cos(3 * position), int(step.action) - 1.0))
            changes.append(float(change[1]))
            continue
        before, after = _MOTION.search(step.before), _MOTION.search(step.outcome)
        if after and step.action in ("0", "1", "2") and abs(float(after[2])) > 1e-9:
            x, v = (float(before[1]), float(before[2])) if before else (position, np.nan)
            if not np.isnan(v):
                rows.append((np.cos(3 * x), int(step.action) - 1.0))
                changes.append(float(after[2]) - v)
    if not rows:
        return 1.0
    slope, *_ = np.linalg.lstsq(np.array(rows), np.array(changes), rcond=None)
    return float(slope[1]) if abs(slope[1]) > 1e-6 else 1.0
