"""The network of the learned reader in PyTorch.

* `make_weights` - random weights to begin with
* `ReaderBatch`, `make_batch` - decisions as arrays
* `score_batch` - the same computation as `Network.score` of the policy, for a batch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from drift_agents.policy.learned_reader.network import (
    HEADS,
    LATENTS,
    LAYERS,
    PADDING,
    UNKNOWN,
    WIDTH,
    ReaderWeights,
    list_shapes,
)

from research.train_reader.decisions import Decisions


def make_weights(vocabulary: tuple[str, ...], rng: np.random.Generator) -> ReaderWeights:
    """Random weights.

    Args:
        vocabulary: the words.
    """
    arrays = {}
    for name, shape in list_shapes(len(vocabulary) + UNKNOWN + 1).items():
        scale = 0.3 if name in ("word", "before", "after", "candidate", "latents") else shape[0] ** -0.5
        if name.endswith(("_out", "down")):
            scale /= (2 * LAYERS) ** 0.5
        arrays[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return ReaderWeights(vocabulary, arrays)


class ReaderBatch(NamedTuple):
    """Decisions as arrays.

    Args:
        words: of the distinct lines and candidates, of the shape (lines, longest + 2), padded on both sides.
        prompts: rows of `words`, of the shape (batch, lines of a prompt); -1 behind a prompt.
        candidates: likewise, of the shape (batch, candidates).
        right: which candidates are right, of the same shape.
    """

    words: np.ndarray
    prompts: np.ndarray
    candidates: np.ndarray
    right: np.ndarray


def make_batch(decisions: Decisions, rows: Sequence[int], numbers: Sequence[list[int]]) -> ReaderBatch:
    """Put decisions into arrays.

    Args:
        decisions: all decisions.
        rows: which of them.
        numbers: of the words of each line of `decisions`.
    """
    prompts, candidates = ([entries[row] for row in rows] for entries in (decisions.prompts, decisions.candidates))
    used = dict.fromkeys(line for one in (*prompts, *candidates) for line in one)
    place = {line: row for row, line in enumerate(used)}
    words = np.full((len(used), max(len(numbers[line]) for line in used) + 2), PADDING)
    for row, line in enumerate(used):
        words[row, 1 : len(numbers[line]) + 1] = numbers[line]

    def pad(entries: list[list[int]]) -> np.ndarray:
        padded = np.full((len(entries), max(map(len, entries))), -1)
        for row, entry in enumerate(entries):
            padded[row, : len(entry)] = entry
        return padded

    placed = [pad([[place[line] for line in one] for one in entries]) for entries in (prompts, candidates)]
    right = pad([list(map(int, decisions.right[row])) for row in rows]) > 0
    return ReaderBatch(words, placed[0], placed[1], right)


def score_batch(torch: Any, arrays: Mapping[str, Any], batch: ReaderBatch) -> Any:
    """The same computation as `Network.score`, for a batch; the shape is (batch, candidates).

    Args:
        torch: the library.
        arrays: the parameters by name.
        batch: the decisions.
    """
    functional, size = torch.nn.functional, WIDTH // HEADS
    words, prompts, candidates = map(torch.from_numpy, batch[:3])

    def normalise(x: Any) -> Any:
        return functional.rms_norm(x, (WIDTH,), eps=1e-6)

    def split(x: Any, parts: int) -> Any:
        return x.view(*x.shape[:2], parts, HEADS, size).permute(2, 0, 3, 1, 4)

    def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2)

    middle = words[:, 1:-1]
    embedded = functional.embedding(middle, arrays["word"]) + functional.embedding(words[:, :-2], arrays["before"])
    embedded = (embedded + functional.embedding(words[:, 2:], arrays["after"])).relu()
    focus = (embedded @ arrays["focus"]).masked_fill((middle == PADDING)[:, :, None], -1e9)
    share = focus.softmax(dim=1).transpose(1, 2)[:, :, None]  # (lines, heads, 1, words)
    values = (embedded @ arrays["value"]).view(*embedded.shape[:2], HEADS, size).transpose(1, 2)
    lines = (share @ values).flatten(1) @ arrays["pooled"]
    lines = lines + (normalise(lines) @ arrays["up"]).relu() @ arrays["down"]

    own = lines[candidates.clamp(min=0)] + arrays["candidate"]
    x = torch.cat([own, arrays["latents"].expand(len(own), -1, -1)], dim=1)
    exists = (prompts >= 0)[:, None, None]
    latents = torch.cat([candidates >= 0, torch.ones(len(own), LATENTS, dtype=torch.bool)], dim=1)[:, None, None]
    known = normalise(lines)
    for layer in range(LAYERS):
        read = (known @ arrays[f"{layer}.read_lines"])[prompts.clamp(min=0)]
        (query,) = split(normalise(x) @ arrays[f"{layer}.read_query"], 1)
        key, value = split(read, 2)
        x = x + attend(query, key, value, exists) @ arrays[f"{layer}.read_out"]
        query, key, value = split(normalise(x) @ arrays[f"{layer}.mix"], 3)
        x = x + attend(query, key, value, latents) @ arrays[f"{layer}.mix_out"]
        x = x + (normalise(x) @ arrays[f"{layer}.up"]).relu() @ arrays[f"{layer}.down"]
    scores = (normalise(x[:, : candidates.shape[1]]) @ arrays["score"])[..., 0]
    return scores.masked_fill(candidates < 0, -1e9)
