"""The measures of the board: pure functions over binned scores.

* `read_lines` - reads a Parquet file of a board
* `ScoreCell` - the scores of one learner in one environment and regime
* `after_drift`, `regret` - means after the first drift
* `around_drifts` - the mean curve around drifts
* `adaptation` - rounds until a phase reaches a level
* `transfer`, `forgetting`, `plasticity_loss` - between phases
* `ranks` - mean ranks over cells with intervals

Scores lie in [0, 1] and every bin counts alike, however many episodes ended in it. Intervals are over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from baselines.environments import REGIMES, Regime
from drift_envs.errors import ArgumentError

COLUMNS = ("learner", "environment", "regime", "seed", "bin", "score")
"""What a line of the board has."""
SHARE = 0.9
"""Of the level that a learner reaches which is trained on the phase alone."""
EARLY, LATE = slice(1, 11), slice(30, 40)
"""The phases that are compared for plasticity beside the first and the last one."""


def read_lines(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Read a Parquet file of a board.

    Args:
        path: the file.
        columns: what it has to have.

    Raises:
        ArgumentError: if it is no such file.
    """
    try:
        lines = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(f"a file of the board should be Parquet. Received {str(path)!r}: {reason}") from error
    lacking = [name for name in columns if name not in lines]
    if lacking:
        raise ArgumentError(f"a file of the board should have the columns {', '.join(lacking)}. Received {str(path)!r}")
    return lines


@dataclass(frozen=True)
class ScoreCell:
    """The scores of one learner in one environment and regime.

    Args:
        scores: by seed and bin, `(N, B)`.
        regime: the regime.
    """

    scores: np.ndarray
    regime: Regime

    @property
    def phases(self) -> list[np.ndarray]:
        """The scores of each phase, `(N, bins of the phase)`."""
        ends = np.cumsum(np.array(self.regime.rounds) // self.regime.bin)
        return np.split(self.scores, ends[:-1], axis=1)


def make_cells(lines: pd.DataFrame) -> dict[tuple[str, str, str], ScoreCell]:
    """The cells of a board by environment, regime and learner."""
    cells = {}
    for key, part in lines.groupby(["environment", "regime", "learner"], sort=False, observed=True):
        ordered = part.sort_values(["seed", "bin"])
        regime = REGIMES[str(key[1])]
        scores = ordered["score"].to_numpy(np.float64).reshape(ordered["seed"].nunique(), -1)
        cells[str(key[0]), str(key[1]), str(key[2])] = ScoreCell(scores, regime)
    return cells


def after_drift(cell: ScoreCell) -> np.ndarray:
    """The mean score after the first drift, or of everything where nothing drifts, `(N,)`.

    Example:
        >>> late = REGIMES["late"]
        >>> after_drift(ScoreCell(np.repeat([[1.0, 0.25]], [100, 50], axis=1), late)).tolist()
        [0.25]
    """
    phases = cell.phases
    return np.concatenate(phases[1:] or phases, axis=1).mean(axis=1)


def regret(cell: ScoreCell, optimum: np.ndarray) -> np.ndarray:
    """The mean difference to the optimum of the phase, over the whole lifetime, `(N,)`.

    Args:
        cell: the scores.
        optimum: the mean score of the optimal policy of each phase, for each seed, `(N,)`.
    """
    return optimum - cell.scores.mean(axis=1)


def around_drifts(cell: ScoreCell, bins: int) -> np.ndarray:
    """The mean score around drifts, `(N, 2 * bins)`: as many bins before a drift as after it.

    Drifts that have fewer on one side are left out.
    """
    ends = np.cumsum(np.array(cell.regime.rounds) // cell.regime.bin)
    wholes = [end for end in ends[:-1] if end >= bins and end + bins <= cell.scores.shape[1]]
    return np.mean([cell.scores[:, end - bins : end + bins] for end in wholes], axis=0)


def level_of(alone: ScoreCell) -> float:
    """What a learner reaches that is trained on each phase alone: the mean of the last fifth of the phases."""
    return float(np.mean([phase[:, -max(phase.shape[1] // 5, 1) :].mean() for phase in alone.phases]))


@dataclass(frozen=True)
class Adaptation:
    """Adaptation times.

    Args:
        rounds: the mean over the drifts of a lifetime, where a phase that does not reach the level counts with its
            whole length, `(N,)`.
        censored: the share of phases that do not reach it.
    """

    rounds: np.ndarray
    censored: float


def adaptation(cell: ScoreCell, level: float) -> Adaptation:
    """Rounds after each drift until a bin reaches `SHARE` of a level.

    Args:
        cell: the scores; its regime has a drift.
        level: from `level_of`.

    Example:
        >>> scores = np.zeros((1, 150))
        >>> scores[:, 110:] = 0.95
        >>> adaptation(ScoreCell(scores, REGIMES["late"]), 1.0)
        Adaptation(rounds=array([22.]), censored=0.0)
    """
    times, missed = [], []
    for phase in cell.phases[1:]:
        reached = phase >= SHARE * level
        never = ~reached.any(axis=1)
        times.append(np.where(never, phase.shape[1], reached.argmax(axis=1) + 1) * cell.regime.bin)
        missed.append(never)
    return Adaptation(np.mean(times, axis=0), float(np.mean(missed)))


def transfer(cell: ScoreCell, alone: ScoreCell) -> np.ndarray:
    """Forward transfer, (AUC - AUC_b) / (1 - AUC_b) (COOM, Tomilin et al. 2023), `(N,)`.

    AUC is the mean score after the first drift, AUC_b that of a learner trained on each phase alone, over all seeds.
    """
    base = after_drift(alone).mean()
    return (after_drift(cell) - base) / (1 - base)


def forgetting(cell: ScoreCell) -> np.ndarray:
    """The score at the end of a phase less that at its return, for phases that return, `(N,)`.

    Ends and returns are fifths of a phase.

    Example:
        >>> scores = np.tile(np.repeat([[0.0, 1.0]], [5, 20], axis=1), 6)
        >>> forgetting(ScoreCell(scores, REGIMES["recurring"])).tolist()
        [1.0]
    """
    phases, order = cell.phases, cell.regime.order
    found = []
    for index, number in enumerate(order):
        before = [place for place in range(index) if order[place] == number]
        if before:
            fifth = max(phases[index].shape[1] // 5, 1)
            found.append(phases[before[-1]][:, -fifth:].mean(axis=1) - phases[index][:, :fifth].mean(axis=1))
    return np.mean(found, axis=0)


def plasticity_loss(cell: ScoreCell) -> np.ndarray:
    """The mean score of the first phase less that of the last one, `(N,)`: positive where learning has got worse."""
    phases = cell.phases
    return phases[0].mean(axis=1) - phases[-1].mean(axis=1)


def early_and_late(cell: ScoreCell) -> tuple[np.ndarray, np.ndarray]:
    """The mean scores of the phases 2 to 11 and of the phases 31 to 40, each `(N,)`."""
    means = np.array([phase.mean(axis=1) for phase in cell.phases])
    return means[EARLY].mean(axis=0), means[LATE].mean(axis=0)


def ranks(scores: dict[str, np.ndarray], resamples: int = 2000, seed: int = 0) -> dict[str, tuple[float, float, float]]:
    """The rank of each learner by its mean over cells, and the 95 % interval of the rank.

    Args:
        scores: for each learner its score by cell and seed, `(C, N)`; the same cells and seeds for all.
        resamples: of the seeds, the same for all learners.
        seed: of the resamples.

    Returns:
        Rank, lowest and highest rank; 1 is best.

    Example:
        >>> ranks({"good": np.ones((1, 5)), "bad": np.zeros((1, 5))})
        {'good': (1.0, 1.0, 1.0), 'bad': (2.0, 2.0, 2.0)}
    """
    table = np.array([scores[name].mean(axis=0) for name in scores])
    rng = np.random.default_rng(seed)
    drawn = rng.integers(table.shape[1], size=(resamples, table.shape[1]))
    means = table[:, drawn].mean(axis=2)  # (learners, resamples)

    def rank(values: np.ndarray) -> np.ndarray:
        return (values[None] > values[:, None]).sum(axis=1) + 1.0

    own, resampled = rank(table.mean(axis=1)), rank(means)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=1)
    return {name: (float(own[index]), float(low[index]), float(high[index])) for index, name in enumerate(scores)}
