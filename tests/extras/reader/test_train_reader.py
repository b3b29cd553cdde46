"""The training of the learned reader: the same computation as the policy's, and parts that resume."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs research/requirements.txt")

import torch
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.policy.learned_reader.network import Network, ReaderWeights, load_weights
from drift_agents.policy.learned_reader.reader import read_messages

from research.train_reader import __main__ as command
from research.train_reader.decisions import Decisions, learn_vocabulary
from research.train_reader.network import make_batch, make_weights, score_batch
from research.train_reader.teaching import LESSONS, TaughtPlayer, play, win
from research.train_reader.training import train
from tests.drift_agents.views import LAKE_VIEW
from tests.research.parts import READER

WORDS = ("go", "left", "right", "door", "window", "1", "2", "is")
TURNS = [("1", "2"), ("2", "1")]


def make_decisions(count: int, seed: int = 0) -> Decisions:
    """The door is to be taken; which side it is on, and which number that side has, differs."""
    rng, decisions = np.random.default_rng(seed), Decisions()
    for _ in range(count):
        left, right = TURNS[rng.integers(2)]
        side = ("left", "right")[rng.integers(2)]
        text = f"door is {side}\n{left} is left\n{right} is right\nwindow is window" + "\ngo" * int(rng.integers(2))
        decisions.add(read_messages(text, TURNS[0]), [(name == left) == (side == "left") for name in TURNS[0]])
    return decisions


def tensors(weights: ReaderWeights) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in weights.arrays.items()}


def test_training_and_policy_compute_the_same() -> None:
    """Also where prompts of a batch have different numbers of lines and candidates."""
    weights, decisions = make_weights(WORDS, np.random.default_rng(1)), make_decisions(20)
    decisions.add(read_messages("door is unknown", ("go", "1", "2")), [True, False, False])
    network = Network(weights)
    numbers = [network.number(line) for line in decisions.lines]
    batch = make_batch(decisions, range(21), numbers)
    scores = score_batch(torch, tensors(weights), batch).numpy()
    lines = list(decisions.lines)
    for row, (prompt, candidates) in enumerate(zip(decisions.prompts, decisions.candidates, strict=True)):
        alone = network.score([lines[one] for one in prompt], [lines[one] for one in candidates])
        assert scores[row, : len(candidates)] == pytest.approx(alone, abs=1e-4)


def test_it_learns_what_the_lines_say() -> None:
    weights = train(make_weights(WORDS, np.random.default_rng(0)), [make_decisions(400)], 60 * 96, 2e-3, 0)
    network, tried = Network(weights), make_decisions(50, seed=1)
    lines = list(tried.lines)
    right = [
        answers[int(network.score([lines[one] for one in prompt], [lines[one] for one in candidates]).argmax())]
        for prompt, candidates, answers in zip(tried.prompts, tried.candidates, tried.right, strict=True)
    ]
    assert np.mean(right) >= 0.9


@pytest.mark.parametrize("environment", LESSONS)
def test_the_rules_teach_in_every_environment(environment: str) -> None:
    """Every decision has a right answer; no listing's code is left, which is a word that no other shop has."""
    decisions = play(LESSONS[environment], 0, 60, say=lambda text: None)
    assert all(map(any, decisions.right))
    assert [len(candidates) for candidates in decisions.candidates] == list(map(len, decisions.right))
    assert not any(len(word) == 10 and any(map(str.isdigit, word)) for line in decisions.lines for word in line)


def test_lessons_are_played_as_experiments_are(tmp_path: Path) -> None:
    """In the shop the rules win half as much if the advertisements of two listings are two states."""
    lessons = LESSONS["shop"]
    asked = {"memory": "vanilla", "verifier": "none", "policy": {READER: {"ties": "random"}}}
    file = {"name": "shop", "schedules": [lessons.schedule], "agents": asked, "seeds": 4, "rounds": lessons.source}
    rows = read_rows(run_experiment(load_experiment(file), tmp_path / "run"))
    played = float(np.mean([row["success"] for row in rows if row["phase"] == "source"]))
    assert win(lessons, 0, 4) == pytest.approx(played, abs=0.1)


def test_words_of_few_lines_that_every_prompt_has_are_known() -> None:
    """What an action does is said in as many distinct lines as there are actions."""
    decisions = play(LESSONS["lake"], 0, 300, say=lambda text: None)
    assert {"left", "down", "right", "up"} <= set(learn_vocabulary(decisions))
    assert len(learn_vocabulary(decisions, 20)) == 20


def test_a_loop_is_kept_in_part() -> None:
    """The first three decisions in a state, then the 4th, 8th, 16th and 32nd."""
    decisions = Decisions()
    player = TaughtPlayer(LESSONS["lake"], decisions)
    for _ in range(40):
        player.decide(LAKE_VIEW, np.random.default_rng(0))
    assert len(decisions.prompts) == 7


@pytest.mark.parametrize(
    ("name", "environments"), [("source", ["lake", "goals"]), ("together", ["lake", "goals", "shop", "house"])]
)
def test_what_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, environments: list[str]
) -> None:
    """A second start plays and trains nothing; equal starts give equal weights."""
    monkeypatch.setattr(command, "DAGGER", 1)
    monkeypatch.setattr(command, "GATE_COUNT", 1)
    monkeypatch.setattr(command, "ALL", 21)
    words = ["--share", "0.0001", "--only", name, "--out"]
    command.main([*words, str(tmp_path / "parts"), "--weights", str(tmp_path / "weights")])
    first = {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}
    command.main([*words, str(tmp_path / "again")])
    again, before = (load_weights(tmp_path / folder / f"{name}-1.npz") for folder in ("again", "parts"))
    assert all((again.arrays[array] == before.arrays[array]).all() for array in before.arrays)
    with monkeypatch.context() as patch:
        for part in ("play", "train", "win"):
            patch.setattr(command, part, lambda *given, **rest: pytest.fail("a part was made again"))
        command.main([*words, str(tmp_path / "parts")])
    assert {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()} == first
    assert load_weights(tmp_path / "weights" / f"{name}.npz").vocabulary == before.vocabulary
    assert list(json.loads((tmp_path / "parts" / f"{name}-gate.json").read_text())) == environments
