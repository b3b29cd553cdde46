"""The whole path with real models behind a real server: what the extra `local-model` installs.

llama.cpp serves a tiny transformer with random weights, which are drawn here. It has learnt nothing, so what it plays
is worth nothing; that its words come through the schema, the socket, the records and the report is what counts.
SmolLM2 is tested where `drift-agents serve-local --fetch` has downloaded it; the tests download nothing.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.cli.app import main
from drift_agents.cli.serve_local import NAME, find_model_file, name_model, serve_model
from drift_agents.errors import MissingDependencyError, ModelAccessError
from drift_agents.experiment.logs import read_rows
from drift_agents.llm.base import Message
from drift_agents.llm.openai_compatible import OpenAICompatible
from drift_agents.llm.service import Service
from drift_agents.memory.beliefmem.beliefmem import STRENGTH
from drift_agents.memory.consensus.distillation import DISTIL
from drift_agents.memory.generative_agents.reflection import INSIGHTS
from drift_agents.memory.memory_bank import DAY
from drift_agents.memory.reasoning_bank import ITEMS
from drift_agents.memory.voyager.critic import CRITIQUE
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

from tests.drift_agents.llm.chat_server import SCHEMA

CONTEXT = 4096
FILE = """\
name: tiny
about: a model that has learnt nothing
schedules: frozen_lake/explicit
agents: {memory: [none, memory_bank], verifier: [none, glove], policy: {llm: {max_tokens: 200}}}
seeds: 1
rounds: 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server, and its model's name."""
    spec = importlib.util.spec_from_file_location("llm_tests_tiny_model", Path(__file__).with_name("tiny_model.py"))
    assert spec is not None
    assert spec.loader is not None
    tiny: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny)
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    tiny.write_tiny_model(path, CONTEXT)
    with serve_model(path, names=name_model(path, "tiny")) as url:
        yield url, "tiny"


def test_it_answers_by_the_schema_and_in_words(server: tuple[str, str]) -> None:
    url, name = server
    schema = {
        "title": "action",
        "type": "object",
        "properties": {"action": {"type": "string", "enum": ["0", "1", "2", "3"]}},
        "required": ["action"],
        "additionalProperties": False,
    }
    model = OpenAICompatible(name, base_url=url)
    assert name in model.models()
    first, again = (model.complete([Message("user", "Where to?")], schema, {"temperature": 0}) for _ in range(2))
    assert first.data is not None
    assert first.data["action"] in "0123"
    assert first.data == again.data
    assert first.tokens_in > len("Where to?")
    assert first.tokens_out >= len('{"action":"0"}')
    words = model.complete([Message("user", "Where to?")], None, {"max_tokens": 20})
    assert 1 <= words.tokens_out <= 20


@pytest.mark.parametrize("schema", [DAY, CRITIQUE, DISTIL, ITEMS, INSIGHTS, STRENGTH], ids=lambda one: one["title"])
def test_requests_of_memories_are_restricted_by_their_schemas(server: tuple[str, str], schema: dict[str, Any]) -> None:
    """The server refuses schemas that it cannot make a grammar of; the form would then be another one."""
    model = OpenAICompatible(server[1], base_url=server[0], form="json_schema")
    answer = model.complete([Message("user", "Well?")], schema, {"temperature": 0, "max_tokens": 20})
    assert re.match(rf'{{\s*"({"|".join(schema["properties"])})"', answer.text)


def test_a_prompt_that_is_too_long_loses_its_oldest_records(server: tuple[str, str]) -> None:
    seen = tuple(Recollection('{"at": 1}', "0", Outcome('{"at": 0}', 0.0, False), 1.0, last) for last in range(80))
    policy = LanguageModelPolicy(Service().model(server[1], server[0]), format="plain", max_tokens=50)
    view = PromptView("Any task.", '{"at": 1}', ("0", "1"), seen)
    reply = policy.decide(view.render(), np.random.default_rng(0))
    assert reply.text in ("0", "1")
    assert 0 < reply.dropped_records < 80


def test_a_run_is_recorded_and_played_again_without_the_server(
    server: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, name = server
    (tmp_path / "tiny.yaml").write_text(FILE)
    shipped = str(tmp_path / "shipped.sqlite")

    def run(out: str, *more: str) -> int:
        named = ("--model", name, "--base-url", url, "--replies", shipped)
        return main(["run", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / out), *named, *more])

    assert run("first") == 0
    rows = read_rows(tmp_path / "first" / "episodes.jsonl")
    assert {row["policy"] for row in rows} == {"llm(tiny)"}
    assert all(row["invalid_actions"] == 0 for row in rows)
    assert all(row["model_calls"] >= row["steps"] for row in rows)
    assert any(row["tokens_in"] for row in rows)
    assert run("second", "--replay") == 0
    assert (tmp_path / "first/episodes.jsonl").read_bytes() == (tmp_path / "second/episodes.jsonl").read_bytes()
    assert "language models: 0 requests" in capsys.readouterr().err


def test_refusals_of_the_server_are_shown(server: tuple[str, str]) -> None:
    with pytest.raises(ModelAccessError, match=re.escape("refuses the request (status 400)")):
        OpenAICompatible(server[1], base_url=server[0]).complete([Message("absent", "")], None, {"n_probs": "many"})


def test_smollm2_answers_in_form() -> None:
    try:
        path = find_model_file()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with serve_model(path) as url:
        assert url.startswith("http://127.0.0.1:")
        model = OpenAICompatible(NAME, base_url=url)
        answer = model.complete([Message("user", "Which way?")], SCHEMA, {"temperature": 0, "max_tokens": 50})
        assert answer.data in ({"action": "0"}, {"action": "1"})


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.gguf").write_text("words")
    assert main(["serve-local", "--file", str(tmp_path / "no.gguf"), "--port", "0"]) == 2
    assert "cannot be served" in capsys.readouterr().err
    assert main(["serve-local", "--file", str(tmp_path / "absent.gguf")]) == 2
    assert "should be a model in the format GGUF" in capsys.readouterr().err
