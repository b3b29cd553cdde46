"""The network of the learned reader, in NumPy.

* `Network` - scores candidate answers by the lines of a text
* `save_weights`, `load_weights` - its file, with a byte a weight

Each line is encoded for itself: the embeddings of a word and of its neighbours are summed, and eight heads pool the
words of the line. A latent array reads the lines by four layers of cross-attention and self-attention (Jaegle et al.
2021, "Perceiver: general perception with iterative attention"): a few latents of its own, and one for each candidate,
which begins as the encoding of its words. Lines have no position, so their order cannot matter. What layers need of a
line is computed once and cached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np
import numpy.typing as npt

from drift_agents.errors import ArgumentError

Array = npt.NDArray[np.float32]

WIDTH, HEADS, LAYERS, LATENTS = 128, 8, 4, 4
LONGEST = 32
"""Words of a line; further ones are not read."""
PADDING, UNKNOWN = 0, 1
"""Numbers of the empty word around a line, and of words that are not in the vocabulary."""
KEPT = 8192
"""Lines in the cache, 4 KiB each, and texts with their scores; each is cleared when it is full."""
FORMAT = "drift-envs learned reader 2"


class ReaderWeights(NamedTuple):
    """What training yields.

    Args:
        vocabulary: words in the order of their numbers, from `UNKNOWN` + 1 on.
        arrays: by name, as `list_shapes` has them.
    """

    vocabulary: tuple[str, ...]
    arrays: Mapping[str, Array]


def list_shapes(words: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays by name.

    Args:
        words: how many numbers words have, `PADDING` and `UNKNOWN` included.
    """
    square, wide = (WIDTH, WIDTH), 4 * WIDTH
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("word", "before", "after"), (words, WIDTH))
    shapes |= {"focus": (WIDTH, HEADS), "value": square, "pooled": square, "up": (WIDTH, wide), "down": (wide, WIDTH)}
    shapes |= {"candidate": (1, WIDTH), "latents": (LATENTS, WIDTH), "score": (WIDTH, 1)}
    for layer in range(LAYERS):
        own = {"read_query": square, "read_lines": (WIDTH, 2 * WIDTH), "read_out": square, "mix": (WIDTH, 3 * WIDTH)}
        own |= {"mix_out": square, "up": (WIDTH, wide), "down": (wide, WIDTH)}
        shapes |= {f"{layer}.{name}": shape for name, shape in own.items()}
    return shapes


def save_weights(path: Path, weights: ReaderWeights) -> None:
    """Write a file; every row is stored as bytes with a scale, all rows in one array, which takes the least space.

    Args:
        weights: what is stored.
    """
    names = list_shapes(len(weights.vocabulary) + UNKNOWN + 1)
    scales = [np.maximum(np.abs(weights.arrays[name]).max(axis=-1, keepdims=True), 1e-8) / 127 for name in names]
    rows = [np.round(weights.arrays[name] / scale).ravel() for name, scale in zip(names, scales, strict=True)]
    np.savez_compressed(
        path,
        about=np.frombuffer(json.dumps({"format": FORMAT, "words": weights.vocabulary}).encode(), np.uint8),
        rows=np.concatenate(rows).astype(np.int8),
        scales=np.concatenate([scale.ravel() for scale in scales]).astype(np.float32),
    )


def load_weights(path: Path) -> ReaderWeights:
    """Read a file of `save_weights`.

    Raises:
        ArgumentError: if it cannot be read, or is no such file.
    """
    arrays: dict[str, Array] = {}
    try:
        if path.is_file() and not is_zipfile(path):
            raise ValueError("it is no .npz file")
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            if about["format"] != FORMAT:
                raise ValueError(f"its format should be {FORMAT!r}. Received {about['format']!r}")
            words, rows, scales = tuple(map(str, about["words"])), file["rows"], file["scales"]
            for name, shape in list_shapes(len(words) + UNKNOWN + 1).items():
                count = int(np.prod(shape[:-1]))
                own, rows = np.split(rows, [count * shape[-1]])
                scale, scales = np.split(scales, [count])
                arrays[name] = (own.reshape(shape) * scale.reshape(*shape[:-1], 1)).astype(np.float32)
            if len(rows) or len(scales):
                raise ValueError("it has more rows than its words and layers need")
    except (OSError, EOFError, BadZipFile, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{path}: cannot be used as the weights of a learned reader: {error}") from error
    return ReaderWeights(words, arrays)


class Network:
    """Scores candidate answers by the lines of a text.

    Matrices are multiplied in blocks of `WIDTH` columns: OpenBLAS computes larger products, and those of a single row,
    by threads that wait for each other without sleeping, which takes a hundred times as long on a busy machine.

    Args:
        weights: what training yielded.
    """

    def __init__(self, weights: ReaderWeights) -> None:
        self._numbers = {word: number for number, word in enumerate(weights.vocabulary, UNKNOWN + 1)}
        self._arrays = dict(weights.arrays)
        for name, array in weights.arrays.items():
            if name.endswith(("up", "mix", "read_lines")):
                self._arrays[name] = _split_columns(array, WIDTH)
            elif name.endswith("down"):
                self._arrays[name] = array.reshape(-1, WIDTH, WIDTH)
        self._arrays["value"] = _split_columns(weights.arrays["value"], WIDTH // HEADS)
        self._cache: dict[tuple[str, ...], tuple[Array, Array]] = {}
        self._scores: dict[tuple[tuple[tuple[str, ...], ...], ...], Array] = {}

    def number(self, words: Sequence[str]) -> list[int]:
        """The numbers of words.

        Args:
            words: a line; its first `LONGEST` words count.
        """
        return [self._numbers.get(word, UNKNOWN) for word in words[:LONGEST]] or [UNKNOWN]

    def score(self, lines: Sequence[tuple[str, ...]], candidates: Sequence[tuple[str, ...]]) -> Array:
        """A score for each candidate, of the shape (candidates,); the probability is its softmax.

        Args:
            lines: the words of each line; one at least.
            candidates: the words of each answer.
        """
        text = (tuple(lines), tuple(candidates))
        if text not in self._scores:
            if len(self._scores) >= KEPT:
                self._scores.clear()
            self._scores[text] = self._compute(*text)
        return self._scores[text]

    def _compute(self, lines: Sequence[tuple[str, ...]], candidates: Sequence[tuple[str, ...]]) -> Array:
        arrays = self._arrays
        # (lines, layers, keys and values, width)
        known = np.stack([self._encode(line)[1] for line in dict.fromkeys(lines)])
        own = np.stack([self._encode(words)[0] for words in candidates]) + arrays["candidate"]
        x = np.concatenate([own, arrays["latents"]])
        read = known.reshape(len(known), LAYERS, 2, HEADS, WIDTH // HEADS).transpose(1, 2, 3, 0, 4)
        for layer in range(LAYERS):
            query = _split_heads(_normalise(x) @ arrays[f"{layer}.read_query"])
            x = x + _attend(query, *read[layer]) @ arrays[f"{layer}.read_out"]
            mixed = _split_heads(_normalise(x) @ arrays[f"{layer}.mix"])
            x = x + _attend(*mixed) @ arrays[f"{layer}.mix_out"]
            x = x + self._feed_forward(x, f"{layer}.")
        scores: Array = (_normalise(x[: len(candidates)]) @ arrays["score"])[:, 0]
        return scores

    def _encode(self, words: tuple[str, ...]) -> tuple[Array, Array]:
        """The vector of a line, and its keys and values in all layers."""
        found = self._cache.get(words)
        if found is None:
            if len(self._cache) >= KEPT:
                self._cache.clear()
            pair = np.repeat(self._pool(words), 2, axis=0) @ self._arrays["pooled"]
            pair = pair + self._feed_forward(pair, "")
            normal = _normalise(pair)
            read = [(normal @ self._arrays[f"{layer}.read_lines"])[:, 0] for layer in range(LAYERS)]
            found = self._cache[words] = (pair[0], np.stack(read))
        return found

    def _pool(self, words: tuple[str, ...]) -> Array:
        """The pooled words of a line, of the shape (1, width)."""
        arrays = self._arrays
        numbers = np.array([PADDING, *self.number(words), PADDING])
        embedded = arrays["word"][numbers[1:-1]] + arrays["before"][numbers[:-2]] + arrays["after"][numbers[2:]]
        embedded = np.maximum(embedded, 0)
        share = _softmax((embedded @ arrays["focus"]).T)  # (heads, words)
        return np.asarray((share[:, None] @ (embedded @ arrays["value"])).reshape(1, WIDTH))

    def _feed_forward(self, x: Array, layer: str) -> Array:
        inner = np.maximum(_normalise(x) @ self._arrays[f"{layer}up"], 0)
        return np.asarray((inner @ self._arrays[f"{layer}down"]).sum(axis=0))


def _split_columns(array: Array, width: int) -> Array:
    """Blocks of columns, of the shape (blocks, rows, width)."""
    return np.ascontiguousarray(array.reshape(len(array), -1, width).transpose(1, 0, 2))


def _split_heads(x: Array) -> Array:
    """The last axis by heads: (..., places, width) as (..., heads, places, size)."""
    return x.reshape(*x.shape[:-1], HEADS, WIDTH // HEADS).swapaxes(-2, -3)


def _attend(query: Array, key: Array, value: Array) -> Array:
    """Attention, each of the shape (heads, places, size); the result has the shape (places, width)."""
    share = _softmax(query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1])))
    return np.asarray((share @ value).transpose(1, 0, 2).reshape(query.shape[1], -1))


def _normalise(x: Array) -> Array:
    square = np.einsum("...i,...i->...", x, x)[..., None] / np.float32(WIDTH)
    return np.asarray(x / np.sqrt(square + np.float32(1e-6)))


def _softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
