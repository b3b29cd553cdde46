"""Retries, rate limits and the circuit breaker of a server.

* `RetryingModel` - a model with all of them, and with a budget
* `Backoff` - the number of retries, and the pauses between them
* `RateLimiter` - concurrent requests, and requests and tokens a minute
* `CircuitBreaker`, `OpenCircuitError` - no requests for a while after repeated failures
* `WaitClock`, `WallClock` - time; tests replace it

The loop over attempts is tenacity's. Rate limiter and breaker are our own, since the tests hold what the packages
for them do not do: a request is admitted by an estimate of its tokens, which the real number replaces afterwards; a
server's `Retry-After` stops all threads; exactly one request tests a server after a pause; and all of it runs on a
clock that is an argument, so that a stopped run wakes its threads and tests need not wait.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from drift_agents.checks import check_integer, check_number
from drift_agents.errors import MissingDependencyError, ModelUnavailableError, ServerUnreachableError, StoppedError
from drift_agents.llm.base import Completion, Message, Model, count_tokens
from drift_agents.llm.budget import FREE, Budget, Price
from drift_agents.llm.monitor import AnswerMonitor

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

MINUTE = 60.0
ANSWER_TOKENS = 256
"""The estimate for an answer without `max_tokens`, until its length is known."""
_STOPPED = "not sent, the run was stopped"


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
            raise StoppedError(_STOPPED)


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
        drift_agents.llm.retry.OpenCircuitError: not sent, after 1 failure in a row; the last one: no answer
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


class Backoff(NamedTuple):
    """The number of retries, and the pauses between them.

    Args:
        retries: repeated requests after the first attempt, at the most.
        first: seconds before the first retry; doubled with each one.
        longest: seconds at the most, also where the server requests more.
    """

    retries: int = 5
    first: float = 1.0
    longest: float = 120.0

    def seconds(self, retry: int, retry_after: float | None) -> float:
        """The pause before a retry, counted from 0; `retry_after` of the server takes precedence."""
        return min(self.longest, self.first * 2.0**retry if retry_after is None else retry_after)


class RetryingModel:
    """A model with retries, rate limits, circuit breaker and budget.

    Models of one server share its limiter and its breaker. Status 429 pauses all of them and does not count as a
    failure; every other `ModelUnavailableError` is retried after a pause of its own.

    Args:
        model: the model that answers.
        limits: how fast requests are sent.
        breaker: stops requests to a server that fails repeatedly.
        budget: tokens and money for all requests.
        price: of the model's tokens.
        backoff: number of retries and pauses.
        clock: the time.
        stopped: when it is set no further request is sent.
        monitor: counts invalid answers; used by the models around this one.

    Raises:
        ArgumentError: if the number of retries is negative.

    Example:
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> failing = ScriptedModel([ModelUnavailableError("no answer", retry_after=0.0), "2"])
        >>> RetryingModel(failing).complete([Message("user", "Where to?")]).text
        '2'
    """

    def __init__(
        self,
        model: Model,
        *,
        limits: RateLimiter | None = None,
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
        price: Price = FREE,
        backoff: Backoff | None = None,
        clock: WaitClock | None = None,
        stopped: threading.Event | None = None,
        monitor: AnswerMonitor | None = None,
    ) -> None:
        self.model, self.name, self.price, self.monitor = model, model.name, price, monitor
        self.backoff = Backoff() if backoff is None else backoff
        check_integer("retries", self.backoff.retries, least=0)
        self._clock: WaitClock = WallClock() if clock is None else clock
        self._stopped = threading.Event() if stopped is None else stopped
        self.limits = RateLimiter(clock=self._clock) if limits is None else limits
        self.breaker = CircuitBreaker(clock=self._clock) if breaker is None else breaker
        self.budget = Budget() if budget is None else budget
        self.answered = 0
        """Requests that were answered."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The part of the key of recorded replies that stands for the model."""
        inner: Mapping[str, Any] = getattr(self.model, "identity", {"model": self.name})
        return inner

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer, after retries where necessary.

        Raises:
            StoppedError: if no further request is sent.
            BudgetError: if the budget is spent.
            ModelUnavailableError: if there was no answer, after all retries.
            ModelError: any other error of the model, without a retry.
            MissingDependencyError: if `tenacity` is not installed.
        """
        answer = self._attempts()(self._send, messages, schema, parameters, sample_index)
        self.breaker.succeed()
        self.limits.succeed()
        self.answered += 1
        cost = self.price.of(answer.tokens_in, answer.tokens_out, answer.tokens_cached)
        self.budget.spend(answer.tokens_in + answer.tokens_out, cost)
        return replace(answer, usage=answer.usage._replace(cost=cost))

    def _attempts(self) -> Retrying:
        """The loop over attempts."""
        tenacity = import_tenacity()
        attempts: Retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, ModelUnavailableError) and not self._is_final(error)
            ),
            after=self._count_failure,
            stop=tenacity.stop_after_attempt(self.backoff.retries + 1),
            retry_error_callback=self._give_up,
            wait=lambda state: 0.0 if _error_of(state).is_limit else self._pause(state),
            sleep=lambda seconds: self._clock.sleep(seconds) if seconds else None,
        )
        return attempts

    def _send(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        parameters: Mapping[str, Any] | None,
        sample_index: int,
    ) -> Completion:
        """One attempt."""
        if self._stopped.is_set():
            raise StoppedError(_STOPPED)
        self.budget.check()
        longest = (parameters or {}).get("max_tokens")
        estimate = count_tokens(message.content for message in messages)
        estimate += longest if isinstance(longest, int) else ANSWER_TOKENS
        with self.limits.slot(estimate) as slot:
            self.breaker.check()  # after the wait for the slot, since the breaker may have opened meanwhile
            answer = self.model.complete(messages, schema, parameters, sample_index)
            slot.used = answer.tokens_in + answer.tokens_out
        return answer

    def _is_final(self, error: ModelUnavailableError) -> bool:
        """Whether a retry is of no use: the circuit is open, or the server has never been there."""
        if isinstance(error, ServerUnreachableError):
            return not self.breaker.has_succeeded
        return isinstance(error, OpenCircuitError)

    def _pause(self, state: RetryCallState) -> float:
        return self.backoff.seconds(state.attempt_number - 1, _error_of(state).retry_after)

    def _count_failure(self, state: RetryCallState) -> None:
        """Report a failure to limiter or breaker; a server that answers with status 429 is up."""
        error = _error_of(state)
        if error.is_limit:
            self.breaker.succeed()
            self.limits.pause(self._pause(state))
        else:
            self.breaker.fail(str(error))

    def _give_up(self, state: RetryCallState) -> NoReturn:
        error, tries = _error_of(state), state.attempt_number
        raise ModelUnavailableError(
            f"the model {self.name!r} gave no answer in {'1 try' if tries == 1 else f'{tries} tries'}. {error}",
            error.retry_after,
            error.is_limit,
        ) from error


def _error_of(state: RetryCallState) -> ModelUnavailableError:
    """The error of the attempt that has just failed."""
    error = None if state.outcome is None else state.outcome.exception()
    if not isinstance(error, ModelUnavailableError):
        raise TypeError(f"only a `ModelUnavailableError` is retried. Received {error!r}")
    return error


def import_tenacity() -> Any:
    """Import `tenacity`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import tenacity
    except ImportError as error:
        raise MissingDependencyError('`tenacity` is not installed, run `pip install "drift-envs[llm]"`') from error
    return tenacity
