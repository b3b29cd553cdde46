"""Time, as far as waiting for a server needs it; tests bring their own.

* `WaitClock` - the protocol
* `WallClock` - the real one, whose sleepers can be woken for good
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from drift_agents.errors import StoppedError


class WaitClock(Protocol):
    """Time that passes, and waiting. No result depends on it."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        ...


class WallClock:
    """The real one.

    Args:
        stopped: whoever sets it wakes all who sleep, since nothing is left to wait for.

    Example:
        >>> clock = WallClock()
        >>> clock.stopped.set()
        >>> clock.sleep(1e9)
        Traceback (most recent call last):
        drift_agents.errors.StoppedError: not asked, the run was stopped
    """

    def __init__(self, stopped: threading.Event | None = None) -> None:
        self.stopped = threading.Event() if stopped is None else stopped

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait so long.

        Raises:
            StoppedError: if everything is stopped before or meanwhile.
        """
        if self.stopped.wait(min(seconds, threading.TIMEOUT_MAX)):
            raise StoppedError("not asked, the run was stopped")
