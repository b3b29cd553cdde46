"""How fast a server may be asked.

* `RateLimiter` - so many at a time, so many requests and tokens a minute
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from drift_agents.errors import ArgumentError
from drift_agents.llm.clock import WaitClock, WallClock

MINUTE = 60.0


class RateLimiter:
    """So many requests at a time, so many requests and tokens a minute, for all threads together.

    Requests and tokens are counted over the last minute. A request whose tokens alone are more than a
    minute allows is let through when nothing else is counted, since it would wait for ever.

    Args:
        concurrency: requests at a time.
        requests: requests a minute; no limit if not given.
        tokens: tokens a minute, prompts and answers together; no limit if not given.
        clock: the time.

    Raises:
        ArgumentError: if a limit is not positive.

    Example:
        >>> limits = RateLimiter(requests=60)
        >>> with limits.slot(tokens=100) as slot:
        ...     slot.used = 140  # what it really was, known afterwards
    """

    def __init__(
        self,
        concurrency: int = 8,
        requests: int | None = None,
        tokens: int | None = None,
        clock: WaitClock | None = None,
    ) -> None:
        for name, value in (("concurrency", concurrency), ("requests", requests), ("tokens", tokens)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if not whole and not (value is None and name != "concurrency"):
                raise ArgumentError(f"`{name}` should be a positive whole number. Received {value!r}")
        self.requests, self.tokens = requests, tokens
        self._clock: WaitClock = WallClock() if clock is None else clock
        self._slots = threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._past: deque[RequestSlot] = deque()
        self._not_before = 0.0

    @contextmanager
    def slot(self, tokens: int) -> Iterator[RequestSlot]:
        """Wait for one's turn.

        Args:
            tokens: an estimate of prompt and answer.

        Yields:
            The slot; `used` is to be set to what it really was.
        """
        with self._slots:
            slot = self._wait(tokens)
            yield slot

    def pause(self, seconds: float) -> None:
        """Let nobody ask for so long: the server wants patience."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock.now() + seconds)

    def _wait(self, tokens: int) -> RequestSlot:
        while True:
            with self._lock:
                now = self._clock.now()
                wait = self._seconds_left(now, tokens)
                if wait <= 0:
                    slot = RequestSlot(now, tokens)
                    self._past.append(slot)
                    return slot
            self._clock.sleep(wait)

    def _seconds_left(self, now: float, tokens: int) -> float:
        """How long to wait until the limits allow one more request of so many tokens."""
        while self._past and self._past[0].at <= now - MINUTE:
            self._past.popleft()
        wait = self._not_before - now
        if self.requests is not None and len(self._past) >= self.requests:
            wait = max(wait, self._past[-self.requests].at + MINUTE - now)
        if self.tokens is not None:
            total = tokens + sum(slot.used for slot in self._past)
            for slot in self._past:
                if total <= self.tokens:
                    break
                total -= slot.used
                wait = max(wait, slot.at + MINUTE - now)
        return wait


class RequestSlot:
    """One request that was let through.

    Args:
        at: when.
        used: its tokens: an estimate, until it is known.
    """

    def __init__(self, at: float, used: int) -> None:
        self.at, self.used = at, used
