"""Training on decisions.

* `train` - the weights after so many decisions
* `make_optimizers` - what changes them
* `draw_rows` - in which order decisions are read
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from drift_agents.policy.learned_reader.network import HEADS, Network, ReaderWeights

from research.train_reader.decisions import Decisions
from research.train_reader.network import make_batch, score_batch

BATCH = 96
MUON = 5
"""The learning rate of Muon, in that of AdamW."""
MISSING = "training needs PyTorch, run `pip install -r research/requirements.txt`"


def draw_rows(sizes: Sequence[int], count: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Batches of row numbers: half of them of the last set, if there are several, the others of all sets.

    Args:
        sizes: of each set, in the order of the decisions.
        count: how many rows all batches have together.
    """
    total, last = sum(sizes), sizes[-1] if len(sizes) > 1 else 0
    for _ in range(max(1, count // BATCH)):
        recent = BATCH // 2 if last else 0
        rows = rng.integers(total, size=BATCH - recent).tolist()
        yield rows + (total - last + rng.integers(last, size=recent)).tolist() if last else rows


def make_optimizers(torch: Any, arrays: Mapping[str, Any], rate: float) -> list[Any]:
    """Muon (Jordan et al. 2024) for the matrices of the layers, AdamW for embeddings, latents and the score.

    After equally many decisions the loss is clearly smaller than with AdamW alone.

    Args:
        torch: the module.
        arrays: the weights.
        rate: the highest learning rate of AdamW.
    """
    embeddings = ("word", "before", "after", "candidate", "latents")
    matrices = [array for name, array in arrays.items() if name not in embeddings and min(array.shape) >= HEADS]
    others = [array for array in arrays.values() if all(array is not one for one in matrices)]
    return [
        torch.optim.Muon(matrices, lr=MUON * rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.01),
    ]


def train(weights: ReaderWeights, sets: Sequence[Decisions], count: int, rate: float, seed: int) -> ReaderWeights:
    """Train on decisions, and print the loss.

    Args:
        weights: where it begins.
        sets: the decisions; of the last one more are drawn.
        count: how many decisions are read.
        rate: the highest learning rate.
        seed: of the order.

    Raises:
        SystemExit: if PyTorch is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"{MISSING} ({error})") from error
    torch.set_num_threads(1)
    rng, begin, losses, hits = np.random.default_rng(seed), time.process_time(), [], []
    decisions = Decisions()
    for one in sets:
        decisions.extend(one)
    network = Network(weights)
    numbers = [network.number(line) for line in decisions.lines]
    arrays = {name: torch.nn.Parameter(torch.from_numpy(array.copy())) for name, array in weights.arrays.items()}
    optimizers = make_optimizers(torch, arrays, rate)
    groups = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
    steps = max(1, count // BATCH)
    for step, rows in enumerate(draw_rows([len(one.prompts) for one in sets], count, rng)):
        for group, highest in groups:  # warm-up, then a cosine down to a twentieth
            group["lr"] = highest * min((step + 1) / 100, 0.05 + 0.95 * (0.5 + 0.5 * np.cos(np.pi * step / steps)))
        batch = make_batch(decisions, rows, numbers)
        scores, right = score_batch(torch, arrays, batch), torch.from_numpy(batch.right)
        loss = (scores.logsumexp(dim=1) - scores.masked_fill(~right, -1e9).logsumexp(dim=1)).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(arrays.values(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
        hits.append(right.gather(1, scores.argmax(dim=1, keepdim=True)).float().mean().item())
    late = slice(-max(1, steps // 10), None)
    spent = time.process_time() - begin
    print(
        f"  {steps * BATCH} decisions, loss {np.mean(losses[late]):.3f}, right {np.mean(hits[late]):.1%}, {spent:.0f} s"
    )
    return ReaderWeights(weights.vocabulary, {name: array.detach().numpy() for name, array in arrays.items()})
