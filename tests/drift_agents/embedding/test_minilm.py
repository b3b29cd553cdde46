"""MiniLM on NumPy: the published vectors where the model is installed, the arithmetic everywhere."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.embedding import minilm
from drift_agents.embedding.base import Embedding, cosine, make_embedding
from drift_agents.embedding.minilm import DIMENSION, HEADS, LAYERS, encode, read_weights
from drift_agents.errors import ArgumentError, MissingDependencyError, UnknownNameError
from drift_agents.memory.base import make_memory
from drift_agents.memory.beliefmem import BeliefMem
from drift_agents.registry.tables import EMBEDDINGS
from drift_agents.types import AgentClock, Experience, Outcome

INNER, TOKENS = 16, 7

REFERENCE = {
    "a red jacket": [-0.045346964, 0.015374323, 0.001239689, 0.125734733, -0.032647993, 0.047773549],
    '{"cur_pos": [1, 2], "tile_type": "F", "gold_collected": 0.5}': [
        0.001847751,
        -0.043412246,
        -0.009331388,
        0.011217991,
        0.012966588,
        -0.091839713,
    ],
    "": [-0.118838404, -0.075838323, 0.007334592, -0.086477869, -0.050632602, -0.04672457],
    "Ünïcode – 漢字 \U0001f600": [-0.046812367, -0.085829942, 0.05124752, 0.00296899, 0.021485527, -0.016772468],
    "word " * 400: [-0.008123664, -0.032205732, 0.004907085, 0.038262859, -0.022179353, -0.052108047],
}


def installed() -> Embedding:
    """The embedding, or a skip: the package with the model has 80 MB, so that `dev` does not bring it."""
    pytest.importorskip("tokenizers", reason="the extra `embeddings` is not installed")
    pytest.importorskip(minilm.PACKAGE, reason="the extra `embeddings` is not installed")
    return make_embedding("minilm")


@pytest.fixture(scope="module")
def tensors() -> dict[str, np.ndarray]:
    """Random parameters in the shape of the model, with few words and a narrow inner map."""
    rng = np.random.default_rng(0)

    def norm(name: str) -> dict[str, np.ndarray]:
        return {f"{name}.weight": rng.normal(1, 0.1, DIMENSION), f"{name}.bias": rng.normal(0, 0.1, DIMENSION)}

    def dense(name: str, out: int, into: int) -> dict[str, np.ndarray]:
        return {f"{name}.weight": rng.normal(0, 0.1, (out, into)), f"{name}.bias": rng.normal(0, 0.1, out)}

    found = {
        "embeddings.word_embeddings.weight": rng.normal(size=(TOKENS, DIMENSION)),
        "embeddings.position_embeddings.weight": rng.normal(size=(8, DIMENSION)),
        "embeddings.token_type_embeddings.weight": rng.normal(size=(2, DIMENSION)),
        **norm("embeddings.LayerNorm"),
    }
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            found |= dense(f"{name}.attention.self.{part}", DIMENSION, DIMENSION)
        found |= dense(f"{name}.attention.output.dense", DIMENSION, DIMENSION)
        found |= norm(f"{name}.attention.output.LayerNorm")
        found |= dense(f"{name}.intermediate.dense", INNER, DIMENSION)
        found |= dense(f"{name}.output.dense", DIMENSION, INNER)
        found |= norm(f"{name}.output.LayerNorm")
    return {name: values.astype("<f4") for name, values in found.items()}


def as_file(tensors: dict[str, np.ndarray]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, values in tensors.items():
        data = values.tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def encode_plainly(tensors: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """The definition written out token by token and head by head."""
    t = {name: values.astype(float) for name, values in tensors.items()}
    size = DIMENSION // HEADS

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return (x - x.mean()) / math.sqrt(x.var() + 1e-12) * t[f"{name}.weight"] + t[f"{name}.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return t[f"{name}.weight"] @ x + t[f"{name}.bias"]

    xs = [
        norm(
            t["embeddings.word_embeddings.weight"][token]
            + t["embeddings.position_embeddings.weight"][place]
            + t["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for place, token in enumerate(tokens)
    ]
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        q, k, v = ([dense(x, f"{name}.attention.self.{part}") for x in xs] for part in ("query", "key", "value"))
        after = []
        for place, x in enumerate(xs):
            taken = np.zeros(DIMENSION)
            for head in range(HEADS):
                cut = slice(head * size, (head + 1) * size)
                fits = [math.exp(q[place][cut] @ other[cut] / math.sqrt(size)) for other in k]
                for fit, other in zip(fits, v, strict=True):
                    taken[cut] += fit / sum(fits) * other[cut]
            x = norm(x + dense(taken, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
            inner = np.array(
                [0.5 * u * (1 + math.erf(u / math.sqrt(2))) for u in dense(x, f"{name}.intermediate.dense")]
            )
            after.append(norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"))
        xs = after
    mean = np.mean(xs, axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("tokens", [[3], [0, 5, 5, 1], [6, 5, 4, 3, 2, 1, 0]])
def test_the_forward_pass_is_the_definition(tensors: dict[str, np.ndarray], tokens: list[int]) -> None:
    vector = encode(read_weights(as_file(tensors)), tokens)
    assert np.allclose(vector, encode_plainly(tensors, tokens), rtol=0, atol=1e-12)
    assert np.linalg.norm(vector) == pytest.approx(1)


@pytest.mark.parametrize("text", REFERENCE, ids=lambda text: text[:12] or "nothing")
def test_vectors_are_those_of_the_published_model(text: str) -> None:
    """Every 64th number, as PyTorch 2.13 computes it from the same weights with 64 bits."""
    assert np.allclose(installed().embed([text])[0][::64], REFERENCE[text], rtol=0, atol=1e-8)


def test_it_fulfils_the_protocol_and_represents_meaning() -> None:
    embedding = installed()
    assert isinstance(embedding, Embedding)
    red, crimson, axe = embedding.embed(["a red jacket", "a crimson coat", "the axe"])
    assert embedding.embed([]).shape == (0, DIMENSION)
    assert np.array_equal(embedding.embed(["other", "a red jacket"])[1], red)
    assert cosine(red, np.stack([crimson, axe])).tolist() == [0.582379, 0.209945]
    assert np.array_equal(embedding.embed(["\ud800"]), embedding.embed(["?"]))
    with pytest.raises(ArgumentError, match="`texts` should be a sequence of texts"):
        embedding.embed("abc")


def test_a_memory_takes_it_by_name() -> None:
    installed()
    memory = make_memory("beliefmem", embedding="minilm", decay=1.0, k=1)
    for step, state in enumerate(("a red jacket", "the axe")):
        now = AgentClock(0, step)
        memory.observe(Experience(state, "look", Outcome("fine", 0.0, False), 0.0, now), now)
    assert [record.state for record in memory.retrieve("a crimson coat", None, AgentClock(0, 2)).records] == [
        "a red jacket"
    ]


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(ArgumentError, match=f"its SHA-256 should be {minilm.SHA256['model.safetensors']}.*{found}"):
        minilm.read_file(tmp_path, "model.safetensors")
    with pytest.raises(ArgumentError, match=re.escape("tokenizer.json: cannot be read")):
        minilm.read_file(tmp_path, "tokenizer.json")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package")
    minilm._load.cache_clear()
    with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[embeddings]"')):
        make_embedding("minilm")


def test_memories_take_embeddings_by_name() -> None:
    memory = make_memory("beliefmem", embedding={"hashed": {"dimension": 32}})
    assert isinstance(memory, BeliefMem)
    assert memory._relevance.embedding.dimension == 32
    assert EMBEDDINGS.names()[:2] == ("hashed", "minilm")
    with pytest.raises(UnknownNameError, match="no embedding is called 'hashd', did you mean 'hashed'"):
        make_memory("generative_agents", embedding="hashd")
    with pytest.raises(ArgumentError, match="`embedding` should be a name, or one name with its options"):
        make_memory("voyager", embedding=["hashed"])
