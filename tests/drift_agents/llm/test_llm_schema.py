"""The part of JSON Schema that questions to small models use."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
from drift_agents.errors import ArgumentError
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.utils.json_schema import violations

NOTE = {
    "title": "note",
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 5},
        "weight": {"type": "number", "minimum": 0, "maximum": 1},
        "evidence": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        "kind": {"enum": ["a", "b"]},
        "sure": {"type": "boolean"},
        "more": {"type": "null"},
    },
    "required": ["text"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "data",
    [
        {"text": "fell"},
        {"text": "é", "weight": 0, "evidence": [1], "kind": "b", "sure": True, "more": None},
        {"text": "12345", "weight": 1.0, "evidence": [-3, 4]},
    ],
)
def test_valid_data_breaks_no_rule(data: Any) -> None:
    assert violations(data, NOTE) == []


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (None, ["answer should be of type object, is None"]),
        ({}, ["answer.text is missing"]),
        ({"text": 3}, ["answer.text should be of type string, is 3"]),
        ({"text": ""}, ["the length of answer.text should be at least 1, is 0"]),
        ({"text": "123456"}, ["the length of answer.text should be at most 5, is 6"]),
        ({"text": "a", "weight": -0.1}, ["answer.weight should be at least 0, is -0.1"]),
        ({"text": "a", "weight": float("nan")}, ["answer.weight should be at least 0, is nan"]),
        ({"text": "a", "weight": True}, ["answer.weight should be of type number, is True"]),
        ({"text": "a", "evidence": []}, ["the length of answer.evidence should be at least 1, is 0"]),
        ({"text": "a", "evidence": [1, 2, 3]}, ["the length of answer.evidence should be at most 2, is 3"]),
        ({"text": "a", "evidence": [1, 2.5]}, ["answer.evidence[1] should be of type integer, is 2.5"]),
        ({"text": "a", "evidence": [False]}, ["answer.evidence[0] should be of type integer, is False"]),
        ({"text": "a", "kind": "c"}, ["answer.kind should be one of ['a', 'b'], is 'c'"]),
        ({"text": "a", "sure": 1}, ["answer.sure should be of type boolean, is 1"]),
        ({"text": "a", "more": 0}, ["answer.more should be of type null, is 0"]),
        ({"text": "a", "else": 0}, ["answer.else should not be there"]),
    ],
)
def test_every_broken_rule_is_described(data: Any, wrong: list[str]) -> None:
    assert violations(data, NOTE) == wrong


def test_all_broken_rules_are_described_at_once() -> None:
    assert len(violations({"weight": 2, "sure": 0}, NOTE)) == 3


@pytest.mark.parametrize("schema", [{"pattern": "a+"}, {"type": "real"}, {"type": ["string", "null"]}])
def test_an_unsupported_rule_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=re.escape("a schema should use the types object, array")):
        violations("a", schema)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.5]) | st.text("ab", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NOTE["properties"], "else"]), inner),
    max_leaves=8,
)


@given(data=VALUES | st.fixed_dictionaries({}, optional=dict.fromkeys(NOTE["properties"], VALUES)))
def test_it_accepts_what_the_package_jsonschema_accepts(data: Any) -> None:
    assert (not violations(data, NOTE)) == jsonschema.Draft202012Validator(NOTE).is_valid(data)
