"""`drift-agents run --policy llm --model NAME --base-url URL` is all that a user types."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.cli.run import read_experiment
from drift_agents.experiment import runner
from drift_agents.experiment.config import RecallOptions, TrainingSettings
from drift_agents.experiment.folder import REPLIES, read_manifest
from drift_agents.experiment.logs import read_rows

from tests.drift_agents.experiment.cluster_of_threads import Threads
from tests.drift_agents.llm.chat_server import said, serve

pytest.importorskip("openai")

FILE = """\
name: short
about: two agents on a lake
schedules: frozen_lake/null
agents: {memory: [none, vanilla], policy: planner}
seeds: 1
rounds: 1
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "short.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def server() -> Iterator[Any]:

    def answer(request: dict[str, Any]) -> Any:
        return said(json.dumps({"action": "2" if request["model"] == "right" else "1"}), tokens=(50, 5))

    with serve(answer) as running:
        yield running


def run(file: Path, out: str, *more: str) -> int:
    return main(["run", str(file), "--out", str(file.parent / out), "--policy", "llm", *more])


def test_models_play_and_the_bill_is_shown(file: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "run", "--model", "right,down", "--base-url", server.url, "--set", "policy.price=[1,10]") == 0
    printed = capsys.readouterr()
    rows = read_rows(file.parent / "run" / "episodes.jsonl")
    assert {row["policy"] for row in rows} == {"llm(right)", "llm(down)"}
    assert all(row["invalid_actions"] == 0 for row in rows)
    asked = len(server.requests)
    assert f"language models: {asked} requests, " in printed.err
    assert f"{55 * asked:,} tokens, cost {asked * 1e-4:.4f}" in printed.err
    assert (file.parent / "run" / REPLIES).exists()
    (part, _) = read_manifest(file.parent / "run")["experiment"]["agents"][0]["policy"]
    assert part == {"name": "llm", "options": {"base_url": server.url, "price": [1.0, 10.0], "model": "right"}}


@pytest.mark.integration
def test_decisions_can_be_calls_of_a_function(file: Path) -> None:
    call = {"name": "action", "arguments": '{"action": "1", "sure": true}'}
    calls = [{"id": "c", "type": "function", "function": call}]
    with serve(lambda _: said(None, "tool_calls", tool_calls=calls)) as server:
        assert run(file, "run", "--model", "tiny", "--base-url", server.url, "--set", "policy.form=tool") == 0
    assert all("tools" in request and "response_format" not in request for request in server.requests)
    assert not any(row["invalid_actions"] for row in read_rows(file.parent / "run" / "episodes.jsonl"))


def test_values_of_the_file_are_set_by_their_paths(file: Path) -> None:
    more = ("seeds=2", "recall.k=5", "memory.k=7", "train.episodes=4", "sweep.base.slip=[0.1,0.2]", "models.timeout=5")
    more += ("policy.temperature=.5", "policy.parameters.reasoning_effort=low", "policy.parameters.top_p=0.5")
    file.write_text(FILE.replace("planner}", "[planner, llm]}"))
    found = read_experiment(str(file), settings=more)
    assert (found.seeds, found.training, found.sweep) == (
        (0, 1),
        TrainingSettings(episodes=4),
        {"base.slip": (0.1, 0.2)},
    )
    assert found.settings_of("frozen_lake/null").recall == RecallOptions(k=5)
    assert [part.options for part in found.agents[0].memory] == [{}, {"k": 7}]
    parameters = {"reasoning_effort": "low", "top_p": 0.5}
    assert [part.options for part in found.agents[0].policy] == [{}, {"temperature": 0.5, "parameters": parameters}]
    assert found.models.timeout == 5
    plain = read_experiment(str(file), settings=more[:-4] + more[-3:])
    assert plain.models.timeout == 120
    assert (plain.config_hash(), plain.to_dict()) == (found.config_hash(), found.to_dict()), "not what is played"


TEAM = """\
name: short
schedules: [frozen_lake/explicit, frozen_lake/null]
agents:
  memory: vanilla
  policy: planner
  team: {router: {members: [{policy: planner, name: one}, {policy: random, name: two}]}}
environments:
  frozen_lake/null:
    rounds: 2
    team:
      router:
        members: [llm, {policy: llm, name: second}, {llm: {model: own}}, {policy: llm, name: third}, planner]
seeds: 1
rounds: 1
train: {episodes: 1, where: same}
"""


def test_models_reach_members_of_a_team_that_name_none(file: Path, server: Any) -> None:
    """Here they come from what is different on one schedule alone; the team's other members ask no model."""
    file.write_text(TEAM)
    named = ("--model", "right,down", "--base-url", server.url, "--rounds", "1")
    assert main(["run", str(file), "--out", str(file.parent / "run"), *named]) == 0
    written = read_manifest(file.parent / "run")["experiment"]
    members = [entry["policy"] for entry in written["environments"]["frozen_lake/null"]["team"]["router"]["members"]]
    assert [part["options"].get("model") for part in members] == ["right", "down", "own", "right", None]
    assert [part["options"].get("base_url") for part in members] == [*[server.url] * 4, None]
    assert {request["model"] for request in server.requests} == {"right", "down", "own"}
    rows = read_rows(file.parent / "run" / "episodes.jsonl")
    asked = dict.fromkeys(written["schedules"], 0)
    for row in rows:
        asked[row["schedule"]] += row["model_calls"]
    assert asked["frozen_lake/explicit"] == 0
    assert asked["frozen_lake/null"] >= len(server.requests) > 0
    assert sum(row["stage"] == "test" for row in rows) == 2 * 3, "as many rounds as the command says, everywhere"


def test_a_model_reaches_who_trains(file: Path, server: Any) -> None:
    file.write_text(FILE + "train: {episodes: 1, where: same, policy: llm}\n")
    named = ("--model", "down", "--base-url", server.url)
    assert main(["run", str(file), "--out", str(file.parent / "run"), *named]) == 0
    rows = read_rows(file.parent / "run" / "episodes.jsonl")
    assert {(row["stage"], row["model_calls"] > 0) for row in rows} == {("train", True), ("test", False)}
    policy = read_manifest(file.parent / "run")["experiment"]["train"]["policy"]
    assert policy == {"name": "llm", "options": {"base_url": server.url, "model": "down"}}


def test_a_team_that_cannot_be_read_on_one_schedule_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TEAM.replace("[llm,", "[lllm,"))
    assert main(["run", str(file), "--out", str(file.parent / "run"), "--model", "right"]) == 1
    error = capsys.readouterr().err
    assert "environments.frozen_lake/null.team.router" in error
    assert "lllm" in error


def test_recorded_replies_are_played_again_without_a_key(
    file: Path, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = str(file.parent / "shipped.sqlite")
    named = ("--model", "right", "--base-url", server.url)
    assert run(file, "run", *named, "--set", f"models.replies={shipped}") == 0
    asked = len(server.requests)
    report = capsys.readouterr().out
    assert run(file, "again", *named, "--replay", shipped) == 0
    printed = capsys.readouterr()
    assert len(server.requests) == asked
    assert "language models: 0 requests, " in printed.err
    assert printed.out.replace("again", "run") == report
    assert (file.parent / "again" / "episodes.jsonl").read_bytes() == (file.parent / "run/episodes.jsonl").read_bytes()


def test_a_spent_budget_says_how_to_go_on(file: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--model", "down", "--base-url", server.url)
    assert run(file, "run", *named, "--set", "models.budget_tokens=60") == 1
    error = capsys.readouterr().err
    assert "the budget of 60 tokens is spent" in error
    assert "What is done is kept; continue with: drift-agents run " in error
    assert "--resume" in error
    assert run(file, "run", *named, "--resume") == 0


def test_a_price_can_be_given_when_a_run_goes_on(file: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--model", "down", "--base-url", server.url)
    assert run(file, "run", *named) == 0
    (lost, *_), kept = sorted((file.parent / "run" / "cells").glob("*.jsonl")), file.parent / "run"
    lost.unlink()
    assert run(file, "run", *named, "--set", "policy.price=[2,20]", "--resume") == 0
    assert sorted({row["cost"] > 0 for row in read_rows(kept / "episodes.jsonl")}) == [False, True]
    ((part,),) = [block["policy"] for block in read_manifest(kept)["experiment"]["agents"]]
    assert part["options"]["price"] == [2.0, 20.0]
    assert main(["replay", str(kept)]) == 0
    assert run(file, "run", *named, "--set", "policy.price=[3,30]", "--set", "policy.max_tokens=9", "--resume") == 1
    error = capsys.readouterr().err
    assert "agents[0].policy[0].options.max_tokens: there not given, here 9" in error
    assert "price" not in error.split("another experiment")[1]


@pytest.mark.parametrize("written", ["direct,adamem", "[direct, adamem]"])
def test_parts_of_any_axis_are_chosen_by_a_setting(written: str) -> None:
    found = read_experiment("glove-quick", settings=[f"controller={written}", "policy=random"])
    for block in found.agents:
        assert [part.name for part in block.controller] == ["direct", "adamem"]
        assert [part.name for part in block.policy] == ["random"]


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (("--policy", "random", "--model", "tiny"), 2, "--model: should stand with `--policy llm`"),
        (("--policy", "random", "--replay", "a"), 2, "--replay: should stand with `--policy llm`"),
        (("--model", "tiny", "--base-url", "here"), 1, "`base_url` should be an address"),
        (("--model", "tiny", "--set", "policy.price=1"), 1, "`price` should be "),
        (("--model", "tiny", "--set", "models.budget=-1"), 1, "models.budget: should be more than 0.0. Received -1"),
        (("--model", "tiny", "--set", "models.budget=5"), 2, "`models.budget` should stand with the option `price`"),
        (("--set", "policy.temprature=1"), 2, "no option of the policy 'llm' is called 'temprature', did you mean 'te"),
        (("--set", "polcy.temperature=1"), 2, "no key of --set is called 'polcy', did you mean 'policy'?"),
        (("--set", "models.budgt=1"), 1, "models.budgt: no key is called 'budgt', did you mean 'budget'?"),
        (
            ("--set", "team={edv: 1}"),
            2,
            "should be names of parts, as in team=A,B; options are set by team.OPTION=VALUE",
        ),
        (("--set", "controller=adamen"), 2, "no controller is called 'adamen', did you mean 'adamem'?"),
        (("--set", "rounds"), 2, "should be KEY=VALUE, as in policy.temperature=.5. Received 'rounds'"),
        (("--set", "rounds=["), 2, "--set: the value should be YAML: "),
        (("--model", "tiny", "--set", "policy.temperature=hot"), 1, "`temperature` should be "),
        ((), 2, "drift-agents: the policy 'llm' needs the name of a model: --model NAME, or "),
    ],
)
def test_wrong_usage_is_reported(
    file: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], status: int, message: str
) -> None:
    assert run(file, "run", *more) == status
    assert message in capsys.readouterr().err
    assert not (file.parent / "run" / "run.json").exists()


def test_a_missing_client_is_reported_before_the_first_episode(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    assert run(file, "run", "--model", "tiny") == 1
    assert capsys.readouterr().err.startswith("drift-agents: `openai` is not installed, run ")
    assert not (file.parent / "run" / "run.json").exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    "where", [("--jobs", "2"), pytest.param(("--ray", "local"), marks=pytest.mark.slow)], ids=" ".join
)
def test_nonsense_of_all_workers_is_counted_together_and_stops_the_run(
    where: tuple[str, str], file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fifty answers in all, however many workers give them; the run has hundreds of decisions."""

    @contextmanager
    def connect(*_: Any) -> Iterator[Threads]:
        yield Threads()

    monkeypatch.setattr(runner, "open_cluster", connect)
    file.write_text(FILE.replace("/null", "/explicit"))
    with serve(lambda _: said("Hm.", tokens=(50, 5))) as server:
        assert run(file, "run", "--model", "tiny", "--base-url", server.url, *where) == 1
        counts, line = capsys.readouterr().err.strip().splitlines()[-2:]
    stopped = re.fullmatch(
        r"drift-agents: \S+: (\d+) of \1 answers are invalid: use a server .*; continue with: .*", line
    )
    assert stopped is not None, line
    sent, recorded = map(int, re.findall(r"(\d+) (?:requests|from records)", counts))
    assert 50 <= int(stopped[1]) <= 52
    assert 3 * 50 <= sent + recorded <= 3 * 55, "three for each answer, and those under way"
