"""Hashed embeddings: the same everywhere, closer for texts that are alike."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.embedding.base import Embedding, HashedEmbedding, cosine
from drift_agents.errors import ArgumentError
from hypothesis import given


def similar(one: str, two: str) -> float:
    vectors = HashedEmbedding().embed([one, two])
    return float(cosine(vectors[0], vectors[1:])[0])


def test_it_keeps_the_protocol() -> None:
    embedding = HashedEmbedding(64)
    assert isinstance(embedding, Embedding)
    assert embedding.embed(["a", "b", "a"]).shape == (3, 64)
    assert embedding.embed([]).shape == (0, 64)


@given(st.lists(st.text(max_size=40), max_size=4))
def test_every_vector_has_length_one_and_depends_on_its_text_alone(texts: list[str]) -> None:
    embedding = HashedEmbedding(128)
    vectors = embedding.embed(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.linalg.norm(vector) == pytest.approx(1.0 if vector.any() else 0.0)
        assert np.array_equal(embedding.embed([text])[0], vector)
        assert re.search(r"\w", text) or not vector.any()


def test_the_order_of_words_counts() -> None:
    assert 0.5 < similar('{"cur_pos": [1, 2]}', '{"cur_pos": [2, 1]}') < 0.99
    assert similar("Ends HERE", "ends here") == 1.0


def test_states_nearby_in_words_are_more_similar() -> None:
    here = '{"cur_pos": [1, 2], "tile_type": "F", "gold_collected": 0}'
    assert similar(here, here.replace("[1, 2]", "[1, 3]")) > similar(here, "Buy Now") + 0.5


def test_callers_cannot_change_what_others_get() -> None:
    embedding = HashedEmbedding()
    embedding.embed(["a"])[0] = 7
    assert embedding.embed(["a"]).max() <= 1


@pytest.mark.integration
def test_all_processes_agree() -> None:
    program = (
        "from drift_agents.embedding.base import HashedEmbedding;"
        "print(HashedEmbedding().embed(['Ein rotes Hemd', '\\u00e9']).tobytes().hex())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=60
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {(HashedEmbedding().embed(["Ein rotes Hemd", "é"]).tobytes().hex() + "\n").encode()}


@pytest.mark.parametrize("dimension", [1, 2.0, True, "8"])
def test_wrong_dimensions_are_refused(dimension: Any) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"at least 2. Received {dimension!r}")):
        HashedEmbedding(dimension)


def test_one_text_is_not_a_sequence_of_texts() -> None:
    with pytest.raises(ArgumentError, match="`texts` should be a sequence of texts"):
        HashedEmbedding().embed("abc")
