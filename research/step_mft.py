"""STEP-MFT with a small network: training on the exported strategies (AdaMEM, section 3.2).

* `train_strategies` - trains the network on one exported file
* `fit` - the weights for some questions and the strategies chosen

`docs/memories/adamem.md` has the commands and the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.errors import ExperimentError

from research.experiments.step_mft import HIDDEN, INPUTS, StrategyNetwork, describe, read_question

EPOCHS, RATE, DECAY = 300, 0.01, 0.001
"""Passes over all samples, and the learning rate and the weight decay of Adam."""


def train_strategies(path: Path, out: Path) -> tuple[int, float]:
    """Train the network on one file of `drift-agents export-stepmft`.

    Args:
        out: where the weights are written.

    Returns:
        The number of samples, and the share of them in which the network chooses the strategy of the sample.

    Raises:
        ExperimentError: if the file cannot be read, or has no sample with a choice.
    """
    inputs, targets = [], []
    try:
        for line in path.read_text("utf-8").splitlines():
            _, question, answer = (turn["content"] for turn in json.loads(line)["messages"])
            asked, told = read_question(question), json.loads(answer)["strategy"][0]
            if told in asked.strategies and len(asked.strategies) > 1:
                inputs.append(describe(asked))
                targets.append(asked.strategies.index(told))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{path}: no strategies of `drift-agents export-stepmft`: {error}") from error
    if not inputs:
        raise ExperimentError(f"{path}: no strategy that was chosen among several retrieved experiences")
    network = fit(inputs, targets)
    out.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: array.astype(np.float32) for name, array in network.arrays.items()}
    np.savez(out, **arrays)
    right = [int(network.score(one).argmax()) == target for one, target in zip(inputs, targets, strict=True)]
    return len(right), float(np.mean(right))


def fit(inputs: Sequence[np.ndarray], targets: Sequence[int], seed: int = 0) -> StrategyNetwork:
    """Maximise the likelihood of the chosen strategies (equation 4) by Adam on all samples at once.

    Args:
        inputs: for each sample the network's input, a row an experience.
        targets: the chosen row of each.
        seed: of the first weights.

    Example:
        >>> rows = np.eye(2, INPUTS)
        >>> int(fit([rows], [1]).score(rows).argmax())
        1
    """
    rng = np.random.default_rng(seed)
    arrays = {
        "first": rng.standard_normal((INPUTS, HIDDEN)) / INPUTS**0.5,
        "bias": np.zeros(HIDDEN),
        "last": rng.standard_normal(HIDDEN) / HIDDEN**0.5,
    }
    rows = np.concatenate(inputs)
    starts = np.cumsum([0, *(len(one) for one in inputs[:-1])])
    sample = np.repeat(np.arange(len(inputs)), [len(one) for one in inputs])
    chosen = np.zeros(len(rows))
    chosen[starts + np.array(targets)] = 1
    means = {name: np.zeros_like(array) for name, array in arrays.items()}
    squares = {name: np.zeros_like(array) for name, array in arrays.items()}
    for step in range(1, EPOCHS + 1):
        hidden = np.tanh(rows @ arrays["first"] + arrays["bias"])
        scores = hidden @ arrays["last"]
        weights = np.exp(scores - np.maximum.reduceat(scores, starts)[sample])
        error = (weights / np.add.reduceat(weights, starts)[sample] - chosen) / len(inputs)
        below = error[:, None] * arrays["last"] * (1 - hidden**2)
        slopes = {"first": rows.T @ below, "bias": below.sum(0), "last": hidden.T @ error}
        for name, slope in slopes.items():
            slope = slope + DECAY * arrays[name]
            means[name] = 0.9 * means[name] + 0.1 * slope
            squares[name] = 0.999 * squares[name] + 0.001 * slope**2
            mean, square = means[name] / (1 - 0.9**step), squares[name] / (1 - 0.999**step)
            arrays[name] -= RATE * mean / (np.sqrt(square) + 1e-8)
    return StrategyNetwork(arrays)
