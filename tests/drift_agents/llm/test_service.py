"""Recorded replies, budgets, and a stop: what the models of a run share."""

from __future__ import annotations

import re
import sqlite3
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import (
    ArgumentError,
    BudgetError,
    ContextLengthError,
    ModelUnavailableError,
    ReplayError,
    StoppedError,
    UnusableAnswersError,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.budget import Budget, Price, check_price
from drift_agents.llm.reask import AnswerMonitor, ReaskingModel
from drift_agents.llm.service import ReplyStore, ServedModel, Service
from drift_agents.types import Usage

from tests.drift_agents.llm.chat_server import SCHEMA
from tests.drift_agents.llm.scripted import ScriptedModel

ASK = [Message("user", "Where to?")]
ONE = '{"action": "1"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


def serve(replies: ReplyStore | None, answers: Any, **options: Any) -> ServedModel:
    """A model with prepared answers."""
    model = ScriptedModel(answers) if isinstance(answers, list) or callable(answers) else answers
    return ServedModel(model, Service(replies=replies, **options))


def test_a_recorded_request_is_not_sent_again(path: Path) -> None:
    answers = [Completion(ONE, None, Usage(1, 30, 4, 250))]
    with ReplyStore(path) as replies:
        first = serve(replies, answers).complete(ASK, SCHEMA, {"temperature": 0})
        second = serve(replies, []).complete(ASK, SCHEMA, {"temperature": 0})
        assert (replies.hits, len(replies)) == (1, 1)
        ((question, reply),) = replies.questions()
    assert first == second == Completion(ONE, {"action": "1"}, Usage(1, 30, 4, 250))
    assert question["messages"] == [["user", "Where to?"]]
    assert reply.text == ONE


def test_the_key_of_a_record_is_that_of_earlier_versions(path: Path) -> None:
    """A file of replies that another version recorded is played again, so the key never changes."""
    with ReplyStore(path) as replies:
        serve(replies, [ONE]).complete(ASK, {"title": "action"}, {"temperature": 0}, 3)
        ((key,),) = replies._query("SELECT hex(key) FROM replies")
    assert key == "52DAB21B4C19E903DD04CD49961B77D8AB19C9CD75E8857EB08F6ACFCBEDFF8F"


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [Message("system", "Where to?")]},
        {"messages": [*ASK, Message("assistant", "0")]},
        {"schema": None},
        {"parameters": {"temperature": 0.7}},
        {"sample_index": 1},
    ],
)
def test_every_argument_is_part_of_the_key(path: Path, changes: dict[str, Any]) -> None:
    question: dict[str, Any] = {"messages": ASK, "schema": SCHEMA, "parameters": {}, "sample_index": 0}
    with ReplyStore(path) as replies:
        model = serve(replies, ['{"action": "0"}', ONE])
        assert model.complete(**question).text != model.complete(**{**question, **changes}).text


def test_model_and_address_are_part_of_the_key(path: Path) -> None:
    class Placed(ScriptedModel):
        identity = {"model": "scripted", "base_url": "http://elsewhere/v1"}  # noqa: RUF012

    with ReplyStore(path) as replies:
        models = (ScriptedModel(["a"]), ScriptedModel(["b"], name="other"), Placed(["c"]), ScriptedModel(["unused"]))
        assert [serve(replies, model).complete(ASK).text for model in models] == ["a", "b", "c", "a"]


def test_replaying_fails_without_a_recorded_reply(path: Path) -> None:
    with ReplyStore(path) as replies:
        serve(replies, ["a"]).complete(ASK)
    before = path.read_bytes()
    with ReplyStore(path, read_only=True) as replies:
        model = serve(replies, [])
        assert model.complete(ASK).text == "a"
        message = "holds no reply of 'scripted' to 'action' that ends with 'Where to?'. Was it recorded with the same"
        with pytest.raises(ReplayError, match=re.escape(message)):
            model.complete(ASK, SCHEMA)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_too_long_requests_are_recorded_and_failures_are_not(path: Path) -> None:
    with ReplyStore(path) as replies:
        model = serve(replies, [ContextLengthError("4096 at most"), ModelUnavailableError("dead"), "a"])
        for _ in range(2):
            with pytest.raises(ContextLengthError, match="4096 at most"):
                model.complete(ASK)
        with pytest.raises(ModelUnavailableError):
            model.complete(ASK, sample_index=1)
        assert model.complete(ASK, sample_index=1).text == "a"


def test_a_recorded_reply_has_a_cost_and_is_not_charged_to_the_budget(path: Path) -> None:
    reply = Completion("a", None, Usage(1, 1_000_000, 0), tokens_cached=800_000)
    with ReplyStore(path) as replies:
        model = ServedModel(ScriptedModel([reply]), Service(replies=replies), Price(2.0, 0.0, 0.5))
        costs = [model.complete(ASK).cost for _ in range(3)]
    assert costs == [0.8, 0.8, 0.8]
    assert model.service.budget.money_spent == 0.8


def test_equal_concurrent_requests_are_sent_once(path: Path) -> None:
    inside, go = threading.Event(), threading.Event()

    def answer(_: Any) -> str:
        inside.set()
        assert go.wait(10)
        return "a"

    script = ScriptedModel(answer)
    with ReplyStore(path) as replies, ThreadPoolExecutor(3) as threads:
        model = serve(replies, script)
        running = [threads.submit(model.complete, ASK) for _ in range(3)]
        assert inside.wait(10)
        go.set()
        assert [one.result(10).text for one in running] == ["a"] * 3
    assert len(script.requests) == 1


def test_the_first_of_two_concurrent_replies_is_kept(path: Path) -> None:
    with ReplyStore(path) as ours, ReplyStore(path) as theirs:

        def answer(_: Any) -> str:
            serve(theirs, ["theirs"]).complete(ASK)  # while we wait for our answer
            return "ours"

        assert serve(ours, answer).complete(ASK).text == "theirs"


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="there are no recorded replies"):
        ReplyStore(path, read_only=True)
    path.write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(ReplayError, match="the recorded replies cannot be used: file is not a database"):
        len(ReplyStore(path))
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)")
        file.execute("INSERT INTO about VALUES ('format', 'something else')")
        file.commit()
    with pytest.raises(ReplayError, match=re.escape("should hold recorded replies, format 'drift-agents replies 1'")):
        len(ReplyStore(other))


DAMAGED = [
    ('{"text": "1", "model_cal', "invalid JSON: EOF while parsing"),
    ("[1]", "should be a mapping. Received [1]"),
    ('{"text": "1", "model_calls": 1}', "`tokens_in` is missing"),
    (
        '{"text": 1, "model_calls": 1, "tokens_in": 1, "tokens_out": 1, "milliseconds": 1, "finish": "stop"}',
        "`text` should be a text",
    ),
    (
        '{"text": "1", "model_calls": 1, "tokens_in": -7, "tokens_out": 1, "milliseconds": 1, "finish": "stop"}',
        "`tokens_in` should be at least 0",
    ),
]


@pytest.mark.parametrize(("content", "rule"), DAMAGED)
def test_a_damaged_reply_is_named_with_its_file_and_rule(path: Path, content: str, rule: str) -> None:
    with ReplyStore(path) as replies:
        serve(replies, [ONE]).complete(ASK, SCHEMA)
    with closing(sqlite3.connect(path)) as file:
        ((key,),) = file.execute("SELECT lower(substr(hex(key), 1, 16)) FROM replies")
        file.execute("UPDATE replies SET reply = ?", (content,))
        file.commit()
    with ReplyStore(path, read_only=True) as replies:
        with pytest.raises(ReplayError, match=re.escape(rule)) as error:
            serve(replies, []).complete(ASK, SCHEMA)
        assert str(error.value).startswith(f"{path}: the recorded replies cannot be used: the one with the key {key}")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("question", [b"abc", zlib.compress(b"{"), zlib.compress(b"[1]")])
def test_a_damaged_request_is_named_where_a_budget_counts_it(path: Path, question: bytes) -> None:
    with ReplyStore(path) as replies:
        serve(replies, [ONE]).complete(ASK, SCHEMA)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE replies SET question = ?", (question,))
        file.commit()
    with ReplyStore(path) as replies, pytest.raises(ReplayError, match="is not what was recorded: its request: "):
        Service(replies=replies, budget=Budget(tokens=9)).model("tiny", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("budget", "asked", "message"),
    [
        (Budget(tokens=250), 3, "the budget of 250 tokens is spent: 330 tokens were used"),
        (Budget(money=0.002), 2, "the budget of 0.002 is spent: 0.0026 was used"),
    ],
)
def test_a_spent_budget_refuses_requests(budget: Budget, asked: int, message: str) -> None:
    script = ScriptedModel(lambda _: Completion("2", None, Usage(1, 100, 10)))
    model = ServedModel(script, Service(budget=budget), Price(10.0, 30.0))
    for _ in range(asked):
        assert model.complete(ASK).cost == pytest.approx(0.0013)
    with pytest.raises(BudgetError, match=re.escape(message)):
        model.complete(ASK)
    assert len(script.requests) == asked


def test_a_budget_holds_over_resumes(chat: ModuleType, path: Path) -> None:
    pytest.importorskip("openai")

    def spend() -> tuple[int, int]:
        """One command: requests until the budget is spent; tokens of this command and in all."""
        with ReplyStore(path) as replies:
            service = Service(replies=replies, budget=Budget(tokens=200))
            model = service.model("tiny", server.url)
            with pytest.raises(BudgetError, match="the budget of 200 tokens is spent"):
                [model.complete([Message("user", str(n))], SCHEMA) for n in range(100)]
            service.close()
            return service.totals().tokens, len(server.requests) * 105

    with chat.serve(lambda _: chat.said(ONE)) as server:
        assert spend() == (210, 210)
        assert spend() == (0, 210)


@pytest.mark.parametrize("price", [1.0, [1.0], [1, -1], [1, "2"], [1, float("nan")], [True, 1]])
def test_a_price_is_two_numbers(price: Any) -> None:
    with pytest.raises(ArgumentError, match="`price` should be two numbers that are not negative"):
        check_price(price)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 0}, "the budget's `tokens` should be a positive number. Received 0"),
        ({"money": -1.0}, "the budget's `money` should be a positive number. Received -1.0"),
    ],
)
def test_invalid_budgets_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Budget(**options)


def test_no_request_is_sent_after_a_stop() -> None:
    script = ScriptedModel(["1"])
    model = serve(None, script)
    model.service.stop()
    with pytest.raises(StoppedError, match="not sent, the run was stopped"):
        model.complete(ASK)
    assert script.requests == []


def test_too_many_invalid_answers_stop_the_run() -> None:
    asking = ReaskingModel(serve(None, lambda _: "Hm.", monitor=AnswerMonitor(least=3)), reasks=1)
    for _ in range(2):
        assert asking.complete(ASK, SCHEMA).data is None
    with pytest.raises(UnusableAnswersError, match="3 of 3 answers are invalid: use a server that restricts"):
        asking.complete(ASK, SCHEMA)
    with pytest.raises(UnusableAnswersError, match="1 of them cut off while thinking: raise `max_tokens`"):
        AnswerMonitor(least=1).count(is_valid=False, is_cut=True)


def test_requests_of_64_cells_run_at_a_time(chat: ModuleType) -> None:
    pytest.importorskip("openai")
    together = threading.Barrier(64, timeout=100)  # for a machine that does much else

    def answer(_: Any) -> Any:
        together.wait()
        return chat.said(ONE)

    with chat.serve(answer) as server, closing(Service()) as service, ThreadPoolExecutor(64) as threads:
        model = service.model("tiny", server.url)
        answers = list(threads.map(lambda n: model.complete([Message("user", str(n))], SCHEMA), range(128)))
    assert all(answer.data == {"action": "1"} for answer in answers)
    assert server.most_at_once == 64
