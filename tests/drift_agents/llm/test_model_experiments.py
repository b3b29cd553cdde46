"""Experiments with language models: recorded, replayed, stopped, resumed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drift_agents.analysis.report import write_report
from drift_agents.errors import (
    BudgetError,
    ExperimentError,
    ModelAccessError,
    ModelUnavailableError,
    ReplayError,
)
from drift_agents.experiment import runner
from drift_agents.experiment.folder import REPLIES
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.replay import list_records
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.budget import Budget
from drift_agents.llm.service import ReplyStore, Service

from tests.drift_agents.experiment.cluster_of_threads import Threads

pytest.importorskip("openai")

ANSWERS = {
    "reflection_questions": {"questions": ["Where does it end?"]},
    "insights": {"insights": [{"insight": "Holes are near.", "because_of": [1]}]},
    "importance": {"importance": 5},
    "memory_bank_day": {"summary": "Down leads to the goal."},
}


def experiment(puddle: str, url: str, **policy: Any) -> Any:
    return load_experiment(
        {
            "name": "tiny",
            "schedules": [puddle],
            "agents": {
                "memory": ["none", "vanilla", "memory_bank"],
                "verifier": ["none", "glove"],
                "policy": {"llm": {"model": "tiny", "base_url": url, "price": [1, 10], "format": "paper", **policy}},
            },
            "seeds": 2,
            "rounds": 2,
        }
    )


def play(chat: ModuleType) -> Any:
    """A model that walks to the goal by a fixed rule, and sometimes talks instead."""

    def answer(request: dict[str, Any]) -> Any:
        form = request["response_format"]["json_schema"]["name"]
        if form in ANSWERS:
            return chat.said(json.dumps(ANSWERS[form]))
        last = request["messages"][-1]["content"]
        position = re.search(r"Current Position: \[(\d), (\d)\]", request["messages"][1]["content"])
        assert position is not None
        row, column = int(position[1]), int(position[2])
        if column == 1 and "cannot be used" not in last:
            return chat.said("Let me think.", tokens=(100, 7))
        return chat.said(json.dumps({"action": "2" if column < 1 or row == 2 else "1"}), tokens=(100 + row, 5))

    return answer


def lines(folder: Path) -> bytes:
    return (folder / "episodes.jsonl").read_bytes()


@pytest.fixture(scope="module")
def run(chat: ModuleType, puddle: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run with recorded replies: its folder, the experiment and how many requests it took."""
    tmp_path = tmp_path_factory.mktemp("recorded")
    with chat.serve(play(chat)) as server:
        what = experiment(puddle, server.url)
        run_experiment(what, tmp_path / "run", jobs=3)
    write_report(tmp_path / "run")
    return what, tmp_path / "run", len(server.requests), server


def test_calls_tokens_cost_latency_and_reasks_are_in_the_lines(run: Any) -> None:
    rows = read_rows(run[1] / "episodes.jsonl")
    assert {row["policy"] for row in rows} == {"llm(tiny)"}
    first = rows[0]
    assert (first["memory"], first["score"], first["steps"]) == ("none", 1.0, 4)
    # Four steps; in column 1 it has to be asked twice: [0, 0], [0, 1], [1, 1], [2, 1].
    assert (first["model_calls"], first["reasks"], first["invalid_actions"]) == (7, 3, 0)
    assert first["tokens_out"] == 4 * 5 + 3 * 7
    assert first["cost"] == pytest.approx((first["tokens_in"] + 10 * first["tokens_out"]) / 1e6)
    assert first["milliseconds"] >= 0


def test_memories_use_the_same_model_and_their_usage_is_counted(run: Any) -> None:
    rows = read_rows(run[1] / "episodes.jsonl")
    plain, bank = (next(row for row in rows if row["memory"] == memory) for memory in ("vanilla", "memory_bank"))
    assert plain["steps"] == bank["steps"]
    assert bank["model_calls"] == plain["model_calls"] + 1
    titles = [request["response_format"]["json_schema"]["name"] for request in run[3].requests]
    assert titles.count("memory_bank_day") >= 1
    assert {request["temperature"] for request in run[3].requests} == {0}


def test_no_request_is_sent_twice(run: Any) -> None:
    asked = [json.dumps(request["messages"]) for request in run[3].requests]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("jobs", [1, 4])
def test_recorded_replies_give_the_same_tables_without_server_and_key(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    what, folder, *_ = run
    shipped = tmp_path / "shipped.sqlite"
    shipped.write_bytes((folder / REPLIES).read_bytes())
    with ReplyStore(shipped, read_only=True) as replies:
        again = run_experiment(what, tmp_path / "again", jobs=jobs, service=Service(replies=replies)).parent
    write_report(again)
    assert lines(again) == lines(folder)
    assert (again / "report.md").read_bytes() == (folder / "report.md").read_bytes()
    assert (again / "run.json").read_bytes() == (folder / "run.json").read_bytes()
    assert not (again / REPLIES).exists()


def test_what_memories_hold_is_listed_without_server_and_key(run: Any) -> None:
    listed = list(list_records(run[1], "memory_bank--none"))
    sizes = [row["memory_size"] for row in read_rows(run[1] / "episodes.jsonl") if row["memory"] == "memory_bank"]
    assert 0 < len(listed) <= sum(sizes)


def test_a_folder_with_replies_alone_may_be_used_and_fresh_keeps_them(run: Any, tmp_path: Path) -> None:
    what, folder, *_ = run
    again = tmp_path / "again"
    again.mkdir()
    (again / REPLIES).write_bytes((folder / REPLIES).read_bytes())
    for fresh in (False, True):  # the server is gone: all comes from the file
        assert lines(run_experiment(what, again, fresh=fresh).parent) == lines(folder)


def test_another_request_is_not_answered_from_the_records(run: Any, puddle: str, tmp_path: Path) -> None:
    with ReplyStore(run[1] / REPLIES, read_only=True) as replies:
        other = experiment(puddle, run[3].url, temperature=0.5)
        with pytest.raises(ExperimentError, match="holds no reply of 'tiny' to 'action'") as error:
            run_experiment(other, tmp_path / "other", service=Service(replies=replies))
    assert isinstance(error.value.__cause__, ReplayError)


def timeless(path: Path) -> list[dict[str, Any]]:
    return [{**row, "milliseconds": 0} for row in read_rows(path / "episodes.jsonl")]


def count_episodes(folder: Path) -> int:
    """How many lines of episodes the workers of a run have written."""
    lines = b"".join(path.read_bytes() for path in (folder / "cells").iterdir()).splitlines()
    return sum(line.startswith(b'{"env"') for line in lines)


@pytest.mark.parametrize(
    ("options", "lost"),
    [({"jobs": 2}, ()), ({"backend": "ray"}, ()), ({"backend": "ray"}, (1, 3))],
    ids=["threads", "cluster", "cluster that loses workers"],
)
def test_a_budget_stops_the_run_and_a_larger_one_continues_it(
    run: Any,
    chat: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    lost: tuple[int, ...],
) -> None:
    """No reply is paid for twice, and the result is that of a run without a stop."""

    @contextmanager
    def connect(*_: Any) -> Iterator[Threads]:
        yield Threads(lost)

    monkeypatch.setattr(runner, "open_cluster", connect)
    with chat.serve(play(chat)) as server:
        what, folder = experiment(run[0].schedules[0], server.url), tmp_path / "run"
        with pytest.raises(ExperimentError, match="the budget of 2000 tokens is spent") as error:
            run_experiment(what, folder, **options, service=Service(budget=Budget(tokens=2000)))
        assert isinstance(error.value.__cause__, BudgetError)
        assert 18 <= len(server.requests) <= 25
        run_experiment(what, folder, **options, resume=True)
        assert len(server.requests) == run[2]
    assert timeless(folder) == timeless(run[1])


def test_a_failing_server_stops_the_run_and_finished_episodes_stay(
    chat: ModuleType, puddle: str, tmp_path: Path
) -> None:
    well, alive = play(chat), threading.Event()
    alive.set()

    def answer(request: dict[str, Any]) -> Any:
        if len(server.requests) > 15:
            alive.clear()
        return well(request) if alive.is_set() else chat.refused(500, "out of memory")

    with chat.serve(answer) as server:
        what, folder = experiment(puddle, server.url), tmp_path / "run"
        with pytest.raises(ExperimentError, match="status 500: out of memory") as error:
            run_experiment(what, folder, jobs=2, service=Service(retries=1))
        assert isinstance(error.value.__cause__, ModelUnavailableError)
        assert count_episodes(folder) >= 1
        server.answer = well
        run_experiment(what, folder, jobs=2, resume=True)
    assert len(read_rows(folder / "episodes.jsonl")) == 2 * 4 * 5


def test_a_wrong_key_stops_the_run_at_once(chat: ModuleType, puddle: str, tmp_path: Path) -> None:
    with chat.serve(lambda _: chat.refused(401, "Incorrect API key")) as server:
        with pytest.raises(ExperimentError, match="refuses the key") as error:
            run_experiment(experiment(puddle, server.url), tmp_path / "run")
        assert isinstance(error.value.__cause__, ModelAccessError)
        assert len(server.requests) == 1


def test_invalid_answers_are_counted_and_the_run_continues(chat: ModuleType, puddle: str, tmp_path: Path) -> None:
    with chat.serve(lambda _: chat.said('{"action": "')) as server:
        what = experiment(puddle, server.url)
        what = what.model_copy(update={"seeds": (0,), "rounds": 1})
        rows = read_rows(run_experiment(what, tmp_path / "run", jobs=2))
    assert all(row["invalid_actions"] == row["steps"] for row in rows)
    bank = [row for row in rows if row["memory"] == "memory_bank"]
    assert all(row["fallbacks"] == 1 for row in bank)
    assert all(row["model_calls"] == 3 * (row["steps"] + 1) for row in bank)


def test_a_memory_may_keep_its_rules(chat: ModuleType, puddle: str, tmp_path: Path) -> None:
    data = experiment(puddle, "http://127.0.0.1:9/v1").to_dict()
    data["agents"][0]["memory"] = [{"memory_bank": {"model": "rules"}}]
    with chat.serve(play(chat)) as server:
        data["agents"][0]["policy"][0]["options"]["base_url"] = server.url
        run_experiment(load_experiment(data), tmp_path / "run")
    titles = {request["response_format"]["json_schema"]["name"] for request in server.requests}
    assert titles == {"action"}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"policy": "llm"}, "the policy 'llm' needs the name of a model"),
        (
            {"memory": {"memory_bank": {"model": "gpt-5"}}},
            "should be 'rules', or left out. Received {'model': 'gpt-5'}",
        ),
        ({"memory": {"vanilla": {"model": "rules"}}}, "vanilla: the option `model` of a memory that uses one"),
    ],
)
def test_invalid_parts_are_refused_before_the_first_episode(
    puddle: str, tmp_path: Path, part: dict[str, Any], message: str
) -> None:
    data = experiment(puddle, "http://127.0.0.1:9/v1").to_dict()
    data["agents"] = {"memory": "vanilla", "policy": {"llm": {"model": "tiny"}}, **part}
    with pytest.raises(ExperimentError, match=re.escape(message)):
        run_experiment(load_experiment(data), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()
