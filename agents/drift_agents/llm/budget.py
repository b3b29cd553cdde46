"""What language models cost, and what they may cost."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

from drift_agents.errors import ArgumentError, BudgetError
from drift_agents.types import NO_USAGE, Usage
from drift_envs.checks import is_number


class Price(NamedTuple):
    """Money for tokens, in any currency.

    Args:
        tokens_in: for a million tokens of prompts.
        tokens_out: for a million tokens of answers.
        tokens_cached: for a million tokens of prompts that the server had in its cache; as for others if not given.

    Example:
        >>> Price(0.15, 0.60).of(2_000_000, 500_000)
        0.6
        >>> Price(2.0, 8.0, 0.5).of(1_000_000, 0, tokens_cached=800_000)
        0.8
    """

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    tokens_cached: float | None = None

    def of(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float:
        """The money for these tokens of prompts and of answers.

        Args:
            tokens_in: of prompts, with those from the server's cache.
            tokens_cached: those of `tokens_in` that the server had in its cache.
        """
        if self.tokens_cached is None or not tokens_cached:
            return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / 1e6
        read = self.tokens_in * (tokens_in - tokens_cached) + self.tokens_cached * tokens_cached
        return (read + self.tokens_out * tokens_out) / 1e6


FREE = Price()


def check_price(price: object) -> Price:
    """Return the price that an experiment file or an argument gives.

    Args:
        price: `None` for free, or two or three numbers that are not negative: for prompts, for answers, for prompts
            from the server's cache.

    Raises:
        ArgumentError: if it is anything else.
    """
    if price is None:
        return FREE
    values = list(price) if isinstance(price, (list, tuple)) else []
    if len(values) not in (2, 3) or not all(is_number(x) and x >= 0 and math.isfinite(x) for x in values):
        raise ArgumentError(
            "`price` should be two numbers that are not negative: for a million tokens of prompts and of answers; and "
            "a third one for prompts from the server's cache, where it differs. "
            f"Received {price!r}"
        )
    return Price(*map(float, values))


class Budget:
    """A limit in tokens and in money, for all threads together.

    It is checked before every request. Requests that are already running are not stopped, so the limit can
    be exceeded by as many requests as run at a time. Recorded replies are free; those of earlier commands of a run
    are counted (`drift_agents.llm.service.Service`), so that a run that is resumed keeps to its budget.

    Args:
        tokens: of prompts and answers together; no limit if not given.
        money: in the currency of the prices; no limit if not given.

    Raises:
        ArgumentError: if a limit is not positive.

    Example:
        >>> budget = Budget(tokens=100)
        >>> budget.spend(tokens=120, money=0.0)
        >>> budget.check()
        Traceback (most recent call last):
        drift_agents.errors.BudgetError: the budget of 100 tokens is spent: 120 tokens were used
    """

    def __init__(self, tokens: int | None = None, money: float | None = None) -> None:
        for name, value in (("tokens", tokens), ("money", money)):
            if value is not None and (not is_number(value) or not 0 < value < math.inf):
                raise ArgumentError(f"the budget's `{name}` should be a positive number. Received {value!r}")
        self.tokens, self.money = tokens, money
        self.tokens_spent, self.money_spent = 0, 0.0
        self._lock = threading.Lock()

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.tokens is not None or self.money is not None

    def check(self) -> None:
        """Return if something is left.

        Raises:
            BudgetError: if nothing is left.
        """
        with self._lock:
            if self.tokens is not None and self.tokens_spent >= self.tokens:
                raise BudgetError(f"the budget of {self.tokens} tokens is spent: {self.tokens_spent} tokens were used")
            if self.money is not None and self.money_spent >= self.money:
                raise BudgetError(f"the budget of {self.money:g} is spent: {self.money_spent:.4f} was used")

    def spend(self, tokens: int, money: float) -> None:
        """Add the cost of an answer."""
        with self._lock:
            self.tokens_spent += tokens
            self.money_spent += money


class Meter:
    """A running sum of usage; `take` returns it and starts again at zero.

    Memories, verifiers and teams send requests to their models at any time and return no usage. Their models
    (`drift_agents.llm.reask.ReaskingModel`) write it to a meter instead, and the agent takes the sum at the end
    of every episode.

    Example:
        >>> meter = Meter()
        >>> meter.add(Usage(model_calls=1, tokens_in=20))
        >>> meter.take().tokens_in, meter.take().tokens_in
        (20, 0)
    """

    def __init__(self) -> None:
        self.usage = NO_USAGE

    def add(self, usage: Usage) -> None:
        """Add to the sum."""
        self.usage += usage

    def take(self) -> Usage:
        """Return the sum, and start again at zero."""
        taken, self.usage = self.usage, NO_USAGE
        return taken
