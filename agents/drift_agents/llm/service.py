"""All language models of a run.

* `Service` - makes models that share rate limits, circuit breaker, budget and recorded replies
* `Totals` - counts of requests, tokens and money
* `connect` - one model, without a run
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model
from drift_agents.llm.budget import Budget, Price, check_price
from drift_agents.llm.cache import ReplayModel, ReplyStore
from drift_agents.llm.circuit_breaker import CircuitBreaker
from drift_agents.llm.connection import ConnectionPool
from drift_agents.llm.monitor import AnswerMonitor
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.rate_limit import RateLimiter
from drift_agents.llm.retry import Backoff, RetryingModel
from drift_agents.llm.server_access import KeySource
from drift_agents.llm.wait_clock import WaitClock, WallClock


class Totals(NamedTuple):
    """Counts of requests, tokens and money.

    Args:
        answered: requests that servers answered.
        recorded: requests with a recorded reply.
        tokens: of prompts and answers, as counted by the servers; those of recorded replies are not included.
        cost: the money for these tokens.
        cut: replies that were cut since they were too long.
    """

    answered: int
    recorded: int
    tokens: int
    cost: float
    cut: int = 0


class Service:
    """Makes models that share rate limits, circuit breaker, budget and recorded replies.

    Limits and breaker belong to one server, that is to one address; the budget is for all servers together, and
    recorded replies of earlier commands count towards it. All requests share one pool of connections.

    Args:
        replies: where replies are recorded, or read from; nowhere if not given.
        key: the source of the servers' key.
        timeout: seconds to wait for an answer.
        concurrency: requests at a time, for each server.
        requests: requests a minute, for each server; no limit if not given.
        tokens: tokens a minute, for each server; no limit if not given.
        budget: tokens and money for all requests.
        backoff: number of retries and pauses.
        clock: the time.
        counts_records: whether recorded replies of earlier commands count towards the budget.
        monitor: counts invalid answers, and raises an error when they are too many; none if not given.
        note: called with a sentence about what a server refuses.

    Raises:
        ArgumentError: if a limit is not positive.

    Example:
        >>> Service(requests=60).model("qwen3:4b", base_url="http://127.0.0.1:11434/v1").name
        'qwen3:4b'
    """

    default_model: str | None = None
    """The model of policies that name none; an error if there is none either."""

    def __init__(
        self,
        *,
        replies: ReplyStore | None = None,
        key: KeySource | None = None,
        timeout: float = 120.0,
        concurrency: int = 8,
        requests: int | None = None,
        tokens: int | None = None,
        budget: Budget | None = None,
        backoff: Backoff | None = None,
        clock: WaitClock | None = None,
        counts_records: bool = True,
        monitor: AnswerMonitor | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.monitor, self.note = monitor, note
        self._counts_records = counts_records
        self._spent: dict[tuple[str, str], tuple[int, int, int]] | None = None
        self._before = (0, 0.0)
        self._pool = ConnectionPool(timeout)
        self._clients: list[OpenAICompatible] = []
        self.replies, self.key, self.timeout = replies, key, timeout
        self.concurrency = concurrency
        self.budget = Budget() if budget is None else budget
        self.backoff = Backoff() if backoff is None else backoff
        self._stopped = threading.Event()
        self._clock: WaitClock = WallClock(self._stopped) if clock is None else clock
        self._rates = (requests, tokens)
        self._servers: dict[str, tuple[RateLimiter, CircuitBreaker]] = {}
        self._models: dict[tuple[object, ...], Model] = {}
        self._retrying: list[RetryingModel] = []
        self._lock = threading.Lock()
        RateLimiter(concurrency, requests, tokens)  # checks the arguments before any request

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """Return the model with these arguments; it is made once.

        Args:
            name: the server's name for it.
            base_url: the server's address; OpenAI's own if not given.
            form: the form of answers, as in `OpenAICompatible`.
            price: of a million tokens of prompts and of answers; free if not given.

        Raises:
            ArgumentError: if an argument is not valid.
        """
        checked_price = check_price(price)
        client = OpenAICompatible(
            name, base_url=base_url, key=self.key, form=form, timeout=self.timeout, pool=self._pool, note=self._tell
        )
        arguments = (name, client.base_url, form, checked_price)
        with self._lock:
            if arguments not in self._models:
                if client.base_url not in self._servers:
                    limits = RateLimiter(self.concurrency, *self._rates, clock=self._clock)
                    self._servers[client.base_url] = (limits, CircuitBreaker(clock=self._clock))
                limits, breaker = self._servers[client.base_url]
                retrying = RetryingModel(
                    client,
                    limits=limits,
                    breaker=breaker,
                    budget=self.budget,
                    price=checked_price,
                    backoff=self.backoff,
                    clock=self._clock,
                    stopped=self._stopped,
                    monitor=self.monitor,
                )
                self._retrying.append(retrying)
                self._clients.append(client)
                self._count_records(client, checked_price)
                self._models[arguments] = retrying if self.replies is None else ReplayModel(retrying, self.replies)
            return self._models[arguments]

    def _tell(self, sentence: str) -> None:
        if self.note is not None:
            self.note(sentence)

    def _count_records(self, client: OpenAICompatible, price: Price) -> None:
        """Count what the recorded replies of a model cost, once, when the budget has a limit."""
        if not self._counts_records or self.replies is None or self.replies.read_only or not self.budget.is_limited:
            return
        if self._spent is None:
            self._spent = self.replies.spent()
        tokens_in, tokens_out, cached = self._spent.pop((client.base_url, client.name), (0, 0, 0))
        tokens, cost = tokens_in + tokens_out, price.of(tokens_in, tokens_out, cached)
        self._before = (self._before[0] + tokens, self._before[1] + cost)
        self.budget.spend(tokens, cost)

    def record(self, replies: ReplyStore) -> None:
        """Record the replies of models made from now on, unless the service has a file of replies already.

        Args:
            replies: the file.
        """
        with self._lock:
            if self.replies is None:
                self.replies = replies

    def stop(self) -> None:
        """Send no further request; those that are running are completed and recorded."""
        self._stopped.set()

    def close(self) -> None:
        """Close the connections, and the file of replies, if there is one."""
        self._pool.close()
        if self.replies is not None:
            self.replies.close()

    def totals(self) -> Totals:
        """Return the counts so far."""
        return Totals(
            sum(model.answered for model in self._retrying),
            0 if self.replies is None else self.replies.hits,
            self.budget.tokens_spent - self._before[0],
            self.budget.money_spent - self._before[1],
            sum(client.cut for client in self._clients),
        )


def connect(model: str | Model, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
    """Return one model, without a run.

    Args:
        model: its name, or a model, which is returned unchanged.
        base_url: the server's address; OpenAI's own if not given.
        form: the form of answers, as in `OpenAICompatible`.
        price: of a million tokens of prompts and of answers.

    Raises:
        ArgumentError: if an argument is not valid, or a model is given together with arguments for a name.

    Example:
        >>> connect("qwen3:4b", base_url="http://127.0.0.1:11434/v1").name
        'qwen3:4b'
    """
    if isinstance(model, str):
        return Service().model(model, base_url, form, price)
    if not isinstance(model, Model):
        raise ArgumentError(f"`model` should be the name of a language model, or a model. Received {model!r}")
    if (base_url, form, price) != (None, "auto", None):
        raise ArgumentError("`base_url`, `form` and `price` belong to a model's name. Received a model beside them")
    return model
