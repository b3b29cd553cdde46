"""What may be spent.

* `Budget` - in tokens and in money, for all threads together
* `Price` - what tokens cost
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

from drift_agents.errors import ArgumentError, BudgetError


class Price(NamedTuple):
    """What tokens cost.

    Args:
        tokens_in: a million tokens of prompts, in any currency.
        tokens_out: a million tokens of answers.

    Example:
        >>> Price(0.15, 0.60).of(2_000_000, 500_000)
        0.6
    """

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """What so many tokens cost."""
        return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / 1e6


FREE = Price()


def check_price(price: object) -> Price:
    """A price out of an experiment file or an argument.

    Args:
        price: `None` for free, or two numbers that are not negative: for prompts, for answers.

    Raises:
        ArgumentError: if it cannot be meant.
    """
    if price is None:
        return FREE
    values = list(price) if isinstance(price, (list, tuple)) else []
    if len(values) != 2 or not all(
        isinstance(x, (int, float)) and not isinstance(x, bool) and x >= 0 and math.isfinite(x) for x in values
    ):
        raise ArgumentError(
            "`price` should be two numbers that are not negative: for a million tokens of prompts and of answers. "
            f"Received {price!r}"
        )
    return Price(*map(float, values))


class Budget:
    """What may be spent, in tokens and in money, for all threads together.

    It is looked at before every request; what is under way then is not stopped, so that as many
    requests as run at a time may go beyond it. Recorded replies cost nothing.

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
            if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
                raise ArgumentError(f"the budget's `{name}` should be a positive number. Received {value!r}")
        self.tokens, self.money = tokens, money
        self.tokens_spent, self.money_spent = 0, 0.0
        self._lock = threading.Lock()

    def check(self) -> None:
        """Pass, if there is something left.

        Raises:
            BudgetError: if there is not.
        """
        with self._lock:
            if self.tokens is not None and self.tokens_spent >= self.tokens:
                raise BudgetError(f"the budget of {self.tokens} tokens is spent: {self.tokens_spent} tokens were used")
            if self.money is not None and self.money_spent >= self.money:
                raise BudgetError(f"the budget of {self.money:g} is spent: {self.money_spent:.4f} was used")

    def spend(self, tokens: int, money: float) -> None:
        """Note what an answer cost."""
        with self._lock:
            self.tokens_spent += tokens
            self.money_spent += money
