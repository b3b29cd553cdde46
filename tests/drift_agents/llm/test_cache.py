"""Recorded replies."""

from __future__ import annotations

import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ContextLengthError, ModelUnavailableError, ReplayError
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.budget import Price
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.openai_compatible import OpenAICompatible, name_file
from drift_agents.llm.scripted import ScriptedModel
from drift_agents.llm.served import ServedModel
from drift_agents.types import Usage

ASK = [Message("user", "Where to?")]
SCHEMA = {"title": "action", "type": "object", "properties": {"action": {"enum": ["0", "1"]}}, "required": ["action"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


def test_a_recorded_request_is_not_sent_again(path: Path) -> None:
    script = ScriptedModel([Completion('{"action": "1"}', None, Usage(1, 30, 4, 250))])
    with ReplyStore(path) as replies:
        first, second = (ServedModel(script, replies).complete(ASK, SCHEMA, {"temperature": 0}) for _ in range(2))
        assert (replies.hits, len(replies)) == (1, 1)
    assert first == second
    assert second == Completion('{"action": "1"}', {"action": "1"}, Usage(1, 30, 4, 250))


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
        model = ServedModel(ScriptedModel(['{"action": "0"}', '{"action": "1"}']), replies)
        assert model.complete(**question).text != model.complete(**{**question, **changes}).text


def test_model_and_address_are_part_of_the_key(path: Path) -> None:
    class Placed(ScriptedModel):
        identity = {"model": "scripted", "base_url": "http://elsewhere/v1"}  # noqa: RUF012

    with ReplyStore(path) as replies:
        texts = [
            ServedModel(model, replies).complete(ASK).text
            for model in (
                ScriptedModel(["a"]),
                ScriptedModel(["b"], name="other"),
                Placed(["c"]),
                ScriptedModel(["unused"]),
            )
        ]
    assert texts == ["a", "b", "c", "a"]


def test_a_model_that_is_named_after_its_file_has_no_address_in_the_key() -> None:
    """A server on this machine has another port at every start; another file is another model."""
    name = name_file("tiny", "1a2b3c4d5e6f7890")
    at = [OpenAICompatible(name, base_url=f"http://127.0.0.1:{port}/v1").identity for port in (1, 2)]
    assert at[0] == at[1] == {"model": "tiny@sha256-1a2b3c4d5e6f", "form": "auto"}
    other = OpenAICompatible(name_file("tiny", "9" * 64), base_url="http://127.0.0.1:1/v1")
    assert other.identity != at[0]
    assert "base_url" in OpenAICompatible("tiny@2024", base_url="http://127.0.0.1:1/v1").identity


def test_replaying_fails_without_a_recorded_reply(path: Path) -> None:
    with ReplyStore(path) as replies:
        ServedModel(ScriptedModel(["a"]), replies).complete(ASK)
    before = path.read_bytes()
    with ReplyStore(path, read_only=True) as replies:
        model = ServedModel(ScriptedModel([]), replies)
        assert model.complete(ASK).text == "a"
        message = "holds no reply of 'scripted' to 'action' that ends with 'Where to?'. Was it recorded with the same"
        with pytest.raises(ReplayError, match=re.escape(message)):
            model.complete(ASK, SCHEMA)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_too_long_requests_are_recorded_and_failures_are_not(path: Path) -> None:
    script = ScriptedModel([ContextLengthError("4096 at most"), ModelUnavailableError("dead"), "a"])
    with ReplyStore(path) as replies:
        model = ServedModel(script, replies, retries=0)
        for _ in range(2):
            with pytest.raises(ContextLengthError, match="4096 at most"):
                model.complete(ASK)
        with pytest.raises(ModelUnavailableError):
            model.complete(ASK, sample_index=1)
        assert model.complete(ASK, sample_index=1).text == "a"


def test_a_recorded_reply_has_a_cost_and_is_not_charged_to_the_budget(path: Path) -> None:
    with ReplyStore(path) as replies:
        model = ServedModel(
            ScriptedModel([Completion("a", None, Usage(1, 1_000_000, 0))]), replies, price=Price(2.0, 0.0)
        )
        costs = [model.complete(ASK).cost for _ in range(3)]
    assert costs == [2.0, 2.0, 2.0]
    assert model.budget.money_spent == 2.0


def test_equal_concurrent_requests_are_sent_once(path: Path) -> None:
    inside, go = threading.Event(), threading.Event()

    def answer(_: Any) -> str:
        inside.set()
        assert go.wait(10)
        return "a"

    script, texts = ScriptedModel(answer), list[str]()
    with ReplyStore(path) as replies:
        model = ServedModel(script, replies)
        threads = [threading.Thread(target=lambda: texts.append(model.complete(ASK).text)) for _ in range(3)]
        threads[0].start()
        assert inside.wait(10)
        for thread in threads[1:]:
            thread.start()
        go.set()
        for thread in threads:
            thread.join(timeout=10)
    assert (texts, len(script.requests)) == (["a"] * 3, 1)


def test_the_first_of_two_concurrent_replies_is_kept(path: Path) -> None:
    with ReplyStore(path) as ours, ReplyStore(path) as theirs:

        def answer(_: Any) -> str:
            ServedModel(ScriptedModel(["theirs"]), theirs).complete(ASK)  # while we wait for our answer
            return "ours"

        assert ServedModel(ScriptedModel(answer), ours).complete(ASK).text == "theirs"


def test_recorded_requests_can_be_listed(path: Path) -> None:
    with ReplyStore(path) as replies:
        ServedModel(ScriptedModel(["a"]), replies).complete(ASK, None, {"temperature": 0})
        ((question, reply),) = replies.questions()
    assert question["messages"] == [["user", "Where to?"]]
    assert reply["text"] == "a"


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="there are no recorded replies"):
        ReplyStore(path, read_only=True)
    path.write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(ReplayError, match="the recorded replies cannot be used: file is not a database"):
        len(ReplyStore(path))
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)")
        file.execute("INSERT INTO about VALUES ('format', 'something else')")
    file.close()
    with pytest.raises(ReplayError, match=re.escape("should hold recorded replies, format 'drift-agents replies 1'")):
        len(ReplyStore(other))
