"""How a form of answer is requested, and how an answer is parsed."""

from __future__ import annotations

from typing import Any

import pytest
from drift_agents.llm.answer_format import TOOL, constrain, instruct
from drift_agents.llm.base import Message

from tests.answer_schemas import ACTION, MIXED, REASONED


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
