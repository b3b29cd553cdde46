"""The learned reader: what it reads, its server, its training, and the recorded table."""

from __future__ import annotations

import doctest
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from drift_agents.cli.app import main
from drift_agents.experiment.logs import read_rows
from drift_agents.llm.answer_format import instruct
from drift_agents.llm.base import Message
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "learned_reader"
STATE = '{{"cur_pos": [{0}, {1}], "tile_type": "F", "gold_collected": 0}}'
TASK = (
    "You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. Reach the destination with the highest score and "
    "avoid holes. There are a total of 1 destination(s): [5, 5]. The highest score is 1. "
    "Actions: 0 left, 1 down, 2 right, 3 up."
)


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[ModuleType, ModuleType]]:
    """The two scripts as modules, as Python finds them when one is started."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        yield importlib.import_module("serve_reader"), importlib.import_module("train_reader")
    finally:
        sys.path.remove(str(ROOT / "examples"))


@pytest.fixture(scope="module")
def reader(scripts: tuple[ModuleType, ModuleType]) -> Any:
    return scripts[0].Reader.load(RESULTS / "lake.npz")


def make_prompt(*ahead: tuple[str, float, int]) -> PromptView:
    """A prompt in [2, 2] with an outcome for each action: the highest score reachable, and the steps to it."""
    places = {"0": (2, 1), "1": (3, 2), "2": (2, 3), "3": (1, 2)}
    here = tuple(
        Recollection(
            STATE.format(2, 2),
            action,
            Outcome(STATE.format(*places[action]), 0.0, False),
            1.0,
            last=9,
            value_estimate=score,
            steps_to_go=steps,
        )
        for action, score, steps in ahead
    )
    return PromptView(TASK, STATE.format(2, 2), ("0", "1", "2", "3"), here, step=30, moves=(), visits=())


def test_the_examples_of_both_scripts_run(scripts: tuple[ModuleType, ModuleType]) -> None:
    results = [doctest.testmod(script) for script in scripts]
    assert [result.failed for result in results] == [0, 0]
    assert all(result.attempted for result in results)


def test_an_unknown_word_has_one_number_wherever_it_stands(scripts: tuple[ModuleType, ModuleType]) -> None:
    vocabulary = scripts[0].Vocabulary(["open", "click[", "]"])
    text = "open b07x2\nclick[b07x2] click[b99y1]"
    read = vocabulary.encode(text)
    by_answer = dict(zip(read.answers, read.numbers, strict=True))
    assert by_answer["b07x2"] != by_answer["b99y1"]
    assert read.numbers.count(by_answer["b07x2"]) == 2
    assert [read.segments[read.answers.index(answer)] for answer in ("open", "click[b07x2]")] == [0, 1]
    other = vocabulary.encode(text, np.random.default_rng(1))  # in training their numbers are drawn
    assert other.numbers != read.numbers
    assert [n == other.numbers[1] for n in other.numbers] == [n == read.numbers[1] for n in read.numbers]


def test_the_form_of_the_answer_is_not_read(scripts: tuple[ModuleType, ModuleType]) -> None:
    """It lists the admissible actions, which the model has to find by itself."""
    schema = {"title": "action", "type": "object", "properties": {"action": {"enum": ["0", "1"]}}}
    messages = [Message("system", "Rules"), Message("user", "Where to?")]
    sent = [message._asdict() for message in instruct(messages, schema, "text")]
    assert '"1"' in sent[-1]["content"]
    assert scripts[0].join_messages(sent) == "Rules\nWhere to?"


@pytest.mark.parametrize("best", ["1", "2"])
def test_it_takes_the_way_that_memory_knows(scripts: tuple[ModuleType, ModuleType], reader: Any, best: str) -> None:
    others = [(action, 0.0, 0) for action in "0123" if action != best]
    view = make_prompt((best, 1.0, 4), *others)
    policy = LanguageModelPolicy("unused", base_url="http://127.0.0.1:9/v1")
    messages = [message._asdict() for message in policy.messages(view)]
    assert reader.answer(scripts[0].join_messages(messages)) == best


@pytest.mark.integration
def test_the_policy_plays_with_it_through_its_server(scripts: tuple[ModuleType, ModuleType], reader: Any) -> None:
    pytest.importorskip("openai")
    with scripts[0].make_server(reader) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        policy = LanguageModelPolicy("learned-reader", base_url=f"http://127.0.0.1:{server.server_port}/v1")
        reply = policy.decide(make_prompt(("2", 1.0, 3), ("1", 0.0, 0)).render(), np.random.default_rng(0))
        server.shutdown()
        thread.join()
    assert (reply.text, reply.usage.reasks) == ("2", 0)


def test_other_files_are_refused(scripts: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"prompt": 1}\n')
    with pytest.raises(SystemExit, match=":1: not a decision in chat format"):
        list(scripts[1].read_choices(tmp_path / "data.jsonl"))


def test_both_computations_agree_and_the_loss_falls(scripts: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    serve, train = scripts
    lines = []
    for number in range(64):
        right = str(number % 4)
        user = {"role": "user", "content": f"go {right}\n0 left, 1 down, 2 right, 3 up"}
        answer = {"role": "assistant", "content": json.dumps({"action": right})}
        lines.append(json.dumps({"messages": [user, answer]}))
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    out = tmp_path / "weights.npz"
    train.main([str(tmp_path / "data.jsonl"), "--out", str(out), "--minutes", "0.05", "--width", "32", "--layers", "2"])
    made = serve.Reader.load(out)
    assert made.answer("go 2\n0 left, 1 down, 2 right, 3 up") == "2"
    text = made.vocabulary.encode("go 3\n0 left, 1 down")
    model = {name: torch.from_numpy(value) for name, value in made._weights.items()}
    batch = train.pad([(text, [False] * len(text.numbers))])
    scores = train.score_pieces(torch, model, *map(torch.from_numpy, batch[:4]))
    np.testing.assert_allclose(scores[0].numpy(), made.scores(text), atol=1e-4)


FILES = {"learned_reader": "report.md", "learned_reader_memories": "report_memories.md"}
"""Experiments of the recorded table, with their reports."""


def replay(file: str, out: Path, *more: str) -> list[Any]:
    """Play an experiment, or a part of it, from the recorded replies."""
    words = ("run", str(ROOT / "examples" / f"{file}.yaml"), "--model", "learned-reader", "--trace", "none")
    address = ("--base-url", "http://127.0.0.1:8012/v1", "--replies", str(RESULTS / "replies.sqlite"), "--replay")
    assert main([*words, *address, "--out", str(out), *more]) == 0
    return list(read_rows(out / "episodes.jsonl"))


@pytest.mark.parametrize(
    ("file", "players"),
    [
        (
            "learned_reader",
            {("vanilla", one) for one in ("none", "overwrite", "announce_only", "glove", "oracle_reset")}
            | {("none", "none")},
        ),
        ("learned_reader_memories", {("generative_agents", "none"), ("beliefmem", "none")}),
    ],
)
def test_an_instance_of_the_table_is_played_again_without_the_model(
    file: str, players: set[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request whose words have changed has no recorded reply, which is an error."""
    pytest.importorskip("openai")
    rows = replay(file, tmp_path / "run", "--seeds", "1")
    assert "language models: 0 requests" in capsys.readouterr().err
    assert {(row["memory"].partition("(")[0], row["verifier"]) for row in rows} == players
    assert len(rows) == 15 * len(players)
    assert not any(row["invalid_actions"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_the_recorded_table_is_played_again_without_the_model(file: str, tmp_path: Path) -> None:
    replay(file, tmp_path / "run")
    assert (RESULTS / FILES[file]).read_text("utf-8") == (tmp_path / "run" / "report.md").read_text("utf-8")
