"""One exchange with a server, well or badly behaved."""

from __future__ import annotations

import gc
import re
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import (
    ArgumentError,
    ContextLengthError,
    MissingDependencyError,
    ModelAccessError,
    ModelUnavailableError,
    ServerUnreachableError,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.connection import read_key
from drift_agents.llm.openai_compatible import OpenAICompatible

from tests.drift_agents.llm.chat_server import SCHEMA

pytest.importorskip("openai")

ASK = [Message("system", "You play."), Message("user", "Where to?")]
SECRET = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(chat: ModuleType, *responses: Any, **options: Any) -> tuple[Completion, Any]:
    """One question to a server that gives these responses, the last one for ever."""
    left = list(responses)

    def answer(_: Any) -> Any:
        return left.pop(0) if len(left) > 1 else left[0]

    with chat.serve(answer) as server:
        completion = OpenAICompatible("tiny", base_url=server.url, **options).complete(
            ASK, SCHEMA, {"temperature": 0.5}
        )
        return completion, server


def test_requests_and_replies_follow_the_protocol(chat: ModuleType) -> None:
    answer, server = ask(chat, chat.said('{"action": "1"}', tokens=(12, 3)))
    (request,) = server.requests
    assert answer.data == {"action": "1"}
    assert (answer.model_calls, answer.tokens_in, answer.tokens_out, answer.finish) == (1, 12, 3, "stop")
    assert (request["model"], request["temperature"]) == ("tiny", 0.5)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"].startswith("Where to?\n\nAnswer with JSON alone, by this schema: {")
    assert request["response_format"]["type"] == "json_schema"
    assert request["response_format"]["json_schema"]["name"] == "action"
    assert request["response_format"]["json_schema"]["strict"] is True
    assert "title" not in request["response_format"]["json_schema"]["schema"]
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


def test_a_fixed_form_is_kept(chat: ModuleType) -> None:
    with pytest.raises(ModelAccessError, match=re.escape("refuses the request (status 400): no json_schema here")):
        ask(chat, chat.refused(400, "no json_schema here"), form="json_schema")


@pytest.mark.parametrize(
    ("text", "finish", "data", "message"),
    [
        ("", "stop", None, "empty"),
        (None, "stop", None, "empty"),
        ('{"action": "1', "length", None, "length"),
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


def test_a_refusal_in_its_own_field(chat: ModuleType) -> None:
    answer, _ = ask(chat, chat.said(None, refusal="I can't."))
    assert (answer.text, answer.data, answer.finish) == ("I can't.", None, "refusal")


def test_tokens_are_estimated_where_the_server_does_not_count(chat: ModuleType) -> None:
    answer, _ = ask(chat, chat.said('{"action": "1"}', tokens=None))
    assert answer.tokens_in > 10
    assert answer.tokens_out == 4


def test_a_reply_without_choices_is_empty(chat: ModuleType) -> None:
    answer, _ = ask(chat, chat.Response({"object": "chat.completion", "choices": []}))
    assert (answer.text, answer.finish) == ("", "empty")


def test_a_bad_key_is_reported_and_never_shown(chat: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    message = "refuses the key from the environment variable OPENAI_API_KEY (status 401): Incorrect API key: ***"
    with pytest.raises(ModelAccessError, match=re.escape(message)) as error:
        ask(chat, chat.refused(401, f"Incorrect API key: {SECRET}", "invalid_api_key"))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_the_key_comes_from_a_file_and_is_in_no_repr(chat: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    _, server = ask(chat, chat.said("0"), key_file=file)
    assert server.keys == [f"Bearer {SECRET}"]
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


def test_an_unknown_model_is_reported_with_the_known_ones(chat: ModuleType) -> None:
    message = "has no model 'tiny' (status 404): model 'tiny' not found. The server has: tiny"
    with pytest.raises(ModelAccessError, match=re.escape(message)):
        ask(chat, chat.refused(404, "model 'tiny' not found"))


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 4096 tokens.", "context_length_exceeded"),
        (400, "the request exceeds the available context size. try increasing it", None),
        (413, "too many tokens", None),
    ],
)
def test_a_prompt_that_is_too_long(chat: ModuleType, status: int, message: str, code: str | None) -> None:
    with pytest.raises(ContextLengthError, match="the prompt is too long for 'tiny'"):
        ask(chat, chat.refused(status, message, code))


def test_status_429(chat: ModuleType) -> None:
    with pytest.raises(ModelUnavailableError, match="answers with status 429: slow down") as error:
        ask(chat, chat.refused(429, "slow down", retry_after="7"))
    assert (error.value.retry_after, error.value.is_limit) == (7.0, True)


def test_a_spent_quota_is_not_retried(chat: ModuleType) -> None:
    with pytest.raises(ModelAccessError, match="the quota is used up"):
        ask(chat, chat.refused(429, "You exceeded your current quota", "insufficient_quota"))


@pytest.mark.parametrize("status", [500, 502, 503, 408])
def test_transient_failures(chat: ModuleType, status: int) -> None:
    with pytest.raises(ModelUnavailableError, match=f"answers with status {status}: oops") as error:
        ask(chat, chat.refused(status, "oops"))
    assert not error.value.is_limit


def test_unreadable_answers(chat: ModuleType) -> None:
    whole = chat.said('{"action": "1"}')
    for response in (
        whole._replace(cut=40),  # the line is cut in mid-reply
        whole._replace(cut=0),
        whole._replace(body=b'{"choices": [{"mess'),  # half a JSON, properly sent
        whole._replace(hang=True),  # never answers
    ):
        with pytest.raises(ModelUnavailableError, match="gave no answer that can be read"):
            ask(chat, response, timeout=0.2)


def test_a_closed_port() -> None:
    with pytest.raises(ServerUnreachableError, match=re.escape("no server answers at http://127.0.0.1:9/v1")):
        OpenAICompatible("tiny", base_url="http://127.0.0.1:9/v1").complete(ASK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "`model` should be the name of a model. Received ''"),
        ({"base_url": "localhost:8000"}, "`base_url` should be an address, as in http://127.0.0.1:8000/v1"),
        ({"base_url": f"http://me:{SECRET}@host/v1"}, "should have no user, password or query"),
        (
            {"form": "xml"},
            "`form` should be one of auto, json_schema",
        ),
        ({"timeout": 0}, "`timeout` should be a positive number of seconds. Received 0"),
    ],
)
def test_invalid_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)) as error:
        OpenAICompatible(**{"model": "tiny", **options})
    assert SECRET not in str(error.value)


def test_without_openai_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install "drift-envs[llm]"')):
        OpenAICompatible("tiny", base_url="http://127.0.0.1:9/v1").complete(ASK)


def test_a_model_in_a_cycle_leaves_no_open_socket(chat: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the collector has met the socket before the model, as while another thread sends a request."""
    unclosed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: unclosed.append(report.exc_value))

    def is_of_client(found: object) -> bool:
        with suppress(OSError):  # one that listens, or is closed
            return type(found) is socket.socket and found.getpeername()[1] == port
        return False

    def complete_once() -> None:
        model = OpenAICompatible("tiny", base_url=server.url)
        model.complete([Message("user", "Go.")])
        (held,) = [found for found in gc.get_objects() if is_of_client(found)]
        cycle: list[object] = [model]
        cycle.append(cycle)
        roots = [cycle]
        del model, cycle
        gc.collect()
        assert roots, held

    with chat.serve(lambda _: chat.said("ok")) as server, warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        port = int(re.findall(r":(\d+)", server.url)[0])
        complete_once()
        gc.collect()
    assert unclosed == []
