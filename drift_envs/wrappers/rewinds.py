"""A warning for programs that keep a schedule at its beginning.

* `IdleRewinds` - counts rewinds, and warns once where they keep the first change from ever happening
* `REWINDS` - how many it takes
"""

from __future__ import annotations

import warnings

from drift_envs.errors import DriftWarning

REWINDS = 10
"""Rewinds that never reached the first change before a warning."""


class IdleRewinds:
    """Counts rewinds, and warns once where they keep the first change from ever happening.

    Args:
        name: the schedule.

    Attributes:
        is_over: whether there is nothing to count any more: it has warned, or the first change has been reached.

    Example:
        >>> rewinds = IdleRewinds("storms")
        >>> rewinds.count(has_changed=False)
        >>> rewinds.count(has_changed=True)
        >>> rewinds.is_over
        True
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle = 0
        self.is_over = False

    def count(self, has_changed: bool, stacklevel: int = 3) -> None:
        """Count a rewind.

        Args:
            has_changed: whether anything had changed before.
            stacklevel: where the warning points to, as in `warnings.warn`, seen from the caller.

        Warns:
            DriftWarning: at the tenth rewind before which nothing had changed.
        """
        if self.is_over or has_changed:
            self.is_over = True
            return
        self._idle += 1
        if self._idle == REWINDS:
            self.is_over = True
            warnings.warn(
                f"`reset(seed=...)` has rewound the schedule `{self._name}` {REWINDS} times before anything "
                "drifted: each seed starts it from its beginning. Seed only the first reset, or pass "
                '`options={"drift_clock": "continue"}` together with the seed',
                DriftWarning,
                stacklevel=stacklevel + 1,
            )
