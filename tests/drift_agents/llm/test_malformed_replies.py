"""Replies that break the protocol end in an answer or in an error of this package."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.errors import ModelError, ModelUnavailableError
from drift_agents.llm.base import Message
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.openai_compatible import LONGEST_REPLY, OpenAICompatible
from drift_agents.llm.service import Service
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drift_agents.llm.chat_server import SCHEMA

pytest.importorskip("openai")

ASK = [Message("user", "Where to?")]


def make_reply(**message: Any) -> dict[str, Any]:
    """A reply of the protocol, with a message."""
    return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]}


@pytest.mark.parametrize("count", [-5, 10**30, "many", None, [1], {"n": 1}, 1.5e300])
def test_token_counts_that_are_none_are_estimated(chat: ModuleType, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": count}}
    reply = make_reply(content='{"action": "1"}') | {"usage": usage}
    with chat.serve(lambda _: chat.Response(reply)) as server:
        answer = OpenAICompatible("tiny", base_url=server.url).complete(ASK, SCHEMA)
    assert answer.data == {"action": "1"}
    assert 10 < answer.tokens_in < 1000
    assert answer.tokens_out == 4
    assert answer.tokens_cached == 0


def test_cached_tokens_are_counted_and_recorded(chat: ModuleType, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 80}}
    reply = make_reply(content='{"action": "1"}') | {"usage": usage}
    with chat.serve(lambda _: chat.Response(reply)) as server, ReplyStore(tmp_path / "replies.sqlite") as replies:
        model = Service(replies=replies).model("tiny", server.url, price=[2.0, 8.0, 0.5])
        costs = [model.complete(ASK, SCHEMA).usage.cost for _ in range(2)]
    assert costs == [pytest.approx((20 * 2.0 + 80 * 0.5) / 1e6)] * 2
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": '{"action":'}, {"type": "text", "text": ' "1"}'}], '{"action": "1"}'),
        ([{"type": "image_url"}, 5, None], ""),
        ({"text": "1"}, ""),
        (7, ""),
        ("\ud800 1", "\ufffd 1"),
    ],
)
def test_contents_of_other_types(chat: ModuleType, content: Any, text: str) -> None:
    with chat.serve(lambda _: chat.Response(make_reply(content=content))) as server:
        assert OpenAICompatible("tiny", base_url=server.url).complete(ASK).text == text


def test_a_number_of_five_thousand_digits_is_no_reply(chat: ModuleType) -> None:
    body = json.dumps(make_reply(content="1")).encode().replace(b'"stop"', b"1" * 5000)
    with (
        chat.serve(lambda _: chat.Response(body)) as server,
        pytest.raises(ModelUnavailableError, match="gave no answer that can be read"),
    ):
        OpenAICompatible("tiny", base_url=server.url).complete(ASK, SCHEMA)


def test_a_reply_of_20_megabytes_is_cut_and_counted(chat: ModuleType) -> None:
    with chat.serve(lambda _: chat.said('{"action": "1"} ' + "<action>" * 2_600_000)) as server:
        service = Service()
        started = time.monotonic()
        answer = service.model("tiny", server.url).complete(ASK, SCHEMA)
        service.close()
    assert (len(answer.text), answer.finish, answer.data) == (LONGEST_REPLY, "length", {"action": "1"})
    assert service.totals().cut == 1
    assert time.monotonic() - started < 20


def test_a_hanging_server_ends_in_an_error(chat: ModuleType) -> None:
    with (
        chat.serve(lambda _: chat.said("1")._replace(hang=True)) as server,
        pytest.raises(ModelUnavailableError, match="gave no answer in 2 tries"),
    ):
        Service(timeout=0.2, retries=1).model("tiny", server.url).complete(ASK)


def test_a_reply_that_comes_byte_by_byte_ends_with_the_time_limit(chat: ModuleType) -> None:
    with chat.serve(lambda _: chat.said("1" * 1000)._replace(pause=0.02)) as server:
        started = time.monotonic()
        with pytest.raises(ModelUnavailableError, match=r"no whole reply after \d+ bytes and 0\.3 seconds"):
            OpenAICompatible("tiny", base_url=server.url, timeout=0.3).complete(ASK)
        assert time.monotonic() - started < 10


def test_a_server_that_is_down_is_reported_within_five_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(ModelUnavailableError, match=r"no server answers at .*, is it running\?"):
        Service().model("tiny", "http://127.0.0.1:9/v1").complete(ASK, SCHEMA)
    assert time.monotonic() - started < 5


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def test_any_reply_ends_in_an_answer_or_an_error_of_this_package(chat: ModuleType) -> None:
    current: list[Any] = [None]
    with chat.serve(lambda _: chat.Response(current[0])) as server:
        model = OpenAICompatible("tiny", base_url=server.url, timeout=5)

        @given(
            body=st.one_of(
                ANYTHING,
                st.fixed_dictionaries({"choices": ANYTHING, "usage": ANYTHING}),
                st.fixed_dictionaries(
                    {
                        "choices": st.lists(
                            st.fixed_dictionaries(
                                {
                                    "message": st.fixed_dictionaries({"content": ANYTHING, "refusal": ANYTHING}),
                                    "finish_reason": ANYTHING,
                                }
                            ),
                            max_size=2,
                        ),
                        "usage": st.fixed_dictionaries({"prompt_tokens": ANYTHING, "completion_tokens": ANYTHING}),
                    }
                ),
                st.binary(max_size=50),
            )
        )
        @settings(max_examples=60, deadline=None, derandomize=True)
        def try_body(body: Any) -> None:
            current[0] = body
            try:
                answer = model.complete(ASK, SCHEMA)
            except ModelError as error:
                str(error).encode()
            else:
                json.dumps(answer.data, allow_nan=False).encode()
                answer.text.encode()
                assert 0 <= answer.tokens_in <= 10**9

        try_body()
