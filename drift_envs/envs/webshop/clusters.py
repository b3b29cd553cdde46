"""Balanced clustering of texts, independent of the shop.

* `group_texts` - groups of equal size, by the words of the texts; the remaining texts are in no group

Source: Xiong et al., "How memory management impacts LLM agents", section 6.1, where the embeddings of all
queries are clustered by a Gaussian mixture. Here texts are tf-idf vectors, clustered by k-means with cosine
similarity into groups of equal size, so that the time of a task shift is known. With more texts than needed
the groups differ more, since only the texts nearest to the centres are used.
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
"""The maximum number of iterations."""

DECIMALS = 9
"""Similarities are rounded, so that ties do not depend on the last bits of a sum, which differ between machines."""

_WORD = re.compile(r"[a-z]+")


def group_texts(texts: Sequence[str], groups: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Group texts by their words.

    Args:
        texts: the texts.
        groups: the number of groups.
        size: the number of texts in a group.

    Returns:
        The indices of each group's texts, in order.

    Raises:
        ArgumentError: there are too few texts.

    Example:
        >>> group_texts(["a red shoe", "a brass lamp", "a blue shoe", "a tall brass lamp", "some tea"], 2, 2)
        ((0, 2), (1, 3))
    """
    if groups < 1 or size < 1 or len(texts) < groups * size:
        raise ArgumentError(f"there should be at least {groups} x {size} texts. Received {len(texts)}")
    vectors = _vectors(texts)
    centres = vectors[_choose_centres(vectors, groups, size)]
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
    """Tf-idf vectors of unit length; shape (texts, words)."""
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    words = sorted({word for count in counts for word in count})
    seen_in = {word: sum(word in count for count in counts) for word in words}
    weights = np.array([math.log(len(texts) / seen_in[word]) for word in words])
    table = np.array([[count[word] for word in words] for count in counts], dtype=np.float64).reshape(len(texts), -1)
    table *= weights
    vectors: NDArray[np.float64] = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return vectors


def _choose_centres(vectors: NDArray[np.float64], groups: int, size: int) -> list[int]:
    """Repeatedly choose the text with close neighbours that is least similar to the chosen ones; skips outliers."""
    likeness = vectors @ vectors.T
    near = np.sort(likeness, axis=1)[:, ::-1][:, :size].mean(axis=1)
    chosen: list[int] = []
    for _ in range(groups):
        unlike = 1 - likeness[:, chosen].max(axis=1) if chosen else np.ones(len(vectors))
        values = np.round(near * unlike, DECIMALS)
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
    return chosen


def _assign(likeness: NDArray[np.float64], size: int) -> list[int]:
    """Assign texts to centres, the most similar pairs first, until the groups are full; -1 for the remaining texts."""
    room = [size] * likeness.shape[1]
    chosen = [-1] * len(likeness)
    for flat in np.argsort(-likeness, axis=None, kind="stable"):
        place, group = divmod(int(flat), likeness.shape[1])
        if chosen[place] < 0 and room[group]:
            chosen[place] = group
            room[group] -= 1
    return chosen
