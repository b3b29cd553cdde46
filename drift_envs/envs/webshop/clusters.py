"""Goals in groups of like ones, so that the kind of task can change while the shop stays as it is.

* `group_texts` - groups of equal size, by the words of the texts; those that fit nowhere are left out

Source: Xiong et al., "How memory management impacts LLM agents", section 6.1, who cluster the
embeddings of all queries by a Gaussian mixture. Here words are weighed by how rare they are, the
groups are k-means' with the cosine, and they are equally large, so that a shift comes at a known time.
More texts than are needed make groups that differ more: only those nearest to the centres are taken.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from drift_envs.errors import ArgumentError

ROUNDS = 20
"""How often centres are moved at the most."""

DECIMALS = 9
"""Of a similarity: the last bits of a sum, which differ between machines, decide no tie."""

_WORD = re.compile(r"[a-z]+")


def group_texts(texts: Sequence[str], groups: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Group texts by their words.

    Args:
        texts: what is grouped.
        groups: how many groups.
        size: how many texts a group has.

    Returns:
        The places of each group's texts, in order; what is left out is in none.

    Raises:
        ArgumentError: if there are too few texts.

    Example:
        >>> group_texts(["a red shoe", "a brass lamp", "a blue shoe", "a tall brass lamp", "some tea"], 2, 2)
        ((0, 2), (1, 3))
    """
    if groups < 1 or size < 1 or len(texts) < groups * size:
        raise ArgumentError(f"there should be at least {groups} x {size} texts. Received {len(texts)}")
    vectors = _vectors(texts)
    centres = vectors[_apart(vectors, groups, size)]
    chosen: list[int] = []
    for _ in range(ROUNDS):
        before, chosen = chosen, _assign(np.round(vectors @ centres.T, DECIMALS), size)
        if chosen == before:
            break
        sums = np.stack(
            [vectors[[place for place, g in enumerate(chosen) if g == group]].sum(0) for group in range(groups)]
        )
        centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    found = [tuple(place for place, g in enumerate(chosen) if g == group) for group in range(groups)]
    return tuple(sorted(found))


def _vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Counts of words, the rarer the heavier, of length one; shape (texts, words)."""
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    words = sorted({word for count in counts for word in count})
    seen_in = {word: sum(word in count for count in counts) for word in words}
    weights = np.array([math.log(len(texts) / seen_in[word]) for word in words])
    table = np.array([[count[word] for word in words] for count in counts], dtype=np.float64).reshape(len(texts), -1)
    table *= weights
    vectors: NDArray[np.float64] = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return vectors


def _apart(vectors: NDArray[np.float64], groups: int, size: int) -> list[int]:
    """Again and again the text that has near neighbours, and is unlike those before it: an odd one makes no group."""
    likeness = vectors @ vectors.T
    near = np.sort(likeness, axis=1)[:, ::-1][:, :size].mean(axis=1)
    chosen: list[int] = []
    for _ in range(groups):
        unlike = 1 - likeness[:, chosen].max(axis=1) if chosen else np.ones(len(vectors))
        worth = np.round(near * unlike, DECIMALS)
        worth[chosen] = -np.inf
        chosen.append(int(worth.argmax()))
    return chosen


def _assign(likeness: NDArray[np.float64], size: int) -> list[int]:
    """The most similar pairs of text and centre first, as long as a group has room; -1 for what is left out."""
    room = [size] * likeness.shape[1]
    chosen = [-1] * len(likeness)
    for flat in np.argsort(-likeness, axis=None, kind="stable"):
        place, group = divmod(int(flat), likeness.shape[1])
        if chosen[place] < 0 and room[group]:
            chosen[place] = group
            room[group] -= 1
    return chosen
