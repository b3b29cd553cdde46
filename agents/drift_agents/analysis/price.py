"""What every cell achieved for its price: success within budgets of interactions.

The price is a curve: what an agent achieves within a budget of interactions. What counts are the episodes after the
first drift; in a cell without a drift, all of them. An episode is achieved if it ended, probes included, within the
budget: a multiple of the interactions that the clairvoyant policy takes for the same episodes of the same instance. An
agent whose probes take episodes of the schedule's clock plays fewer of them, and is measured against the same number;
one that is slower where the clock counts steps meets the drift earlier, and is measured against its own. A failed
episode may be charged further interactions, for the agent and for the clairvoyant alike. An agent that needs
fewer interactions plays no further episodes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from drift_agents.analysis.evidence import AXES, EvidenceTable
from drift_agents.analysis.names import CLAIRVOYANT
from drift_agents.analysis.rows import TOLERANCE, WINDOW
from drift_agents.experiment.logs import SUCCESS

BUDGETS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Multiples of the clairvoyant's interactions."""

CHARGES = (0, 10, 50)
"""Interactions that a failed episode costs beyond its own steps."""

AREA, UNLIMITED = "area", "unlimited"

MEASURES = (*(f"x{budget:g}" for budget in BUDGETS), UNLIMITED, AREA)
"""The measures of a cell, by name: success at each budget, without a limit, and the area over the budgets."""


@lru_cache(maxsize=2)
def price_cells(evidence: EvidenceTable) -> pd.DataFrame:
    """Success of every cell in percent, by charge and budget.

    The success of an episode is 0 or 1 where the drift is explicit and its score in [0, 1] where it is implicit, as in
    the report. The area is the mean over the budgets from x1 to x3, by the trapezoidal rule.

    Returns:
        One row a cell, in order, and the columns (charge, measure) of `CHARGES` and `MEASURES`. Where the clairvoyant
        did not play the instance, all but `unlimited` are not a number.
    """
    cell, counted = _number_episodes(evidence)
    achieved = _achieved(evidence, cell)
    failed = (evidence.episodes["score"] < SUCCESS).to_numpy()
    interactions = (evidence.episodes["steps"] + evidence.episodes["probe_steps"]).to_numpy()
    best = _clairvoyant_cells(evidence)
    own = np.bincount(cell, counted)
    episodes = np.where(best < 0, own, np.maximum(own, own[best]))
    widths = np.diff(BUDGETS)
    columns: dict[tuple[int, str], np.ndarray] = {}
    for charge in CHARGES:
        cost = np.where(counted, interactions + charge * failed, 0)
        total = np.cumsum(cost)
        spent = total - (total - cost)[evidence.starts][cell]
        needed = np.where(best < 0, np.nan, np.bincount(cell, cost)[best])
        curve = [_percent(cell, achieved * (counted & (spent <= b * needed[cell])), episodes) for b in BUDGETS]
        curve = [np.where(best < 0, np.nan, values) for values in curve]
        area = sum(width * (a + b) / 2 for width, a, b in zip(widths, curve[:-1], curve[1:], strict=True))
        whole = _percent(cell, achieved * counted, episodes)
        columns |= {(charge, name): values for name, values in zip(MEASURES, (*curve, whole), strict=False)}
        columns[charge, AREA] = np.asarray(area / widths.sum())
    return pd.DataFrame(columns)


def describe_cells(evidence: EvidenceTable) -> pd.DataFrame:
    """Further figures of every cell.

    Returns:
        One row a cell, in order, with the columns `probes` (their share of all interactions, percent) and `chain` (100
        if the agent recovered in every phase after the first drift, else 0; not a number where the clairvoyant did
        not play). It recovered in a phase if its mean over the last `WINDOW` episodes is within `TOLERANCE` of the
        clairvoyant's in the same episodes. The mean over instances is the chain accuracy in the sense of EvoArena
        (2026): the share of sequences of changes of which every one was mastered.
    """
    cell, counted = _number_episodes(evidence)
    steps, probes = (np.bincount(cell, evidence.episodes[name]) for name in ("steps", "probe_steps"))
    best = _clairvoyant_cells(evidence)
    lengths = evidence.cells["episodes"].to_numpy()
    position = np.arange(len(cell)) - evidence.starts[cell]
    theirs = best[cell]
    known = (theirs >= 0) & (position < lengths[theirs])
    achieved = _achieved(evidence, cell)
    optimal = np.where(known, achieved[np.where(known, evidence.starts[theirs] + position, 0)], np.nan)
    frame = pd.DataFrame({"cell": cell, "phase": evidence.episodes["phase"], "ours": achieved, "theirs": optimal})
    last = frame[counted].groupby(["cell", "phase"]).tail(WINDOW)
    means = last.groupby(["cell", "phase"])[["ours", "theirs"]].mean()
    recovered = means["ours"] >= (1 - TOLERANCE) * means["theirs"]
    chain = 100.0 * recovered.groupby(level="cell").all().to_numpy()
    return pd.DataFrame(
        {
            "probes": 100 * probes / np.maximum(steps + probes, 1),
            "chain": np.where(best < 0, np.nan, chain),
        }
    )


def instance_values(evidence: EvidenceTable, values: pd.Series | np.ndarray) -> pd.DataFrame:
    """Values of cells by agent and instance.

    Args:
        values: one a cell, in order.

    Returns:
        One row an agent (its key), one column an instance (schedule, seed); not a number where it did not play.
    """
    cells = evidence.cells
    keys, agents = pd.factorize(evidence.keys)
    places = pd.MultiIndex.from_arrays([cells["schedule"], cells["seed"]])
    numbers, instances = places.factorize(sort=True)
    table = np.full((len(agents), len(instances)), np.nan)
    table[keys, numbers] = values
    return pd.DataFrame(table, pd.Index(agents, tupleize_cols=False), instances)


def _number_episodes(evidence: EvidenceTable) -> tuple[np.ndarray, np.ndarray]:
    """The cell of every episode, and whether it counts."""
    cell = np.repeat(np.arange(len(evidence.cells)), evidence.cells["episodes"])
    drifted = (evidence.episodes["phase"] > 0).to_numpy()
    return cell, drifted | (np.bincount(cell, drifted) == 0)[cell]


def _achieved(evidence: EvidenceTable, cell: np.ndarray) -> np.ndarray:
    implicit = evidence.cells["schedule"].map(lambda name: evidence.schedules[name]["visibility"] == "implicit")
    score = evidence.episodes["score"].to_numpy()
    return np.asarray(np.where(implicit.to_numpy(bool)[cell], score, score >= SUCCESS))


def _clairvoyant_cells(evidence: EvidenceTable) -> np.ndarray:
    """By cell the number of the clairvoyant's cell of the same instance; -1 without one."""
    cells = evidence.cells[["schedule", "seed"]]
    optimal = cells[(evidence.cells[AXES[-1]] == CLAIRVOYANT).to_numpy()]
    numbers = pd.Series(optimal.index, pd.MultiIndex.from_frame(optimal))
    found: np.ndarray = numbers.reindex(pd.MultiIndex.from_frame(cells), fill_value=-1).to_numpy()
    return found


def _percent(cell: np.ndarray, achieved: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    return np.asarray(100 * np.bincount(cell, achieved) / episodes)
