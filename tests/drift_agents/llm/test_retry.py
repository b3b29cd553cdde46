"""Limits, retries, breaker and budget."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

import pytest
from drift_agents.errors import (
    ArgumentError,
    BudgetError,
    MissingDependencyError,
    ModelAccessError,
    ModelUnavailableError,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.budget import Budget, Price, check_price
from drift_agents.llm.circuit_breaker import CircuitBreaker, OpenCircuitError
from drift_agents.llm.rate_limit import RateLimiter
from drift_agents.llm.retry import Backoff, RetryingModel
from drift_agents.llm.scripted import ScriptedModel
from drift_agents.llm.server_errors import read_retry_after
from drift_agents.types import Usage

ASK = [Message("user", "Where to?")]
DEAD = ModelUnavailableError("no answer")


def test_transient_failures_are_retried_after_growing_pauses(clock: Any) -> None:
    model = RetryingModel(ScriptedModel([DEAD, DEAD, DEAD, "2"]), clock=clock)
    assert model.complete(ASK).text == "2"
    assert clock.waits == [1.0, 2.0, 4.0]


def test_retry_after_is_respected_up_to_a_bound(clock: Any) -> None:
    asked = [ModelUnavailableError("busy", retry_after=seconds) for seconds in (0.5, 1e6)]
    assert RetryingModel(ScriptedModel([*asked, "2"]), clock=clock).complete(ASK).text == "2"
    assert clock.waits == [0.5, 120.0]


def test_the_error_after_all_retries_names_their_number(clock: Any) -> None:
    model = RetryingModel(ScriptedModel([DEAD] * 3), clock=clock, backoff=Backoff(retries=2))
    with pytest.raises(ModelUnavailableError, match=r"the model 'scripted' gave no answer in 3 tries\. no answer"):
        model.complete(ASK)


def test_permanent_refusals_are_not_retried(clock: Any) -> None:
    script = ScriptedModel([ModelAccessError("bad key"), "2"])
    with pytest.raises(ModelAccessError, match="bad key"):
        RetryingModel(script, clock=clock).complete(ASK)
    assert (len(script.requests), clock.waits) == (1, [])


def test_status_429_pauses_all_models_of_a_server(clock: Any) -> None:
    limits, breaker = RateLimiter(clock=clock), CircuitBreaker(failures=1, clock=clock)
    busy = RetryingModel(
        ScriptedModel([ModelUnavailableError("slow down", 9.0, is_limit=True)]),
        clock=clock,
        limits=limits,
        breaker=breaker,
        backoff=Backoff(retries=0),
    )
    with pytest.raises(ModelUnavailableError, match="slow down"):
        busy.complete(ASK)
    assert clock.waits == []
    other = RetryingModel(ScriptedModel(["2"]), clock=clock, limits=limits, breaker=breaker)
    assert other.complete(ASK).text == "2"  # and the breaker did not open: such a server lives
    assert clock.waits == [9.0]


def test_requests_a_minute(clock: Any) -> None:
    limits = RateLimiter(requests=2, clock=clock)
    for _ in range(5):
        with limits.slot(1):
            pass
    assert clock.time == 120.0


def test_tokens_a_minute_count_as_they_were_used(clock: Any) -> None:
    limits = RateLimiter(tokens=100, clock=clock)
    for used in (60, 60, 30):
        with limits.slot(40) as slot:
            slot.used = used
    # 60 + 40 fit; 60 + 60 + 40 do not, until the first is a minute old: then 60 + 40 fit again.
    assert clock.time == 60.0


def test_the_pause_ends_when_enough_tokens_are_a_minute_old(clock: Any) -> None:
    limits = RateLimiter(tokens=100, clock=clock)
    for at, tokens in ((0.0, 50), (20.0, 30), (40.0, 20)):
        clock.time = at
        with limits.slot(tokens):
            pass
    with limits.slot(60):  # when the first two are a minute old, 20 + 60 fit
        assert clock.time == 80.0


def test_the_real_number_of_tokens_replaces_the_estimate(clock: Any) -> None:
    limits = RateLimiter(tokens=1000, clock=clock)
    model = RetryingModel(ScriptedModel(lambda _: Completion("2", None, Usage(1, 500, 10))), limits=limits, clock=clock)
    for _ in range(3):
        model.complete(ASK, None, {"max_tokens": 100})
    assert clock.waits == [60.0]


def test_a_request_above_the_limit_is_admitted_alone(clock: Any) -> None:
    limits = RateLimiter(tokens=100, clock=clock)
    for _ in range(2):
        with limits.slot(500):
            pass
    assert clock.time == 60.0


def test_concurrency_is_limited() -> None:
    inside, most, lock = [0], [0], threading.Lock()
    meet = threading.Barrier(2, timeout=10)

    class Slow:
        name = "slow"

        def complete(self, *_: Any) -> Completion:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            meet.wait()  # goes on only when two are inside
            with lock:
                inside[0] -= 1
            return Completion("2", None, Usage(1))

    model = RetryingModel(Slow(), limits=RateLimiter(concurrency=2))
    threads = [threading.Thread(target=model.complete, args=(ASK,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert most == [2]
    assert model.answered == 6


def test_the_breaker_opens_admits_one_request_and_closes(clock: Any) -> None:
    breaker = CircuitBreaker(failures=2, pause=30, clock=clock)
    breaker.fail("a")
    breaker.check()
    breaker.fail("b")
    with pytest.raises(OpenCircuitError, match="not sent, after 2 failures in a row; the last one: b"):
        breaker.check()
    clock.time = 30.0
    breaker.check()  # one is let through
    with pytest.raises(OpenCircuitError):
        breaker.check()  # and no other until its result is known
    breaker.fail("c")
    clock.time = 59.0
    with pytest.raises(OpenCircuitError, match="the last one: c"):
        breaker.check()
    clock.time = 60.0
    breaker.check()
    breaker.succeed()
    breaker.check()
    breaker.check()


def test_an_open_breaker_refuses_without_a_pause(clock: Any) -> None:
    breaker = CircuitBreaker(failures=3, clock=clock)
    script = ScriptedModel([DEAD] * 9)
    with pytest.raises(ModelUnavailableError, match="not sent, after 3 failures"):
        RetryingModel(script, clock=clock, breaker=breaker).complete(ASK)
    assert (len(script.requests), clock.waits) == (3, [1.0, 2.0, 4.0])
    with pytest.raises(OpenCircuitError):
        RetryingModel(script, clock=clock, breaker=breaker).complete(ASK)
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    ("budget", "asked", "message"),
    [
        (Budget(tokens=250), 3, "the budget of 250 tokens is spent: 330 tokens were used"),
        (Budget(money=0.002), 2, "the budget of 0.002 is spent: 0.0026 was used"),
    ],
)
def test_a_spent_budget_refuses_requests(budget: Budget, asked: int, message: str) -> None:
    script = ScriptedModel(lambda _: Completion("2", None, Usage(1, 100, 10)))
    model = RetryingModel(script, budget=budget, price=Price(10.0, 30.0))
    for _ in range(asked):
        assert model.complete(ASK).cost == pytest.approx(0.0013)
    with pytest.raises(BudgetError, match=re.escape(message)):
        model.complete(ASK)
    assert len(script.requests) == asked


@pytest.mark.parametrize("price", [1.0, [1.0], [1, -1], [1, "2"], [1, float("nan")], [True, 1]])
def test_a_price_is_two_numbers(price: Any) -> None:
    with pytest.raises(ArgumentError, match="`price` should be two numbers that are not negative"):
        check_price(price)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RateLimiter(concurrency=0), "`concurrency` should be a whole number, at least 1. Received 0"),
        (lambda: RateLimiter(requests=-1), "`requests` should be a whole number, at least 1, or None. Received -1"),
        (lambda: RateLimiter(tokens=1.5), "`tokens` should be a whole number, at least 1, or None. Received 1.5"),
        (lambda: CircuitBreaker(failures=0), "`failures` should be a whole number, at least 1. Received 0"),
        (lambda: CircuitBreaker(pause=0), "`pause` should be in the interval (0, inf). Received 0"),
        (lambda: Budget(tokens=0), "the budget's `tokens` should be a positive number. Received 0"),
        (lambda: Budget(money=-1.0), "the budget's `money` should be a positive number. Received -1.0"),
        (
            lambda: RetryingModel(ScriptedModel([]), backoff=Backoff(-1)),
            "`retries` should be a whole number",
        ),
    ],
)
def test_invalid_limits_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make()


def test_without_tenacity_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tenacity", None)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install "drift-envs[llm]"')):
        RetryingModel(ScriptedModel(["2"])).complete(ASK)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "1500", "retry-after": "3"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_from_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds
