"""The rows of a run by player and instance; one schedule of it with its players, measure and phases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.names import (
    ALONE,
    MEMORY_NAMES,
    REFERENCE_NAMES,
    VERIFIER_NAMES,
    display_name,
    shorten_labels,
)
from drift_agents.analysis.table import MISSING
from drift_agents.experiment.folder import check_merged, finished_lines, read_manifest
from drift_agents.experiment.logs import TRAIN, LoggedRow, read_rows
from drift_agents.experiment.own_lines import OWN_LOOP
from drift_envs.metrics import Estimate, Recoveries, bootstrap, recovery, summarise_recoveries

Row = Mapping[str, Any]

Measurement = Callable[[Sequence[Row]], float]
"""Rows of one instance to one number."""

TOLERANCE = 0.1
"""How far below the optimum a recovered player may stay, as a share of it."""

WINDOW = 5
"""Episodes over which scores are averaged, and for which they must stay, before a player counts as recovered."""


class Player(NamedTuple):
    """Who plays.

    Args:
        memory: the memory's label.
        verifier: the verifier's label, or the name of a reference.
        policy: the policy's label, or `clairvoyant`.
        controller: the controller's label.
        team: the team's label.
    """

    memory: str
    verifier: str
    policy: str
    controller: str = "direct"
    team: str = "solo"

    @property
    def unusual_parts(self) -> tuple[str, ...]:
        """Controller and team, where they are not the usual ones."""
        usual = self._field_defaults
        return tuple(
            one for one, field in ((self.controller, "controller"), (self.team, "team")) if one != usual[field]
        )

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Player:
        """Who plays, by a row or by what a run's manifest says; what stands there in neither is the default."""
        return cls(**{field: data[field] for field in cls._fields if field in data})


@dataclass(frozen=True)
class Runs:
    """All rows of one player on one schedule.

    Args:
        player: who.
        seeds: the instances, in order.
        rows: one tuple of rows an instance, in order of the episodes.
        is_one_run: whether all instances are one and the same run from its beginning to its end, but
            for their seeds; a part of the rows keeps what was found for the whole.
        training: the rows of what was played before the test, one tuple an instance; they stand in no
            phase, and count as interaction.
    """

    player: Player
    seeds: tuple[int, ...]
    rows: tuple[tuple[Row, ...], ...]
    is_one_run: bool
    training: tuple[tuple[Row, ...], ...] = ()

    @property
    def whole(self) -> Runs:
        """All that was played, training included, as rows."""
        if not self.training:
            return self
        rows = tuple((*before, *after) for before, after in zip(self.training, self.rows, strict=True))
        return replace(self, rows=rows, training=())

    def phase(self, phase: str, last: int | None = None) -> Runs:
        """The rows of one phase, or only its last ones.

        Args:
            last: keep so many rounds at the end of the phase.
        """
        found = ([row for row in rows if row["phase"] == phase] for rows in self.rows)
        return replace(self, rows=tuple(tuple(rows if last is None else rows[-last:]) for rows in found))

    def without(self, phase: str) -> Runs:
        """The rows of all other phases."""
        return replace(self, rows=tuple(tuple(row for row in rows if row["phase"] != phase) for rows in self.rows))

    def per_instance(self, measure: Measurement) -> list[float]:
        """One number an instance; not a number where an instance has no rows."""
        return [measure(rows) if rows else math.nan for rows in self.rows]


def read_run(folder: Path) -> tuple[dict[str, Any], list[LoggedRow]]:
    """The manifest and the rows of a finished run.

    Raises:
        ExperimentError: if the folder holds no finished run, or its lines were changed.
    """
    manifest = read_manifest(folder)
    rows = read_rows(finished_lines(folder))
    check_merged(folder, manifest)
    return manifest, rows


def group(rows: Iterable[Row]) -> dict[str, list[Runs]]:
    """Rows into runs, by schedule, in the order in which they first appear."""
    found: dict[str, dict[Player, dict[int, list[Row]]]] = {}
    for row in rows:
        player = Player.of(row)
        found.setdefault(row["schedule"], {}).setdefault(player, {}).setdefault(row["seed"], []).append(row)
    return {
        schedule: [_runs(player, instances) for player, instances in players.items()]
        for schedule, players in found.items()
    }


def _runs(player: Player, instances: Mapping[int, Sequence[Row]]) -> Runs:
    seeds = tuple(sorted(instances))
    rows = tuple(tuple(sorted(instances[seed], key=lambda row: row["episode"])) for seed in seeds)
    is_one_run = all(
        len(instance) == len(rows[0]) and all(map(_are_equal_but_for_seed, instance, rows[0])) for instance in rows[1:]
    )
    test, training = (
        tuple(tuple(row for row in instance if (row["stage"] == TRAIN) is wanted) for instance in rows)
        for wanted in (False, True)
    )
    return Runs(player, seeds, test, is_one_run, training)


def _are_equal_but_for_seed(one: Row, other: Row) -> bool:
    if isinstance(one, LoggedRow) and isinstance(other, LoggedRow):
        return one.equals_but_for("seed", other)
    return len(one) == len(other) and all(key in other and (key == "seed" or one[key] == other[key]) for key in one)


def phases_of(runs: Iterable[Runs]) -> list[str]:
    """The phases that were played, in the order of their first ticks."""
    first: dict[str, int] = {}
    for run in runs:
        for rows in run.rows:
            for row in rows:
                first[row["phase"]] = min(first.get(row["phase"], row["tick"]), row["tick"])
    return sorted(first, key=lambda phase: first[phase])


def mean_of(field: str, scale: float = 1.0) -> Measurement:
    """The measure that averages a field over rows; rows without a value do not count."""

    def measure(rows: Sequence[Row]) -> float:
        values = [float(row[field]) for row in rows if row[field] is not None]
        return scale * sum(values) / len(values) if values else math.nan

    return measure


def sum_of(*fields: str) -> Measurement:
    """The measure that adds fields up over rows; not a number if a row lacks one."""

    def measure(rows: Sequence[Row]) -> float:
        values = [row[field] for row in rows for field in fields]
        return math.nan if None in values else float(sum(values))

    return measure


def estimate(values: Sequence[float], *, one_run: bool = False) -> Estimate:
    """The mean of one number an instance, with a 95 % interval bootstrapped over the instances.

    `drift_envs.metrics.bootstrap` counts instances that agree as one. Here they count as one only if
    they are the same run: ten different runs that all fail are ten failures.

    Args:
        values: one an instance; those that are not a number do not count.
        one_run: whether all instances are one and the same run.

    Returns:
        The estimate; its `n` is 0 if there is nothing to average.

    Example:
        >>> print(estimate([1.0, 1.0, 1.0], one_run=True))
        1 (one value)
        >>> estimate([1.0, 1.0, 1.0]).n
        3
    """
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Estimate(math.nan, math.nan, math.nan, 0)
    return bootstrap(known)._replace(n=1 if one_run else len(known))


def describe_interval(value: Estimate) -> dict[str, Any]:
    """A mean with its 95 % interval as plain data; it is `None` with one instance."""
    has_interval = value.n > 1
    return {
        "mean": value.mean,
        "low": value.low if has_interval else None,
        "high": value.high if has_interval else None,
        "n": value.n,
    }


def difference(a: Runs, b: Runs, measure: Measurement) -> Estimate:
    """The mean of a - b over pairs of instances with one seed, with its interval."""
    theirs = dict(zip(b.seeds, b.per_instance(measure), strict=True))
    ours = zip(a.seeds, a.per_instance(measure), strict=True)
    changes = [value - theirs[seed] for seed, value in ours if seed in theirs]
    return estimate(changes, one_run=a.is_one_run and b.is_one_run)


def recoveries(runs: Runs) -> Recoveries | None:
    """When the instances were back after a drift; `None` where no optimum is known.

    Args:
        runs: the rows of one phase.
    """
    if any(row["regret"] is None for rows in runs.rows for row in rows):
        return None
    window = min(WINDOW, *(len(rows) for rows in runs.rows))
    if not window:
        return None
    return summarise_recoveries(
        [
            recovery(
                [row["score"] for row in rows],
                [row["score"] + row["regret"] for row in rows],
                tolerance=TOLERANCE,
                window=window,
                stay=WINDOW,
            )
            for rows in runs.rows
        ]
    )


class Measure(NamedTuple):
    """The reported field of an episode, in percent.

    Args:
        name: as in the heading.
        field: of the rows.
    """

    name: str
    field: str

    @property
    def of(self) -> Callable[[Sequence[Row]], float]:
        """The mean over rows, in percent."""
        return mean_of(self.field, 100)


def measure_of(visibility: str) -> Measure:
    """The success rate of explicit drifts, the score of implicit ones, as in the paper's section 5.1."""
    return (
        Measure("score in percent", "score") if visibility == "implicit" else Measure("success in percent", "success")
    )


class PlayerIndex:
    """The players of a schedule, row by row: each memory, its verifiers below it, clairvoyant last.

    Args:
        runs: all players of a schedule, in the order of the log.
        manifest: of the run.
        schedule: the schedule's name.
    """

    def __init__(self, runs: Sequence[Runs], manifest: Mapping[str, Any], schedule: str) -> None:
        self.runs = {run.player: run for run in runs}
        self.labels = shorten_labels((label for run in runs for label in run.player), manifest["experiment"])
        self._about = {Player.of(one): one for one in manifest["players"] if one["schedule"] == schedule}
        self._policies = {run.player.policy for run in runs if run.player.policy not in (*ALONE, OWN_LOOP)}

    def rows(self) -> Iterator[tuple[str, Runs, bool]]:
        """Name, runs, and whether it is a reference, row by row; below another memory a verifier has its full name."""
        above = None
        for player, run in self.runs.items():
            name = self.name(player) if player.memory == above else self.full_name(player)
            above = player.memory
            yield name, run, self.is_reference(player)

    def agents(self) -> Iterator[tuple[str, Runs]]:
        """Name and runs of those that are no reference."""
        for name, run, reference in self.rows():
            if not reference:
                yield name, run

    def name(self, player: Player) -> str:
        """The display name of a player in a table."""
        if player.policy in ALONE:
            return ALONE[player.policy]
        memory = self.memory_name(player)
        labels = [player.policy] if len(self._policies) > 1 and player.policy != OWN_LOOP else []
        shown = ", ".join(self.labels[label] for label in (*labels, *player.unusual_parts))
        policy = shown and f" ({shown})"
        if player.verifier == "none":
            return f"{memory}{policy}"
        if player.verifier in REFERENCE_NAMES:
            return f"  {REFERENCE_NAMES[player.verifier]}{policy}"
        return f"  + {display_name(self.labels[player.verifier], VERIFIER_NAMES)}{policy}"

    def memory_name(self, player: Player) -> str:
        """The display name of a player's memory."""
        return display_name(self.labels[player.memory], MEMORY_NAMES)

    def full_name(self, player: Player) -> str:
        """The display name without a memory's row above it: `Vanilla + GLOVE`."""
        name = self.name(player)
        return f"{self.memory_name(player)} {name.strip()}" if name.startswith(" ") else name

    def is_reference(self, player: Player) -> bool:
        """Whether it is a privileged reference."""
        return bool(self._about.get(player, {}).get("reference"))

    def supervision(self, player: Player) -> str:
        """Its level of `drift_agents.types.SUPERVISION`."""
        return str(self._about.get(player, {}).get("supervision", MISSING))


class ScheduleRuns(NamedTuple):
    """One schedule of a run.

    Args:
        schedule: its name.
        players: the players.
        measure: what is reported.
        phases: its phases; the first one is the source.
    """

    schedule: str
    players: PlayerIndex
    measure: Measure
    phases: Sequence[str]

    def after(self, run: Runs) -> Runs:
        """The rows after the first drift; all rows where none came."""
        return run if len(self.phases) < 2 else run.without(self.phases[0])


def parts_of(manifest: Mapping[str, Any], rows: Iterable[Row]) -> list[ScheduleRuns]:
    """All schedules of a run.

    Args:
        rows: of all players.
    """
    return [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]


def part_of(manifest: Mapping[str, Any], schedule: str, runs: Sequence[Runs]) -> ScheduleRuns:
    """One schedule of a run, with its players, measure and phases.

    Args:
        runs: its players' rows.
    """
    measure = measure_of(str(manifest["schedules"].get(schedule, {}).get("visibility")))
    return ScheduleRuns(schedule, PlayerIndex(runs, manifest, schedule), measure, phases_of(runs))
