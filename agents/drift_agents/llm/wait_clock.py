"""Time and waiting, as arguments: a stopped run wakes its threads, and tests need not wait.

* `WaitClock` - the protocol; tests replace it
* `WallClock` - real time
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from drift_agents.errors import StoppedError

STOPPED = "not sent, the run was stopped"
"""The message of `StoppedError`."""


class WaitClock(Protocol):
    """Time and waiting. No result depends on it."""

    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class WallClock:
    """Real time.

    Args:
        stopped: when it is set, all threads that sleep wake up with an error.

    Example:
        >>> clock = WallClock()
        >>> clock.stopped.set()
        >>> clock.sleep(1e9)
        Traceback (most recent call last):
        drift_agents.errors.StoppedError: not sent, the run was stopped
    """

    def __init__(self, stopped: threading.Event | None = None) -> None:
        self.stopped = threading.Event() if stopped is None else stopped

    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            StoppedError: if `stopped` is set, before or meanwhile.
        """
        if self.stopped.wait(min(seconds, threading.TIMEOUT_MAX)):
            raise StoppedError(STOPPED)
