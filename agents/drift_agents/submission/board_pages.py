"""The pages of the board: one in Markdown, one in HTML.

* `write_board` - reads a folder of results and writes both pages
* `to_markdown_page`, `to_html_page` - the pages

The HTML page is one file without requests, whose Content-Security-Policy allows its own script and style by their
hashes.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.aggregates import RESAMPLES
from drift_agents.analysis.inspect.page import hash_source, script_json
from drift_agents.analysis.leaderboard import LEGEND, MEASURED, measured_cells
from drift_agents.analysis.mechanism_test import describe_rules
from drift_agents.analysis.ranking import SHORT
from drift_agents.analysis.runs import FAILURE_SHARE
from drift_agents.analysis.table import MISSING, Table, format_estimate, format_plain, to_markdown
from drift_agents.experiment.folder import write_text
from drift_agents.submission.board import BoardRow, BoardView, TrackBoard, gather_board
from drift_agents.submission.board_map import (
    BOTTOM,
    LEFT,
    RADIUS,
    RIGHT,
    SHADES,
    TOP,
    draw_ticks,
    make_figures,
    name_key,
)
from drift_envs.metrics import Estimate

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


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


def _rank(row: BoardRow, rows: Sequence[BoardRow]) -> str:
    if row.standing.reference:
        return MISSING
    return str(1 + sum(other.standing.ranked_by > row.standing.ranked_by for other in _ranked(rows)))


def _ranked(rows: Sequence[BoardRow]) -> list[BoardRow]:
    return [row for row in rows if not row.standing.reference]


def _span(row: BoardRow) -> str:
    low, high = row.standing.ranks
    return MISSING if row.standing.reference else str(low) if low == high else f"{low}-{high}"


def _main_table(view: BoardView, title: str) -> Table:
    table = Table(title, ("agent", "rank", "ranks", *MEASURED, "supervision"))
    for row in view.rows:
        one = row.standing
        table.add(
            row.name,
            _rank(row, view.rows),
            _span(row),
            *measured_cells(one),
            one.supervision,
        )
    return table.used()


def _parts_table(view: BoardView) -> Table:
    parts = list(view.rows[0].standing.groups)
    table = Table("Kept, by kind of drift and by world", ("agent", *parts))
    for row in view.rows:
        table.add(row.name, *(format_estimate(row.standing.groups[part]) for part in parts))
    return table


def _drifts_table(board: TrackBoard) -> Table:
    """Where each schedule stands on the map."""
    table = Table("Drifts by severity and visibility", ("schedule", "kind", "severity, %", "visibility, %"))
    for name, place in board.places.items():
        table.add(
            name,
            board.abouts[name]["visibility"] or MISSING,
            format_plain(place.severity),
            format_plain(place.visibility),
        )
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


MAP_NOTE = (
    "Severity: the share of the transition table that changes. Visibility: the share of optimal ways that meet the "
    "change. Means over the first two drifts of three development instances, by the measure of `drift-envs severity`."
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
        if board.places:
            lines += ["", to_markdown(_drifts_table(board)), "", MAP_NOTE, ""]
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
        return describe_rules(key[0] for row in view.rows for key in row.keys)
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
                "policies": re.sub(r"[*`]", "", _policies(board.views[0])),
                "hidden": HIDDEN_NOTE if board.track.is_hidden else "",
                "pictures": [_picture(path) for path in board.pictures],
                "main": _main_table(board.views[0], "All drifts"),
                "maps": make_figures(board),
                "drifts": _drifts_table(board),
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
        map_note=MAP_NOTE.replace("`", ""),
        ticks=draw_ticks(),
        plot={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM, "radius": RADIUS},
        shades=[f"{number * 100 // SHADES}-{(number + 1) * 100 // SHADES}" for number in range(SHADES)],
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
        "keys": [name_key(key) for key in row.keys],
        "model": row.model,
        "reference": one.reference,
        "supervision": one.supervision,
        "order": one.ranked_by,
        "ranks": list(one.ranks),
        "equal": _triple(one.at_equal),
        "kept": _triple(one.kept),
        "gain": _triple(one.gain),
        **{
            name: None if math.isnan(value) else round(value, 6 if name == "dollars" else 2)
            for name, value in (
                ("before", one.before),
                ("lost", one.lost),
                ("probing", one.probing),
                ("steps", one.interactions),
                ("tokens", one.tokens),
                ("records", one.records),
                ("dollars", one.dollars),
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
