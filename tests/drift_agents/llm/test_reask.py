"""Asking again, and rules where that does not help; what it costs."""

from __future__ import annotations

import pytest
from drift_agents.errors import ArgumentError, ContextLengthError, ModelUnavailableError
from drift_agents.llm.base import Completion, Message, RuleModel, ask
from drift_agents.llm.budget import Meter
from drift_agents.llm.reask import ReaskingModel
from drift_agents.types import Usage

from tests.drift_agents.llm.scripted import ScriptedModel

ASK = [Message("user", "How many steps?")]
SCHEMA = {
    "title": "steps",
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
}
RULES = RuleModel({"steps": lambda text: {"n": len(text)}})


def test_the_repeated_request_describes_the_error() -> None:
    script = ScriptedModel(['{"n": 0}', "Three, I'd say.", '{"n": 3}'])
    answer = ReaskingModel(script).complete(ASK, SCHEMA)
    assert (answer.data, answer.reasks, answer.model_calls) == ({"n": 3}, 2, 3)
    talk = script.requests[2].messages
    assert [message.role for message in talk] == ["user", "assistant", "user", "assistant", "user"]
    assert talk[1].content == '{"n": 0}'
    assert talk[2].content == "Your answer cannot be used: answer.n should be at least 1, is 0. Answer again."
    assert "it holds no answer in the form that was asked for" in talk[4].content
    assert answer.tokens_in > 3 * script.requests[0].messages[0].content.count(" ")


@pytest.mark.parametrize(
    ("finish", "message"), [("length", "it was cut off"), ("refusal", "it is a refusal"), ("empty", "it is empty")]
)
def test_the_reason_depends_on_how_the_answer_ended(finish: str, message: str) -> None:
    script = ScriptedModel([Completion('{"n": ', None, Usage(1), finish), '{"n": 3}'])
    assert ReaskingModel(script).complete(ASK, SCHEMA).data == {"n": 3}
    assert message in script.requests[1].messages[-1].content


def test_the_last_invalid_answer_is_returned() -> None:
    script = ScriptedModel(["a", "b", "c"])
    answer = ReaskingModel(script).complete(ASK, SCHEMA)
    assert (answer.text, answer.data, answer.reasks, answer.model_calls) == ("c", None, 2, 3)


def test_without_a_schema_no_request_is_repeated() -> None:
    assert ReaskingModel(ScriptedModel([""])).complete(ASK).text == ""


def test_parameters_of_a_request_override_the_defaults() -> None:
    script = ScriptedModel(["a"])
    ReaskingModel(script, {"temperature": 0, "top_p": 1}).complete(ASK, None, {"temperature": 1})
    assert script.requests[0].parameters == {"temperature": 1, "top_p": 1}


def test_reasks_are_not_negative() -> None:
    with pytest.raises(ArgumentError, match=r"`reasks` should be a whole number, at least 0\. Received -1"):
        ReaskingModel(ScriptedModel([]), reasks=-1)


def test_rules_replace_invalid_answers() -> None:
    model = ReaskingModel(ScriptedModel(["a", "b", "c"]), rules=RULES)
    answer = ask(model, ASK, SCHEMA)
    assert (answer.data, answer.fallbacks, answer.reasks, answer.model_calls) == ({"n": 15}, 1, 2, 3)


def test_rules_replace_requests_that_are_too_long_but_not_failures() -> None:
    model = ReaskingModel(ScriptedModel([ContextLengthError("too long"), ModelUnavailableError("dead")]), rules=RULES)
    assert ask(model, ASK, SCHEMA).fallbacks == 1
    with pytest.raises(ModelUnavailableError):
        ask(model, ASK, SCHEMA)


def test_a_valid_answer_is_kept() -> None:
    answer = ReaskingModel(ScriptedModel(['{"n": 3}']), rules=RULES).complete(ASK, SCHEMA)
    assert (answer.data, answer.fallbacks) == ({"n": 3}, 0)


def test_a_meter_sums_usage() -> None:
    meter = Meter()
    model = ReaskingModel(ScriptedModel(["a", "b", "c", '{"n": 3}']), rules=RULES, meter=meter)
    for _ in range(2):
        ask(model, ASK, SCHEMA)
    usage = meter.take()
    assert (usage.model_calls, usage.reasks, usage.fallbacks) == (4, 2, 1)
    assert usage.tokens_in > 0
    assert meter.take().model_calls == 0
