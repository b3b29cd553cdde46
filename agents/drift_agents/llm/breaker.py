"""When a server is not asked any more.

* `Breaker` - opens after failures in a row, tries again after a while
* `OpenCircuitError` - a question that was not asked
"""

from __future__ import annotations

import threading

from drift_agents.errors import ArgumentError, ModelUnavailableError
from drift_agents.llm.clock import WaitClock, WallClock


class OpenCircuitError(ModelUnavailableError):
    """A question that was not asked, since the server failed too often."""


class Breaker:
    """Opens after failures in a row, so that many cells do not each wait for a server that is dead.

    While it is open every question is refused at once. After the pause one question is let through:
    if it is answered all is well again, if not the pause begins anew.

    Args:
        failures: after so many in a row it opens.
        pause: seconds for which it stays open.
        clock: the time.

    Raises:
        ArgumentError: if a value is not positive.

    Example:
        >>> breaker = Breaker(failures=1)
        >>> breaker.fail("no answer")
        >>> breaker.check()
        Traceback (most recent call last):
        drift_agents.llm.breaker.OpenCircuitError: not asked, after 1 failure in a row; the last one: no answer
    """

    def __init__(self, failures: int = 10, pause: float = 30.0, clock: WaitClock | None = None) -> None:
        if not isinstance(failures, int) or isinstance(failures, bool) or failures < 1:
            raise ArgumentError(f"`failures` should be a positive whole number. Received {failures!r}")
        if not pause > 0:
            raise ArgumentError(f"`pause` should be a positive number of seconds. Received {pause!r}")
        self.failures, self.pause = failures, pause
        self._clock: WaitClock = WallClock() if clock is None else clock
        self._lock = threading.Lock()
        self._row, self._last = 0, ""
        self._closed_until = 0.0

    def check(self) -> None:
        """Pass, if the server may be asked.

        Raises:
            OpenCircuitError: if it may not.
        """
        with self._lock:
            if self._row < self.failures:
                return
            now = self._clock.now()
            if now < self._closed_until:
                times = "1 failure" if self._row == 1 else f"{self._row} failures"
                raise OpenCircuitError(f"not asked, after {times} in a row; the last one: {self._last}")
            self._closed_until = now + self.pause  # this one is let through, the others wait for what becomes of it

    def succeed(self) -> None:
        """The server answered."""
        with self._lock:
            self._row = 0

    def fail(self, what: str) -> None:
        """The server did not answer.

        Args:
            what: what happened, for messages.
        """
        with self._lock:
            self._row, self._last = self._row + 1, what
            if self._row >= self.failures:
                self._closed_until = self._clock.now() + self.pause
