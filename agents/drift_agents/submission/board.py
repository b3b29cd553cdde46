"""The board of submissions: the agents of all results, ranked track by track, as a page in Markdown.

* `write_board` - reads a folder of results and writes the page
* `gather_board` - the boards of a folder of results
* `TrackBoard`, `BoardRow` - a track with its standings; one agent
* `to_page` - the page

A folder of results has a folder for each track, with `track.json` and one file a submission. Standings are those of
`drift_agents.analysis.ranking`: ranks by the area of success over budgets, intervals over schedules and instances, one
row for agents that played the same episodes. A submission has a rank if its instances were secret when it was played
and a sample of it was played again; the others stand below the line, and change no rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from drift_agents.analysis.evidence import Key
from drift_agents.analysis.leaderboard import join_names, name_of
from drift_agents.analysis.price import CLAIRVOYANT, UNLIMITED
from drift_agents.analysis.ranking import Standing, Standings, make_standings
from drift_agents.analysis.table import MISSING, Table, format_estimate, format_plain, to_markdown
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.experiment.config import Reference
from drift_agents.experiment.folder import write_text
from drift_agents.registry import POLICIES
from drift_agents.submission.results import AXES, ResultFile, read_results
from drift_agents.submission.track import Track, read_track

COLUMNS = ("agent", "ranks", "submissions", "area", "x1", "x1.5", "unlimited", "probes, %")
"""The columns of the page."""

LEGEND = (
    "Success over budgets of interactions, multiples of the clairvoyant's: `area` is its mean from x1 to x3.",
    "Ranks are those that 95 % of the resamples give. A submission that was not replayed, or whose instances were "
    "known when it was played, has none and stands below the line.",
)


@dataclass(frozen=True)
class BoardRow:
    """One agent of a track.

    Args:
        standing: its figures.
        name: what it is called; agents that played the same episodes share a row.
        entries: the submissions that it stands in.
        status: why it has no rank; empty if it has one.
    """

    standing: Standing
    name: str
    entries: tuple[str, ...]
    status: str


@dataclass(frozen=True)
class TrackBoard:
    """The standings of one track.

    Args:
        track: the track.
        results: its submissions.
        standings: the ranked agents; `None` if nothing counts.
        rows: one an agent: the ranked ones, those without rank, the references.
        reason: why there are no standings.
    """

    track: Track
    results: tuple[ResultFile, ...]
    standings: Standings | None
    rows: tuple[BoardRow, ...] = ()
    reason: str = ""


def write_board(folder: Path, out: Path) -> list[TrackBoard]:
    """Write the page of a folder of results; equal results give equal bytes.

    Args:
        folder: the results.
        out: the page.

    Returns:
        What the page shows.

    Raises:
        SubmissionError: if the folder holds no track, or a file is damaged.
        ExperimentError: if the page cannot be written.
    """
    boards = gather_board(folder)
    write_text(out, to_page(boards), make_folder=True)
    return boards


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
    players: dict[Key, dict[str, Any]] = {}
    owners: dict[Key, ResultFile] = {}
    rows: dict[Key, list[dict[str, Any]]] = {}
    for result in results:
        for key, player, own in _players(result):
            if key not in players:
                players[key], owners[key], rows[key] = player, result, own
    schedules = results[0].schedules
    manifest = {
        "name": track.name,
        "experiment": {"name": track.name, "seeds": list(range(track.instances))},
        "schedules": schedules,
        "players": [{**player, "schedule": name} for player in players.values() for name in schedules],
    }
    try:
        standings = make_standings(manifest, [row for own in rows.values() for row in own])
    except ExperimentError as error:
        return TrackBoard(track, tuple(results), None, reason=str(error))
    same = {other for others in standings.same.values() for other in others}
    found = []
    for one in (*standings.ranked, *standings.references):
        if one.key not in same:
            group = (one.key, *standings.same.get(one.key, ()))
            entries = tuple(dict.fromkeys(owners[key].name for key in group))
            status = "" if players[one.key]["reference"] in get_args(Reference) else owners[one.key].status
            found.append(BoardRow(one, join_names(list(dict.fromkeys(map(_name, group)))), entries, status))
    found.sort(key=lambda row: players[row.standing.key]["reference"] in get_args(Reference))
    return TrackBoard(track, tuple(results), standings, tuple(found))


def _name(key: Key) -> str:
    """The display name of an agent; that of a program is its own."""
    policy, of, _ = key[-1].rpartition(" of ")
    return policy if of and policy.partition("(")[0] not in POLICIES.names() else name_of(key)


def _players(result: ResultFile) -> Iterator[tuple[Key, dict[str, Any], list[dict[str, Any]]]]:
    """The players of a result, with keys that no other result has, but for the clairvoyant policy."""
    own: dict[Key, list[dict[str, Any]]] = {player.key: [] for player in result.players}
    for row in result.rows():
        own[tuple(row[axis] for axis in AXES)].append(row)
    for player in result.players:
        policy = player.policy if player.policy == CLAIRVOYANT else f"{player.policy} of {result.name}"
        about = player.model_copy(update={"policy": policy})
        # What has no rank stands where references do, so that it changes none.
        plain = {**about.model_dump(), "reference": player.reference or result.status or None}
        yield about.key, plain, [{**row, "policy": policy} for row in own[player.key]]


def to_page(boards: Sequence[TrackBoard]) -> str:
    """The page in Markdown.

    Args:
        boards: the tracks.
    """
    lines = ["# Submissions", "", "Made by `drift-agents board page`; do not edit. " + " ".join(LEGEND), ""]
    for board in boards:
        lines += _section(board)
    return "\n".join(lines)


def _section(board: TrackBoard) -> Iterator[str]:
    track = board.track
    salt = "from a salt, revealed" if track.salt else "hidden until revealed" if track.is_hidden else "open"
    yield from (f"## {track.name}", "", f"{track.instances} instances of each schedule, {salt}.", "")
    if board.standings is None:
        yield from (board.reason, "")
        return
    table = Table(f"{board.standings.instances} instances of {', '.join(board.standings.schedules)}", COLUMNS)
    for row in board.rows:
        one = row.standing
        low, high = one.ranks
        table.add(
            row.name,
            row.status or (MISSING if one.reference else str(low) if low == high else f"{low}-{high}"),
            ", ".join(row.entries),
            format_estimate(one.score, 1),
            *(format_plain(one.success[measure], 1) for measure in ("x1", "x1.5", UNLIMITED)),
            format_plain(one.probes, 1),
        )
    yield from (to_markdown(table), "")
    for result in board.results:
        if result.replayed is not None:
            held = [name for name, holds in result.replayed.isolation.items() if holds]
            yield (
                f"- `{result.name}`: {result.replayed.cells} of {result.replayed.of} cells played again; "
                f"{', '.join(held) or 'no isolation'}"
            )
    yield ""
