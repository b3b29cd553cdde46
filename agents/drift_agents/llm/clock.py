"""Time, as far as waiting for a server needs it; tests bring their own.

* `Clock` - the protocol
* `WallClock` - the real one, whose sleepers can be woken
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Time that passes, and waiting. No result depends on it."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until somebody wakes the sleepers."""
        ...


class WallClock:
    """The real one.

    Example:
        >>> clock = WallClock()
        >>> clock.wake()
        >>> clock.sleep(1e9)
    """

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until somebody wakes the sleepers."""
        self._woken.wait(min(seconds, threading.TIMEOUT_MAX))

    def wake(self) -> None:
        """Wake everybody who sleeps, now and from now on: the run ends."""
        self._woken.set()
