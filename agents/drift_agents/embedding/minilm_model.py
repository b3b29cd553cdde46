"""The forward pass of MiniLM in NumPy.

* `EncoderLayer`, `Weights` - the parameters
* `read_weights` - out of the bytes of a `.safetensors` file
* `encode` - the tokens of one text to its vector

Source: Wang et al., "MiniLM: Deep self-attention distillation" (NeurIPS 2020), for the model; Devlin et al.,
"BERT" (NAACL 2019), for the architecture; Reimers and Gurevych, "Sentence-BERT" (EMNLP 2019), for the mean over
tokens. Everything is computed with 64 bits from the published 32-bit weights, one text at a time, so that a
vector depends on its text alone, and that machines differ far behind the digits that similarities keep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

LAYERS, HEADS, DIMENSION = 6, 12, 384
EPSILON = 1e-12
"""What keeps normalisations from dividing by zero, as in the model's configuration."""

Array = NDArray[np.float64]


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
        words: a row for every token, shape (tokens, DIMENSION); with 32 bits, as rows are widened when used.
        positions: a row for every place in a text, with the row of the only kind of segment added.
        norm: the normalisation of the sum of both.
        layers: the layers.
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
        weights: the parameters.
        tokens: the numbers of its tokens, those of beginning and end included; at least one.

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
    return centred / spread * by.weight + by.bias


def _attend(x: Array, layer: EncoderLayer) -> Array:
    """What every token takes over from all tokens, head by head; shape (tokens, DIMENSION)."""
    query, key, value = (
        _linear(x, by).reshape(len(x), HEADS, -1).transpose(1, 0, 2) for by in (layer.query, layer.key, layer.value)
    )
    fit = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
    share = np.exp(fit - fit.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    return (share @ value).transpose(1, 0, 2).reshape(x.shape)
