"""Repeats requests that a server did not answer.

* `RetryingModel` - a model with retries, rate limits, circuit breaker and budget
* `Backoff` - the number of retries, and the pauses between them

The loop over attempts is tenacity's.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from drift_agents.checks import check_integer
from drift_agents.errors import MissingDependencyError, ModelUnavailableError, ServerUnreachableError, StoppedError
from drift_agents.llm.base import Completion, Message, Model, count_tokens
from drift_agents.llm.budget import FREE, Budget, Price
from drift_agents.llm.circuit_breaker import CircuitBreaker, OpenCircuitError
from drift_agents.llm.monitor import AnswerMonitor
from drift_agents.llm.rate_limit import RateLimiter
from drift_agents.llm.wait_clock import STOPPED, WaitClock, WallClock

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

ANSWER_TOKENS = 256
"""The estimate for an answer without `max_tokens`, until its length is known."""


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
            raise StoppedError(STOPPED)
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
