"""All language models of a run.

* `Service` - makes models that share circuit breaker, budget and recorded replies
* `Totals` - counts of requests, tokens and money
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from drift_agents.llm.base import Model
from drift_agents.llm.budget import Budget, Price, check_price
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.llm.served import RETRIES, CircuitBreaker, ServedModel


class Totals(NamedTuple):
    """Counts of requests, tokens and money.

    Args:
        answered: requests that servers answered.
        recorded: requests with a recorded reply.
        tokens: of prompts and answers, as counted by the servers; those of recorded replies are not included.
        cost: the money for these tokens.
        cut: replies that were cut since they were too long.
        ignored: further keys in answers, which were left out.
    """

    answered: int
    recorded: int
    tokens: int
    cost: float
    cut: int = 0
    ignored: int = 0


class Service:
    """Makes models that share circuit breaker, budget and recorded replies.

    The breaker belongs to one server, that is to one address; the budget is for all servers together, and recorded
    replies of earlier commands count towards it. A server gets as many requests at a time as threads send them.

    Args:
        replies: where replies are recorded, or read from; nowhere if not given.
        key_file: a file with the servers' key, in the place of the environment variable.
        timeout: seconds to wait for an answer.
        budget: tokens and money for all requests.
        retries: repeated requests after failures, at the most.
        monitor: counts invalid answers, and raises an error when they are too many; none if not given.
        note: called with a sentence about what a server refuses.

    Example:
        >>> Service(budget=Budget(tokens=10**6)).model("qwen3:4b", base_url="http://127.0.0.1:11434/v1").name
        'qwen3:4b'
    """

    default_model: str | None = None
    """The model of policies that name none; an error if there is none either."""

    def __init__(
        self,
        *,
        replies: ReplyStore | None = None,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 120.0,
        budget: Budget | None = None,
        retries: int = RETRIES,
        monitor: AnswerMonitor | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.replies, self.timeout, self.retries, self.monitor = replies, timeout, retries, monitor
        self.budget = Budget() if budget is None else budget
        self._key_file, self._note = key_file, note
        self._stopped = threading.Event()
        self._breakers: dict[str, CircuitBreaker] = {}
        self._models: dict[tuple[object, ...], ServedModel] = {}
        self._clients: list[OpenAICompatible] = []
        self._counted: set[tuple[str, str]] = set()
        self._before = (0, 0.0)
        self._lock = threading.Lock()

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
            name, base_url=base_url, key_file=self._key_file, form=form, timeout=self.timeout, note=self._note
        )
        arguments = (name, client.base_url, form, checked_price)
        with self._lock:
            if arguments not in self._models:
                self._clients.append(client)
                self._count_records(client, checked_price)
                self._models[arguments] = ServedModel(
                    client,
                    self.replies,
                    breaker=self._breakers.setdefault(client.base_url, CircuitBreaker()),
                    budget=self.budget,
                    price=checked_price,
                    retries=self.retries,
                    stopped=self._stopped,
                    monitor=self.monitor,
                )
            return self._models[arguments]

    def _count_records(self, client: OpenAICompatible, price: Price) -> None:
        """Count what the recorded replies of a model cost, once, when the budget has a limit."""
        place = (client.base_url, client.name)
        if self.replies is None or self.replies.read_only or not self.budget.is_limited or place in self._counted:
            return
        self._counted.add(place)
        tokens_in, tokens_out, cached = self.replies.spent(client.identity)
        tokens, cost = tokens_in + tokens_out, price.of(tokens_in, tokens_out, cached)
        self._before = (self._before[0] + tokens, self._before[1] + cost)
        self.budget.spend(tokens, cost)

    def stop(self) -> None:
        """Send no further request; those that are running are completed and recorded."""
        self._stopped.set()

    def close(self) -> None:
        """Close the connections, and the file of replies, if there is one."""
        for client in self._clients:
            client.close()
        if self.replies is not None:
            self.replies.close()

    def totals(self) -> Totals:
        """Return the counts so far."""
        return Totals(
            sum(model.answered for model in self._models.values()),
            0 if self.replies is None else self.replies.hits,
            self.budget.tokens_spent - self._before[0],
            self.budget.money_spent - self._before[1],
            sum(client.cut for client in self._clients),
            sum(model.ignored for model in self._models.values()),
        )
