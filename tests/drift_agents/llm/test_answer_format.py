"""How a form of answer is requested, and how an answer is parsed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from drift_agents.llm.answer_format import TOOL, constrain, instruct, read_answer
from drift_agents.llm.base import Message, violations
from hypothesis import given, settings
from hypothesis import strategies as st

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
        ('First {"action": "7"}, no: {"action": "1"}.', "1"),
        ('{"action": "1"} I say it again: {"action": "1"}', "1"),
        ('{"action": "1"} because {of this', "1"),
        ('I answer {"action": "1"}, not {"action": "7"}', "1"),
        ("<think>{\"action\": \"0\"}</think><action>1</action>", "1"),
        ('Left? {"action": "0"} No.</think>{"action": "1"}', "1"),
        ("<think>0</think> 1 <think>0", "1"),
        ("<action>9</action> or rather <action>\n1\n</action>", "1"),
        ('{"answer": {"action": "1"}}', "1"),
        ('{"name": "action", "arguments": {"action": "1"}}', "1"),
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
    "text",
    [
        '{"reasoning": "Down is a hole.", "action": "1"}',
        'Well: ```{"action": "1", "why": {"action": "0"}}```',
        '{"sure": NaN, "action": 1, "other": ["0"]}',
    ],
)
def test_one_legal_action_is_taken_and_further_keys_are_left_out(text: str) -> None:
    assert read_answer(text, ACTION) == ({"action": "1"}, [])


@pytest.mark.parametrize(
    "text",
    [
        'First {"action": "0"}, no: {"action": "1"}.',
        '{"action": "0", "why": 1} {"action": "1"} {"action": "0"}',
        "<action>0</action> or rather <action>1</action>",
        "<action>1</action> or rather <action>0</action> or <action>1</action>",
        '{"action": "0"} <action>1</action>',
        '{"first": {"action": "0"}, "then": {"action": "1"}}',
    ],
)
def test_two_different_actions_are_refused(text: str) -> None:
    data, (error,) = read_answer(text, ACTION)
    assert data is None
    assert "two different answers" in error


def test_of_two_drafts_with_one_action_the_last_counts() -> None:
    drafts = [json.dumps({"reasoning": reasons, "action": "1"}) for reasons in ("Down?", "Down.")]
    assert read_answer(" ".join(drafts), REASONED).data == {"reasoning": "Down.", "action": "1"}


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
    assert read_answer('{"success": true, "n": 11, "items": []}', MIXED).errors == [
        "answer.n should be at most 10, is 11"
    ]


@pytest.mark.parametrize(
    ("schema", "form", "message"),
    [
        (ACTION, "json_schema", 'Answer with JSON alone, by this schema: {"type": "object", "properties": {"action"'),
        (ACTION, "json_object", 'Answer with JSON alone, by this schema: {"type": "object", "properties": {"action"'),
        (ACTION, TOOL, "Answer by calling the function `action`."),
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


def closed(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "form", "text"),
    [
        (closed(a={"enum": ["x"]}), "json_schema", 'Answer with a JSON object alone, with the key "a".'),
        (closed(a={"enum": ["x"]}, b={"type": "boolean"}), "json_schema", 'object alone, with the keys "a", "b".'),
        (closed(a={"type": "string", "maxLength": 9}), "json_schema", '"maxLength": 9'),
        (closed(a={"type": "array", "items": {"type": "string", "minLength": 1}}), "json_schema", '"minLength": 1'),
        ({**closed(a={"enum": ["x"]}), "required": []}, "json_schema", "by this schema"),
        ({**closed(a={"enum": ["x"]}), "additionalProperties": True}, "json_schema", "by this schema"),
        (closed(a=closed(b={"enum": ["x"]})), "json_schema", 'with the key "a".'),
        (closed(a={**closed(b={"enum": ["x"]}), "additionalProperties": True}), "json_schema", "by this schema"),
        (closed(a={"enum": ["x"]}), "json_object", "by this schema"),
        (closed(a={"enum": ["x"]}), "text", "<a>"),
    ],
)
def test_what_a_server_enforces_is_not_repeated(schema: dict[str, Any], form: str, text: str) -> None:
    (lean,) = instruct([Message("user", "Where to?")], schema, form, trusted=True)
    (full,) = instruct([Message("user", "Where to?")], schema, form)
    assert text in lean.content
    assert (lean == full) == ("object alone" not in text and "with the key" not in text)


def test_the_fields_that_enforce_a_form() -> None:
    assert constrain(ACTION, "text") == {}
    assert constrain(ACTION, "json_object") == {"response_format": {"type": "json_object"}}
    form = constrain(REASONED, "json_schema")["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["properties"]["reasoning"] == {"type": "string"}  # no length: some servers refuse it
    form = constrain(MIXED, "json_schema")["response_format"]["json_schema"]
    assert (form["name"], form["strict"]) == ("mixed_things_", False)
    sent = constrain(REASONED, TOOL)
    (tool,) = sent["tools"]
    assert tool["function"] == {"name": "action", "strict": True, "parameters": tool["function"]["parameters"]}
    assert list(tool["function"]["parameters"]["properties"]) == ["reasoning", "action"]
    assert sent["tool_choice"] == "required"


@pytest.mark.integration
@pytest.mark.parametrize("unit", ["<action>", '{"a":', '{"action": "', "[{", '{"action": "1"}', '{"a": [1, 1, 1'])
def test_reading_an_answer_of_100_000_characters_takes_seconds(unit: str) -> None:
    """A quadratic parser takes 46 s for `<action>`."""
    started = time.process_time()
    read_answer(unit * (100_000 // len(unit)), ACTION)
    assert time.process_time() - started < 10.0


def test_numbers_that_json_does_not_have_are_refused() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "maximum": 10}}, "required": ["n"]}
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "1" * 400, "1" * 5000, f'"{"1" * 5000}"'):
        data, errors = read_answer(f'{{"n": {number}}}', schema)
        assert data is None
        assert len(errors[0]) <= 503


def test_lone_surrogates_are_replaced() -> None:
    data, _ = read_answer(r'{"reasoning": "a\ud83d\ud83d", "action": "1"}', REASONED)
    assert data == {"reasoning": "a\ufffd\ufffd", "action": "1"}
    data, _ = read_answer("<reasoning>a\ud83d!</reasoning><action>1</action>", REASONED)
    assert data == {"reasoning": "a\ufffd!", "action": "1"}
    _, errors = read_answer(r'{"\ud800": 1, "reasoning": "ab", "action": "1"}', REASONED)
    "".join(errors).encode()


PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', ":", ",", "\\", "<action>", "</action>", "<think>", "</think>", "action", "0", "1", "-",
     "NaN", "1" * 400, "\ud800", r"\ud800", '{"action": "1"}', "null", "true", " ", "\n", "\x00", "```"]
)  # fmt: skip


@pytest.mark.parametrize("schema", [ACTION, REASONED, MIXED], ids=["action", "reasoned", "mixed"])
@given(text=st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=40).map("".join)))
@settings(max_examples=8 * settings().max_examples)
def test_any_text_gives_data_of_the_schema_or_errors(schema: dict[str, Any], text: str) -> None:
    data, errors = read_answer(text, schema)
    json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    "".join(errors).encode()
    assert bool(errors) == (data is None)
    if data is not None:
        assert violations(data, schema) == []


@given(
    action=st.sampled_from(["0", "1"]),
    reasoning=st.text(st.characters(exclude_categories=["Cs"]), min_size=2),
    thoughts=st.text(st.characters(exclude_categories=["Cs"])),
    opening=st.sampled_from(["", "<think>"]),
)
@settings(max_examples=3 * settings().max_examples)
def test_a_valid_answer_after_any_thoughts_is_read(action: str, reasoning: str, thoughts: str, opening: str) -> None:
    data = {"reasoning": reasoning, "action": action}
    if "think>" not in reasoning:
        assert read_answer(f"{opening}{thoughts}</think>\n{json.dumps(data)}", REASONED) == (data, [])
