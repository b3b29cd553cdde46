"""Parameters that servers refuse, many requests at a time, answers that are not usable, budgets over resumes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import BudgetError, UnusableAnswersError
from drift_agents.llm.base import Message
from drift_agents.llm.budget import Budget
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.connection import OPENAI
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.reask import AnswerMonitor, ReaskingModel
from drift_agents.llm.scripted import ScriptedModel
from drift_agents.llm.served import ServedModel
from drift_agents.llm.service import Service

from tests.drift_agents.llm.chat_server import SCHEMA

pytest.importorskip("openai")

ASK = [Message("user", "Where to?")]


def test_a_reasoning_model_is_sent_the_parameters_that_it_accepts(chat: ModuleType) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if "max_tokens" in request:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            return chat.refused(400, f"{text}'max_completion_tokens' instead.", "unsupported_parameter")
        if "temperature" in request:
            return chat.refused(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        return chat.said('<think>Left is a hole.</think>{"action": "1"}')

    notes: list[str] = []
    with chat.serve(answer) as server:
        model = Service(note=notes.append).model("o9", server.url)
        for _ in range(2):
            assert model.complete(ASK, SCHEMA, {"temperature": 0, "max_tokens": 50}).data == {"action": "1"}
    assert len(server.requests) == 4  # two refusals, once
    assert server.requests[-1]["max_completion_tokens"] == 50
    assert not {"temperature", "max_tokens"} & set(server.requests[-1])
    assert [note.partition(": ")[2] for note in notes] == [
        "sends `max_completion_tokens` for `max_tokens`, which the server refuses",
        "leaves out `temperature`, which the server refuses",
    ]


def test_the_address_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")
    assert OpenAICompatible("tiny").base_url == "http://127.0.0.1:9/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert OpenAICompatible("tiny").base_url == OPENAI


def test_an_answer_cut_off_while_thinking_is_told_from_a_long_one(chat: ModuleType) -> None:
    for text, finish in (("<think>Left or", "thinking"), ("", "thinking"), ("Left, since", "length")):
        with chat.serve(lambda _, text=text: chat.said(text, "length")) as server:
            assert OpenAICompatible("tiny", base_url=server.url).complete(ASK, SCHEMA).finish == finish


def test_too_many_invalid_answers_stop_the_run() -> None:
    model = ScriptedModel(lambda _: "Hm.")
    asking = ReaskingModel(ServedModel(model, monitor=AnswerMonitor(least=3)), reasks=1)
    for _ in range(2):
        assert asking.complete(ASK, SCHEMA).data is None
    with pytest.raises(UnusableAnswersError, match="3 of 3 answers are invalid: use a server that restricts"):
        asking.complete(ASK, SCHEMA)
    thinking = AnswerMonitor(least=1)
    with pytest.raises(UnusableAnswersError, match="1 of them cut off while thinking: raise --max-tokens"):
        thinking.count(is_valid=False, is_cut=True)


def test_requests_of_64_cells_run_at_a_time(chat: ModuleType) -> None:
    together = threading.Barrier(64, timeout=100)  # for a machine that does much else

    def answer(_: Any) -> Any:
        together.wait()
        return chat.said('{"action": "1"}')

    with chat.serve(answer) as server, closing(Service()) as service, ThreadPoolExecutor(64) as threads:
        model = service.model("tiny", server.url)
        answers = list(threads.map(lambda n: model.complete([Message("user", str(n))], SCHEMA), range(128)))
    assert all(answer.data == {"action": "1"} for answer in answers)
    assert server.most_at_once == 64


def test_a_budget_holds_over_resumes(chat: ModuleType, tmp_path: Path) -> None:
    def spend() -> tuple[int, int]:
        """One command: requests until the budget is spent; tokens of this command and in all."""
        with ReplyStore(tmp_path / "replies.sqlite") as replies:
            service = Service(replies=replies, budget=Budget(tokens=200))
            model = service.model("tiny", server.url)
            ask_all = (model.complete([Message("user", str(n))], SCHEMA) for n in range(100))
            with pytest.raises(BudgetError, match="the budget of 200 tokens is spent"):
                list(ask_all)
            service.close()
            return service.totals().tokens, len(server.requests) * 105

    with chat.serve(lambda _: chat.said('{"action": "1"}')) as server:
        assert spend() == (210, 210)
        assert spend() == (0, 210)
        assert spend() == (0, 210)


def test_the_decision_can_be_a_call_of_a_function(chat: ModuleType) -> None:
    def call(*arguments: str, name: str = "action", text: str = "I think.") -> Any:
        calls = [{"id": "c", "type": "function", "function": {"name": name, "arguments": one}} for one in arguments]
        return chat.said(text, "tool_calls", tool_calls=calls)

    for reply, data in (
        (call('{"action": "1"}'), {"action": "1"}),
        (call('{"action": 1, "why": "left"}', text="<think>Or 0?"), {"action": "1"}),
        (call('{"action": "1"}', text='{"action": "0"}'), None),
        (call('{"action": "0"}', '{"action": "1"}'), None),
        (call('{"action": "7"}'), None),
        (call('{"action": "1"}', name="walk", text=""), None),
        (chat.said('{"action": "1"}'), {"action": "1"}),
    ):
        with chat.serve(lambda _, reply=reply: reply) as server:
            answer = OpenAICompatible("tiny", base_url=server.url, form="tool").complete(ASK, SCHEMA)
        assert answer.data == data
        (request,) = server.requests
        assert "response_format" not in request
        assert request["tool_choice"] == "required"
        assert request["tools"][0]["function"]["parameters"]["properties"] == SCHEMA["properties"]
    with chat.serve(lambda _: chat.said('{"action": "1"}')) as server:
        OpenAICompatible("tiny", base_url=server.url, form="tool").complete(ASK, SCHEMA, {"tool_choice": "auto"})
    assert server.requests[0]["tool_choice"] == "auto"


def test_a_model_that_adds_a_key_to_every_answer_plays_on(chat: ModuleType) -> None:
    """All of 60 answers have a further key: none is refused, and the keys are counted, from records too."""
    with chat.serve(lambda _: chat.said('{"reasoning": "Hm.", "action": "1"}')) as server:
        service = Service(monitor=AnswerMonitor())
        model = ReaskingModel(service.model("tiny", server.url))
        answers = [model.complete([Message("user", str(n))], SCHEMA) for n in range(60)]
        service.close()
    assert {(answer.data["action"], answer.reasks) for answer in answers} == {("1", 0)}
    assert service.totals().ignored == 60
