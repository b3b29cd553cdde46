"""What the board shows: the agents of all submissions, ranked for each track, world and kind of drift.

* `gather_board` - the boards of a folder of results
* `TrackBoard`, `BoardView`, `BoardRow` - a track; its standings in one world under one kind of drift; one agent

A folder of results has a folder for each track, with `track.json` and one file a submission. Standings are those of
`drift_agents.analysis.ranking`: ranks at equal interactions, intervals over schedules and instances, one row for
agents that played the same episodes. `drift_agents.submission.board_pages` writes the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from drift_agents.analysis.drift_map import DriftPlace, keep_by_schedule, place_schedules
from drift_agents.analysis.leaderboard import name_of
from drift_agents.analysis.ranking import AXES, WORLDS, Key, Standing, Standings, make_standings
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.submission.results import ResultFile, ResultPlayer, is_current, read_results
from drift_agents.submission.track import Track, read_track

ALL = "all"
KINDS = (ALL, "explicit", "implicit")
"""The kinds of drift that can be chosen, by the schedules' label."""

PICTURES = ("*.svg", "*.png")
"""Pictures of a track's folder are shown below its table, those of the folder of all results below every table."""

MEASURED = range(3)
"""The instances on which severity and visibility are measured: development ones, so that a hidden track's seeds are not
needed."""


@dataclass(frozen=True)
class BoardRow:
    """One agent of a view.

    Args:
        standing: its figures.
        name: what it is called; agents that played the same episodes share a row.
        entries: the submissions that it stands in.
        model: whether language models were asked.
        keys: the agents that share the row, `standing.key` first.
    """

    standing: Standing
    name: str
    entries: tuple[str, ...]
    model: bool
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class BoardView:
    """The standings of one track, one world and one kind of drift.

    Args:
        world: one of `drift_agents.analysis.ranking.WORLDS`, or `all`.
        kind: one of `KINDS`.
        standings: the ranked agents; `None` if nothing counts.
        rows: one an agent, references last.
        incomplete: agents that lack instances of the view.
        reason: why there are no standings.
    """

    world: str
    kind: str
    standings: Standings | None
    rows: tuple[BoardRow, ...]
    incomplete: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class TrackBoard:
    """All views of one track.

    Args:
        track: the track.
        results: its results.
        views: by world and kind, the whole track first.
        legacy: standings of what is not shipped any more, by schedule and hash.
        pictures: pictures of the track's folder, and of the folder of all results.
        abouts: what `run.json` says of each schedule.
        places: severity and visibility of the schedules that are shipped and have an oracle.
        kept: what the agents of the first view keep on each of them, in percent.
    """

    track: Track
    results: tuple[ResultFile, ...]
    views: tuple[BoardView, ...]
    legacy: tuple[tuple[str, str, BoardView], ...]
    pictures: tuple[Path, ...]
    abouts: Mapping[str, Mapping[str, Any]]
    places: Mapping[str, DriftPlace]
    kept: Mapping[Key, Mapping[str, float]]


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
    results = read_results(path.parent, track.digest())
    if not results:
        raise SubmissionError(f"{path.parent}: holds no result")
    abouts = {name: about for result in results for name, about in result.schedules.items()}
    current = {name for name, about in abouts.items() if is_current(name, about)}
    players = _Players(results)
    worlds = [name for name, ids in WORLDS.items() if any(abouts[schedule]["env"] in ids for schedule in current)]
    views = []
    for world, kind in product((ALL, *worlds) if len(worlds) > 1 else (ALL,), KINDS):
        within = [
            name
            for name in track.schedules
            if name in current
            and (world == ALL or abouts[name]["env"] in WORLDS[world])
            and (kind == ALL or abouts[name]["visibility"] == kind)
        ]
        if within or (world, kind) == (ALL, ALL):
            views.append(_make_view(track, abouts, players, world, kind, within))
    legacy = [
        (name, abouts[name]["hash"], _make_view(track, abouts, players, ALL, ALL, [name]))
        for name in track.schedules
        if name in abouts and name not in current
    ]
    places = (path.parent, path.parent.parent)
    pictures = tuple(found for place in places for pattern in PICTURES for found in sorted(place.glob(pattern)))
    drawn = place_schedules({name: abouts[name] for name in track.schedules if name in current}, MEASURED)
    shown = [
        row for view_row in views[0].rows for row in players.rows[view_row.standing.key] if row["schedule"] in drawn
    ]
    return TrackBoard(
        track, tuple(results), tuple(views), tuple(legacy), pictures, abouts, drawn, keep_by_schedule(shown)
    )


class _Players:
    """The players of all results under one key each; equal rows of several results are one player."""

    def __init__(self, results: Iterable[ResultFile]) -> None:
        self.about: dict[Key, ResultPlayer] = {}
        self.rows: dict[Key, list[dict[str, Any]]] = {}
        self.entries: dict[Key, list[str]] = {}
        self.models: set[Key] = set()
        for result in results:
            own: dict[Key, list[dict[str, Any]]] = {}
            for row in result.rows():
                own.setdefault(tuple(str(row[axis]) for axis in AXES), []).append(row)
            known = {tuple(str(getattr(player, axis)) for axis in AXES): player for player in result.players}
            for key, rows in own.items():
                self._add(result.name, key, known[key], rows)

    def _add(self, entry: str, key: Key, player: ResultPlayer, rows: list[dict[str, Any]]) -> None:
        if key in self.rows and self.rows[key] != rows:
            # Other episodes under the same labels, as of a part of the same name in another package.
            key = (f"{key[0]} of {entry}", *key[1:])
            rows = [{**row, "memory": key[0]} for row in rows]
        self.entries.setdefault(key, []).append(entry)
        self.about.setdefault(key, player)
        self.rows.setdefault(key, rows)
        if any(row["model_calls"] for row in rows):
            self.models.add(key)

    def complete(self, needed: set[tuple[str, int]], episodes: Mapping[str, int]) -> tuple[list[Key], list[Key]]:
        """The players that have all episodes of these instances, and the agents that have not."""
        whole, partial = [], []
        for key, rows in self.rows.items():
            played: dict[tuple[str, int], int] = {}
            for row in rows:
                at = (row["schedule"], row["seed"])
                played[at] = played.get(at, 0) + 1
            if all(played.get(at) == episodes[at[0]] for at in needed):
                whole.append(key)
            elif self.about[key].reference is None:
                partial.append(key)
        return whole, partial


def _make_view(
    track: Track,
    abouts: Mapping[str, Mapping[str, Any]],
    players: _Players,
    world: str,
    kind: str,
    within: Sequence[str],
) -> BoardView:
    needed = {(name, instance) for name in within if name in abouts for instance in range(track.instances)}
    keys, partial = players.complete(needed, {name: about["episodes"] for name, about in abouts.items()})
    names = tuple(sorted(_name(key, players) for key in partial))
    manifest = {
        "name": track.name,
        "experiment": {"name": track.name, "seeds": list(range(track.instances))},
        "schedules": {name: abouts[name] for name in within if name in abouts},
        "players": [
            {**players.about[key].model_dump(), **dict(zip(AXES, key, strict=True)), "schedule": name}
            for key in keys
            for name in within
        ],
    }
    chosen = set(within)
    rows = [row for key in keys for row in players.rows[key] if row["schedule"] in chosen]
    try:
        standings = make_standings(manifest, rows)
    except ExperimentError as error:
        return BoardView(world, kind, None, (), names, str(error))
    hidden = {other for others in standings.same.values() for other in others}
    found = []
    for standing in (*standings.ranked, *standings.references):
        if standing.key in hidden:
            continue
        group = (standing.key, *standings.same.get(standing.key, ()))
        entries = tuple(dict.fromkeys(entry for key in group for entry in players.entries[key]))
        name = " = ".join(_name(key, players) for key in group)
        found.append(BoardRow(standing, name, entries, any(key in players.models for key in group), group))
    return BoardView(world, kind, standings, tuple(found), names)


def _name(key: Key, players: _Players) -> str:
    """The display name of an agent, with its policy where there are several."""
    policies = {other[-1] for other in players.rows if players.about[other].reference is None}
    several = len(policies) > 1 and players.about[key].reference is None
    return name_of(key) + (f", {key[-1]}" if several else "")
