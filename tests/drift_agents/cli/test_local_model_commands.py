"""The commands about models on this machine, and the option `--dry-run`."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.cli.dry_run import estimate
from drift_agents.cli.serve_local import NAME, find_model_file, serve_model
from drift_agents.errors import MissingDependencyError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.base import Message
from drift_agents.llm.openai_compatible import OpenAICompatible

SCHEMA = {
    "title": "action",
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["0", "1"]}},
    "required": ["action"],
    "additionalProperties": False,
}


def test_the_experiment_for_a_small_budget_has_at_most_20000_decisions() -> None:
    experiment = load_experiment("glove-llm")
    rows = estimate(experiment)
    assert {row.schedule.partition("/")[0] for row in rows} == {"frozen_lake", "mountain_car", "webshop"}
    assert sum(row.most for row in rows) <= 20_000
    assert all(row.cells == 9 for row in rows)
    assert all(0 < row.decisions <= row.most for row in rows)
    assert all(row.tokens_in > 50 * row.decisions for row in rows)


def test_a_dry_run_prints_price_and_hours_and_plays_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ("run", "local-model", "--out", str(out), "--dry-run")
    assert main([*words, "--price", "1,4"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"all +2 +4 +\d+ +400 ", text)
    assert re.search(r"price +\d\.\d\d, at most \d\.\d\d", text)
    assert "hours" in text
    assert main([*words]) == 0
    assert "unknown without --price IN,OUT" in capsys.readouterr().out
    assert not out.exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the planner with all its steps."""
    folder = tmp_path_factory.mktemp("choices") / "run"
    data = {
        "name": "tiny",
        "schedules": "frozen_lake/explicit",
        "agents": {"memory": "vanilla", "policy": ["planner", "random"]},
        "seeds": 1,
        "rounds": 8,
    }
    run_experiment(load_experiment(data), folder, trace="all")
    return folder


@pytest.mark.parametrize("form", ["openai", "hf"])
def test_decisions_are_exported_as_chats(run: Path, tmp_path: Path, form: str) -> None:
    sizes = []
    for only in ("all", "successes"):
        out = tmp_path / f"{only}.jsonl"
        assert main(["export-choices", str(run), "--out", str(out), "--format", form, "--only", only]) == 0
        chats = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        for chat in chats:
            question, answer = chat["messages"] if form == "openai" else (*chat["prompt"], *chat["completion"])
            assert (question["role"], answer["role"]) == ("user", "assistant")
            assert list(json.loads(answer["content"])) == ["action"]
        sizes.append(len(chats))
    assert 0 < sizes[1] < sizes[0]


def test_without_steps_there_is_nothing_to_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export-choices", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]) == 1
    assert "keeps no steps; play the experiment with --trace all" in capsys.readouterr().err


def test_without_the_model_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("drift_agents.cli.serve_local.distribution", refuse)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install "drift-envs[llm,local-model]"')):
        find_model_file()


@pytest.mark.slow
def test_the_local_model_answers_in_form() -> None:
    for name in ("openai", "xllamacpp"):
        pytest.importorskip(name)
    try:
        path = find_model_file()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with serve_model(path) as url:
        assert url.startswith("http://127.0.0.1:")
        model = OpenAICompatible(NAME, base_url=url)
        answer = model.complete([Message("user", "Which way?")], SCHEMA, {"temperature": 0, "max_tokens": 50})
        assert answer.text in ('{"action":"0"}', '{"action":"1"}')  # a grammar without free whitespace
        assert answer.tokens_out <= 12
