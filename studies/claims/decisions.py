"""The results of the claims.

* `join_parts` - several runs of one experiment as one
* `judge` - the checks of every claim that a run tests
* `decide` - the verdict of a claim over its experiments
* `Result` - what one run says about one claim
* `ClaimDecision` - a claim with all that was found
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.runs import Player, Row
from drift_agents.errors import ExperimentError

from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED, Check, ClaimRun, NotPlayedError
from studies.claims.registry import CLAIMS, Claim

NOT_PLAYED = "not played"


Played = tuple[Mapping[str, Any], Sequence[Row]]
"""The manifest and the rows of a run."""


class Result(NamedTuple):
    """What one run says about one claim.

    Args:
        experiment: which one it is.
        checks: those that could be made.
        missing: what the run lacks; empty if nothing.
        instances: schedule -> how many of the file's instances were played, and how many the file has.
    """

    experiment: str
    checks: tuple[Check, ...]
    missing: str
    instances: Mapping[str, tuple[int, int]]


class ClaimDecision(NamedTuple):
    """A claim with all that was found.

    Args:
        claim: which one.
        word: `held`, `refuted`, `inconclusive` or `not played`.
        results: those of its experiments that were played.
        missing: what is not there yet; empty if nothing.
    """

    claim: Claim
    word: str
    results: tuple[Result, ...]
    missing: tuple[str, ...]

    @property
    def checks(self) -> list[Check]:
        """All checks, of all experiments."""
        return [check for result in self.results for check in result.checks]

    @property
    def failed(self) -> list[Check]:
        """Those that are not held: the refuted ones first, of these the furthest off."""
        failed = [check for check in self.checks if check.word != HELD]
        return sorted(failed, key=lambda check: (check.word != REFUTED, check.room))

    @property
    def nearest(self) -> Check | None:
        """The deciding check: the failed one furthest beyond its bound, or else the one nearest to its bound."""
        return next(iter(self.failed), min(self.checks, key=lambda check: check.room, default=None))


def join_parts(runs: Sequence[Played]) -> Played:
    """The manifests and rows of several runs of one experiment as those of one.

    Args:
        runs: of parts that have no instance of an agent in common.

    Raises:
        ExperimentError: if versions or a schedule's content differ, or an instance was played twice by an agent.
    """
    (first, _), *_ = runs
    name = first["name"]
    schedules: dict[str, Any] = {}
    seen: set[tuple[str, Player, int]] = set()
    for manifest, rows in runs:
        if manifest["versions"] != first["versions"]:
            raise ExperimentError(
                f"{name}: parts should be played with the same versions. "
                f"Received {first['versions']} and {manifest['versions']}"
            )
        for schedule, about in manifest["schedules"].items():
            known = schedules.setdefault(schedule, about)
            if known.get("hash") != about.get("hash"):
                raise ExperimentError(f"{name}: {schedule!r} is another schedule in another part")
        cells = {(row["schedule"], Player.of(row), row["seed"]) for row in rows}
        if twice := sorted(seen & cells):
            schedule, player, seed = twice[0]
            raise ExperimentError(f"{name}: {'/'.join(player[:3])} on {schedule!r} with seed {seed} was given already")
        seen |= cells
    players = [player for manifest, _ in runs for player in manifest["players"]]
    return {**first, "schedules": schedules, "players": players}, [row for _, rows in runs for row in rows]


def judge(played: ClaimRun) -> dict[int, Result]:
    """The checks of every claim that a run tests, by the claim's number.

    Args:
        played: the run.
    """
    claims = [claim for claim in CLAIMS.values() if played.name in claim.experiments]
    if not claims:
        return {}
    instances, foreign = _instances(played)
    return {claim.number: _judge(claim, played, instances, foreign) for claim in claims}


def _judge(claim: Claim, played: ClaimRun, instances: Mapping[str, tuple[int, int]], foreign: str) -> Result:
    checks: list[Check] = []
    missing = foreign
    if not foreign:
        try:
            checks.extend(claim.checks(played))
        except NotPlayedError as error:
            missing = str(error)
    counted = {check.schedule: instances[check.schedule] for check in checks}
    return Result(played.name, tuple(checks), missing, counted)


def _instances(played: ClaimRun) -> tuple[dict[str, tuple[int, int]], str]:
    """How many of the file's instances all agents played, by schedule, and a message if others were played."""
    file = played.file
    found, foreign = {}, ""
    for name, part in played.parts.items():
        known = played.manifest["schedules"].get(name, {})
        own = set(file.seeds_of(known.get("sweep", {}).get("of", name)))
        seeds = [set(run.seeds) for run in part.players.runs.values()]
        if set.union(*seeds) - own:
            others = ", ".join(map(str, sorted(set.union(*seeds) - own)[:3]))
            foreign = f"`{name}` was played on instances that are not those of the file ({others} ...)"
        found[name] = (len(set.intersection(*seeds)), len(own))
    return found, foreign


def decide(claim: Claim, results: Iterable[Result]) -> ClaimDecision:
    """The verdict: refuted by any check that is; held if all are and nothing is missing; else inconclusive.

    Args:
        claim: which one.
        results: of its experiments, at most one each.
    """
    by_name = {result.experiment: result for result in results}
    own = tuple(by_name[name] for name in claim.experiments if name in by_name)
    missing = [f"`{name}` was not played" for name in claim.experiments if name not in by_name]
    missing += [f"`{result.experiment}`: {result.missing}" for result in own if result.missing]
    missing += [
        f"`{result.experiment}`: nothing to check" for result in own if not result.missing and not result.checks
    ]
    words = {check.word for result in own for check in result.checks}
    word = REFUTED if REFUTED in words else NOT_PLAYED if missing else INCONCLUSIVE if INCONCLUSIVE in words else HELD
    return ClaimDecision(claim, word, own, tuple(missing))
