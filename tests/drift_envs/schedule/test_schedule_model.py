"""The models and their JSON Schema."""

import copy
import json
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from drift_envs.schedule import Drift, Schedule, load_schedule, schedule_schema
from drift_envs.schedule.yaml import parse_yaml
from tests.documents import read_code

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA = DOCS / "schedule.schema.json"
EXAMPLES = read_code("docs/schedules.md", "yaml")

FULL = {
    "version": 1,
    "name": "all/of-it",
    "description": "everything at once",
    "env": "CartPole-v1",
    "clock": "step",
    "visibility": "implicit",
    "control": True,
    "seed": 3,
    "knobs": {
        "length": {"attribute": "unwrapped.length", "kind": "integer", "bounds": [0.1, 2.0], "doc": "metres"},
        "derived": {"polemass_length": {"product": ["masspole", "length"]}},
    },
    "tasks": {"pool": 3, "order": "fixed"},
    "base": {"map": ["SF", "FG"], "rewards": {"a": 1, "b": {"c": [1, 2]}}},
    "drifts": [
        {"name": "a", "at": 3, "set": {"length": 0.5}},
        {
            "name": "b",
            "every": 9,
            "jitter": 2,
            "for": 4,
            "kind": "gradual",
            "over": 2,
            "curve": {"steps": 2},
            "add": {"length": 1.5},
        },
        {"name": "c", "rate": 0.5, "walk": {"length": 0.5}, "swap": {"rewards": ["a", "b"]}, "choice": {"x": [1, "b"]}},
        {"name": "d", "at": 3, "kind": "incremental", "over": 2, "curve": "sigmoid", "scale": {"length": 2.0}},
    ],
}


def test_plain_data_and_back():
    schedule = load_schedule(FULL)
    assert schedule.to_dict() == FULL
    assert json.loads(json.dumps(schedule.to_dict())) == FULL
    assert load_schedule(schedule.to_dict()) == schedule
    assert set(schedule.knobs.specs) == {"length"}


def test_schedules_are_values():
    one, other = load_schedule(FULL), load_schedule(copy.deepcopy(FULL))
    assert one == other
    assert {one: 1}[other] == 1
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    changed = load_schedule({**FULL, "seed": 4})
    assert changed != one
    assert changed.content_hash() != one.content_hash()
    with pytest.raises(ValidationError, match="frozen"):
        one.name = "other"
    with pytest.raises(TypeError, match="never changes"):
        one.base["map"] = ()


def test_the_hash_is_of_the_content_not_of_how_it_is_written():
    written = {"version": 1, "name": "a", "drifts": [{"at": 3, "set": {"slip": 1}}]}
    spelled = {
        "clock": "episode",
        "drifts": [{"set": {"slip": 1.0}, "name": "drift-1", "at": 3}],
        "name": "a",
        "version": 1,
    }
    assert load_schedule(written).content_hash() == load_schedule(spelled).content_hash() == "de295dbb6fadd982"


def test_models_keep_the_rules_without_the_loader():
    with pytest.raises(ValidationError, match="says nowhere when it happens"):
        Drift.model_validate({"name": "a", "set": {"slip": 1}})
    with pytest.raises(ValidationError, match="should stand for one drift only"):
        Schedule.model_validate({"version": 1, "name": "a", "drifts": [{"name": "b", "at": 1, "set": {"c": 1}}] * 2})


def test_the_published_schema_is_the_schema():
    assert json.loads(SCHEMA.read_text("utf-8")) == schedule_schema(), "write it anew: drift-envs schema"


def test_the_schema_knows_every_key_and_extends():
    schema = schedule_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {*FULL, "extends", "variants"}
    drift = schema["$defs"]["Drift"]
    assert {key for one in FULL["drifts"] for key in one} == set(drift["properties"])
    assert "required" not in drift or not drift["required"]
    assert all("description" in key for key in drift["properties"].values())


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_reference_are_schedules(text):
    data = parse_yaml(text, "schedules.md").data
    assert load_schedule({"version": 1, **(data or {})}).version == 1


def test_the_reference_names_every_key():
    reference = (DOCS / "schedules.md").read_text("utf-8")
    schema = schedule_schema()
    keys = {*schema["properties"], *(key for part in schema["$defs"].values() for key in part["properties"])}
    assert [key for key in sorted(keys) if f"`{key}" not in reference and f"{key}:" not in reference] == []
