"""Anthropic's and Gemini's endpoints with the chat-completions protocol, by exchanges in the documented formats.

The files under `exchanges/` were written by hand after the documents of both servers; none was recorded from them.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import ModelAccessError, ModelUnavailableError
from drift_agents.llm.base import Message
from drift_agents.llm.connection import read_key
from drift_agents.llm.openai_compatible import OpenAICompatible

from tests.drift_agents.llm.chat_server import SCHEMA

pytest.importorskip("openai")

ASK = [Message("system", "You play."), Message("user", "Where to?")]


def read_exchanges(chat: ModuleType, server: str) -> list[Any]:
    """The responses of a server."""
    data = json.loads((Path(__file__).parent / "exchanges" / f"{server}.json").read_text(encoding="utf-8"))
    return [chat.Response(exchange["body"], exchange["status"]) for exchange in data]


@pytest.mark.parametrize(("server", "tokens"), [("anthropic", (60, 22)), ("gemini", (60, 9))])
def test_answers_are_read(chat: ModuleType, server: str, tokens: tuple[int, int]) -> None:
    first = read_exchanges(chat, server)[0]
    with chat.serve(lambda _: first) as running:
        answer = OpenAICompatible("any", base_url=running.url).complete(ASK, SCHEMA)
    assert (answer.data, answer.finish) == ({"action": "1"}, "stop")
    assert (answer.tokens_in, answer.tokens_out) == tokens


def test_gemini_cut_off_while_thinking(chat: ModuleType) -> None:
    cut = read_exchanges(chat, "gemini")[1]
    with chat.serve(lambda _: cut) as running:
        answer = OpenAICompatible("any", base_url=running.url).complete(ASK, SCHEMA)
    assert (answer.text, answer.data, answer.finish) == ("", None, "thinking")


@pytest.mark.parametrize(("server", "place", "name"), [("anthropic", 1, "temperature"), ("gemini", 2, "seed")])
def test_refused_parameters_are_left_out(chat: ModuleType, server: str, place: int, name: str) -> None:
    responses = read_exchanges(chat, server)
    with chat.serve(lambda request: responses[place if name in request else 0]) as running:
        model = OpenAICompatible("any", base_url=running.url)
        for sample in (3, 4):
            assert model.complete(ASK, SCHEMA, {"temperature": 0.5}, sample).data == {"action": "1"}
    assert [name in request for request in running.requests] == [True, False, False]


def test_errors_are_told_apart(chat: ModuleType) -> None:
    _, _, key, overloaded = read_exchanges(chat, "anthropic")
    limit = read_exchanges(chat, "gemini")[3]
    for response, kind, message in (
        (key, ModelAccessError, "invalid x-api-key"),
        (overloaded, ModelUnavailableError, "answers with status 529: Overloaded"),
        (limit, ModelUnavailableError, "answers with status 429: Resource has been exhausted"),
    ):
        with (
            chat.serve(lambda _, response=response: response) as running,
            pytest.raises(kind, match=message),
        ):
            OpenAICompatible("any", base_url=running.url).complete(ASK, SCHEMA)


def test_each_server_has_a_variable_for_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a")
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert read_key("https://api.anthropic.com/v1") == ("a", "the environment variable ANTHROPIC_API_KEY")
    gemini = "https://generativelanguage.googleapis.com/v1beta/openai"
    assert read_key(gemini)[0] == "g"
    assert read_key("https://api.openai.com/v1")[0] == "o"
    monkeypatch.delenv("GEMINI_API_KEY")
    assert read_key(gemini)[0] == "o"
