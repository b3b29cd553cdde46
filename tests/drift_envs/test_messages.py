"""What messages of language models say: the wordings of docs/language_models.md, JSON by a schema, and tool calls."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.messages import read_action, read_answer, without_thoughts
from drift_envs.utils.json_schema import violations
from tests.answer_schemas import ACTION, MIXED, REASONED


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


@pytest.mark.integration
@pytest.mark.parametrize(
    "unit",
    [
        "<action>",
        '{"a":',
        '{"action": "',
        "[{",
        '{"action": "1"}',
        '{"a": [1, 1, 1',
        "`",
        "_",
        "I choose ",
        "Action: 0\n",
    ],
)
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


def wordings() -> list[Any]:
    """The rows of the table on docs/language_models.md."""
    page = (Path(__file__).parents[2] / "docs/language_models.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(.*)` \| (?:`(.*)`)? ?\|$", page.partition("### Wordings")[2].partition("\n## ")[0], re.MULTILINE
    )
    return [pytest.param(text.replace(r"\n", "\n"), action or None, id=text) for text, action in rows]


NAMED = ("0", "1", "click[buy now]", "go to desk 1")


@pytest.mark.parametrize(("text", "action"), wordings())
def test_the_wordings_of_the_page(text: str, action: str | None) -> None:
    schema = {**ACTION, "properties": {"action": {"enum": list(NAMED)}}}
    assert read_answer(text, schema).data == (action and {"action": action})
    assert read_action(text, NAMED, is_open=False).data == action
    opened = read_action(text, NAMED).data
    assert opened == action or (action is None and opened not in NAMED)  # the environment refuses it


def call(arguments: Any, name: str = "act") -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


ONE = {"action": "go to desk 1"}
GO = "Action: go to desk 1"


@pytest.mark.parametrize(
    "message",
    [
        call(ONE),
        call(json.dumps(ONE)),
        call(json.dumps(json.dumps(ONE))),
        call({"arguments": json.dumps(ONE)}),
        {**call(ONE), "content": "<think>Action: 0"},
        {**call(ONE), "content": [{"type": "thinking", "thinking": "Action: 0"}, {"type": "text", "text": "I go."}]},
        {"content": [{"type": "text", "text": "I go."}, {"type": "tool_use", "name": "act", "input": ONE}]},
        {"content": "", "tool_calls": [{"name": "act", "args": ONE, "id": "x"}]},
        SimpleNamespace(content="", tool_calls=[SimpleNamespace(function="act", arguments=ONE, id="x")]),
        SimpleNamespace(content=[SimpleNamespace(type="reasoning", text="0"), SimpleNamespace(type="text", text=GO)]),
        {"content": [{"type": "reasoning", "text": "Action: 0"}, {"type": "text", "text": "Action: Go to desk 1"}]},
        json.dumps(json.dumps(ONE)),
        json.dumps({"tool_calls": [{"type": "function", "function": {"name": "act", "arguments": json.dumps(ONE)}}]}),
        ONE,
        "<|channel|>analysis<|message|>Action: 0<|end|><|start|>assistant<|channel|>final<|message|>go to desk 1",
        "[THINK]Action: 0[/THINK]go to desk 1",
        "\u25c1think\u25b7Action: 0\u25c1/think\u25b7 I will go to desk 1.",
        "<Thinking>\nAction: 0\n</Thinking>\nNext action: `go to desk 1`",
        "<reasoning>I choose 0.</reasoning>\nI choose 'go to desk 1'.",
        "Action:\n```\ngo to desk 1\n```",
        "Thought: take 0?\n\nAction 7: go to desk 1",
        "{'action': 'go to desk 1'}",
        "I'd rather not take 0. The best move is **go to desk 1**.",
    ],
)  # fmt: skip
def test_one_action_in_messages_of_any_shape(message: Any) -> None:
    assert read_action(message, NAMED) == ("go to desk 1", [])


@pytest.mark.parametrize(
    "text",
    [
        "<think>I choose 1.",
        "<thinking>Action: 1\n",
        "[THINK]1",
        "\u25c1think\u25b7 <action>1</action>",
        "<|channel|>analysis<|message|>Action: 1",
        "<think>Action: 0</think> <think>Action: 1",
        "Action: 1</think>",
        "The best answer is 1</thinking>",
        {"content": [{"type": "reasoning", "text": "Action: 1"}]},
        {"content": None, "reasoning_content": "Action: 1"},
        None,
        "",
    ],
)
def test_a_thought_never_acts(text: Any) -> None:
    assert read_action(text, NAMED) == (None, ["it is empty"])


@pytest.mark.parametrize(
    "text",
    [
        "I choose 0, I choose 1.",
        "Answer: 0\n<action>1</action>",
        '{"action": "1", "then": 2} {"name": "act", "arguments": "{\\"action\\": \\"0\\"}"}',
        "`0` or `1`",
        "0\n1",
        "click[buy now], then go to desk 1",
        call(ONE) | {"content": "Action: 0"},
    ],
)
def test_two_actions_are_refused_in_any_form(text: Any) -> None:
    for is_open in (False, True):
        data, (error,) = read_action(text, NAMED, is_open)
        assert data is None
        assert "two different answers" in error


@pytest.mark.parametrize(
    "text",
    [
        "If I choose 1, I fall.",
        "I won't go to desk 1.",
        "Never take 1.",
        "Maybe the answer is 1.",
        "Should I take 1?",
        "Taking 1 leads to a hole.",
        "The worst move is 1.",
        "The answer is 1.5.",
        "The answer is 10.",
        "The answer is 0 or 1.",
        "Action: 1, 0",
        "Action: 1 or 0",
        "I rule out action 1.",
        '{"action": "1',
        'I choose 1. {"action": "7"}',
        '{"reasoning": "I choose 1.',
        "Thought: I choose 1.",
        "At desk 1 there is nothing.",
    ],
)
def test_what_names_no_action_is_not_guessed(text: str) -> None:
    assert read_action(text, NAMED, is_open=False).data is None


@pytest.mark.parametrize(
    ("text", "actions", "action"),
    [
        ("The answer is 0.3.", ("-1.0", "0.0", "1.0"), "0.3"),
        ('{"action": 0.3}', ("-1.0", "0.0", "1.0"), "0.3"),
        ("I choose [0, 1].", ("[0, 0]", "[0, 1]"), "[0, 1]"),
        ('{"action": [0, 1]}', ("[0, 0]", "[0, 1]"), "[0, 1]"),
        ("Action: `search[red mug: 2 l]`", ("click[back]",), "search[red mug: 2 l]"),
        ("I choose search[red mug].", ("click[back]",), "search[red mug]"),
        ("`click[Buy Now]`", ("search[mug]",), "click[Buy Now]"),
        ("Right is safe, so I go right.", ("left", "right"), "right"),
        ("Option 1", ("0", "1"), "1"),
        ("I would rather not.", ("0", "1"), "I would rather not."),
    ],
)
def test_actions_that_are_not_shown_and_other_names(text: str, actions: tuple[str, ...], action: str) -> None:
    assert read_action(text, actions) == (action, [])


FINISH, FIND = {"tool": "finish", "arguments": {}}, {"tool": "find_customer", "arguments": {"email": "a@example.org"}}


@pytest.mark.parametrize(
    "message",
    [
        json.dumps(FIND),
        f"I look it up.\n```json\n{json.dumps(FIND, indent=2)}\n```",
        f"Action: {json.dumps(FIND)}",
        f"Action:\n```json\n{json.dumps(FIND, indent=1)}\n```",
        {"action": FIND},
        {"action": json.dumps(FIND)},
        call(json.dumps(FIND["arguments"]), "find_customer"),
        call(json.dumps(json.dumps(FIND["arguments"])), "find_customer"),
        call({"action": FIND}),
        FIND,
    ],
)
@pytest.mark.parametrize("shown", [FIND, FINISH], ids=["shown", "not shown"])
def test_a_call_at_a_desk_is_an_action_as_it_is(message: Any, shown: dict[str, Any]) -> None:
    found = read_action(message, [json.dumps(shown)]).data
    assert json.loads(found) == FIND


@given(st.text(), st.sampled_from(["3", "-0.5", "click[buy now]", "go to desk 1", "search[red mug: 2 l]"]))
def test_the_last_line_with_an_action_is_read(before: str, action: str) -> None:
    before = without_thoughts(before).replace("{", "").replace("=", "")
    for form in (f"Action: {action}", f"**Action:** {action}", f"action : `{action}`  "):
        assert read_action(f"{before}\nAction: 0\nFrom here on:\n{form}", ["0", action]).data == action


def test_reasons_are_the_words_before_the_action() -> None:
    assert read_answer("Down is a hole.\nAction: 1", REASONED).data == {"reasoning": "Down is a hole.", "action": "1"}
    assert read_answer("<reasoning>Down.</reasoning>\nAction: 1", REASONED).data["action"] == "1"
    schema = {
        "type": "object",
        "properties": {"importance": {"type": "integer", "maximum": 10}},
        "required": ["importance"],
    }
    assert read_answer("It is rare.\nImportance: 7", schema).data == {"importance": 7}
