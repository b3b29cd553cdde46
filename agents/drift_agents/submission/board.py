"""What the board shows: the agents of all submissions, ranked for each track, environment and kind of drift.

* `gather_board` - the boards of a folder of results
* `TrackBoard`, `BoardView`, `BoardRow` - a track; its standings in one environment under one kind of drift; one agent

A folder of results has a folder for each track, with `track.json` and one file a submission. Standings are those of
`drift_agents.analysis.ranking`: ranks at equal interactions, intervals over schedules and instances, one row for
agents that played the same episodes. `drift_agents.submission.page` shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from drift_agents.analysis.leaderboard import name_of
from drift_agents.analysis.ranking import ENVIRONMENTS, Key, Standing, Standings, make_standings
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.submission.results import AXES, ResultFile, ResultPlayer, read_results
from drift_agents.submission.track import Track, read_track

ALL = "all"
KINDS = (ALL, "explicit", "implicit")
"""The kinds of drift that can be chosen, by the schedules' label."""


@dataclass(frozen=True)
class BoardRow:
    """One agent of a view.

    Args:
        standing: its figures.
        name: what it is called; agents that played the same episodes share a row.
        entries: the submissions that it stands in.
        model: whether language models were asked.
    """

    standing: Standing
    name: str
    entries: tuple[str, ...]
    model: bool


@dataclass(frozen=True)
class BoardView:
    """The standings of one track, one environment and one kind of drift.

    Args:
        environment: one of `drift_agents.analysis.ranking.ENVIRONMENTS`, or `all`.
        kind: one of `KINDS`.
        standings: the ranked agents; `None` if nothing counts.
        rows: one an agent, references last.
        reason: why there are no standings.
    """

    environment: str
    kind: str
    standings: Standings | None
    rows: tuple[BoardRow, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class TrackBoard:
    """All views of one track, the whole track first."""

    track: Track
    results: tuple[ResultFile, ...]
    views: tuple[BoardView, ...]


def gather_board(folder: Path) -> list[TrackBoard]:
    """Read a folder of results: the tracks in the order of their folders' names.

    Raises:
        SubmissionError: if the folder holds no track, or a file is damaged.
    """
    paths = sorted(folder.glob("*/track.json"))
    if not paths:
        raise SubmissionError(f"{folder}: should hold a folder with track.json for each track")
    return [_gather(path) for path in paths]


def _gather(path: Path) -> TrackBoard:
    track = read_track(path)
    results = read_results(path.parent, track)
    if not results:
        raise SubmissionError(f"{path.parent}: holds no result")
    players = _Players(results)
    abouts = results[0].schedules
    environments = [name for name, ids in ENVIRONMENTS.items() if any(one["env"] in ids for one in abouts.values())]
    views = []
    for environment, kind in product((ALL, *environments) if len(environments) > 1 else (ALL,), KINDS):
        within = {
            name: about
            for name, about in abouts.items()
            if environment in (ALL, *(one for one, ids in ENVIRONMENTS.items() if about["env"] in ids))
            and kind in (ALL, about["visibility"])
        }
        if within:
            views.append(players.rank(track, environment, kind, within))
    return TrackBoard(track, tuple(results), tuple(views))


class _Players:
    """The players of all results under one key each; equal rows of several results are one player."""

    def __init__(self, results: Sequence[ResultFile]) -> None:
        self._about: dict[Key, ResultPlayer] = {}
        self._rows: dict[Key, list[dict[str, Any]]] = {}
        self._entries: dict[Key, list[str]] = {}
        for result in results:
            own: dict[Key, list[dict[str, Any]]] = {player.key: [] for player in result.players}
            for row in result.rows():
                own[tuple(row[axis] for axis in AXES)].append(row)
            for player in result.players:
                self._add(result.name, player, own[player.key])

    def _add(self, entry: str, player: ResultPlayer, rows: list[dict[str, Any]]) -> None:
        key = player.key
        if key in self._rows and self._rows[key] != rows:
            # Other episodes under the same labels, as of a part of the same name in another package.
            player = player.model_copy(update={"memory": f"{player.memory} of {entry}"})
            key, rows = player.key, [{**row, "memory": player.memory} for row in rows]
        self._entries.setdefault(key, []).append(entry)
        self._about.setdefault(key, player)
        self._rows.setdefault(key, rows)

    def rank(self, track: Track, environment: str, kind: str, within: dict[str, Any]) -> BoardView:
        """The standings on some schedules."""
        manifest = {
            "name": track.name,
            "experiment": {"name": track.name, "seeds": list(range(track.instances))},
            "schedules": within,
            "players": [{**one.model_dump(), "schedule": name} for one in self._about.values() for name in within],
        }
        try:
            rows = [row for own in self._rows.values() for row in own if row["schedule"] in within]
            standings = make_standings(manifest, rows)
        except ExperimentError as error:
            return BoardView(environment, kind, None, reason=str(error))
        same = {other for others in standings.same.values() for other in others}
        found = (one for one in (*standings.ranked, *standings.references) if one.key not in same)
        rows_shown = tuple(self._row(one, (one.key, *standings.same.get(one.key, ()))) for one in found)
        return BoardView(environment, kind, standings, rows_shown)

    def _row(self, standing: Standing, group: tuple[Key, ...]) -> BoardRow:
        return BoardRow(
            standing,
            " = ".join(map(self._name, group)),
            tuple(dict.fromkeys(entry for key in group for entry in self._entries[key])),
            any(row["model_calls"] for key in group for row in self._rows[key]),
        )

    def _name(self, key: Key) -> str:
        """The display name of an agent, with its policy where there are several."""
        policies = {other[-1] for other, player in self._about.items() if player.reference is None}
        several = len(policies) > 1 and self._about[key].reference is None
        return name_of(key) + (f", {key[-1]}" if several else "")
