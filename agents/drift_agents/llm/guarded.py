"""A model that is asked with patience: limits, retries, breaker and budget.

* `RetryingModel` - a model behind all of them
* `Backoff` - how long to wait between tries
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, ModelUnavailableError, StoppedError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.breaker import Breaker, OpenCircuitError
from drift_agents.llm.budget import FREE, Budget, Price
from drift_agents.llm.clock import WaitClock, WallClock
from drift_agents.llm.limits import RateLimiter
from drift_agents.llm.tokens import count_tokens

ANSWER_TOKENS = 256
"""What an answer is taken to be long where nobody limits it, until it is known."""


class Backoff(NamedTuple):
    """How long to wait between tries.

    Args:
        retries: how often a question is asked again when the server gave no answer.
        first: seconds before the first retry; they double with each one.
        longest: seconds at the most, also where the server asks for more.
    """

    retries: int = 5
    first: float = 1.0
    longest: float = 120.0

    def seconds(self, retry: int, asked: float | None) -> float:
        """How long to wait before a retry, counted from 0; what the server asked for counts more."""
        return min(self.longest, self.first * 2.0**retry if asked is None else asked)


class RetryingModel:
    """A model that is asked with patience.

    Whoever shares limits, breaker and budget shares the server. A server that asks for patience
    (status 429) makes everybody wait, and is no failure; all else that may pass is tried again.

    Args:
        model: who answers.
        limits: how fast it may be asked.
        breaker: when it is not asked any more.
        budget: what may be spent.
        price: what its tokens cost.
        backoff: how long to wait between tries.
        clock: the time.
        stopped: once it is set nothing is asked any more.

    Raises:
        ArgumentError: if there are fewer than no retries.

    Example:
        >>> from drift_agents.llm.scripted import Scripted
        >>> failing = Scripted([ModelUnavailableError("no answer", retry_after=0.0), "2"])
        >>> RetryingModel(failing).complete([Message("user", "Where to?")]).text
        '2'
    """

    def __init__(
        self,
        model: Model,
        *,
        limits: RateLimiter | None = None,
        breaker: Breaker | None = None,
        budget: Budget | None = None,
        price: Price = FREE,
        backoff: Backoff | None = None,
        clock: WaitClock | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self._stopped = threading.Event() if stopped is None else stopped
        self.model, self.name, self.price = model, model.name, price
        self.backoff = Backoff() if backoff is None else backoff
        if self.backoff.retries < 0:
            raise ArgumentError(f"`retries` should be a whole number, not negative. Received {self.backoff.retries!r}")
        self._clock: WaitClock = WallClock() if clock is None else clock
        self.limits = RateLimiter(clock=self._clock) if limits is None else limits
        self.breaker = Breaker(clock=self._clock) if breaker is None else breaker
        self.budget = Budget() if budget is None else budget
        self.answered = 0
        """Questions that were answered."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What tells its recorded replies from those of other models: whose they are."""
        inner: Mapping[str, Any] = getattr(self.model, "identity", {"model": self.name})
        return inner

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer.

        Raises:
            StoppedError: if nothing is asked any more.
            BudgetError: if the budget is spent.
            ModelUnavailableError: if there was no answer, after all retries.
            ModelError: whatever else the model raises.
        """
        longest = (parameters or {}).get("max_tokens")
        guess = count_tokens(message.content for message in messages)
        guess += longest if isinstance(longest, int) else ANSWER_TOKENS
        retry = 0
        while True:
            if self._stopped.is_set():
                raise StoppedError("not asked, the run was stopped")
            self.budget.check()
            try:
                # Inside the slot, so that who waited for one finds out what happened meanwhile.
                with self.limits.slot(guess) as slot:
                    self.breaker.check()
                    answer = self.model.complete(messages, schema, parameters, sample_index)
                    slot.used = answer.tokens_in + answer.tokens_out
                break
            except OpenCircuitError:
                raise
            except ModelUnavailableError as error:
                wait = self.backoff.seconds(retry, error.retry_after)
                self._note(error, wait)
                if retry == self.backoff.retries:
                    tries = "1 try" if retry == 0 else f"{retry + 1} tries"
                    raise ModelUnavailableError(
                        f"the model {self.name!r} gave no answer in {tries}. {error}", error.retry_after, error.is_limit
                    ) from error
                if not error.is_limit:
                    self._clock.sleep(wait)
                retry += 1
        self.breaker.succeed()
        self.answered += 1
        cost = self.price.of(answer.tokens_in, answer.tokens_out)
        self.budget.spend(answer.tokens_in + answer.tokens_out, cost)
        return replace(answer, usage=answer.usage._replace(cost=cost))

    def _note(self, error: ModelUnavailableError, wait: float) -> None:
        """Tell everybody of a failure; a server that asks for patience lives, but nobody asks it for a while."""
        if error.is_limit:
            self.breaker.succeed()
            self.limits.pause(wait)
        else:
            self.breaker.fail(str(error))
