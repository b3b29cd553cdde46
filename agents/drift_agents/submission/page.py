"""The page of the board: one HTML file without requests.

* `write_page` - reads a folder of results and writes the page

Its Content-Security-Policy allows its own script and style by their hashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.inspect.page import hash_source, script_json
from drift_agents.analysis.ranking import SHORT
from drift_agents.experiment.folder import write_text
from drift_agents.submission.board import BoardRow, BoardView, TrackBoard, gather_board
from drift_envs.metrics import Estimate

_FIGURES = ("before", "lost", "probing", "interactions", "tokens", "records", "dollars")


def write_page(folder: Path, out: Path) -> list[TrackBoard]:
    """Write the page of a folder of results; equal results give equal bytes.

    Args:
        folder: the results.
        out: the HTML page.

    Returns:
        What the page shows.

    Raises:
        SubmissionError: if the folder holds no track, or a file is damaged.
        ExperimentError: if the page cannot be written.
    """
    boards = gather_board(folder)
    write_text(out, to_page(boards), make_folder=True)
    return boards


def to_page(boards: Sequence[TrackBoard]) -> str:
    """The board as one HTML file.

    Args:
        boards: the tracks.
    """
    style = _read("analysis/html/report.css") + _read("submission/static/board.css")
    script = _read("submission/static/board.js")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(_read("submission/static/board.html")).render(
        style=Markup(style),
        script=Markup(script),
        style_source=Markup(hash_source(style)),
        script_source=Markup(hash_source(script)),
        data=Markup(script_json([[_plain_view(view) for view in board.views] for board in boards])),
        boards=boards,
    )


def _read(name: str) -> str:
    return resources.files("drift_agents").joinpath(name).read_text("utf-8")


def _plain_view(view: BoardView) -> dict[str, Any]:
    """What the script needs of a view."""
    models = [row.name for row in view.rows if row.model]
    remarks = [f"Language models played in: {', '.join(models)}." if models else "Played by rules, no language model."]
    remarks += [view.reason] if view.reason else []
    if view.standings is not None:
        remarks.append(f"{view.standings.instances} instances of {', '.join(view.standings.schedules)}.")
        for names, reason in (
            (view.standings.short, f"they have {SHORT} episodes or fewer"),
            (view.standings.saturated, "more than half of the agents keep everything there"),
            (tuple(view.standings.left_out), "an agent did not play all instances up to a drift"),
        ):
            if names:
                remarks.append(f"Not counted, since {reason}: {', '.join(names)}.")
    return {
        "environment": view.environment,
        "kind": view.kind,
        "remarks": remarks,
        "rows": [_plain_row(row) for row in view.rows],
    }


def _plain_row(row: BoardRow) -> dict[str, Any]:
    one = row.standing
    figures = {name: getattr(one, name) for name in _FIGURES}
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
        **{name: None if math.isnan(value) else round(value, 6) for name, value in figures.items()},
    }


def _triple(estimate: Estimate | None) -> list[float] | None:
    if estimate is None or math.isnan(estimate.mean):
        return None
    return [round(float(value), 2) for value in (estimate.mean, estimate.low, estimate.high)]
