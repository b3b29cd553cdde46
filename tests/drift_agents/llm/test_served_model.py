"""Retries, breaker and budget."""

from __future__ import annotations

import re
import threading
import time
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import (
    ArgumentError,
    BudgetError,
    ModelAccessError,
    ModelUnavailableError,
    ServerUnreachableError,
    StoppedError,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.budget import Budget, Price, check_price
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.scripted import ScriptedModel
from drift_agents.llm.served import (
    LONGEST_PAUSE,
    RETRIES,
    CircuitBreaker,
    OpenCircuitError,
    ServedModel,
    pause_before,
)
from drift_agents.llm.server_replies import read_retry_after
from drift_agents.types import Usage

ASK = [Message("user", "Where to?")]
DEAD = ModelUnavailableError("no answer")


class Waits(threading.Event):
    """An event whose waits are kept, and take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return self.is_set()


def assert_growing(waits: list[float], first: float = 1.0) -> None:
    """Each pause is twice as long as the one before, less up to a quarter."""
    for number, seconds in enumerate(waits):
        assert 0.75 * first * 2**number <= seconds <= first * 2**number


def test_transient_failures_are_retried_after_growing_pauses() -> None:
    waits = Waits()
    model = ServedModel(ScriptedModel([DEAD, DEAD, DEAD, "2"]), stopped=waits)
    assert model.complete(ASK).text == "2"
    assert len(waits.seconds) == 3
    assert_growing(waits.seconds)


def test_retry_after_is_respected_up_to_a_bound() -> None:
    requested = [ModelUnavailableError("busy", retry_after=seconds) for seconds in (3.5, 1e6)]
    waits = Waits()
    assert ServedModel(ScriptedModel([*requested, "2"]), stopped=waits).complete(ASK).text == "2"
    assert waits.seconds == [3.5, LONGEST_PAUSE]
    assert pause_before(1000) == LONGEST_PAUSE


def test_a_short_retry_after_does_not_stop_the_growth(chat: ModuleType) -> None:
    pytest.importorskip("openai")
    waits = Waits()
    with chat.serve(lambda _: chat.refused(429, "slow down", retry_after="0.02")) as server:
        model = ServedModel(OpenAICompatible("tiny", base_url=server.url), stopped=waits)
        with pytest.raises(ModelUnavailableError, match="slow down"):
            model.complete(ASK)
        assert len(server.requests) == RETRIES + 1
    assert len(waits.seconds) == RETRIES
    assert_growing(waits.seconds)


def test_the_error_after_all_retries_names_their_number() -> None:
    model = ServedModel(ScriptedModel([DEAD] * 3), stopped=Waits(), retries=2)
    with pytest.raises(ModelUnavailableError, match=r"the model 'scripted' gave no answer in 3 tries\. no answer"):
        model.complete(ASK)


def test_a_stop_ends_a_pause() -> None:
    stopped = threading.Event()
    script = ScriptedModel([ModelUnavailableError("busy", retry_after=100.0), "2"])
    threading.Timer(0.1, stopped.set).start()
    started = time.monotonic()
    with pytest.raises(StoppedError, match="not sent, the run was stopped"):
        ServedModel(script, stopped=stopped).complete(ASK)
    assert time.monotonic() - started < 10
    assert len(script.requests) == 1


def test_permanent_refusals_are_not_retried() -> None:
    script, waits = ScriptedModel([ModelAccessError("bad key"), "2"]), Waits()
    with pytest.raises(ModelAccessError, match="bad key"):
        ServedModel(script, stopped=waits).complete(ASK)
    assert (len(script.requests), waits.seconds) == (1, [])


def test_status_429_is_no_failure_of_the_server() -> None:
    breaker = CircuitBreaker(failures=1)
    script = ScriptedModel([ModelUnavailableError("slow down", 9.0, is_limit=True), "2"])
    assert ServedModel(script, breaker=breaker, stopped=Waits()).complete(ASK).text == "2"


def test_a_server_that_has_answered_is_tried_again() -> None:
    down = ServerUnreachableError("no server answers")
    model = ServedModel(ScriptedModel([down, "1", down, down, "2"]), retries=2, stopped=Waits())
    with pytest.raises(ServerUnreachableError):
        model.complete(ASK)
    assert [model.complete(ASK).text for _ in range(2)] == ["1", "2"]


def test_the_breaker_opens_admits_one_request_and_closes() -> None:
    now = [0.0]
    breaker = CircuitBreaker(failures=2, pause=30, now=lambda: now[0])
    breaker.fail("a")
    breaker.check()
    breaker.fail("b")
    with pytest.raises(OpenCircuitError, match="not sent, after 2 failures in a row; the last one: b"):
        breaker.check()
    now[0] = 30.0
    breaker.check()  # one is let through
    with pytest.raises(OpenCircuitError):
        breaker.check()  # and no other until its result is known
    breaker.fail("c")
    now[0] = 59.0
    with pytest.raises(OpenCircuitError, match="the last one: c"):
        breaker.check()
    now[0] = 60.0
    breaker.check()
    breaker.succeed()
    breaker.check()
    breaker.check()


def test_an_open_breaker_refuses_without_a_request() -> None:
    breaker = CircuitBreaker(failures=3)
    script = ScriptedModel([DEAD] * 9)
    for _ in range(2):
        with pytest.raises(OpenCircuitError, match="not sent, after 3 failures"):
            ServedModel(script, breaker=breaker, stopped=Waits()).complete(ASK)
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
    model = ServedModel(script, budget=budget, price=Price(10.0, 30.0))
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
        (lambda: CircuitBreaker(failures=0), "`failures` should be a whole number, at least 1. Received 0"),
        (lambda: CircuitBreaker(pause=0), "`pause` should be in the interval (0, inf). Received 0"),
        (lambda: Budget(tokens=0), "the budget's `tokens` should be a positive number. Received 0"),
        (lambda: Budget(money=-1.0), "the budget's `money` should be a positive number. Received -1.0"),
        (lambda: ServedModel(ScriptedModel([]), retries=-1), "`retries` should be a whole number"),
    ],
)
def test_invalid_limits_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make()


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
