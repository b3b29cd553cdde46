"""All language models of a run, or of a program: who asks through it shares what there is to share.

* `Service` - makes models that share pool, limits, breaker, budget and recorded replies
* `Totals` - what was asked so far
* `connect` - one model for a program of one's own
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model
from drift_agents.llm.breaker import Breaker
from drift_agents.llm.budget import Budget, check_price
from drift_agents.llm.cached import ReplayModel, ReplyStore
from drift_agents.llm.clock import WaitClock, WallClock
from drift_agents.llm.guarded import Backoff, RetryingModel
from drift_agents.llm.key import KeySource
from drift_agents.llm.limits import RateLimiter
from drift_agents.llm.openai_compatible import OpenAICompatible


class Totals(NamedTuple):
    """What was asked so far.

    Args:
        asked: questions to servers that were answered.
        recorded: questions whose reply was recorded already.
        tokens: of prompts and answers, as servers counted them; recorded replies do not count.
        cost: what these cost.
    """

    asked: int
    recorded: int
    tokens: int
    cost: float


class Service:
    """Makes models that share pool, limits, breaker, budget and recorded replies.

    Limits and breaker belong to a server, that is to an address; the budget to all of them.

    Args:
        replies: where replies are recorded, or read from; nowhere if not given.
        key: where the servers' key comes from.
        timeout: seconds to wait for an answer.
        concurrency: requests at a time.
        requests: requests a minute; no limit if not given.
        tokens: tokens a minute; no limit if not given.
        budget: what may be spent.
        backoff: how long to wait between tries.
        clock: the time.

    Raises:
        ArgumentError: if a limit is not positive.

    Example:
        >>> Service(requests=60).model("qwen3:4b", base_url="http://127.0.0.1:11434/v1").name
        'qwen3:4b'
    """

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
    ) -> None:
        self.replies, self.key, self.timeout = replies, key, timeout
        self.concurrency = concurrency
        self.budget = Budget() if budget is None else budget
        self.backoff = Backoff() if backoff is None else backoff
        self._stopped = threading.Event()
        self._clock: WaitClock = WallClock(self._stopped) if clock is None else clock
        self._rates = (requests, tokens)
        self._servers: dict[str, tuple[RateLimiter, Breaker]] = {}
        self._models: dict[tuple[object, ...], Model] = {}
        self._counted: list[RetryingModel] = []
        self._lock = threading.Lock()
        RateLimiter(concurrency, requests, tokens)  # refuses what cannot be meant before anything is asked

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """A model.

        Args:
            name: as the server knows it.
            base_url: where the server is; OpenAI's own if not given.
            form: how it is told to answer, as in `OpenAICompatible`.
            price: of a million tokens of prompts and of answers; free if not given.

        Returns:
            The same one for the same arguments.

        Raises:
            ArgumentError: if an argument cannot be meant.
        """
        paid = check_price(price)
        asks = OpenAICompatible(name, base_url=base_url, key=self.key, form=form, timeout=self.timeout)
        place = (name, asks.base_url, form, paid)
        with self._lock:
            if place not in self._models:
                if asks.base_url not in self._servers:
                    limits = RateLimiter(self.concurrency, *self._rates, clock=self._clock)
                    self._servers[asks.base_url] = (limits, Breaker(clock=self._clock))
                limits, breaker = self._servers[asks.base_url]
                guarded = RetryingModel(
                    asks,
                    limits=limits,
                    breaker=breaker,
                    budget=self.budget,
                    price=paid,
                    backoff=self.backoff,
                    clock=self._clock,
                    stopped=self._stopped,
                )
                self._counted.append(guarded)
                self._models[place] = guarded if self.replies is None else ReplayModel(guarded, self.replies)
            return self._models[place]

    def record(self, replies: ReplyStore) -> None:
        """Record replies there from now on, unless they are recorded or read somewhere already.

        Args:
            replies: the file.
        """
        with self._lock:
            if self.replies is None:
                self.replies = replies

    def stop(self) -> None:
        """Ask nothing any more; what is under way is still answered, and recorded."""
        self._stopped.set()

    def close(self) -> None:
        """Close the file of replies, if there is one."""
        if self.replies is not None:
            self.replies.close()

    def totals(self) -> Totals:
        """What was asked so far."""
        return Totals(
            sum(guarded.answered for guarded in self._counted),
            0 if self.replies is None else self.replies.hits,
            self.budget.tokens_spent,
            self.budget.money_spent,
        )


def connect(model: str | Model, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
    """One model for a program of one's own.

    Args:
        model: its name, or a model that is there already.
        base_url: where its server is; OpenAI's own if not given.
        form: how it is told to answer, as in `OpenAICompatible`.
        price: of a million tokens of prompts and of answers.

    Raises:
        ArgumentError: if an argument cannot be meant, or belongs to a name and a model is given.

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
