"""What a run shows about a claim: figures beside the bounds that they have to keep.

* `Check` - one figure and its bound
* `ClaimRun` - a run: its schedules, its players and its tests
* `count_unplayed` - the comparisons of the experiment that a part of it lacks
* `NotPlayedError` - a run lacks what a claim needs
* `ahead`, `surely_above`, `at_least`, `at_most`, `share_of`, `above` - the checks that claims consist of
* `interval_of` - an interval for any figure over instances
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from drift_agents.analysis.aggregates import LEVEL, RESAMPLES
from drift_agents.analysis.runs import Measurement, Player, Row, Runs, estimate, group, paired
from drift_agents.analysis.schedule_runs import ScheduleRuns, part_of
from drift_agents.analysis.table import format_difference, format_estimate
from drift_agents.analysis.tables.comparisons import (
    BASELINES,
    SIGNIFICANT,
    Comparison,
    compare,
    correct,
    is_glove,
    sign_flip,
)
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.worlds import read_schedule
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from drift_envs.metrics import Estimate, recovery_ratio

HELD, REFUTED, INCONCLUSIVE = "held", "refuted", "inconclusive"

SLACK = 1e-9
"""Figures that miss a bound by less miss it by the order of a sum's terms."""

Numbers = NDArray[np.float64]


class NotPlayedError(ExperimentError):
    """A run lacks what a claim needs."""


class Check(NamedTuple):
    """One figure and its bound.

    Args:
        schedule: where.
        what: the figure.
        found: its value, with interval and number of instances.
        needed: the bound.
        holds: whether the figure is within the bound.
        room: the distance of the figure to its bound, negative beyond it; comparable among figures of one kind.
        rooms: the interval of `room`; `None` for a count, which is what it is.
        n: over how many instances; one alone has no interval and decides nothing.
        strict: whether a figure at the bound is beyond it.
        enough: the number of instances that would decide it, where the interval's width does not give it.
    """

    schedule: str
    what: str
    found: str
    needed: str
    holds: bool
    room: float
    rooms: tuple[float, float] | None = None
    n: int = 0
    strict: bool = False
    enough: int | None = None

    @property
    def word(self) -> str:
        """Held if the whole interval is within the bound, refuted if all of it is beyond, else inconclusive."""
        if self.rooms is None:
            return HELD if self.holds else REFUTED
        if self.n < 2:
            return INCONCLUSIVE
        low, high = self.rooms
        slack = SLACK if self.strict else -SLACK
        if low > slack:
            return HELD
        return REFUTED if high <= slack else INCONCLUSIVE

    @property
    def deciding_n(self) -> int | None:
        """About how many instances bring the nearer end of the interval to the bound, if the figure stays.

        The width of an interval falls with the root of their number. The figure of other instances lies on either side
        of this one with even odds, and so do the odds that this number decides. `None` if it is decided, or if the
        figure stands at its bound or has no finite interval.
        """
        if self.rooms is None or self.n < 2 or self.word != INCONCLUSIVE:
            return None
        if self.enough is not None:
            return max(self.n + 1, self.enough)
        half = self.room - self.rooms[0] if self.room > 0 else self.rooms[1] - self.room
        if abs(self.room) <= SLACK or not math.isfinite(half):
            return None
        return max(self.n + 1, math.ceil(self.n * (half / self.room) ** 2))


def count_unplayed(manifest: Mapping[str, Any]) -> int:
    """The number of comparisons of an experiment's file, drift by drift, that a run of a part of it lacks.

    Args:
        manifest: of the run.
    """
    played = {(one["schedule"], Player.of(one)) for one in manifest["players"]}
    cells = [cell for cell in plan_cells(load_experiment(manifest["name"])) if cell.reference is None]
    planned = dict.fromkeys((cell.schedule, cell.place, Player(*cell.labels)) for cell in cells)
    known = {(place, player) for _, place, player in planned}
    count = 0
    for schedule, place, player in filter(lambda one: is_glove(one[2]), planned):
        pairs = [{(place, player), (place, player._replace(verifier=verifier))} for verifier in BASELINES]
        missing = sum(pair <= known and not pair <= played for pair in pairs)
        count += missing * len(read_schedule(schedule).drifts) if missing else 0
    return count


class ClaimRun:
    """A run: its schedules, its players and its tests.

    Args:
        manifest: what was played.
        rows: what happened.
        unplayed: the number of comparisons that the experiment's file has and the run has not. Holm's correction
            counts them with p-values of 1, the largest family that they could make, so that to play a part of an
            experiment makes nothing significant.
    """

    def __init__(self, manifest: Mapping[str, Any], rows: Sequence[Row], unplayed: int = 0) -> None:
        self.manifest = manifest
        self.unplayed = unplayed
        self.name = str(manifest["name"])
        self.rows = rows
        self.parts = {name: part_of(manifest, name, runs) for name, runs in group(rows).items()}

    def part(self, schedule: str) -> ScheduleRuns:
        """A schedule of the run.

        Raises:
            NotPlayedError: if it was not played.
        """
        try:
            return self.parts[schedule]
        except KeyError as error:
            raise NotPlayedError(f"`{schedule}` was not played") from error

    def swept(self, schedule: str, least: float = -math.inf) -> list[ScheduleRuns]:
        """A schedule with every value that the experiment's file gives it, in the order of the file.

        Args:
            schedule: its name in the file.
            least: leave out smaller values.

        Raises:
            NotPlayedError: if one was not played.
        """
        played = {
            self.value(part): part
            for name, part in self.parts.items()
            if self.manifest["schedules"].get(name, {}).get("sweep", {}).get("of") == schedule
        }
        values = [change.value for change in self.file.changes(schedule) if change is not None]
        missing = [f"{value:g}" for value in values if value >= least and value not in played]
        if missing:
            raise NotPlayedError(f"`{schedule}` was not played with {', '.join(missing)}")
        return [played[value] for value in values if value >= least]

    @cached_property
    def file(self) -> Experiment:
        """The experiment as it is shipped, of which the run may be a part."""
        return load_experiment(self.name)

    def planned(self, schedule: str) -> list[Player]:
        """The agents that the experiment's file has on a schedule, without references, played or not."""
        return list(dict.fromkeys(Player(*cell.labels) for cell in self._cells if cell.schedule == schedule))

    @cached_property
    def _cells(self) -> list[Cell]:
        return [cell for cell in plan_cells(self.file) if cell.reference is None]

    def value(self, part: ScheduleRuns) -> float:
        """The value that a sweep gave a schedule."""
        return float(self.manifest["schedules"][part.schedule]["sweep"]["value"])

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Those of the report: GLOVE's family against plain and `overwrite`, over all schedules."""
        return [one for part in self.parts.values() for one in compare(*part)]

    def corrected(self, more: Sequence[float] = ()) -> list[float]:
        """The p-values of the run's comparisons after Holm's correction, and of further ones in the same family.

        Args:
            more: the p-values of comparisons that a claim adds.
        """
        corrected = correct(self.comparisons, [*more, *[1.0] * self.unplayed])
        return corrected[: len(corrected) - self.unplayed]

    def family(self, more: int = 0) -> int:
        """The number of distinct comparisons that are tested together, those that were not played among them.

        Args:
            more: those that a claim adds.
        """
        tested = {(one.schedule, one.phase, one.episodes) for one in self.comparisons if not math.isnan(one.p_value)}
        return len(tested) + more + self.unplayed


def run_of(part: ScheduleRuns, player: Player) -> Runs:
    """The runs of a player on a schedule.

    Raises:
        NotPlayedError: if it did not play there.
    """
    try:
        return part.players.runs[player]
    except KeyError as error:
        raise NotPlayedError(f"{title(player)} did not play `{part.schedule}`") from error


def drifts(part: ScheduleRuns) -> Sequence[str]:
    """The phases that a drift began.

    Raises:
        NotPlayedError: if there is none.
    """
    if len(part.phases) < 2:
        raise NotPlayedError(f"no drift of `{part.schedule}` was played")
    return part.phases[1:]


def title(player: Player, phase: str = "") -> str:
    """Who, and when: as in `vanilla + glove, drift-1`.

    Example:
        >>> title(Player("vanilla", "glove", "planner"), "drift-1"), title(Player("none", "none", "random"))
        ('vanilla + glove, drift-1', 'none, random')
    """
    who = player.memory if player.verifier == "none" else f"{player.memory} + {player.verifier}"
    return ", ".join(filter(None, (who, "" if player.policy == "planner" else player.policy, phase)))


def ahead(played: ClaimRun, part: ScheduleRuns, player: Player, baseline: Player) -> Iterator[Check]:
    """A verifier of GLOVE's family is ahead of the plain agent or of `overwrite` after every drift: `**` in the report.

    Raises:
        NotPlayedError: if one of both did not play there.
    """
    for phase in drifts(part):
        for run in (run_of(part, player), run_of(part, baseline)):
            if not any(run.phase(phase).rows):
                raise NotPlayedError(f"`{part.schedule}` was not played up to {phase}")
        family = played.family()
        for one, p_value in zip(played.comparisons, played.corrected(), strict=True):
            if (one.schedule, one.player, one.baseline, one.phase) == (part.schedule, player, baseline, phase):
                what = f"{title(player)} - {title(baseline)}, {phase}"
                yield surely_above(part, what, one.estimate, one.p_value, p_value, family)


def surely_above(
    part: ScheduleRuns, what: str, value: Estimate, p_value: float, corrected: float, family: int
) -> Check:
    """Check that a difference is positive: its interval is above 0 and the test is significant.

    Until the test is significant too, the interval is as wide as the test with the correction needs it: a normal
    distribution with the same p-value, at the level of the smallest of `family` p-values.

    Args:
        part: where.
        what: the difference.
        value: with its interval.
        p_value: of the sign-flip test.
        corrected: the same after Holm's correction.
        family: the number of comparisons that it is corrected for.
    """
    significant = corrected < SIGNIFICANT
    text = f"{format_difference(value, 1)}{'*' if significant else ''}, {_show_p_value(corrected)}"
    holds = significant and value.n > 1 and value.low > 0
    low = value.low
    if not significant:
        reached, least = norm.isf(p_value / 2), norm.isf(SIGNIFICANT / max(family, 1) / 2)
        tested = value.mean * (1 - least / reached) if value.mean > 0 and reached > 0 else -math.inf
        low = min(low, 0.0, tested)
    rooms = (low, max(value.high, low))
    return Check(part.schedule, what, text, "`**`, above 0", holds, value.mean, rooms, value.n, strict=True)


def _show_p_value(p_value: float) -> str:
    return "not tested" if math.isnan(p_value) else "p < .001" if p_value < 0.001 else f"p = {p_value:.3f}"


def sign_test(differences: Sequence[float], one_run: bool = False) -> tuple[Estimate, float]:
    """A mean difference over instances with its interval, and its p-value before any correction.

    Args:
        differences: one an instance.
        one_run: whether all instances are one and the same run.
    """
    found = estimate(differences, one_run=one_run)
    return found, sign_flip(differences) if found.n > 1 else math.nan


def values_of(what: str, *runs: Runs, measure: Measurement) -> list[list[float]]:
    """One number an instance for each of the runs, for the instances that all of them have.

    Raises:
        NotPlayedError: if they have none in common.
    """
    found = paired(*runs, measure=measure)
    if not found[0]:
        raise NotPlayedError(f"{what}: no instance was played by all")
    return found


def gains(part: ScheduleRuns, player: Player, baseline: Player, phase: str) -> list[float]:
    """The differences of two players in a phase, one an instance."""
    both = [run_of(part, one).phase(phase) for one in (player, baseline)]
    ours, theirs = values_of(title(player, phase), *both, measure=part.measure.of)
    return [a - b for a, b in zip(ours, theirs, strict=True)]


def at_least(part: ScheduleRuns, what: str, value: Estimate, bound: float) -> Check:
    """A figure is at least so high."""
    return _bounded(
        part, what, value, f"at least {bound:g}", value.mean - bound, (value.low - bound, value.high - bound)
    )


def at_most(part: ScheduleRuns, what: str, value: Estimate, bound: float) -> Check:
    """A figure is at most so high."""
    return _bounded(
        part, what, value, f"at most {bound:g}", bound - value.mean, (bound - value.high, bound - value.low)
    )


def _bounded(
    part: ScheduleRuns, what: str, value: Estimate, needed: str, room: float, rooms: tuple[float, float]
) -> Check:
    if not value.n:
        raise NotPlayedError(f"{what} on `{part.schedule}`: nothing to average")
    return Check(part.schedule, what, format_estimate(value, 2), needed, room >= -SLACK, room, rooms, value.n)


def above(part: ScheduleRuns, what: str, value: Estimate, bound: float = 0.0) -> Check:
    """A difference is above so much; equal is not."""
    room = value.mean - bound
    holds = room > SLACK
    found, rooms = format_difference(value, 1), (value.low - bound, value.high - bound)
    return Check(part.schedule, what, found, f"above {bound:g}", holds, room, rooms, value.n, strict=True)


def share_of(part: ScheduleRuns, phase: str, player: Player, reference: Player, least: float) -> Check:
    """The mean over instances is at least so large a share of a reference's; both over the same instances.

    Args:
        part: where.
        phase: when.
        player: who.
        reference: of whose mean.
        least: the share.
    """
    what = f"{title(player)} / {reference.verifier}, {phase}"
    both = [run_of(part, one).phase(phase) for one in (player, reference)]
    ours, theirs = values_of(what, *both, measure=part.measure.of)
    mean, whole = sum(ours) / len(ours), sum(theirs) / len(theirs)
    ratio = recovery_ratio(ours, [0.0] * len(ours), theirs)
    n = 1 if all(run.is_one_run for run in both) else len(ours)
    text = "no ratio" if ratio is None else "{:.1f} % [{:.1f}, {:.1f}]".format(*(100 * one for one in ratio[:3]))
    text += f" ({mean:.1f} of {whole:.1f})"
    room = mean - least * whole
    rooms = (-math.inf, math.inf)
    if ratio is not None:
        rooms = ((ratio.low - least) * whole, (ratio.high - least) * whole)
    return Check(part.schedule, what, text, f"at least {100 * least:g} %", room >= -SLACK, room, rooms, n)


def interval_of(values: ArrayLike, figure: Callable[[Numbers], Numbers], seed: int = 0) -> Estimate:
    """Any figure over instances with a 95 % percentile interval, bootstrapped over the instances.

    Args:
        values: what each instance has, shape (n,) or (n, m).
        figure: instances drawn anew, shape (r, n) or (r, n, m), to one figure a resample, shape (r,); it may be
            infinite.
        seed: of the resamples.

    Example:
        >>> interval_of([1.0, 2.0, 9.0], lambda drawn: np.max(drawn, axis=1))
        Estimate(mean=9.0, low=1.0, high=9.0, n=3)
    """
    array = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(array), size=(RESAMPLES, len(array)))
    edges = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    figures = figure(array[drawn])
    low, high = np.quantile(figures[~np.isnan(figures)], edges, method="inverted_cdf")
    return Estimate(float(figure(array[None])[0]), float(low), float(high), len(array))
