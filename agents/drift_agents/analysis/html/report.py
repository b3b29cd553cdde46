"""The report as one HTML file: tables, plots, what was played, and links to the steps.

* `write_html` - the file of a run
* `to_html` - a table
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from drift_agents.analysis.inspect.page import gather, write_page
from drift_agents.analysis.plots.draw import draw_all
from drift_agents.analysis.plots.style import PlotFile
from drift_agents.analysis.report import LEGEND, ReportSection, make_report, make_summary
from drift_agents.analysis.runs import Player
from drift_agents.analysis.table import Table
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import EPISODES, PAGE, REPORT_PAGE, read_manifest
from drift_agents.experiment.logs import read_rows

STYLE = """
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1b1f24; background: #ffffff;
  max-width: 1100px; margin: 0 auto; padding: 16px 20px 60px; }
h1 { font-size: 24px; } h2 { font-size: 19px; margin-top: 36px; border-bottom: 1px solid #c9d1d9; }
a { color: #0b4f94; }
table { border-collapse: collapse; margin: 14px 0; font-size: 13.5px; }
caption { text-align: left; font-weight: 600; padding: 4px 0; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #dde2e7; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: pre; }
th { white-space: pre-line; color: #4b5560; }
tr.reference td { color: #5a6570; }
.scroll { overflow-x: auto; }
img { max-width: 100%; height: auto; display: block; margin: 10px 0; }
pre { background: #f3f5f7; padding: 10px; overflow-x: auto; font-size: 12.5px; }
"""


def write_html(folder: Path) -> Path:
    """Write the report of a run as HTML, with its plots, and the page to which it links.

    The file needs nothing but the page for the steps, which lies beside it.

    Args:
        folder: the run's folder.

    Returns:
        The file.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    manifest = read_manifest(folder)
    pictures = draw_all(folder)
    rows = read_rows(folder / EPISODES)
    sections = make_summary(manifest, rows) + make_report(manifest, rows)
    write_page(folder)
    path = folder / REPORT_PAGE
    try:
        path.write_text("".join(_page(manifest, sections, pictures, _links(folder))), encoding="utf-8")
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def to_html(sheet: Table) -> str:
    """A table.

    Args:
        sheet: the table.

    Example:
        >>> sheet = Table("A", ("method", "score"))
        >>> sheet.add("<b>", "1")
        >>> to_html(sheet).count("&lt;b&gt;")
        1
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in sheet.columns)
    rows = "".join(_row(cells, dim) for cells, dim in sheet.rows)
    caption = f"<caption>{escape(sheet.title)}</caption>" if sheet.title else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n'


def _row(cells: Sequence[str], dim: bool) -> str:
    kind = ' class="reference"' if dim else ""
    return f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n"


def _page(
    manifest: Mapping[str, Any],
    sections: Sequence[ReportSection],
    pictures: Mapping[str, Sequence[PlotFile]],
    links: Mapping[str, Sequence[tuple[str, str]]],
) -> Iterator[str]:
    name, experiment = escape(str(manifest["name"])), manifest["experiment"]
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
    yield f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
    if experiment.get("about"):
        yield f"<p>{escape(experiment['about'])}</p>\n"
    yield f'<p><a href="{PAGE}">Step through the episodes</a></p>\n'
    shown: set[str] = set()
    for section in sections:
        yield f"<h2>{escape(section.heading)}</h2>\n"
        schedule = section.heading.split(" (")[0]
        yield from _pictures(pictures.get(schedule, ()))
        shown.add(schedule)
        yield from map(to_html, section.sheets)
        if section.more:
            yield "<details><summary>More tables</summary>\n"
            yield from map(to_html, section.more)
            yield "</details>\n"
        if links.get(schedule):
            yield "<p>Steps after the first drift: "
            yield ", ".join(f'<a href="{address}">{escape(text)}</a>' for text, address in links[schedule])
            yield "</p>\n"
    for schedule in pictures:
        if schedule not in shown:
            yield f"<h2>{escape(schedule)}</h2>\n"
            yield from _pictures(pictures[schedule])
    yield "<h2>How to read this</h2>\n<ul>\n"
    yield "".join(f"<li>{escape(line.replace('`', ''))}</li>\n" for line in LEGEND)
    yield "</ul>\n<h2>What was played</h2>\n<ul>\n"
    yield f"<li>Versions: {escape(', '.join(' '.join(pair) for pair in manifest['versions'].items()))}</li>\n"
    yield f"<li>Seeds: {', '.join(map(str, experiment['seeds']))}</li>\n"
    for schedule, about in manifest["schedules"].items():
        told = f"{schedule}: {about['env']}, {about['episodes']} episodes, hash {about['hash']}"
        yield f"<li>{escape(told)}</li>\n"
    yield f"<li>Configuration, hash {escape(manifest['config_hash'])}:</li>\n</ul>\n"
    yield f"<pre>{escape(json.dumps(experiment, indent=2, ensure_ascii=False))}</pre>\n</body>\n</html>\n"


def _pictures(pictures: Sequence[PlotFile]) -> Iterator[str]:
    """The pictures, inside the page."""
    for picture in pictures:
        data = base64.b64encode(picture.svg.read_bytes()).decode("ascii")
        yield f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.title)}">\n'


def _links(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """For each schedule who can be looked at: the first instance of each player, where the first drift has come."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[tuple[str, ...]] = set()
    for number, cell in enumerate(gather(folder).index["cells"]):
        who = tuple(cell[field] for field in ("schedule", "memory", "verifier", "policy", "controller", "team"))
        if cell["chunk"] is None or who in seen or cell["policy"] == "clairvoyant":
            continue
        seen.add(who)
        after = next((at for at, phase in enumerate(cell["phase"]) if phase != cell["phase"][0]), 0)
        name = cell["memory"] if cell["verifier"] == "none" else f"{cell['memory']} + {cell['verifier']}"
        text = f"{name} ({', '.join((cell['policy'], *Player.of(cell).unusual_parts))}, seed {cell['seed']})"
        found.setdefault(cell["schedule"], []).append((text, f"{PAGE}#{number}/{cell['episode'][after]}/0"))
    return found
