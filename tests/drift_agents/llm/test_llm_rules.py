"""The offline model, and how any model is asked."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest
from drift_agents.errors import ArgumentError, ModelError, UnknownNameError
from drift_agents.llm.base import Completion, Message, Model, RuleModel, ask, read_messages

LENGTH = {"title": "length", "type": "integer", "minimum": 1}


def words(text: str) -> int:
    return len(text.split())


def test_it_keeps_the_protocol() -> None:
    assert isinstance(RuleModel({}), Model)


def test_the_title_chooses_the_rule_and_the_rule_reads_the_user_alone() -> None:
    model = RuleModel({"length": words, "echo": str.upper})
    messages = [Message("system", "Count."), Message("user", "a b"), Message("assistant", "2"), Message("user", "c")]
    assert model.complete(messages, LENGTH) == Completion("3", 3)
    assert model.complete(messages, {"title": "echo"}).data == "A B\n\nC"
    assert model.complete(messages, LENGTH, {"temperature": 1.0}, sample_index=4).data == 3


@pytest.mark.parametrize("schema", [None, {}, {"title": 3}])
def test_a_schema_without_a_title_is_refused(schema: Any) -> None:
    with pytest.raises(ArgumentError, match="the rules need a schema with a `title` that names a rule"):
        RuleModel({"length": words}).complete([], schema)


def test_an_unknown_title_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no rule is called 'lenght', did you mean 'length'"):
        RuleModel({"length": words}).complete([], {"title": "lenght"})


def test_a_rule_must_be_a_function() -> None:
    with pytest.raises(ArgumentError, match=re.escape("the rule 'length' should be a function of a text. Received 3")):
        RuleModel({"length": 3})  # type: ignore[dict-item]


def test_the_table_is_the_models_own() -> None:
    table = {"length": words}
    model = RuleModel(table)
    table.clear()
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.complete([Message("user", "a b")], LENGTH).data == 2


def test_an_answer_of_another_form_is_an_error() -> None:
    with pytest.raises(ModelError, match=r"the model 'rules' should answer 'length' by its schema: .*at least 1, is 0"):
        ask(RuleModel({"length": words}), [Message("user", "")], LENGTH)


def test_a_template_has_a_system_part_and_a_users_part() -> None:
    system, user = read_messages("memory/templates/memory_bank_day.txt", day="$5 for {nothing}")
    assert (system.role, user) == ("system", Message("user", "$5 for {nothing}"))
    assert '{"summary": "..."}' in system.content


def test_a_gap_left_open_is_an_error() -> None:
    with pytest.raises(KeyError, match="day"):
        read_messages("memory/templates/memory_bank_day.txt")
