"""Who comes through drifts how well, over all schedules of a run, and at what price.

* `Standing` - one agent with its figures
* `Standings` - all of them, ranked
* `make_standings` - out of the lines of a run

Pure functions over lines, as everything in a report. What an agent has kept of an instance is the score that it
collected after the first drift, as a share of what the optimum of the same ticks collects on average. So a lake
that slips and a shop that pays in parts can stand in one mean. Controls are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from drift_agents.analysis.aggregates import Resamples
from drift_agents.analysis.runs import Row
from drift_agents.errors import ExperimentError
from drift_envs.metrics import Estimate

AXES = ("memory", "verifier", "controller", "team", "policy")
"""What tells agents apart, in the order of the lines."""

FAILED = 0.5
"""An instance is lost when no more than this share of the optimum was collected."""

WORLDS = {
    "lakes": ("DriftFrozenLake-v0",),
    "cars": ("DriftMountainCar-v0", "DriftMountainCarContinuous-v0"),
    "shop": ("DriftWebShop-v0",),
}
"""Environments that are reported together."""

TOKENS = ("tokens_estimated", "tokens_in", "tokens_out")
"""Fields that count tokens: of the prompts as they were, and as language models counted theirs."""

Key = tuple[str, ...]
Instance = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """One agent with its figures; shares are in percent.

    Args:
        key: the labels of its parts, in the order of `AXES`.
        supervision: what it is told beyond its own observations.
        reference: whether it is told the truth on purpose, and has no rank.
        ranks: the best and the worst rank that resamples give it.
        kept: the share of the optimum after the first drift, interquartile mean.
        gain: the difference to the same agent without verifier; `None` where there is none.
        before: the share before any drift, interquartile mean.
        groups: the share after the first drift in parts of the schedules, by their names.
        mean: the plain mean of what was kept.
        lost: how many instances, in percent, were lost.
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
        references: those that are told the truth.
        schedules: what counts, in the order of the run.
        instances: how many instances count.
        left_out: how many instances of a schedule somebody did not play up to a drift; they do not count.
    """

    ranked: list[Standing]
    references: list[Standing]
    schedules: tuple[str, ...]
    instances: int
    left_out: Mapping[str, int]


def make_standings(manifest: Mapping[str, Any], rows: Sequence[Row]) -> Standings:
    """Rank the agents of a run.

    Args:
        manifest: what was played.
        rows: what happened; lines of a construction do not count.

    Raises:
        ExperimentError: if nothing is left to compare.
    """
    about = manifest["schedules"]
    played = _by_player(row for row in rows if not about.get(row["schedule"], {}).get("control"))
    found = {key: {at: _after(lines) for at, lines in instances.items()} for key, instances in played.items()}
    everywhere = list(dict.fromkeys(at for instances in found.values() for at in instances))
    common = [at for at in everywhere if all(not math.isnan(_kept(found[key].get(at, ()))) for key in found)]
    common.sort(key=lambda at: (list(about).index(at[0]), at[1]))
    if not common:
        raise ExperimentError(
            f"{manifest['name']}: there is no instance that every agent played beyond a drift, on a schedule that is "
            "no control and whose optimum is known"
        )
    drawn = Resamples([schedule for schedule, _ in common])
    parts = _parts(manifest, common)
    kept = {key: [100 * _kept(instances[at]) for at in common] for key, instances in found.items()}
    players = _players(manifest)
    ranked = [key for key in found if not players.get(key, {}).get("reference")]
    ranks = dict(zip(ranked, drawn.ranks([kept[key] for key in ranked]), strict=True)) if ranked else {}
    standings = [
        Standing(
            key,
            str(players.get(key, {}).get("supervision", "-")),
            key not in ranks,
            ranks.get(key, (0, 0)),
            drawn.estimate(kept[key]),
            _gain(drawn, kept, key),
            drawn.estimate([100 * _kept(_before(played[key][at])) for at in common]).mean,
            {name: drawn.estimate(kept[key], within) for name, within in parts.items()},
            _mean(kept[key]),
            100 * _mean([value <= 100 * FAILED for value in kept[key]]),
            100 * _mean([_probing(played[key][at]) for at in common]),
            _mean([_interactions(played[key][at]) for at in common]),
            _mean([_tokens(played[key][at]) for at in common]),
            _mean([played[key][at][-1]["memory_size"] for at in common]),
        )
        for key in found
    ]
    standings.sort(key=lambda standing: (-round(standing.kept.mean, 9), -round(standing.mean, 9), standing.key))
    return Standings(
        [standing for standing in standings if not standing.reference],
        [standing for standing in standings if standing.reference],
        tuple(dict.fromkeys(schedule for schedule, _ in common)),
        len(common),
        Counter(schedule for schedule, _ in sorted(set(everywhere).difference(common))),
    )


def _by_player(rows: Iterable[Row]) -> dict[Key, dict[Instance, list[Row]]]:
    """The lines of every agent's instances in the order of their episodes, without those of a construction."""
    found: dict[Key, dict[Instance, list[Row]]] = {}
    for row in rows:
        if row.get("stage", "test") == "test":
            key = tuple(str(row[axis]) for axis in AXES)
            found.setdefault(key, {}).setdefault((row["schedule"], row["seed"]), []).append(row)
    for instances in found.values():
        for lines in instances.values():
            lines.sort(key=lambda row: row["episode"])
    return found


def _players(manifest: Mapping[str, Any]) -> dict[Key, Mapping[str, Any]]:
    """What the run's manifest says about its agents; of several schedules the strongest supervision holds."""
    order = ("none", "own reward", "judge", "privileged")
    found: dict[Key, Mapping[str, Any]] = {}
    for one in manifest["players"]:
        key = tuple(str(one.get(axis, {"controller": "direct", "team": "solo"}.get(axis))) for axis in AXES)
        other = found.get(key)
        if other is None or order.index(one["supervision"]) > order.index(other["supervision"]):
            found[key] = one
    return found


def _parts(manifest: Mapping[str, Any], common: Sequence[Instance]) -> dict[str, list[bool]]:
    """Parts of the schedules: by what a drift is like, and by where it happens; empty ones are left out."""
    about = manifest["schedules"]
    kinds = [(about[schedule]["visibility"], about[schedule]["env"]) for schedule, _ in common]
    parts = {kind: [visibility == kind for visibility, _ in kinds] for kind in ("explicit", "implicit")}
    parts |= {name: [env in ids for _, env in kinds] for name, ids in WORLDS.items()}
    return {name: places for name, places in parts.items() if any(places)}


def _after(lines: Sequence[Row]) -> list[Row]:
    """The lines from the first drift on, whatever came later."""
    first = next((place for place, row in enumerate(lines) if row["phase"] != lines[0]["phase"]), len(lines))
    return list(lines[first:])


def _before(lines: Sequence[Row]) -> list[Row]:
    return list(lines[: len(lines) - len(_after(lines))])


def _kept(lines: Sequence[Row]) -> float:
    """The score as a share of what the optimum collects; not a number without lines, or where no optimum is known."""
    if not lines or any(row["regret"] is None for row in lines):
        return math.nan
    best = math.fsum(row["score"] + row["regret"] for row in lines)
    return math.fsum(row["score"] for row in lines) / best if best > 0 else math.nan


def _gain(drawn: Resamples, kept: Mapping[Key, Sequence[float]], key: Key) -> Estimate | None:
    plain = tuple("none" if axis == "verifier" else part for axis, part in zip(AXES, key, strict=True))
    return None if plain == key or plain not in kept else drawn.difference(kept[key], kept[plain])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _interactions(lines: Sequence[Row]) -> float:
    return sum(row["steps"] + row["probe_steps"] for row in lines) / len(lines)


def _probing(lines: Sequence[Row]) -> float:
    probes = sum(row["probe_steps"] for row in lines)
    return probes / max(probes + sum(row["steps"] for row in lines), 1)


def _tokens(lines: Sequence[Row]) -> float:
    """The tokens of a decision: as models counted them, or else as the prompts' length says."""
    estimated, *counted = (sum(row.get(field, 0) for row in lines) for field in TOKENS)
    return (sum(counted) or estimated or math.nan) / max(sum(row["steps"] for row in lines), 1)
