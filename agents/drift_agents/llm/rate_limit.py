"""The rate limits of a server, for all threads together.

* `RateLimiter` - concurrent requests, and requests and tokens a minute
* `RequestSlot` - one admitted request

It is our own because packages lack what the tests hold: a request is admitted by an estimate of its tokens, which the
real number replaces afterwards, and a server's `Retry-After` stops all threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from drift_agents.checks import check_integer
from drift_agents.llm.wait_clock import WaitClock, WallClock

MINUTE = 60.0


class RequestSlot:
    """One admitted request.

    Args:
        at: when it was admitted.
        used: its tokens: an estimate, until the real number is set.
    """

    def __init__(self, at: float, used: int) -> None:
        self.at, self.used = at, used


class RateLimiter:
    """Concurrent requests, and requests and tokens a minute, for all threads together.

    Concurrency adapts: it is halved when the server limits the rate, and rises by one after as many answers as
    requests run at a time, up to `concurrency`. Requests and tokens are counted over the last minute. A request whose
    tokens alone exceed the limit is admitted when no other is counted; otherwise it would wait for ever.

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
        ...     slot.used = 140  # the real number, known afterwards
    """

    def __init__(
        self,
        concurrency: int = 8,
        requests: int | None = None,
        tokens: int | None = None,
        clock: WaitClock | None = None,
    ) -> None:
        check_integer("concurrency", concurrency)
        self.requests = check_integer("requests", requests, optional=True)
        self.tokens = check_integer("tokens", tokens, optional=True)
        self._clock: WaitClock = WallClock() if clock is None else clock
        self.concurrency = self.allowed = concurrency
        self._running = self._answers = 0
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._recent: deque[RequestSlot] = deque()
        self._not_before = 0.0

    @contextmanager
    def slot(self, tokens: int) -> Iterator[RequestSlot]:
        """Wait until a request is admitted, and hold its place.

        Args:
            tokens: an estimate for prompt and answer.

        Yields:
            The slot; the caller sets `used` to the real number.
        """
        with self._free:
            self._free.wait_for(lambda: self._running < self.allowed)
            self._running += 1
        try:
            yield self._admit(tokens)
        finally:
            with self._free:
                self._running -= 1
                self._free.notify_all()

    def pause(self, seconds: float) -> None:
        """Admit no request for this time, and half as many at a time afterwards.

        Requests that ran at the same time are refused together, so the number is halved once a pause.
        """
        with self._lock:
            now = self._clock.now()
            if now >= self._not_before:
                self.allowed, self._answers = max(1, self.allowed // 2), 0
            self._not_before = max(self._not_before, now + seconds)

    def succeed(self) -> None:
        """Count an answer; after as many as run at a time one more is admitted."""
        with self._free:
            self._answers += 1
            if self._answers >= self.allowed and self.allowed < self.concurrency:
                self.allowed, self._answers = self.allowed + 1, 0
                self._free.notify_all()

    def _admit(self, tokens: int) -> RequestSlot:
        while True:
            with self._lock:
                now = self._clock.now()
                seconds = self._seconds_left(now, tokens)
                if seconds <= 0:
                    slot = RequestSlot(now, tokens)
                    self._recent.append(slot)
                    return slot
            self._clock.sleep(seconds)

    def _seconds_left(self, now: float, tokens: int) -> float:
        """The time until the limits admit one more request with this number of tokens."""
        while self._recent and self._recent[0].at <= now - MINUTE:
            self._recent.popleft()
        seconds = self._not_before - now
        if self.requests is not None and len(self._recent) >= self.requests:
            seconds = max(seconds, self._recent[-self.requests].at + MINUTE - now)
        if self.tokens is not None:
            total = tokens + sum(slot.used for slot in self._recent)
            for slot in self._recent:
                if total <= self.tokens:
                    break
                total -= slot.used
                seconds = max(seconds, slot.at + MINUTE - now)
        return seconds
