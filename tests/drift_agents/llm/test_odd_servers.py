"""What servers send and what is done with it: a server on loopback plays each.

The extras `openai_oldest` and `openai_newest` run these tests with the oldest and the newest client that is allowed.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ContextLengthError, ModelAccessError, ModelError, ModelUnavailableError
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.connection import LARGEST_REPLY
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.server_errors import find_error
from drift_agents.llm.service import ReplyStore, ServedModel, Service

from tests.drift_agents.llm.chat_server import SCHEMA, Response, refused, said, serve

pytest.importorskip("openai")
pytestmark = pytest.mark.integration

ASK = [Message("user", "Where to?")]
ONE = '{"action": "1"}'
SOON = {"retry-after-ms": "1"}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(*responses: Response, **options: Any) -> tuple[Completion, list[dict[str, Any]]]:
    """A request to a server that gives these responses, the last one for ever; the answer and what was sent."""
    left = list(responses)
    with serve(lambda _: left.pop(0) if len(left) > 1 else left[0]) as server:
        model = OpenAICompatible("tiny", base_url=server.url, **{"retries": 3, **options})
        return model.complete(ASK, SCHEMA, {"temperature": 0, "max_tokens": 9, "seed": 4}), server.requests


def ok(body: Any) -> Response:
    """A response with status 200 that is no reply of the protocol."""
    return Response(body, 200, SOON)


def ended(finish: str, **choice: Any) -> dict[str, Any]:
    """A reply that ends in this way."""
    return {"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": finish, **choice}]}


# Server, what it sends, and what is done: `again` (a retry), the error that stops, or `form` (the next form).
ODD: list[tuple[str, Response, str | type[ModelError], str]] = [
    ("OpenRouter", ok({"error": {"message": "Overloaded", "code": 529}}), "again", "Overloaded"),
    ("OpenRouter, text code", ok({"error": {"message": "Slow", "code": "429"}}), "again", "Slow"),
    ("OpenRouter, with user", ok({"error": {"message": "x", "code": 408}, "user_id": "u"}), "again", "x"),
    ("OpenRouter, choice", ok(ended("error", error={"code": 502, "message": "Lost"})), "again", "Lost"),
    ("OpenRouter, no words", ok(ended("error")), "again", "ends with 'error'"),
    ("DeepSeek", ok(ended("insufficient_system_resource")), "again", "insufficient_system_resource"),
    ("Zhipu", ok(ended("network_error")), "again", "network_error"),
    ("empty choices", ok({"id": "x", "object": "chat.completion", "choices": []}), "again", "no answer"),
    ("null choices", ok({"choices": None, "usage": None}), "again", "no answer"),
    ("null", ok(b"null"), "again", "no answer"),
    ("a number", ok(b"3"), "again", "no answer"),
    ("no message", ok({"choices": [{"index": 0, "finish_reason": "stop"}]}), "again", "no answer"),
    ("null message", ok({"choices": [{"message": None, "finish_reason": "stop"}]}), "again", "no answer"),
    ("completion of text", ok({"choices": [{"text": ONE, "finish_reason": "stop"}]}), "again", "no answer"),
    ("a part of a stream", ok({"choices": [{"delta": {"content": ONE}, "finish_reason": None}]}), "again", "no answer"),
    ("a message of text", ok({"choices": [{"message": ONE, "finish_reason": "stop"}]}), "again", "no answer"),
    ("Ollama's own", ok({"message": {"role": "assistant", "content": ONE}, "done": True}), "again", "no answer"),
    ("Anthropic's own", ok({"type": "message", "content": [{"type": "text", "text": ONE}]}), "again", "no answer"),
    ("responses", ok({"object": "response", "output": [], "status": "completed"}), "again", "no answer"),
    ("a code as error", ok({"error": 503}), "again", "code 503"),
    ("a key's code as error", ok({"error": 401}), ModelAccessError, "code 401"),
    ("empty body", ok(b""), "again", "the reply is empty"),
    ("half", ok(b'{"choices": [{"mess'), "again", "the reply is no JSON"),
    ("MiniMax", ok({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}), "again", "rate limit"),
    ("Baidu", ok({"error_code": 18, "error_msg": "QPS limit: too many requests"}), "again", "QPS"),
    ("Gemini in a list", ok([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "Full"}}]), "again", "Full"),
    ("named", ok({"error": {"type": "overloaded_error", "message": "No"}}), "again", "No"),
    ("text", ok({"error": "Model is loading, try again"}), "again", "Model is loading"),
    ("plain text", ok(b"upstream connect error"), "again", "upstream connect error"),
    ("plain JSON text", ok(json.dumps("too many requests").encode()), "again", "too many requests"),
    ("stream", ok(b'data: {"error": {"message": "Gone", "code": 502}}\n\ndata: [DONE]\n'), "again", "Gone"),
    ("LM Studio", ok({"error": "Unexpected endpoint or method. (POST /chat)"}), ModelAccessError, "Unexpected endp"),
    ("stream of an answer", ok(b'data: {"choices": [{"delta": {}}]}\n\n'), ModelAccessError, "stream of events"),
    ("sign-in", ok(b"<!DOCTYPE html><title>Sign in</title><script>x</script>"), ModelAccessError, "page.*Sign in"),
    ("key", ok({"error": {"message": "No such user", "code": 401}}), ModelAccessError, "status 200, code 401.: No su"),
    ("money", ok({"error": {"message": "Insufficient Balance"}}), ModelAccessError, "quota is used up"),
    ("unknown", ok({"error": {"message": "Strange"}}), ModelAccessError, "refuses the request .status 200.*Strange"),
    ("overflow in 200", ok({"error": {"message": "prompt is too long: 9 > 8", "code": 400}}), ContextLengthError, "9"),
    ("overflow as text", ok({"error": "exceeds the context window"}), ContextLengthError, "exceeds"),
    ("llama.cpp of 2023", refused(500, "the request exceeds the available context size"), ContextLengthError, "avail"),
    ("nginx", Response(b"<html><h1>413 Too Large</h1></html>", 413), ContextLengthError, "413 Too Large"),
    (
        "OpenAI, minute",
        refused(429, "Request too large for m on TPM: Limit 9, Requested 10"),
        ContextLengthError,
        "TPM",
    ),
    ("code alone", ok({"error": {"code": 429, "message": None}}), "again", "code 429: .*null"),
    ("bad gateway", Response(b"<html><h1>502 Bad</h1></html>", 502, SOON), "again", "502 Bad"),
    ("FastAPI", Response({"detail": "Not so fast"}, 429, SOON), "again", "Not so fast"),
    ("form as text", Response({"error": "response_format is unknown to this engine"}, 400), "form", ""),
    ("form as plain text", Response(b"json_schema: not implemented", 501), "form", ""),
    ("form with 200", ok({"error": "'response_format.type' must be 'text'"}), "form", ""),
    ("form in a list", Response([{"error": {"message": "too many states for serving"}}], 400), "form", ""),
    ("form, detail", Response({"detail": [{"loc": ["body", "response_format"], "msg": "extra"}]}, 422), "form", ""),
    ("form, status phrase", Response({"error": "Bad Request", "message": "no structured output"}, 400), "form", ""),
    ("form, raw", refused(400, json.dumps({"error": {"message": "JSON mode is not enabled for m"}})), "form", ""),
    ("form, OpenRouter", refused(404, "No endpoints found that support structured outputs"), "form", ""),
    (
        "form, Groq",
        refused(400, "Failed to generate JSON. Please adjust your prompt", "json_validate_failed"),
        "form",
        "",
    ),
    ("form, llama.cpp", refused(500, "Failed to parse grammar"), "form", ""),
    ("form, SGLang", refused(503, "error compiling the json_schema: invalid regex"), "form", ""),
    ("form, samplers", refused(500, "could not initialize the grammar sampler"), "form", ""),
    ("no form, 500", Response({"error": "the grammar service is busy"}, 500, SOON), "again", "busy"),
    ("form, 500", refused(500, "guided decoding is not supported here"), "form", ""),
]


@pytest.mark.parametrize(("response", "what", "words"), [pytest.param(*row[1:], id=row[0]) for row in ODD])
def test_what_servers_send_and_what_is_done(response: Response, what: Any, words: str, tmp_path: Path) -> None:
    if what == "form":
        answer, sent = ask(response, said(ONE))
        forms = [request["response_format"]["type"] for request in sent]
        assert (answer.data, forms) == ({"action": "1"}, ["json_schema", "json_object"])
        return
    now = response
    kind = ModelUnavailableError if what == "again" else what
    with serve(lambda _: now) as server, ReplyStore(tmp_path / "replies.sqlite") as replies:
        client = OpenAICompatible("tiny", base_url=server.url, form="json_schema", retries=1)
        model = ServedModel(client, Service(replies=replies))
        with pytest.raises(kind, match=words):
            model.complete(ASK, SCHEMA)
        assert len(server.requests) == (2 if what == "again" else 1)
        assert model.answered == 0
        now = said(ONE)
        if what is ContextLengthError:  # recorded as such: an equal request would be too long again
            with pytest.raises(kind, match=words):
                model.complete(ASK, SCHEMA)
        else:
            assert len(replies) == 0
            assert model.complete(ASK, SCHEMA).data == {"action": "1"}


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "prompt is too long: 208310 tokens > 199999 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 20000 > 200000",
        "The input token count (461428) exceeds the maximum number of tokens allowed (131072).",
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
        "Input is too long for requested model.",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 1000",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Trying to keep the first 5000 tokens when context the overflows.",
        "The prompt contains 5000 tokens which is more than the model's limit of 4096",
        "Sequence length 5000 exceeds 4096",
        "prompt has 5000 tokens, but max is 4096",
        "requested 9000 tokens exceeds 8192",
        "Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)",
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "Please reduce the length of the messages or completion.",
        "prompt token count of 128500 exceeds the limit of 128000",
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
        "Prompt exceeds max length",
        "Prompt length 5000 is greater than max_seq_len 4096",
    ],
)
def test_a_prompt_that_is_too_long_is_known_in_any_words_and_shape(words: str) -> None:
    shapes = (
        {"error": {"message": words, "type": "invalid_request_error"}},
        {"error": words},
        [{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}],
        {"detail": [{"loc": ["body"], "msg": words}]},
    )
    answers = [(400, json.dumps(shape).encode()) for shape in shapes]
    for status, content in (*answers, (400, words.encode()), (200, json.dumps({"error": {"message": words}}).encode())):
        found = find_error(status, content)
        assert found is not None
        state = (found.is_too_long, found.is_form_refusal, found.is_transient, found.status)
        assert state == (True, False, False, 400), content


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        (400, "The requested number of output tokens exceeds the maximum"),
        (400, "temperature: Input should be less than or equal to 2"),
        (400, "body.seed: Extra inputs are not permitted"),
        (400, "Invalid value for 'top_p'"),
        (429, "Rate limit reached on tokens per min (TPM): Limit 30000, Requested 31000."),
        (500, "The server had an error while processing your request"),
        (503, "The model is overloaded, try again later"),
    ],
)
def test_other_errors_are_no_prompts_that_are_too_long(status: int, words: str) -> None:
    error = find_error(status, json.dumps({"error": {"message": words}}).encode())
    assert error is not None
    assert not error.is_too_long
    assert error.is_transient == (status >= 429)


@pytest.mark.parametrize(
    "body",
    [
        {"error": "Unrecognized request argument supplied: seed"},
        {"error": {"message": "unsupported", "param": "seed"}},
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        {"detail": "seed is not supported"},
        [{"error": {"message": 'Unknown name "seed": Cannot find field.'}}],
        "seed: unexpected",
        b"unknown field seed",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 200])
def test_a_refused_parameter_is_left_out(body: Any, status: int) -> None:
    answer, sent = ask(Response(body, status), said(ONE))
    assert answer.data == {"action": "1"}
    assert ["seed" in request for request in sent] == [True, False]


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("max_tokens is too large: at most 7", [9, 7]),
        ("max_tokens is too large: 9. This model supports at most 5 completion tokens.", [9, 5]),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8]", [9, 8]),
        ("max_tokens: 9 > 6, which is the maximum allowed number of output tokens", [9, 6]),
        ("`max_tokens` must be less than 9", [9, 8]),
    ],
)
def test_a_limit_of_tokens_that_is_too_large_is_lowered(words: str, sent: list[int]) -> None:
    notes: list[str] = []
    answer, requests = ask(refused(400, words), said(ONE), note=notes.append)
    assert answer.data == {"action": "1"}
    assert [request["max_tokens"] for request in requests] == sent
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("message", "finish", "text"),
    [
        ({"content": None, "reasoning_content": ONE}, "stop", ONE),
        (
            {"content": "", "reasoning": f"Down is safe.\n```json\n{ONE}\n```"},
            "stop",
            f"Down is safe.\n```json\n{ONE}\n```",
        ),
        ({"content": "\n", "reasoning_content": "<action>1</action>"}, "stop", "<action>1</action>"),
        ({"content": "<think></think>", "reasoning": [{"type": "text", "text": ONE}]}, "stop", ONE),
        ({"content": "", "reasoning_content": "1"}, "stop", "1"),
        ({"content": None, "reasoning_content": None, "reasoning": ONE}, "stop", ONE),
    ],
)
def test_an_answer_among_the_thoughts_is_read(message: dict[str, Any], finish: str, text: str) -> None:
    answer, _ = ask(Response({"choices": [{"message": message, "finish_reason": finish}]}))
    assert (answer.text, answer.data, answer.finish) == (text, {"action": "1"}, "stop")


@pytest.mark.parametrize(
    ("message", "finish", "data", "end"),
    [
        ({"content": None, "reasoning_content": f"{ONE} leads into a hole, so"}, "stop", None, "empty"),
        ({"content": None, "reasoning_content": '{"action": "7"}'}, "stop", None, "empty"),
        ({"content": None, "reasoning_content": ONE}, "length", None, "thinking"),
        ({"content": None, "reasoning_content": ONE, "refusal": "No."}, "stop", None, "refusal"),
        ({"content": '{"action": "0"}', "reasoning_content": ONE}, "stop", {"action": "0"}, "stop"),
        ({"content": "I do not know", "reasoning_content": ONE}, "stop", None, "stop"),
    ],
)
def test_thoughts_are_no_answer_where_there_is_another_or_none(
    message: dict[str, Any], finish: str, data: Any, end: str
) -> None:
    answer, _ = ask(Response({"choices": [{"message": message, "finish_reason": finish}]}))
    assert (answer.data, answer.finish) == (data, end)


def bomb(size: int) -> bytes:
    """A reply of so many bytes, packed."""
    packer = zlib.compressobj(9, wbits=31)
    start = b'{"choices": [{"message": {"content": "'
    return packer.compress(start) + b"".join(packer.compress(b"a" * 2**20) for _ in range(size >> 20)) + packer.flush()


def test_a_reply_is_counted_as_it_is_unpacked() -> None:
    packed = gzip.compress(json.dumps(said(ONE).body).encode())
    assert ask(Response(packed, 200, {"content-encoding": "gzip"}))[0].data == {"action": "1"}
    for response in (
        Response(bomb(8 * LARGEST_REPLY), 200, {"content-encoding": "gzip"}),
        Response(b" " * (LARGEST_REPLY + 1)),
    ):
        with pytest.raises(ModelUnavailableError, match=f"its reply has more than {LARGEST_REPLY} bytes"):
            ask(response, retries=9)
    for response, words in (
        (Response(packed[: len(packed) // 2], 200, {"content-encoding": "gzip"}), "the reply is no JSON"),
        (Response(b"abc", 200, {"content-encoding": "gzip"}), "incorrect header"),
        (Response(packed, 200, {"content-encoding": "br"}), "the encoding 'br', which was not asked for"),
    ):
        with pytest.raises(ModelUnavailableError, match=words):
            ask(response, retries=0)


@contextmanager
def dripping(start: bytes, drop: bytes) -> Iterator[str]:
    """A server that begins a response and goes on with a drop each twentieth of a second."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def drip() -> None:
            while not over.is_set():
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    try:
                        line.sendall(start)
                        while not over.wait(0.05):
                            line.sendall(drop)
                    except OSError:
                        continue

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", b" "),
        (b"HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        (b"", b"H"),
    ],
)
def test_a_request_is_over_after_its_time_however_slowly_the_server_sends(start: bytes, drop: bytes) -> None:
    with dripping(start, drop) as url:
        begun = time.monotonic()
        model = OpenAICompatible("tiny", base_url=url, timeout=0.5, retries=0)
        with pytest.raises(ModelUnavailableError, match="gave no answer that can be read"):
            model.complete(ASK, SCHEMA)
        assert time.monotonic() - begun < 5
        model.close()


def test_prompts_are_sent_to_no_other_server() -> None:
    with serve(lambda _: said(ONE)) as other:
        for target in (other.url, "http://example.org/v1", other.url.replace("127.0.0.1", "localhost")):
            for status in (301, 302, 307, 308):
                where = f"{target}/chat/completions"
                words = re.escape(f"(status {status}): it redirects to {where}")
                with pytest.raises(ModelAccessError, match=words):
                    ask(Response({}, status, {"location": where}))
        assert other.requests == []


@pytest.mark.parametrize("status", [300, 301, 304, 307, 308])
@pytest.mark.parametrize(
    ("headers", "where"),
    [
        ({}, "no address"),
        ({"location": "http://["}, "http://["),
        ({"location": "http://127.0.0.1:99999/"}, "http://127.0.0.1:99999/"),
        ({"location": "mailto:a@b"}, "mailto:a@b"),
    ],
)
def test_a_redirect_to_nowhere_is_named(status: int, headers: dict[str, str], where: str) -> None:
    words = re.escape(f"(status {status}): it redirects to {where}; prompts are sent to no other server")
    with pytest.raises(ModelAccessError, match=words):
        ask(Response({}, status, headers))


def test_a_redirect_within_a_server_is_followed() -> None:
    moved = Response({}, 307, {"location": "/v2/chat/completions"})
    answer, sent = ask(moved, moved, said(ONE))
    assert (answer.data, len(sent)) == ({"action": "1"}, 3)
    with pytest.raises(ModelAccessError, match="it redirects to /v2"):
        ask(moved)


def test_what_a_server_says_cannot_control_the_terminal() -> None:
    for response in (
        refused(400, "\x1b[2J\x9bred\u202e\x07 no"),
        Response("\x1b]0;x\x07 no", 400),
        Response(b"\x1b[1m no", 403),
    ):
        with pytest.raises(ModelAccessError, match="no") as error:
            ask(response)
        assert str(error.value).isprintable()

    with serve(lambda _: refused(404, "none")) as server:
        server.models = ["\x1b[31mred", "blue"]
        with pytest.raises(ModelAccessError, match=r"The server has: .*blue") as error:
            OpenAICompatible("tiny", base_url=server.url).complete(ASK)
    assert str(error.value).isprintable()
