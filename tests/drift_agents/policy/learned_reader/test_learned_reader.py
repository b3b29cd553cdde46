"""The learned reader: what it reads, what cannot matter to it, and its files. Random weights, nothing is trained."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
from drift_agents.policy.learned_reader.reader import choose, read_messages, read_words, split_text
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


def test_a_folded_list_is_one_line_an_entry() -> None:
    """A house's places can be read one by one; the admissible actions are no lines, since they are the candidates."""
    text = "In your hand: nothing. Open: drawer {1-2}. Visited: bed 1 | drawer {1-2}.\n"
    text += "Possible actions, {a | b} is a or b: go to {bed 1 | shelf 1} | look\nUntried here: click[{a | b}]"
    assert list(split_text(text)) == [
        "In your hand: nothing.",
        *("Open: drawer 1.", "Open: drawer 2."),
        *("Visited: bed 1.", "Visited: drawer 1.", "Visited: drawer 2."),
        *("Untried here: click[a]", "Untried here: click[b]"),
    ]


def test_a_listing_is_read_with_its_title() -> None:
    """Its code is a number of this page, another one a number of none; words of the task are counted."""
    text = "Instruction: Find me a red nail polish\n- click[b0zzzzzzz9] led to page 1\nThe page shows:\n"
    text += "B01A0KNT53\nClearwater Nail Polish, Red\n$16.99\nB0LZQN4E5S\nSilken Soap\n$5.99\n\nUntried here: next"
    actions = ["click[b01a0knt53]", "click[b0lzqn4e5s]", "click[next >]"]
    read = read_messages(text, actions)
    assert [" ".join(words) for words in read.candidates] == [
        "has3 lacks6 click [ code 1 clearwater nail polish red $ 16 99]",
        "has0 lacks7 click [ code 2 silken soap $ 5 99]",
        "has0 lacks2 click [ next > ]",
    ]
    assert ("has0", "lacks6", "-", "click", "[", "code", "0]", "led", "to", "page", "1") in read.lines
    assert read.lines[0] == ("instruction", "find", "me", "a", "red", "nail", "polish")


def test_lines_of_messages_without_a_task_are_not_marked() -> None:
    lines = ("Actions: 0 left, 1 right", "Current position: [4, 0], tile F.")
    read = read_messages("\n".join(lines), ["0", "1"])
    assert read.lines == tuple(read_words(line) for text in lines for line in split_text(text))
    assert read.candidates == (("0",), ("1",))


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
    weights = str(tmp_path / "one.npz")
    policy, greedy = (make_policy("learned_reader", weights=weights, **options) for options in ({}, {"temperature": 0}))
    rng = np.random.default_rng(0)
    shop = PromptView("Buy.", '{"url": "http://h/x", "html": "Hi"}', ("click[a]", "click[b]"))
    for view in (with_history(LAKE_VIEW), LAKE_VIEW, shop, PromptView("Any.", "{}", ("-", "..."))):
        assert {policy.decide(view, rng).text for _ in range(9)} <= set(view.actions)
        assert len({policy.decide(view, np.random.default_rng(7)).text for _ in range(3)}) == 1
        assert len({greedy.decide(view, rng).text for _ in range(9)}) == 1


def test_actions_are_drawn_with_the_probabilities_of_their_scores() -> None:
    scores, rng = np.log(np.array([1.0, 2.0, 5.0], np.float32)), np.random.default_rng(0)
    for temperature, shares in ((1.0, [1 / 8, 2 / 8, 5 / 8]), (0.5, [1 / 30, 4 / 30, 25 / 30]), (0.0, [0, 0, 1])):
        drawn = [choose(scores, temperature, rng) for _ in range(4000)]
        np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, shares, atol=0.03)


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf"), "hot", None, True])
def test_no_other_temperature(temperature: object) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`temperature` should be in the interval [0, inf)")):
        make_policy("learned_reader", temperature=temperature)


@pytest.mark.parametrize("weights", [3, "first", ["first"]])
def test_weights_have_a_path(weights: object) -> None:
    with pytest.raises(ArgumentError, match=r"`weights` should be the path of an \.npz file"):
        make_policy("learned_reader", weights=weights)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04torn", None])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.npz"
    if content is None:
        np.savez(path, a=np.ones(3))
    else:
        path.write_bytes(content)
    with pytest.raises(ArgumentError, match=re.escape(f"{path}: cannot be used as the weights of a learned reader")):
        make_policy("learned_reader", weights=str(path))


def other_format(content: dict[str, np.ndarray]) -> None:
    content["about"] = np.frombuffer(b'{"format": "drift-envs learned reader 1"}', np.uint8)


def too_few(content: dict[str, np.ndarray]) -> None:
    content["rows"] = content["rows"][:7]


def too_many(content: dict[str, np.ndarray]) -> None:
    content["rows"] = np.append(content["rows"], np.int8(1))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (other_format, "its format should be 'drift-envs learned reader 2'"),
        (too_few, "cannot reshape array of size 7"),
        (too_many, "it has more rows than its words and layers need"),
    ],
)
def test_weights_of_another_size_or_format_are_refused(tmp_path: Path, change: Any, told: str) -> None:
    path = tmp_path / "one.npz"
    save_weights(path, make_weights())
    with np.load(path) as file:
        content = dict(file)
    change(content)
    np.savez(path, **content)
    with pytest.raises(ArgumentError, match=re.escape(told)):
        load_weights(path)


def test_equal_texts_have_equal_scores_from_a_full_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drift_agents.policy.learned_reader.network.KEPT", 2)
    network, texts = Network(make_weights()), [[("a", word)] for word in "bcdbc"]
    found = [network.score(text, [("e",), ("f",)]).tobytes() for text in texts]
    assert found[:2] == found[3:]
    assert len(set(found)) == 3


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be used as the weights"):
        make_policy("learned_reader", weights=str(tmp_path / "none.npz"))
