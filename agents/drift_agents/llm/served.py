"""A model of a run: its replies are recorded, its requests are repeated, and both are limited.

* `ServedModel` - a model with recorded replies, retries, circuit breaker and budget
* `pause_before` - the pause before a retry
* `CircuitBreaker`, `OpenCircuitError` - no requests for a while after repeated failures of a server

The retries are our own: those of the package `openai` cannot be interrupted, repeat a request without a growing pause
where the server requests a short one, do not cover replies that cannot be read, and are not seen by the breaker.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.checks import check_integer, check_number
from drift_agents.errors import (
    ContextLengthError,
    ModelUnavailableError,
    ReplayError,
    ServerUnreachableError,
    StoppedError,
)
from drift_agents.llm.answer_format import read_answer
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.budget import FREE, Budget, Price
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.types import Usage

RETRIES = 6
"""Default number of repeated requests after failures. Their pauses add up to a minute, over which servers count."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 120.0
"""Seconds before the first retry, doubled with each one, and at the most, also where the server requests more."""
_KEPT_USAGE = ("model_calls", "tokens_in", "tokens_out", "milliseconds")
"""What is recorded of a reply's cost; the money is computed anew from the tokens."""
_TOO_LONG = "context_too_long"
"""The recorded `finish` of a request that was too long for the model."""


def pause_before(retry: int, retry_after: float | None = None) -> float:
    """The seconds before a retry: growing with each one, and at least what the server requests.

    Cells that fail together should not return together, so up to a quarter of the pause is left out, by chance.

    Args:
        retry: its number, from 0.
        retry_after: the seconds that the server requests.

    Example:
        >>> pause_before(0, retry_after=3.0), 3.0 <= pause_before(2, retry_after=0.02) <= 4.0
        (3.0, True)
    """
    pause = FIRST_PAUSE * 2.0**retry * (1 - 0.25 * random.SystemRandom().random())
    return min(LONGEST_PAUSE, max(pause, retry_after or 0.0))


class ServedModel:
    """A model with recorded replies, retries, circuit breaker and budget.

    A recorded request is not sent. Any other is repeated after every `ModelUnavailableError`; the exceptions are an
    open circuit, and a server that has never been there. Status 429 does not count as a failure of the server.

    Args:
        model: the model that answers.
        replies: where replies are recorded, or read from; the model is never called if it is read only.
        breaker: stops requests to a server that fails repeatedly; models of one server share it.
        budget: tokens and money for all requests.
        price: of the model's tokens.
        retries: repeated requests after the first one, at the most.
        stopped: when it is set no further request is sent, and pauses end.
        monitor: counts invalid answers.

    Raises:
        ArgumentError: if the number of retries is negative.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> with TemporaryDirectory() as folder, ReplyStore(f"{folder}/replies.sqlite") as replies:
        ...     model = ServedModel(ScriptedModel(["yes"]), replies)
        ...     [model.complete([Message("user", "Is it slippery?")]).text for _ in range(2)]
        ['yes', 'yes']
    """

    def __init__(
        self,
        model: Model,
        replies: ReplyStore | None = None,
        *,
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
        price: Price = FREE,
        retries: int = RETRIES,
        stopped: threading.Event | None = None,
        monitor: AnswerMonitor | None = None,
    ) -> None:
        self.model, self.name, self.replies, self.price, self.monitor = model, model.name, replies, price, monitor
        self.retries = check_integer("retries", retries, least=0)
        self.breaker = CircuitBreaker() if breaker is None else breaker
        self.budget = Budget() if budget is None else budget
        self._stopped = threading.Event() if stopped is None else stopped
        self._identity: Mapping[str, Any] = getattr(model, "identity", {"model": model.name})
        self.answered = 0
        """Requests that were answered, and not from records."""
        self.ignored = 0
        """Further keys in answers, which were left out."""

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Return the recorded reply, or get one from the model and record it.

        Raises:
            ReplayError: if nothing is recorded and the records are read only, or their file cannot be used.
            ContextLengthError: if the request was too long for the model; this is recorded, too.
            StoppedError: if no further request is sent.
            BudgetError: if the budget is spent.
            ModelUnavailableError: if there was no answer, after all retries.
            ModelError: any other error of the model, without a retry. Errors are not recorded.
        """
        if self.replies is None:
            return self._read(self._send(messages, schema, parameters, sample_index), schema)
        request = {
            **self._identity,
            "messages": [list(message) for message in messages],
            "schema": schema,
            "parameters": dict(parameters or {}),
            "sample_index": sample_index,
        }
        question = json.dumps(request, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()
        title = str((schema or {}).get("title", ""))
        with self.replies.alone(key):
            reply = self.replies.get(key)
            if reply is None and self.replies.read_only:
                end = messages[-1].content[-120:] if messages else ""
                raise ReplayError(
                    f"{self.replies.path}: holds no reply of {self.name!r} to {title or 'a request'!r} that ends "
                    f"with {end!r}. Was it recorded with the same experiment, model, address and version?"
                )
            if reply is None:
                try:
                    answer = self._send(messages, schema, parameters, sample_index)
                except ContextLengthError as error:
                    answer = Completion(str(error), finish=_TOO_LONG)
                reply = self.replies.put(key, self.name, title, question, _to_record(answer))
        if reply["finish"] == _TOO_LONG:
            raise ContextLengthError(reply["text"])
        usage = Usage(**{name: reply[name] for name in _KEPT_USAGE})
        answer = Completion(reply["text"], None, usage, reply["finish"], reply.get("tokens_cached", 0))
        return self._with_cost(self._read(answer, schema))

    def report(self, is_valid: bool, is_cut: bool) -> None:
        """Count an answer after all re-asks, as `AnswerMonitor.count` does.

        Raises:
            UnusableAnswersError: if too many answers are invalid.
        """
        if self.monitor is not None:
            self.monitor.count(is_valid, is_cut)

    def _read(self, answer: Completion, schema: Mapping[str, Any] | None) -> Completion:
        """The answer with its data."""
        if schema is None:
            return answer
        data, _, ignored = read_answer(answer.text, schema)
        self.ignored += ignored
        return replace(answer, data=data)

    def _send(self, *request: Any) -> Completion:
        """Send a request until it is answered."""
        for attempt in range(self.retries + 1):
            if self._stopped.is_set():
                raise StoppedError("not sent, the run was stopped")
            self.budget.check()
            self.breaker.check()
            try:
                answer = self._with_cost(self.model.complete(*request))
            except ModelUnavailableError as error:
                failure = error
                if error.is_limit:
                    self.breaker.succeed()  # a server that answers with status 429 is up
                else:
                    self.breaker.fail(str(error))
                if isinstance(error, ServerUnreachableError) and not self.breaker.has_succeeded:
                    raise
                if attempt < self.retries:
                    self._stopped.wait(pause_before(attempt, error.retry_after))
            else:
                self.breaker.succeed()
                self.answered += 1
                self.budget.spend(answer.tokens_in + answer.tokens_out, answer.cost)
                return answer
        tries = "1 try" if self.retries == 0 else f"{self.retries + 1} tries"
        message = f"the model {self.name!r} gave no answer in {tries}. {failure}"
        raise ModelUnavailableError(message, failure.retry_after, failure.is_limit) from failure

    def _with_cost(self, answer: Completion) -> Completion:
        cost = self.price.of(answer.tokens_in, answer.tokens_out, answer.tokens_cached)
        return replace(answer, usage=answer.usage._replace(cost=cost))


def _to_record(answer: Completion) -> dict[str, Any]:
    """A reply as it is recorded."""
    used = {name: getattr(answer.usage, name) for name in _KEPT_USAGE}
    cached = {"tokens_cached": answer.tokens_cached} if answer.tokens_cached else {}
    return {"text": answer.text, **used, "finish": answer.finish, **cached}


class OpenCircuitError(ModelUnavailableError):
    """A request that was not sent, since the server failed too often."""


class CircuitBreaker:
    """Opens after failures in a row, so that cells do not each wait for a server that is down.

    While it is open every request is refused at once. After the pause one request is admitted: if it
    succeeds the breaker closes, if it fails the pause begins again.

    Args:
        failures: the number of failures in a row after which it opens.
        pause: seconds for which it stays open.
        now: the time in seconds.

    Raises:
        ArgumentError: if a value is not positive.

    Example:
        >>> breaker = CircuitBreaker(failures=1)
        >>> breaker.fail("no answer")
        >>> breaker.check()
        Traceback (most recent call last):
        drift_agents.llm.served.OpenCircuitError: not sent, after 1 failure in a row; the last one: no answer
    """

    def __init__(self, failures: int = 10, pause: float = 30.0, now: Callable[[], float] = time.monotonic) -> None:
        self.failures, self.pause = check_integer("failures", failures), check_number("pause", pause, "(0, inf)")
        self._now, self._lock = now, threading.Lock()
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
            now = self._now()
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
                self._open_until = self._now() + self.pause
