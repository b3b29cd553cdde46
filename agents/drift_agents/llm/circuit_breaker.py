"""No requests for a while after repeated failures of a server.

* `CircuitBreaker` - opens after failures in a row
* `OpenCircuitError` - a request that was not sent because of it

It is our own because packages lack what the tests hold: after a pause exactly one request tests the server.
"""

from __future__ import annotations

import threading

from drift_agents.checks import check_integer, check_number
from drift_agents.errors import ModelUnavailableError
from drift_agents.llm.wait_clock import WaitClock, WallClock


class OpenCircuitError(ModelUnavailableError):
    """A request that was not sent, since the server failed too often."""


class CircuitBreaker:
    """Opens after failures in a row, so that cells do not each wait for a server that is down.

    While it is open every request is refused at once. After the pause one request is admitted: if it
    succeeds the breaker closes, if it fails the pause begins again.

    Args:
        failures: the number of failures in a row after which it opens.
        pause: seconds for which it stays open.
        clock: the time.

    Raises:
        ArgumentError: if a value is not positive.

    Example:
        >>> breaker = CircuitBreaker(failures=1)
        >>> breaker.fail("no answer")
        >>> breaker.check()
        Traceback (most recent call last):
        drift_agents.llm.circuit_breaker.OpenCircuitError: not sent, after 1 failure in a row; the last one: no answer
    """

    def __init__(self, failures: int = 10, pause: float = 30.0, clock: WaitClock | None = None) -> None:
        self.failures, self.pause = check_integer("failures", failures), check_number("pause", pause, "(0, inf)")
        self._clock: WaitClock = WallClock() if clock is None else clock
        self._lock = threading.Lock()
        self._count, self._last = 0, ""
        self._open_until = 0.0
        self.has_succeeded = False
        """Whether the server has ever answered."""

    def check(self) -> None:
        """Return if a request may be sent.

        Raises:
            OpenCircuitError: if the breaker is open.
        """
        with self._lock:
            if self._count < self.failures:
                return
            now = self._clock.now()
            if now < self._open_until:
                times = "1 failure" if self._count == 1 else f"{self._count} failures"
                raise OpenCircuitError(f"not sent, after {times} in a row; the last one: {self._last}")
            self._open_until = now + self.pause  # this request is the test; the others wait for its result

    def succeed(self) -> None:
        """Count an answer of the server: the breaker closes."""
        with self._lock:
            self._count, self.has_succeeded = 0, True

    def fail(self, message: str) -> None:
        """Count a failure of the server.

        Args:
            message: what happened, for later messages.
        """
        with self._lock:
            self._count, self._last = self._count + 1, message
            if self._count >= self.failures:
                self._open_until = self._clock.now() + self.pause
