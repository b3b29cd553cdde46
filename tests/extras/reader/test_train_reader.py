"""The training of the learned reader: the same computation as the policy's, and parts that resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `reader`")

import torch
from drift_agents.policy.learned_reader.network import Network, ReaderWeights, load_weights

from examples import train_reader
from examples.train_reader import Amounts, Decisions, make_batch, make_weights, score_batch, train

WORDS = ("go", "left", "right", "door", "window", "1", "2", "is")
TURNS = [("1", "2"), ("2", "1")]


def make_decisions(count: int, seed: int = 0) -> Decisions:
    """The door is to be taken; which side it is on, and which number that side has, differs."""
    rng, decisions = np.random.default_rng(seed), Decisions()
    for _ in range(count):
        left, right = TURNS[rng.integers(2)]
        side = ("left", "right")[rng.integers(2)]
        text = f"door is {side}\n{left} is left\n{right} is right\nwindow is window" + "\ngo" * int(rng.integers(2))
        decisions.add(text, ("1", "2"), [left if side == "left" else right])
    return decisions


def tensors(weights: ReaderWeights) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in weights.arrays.items()}


def test_training_and_policy_compute_the_same() -> None:
    """Also where prompts of a batch have different numbers of lines and candidates."""
    weights, decisions = make_weights(WORDS, np.random.default_rng(1)), make_decisions(20)
    decisions.add("door is unknown", ("go", "1", "2"), ["go"])
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


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second start plays and trains nothing; equal starts give equal weights."""
    monkeypatch.setattr(train_reader, "Amounts", lambda *amounts: Amounts(60, 20, 96, 96))
    monkeypatch.setattr(train_reader, "DAGGER", 1)
    words = ["--only", "source", "--out"]
    train_reader.main([*words, str(tmp_path / "parts"), "--weights", str(tmp_path / "weights")])
    first = {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}
    train_reader.main([*words, str(tmp_path / "again")])
    again, before = (load_weights(tmp_path / folder / "source-1.npz") for folder in ("again", "parts"))
    assert all((again.arrays[name] == before.arrays[name]).all() for name in before.arrays)
    with monkeypatch.context() as patch:
        for part in ("play", "train"):
            patch.setattr(train_reader, part, lambda *given, **rest: pytest.fail("a part was made again"))
        train_reader.main([*words, str(tmp_path / "parts")])
    assert {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()} == first
    assert load_weights(tmp_path / "weights" / "source.npz").vocabulary == before.vocabulary
