"""How a form of answer is requested, and how an answer is parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drift_agents.llm.answer_format import FORMS, instruct, read_answer, response_format
from drift_agents.llm.base import Message

ACTION = {
    "title": "action",
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["0", "1", "click[Buy Now]", "-0.5"]}},
    "required": ["action"],
    "additionalProperties": False,
}
REASONED = {
    "title": "action",
    "type": "object",
    "properties": {"reasoning": {"type": "string", "minLength": 2}, "action": {"type": "string", "enum": ["0", "1"]}},
    "required": ["reasoning", "action"],
    "additionalProperties": False,
}
MIXED = {
    "title": "mixed things!",
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "items": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["success", "n", "items"],
}


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"action": "1"}', "1"),
        (' \n{"action": "1"}\n', "1"),
        ('{"action": 1}', "1"),
        ('{"action": "CLICK[buy  now]"}', "click[Buy Now]"),
        ('```json\n{"action": "1"}\n```', "1"),
        ('First {"action": "0"}, no: {"action": "1"}.', "1"),
        ('{"action": "1"} because {of this', "1"),
        ('I answer {"action": "1"}, not {"action": "7"}', "1"),
        ("<think>{\"action\": \"0\"}</think><action>1</action>", "1"),
        ("<action>0</action> or rather <action>\n1\n</action>", "1"),
        ("<action>click[buy now]</action>", "click[Buy Now]"),
        ("1", "1"),
        (" **1**. ", "1"),
        ('"1"', "1"),
        ("-0.5", "-0.5"),
        ("click[Buy Now]", "click[Buy Now]"),
    ],
)  # fmt: skip
def test_what_is_meant_is_read(text: str, action: str) -> None:
    assert read_answer(text, ACTION) == ({"action": action}, [])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "it is empty"),
        ("<think>Let me think, 1", "it is empty"),
        ("I go right.", "it holds no answer in the form that was asked for"),
        ("0 or 1", "it holds no answer in the form that was asked for"),
        ('{"action": "', "it holds no answer in the form that was asked for"),
        ('{"action": "7"}', "answer.action should be one of ['0', '1', 'click[Buy Now]', '-0.5'], is '7'"),
        ('{"action": true}', "answer.action should be of type string"),
        ('{"act": "1"}', "answer.action is missing"),
        ('{"action": ["1"]}', "answer.action should be of type string"),
        ('{"action": "1", "why": ""}', "answer.why should not be there"),
        ("[" * 100_000, "it holds no answer"),
        ('{"a":' * 5_000, "it holds no answer"),
    ],
)
def test_an_invalid_answer_is_described(text: str, wrong: str) -> None:
    data, message = read_answer(text, ACTION)
    assert data is None
    assert wrong in "; ".join(message)


def test_reasons_and_action() -> None:
    data = {"reasoning": "Down is a hole.", "action": "1"}
    assert read_answer(json.dumps(data), REASONED) == (data, [])
    assert read_answer("<reasoning>Down is a hole.</reasoning>\n<action>1</action>", REASONED) == (data, [])
    assert read_answer("1", REASONED)[0] is None  # reasons were asked for


@pytest.mark.parametrize(
    "text",
    [
        '{"success": "yes", "n": "3", "items": ["1", 2.0]}',
        "<success>true</success><n>3</n><items>[1, 2]</items>",
        '<answer>{"success": true, "n": 3, "items": [1, 2]}</answer>',
    ],
)
def test_types_that_are_meant(text: str) -> None:
    assert read_answer(text, MIXED) == ({"success": True, "n": 3, "items": [1, 2]}, [])


def test_numbers_that_are_not_meant_are_not_guessed() -> None:
    assert read_answer('{"success": true, "n": 2.5, "items": []}', MIXED)[0] is None
    assert read_answer('{"success": true, "n": "three", "items": []}', MIXED)[0] is None
    assert read_answer('{"success": true, "n": 11, "items": []}', MIXED)[1] == ["answer.n should be at most 10, is 11"]


@pytest.mark.parametrize(
    ("schema", "form", "message"),
    [
        (ACTION, "json_schema", 'Answer with JSON alone, by this schema: {"type": "object", "properties": {"action"'),
        (ACTION, "json_object", 'Answer with JSON alone, by this schema: {"type": "object", "properties": {"action"'),
        (ACTION, "text", 'End your answer with: <action>one of "0", "1", "click[Buy Now]", "-0.5"</action>'),
        (REASONED, "text", '<reasoning>text</reasoning><action>one of "0", "1"</action>'),
        (MIXED, "text", '<answer>JSON by this schema: {"type": "object", "properties": {"success"'),
    ],
)
def test_the_instruction_ends_the_last_message(schema: dict[str, Any], form: str, message: str) -> None:
    before = [Message("system", "You play."), Message("user", "Where to?")]
    system, user = instruct(before, schema, form)
    assert system == before[0]
    assert user.content.startswith("Where to?\n\n")
    assert message in user.content
    assert "title" not in user.content


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_in_the_requested_form_is_read(form: str) -> None:
    answer = "<action>1</action>" if form == "text" else '{"action": "1"}'
    assert read_answer(answer, ACTION)[0] == {"action": "1"}


def test_servers_are_sent_what_they_know() -> None:
    assert response_format(ACTION, "text") is None
    assert response_format(ACTION, "json_object") == {"type": "json_object"}
    sent = response_format(REASONED, "json_schema")
    assert sent is not None
    assert sent["json_schema"]["strict"] is True
    assert sent["json_schema"]["schema"]["properties"]["reasoning"] == {"type": "string"}  # no length: some refuse it
    sent = response_format(MIXED, "json_schema")
    assert sent is not None
    assert (sent["json_schema"]["name"], sent["json_schema"]["strict"]) == ("mixed_things_", False)
