"""The board: the results of a folder as one Markdown page and one HTML page.

* `write_board` - reads `results/` and writes both pages
* `gather_board` - what they show
* `BoardView` - the standings of one track, one world and one kind of drift
* `to_markdown_page`, `to_html_page` - the pages

A folder of results has a folder for each track, with `track.json` and one file a submission. Standings are those of
`drift_agents.analysis.ranking`: ranks at equal interactions, intervals over schedules and instances, one row for
agents that played the same episodes. The HTML page is one file without requests, whose Content-Security-Policy allows
its own script and style by their hashes.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.aggregates import RESAMPLES
from drift_agents.analysis.inspect.page import hash_source, script_json
from drift_agents.analysis.leaderboard import LEGEND, name_of
from drift_agents.analysis.ranking import AXES, SHORT, WORLDS, Key, Standing, Standings, make_standings
from drift_agents.analysis.runs import FAILURE_SHARE
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate, to_markdown
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.experiment.folder import write_text
from drift_agents.submission.results import ResultFile, ResultPlayer, is_current, read_results
from drift_agents.submission.track import Track, read_track
from drift_envs.metrics import Estimate

ALL = "all"
KINDS = (ALL, "explicit", "implicit")
"""The kinds of drift that can be chosen, by the schedules' label."""

PICTURES = ("*.svg", "*.png")
"""Pictures of a track's folder are shown below its table, as a map of severity and visibility; those of the folder of
all results are shown below every table."""

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


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
    """

    track: Track
    results: tuple[ResultFile, ...]
    views: tuple[BoardView, ...]
    legacy: tuple[tuple[str, str, BoardView], ...]
    pictures: tuple[Path, ...]


def write_board(folder: Path, markdown: Path, html: Path | None = None) -> list[TrackBoard]:
    """Write the pages of a folder of results; equal results give equal bytes.

    Args:
        folder: the results.
        markdown: the Markdown page.
        html: the HTML page; not written if not given.

    Returns:
        What the pages show.

    Raises:
        SubmissionError: if the folder holds no track, or a file is damaged.
        ExperimentError: if a page cannot be written.
    """
    boards = gather_board(folder)
    write_text(markdown, to_markdown_page(boards, None if html is None else html.name), make_folder=True)
    if html is not None:
        write_text(html, to_html_page(boards), make_folder=True)
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
    return TrackBoard(track, tuple(results), tuple(views), tuple(legacy), pictures)


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
        found.append(BoardRow(standing, name, entries, any(key in players.models for key in group)))
    return BoardView(world, kind, standings, tuple(found), names)


def _name(key: Key, players: _Players) -> str:
    """The display name of an agent, with its policy where there are several."""
    policies = {other[-1] for other in players.rows if players.about[other].reference is None}
    several = len(policies) > 1 and players.about[key].reference is None
    return name_of(key) + (f", {key[-1]}" if several else "")


def _rank(row: BoardRow, rows: Sequence[BoardRow]) -> str:
    if row.standing.reference:
        return MISSING
    return str(1 + sum(other.standing.ranked_by > row.standing.ranked_by for other in _ranked(rows)))


def _ranked(rows: Sequence[BoardRow]) -> list[BoardRow]:
    return [row for row in rows if not row.standing.reference]


def _span(row: BoardRow) -> str:
    low, high = row.standing.ranks
    return MISSING if row.standing.reference else str(low) if low == high else f"{low}-{high}"


def _number(value: float, digits: int = 0) -> str:
    return MISSING if math.isnan(value) else f"{value + 0.0:,.{digits}f}"


def _main_table(view: BoardView, title: str) -> Table:
    columns = ("agent", "rank", "ranks", "at equal interactions", "kept", "gain", "before", "lost", "probes, %")
    table = Table(title, (*columns, "steps", "tokens", "supervision"))
    for row in view.rows:
        one = row.standing
        table.add(
            row.name,
            _rank(row, view.rows),
            _span(row),
            MISSING if one.at_equal is None else format_estimate(one.at_equal, 1),
            format_estimate(one.kept, 1),
            MISSING if one.gain is None else format_difference(one.gain, 1),
            _number(one.before),
            _number(one.lost),
            _number(one.probing, 1),
            _number(one.interactions),
            _number(one.tokens),
            one.supervision,
        )
    return table.used()


def _parts_table(view: BoardView) -> Table:
    parts = list(view.rows[0].standing.groups)
    table = Table("Kept, by kind of drift and by world", ("agent", *parts))
    for row in view.rows:
        table.add(row.name, *(format_estimate(row.standing.groups[part]) for part in parts))
    return table


def _played(board: TrackBoard) -> str:
    """What was played, in one sentence."""
    track = board.track
    where = "hidden until revealed" if track.is_hidden else f"seeds from {track.first_seed}"
    if track.is_hidden and track.salt is not None:
        where = "revealed"
    return (
        f"{len(track.schedules)} schedules, {track.instances} instances each ({where}), {len(board.results)} "
        f"submission{'s' if len(board.results) > 1 else ''}. Track {track.digest()[:16]}."
    )


def _remarks(view: BoardView) -> list[str]:
    """What of a view does not count, and why."""
    lines = []
    if view.standings is not None:
        for names, reason in (
            (view.standings.short, f"they have {SHORT} episodes or fewer"),
            (view.standings.saturated, "more than half of the agents keep everything there"),
            (tuple(view.standings.left_out), "an agent did not play all instances up to a drift"),
        ):
            if names:
                lines.append(f"Not counted, since {reason}: {', '.join(names)}.")
    if view.incomplete:
        lines.append(f"Not ranked, since they lack instances: {', '.join(view.incomplete)}.")
    return lines


def _legend() -> list[str]:
    return [line.format(resamples=RESAMPLES, failed=FAILURE_SHARE) for line in LEGEND]


HIDDEN_NOTE = (
    "Instances of a hidden track protect against tuning to them and against choosing seeds. They protect neither "
    "against an organiser who shows the salt or, without a beacon, draws salts until one suits, nor against agents "
    "that are made for the schedules themselves, which are public."
)


def to_markdown_page(boards: Sequence[TrackBoard], html: str | None = None) -> str:
    """The board as Markdown.

    Args:
        boards: the tracks.
        html: the address of the HTML page, if there is one.
    """
    lines = [
        "# Board of submissions",
        "",
        "Agents of all submissions, ranked by track. Made by `drift-agents board page` from the files in `results/`; "
        "do not edit. [How to join](joining.md)."
        + ("" if html is None else f" The [page with filters]({html}) shows the same, by world, kind and cost."),
        "",
    ]
    for board in boards:
        view = board.views[0]
        lines += [f"## {board.track.name}", "", *filter(None, [board.track.about]), ""]
        lines += [_played(board), *([HIDDEN_NOTE] if board.track.is_hidden else []), ""]
        lines += [_policies(view), ""]
        if view.rows:
            lines += [to_markdown(_main_table(view, "All drifts")), "", to_markdown(_parts_table(view)), ""]
        else:
            lines += [f"No agent is ranked: {view.reason}.", ""]
        lines += [f"- {line}" for line in _remarks(view)]
        lines += ["", to_markdown(_entries_table(board)), ""]
        for name, content_hash, old in board.legacy:
            lines += [f"### Legacy: {name}, {content_hash}", ""]
            lines += ["Played on content that is not shipped any more; comparable with nothing above.", ""]
            lines += [
                to_markdown(_main_table(old, "As it was")) if old.rows else f"No agent is ranked: {old.reason}.",
                "",
            ]
    lines += ["## How to read this", "", *(f"- {line}" for line in _legend()), ""]
    text = "\n".join(lines).replace("<", "&lt;")  # names and sentences of participants stay texts
    return re.sub(r"\n{3,}", "\n\n", text)


def _policies(view: BoardView) -> str:
    """Whether language models played."""
    models = [row.name for row in view.rows if row.model]
    if not models:
        return "**Mechanism test by rules, no language model.**"
    return f"Language models played in: {', '.join(models)}; all other agents follow rules."


def _entries_table(board: TrackBoard) -> Table:
    table = Table("Submissions", ("submission", "packages", "drift-envs", "cells", "episodes", "replayed", "digest"))
    for result in board.results:
        packages = ", ".join(f"{package.name} {package.version}" for package in result.packages)
        table.add(
            result.name,
            packages or MISSING,
            result.versions.get("drift-envs", MISSING),
            f"{result.counts.cells:,}",
            f"{result.counts.episodes:,}",
            MISSING if result.replayed is None else f"{result.replayed.cells} of {result.replayed.of} cells",
            result.submission[:16],
        )
    return table


def to_html_page(boards: Sequence[TrackBoard]) -> str:
    """The board as one HTML file.

    Args:
        boards: the tracks.
    """
    style = f"{_report_style()}{_static('board.css')}"
    script = f"'use strict';\n{_static('board.js')}"
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(_static("board.html")).render(
        style=Markup(style),
        script=Markup(script),
        style_source=Markup(hash_source(style)),
        script_source=Markup(hash_source(script)),
        data=Markup(script_json([_plain(board) for board in boards])),
        boards=[
            {
                "name": board.track.name,
                "about": board.track.about,
                "played": _played(board),
                "policies": _policies(board.views[0]),
                "hidden": HIDDEN_NOTE if board.track.is_hidden else "",
                "pictures": [_picture(path) for path in board.pictures],
                "main": _main_table(board.views[0], "All drifts"),
                "entries": _entries_table(board),
                "results": board.results,
                "legacy": [
                    (
                        name,
                        content_hash,
                        _main_table(view, f"{name}, {content_hash}") if view.rows else None,
                        view.reason,
                    )
                    for name, content_hash, view in board.legacy
                ],
            }
            for board in boards
        ],
        legend=[re.sub(r"\*(\w[\w ]*)\*", r"\1", line.replace("**", "")).replace("`", "") for line in _legend()],
    )


def _picture(path: Path) -> tuple[str, str]:
    """A picture as an address that holds it, with its title."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return f"data:{_TYPES[path.suffix]};base64,{content}", path.stem.replace("-", " ").replace("_", " ")


def _plain(board: TrackBoard) -> dict[str, Any]:
    """What the script needs of a track."""
    return {
        "name": board.track.name,
        "views": [
            {
                "world": view.world,
                "kind": view.kind,
                "instances": 0 if view.standings is None else view.standings.instances,
                "schedules": [] if view.standings is None else list(view.standings.schedules),
                "reason": view.reason,
                "remarks": _remarks(view),
                "rows": [_plain_row(row) for row in view.rows],
            }
            for view in board.views
        ],
    }


def _plain_row(row: BoardRow) -> dict[str, Any]:
    one = row.standing
    return {
        "name": row.name,
        "entries": list(row.entries),
        "model": row.model,
        "reference": one.reference,
        "supervision": one.supervision,
        "order": one.ranked_by,
        "ranks": list(one.ranks),
        "equal": _triple(one.at_equal),
        "kept": _triple(one.kept),
        "gain": _triple(one.gain),
        **{
            name: None if math.isnan(value) else round(value, 2)
            for name, value in (
                ("before", one.before),
                ("lost", one.lost),
                ("probing", one.probing),
                ("steps", one.interactions),
                ("tokens", one.tokens),
                ("records", one.records),
            )
        },
    }


def _triple(estimate: Estimate | None) -> list[float] | None:
    if estimate is None or math.isnan(estimate.mean):
        return None
    return [round(float(value), 2) for value in (estimate.mean, estimate.low, estimate.high)]


def _static(name: str) -> str:
    return (resources.files("drift_agents.submission") / "static" / name).read_text("utf-8")


def _report_style() -> str:
    return (resources.files("drift_agents.analysis.html") / "report.css").read_text("utf-8")
