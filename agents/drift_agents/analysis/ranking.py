"""Agents ranked over all schedules of a run by the score that they keep under drift, with its price.

* `Standing` - one agent with its figures
* `Standings` - all of them, ranked
* `make_standings` - the standings of a run
* `measure_instances` - the figures of every agent and instance

Pure functions over rows. The *kept* score of an instance is the score collected after the first drift as a share of
what the optimum of the same ticks collects on average, so that stochastic lakes and shops with partial rewards are
comparable. Controls are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drift_agents.analysis.aggregates import Resamples
from drift_agents.analysis.runs import FAILURE_SHARE, Player, Row
from drift_agents.errors import ExperimentError
from drift_agents.experiment.logs import TEST
from drift_agents.types import SUPERVISION
from drift_envs.metrics import Estimate

AXES = ("memory", "verifier", "controller", "team", "policy")
"""The parts of an agent, in the order of the fields of a row."""

WORLDS = {
    "lakes": ("DriftFrozenLake-v0",),
    "cars": ("DriftMountainCar-v0", "DriftMountainCarContinuous-v0"),
    "shop": ("DriftWebShop-v0",),
    "house": ("DriftHouse-v0",),
}
"""Environments that are reported together."""

TOKENS = ("tokens_estimated", "tokens_in", "tokens_out")
"""Fields that count tokens: estimated from the text, and as counted by language models."""

Key = tuple[str, ...]
Instance = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """One agent with its figures; shares are in percent.

    Args:
        key: the labels of its parts, in the order of `AXES`.
        supervision: one of `drift_agents.types.SUPERVISION`.
        reference: whether it is a privileged reference, which has no rank.
        ranks: the best and the worst rank, a 95 % interval over resamples.
        kept: the share of the optimum after the first drift, interquartile mean.
        gain: the difference to the same agent without verifier; `None` where there is none.
        before: the share before any drift, interquartile mean.
        groups: the share after the first drift in parts of the schedules, by their names.
        mean: the plain mean of what was kept.
        lost: the share of instances that failed.
        probing: the probes' share of all interactions, mean over instances.
        interactions: those of an episode, probes included, mean over instances.
        tokens: tokens of a decision, mean over instances; not a number where none were counted.
        records: the size of memory at the end, mean over instances.
    """

    key: Key
    supervision: str
    reference: bool
    ranks: tuple[int, int]
    kept: Estimate
    gain: Estimate | None
    before: float
    groups: Mapping[str, Estimate]
    mean: float
    lost: float
    probing: float
    interactions: float
    tokens: float
    records: float


class Standings(NamedTuple):
    """All agents of a run, ranked.

    Args:
        ranked: the agents, the best one first.
        references: the privileged references.
        schedules: what counts, in the order of the run.
        instances: how many instances count.
        left_out: by schedule, how many instances do not count since an agent did not play them up to a drift.
    """

    ranked: list[Standing]
    references: list[Standing]
    schedules: tuple[str, ...]
    instances: int
    left_out: Mapping[str, int]


def make_standings(manifest: Mapping[str, Any], rows: Sequence[Row]) -> Standings:
    """Rank the agents of a run.

    Args:
        manifest: the run's manifest.
        rows: its rows; those of a construction do not count.

    Raises:
        ExperimentError: if there is no instance that all agents played beyond a drift.
    """
    about = manifest["schedules"]
    figures = measure_instances([row for row in rows if not about.get(row["schedule"], {}).get("control")])
    axes = list(AXES)
    agents = {key: own.droplevel(axes) for key, own in figures.groupby(level=axes)} if len(figures) else {}
    kept = pd.concat([own["kept"] for own in agents.values()], axis=1) if agents else pd.DataFrame()
    positions = {schedule: position for position, schedule in enumerate(about)}
    common: list[Instance] = sorted(kept.dropna().index, key=lambda at: (positions[at[0]], at[1]))
    if not common:
        raise ExperimentError(
            f"{manifest['name']}: there is no instance that every agent played beyond a drift, on a schedule that is "
            "no control and whose optimum is known"
        )
    resamples = Resamples([schedule for schedule, _ in common])
    groups = _group_schedules(about, common)
    agents = {key: own.reindex(pd.MultiIndex.from_tuples(common)) for key, own in agents.items()}
    scores: dict[Key, list[float]] = {key: (100 * own["kept"]).tolist() for key, own in agents.items()}
    players = _describe_players(manifest)
    ranked = [key for key in scores if not players.get(key, {}).get("reference")]
    ranks = dict(zip(ranked, resamples.ranks([scores[key] for key in ranked]), strict=True)) if ranked else {}
    standings = []
    for key, values in scores.items():
        own = agents[key]
        standings.append(
            Standing(
                key,
                str(players.get(key, {}).get("supervision", "-")),
                key not in ranks,
                ranks.get(key, (0, 0)),
                resamples.estimate(values),
                _estimate_gain(resamples, scores, key),
                resamples.estimate(100 * own["before"]).mean,
                {name: resamples.estimate(values, within) for name, within in groups.items()},
                _mean(values),
                100 * _mean([value <= 100 * FAILURE_SHARE for value in values]),
                100 * _mean(own["probing"]),
                _mean(own["interactions"]),
                _mean(own["tokens"]),
                _mean(own["records"]),
            )
        )
    standings.sort(key=lambda standing: (-round(standing.kept.mean, 9), -round(standing.mean, 9), standing.key))
    return Standings(
        [standing for standing in standings if not standing.reference],
        [standing for standing in standings if standing.reference],
        tuple(dict.fromkeys(schedule for schedule, _ in common)),
        len(common),
        Counter(schedule for schedule, _ in sorted(set(kept.index).difference(common))),
    )


def measure_instances(rows: Sequence[Row]) -> pd.DataFrame:
    """The figures of every agent and instance.

    Args:
        rows: the rows of a run; those of a construction do not count.

    Returns:
        One line an agent (`AXES`) and instance (schedule and seed), with the columns `kept` and `before` (the score as
        a share of the optimum after and before the first drift; NaN without rows or without a known optimum),
        `probing` (the share of probe steps), `interactions` (of an episode), `tokens` (of a step) and `records` (at
        the end).
    """
    kept = [row for row in rows if row.get("stage", TEST) == TEST]
    if not kept:
        return pd.DataFrame()
    # Column by column: a frame of all fields takes four times the memory of the rows.
    frame = pd.DataFrame({field: [row.get(field, math.nan) for row in kept] for field in (*_FIELDS, *TOKENS)})
    del kept
    frame = frame.sort_values("episode", kind="stable")
    frame[list(TOKENS)] = frame[list(TOKENS)].fillna(0)
    frame["best"] = frame["score"] + frame["regret"].astype(float)
    first = frame.groupby(_INSTANCE, sort=False)["phase"].transform("first")
    frame["drifted"] = frame["phase"].ne(first)
    frame["drifted"] = frame.groupby(_INSTANCE, sort=False)["drifted"].cummax()
    by = frame.groupby(_INSTANCE, sort=False)
    steps, probes = by["steps"].sum(), by["probe_steps"].sum()
    estimated, tokens_in, tokens_out = (by[field].sum() for field in TOKENS)
    counted = tokens_in + tokens_out
    return pd.DataFrame(
        {
            "kept": _share_of_optimum(frame[frame["drifted"]]),
            "before": _share_of_optimum(frame[~frame["drifted"]]),
            "probing": probes / (steps + probes).clip(lower=1),
            "interactions": (steps + probes) / by.size(),
            "tokens": counted.where(counted > 0, estimated).replace(0, np.nan) / steps.clip(lower=1),
            "records": by["memory_size"].last(),
        }
    ).sort_index()


_INSTANCE = [*AXES, "schedule", "seed"]
_FIELDS = [*_INSTANCE, "episode", "phase", "score", "regret", "steps", "probe_steps", "memory_size"]


def _share_of_optimum(frame: pd.DataFrame) -> pd.Series:
    """The score of each instance as a share of what the optimum collects; NaN where no optimum is known."""
    sums = frame.groupby(_INSTANCE, sort=False)[["score", "best"]].agg(math.fsum)
    return (sums["score"] / sums["best"]).where(sums["best"] > 0)


def _describe_players(manifest: Mapping[str, Any]) -> dict[Key, Mapping[str, Any]]:
    """The manifest's entries by agent; of several schedules the one with the strongest supervision."""
    found: dict[Key, Mapping[str, Any]] = {}
    for entry in sorted(manifest["players"], key=lambda entry: SUPERVISION.index(entry["supervision"])):
        player = Player.of(entry)
        found[tuple(str(getattr(player, axis)) for axis in AXES)] = entry
    return found


def _group_schedules(about: Mapping[str, Any], common: Sequence[Instance]) -> dict[str, list[bool]]:
    """Groups of instances by the visibility of the drift and by the environment; empty groups are left out."""
    kinds = [(about[schedule]["visibility"], about[schedule]["env"]) for schedule, _ in common]
    groups = {kind: [visibility == kind for visibility, _ in kinds] for kind in ("explicit", "implicit")}
    groups |= {name: [env in ids for _, env in kinds] for name, ids in WORLDS.items()}
    return {name: places for name, places in groups.items() if any(places)}


def _estimate_gain(resamples: Resamples, scores: Mapping[Key, Sequence[float]], key: Key) -> Estimate | None:
    plain = tuple("none" if axis == "verifier" else part for axis, part in zip(AXES, key, strict=True))
    return None if plain == key or plain not in scores else resamples.difference(scores[key], scores[plain])


def _mean(values: Sequence[float] | pd.Series) -> float:
    return math.fsum(values) / len(values)
