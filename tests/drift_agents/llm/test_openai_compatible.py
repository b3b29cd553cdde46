"""Exchanges with a server, well or badly behaved."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import (
    ArgumentError,
    ContextLengthError,
    MissingDependencyError,
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
    ServerUnreachableError,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.connection import OPENAI, read_key
from drift_agents.llm.openai_compatible import LONGEST_REPLY, OpenAICompatible
from drift_agents.llm.reask import ReaskingModel

from tests.drift_agents.llm.chat_server import SCHEMA

pytest.importorskip("openai")

ASK = [Message("system", "You play."), Message("user", "Where to?")]
SECRET = "sk-secret-0123456789"
ONE = '{"action": "1"}'


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(chat: ModuleType, *responses: Any, **options: Any) -> tuple[Completion, Any]:
    """One question to a server that gives these responses, the last one for ever."""
    left = list(responses)

    def answer(_: Any) -> Any:
        return left.pop(0) if len(left) > 1 else left[0]

    with chat.serve(answer) as server:
        model = OpenAICompatible("tiny", base_url=server.url, **{"retries": 0, **options})
        return model.complete(ASK, SCHEMA, {"temperature": 0.5}), server


def make_reply(message: Any, **more: Any) -> dict[str, Any]:
    """A reply of the protocol, with a message."""
    return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}], **more}


def test_requests_and_replies_follow_the_protocol(chat: ModuleType) -> None:
    answer, server = ask(chat, chat.said(ONE, tokens=(12, 3)))
    (request,) = server.requests
    assert answer.data == {"action": "1"}
    assert (answer.model_calls, answer.tokens_in, answer.tokens_out, answer.finish) == (1, 12, 3, "stop")
    assert (request["model"], request["temperature"]) == ("tiny", 0.5)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"] == 'Where to?\n\nAnswer with a JSON object alone, with the key "action".'
    form = request["response_format"]["json_schema"]
    assert (request["response_format"]["type"], form["name"], form["strict"]) == ("json_schema", "action", True)
    assert "title" not in form["schema"]
    assert "seed" not in request


def test_without_a_schema_it_sends_the_messages_as_they_are(chat: ModuleType) -> None:
    with chat.serve(lambda _: chat.said("Right.")) as server:
        answer = OpenAICompatible("tiny", base_url=server.url).complete(ASK, sample_index=7)
    assert (answer.text, answer.data) == ("Right.", None)
    assert server.requests[0]["messages"][1]["content"] == "Where to?"
    assert server.requests[0]["seed"] == 7
    assert "response_format" not in server.requests[0]


def test_the_form_falls_back_to_json_and_to_tags_once(chat: ModuleType) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if "response_format" in request:
            return chat.refused(400, "'response_format' is not supported here")
        return chat.said("Down is safe. <action>1</action>")

    with chat.serve(answer) as server:
        model = OpenAICompatible("tiny", base_url=server.url)
        first, second = model.complete(ASK, SCHEMA), model.complete(ASK, SCHEMA)
    forms = [request.get("response_format", {}).get("type") for request in server.requests]
    assert forms == ["json_schema", "json_object", None, None]
    assert first.data == second.data == {"action": "1"}
    assert first.model_calls == 1
    assert server.requests[-1]["messages"][1]["content"].endswith(
        'End your answer with: <action>one of "0", "1"</action>'
    )


@pytest.mark.parametrize(
    ("ignored", "said"),
    [("Down is safe.", True), ('{"action": "fly"}', True), ('{"action": "0"}', False)],
    ids=["words", "another value", "enforced"],
)
def test_the_schema_is_said_in_words_to_a_server_that_does_not_enforce_it(
    chat: ModuleType, ignored: str, said: bool
) -> None:
    """The request after an answer that breaks the schema has it, and so has every later one."""
    left = [ignored, ONE]
    with chat.serve(lambda _: chat.said(left.pop(0) if len(left) > 1 else left[0])) as server:
        model = OpenAICompatible("tiny", base_url=server.url, form="json_schema")
        answers = [ReaskingModel(model).complete(ASK, SCHEMA) for _ in range(2)]
    assert [answer.data for answer in answers] == [{"action": "1" if said else "0"}, {"action": "1"}]
    texts = [request["messages"][-1]["content"] for request in server.requests]
    assert ["by this schema" in text for text in texts] == [False, True, True] if said else [False, False]
    assert all(request["response_format"]["type"] == "json_schema" for request in server.requests)


@pytest.mark.parametrize("prose", ["Left is a hole, so the answer is 1.", "I think.\n\nAction: 1", "My choice: **1**"])
def test_a_server_that_ignores_the_schema_may_answer_in_prose(chat: ModuleType, prose: str) -> None:
    answer, server = ask(chat, chat.said(prose))
    assert (answer.data, len(server.requests)) == ({"action": "1"}, 1)


def test_an_answer_that_was_cut_off_says_nothing_of_a_server(chat: ModuleType) -> None:
    with chat.serve(lambda _: chat.said('{"acti', "length")) as server:
        model = OpenAICompatible("tiny", base_url=server.url)
        for _ in range(2):
            assert model.complete(ASK, SCHEMA).data is None
    assert not any("by this schema" in request["messages"][-1]["content"] for request in server.requests)


@pytest.mark.parametrize(
    "content",
    [
        {"action": "1"},
        {"type": "text", "text": ONE},
        [{"type": "text", "text": {"value": ONE}}],
        [{"type": "reasoning", "summary": []}, {"type": "text", "text": ONE}],
        ["{", '"action"', ': "1"}'],
        1,
    ],
)
def test_answers_in_other_shapes_than_a_text(chat: ModuleType, content: Any) -> None:
    answer, server = ask(chat, chat.said(content))
    assert answer.data == {"action": "1"}
    assert len(server.requests) == 1


def test_a_filter_may_leave_out_the_message(chat: ModuleType) -> None:
    answer, _ = ask(chat, chat.Response({"choices": [{"index": 0, "finish_reason": "content_filter"}]}))
    assert (answer.data, answer.finish) == (None, "refusal")


def test_a_fixed_form_is_kept(chat: ModuleType) -> None:
    with pytest.raises(ModelAccessError, match=re.escape("refuses the request (status 400): no json_schema here")):
        ask(chat, chat.refused(400, "no json_schema here"), form="json_schema")


def test_the_decision_can_be_a_call_of_a_function(chat: ModuleType) -> None:
    def call(*arguments: Any, name: str = "action", text: str = "I think.") -> Any:
        calls = [{"id": "c", "type": "function", "function": {"name": name, "arguments": one}} for one in arguments]
        return chat.said(text, "tool_calls", tool_calls=calls)

    for reply, data in (
        (call(ONE), {"action": "1"}),
        (call('{"action": 1, "why": "left"}', text="<think>Or 0?"), {"action": "1"}),
        (call({"action": "1"}), {"action": "1"}),
        (call(json.dumps(ONE), text=""), {"action": "1"}),
        (call({"action": 1}, ONE), {"action": "1"}),
        (call({"action": "0"}, ONE), None),
        (call(ONE, text='{"action": "0"}'), None),
        (call(ONE, name="walk", text=""), None),
        (chat.said(ONE), {"action": "1"}),
    ):
        answer, server = ask(chat, reply, form="tool")
        assert answer.data == data
        (request,) = server.requests
        assert "response_format" not in request
        assert request["tool_choice"] == "required"
        assert request["tools"][0]["function"]["parameters"]["properties"] == SCHEMA["properties"]


def test_a_reasoning_model_is_sent_the_parameters_that_it_accepts(chat: ModuleType) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if "max_tokens" in request:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            return chat.refused(400, f"{text}'max_completion_tokens' instead.", "unsupported_parameter")
        if "temperature" in request:
            return chat.refused(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        return chat.said(f"<think>Left is a hole.</think>{ONE}")

    notes: list[str] = []
    with chat.serve(answer) as server:
        model = OpenAICompatible("o9", base_url=server.url, note=notes.append)
        for _ in range(2):
            assert model.complete(ASK, SCHEMA, {"temperature": 0, "max_tokens": 50}).data == {"action": "1"}
    assert len(server.requests) == 4  # two refusals, once
    assert server.requests[-1]["max_completion_tokens"] == 50
    assert not {"temperature", "max_tokens"} & set(server.requests[-1])
    assert [note.partition(": ")[2] for note in notes] == [
        "sends `max_completion_tokens` for `max_tokens`, which the server refuses",
        "leaves out `temperature`, which the server refuses",
    ]


@pytest.mark.parametrize(
    ("text", "finish", "data", "message"),
    [
        ("", "stop", None, "empty"),
        (None, "stop", None, "empty"),
        ('{"action": "1', "length", None, "length"),
        ("<think>Left or", "length", None, "thinking"),
        ("", "length", None, "thinking"),
        ('{"action": "1', "stop", None, "stop"),
        ("I can't help with that.", "content_filter", None, "refusal"),
        ('```json\n{"action": 0}\n```', "stop", {"action": "0"}, "stop"),
    ],
)
def test_texts_and_reasons_for_their_end_are_read(
    chat: ModuleType, text: str | None, finish: str, data: Any, message: str
) -> None:
    answer, _ = ask(chat, chat.said(text, finish))
    assert (answer.data, answer.finish) == (data, message)


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"content": None, "refusal": "I can't."}, "I can't.", "refusal"),
        ({"content": [{"type": "text", "text": '{"action":'}, {"type": "text", "text": ' "1"}'}]}, ONE, "stop"),
        ({"content": [{"type": "image_url"}, 5, None]}, "", "empty"),
        ({"content": {"text": "1"}}, "1", "stop"),
        ({"content": "\ud800 1"}, "\ufffd 1", "stop"),
        ({"content": f"{ONE} {'<action>' * 100_000}"}, f"{ONE} {'<action>' * 100_000}"[:LONGEST_REPLY], "stop"),
    ],
)
def test_messages_of_other_shapes(chat: ModuleType, message: Any, text: str, finish: str) -> None:
    answer, _ = ask(chat, chat.Response(make_reply(message)))
    assert (answer.text, answer.finish) == (text, finish)


@pytest.mark.parametrize(
    "usage", [None, {}, *({"prompt_tokens": n, "completion_tokens": n} for n in (-5, 10**30, "m"))]
)
def test_tokens_are_estimated_where_the_server_does_not_count(chat: ModuleType, usage: Any) -> None:
    answer, _ = ask(chat, chat.Response(make_reply({"content": ONE}, usage=usage)))
    assert 10 < answer.tokens_in < 1000
    assert answer.tokens_out == 4


@pytest.mark.parametrize(
    ("status", "text", "code", "error", "message"),
    [
        (401, "Incorrect API key", None, ModelAccessError, "refuses the key from .* OPENAI_API_KEY .status 401.: Inc"),
        (404, "no tiny", None, ModelAccessError, "has no model 'tiny' .status 404.: no tiny. The server has: tiny"),
        (429, "You are over", "insufficient_quota", ModelAccessError, "says that the quota is used up"),
        (400, "maximum context length is 4096", "context_length_exceeded", ContextLengthError, "too long for 'tiny'"),
        (400, "the request exceeds the available context size", None, ContextLengthError, "too long for 'tiny'"),
        (413, "too many tokens", None, ContextLengthError, "too long for 'tiny'"),
        (429, "slow down", None, ModelUnavailableError, "answers with status 429: slow down"),
        (500, "oops", None, ModelUnavailableError, "answers with status 500: oops"),
        (408, "oops", None, ModelUnavailableError, "answers with status 408: oops"),
    ],
)
def test_errors_are_told_apart(
    chat: ModuleType, status: int, text: str, code: str | None, error: type[ModelError], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(chat, chat.refused(status, text, code))


def test_a_key_is_read_from_the_environment_or_a_file_and_never_shown(
    chat: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ModelAccessError, match=re.escape("(status 401): Incorrect API key: ***")) as error:
        ask(chat, chat.refused(401, f"Incorrect API key: {SECRET}", "invalid_api_key"))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__
    file = tmp_path / "key"
    file.write_text(f"{SECRET}2\n")
    _, server = ask(chat, chat.said("0"), key_file=file)
    assert server.keys == [f"Bearer {SECRET}2"]
    model = OpenAICompatible("tiny", base_url=server.url, key_file=file)
    assert SECRET not in f"{model!r} {vars(model)} {model.identity}"


@pytest.mark.parametrize(("content", "message"), [("", "Received 0 words"), ("a b", "Received 2 words")])
def test_a_key_file_holds_a_key_alone(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "key").write_text(content)
    with pytest.raises(ModelAccessError, match=message):
        read_key("http://127.0.0.1:9/v1", tmp_path / "key")
    with pytest.raises(ModelAccessError, match="the key cannot be read: No such file"):
        read_key("http://127.0.0.1:9/v1", tmp_path / "other")


def test_openai_requires_a_key() -> None:
    with pytest.raises(ModelAccessError, match="needs a key: the environment variable OPENAI_API_KEY is not set"):
        OpenAICompatible("gpt-5").complete(ASK)


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


def test_the_address_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")
    assert OpenAICompatible("tiny").base_url == "http://127.0.0.1:9/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert OpenAICompatible("tiny").base_url == OPENAI


def test_failures_are_retried_after_the_pause_that_the_server_requests(chat: ModuleType) -> None:
    busy = chat.refused(429, "slow down", retry_after_ms="1")
    broken = chat.said(ONE)._replace(cut=40)
    answer, server = ask(
        chat, busy, busy, broken, chat.refused(503, "oops", retry_after_ms="1"), chat.said(ONE), retries=4
    )
    assert answer.data == {"action": "1"}
    assert len(server.requests) == 5
    with pytest.raises(ModelUnavailableError, match="slow down"):
        ask(chat, busy, retries=2)


def test_what_a_retry_does_not_change_is_reported_at_once(chat: ModuleType) -> None:
    for refused in (chat.refused(401, "no"), chat.refused(429, "You are over", "insufficient_quota")):
        with (
            chat.serve(lambda _, refused=refused: refused) as server,
            pytest.raises(ModelAccessError),
        ):
            OpenAICompatible("tiny", base_url=server.url).complete(ASK)
        assert len(server.requests) == 1


def test_a_server_that_is_down_is_reported_within_five_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(ServerUnreachableError, match=r"no server answers at .*, is it running\?"):
        OpenAICompatible("tiny", base_url="http://127.0.0.1:9/v1").complete(ASK, SCHEMA)
    assert time.monotonic() - started < 5


def test_a_hanging_server_and_unreadable_answers_end_in_an_error(chat: ModuleType) -> None:
    whole = chat.said(ONE)
    for response in (whole._replace(cut=40), whole._replace(hang=True), whole._replace(body=b'{"choices": [')):
        with pytest.raises(ModelUnavailableError, match="gave no answer that can be read"):
            ask(chat, response, timeout=0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "`model` should be the name of a model. Received ''"),
        ({"base_url": "localhost:8000"}, "`base_url` should be an address, as in http://127.0.0.1:8000/v1"),
        ({"base_url": f"http://me:{SECRET}@host/v1"}, "should have no user, password or query"),
        ({"form": "xml"}, "`form` should be one of auto, json_schema"),
        ({"timeout": 0}, "`timeout` should be in the interval (0, inf). Received 0"),
        ({"retries": -1}, "`retries` should be a whole number, at least 0"),
    ],
)
def test_invalid_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)) as error:
        OpenAICompatible(**{"model": "tiny", **options})
    assert SECRET not in str(error.value)


def test_without_openai_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[llm]"')):
        OpenAICompatible("tiny", base_url="http://127.0.0.1:9/v1").complete(ASK)


# Anthropic's and Gemini's endpoints with the chat-completions protocol. The files under `exchanges/` were written by
# hand after the documents of both servers; none was recorded from them.


def read_exchanges(chat: ModuleType, server: str) -> list[Any]:
    """The responses of a server."""
    data = json.loads((Path(__file__).parent / "exchanges" / f"{server}.json").read_text(encoding="utf-8"))
    return [chat.Response(exchange["body"], exchange["status"]) for exchange in data]


@pytest.mark.parametrize(
    ("server", "refusal", "name", "tokens"), [("anthropic", 1, "temperature", (60, 22)), ("gemini", 2, "seed", (60, 9))]
)
def test_anthropic_and_gemini_answer_without_the_parameters_that_they_refuse(
    chat: ModuleType, server: str, refusal: int, name: str, tokens: tuple[int, int]
) -> None:
    responses = read_exchanges(chat, server)
    with chat.serve(lambda request: responses[refusal if name in request else 0]) as running:
        model = OpenAICompatible("any", base_url=running.url)
        for sample in (3, 4):
            answer = model.complete(ASK, SCHEMA, {"temperature": 0.5}, sample)
            assert (answer.data, answer.finish) == ({"action": "1"}, "stop")
            assert (answer.tokens_in, answer.tokens_out) == tokens
    assert [name in request for request in running.requests] == [True, False, False]


def test_gemini_cut_off_while_thinking(chat: ModuleType) -> None:
    answer, _ = ask(chat, read_exchanges(chat, "gemini")[1])
    assert (answer.text, answer.data, answer.finish) == ("", None, "thinking")


def test_errors_of_anthropic_and_gemini_are_told_apart(chat: ModuleType) -> None:
    _, _, key, overloaded = read_exchanges(chat, "anthropic")
    limit = read_exchanges(chat, "gemini")[3]
    for response, kind, message in (
        (key, ModelAccessError, "invalid x-api-key"),
        (overloaded, ModelUnavailableError, "answers with status 529: Overloaded"),
        (limit, ModelUnavailableError, "answers with status 429: Resource has been exhausted"),
    ):
        with pytest.raises(kind, match=message):
            ask(chat, response)
