"""EDV with language models: members act, distil and vote through one server, and all of it is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.runner import run_experiment

pytest.importorskip("openai")


def act(request: dict[str, Any]) -> str:
    position = re.search(r"Current Position: \[(\d), (\d)\]", request["messages"][1]["content"])
    assert position is not None
    row, column = int(position[1]), int(position[2])
    return json.dumps({"action": "2" if column < 1 or row == 2 else "1"})


def mind(chat: ModuleType, asked: list[tuple[str, str, str]]) -> Any:
    """Models that act by a fixed rule, distil one item, and vote as they are called."""

    def answer(request: dict[str, Any]) -> Any:
        form, model = request["response_format"]["json_schema"]["name"], request["model"]
        prompt = request["messages"][-1]["content"]
        asked.append((form, model, prompt))
        if form == "edv_distil":
            item = {"title": "Go round", "description": "D", "content": "C", "evidence": ["1.1", "1.2"]}
            return chat.said(json.dumps({"items": [item]}), tokens=(50, 20))
        if form == "edv_vote":
            if model == "grim":
                return chat.said("I would rather not.", tokens=(50, 3))
            return chat.said(json.dumps({"accepted": [1]}), tokens=(50, 3))
        return chat.said(act(request), tokens=(100, 5))

    return answer


def experiment(path: str, url: str, names: list[str], **options: Any) -> Any:
    members = [{"name": name, "policy": {"llm": {"model": name, "base_url": url, "format": "paper"}}} for name in names]
    return load_experiment(
        {
            "name": "tiny",
            "schedules": [path],
            "agents": {
                "memory": "consensus",
                "policy": {"llm": {"model": names[0], "base_url": url, "format": "paper"}},
                "team": {"edv": {"members": members, "rotate": False, "trajectories": 2, **options}},
            },
            "seeds": 1,
            "rounds": 1,
            "train": {"episodes": 1, "where": "same"},
        }
    )


def test_members_act_distil_and_vote_and_what_they_learned_stands_in_the_prompt(
    chat: ModuleType, puddle: str, tmp_path: Path
) -> None:
    asked: list[tuple[str, str, str]] = []
    with chat.serve(mind(chat, asked)) as server:
        what = experiment(puddle, server.url, ["ann", "bob", "cid"])
        assert needs_model(what)
        run_experiment(what, tmp_path / "run", jobs=1)
    rows = read_rows(tmp_path / "run" / "episodes.jsonl")
    training, test = ([row for row in rows if row["stage"] == stage] for stage in ("train", "test"))
    assert [row["steps"] for row in training] == [4, 4]
    assert [row["model_calls"] for row in training] == [4, 4 + 1 + 2], "one distils, two vote"
    assert [(form, model) for form, model, _ in asked if form != "action"] == [
        ("edv_distil", "cid"),
        ("edv_vote", "ann"),
        ("edv_vote", "bob"),
    ]
    votes = [prompt for form, _, prompt in asked if form == "edv_vote"]
    assert "Your trajectories: 1" in votes[0]
    assert "Your trajectories: 2" in votes[1]
    assert "Candidate 1: Go round. D C" in votes[0]
    assert [row["items"] for row in rows] == [1] * len(rows)
    assert test[0]["shared_hits"] > 0
    last = [prompt for form, _, prompt in asked if form == "action"][-1]
    assert "Go round. D C" in last


def test_rules_vote_where_a_model_does_not_answer_by_the_form(chat: ModuleType, puddle: str, tmp_path: Path) -> None:
    asked: list[tuple[str, str, str]] = []
    with chat.serve(mind(chat, asked)) as server:
        run_experiment(experiment(puddle, server.url, ["ann", "grim", "cid"]), tmp_path / "run", jobs=1)
    row = read_rows(tmp_path / "run" / "episodes.jsonl")[1]
    assert row["fallbacks"] == 1
    assert row["reasks"] == 2
