"""The learned reader: what it reads, what cannot matter to it, and its files. Random weights, nothing is trained."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import make_policy
from drift_agents.policy.learned_reader.network import (
    UNKNOWN,
    Network,
    ReaderWeights,
    list_shapes,
    load_weights,
    save_weights,
)
from drift_agents.policy.learned_reader.words import read_words, split_text
from drift_agents.prompt.view import PromptView
from hypothesis import given
from hypothesis import strategies as st

from tests.drift_agents.views import LAKE_VIEW, with_history

WORDS = tuple("abcdefgh")
LINES = st.lists(
    st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6).map(tuple), min_size=1, max_size=6
)


def make_weights(seed: int = 0, words: tuple[str, ...] = WORDS) -> ReaderWeights:
    rng = np.random.default_rng(seed)
    shapes = list_shapes(len(words) + UNKNOWN + 1)
    return ReaderWeights(words, {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()})


NETWORK = Network(make_weights())


@given(LINES)
def test_the_order_of_lines_and_candidates_does_not_matter(lines: list[tuple[str, ...]]) -> None:
    candidates = [("a",), ("b", "c"), ("d",)]
    scores = NETWORK.score(lines, candidates)
    again = NETWORK.score([*reversed(lines), lines[0]], candidates[::-1])
    assert again[::-1] == pytest.approx(scores, abs=1e-4)


def test_what_a_line_says_matters() -> None:
    candidates = [("a",), ("b",)]
    one, other = (NETWORK.score([("c", word), ("e",)], candidates) for word in ("a", "b"))
    assert np.abs(one - other).max() > 1e-3


def test_lists_become_lines_that_can_be_read_alone() -> None:
    text = "Go: far, or near. Stop.\n\nUntried here: 0, 3\nDestinations: [1, 2], [3, 4]; highest score 1.\n"
    text += "- old, score 0: [1, 2] at 4; [3, 4] at 2\n- 2 led to [3, 3]. Seen 2 times, last at 40, old."
    assert list(split_text(text)) == [
        "Go: far",
        "Go: or near. Stop.",
        "Untried here: 0",
        "Untried here: 3",
        "Destinations: [1, 2], [3, 4]; highest score 1.",
        "- old, score 0: [1, 2] at 4",
        "- old, score 0: [3, 4] at 2",
        "- 2 led to [3, 3]. Seen 2 times, last at 40, old.",
    ]
    assert read_words("Seen 2 times, last at 4") == ("seen", "2", "times", "last", "at", "#")


def test_weights_survive_their_file(tmp_path: Path) -> None:
    """A byte a weight: rows keep their values within half a step."""
    weights = make_weights()
    save_weights(tmp_path / "one.npz", weights)
    found = load_weights(tmp_path / "one.npz")
    assert found.vocabulary == WORDS
    for name, array in weights.arrays.items():
        step = np.abs(array).max(axis=-1, keepdims=True) / 127
        assert (np.abs(found.arrays[name] - array) <= 0.51 * step).all()


def test_it_answers_with_an_admissible_action(tmp_path: Path) -> None:
    save_weights(tmp_path / "one.npz", make_weights())
    policy, rng = make_policy("learned_reader", weights=str(tmp_path / "one.npz")), np.random.default_rng(0)
    shop = PromptView("Buy.", '{"url": "http://h/x", "html": "Hi"}', ("click[a]", "click[b]"))
    for view in (with_history(LAKE_VIEW), LAKE_VIEW, shop, PromptView("Any.", "{}", ("-", "..."))):
        replies = {policy.decide(view.render(), rng).text for _ in range(3)}
        assert len(replies) == 1
        assert replies <= set(view.actions)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04torn", None])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.npz"
    if content is None:
        np.savez(path, a=np.ones(3))
    else:
        path.write_bytes(content)
    with pytest.raises(ArgumentError, match=re.escape(f"{path}: cannot be used as the weights of a learned reader")):
        make_policy("learned_reader", weights=str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be used as the weights"):
        make_policy("learned_reader", weights=str(tmp_path / "none.npz"))
